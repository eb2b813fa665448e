"""The numbers that `why` gives in the claims of bui2017, beside those that the ledger measures: computed from the results."""

import re
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import spearmanr

from figures.experiments import claims, runner, significance
from figures.experiments.bui2017 import (
    classification_claims,
    counts,
    fig31,
    gap,
    regression_claims,
    uci_classification,
    uci_regression,
)

LEDGER = claims.ledger()
WHY = {claim.id: claim.why for claim in LEDGER}
POOLED = [claim for claim in LEDGER
          if claim.measure.endswith("regression_claims.wins") and "pool of our runs, our first rule," in claim.why]


# The toy data ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("alpha", [0.8, 1.0])
def test_what_is_left_of_the_overestimation_at_the_end(alpha):
    mean = regression_claims.toy_overestimation(alpha).mean()
    left = 100 * mean.iloc[-1] / mean[list(regression_claims.INTERMEDIATE)].max()
    assert f"over all 30 sets, which is what the paper shows, {left:.0f} % is left" in WHY[f"bui-fig3-end-{alpha:g}"]


def test_the_distance_of_two_powers_from_the_full_gp():
    toy = runner.results("bui_fig3").set_index("data")
    off = toy[(toy["method"] == "sparse") & (toy["M"] == 200)].pivot(columns="alpha", values="smll").sub(
        toy.loc[toy["method"] == "full", "smll"], axis=0).mean()
    assert f"0.8 is {off[0.8]:.3f} nats off" in WHY["bui-fig3-smll"] and f"EP is {off[1.0]:.2f} nats off" in WHY["bui-fig3-smll"]


def test_the_gap_without_the_power_that_does_not_overestimate():
    at_20 = [regression_claims.toy_overestimation(alpha).mean()[20] for alpha in (0.8, 1.0)]
    assert at_20[0] < 0 < at_20[1]
    runs = runner.results("bui_gap")
    over = runs[(runs["M"] > 20) | (runs["alpha"] == 1.0)]
    assert f"the ratio is {gap.ratios(over).mean():.2f}" in WHY["bui-gap-smse"]
    assert f"the gap is {gap.differences(over).mean():.2f} nats" in WHY["bui-gap-smll"]


@pytest.fixture
def at_200():
    runs = runner.results("bui_gap")
    return {alpha: runs[(runs["M"] == 200) & (runs["alpha"] == alpha)] for alpha in gap.ALPHAS}


def test_the_ratio_of_test_to_training_error(at_200):
    ratios = {alpha: gap.ratios(rows).mean() for alpha, rows in at_200.items()}
    full = regression_claims.smse_over_training(500).value
    assert (f"is {ratios[0.8]:.2f} times the training error for 0.8 and {ratios[1.0]:.2f} times for EP, and {full:.2f} times"
            in WHY["bui-gap-smse"])


def test_the_gap_of_the_log_losses(at_200):
    differences = {alpha: gap.differences(rows).mean() for alpha, rows in at_200.items()}
    full = regression_claims.smll_above_training(500).value
    assert (f"{differences[0.8]:.2f} nats for 0.8 and {differences[1.0]:.2f} for EP, while the full GP has {full:.2f}"
            in WHY["bui-gap-smll"])


# Regression -----------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def with_500():
    """Shares of wins in the shorter study: (metric, first, second) -> Estimate."""
    before = {metric: uci_regression.table(runner.results("uci_regression"), metric) for metric in uci_regression.METRICS}
    return lambda metric, first, second: significance.win_percentage(before[metric], first, second)


def test_seven_claims_name_the_share_of_the_pool():
    assert len(POOLED) == 7


@pytest.mark.parametrize("claim", POOLED, ids=lambda claim: claim.id)
def test_the_share_of_the_pool(claim):
    wide = regression_claims.losses(claim.arguments["metric"])
    pooled = 100 * (wide[claim.arguments["first"]] < wide[claim.arguments["second"]]).mean()
    assert re.search(rf"\b{pooled:.0f} %", claim.why)


def test_the_margins_in_squared_error():
    median, mean, largest = (regression_claims.win_over_loss("smse", 0.5, 0.0, name) for name in ("median", "mean", "max"))
    margin = np.log(regression_claims.losses("smse")[0.0] / regression_claims.losses("smse")[0.5])
    in_ratios = margin[margin > 0].median() / -margin[margin < 0].median()
    assert WHY["bui-fig4-margins-smse"].startswith(
        f"The median win is {median:.1f} times the median loss, the mean win {mean:.2f} times the mean loss, the largest win "
        f"{largest:.2f} times the largest loss; in ratios of the squared error the median win is {in_ratios:.1f} times the")


def test_the_margins_in_log_loss():
    said = [f"{regression_claims.win_over_loss('smll', 0.5, 0.0, name):.1f}" for name in ("median", "mean", "max")]
    assert WHY["bui-fig4-margins-smll"] == f"{said[0]}, {said[1]} and {said[2]} times."


def test_half_is_second_in_rank_by_less_than_a_tenth():
    rank = {alpha: estimate.value for alpha, estimate in significance.average_ranks(regression_claims.losses("smse")).items()}
    assert sorted(rank, key=rank.get)[:2] == [0.6, 0.5] and rank[0.5] - rank[0.6] < 0.1
    assert regression_claims.losses("smse").rank(axis=1).mean().idxmin() == 0.6         # the pool


def test_half_had_the_best_rank_with_fewer_evaluations():
    assert counts.best_rank(uci_regression.table(runner.results("uci_regression"), "smse")).value == 0.5


def test_the_closest_duel_of_half(with_500):
    others = {other: regression_claims.wins("smse", 0.5, other) for other in uci_regression.ALPHAS if other not in (0.5, 0.6)}
    closest = min(others, key=lambda other: others[other].value)
    value, low, high = others[closest]
    assert (f"closest is {closest:g}, beaten in {value:.0f} % of the runs, 95 % interval {low:.0f} to {high:.0f}."
            in WHY["bui-fig5-smse-half"])
    value, low, high = with_500("smse", 0.5, 0.4)
    assert f"it was 0.4, beaten in {value:.0f} %, which with other" in WHY["bui-fig5-smse-half"] and low < 50 < high


def test_the_duel_of_06_with_fewer_evaluations(with_500):
    value, low, high = with_500("smse", 0.6, 0.5)
    assert f"a draw, {value:.0f} % with an interval from {low:.0f} to {high:.0f}." in WHY["bui-fig5-smse-06"]


def test_the_closest_duel_of_vfe(with_500):
    value, low, high = regression_claims.wins("smse", 0.0, 0.8)
    assert (f"VFE wins {value:.0f} % of the runs, 95 % interval {low:.0f} to {high:.0f}. With 500 evaluations it was "
            f"{with_500('smse', 0.0, 0.8).value:.0f} %" in WHY["bui-fig5-smse-vfe"])


@pytest.mark.parametrize("name", ["bui-fig5-smll-ep", "bui-fig5-smll-order"])
def test_the_closest_duel_of_ep(name, with_500):
    value, low, high = regression_claims.wins("smll", 1.0, 0.8)
    assert f"these duels: {value:.0f} % of the runs, 95 % interval {low:.0f} to {high:.0f}." in WHY[name]
    assert round(with_500("smll", 1.0, 0.8).low) == 50


@pytest.fixture
def by_set():
    """The mean losses of each set: loss -> (sets, powers)."""
    return {metric: regression_claims.losses(metric).groupby(level="data").mean() for metric in uci_regression.METRICS}


def test_the_sets_that_favour_vfe_in_the_mean(by_set):
    mean, smse = by_set["smse"], regression_claims.losses("smse")
    assert set(mean.index[mean[0.0] < mean[0.5]]) == {"boston", "energy", "naval", "yacht"}
    won = (smse[0.5] < smse[0.0]).groupby(level="data").agg(["mean", "sum", "size"])
    assert f"by the share of runs won it is {(won['mean'] > 0.5).sum()} of 8" in WHY["bui-fig14-smse"]
    assert f"on naval by {won.loc['naval', 'sum']} runs of {won.loc['naval', 'size']}." in WHY["bui-fig14-smse"]


def test_the_thresholds_that_give_three_sets(by_set):
    mean = by_set["smse"]
    ratio = (mean[1.0] / mean[0.0] - 1).sort_values(ascending=False)
    assert set(ratio.index[:3]) == {"energy", "naval", "yacht"} and set(ratio.index[ratio < 0]) == {"power"}
    assert f"any threshold from {np.ceil(100 * ratio.iloc[3]):.0f} to {np.floor(100 * ratio.iloc[2]):.0f} % gives three" in (
        WHY["bui-fig15-smse"])


def test_the_sets_on_which_ep_is_better_in_log_loss(by_set):
    mean = by_set["smll"]
    assert set(mean.index[mean[1.0] < mean[0.5]]) == {"kin8nm", "naval", "power", "yacht"}


def test_one_row_of_energy_decides(by_set):
    mean, smll = by_set["smll"], regression_claims.losses("smll")
    assert set(mean.index[mean[1.0] >= mean[0.0]]) == {"energy"}
    tests_the_row = ((smll.index.get_level_values("data") == "energy")
                     & smll.index.get_level_values("split").isin([1, 8, 12, 16]))
    without = smll[~tests_the_row].groupby(level="data").mean()
    assert (without[1.0] < without[0.0]).all()


# Classification -------------------------------------------------------------------------------------------------------

def test_the_shares_and_ties_of_half():
    against_vfe, against_ep = (classification_claims.wins("error_rate", 0.5, other).value for other in (0.0, 1.0))
    assert f"wins {against_vfe:.0f} % against VFE and {against_ep:.0f} % against EP" in WHY["bui-fig6-error-half"]
    wide = classification_claims.losses("error_rate")
    ties = {other: 100 * (wide[0.5] == wide[other]).mean() for other in (0.0, 1.0)}
    assert (f"Of the pairs with EP {ties[1.0]:.0f} % are ties, and {ties[0.0]:.0f} % of those with VFE"
            in WHY["bui-fig6-error-half"])


def test_the_share_of_ep_on_breast_cancer():
    untied = dict(iter(classification_claims.by_set("error_rate")))["breast_cancer"]
    won = uci_classification.share(untied, 1.0, 0.0)
    assert f"EP wins {won.value:.0f} % of the runs" in WHY["bui-fig25-error-ep"] and won.low < 50


def test_the_sets_on_which_half_wins_most_runs_against_ep():
    won = {name: (wide[0.5] < wide[1.0]) for name, wide in classification_claims.by_set("nll")}
    assert sum(part.mean() > 0.5 for part in won.values()) == 5
    sonar = won["sonar"].sum(), (~won["sonar"]).sum()
    assert f"better on five of six (on sonar by {sonar[0]} runs to {sonar[1]}), as there" in WHY["bui-fig26-nll"]


def test_the_pairs_of_powers_that_the_error_tells_apart():
    wide = classification_claims.losses("error_rate")
    shares = {pair: uci_classification.share(wide, *pair) for pair in combinations(uci_classification.ALPHAS, 2)}
    apart = [pair for pair, share in shares.items() if not share.low <= 50 <= share.high]
    assert apart == [(0.0, 0.5), (0.05, 0.5), (0.2, 0.5), (0.4, 0.5)] and all(shares[pair].value < 50 for pair in apart)
    assert (f"Of the {len(shares)} pairs four have an interval without 50 %: 0.5 is ahead of 0, 0.05, 0.2 and 0.4."
            in WHY["bui-fig7-error"])


def test_half_is_clearly_better_than_vfe_on_sonar_alone():
    clear = {name: [classification_claims.beats_clearly(part, *pair) for pair in ((0.5, 0.0), (0.0, 0.5))]
             for name, part in classification_claims.by_set("nll")}
    assert [name for name, (half, _) in clear.items() if half] == ["sonar"] and not any(vfe for _, vfe in clear.values())


def test_the_two_powers_that_are_first_in_rank():
    error, nll = (classification_claims.ranks(metric) for metric in ("error_rate", "nll"))
    first, second = (classification_claims.in_order_of_rank(metric)[:2] for metric in ("error_rate", "nll"))
    assert first == [0.5, 0.8] and second == [0.8, 0.5]
    assert (f"In error 0.5 is first, {error[0.8].value - error[0.5].value:.2f} of a rank ahead of 0.8; "
            f"in negative log-likelihood 0.8 is, {nll[0.5].value - nll[0.8].value:.2f} of a rank ahead of 0.5;"
            in WHY["bui-fig7-advice"])


@pytest.mark.parametrize(("name", "metric"), [("bui-fig28-M", "error_rate"), ("bui-fig30-M", "nll")])
def test_the_curves_that_fall_with_M(name, metric):
    runs = classification_claims.results()
    converged = runs[runs["data"] != "sonar"].groupby("M")["converged"].mean()
    fall, rise = curves_with_M(classification_claims.mean_curves(metric).drop("sonar"))
    assert f"{fall} of 40 curves fall and {rise} rise." in WHY[name]
    assert f"{100 * converged[10]:.0f} % converged at M = 10, {100 * converged[100]:.0f} % at 100." in WHY[name]


def curves_with_M(curves):
    """How many of the curves of `mean_curves` fall with M, and how many rise."""
    size = curves.index.get_level_values("M")
    signs = [np.sign(spearmanr(size[curves.index.get_level_values("data") == data], curve).statistic)
             for data, part in curves.groupby(level="data") for _, curve in part.items() if np.ptp(curve) > 0]
    return signs.count(-1), signs.count(1)


def test_the_ends_of_two_intervals():
    apart = classification_claims.farthest_from_even("nll", 0.0, [0.5, 1.0])
    assert f"from {apart.low:.0f} to {apart.high:.0f} points" in WHY["bui-fig6-nll-others"]
    assert f"it begins at {classification_claims.wins('nll', 0.5, 1.0).low:.0f} %" in WHY["bui-fig6-nll-half"]


@pytest.mark.parametrize(("name", "M", "words"), [
    ("bui-fig31", 100, "{:.2f} to {:.2f} times as much in three seeds"),
    ("bui-fig32", 200, "{:.2f} to {:.2f} times as much as it")])
def test_the_time_of_ep_over_that_of_variational_inference(name, M, words):
    seconds = classification_claims.mnist_by_seed(M, f"seconds_{fig31.CHECKPOINTS[-1]}")
    ratio = seconds[1.0] / seconds[0.0]
    assert words.format(ratio.min(), ratio.max()) in WHY[name]
