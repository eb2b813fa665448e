"""What the chapters of the methods say in words of the committed studies: computed from the results."""

import numpy as np
import pytest
from prose import prose

from figures.experiments import claims, runner, significance
from figures.experiments.book import learnt_powers, sampling_truth
from figures.experiments.bui2017 import fig3, fig33, regression_claims, uci_regression
from figures.experiments.kuss2005 import landscape
from figures.experiments.salimbeni2018 import fig2


def says(chapter, *sentences):
    """Assert that a chapter has these words."""
    text = prose(chapter)
    for sentence in sentences:
        assert sentence in text, sentence


# start-here -----------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def halves():
    """The study of the first page: {loss: (data, split) by power}."""
    runs = runner.results("start_here")
    return {name: runs.pivot(index=["data", "split"], columns="alpha", values=name)
            for name in ("nll", "noise_sd", "largest_error_in_sds")}


def test_on_the_tumours_one_is_as_good_as_nine_tenths(halves):
    losses = halves["nll"].loc["outlines"]
    difference = losses[1.0] - losses[0.9]
    assert (losses[1.0] < losses[0.0]).all() and len(losses) == 20 and abs(difference.mean()) < difference.sem()
    says("start-here", "predicts better than 0 in all twenty splits, and its difference from 0.9 is smaller than one standard")


def test_how_often_the_irises_go_wrong(halves):
    far = (halves["largest_error_in_sds"].loc["iris"][1.0] > 100).sum()
    vanished = (halves["noise_sd"].loc["iris"][1.0] < 0.01).sum()
    assert (far, vanished) == (3, 6)
    says("start-here", "In 3 of the 20 splits a flower lies more than a hundred predicted standard deviations",
         "On the irises the noise vanished in 6 of the 20 splits")


def test_no_setting_is_best_everywhere(halves):
    mean = halves["nll"].groupby(level="data").mean()
    behind = mean.sub(mean.min(axis=1), axis=0)
    assert (behind[[0.75, 0.9]] < 0.05).all(axis=None) and (behind[0.5] > 0.05).sum() == 2
    says("start-here", "At 0.5 and below it is well above the best on two sets.",
         "At 0.75 and 0.9 it is close to the best on all four.")


# ep-step-by-step and power-ep -----------------------------------------------------------------------------------------

def test_how_far_the_two_evidences_are_from_sampling():
    runs = runner.results("kuss_landscape")
    error, best = landscape.errors(runs), runs["standard_error"].notna() & (runs["standard_error"] <= 0.05)
    apart = (runs["ep"] - runs["laplace"]).abs()[~best].max()
    assert f"{error['known']:.0f} {error['settings'] - error['known']:.0f}" == "105 27"
    says("ep-step-by-step", f"EP's error is at most {error['ep']:.2f} nats, Laplace's up to {error['laplace']:.1f}.",
         f"At the other 27, with short lengthscales and large amplitudes, the two are up to {apart:.0f} nats apart.")


def test_the_powers_learnt_on_the_tumours_differ_little():
    runs = runner.results("learnt_powers")
    losses, evidence = (learnt_powers.by_power(runs, name) for name in ("nll", "log_evidence"))
    assert np.ptp(losses.mean()) < 0.002 and (np.diff(evidence, axis=1) > 0).all()
    assert set(losses.idxmax(axis=1)) == {0.0, 1.0}
    difference = losses[1.0] - losses[0.0]
    assert abs(difference.mean()) < 2 * difference.sem()
    says("power-ep", "the means of the eleven powers lie within 0.002 nats.",
         "In every split the worst power is one of the two ends.")


# sparse-regression ----------------------------------------------------------------------------------------------------

def test_ranks_and_shares_on_real_data():
    wide = {metric: regression_claims.losses(metric) for metric in uci_regression.METRICS}
    rank = {metric: {alpha: found.value for alpha, found in significance.average_ranks(losses).items()}
            for metric, losses in wide.items()}
    assert sorted(rank["smse"], key=rank["smse"].get)[:3] == [0.6, 0.5, 0.4] and min(rank["smll"], key=rank["smll"].get) == 0.8
    vfe, fitc = (regression_claims.wins("smse", 0.5, other).value for other in (0.0, 1.0))
    says("sparse-regression", "In log loss the best power is the paper's, 0.8. In squared error 0.6 is slightly ahead",
         f"beats VFE in {vfe:.0f} % of the runs and FITC in {fitc:.0f} %.")


def test_the_noise_of_fitc_and_the_searches_that_converged():
    runs = runner.results(regression_claims.STUDY)
    vanished = (runs[runs["alpha"] == 1.0]["noise"] < 1e-4).mean()
    assert 0.85 < vanished < 0.95 and 0.45 < runs["converged"].mean() < 0.55
    says("sparse-regression", "In nine fits out of ten FITC's noise has vanished",
         "About half of the searches have converged when the optimiser stops.")


def test_the_toy_data():
    toy = runner.results("bui_fig3").query("method == 'sparse' and alpha == 1.0").groupby("M")[["smse", "smll"]].mean()
    over = regression_claims.toy_overestimation(1.0).mean()
    assert 90 < over[100] < 115 and (toy["smll"][[100, 200]] > toy["smll"][20]).all()
    assert np.ptp(toy["smse"][[50, 100, 200]]) < 0.001 and toy["smll"][50] < toy["smll"][100] < toy["smll"][200]
    late = {alpha for alpha in fig3.ALPHAS if abs(toy_distance(alpha)) > 0.02}
    assert late == {0.8, 1.0}
    says("sparse-regression", "in log loss two of eight powers, 0.8 and 1, have not reached the full process at $M = 200$.",
         "At $M$ around 100 FITC over-estimates by about a hundred nats",
         "From $M = 50$ to 200 its squared error hardly changes, and its log loss rises")


def toy_distance(alpha):
    """Mean SMLL at M = 200 less that of the full process."""
    toy = runner.results("bui_fig3").set_index("data")
    sparse = toy[(toy["method"] == "sparse") & (toy["M"] == 200) & (toy["alpha"] == alpha)]["smll"]
    return (sparse - toy[toy["method"] == "full"]["smll"]).mean()


# sparse-classification ------------------------------------------------------------------------------------------------

def test_the_largest_evidence_never_has_the_smallest_loss():
    runs = runner.results("bui_fig33")
    for alpha in sorted(set(runs["alpha"])):
        evidence, loss = fig33.best(runs, alpha)
        assert (evidence["log_lengthscale"], evidence["log_amplitude"]) != (loss["log_lengthscale"], loss["log_amplitude"]), alpha
    says("sparse-classification", "At no power does the cell with the largest evidence have the smallest test loss.")


def test_how_far_pseudo_inputs_leave_the_data():
    runs = runner.results("bui_fig23").query("kernel == 'learnt'")
    distance = runs.pivot(index="data", columns="alpha", values="distance")
    outside = runs.groupby("alpha")["outside"].mean()
    assert (distance[1.0] > distance[0.0]).all() and len(distance) == 8
    assert (outside[outside.index >= 0.75] > 0.28).all()
    spread = next(claim for claim in claims.ledger() if claim.id == "bui-fig23-spread")
    assert spread.verdict == "inconclusive" and 1.9 < spread.interval[0] < 2
    says("sparse-classification", "on every set the pseudo-inputs are farther off at $\\alpha = 1$ than at 0.",
         "From $\\frac34$ on, roughly a third or more of the pseudo-inputs lie outside the data",
         "*inconclusive*: its interval begins just below our limit, twice as far as the data.")


def test_vfe_is_nearest_in_probability_while_its_evidence_is_farthest():
    found = sampling_truth.compare(runner.results("sampling_truth"), "steep").set_index(["M", "alpha"])
    assert found.loc[(10, 0.0), "evidence"] < -20 and 0.5 < found.loc[(10, 1.0), "evidence"] < 1.5
    for M in (10, 20):
        assert found.loc[M]["p_mean"].idxmin() == 0.0 and found.loc[M]["evidence"].abs().idxmax() == 0.0
    says("sparse-classification", "With ten pseudo-inputs VFE's bound is more than twenty nats too low,",
         "and EP's estimate is one nat too *high*.",
         "with ten or twenty, VFE is nearest to the truth, although its evidence is farthest off.")


# sparse-ep-projection -------------------------------------------------------------------------------------------------

def test_the_nystrom_mean_needs_a_large_basis():
    runs = runner.results("csa_nystrom")
    ratio = runs["smse_nystrom"] / runs["smse_sparse_ep"]
    mean = runs.groupby(["data", "M"])[["residual", "smse_nystrom", "smse_sparse_ep"]].mean().query("residual >= 1")
    assert (mean["smse_nystrom"] / mean["smse_sparse_ep"]).min() >= 10 and 2e5 < ratio.max() < 1e6
    good = ratio[runs["residual"] < 0.1]
    assert (good < 1).mean() > 0.5
    says("sparse-ep-projection", "is at least ten times that of sparse EP, and in individual runs several hundred",
         "the Nyström mean does win most runs")


def test_which_orders_had_not_converged():
    failed = runner.results("csa_order").query("mode == 'budget'").set_index("data")["converged"].eq(False)
    assert failed["pima"].all() and 0.38 < failed.mean() < 0.42
    says("sparse-ep-projection", "Four in ten of these pairs, and all of those on pima, had not converged after twenty sweeps.")


# orthogonal-natural-gradients -----------------------------------------------------------------------------------------

def test_the_bases_when_the_kernel_moves():
    shown = ["CoupledNat_300", "OrthNat", "OrthNatWeights", "Coupled_300", "Orth", "OrthWeights"]
    runs = runner.results("salimbeni_tables").query("data == 'kin40k'").set_index("method").loc[shown]
    within, weights = runs.loc["CoupledNat_300"], runs.loc["OrthNatWeights"]
    larger = 100 * (weights["rmse"] / within["rmse"] - 1)
    assert weights["bound"] < within["bound"] - 1000 and weights["noise"] > within["noise"] and runs["bound"].idxmax() == "Orth"
    says("orthogonal-natural-gradients", "the bound ends more than a thousand nats below that of *CoupledNat, 300*, "
         f"the error is {larger:.0f} % larger, and more noise is learnt.",
         "*Orth*, with Adam alone, has the highest bound of all")


def test_how_much_of_the_gap_values_and_weights_leave():
    left = {run: 100 * share[-1] for run, share in fig2.shares(runner.results("salimbeni_fig2")).items()}
    values, weights = left["kin40k", "Orth"], left["kin40k", "OrthWeights"]
    says("orthogonal-natural-gradients", f"the function values leave {values:.1f} % of the gap, and the weights {weights:.1f} %.")


def test_decoupled_arrives_on_ringnorm_later_by_the_clock_alone():
    runs = runner.results("salimbeni_fig2").query("data == 'ringnorm'").set_index("basis")
    share = fig2.shares(runner.results("salimbeni_fig2"))
    steps = {basis: fig2.arrival(share["ringnorm", basis]) for basis in runs.index if not basis.endswith("Nat")}
    others = [number for basis, number in steps.items() if basis != "Decoupled"]
    assert min(others) < steps["Decoupled"] < max(others)
    seconds = {basis: np.interp(number, fig2.CHECKPOINTS, [runs.loc[basis, f"seconds_{at}"] for at in fig2.CHECKPOINTS])
               for basis, number in steps.items()}
    times = [seconds["Decoupled"] / value for basis, value in seconds.items() if basis != "Decoupled"]
    assert 1.6 < min(times) and max(times) < 3.5
    says("orthogonal-natural-gradients", "in about as many iterations as the other bases with Adam. But its iterations are slow: "
         "by the clock it takes about two to three times as long.")


def test_the_hessian_on_kin40k():
    runs = runner.results("salimbeni_landscape").set_index("basis")
    condition, prior, likelihood = (runs[f"{part}condition_scaled"] for part in ("", "prior_", "likelihood_"))
    assert condition["decoupled"] / condition["orthogonal-weights"] == pytest.approx(1.9, abs=0.05)
    assert 4.5e4 < condition["hybrid"] / condition["orthogonal"] < 5e4
    assert prior["hybrid"] / prior["orthogonal"] > 4000 and likelihood["hybrid"] / likelihood["orthogonal"] > 3000
    share = 100 * runs["prior_at_flattest"]
    says("orthogonal-natural-gradients", f"After the projection the correlation is {runs.loc['orthogonal', 'correlation']:.3f}.",
         f"the prior makes up {share['orthogonal']:.0f} % of the curvature in the flattest direction",
         f"in the hybrid basis the prior makes up only {share['hybrid']:.0f} % in that direction",
         "the condition number falls by a factor of nearly fifty thousand.")
