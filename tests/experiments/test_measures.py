"""What claims are measured by, on tables of a few rows that were made up, with results that can be worked out by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest

from figures.experiments import runner
from figures.experiments.bui2017 import counts, fig3, regression_claims, uci_regression
from figures.experiments.csato2002 import claims as csato
from figures.experiments.csato2002 import nystrom, problems
from figures.experiments.kuss2005 import landscape
from figures.experiments.villacampa2017 import claims as villacampa
from figures.experiments.villacampa2017 import fig1, fig5_long


@pytest.fixture
def made_up(monkeypatch):
    """A function: rows of a study -> every measure sees them in the place of what is committed."""
    cached = [regression_claims.results, regression_claims.losses,
              csato.results, villacampa._splits]
    read = runner.results

    def instead(**studies):
        tables = {study: pd.DataFrame(rows) for study, rows in studies.items()}
        monkeypatch.setattr(runner, "results", lambda study: tables[study] if study in tables else read(study))
        for function in cached:
            function.cache_clear()

    yield instead
    for function in cached:
        function.cache_clear()


# bui2017, toy data -----------------------------------------------------------------------------------------------------

FULL = {"N": 500, "nlml_true": 103.0, "nlml_learnt": 100.0, "smse_true": 0.2, "smse_train_true": 0.1,
        "smll_true": -0.5, "smse_learnt": 0.3, "smse_train_learnt": 0.1, "smll_learnt": -0.4, "smll_train_learnt": -0.9}


def test_learnt_against_true_hyper_parameters(made_up):
    other = FULL | {"smse_learnt": 0.1, "smll_learnt": -0.2, "nlml_learnt": 98.0}
    made_up(bui_fig8=[FULL, other, FULL | {"N": 1000, "smse_true": 9.0}])
    assert regression_claims.learnt_over_true_smse().value == pytest.approx(100 * ((1.5 + 0.5) / 2 - 1))
    assert regression_claims.learnt_minus_true_smll().value == pytest.approx((0.1 + 0.3) / 2)
    assert regression_claims.evidence_gain_of_learning().value == pytest.approx((3 + 5) / 2)


def test_test_half_against_training_half(made_up):
    made_up(bui_fig8=[FULL, FULL | {"smse_learnt": 0.5, "smll_learnt": -0.8}])
    assert regression_claims.smse_over_training(500).value == pytest.approx((3 + 5) / 2)
    assert regression_claims.smse_over_training_against_true(500).value == pytest.approx(4 / 2)
    assert regression_claims.smll_above_training(500).value == pytest.approx((0.5 + 0.1) / 2)


def test_test_half_against_training_half_of_sparse_fits(made_up):
    row = {"data": 0, "M": 20, "alpha": 1.0, "smse": 0.3, "smse_train": 0.1, "smll": -0.5, "smll_train": -0.8}
    made_up(bui_gap=[row, row | {"M": 50, "smse": 0.1}, row | {"data": 1, "smse": 0.4, "smll": -0.4}])
    assert regression_claims.sparse_smse_over_training().value == pytest.approx(((3 + 1) / 2 + 4) / 2)
    assert regression_claims.sparse_smll_above_training().value == pytest.approx((0.3 + 0.4) / 2)


def toy(nlml=lambda data, M, alpha: 0.0, loss=lambda data, M, alpha: 0.0):
    rows = [{"data": data, "method": "sparse", "M": M, "alpha": alpha, "nlml": nlml(data, M, alpha), "smse": loss(data, M, alpha)}
            for data in (0, 1) for M in (*regression_claims.INTERMEDIATE, fig3.TRAIN) for alpha in (0.0, 0.5, 1.0)]
    full = [{"data": data, "method": "full", "M": fig3.TRAIN, "alpha": 0.0, "nlml": 0.0, "smse": 0.5} for data in (0, 1)]
    return [*rows, *full]


def test_over_estimation_of_the_evidence(made_up):
    above = {20: 1.0, 50: 4.0, 100: 10.0, 200: 6.0, fig3.TRAIN: 2.0}
    made_up(bui_fig3=toy(nlml=lambda data, M, alpha: -alpha * (above[M] + data)))
    assert regression_claims.toy_largest_overestimation(1.0).value == pytest.approx(10.5)
    assert regression_claims.toy_overestimation_at_the_end(1.0).value == pytest.approx(100 * 2.5 / 10.5)
    assert [regression_claims.toy_sets_overestimated(alpha, 20).value for alpha in (1.0, 0.0)] == [100, 0]


def test_searches_that_never_left_their_start_do_not_count_at_the_end(made_up):
    made_up(bui_fig3=toy(nlml=lambda data, M, alpha: -10.0 if M < fig3.TRAIN else -4.0 * data))
    assert regression_claims.toy_overestimation_at_the_end(1.0).value == pytest.approx(40.0)


def test_powers_near_the_full_process_and_the_best_of_them(made_up):
    made_up(bui_fig3=toy(loss=lambda data, M, alpha: {0.0: 0.6, 0.5: 0.505, 1.0: 0.495}[alpha]))
    assert regression_claims.toy_powers_that_reach_the_full_gp("smse", 200, 0.01).value == 2
    assert regression_claims.toy_powers_that_reach_the_full_gp("smse", 200, 0.2).value == 3
    assert regression_claims.toy_best_power("smse").value == 1.0


# bui2017, real data: the ranks of the eight powers are given, and the losses are these ranks ----------------------------

def ranked(*ranks):
    return [{"data": data, "split": split, "M": 5, "alpha": alpha, "smse": rank, "smll": -rank}
            for data in ("boston", "yacht") for split in range(3) for alpha, rank in zip(uci_regression.ALPHAS, ranks)]


def test_ranks(made_up):
    made_up(uci_whole=ranked(8.0, 6.0, 5.0, 4.0, 1.0, 2.0, 3.0, 7.0))
    best = uci_regression.ALPHAS[4]
    assert regression_claims.best_rank("smse").value == best and regression_claims.best_rank("smll").value == 0.0
    assert regression_claims.extremes_among_worst("smse").value == 2 and regression_claims.extremes_among_worst("smll").value == 0
    assert regression_claims.rank_behind_the_best("smse", best).value == 0
    assert regression_claims.rank_behind_the_best("smse", 1.0).value == 6


def test_how_many_powers_a_power_beats(made_up):
    made_up(uci_whole=ranked(8.0, 6.0, 5.0, 4.0, 1.0, 2.0, 3.0, 7.0))
    assert regression_claims.powers_beaten("smse", 1.0).value == 1
    assert regression_claims.powers_beaten("smse", 1.0, leave_out=(0.0,)).value == 0
    assert regression_claims.steps_up("smse").value == 4 and regression_claims.steps_up("smll").value == 3


# csato2002 --------------------------------------------------------------------------------------------------------------

def test_two_orders_of_the_data(made_up):
    rows = [{"data": data, "mode": "all", "difference_online": online, "difference_ep": ep}
            for data, online, ep in zip((*problems.CLASSIFICATION, "boston"), (0.4, 0.2, 0.8, 0.01), (0.04, 0.1, 0.008, 9.0))]
    made_up(csa_order=rows)
    assert csato.order_after_one_sweep() == 0.2
    assert csato.order_left_by_ep() == pytest.approx(np.median([0.1, 0.5, 0.01]))


def test_the_nystrom_method(made_up):
    row = {"data": "boston", "split": 0, "M": 20, "negative": 4.0, "lowest_sparse_ep": 0.1, "smse_nystrom": 0.2,
           "smse_sparse_ep": 0.3}
    made_up(csa_nystrom=[row, row | {"M": 50, "negative": 2.0, "smse_nystrom": 0.4}, row | {"M": nystrom.ROWS, "negative": 50.0},
                         row | {"split": 1, "negative": 0.0, "lowest_sparse_ep": 0.02}])
    assert csato.nystrom_negative().value == pytest.approx(((4 + 2) / 2 + 0) / 2)
    assert csato.lowest_sparse_variance() == 0.02
    assert csato.nystrom_better().value == pytest.approx((50 + 100) / 2)


def test_projection_against_power_ep_in_regression(made_up):
    row = {"data": "boston", "rho": 0.5, "mean_distance": 1e-6, "log_sd_distance": 3e-6}
    made_up(csa_fitc=[row, row | {"rho": 1.0, "mean_distance": 1.0}, row | {"data": "pima", "mean_distance": 2.0}])
    assert csato.regression_distance(0.5) == 3e-6


def test_sparse_ep_against_one_sweep(made_up):
    rows = [{"data": "pima", "split": split, "M": 20, "limit": limit, "nll_sparse_ep": 0.4, "nll_online": other}
            for split, other in enumerate((0.5, 0.5, 0.3, 0.4)) for limit in ("budget", "novelty")]
    made_up(csa_size=rows)
    assert csato.sparse_ep_beats_one_sweep("nll").value == pytest.approx(100 * 2.5 / 4)


# villacampa2017 ---------------------------------------------------------------------------------------------------------

def vehicle(split, **ends):
    """Three updates whose evidence rises on a line to its end, in seconds of their own per checkpoint."""
    pace = {"outer": 4.0, "inner": 1.0, "inner-exact": 2.0}
    final = dict.fromkeys(pace, -100.0) | ends
    return [{"split": split, "update": update, "final_evidence": final[update]}
            | {f"evidence_{number}": final[update] - 250.0 + number for number in fig1.CHECKPOINTS}
            | {f"seconds_{number}": pace[update] * number for number in fig1.CHECKPOINTS} for update in pace]


def test_updates_on_vehicle(made_up):
    made_up(vil_fig1=[*vehicle(0), *vehicle(1, outer=-110.0), *vehicle(2, **{"inner-exact": -104.0})])
    assert villacampa.vehicle_spread() == pytest.approx(10.0)
    assert villacampa.vehicle_speed().value == pytest.approx(4.0)
    assert villacampa.vehicle_gradients() == pytest.approx(100 * 4 / 102)
    assert villacampa.vehicle_approximate(bound=5.0) == 2 and villacampa.vehicle_approximate(bound=1.0) == 1


def test_sizes_at_which_all_others_err_less_than_vi(made_up):
    errors = {4: (0.1, 0.1, 0.1, 0.2), 16: (0.1, 0.3, 0.1, 0.2), 64: (0.1, 0.1, 0.19, 0.2)}
    made_up(vil_fig3=[{"seed": seed, "M": M, "method": method, "error_rate": error + seed} for seed in (0, 1)
                      for M, row in errors.items() for method, error in zip(("ep", "sep", "gfitc", "vi"), row)])
    assert villacampa.sizes_ahead() == 2


def test_the_end_of_learning_on_mnist(made_up):
    ends = {"sep": (0.025, 0.08), "vi": (0.02, 0.09), "ep": (0.03, 0.08)}
    columns = itertools.product(("error_rate", "nll"), villacampa.mnist.CHECKPOINTS)
    last = villacampa.mnist.CHECKPOINTS[-1]
    rows = [{"method": method, "pseudo_inputs": kind} | {f"{name}_{number}": 1.0 for name, number in columns}
            | {f"error_rate_{last}": error, f"nll_{last}": nll}
            for method, (error, nll) in ends.items() for kind in ("own", "shared")]
    long = {f"error_rate_{fig5_long.CHECKPOINTS[-1]}": 0.021, f"nll_{fig5_long.CHECKPOINTS[-1]}": 0.07}
    made_up(vil_fig5=rows, vil_fig5_long=[long])
    assert villacampa.mnist_at_the_end("error_rate") == pytest.approx(2.5)
    assert villacampa.mnist_at_the_end("nll") == pytest.approx(0.08)
    assert villacampa.mnist_at_the_end("error_rate", epochs=60) == pytest.approx(2.1)
    assert villacampa.mnist_vi(error=2.3, nll=0.085) == 1 and villacampa.mnist_vi(error=2.3, nll=0.095) == 2


# kuss2005 ---------------------------------------------------------------------------------------------------------------

def test_the_landscape_of_hyper_parameters(made_up):
    row = {"log_lengthscale": 0.0, "log_amplitude": 0.0, "ep": -10.0, "laplace": -14.0, "truth": -10.1, "standard_error": 0.01,
           "ep_loss": 0.2, "laplace_loss": 0.3}
    made_up(kuss_landscape=[row, row | {"ep": -9.0, "truth": -9.3, "laplace": -10.0, "ep_loss": 0.22},
                            row | {"ep": -30.0, "truth": -20.0, "standard_error": 1.0}])
    assert landscape.largest_error("ep") == pytest.approx(0.3)
    assert landscape.largest_error("laplace") == pytest.approx(3.9)
    assert landscape.loss_at_the_peak() == pytest.approx(1.1)


def test_a_size_that_few_splits_have_may_be_missing_from_a_draw():
    """Nine splits of ten lack the largest size, where the losses would rise: the curve that is left falls in every draw."""
    rows = [("a", split, M) for split in range(10) for M in (5, 10, 20) if M < 20 or split == 0]
    index = pd.MultiIndex.from_tuples(rows, names=["data", "split", "M"])
    wide = pd.DataFrame({0.0: [{5: 3.0, 10: 1.0, 20: 2.0}[M] for _, _, M in rows]}, index)
    assert counts.curves_that_fall_with_M(wide) == (100, 100, 100)


def test_a_curve_falls_by_the_ranks_of_the_sizes_that_it_has():
    curves = np.array([[3.0, 2.0, np.nan], [2.0, 3.0, np.nan], [np.nan, 3.0, 2.0], [1.0, 1.0, np.nan]])
    assert list(counts._fall(curves)) == [True, False, True, False]
