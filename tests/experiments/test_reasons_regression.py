"""The numbers that `why` gives in the claims of bui2017 on regression, beside those that the ledger measures."""

import re

import numpy as np
import pytest

from figures.experiments import claims, runner, significance
from figures.experiments.bui2017 import counts, fig3, gap, regression_claims, uci_regression
from pepcore import datasets

LEDGER = claims.ledger()
WHY = {claim.id: claim.why for claim in LEDGER}
INTERVAL = {claim.id: claim.interval for claim in LEDGER}
POOLED = [claim for claim in LEDGER
          if claim.measure.endswith("regression_claims.wins") and "pool of our runs, our first rule," in claim.why]


# The toy data ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("alpha", [0.8, 1.0])
def test_what_is_left_of_the_overestimation_at_the_end(alpha):
    mean = regression_claims.toy_overestimation(alpha).mean()
    left = 100 * mean.iloc[-1] / mean[list(regression_claims.INTERMEDIATE)].max()
    assert f"over all 30 sets, which is what the paper shows, {left:.0f} % is left" in WHY[f"bui-fig3-end-{alpha:g}"]


@pytest.mark.parametrize("name", ["bui-fig3-smse", "bui-fig3-smll"])
def test_how_many_searches_never_leave_their_start(name):
    toy = runner.results("bui_fig3").query("method == 'sparse' and M == @fig3.TRAIN")
    exact = runner.results("bui_fig3").query("method == 'full'").set_index("data")["nlml"]
    stayed = (toy["nlml"] - toy["data"].map(exact)).abs() <= regression_claims.MOVED
    by_power = stayed.groupby(toy["alpha"]).agg(["sum", "size"])
    assert set(by_power["size"]) == {30} and by_power["sum"].min() == 25
    assert "At M = N all eight agree, because at least 25 of the 30 searches of each power never leave their start" in WHY[name]


@pytest.mark.parametrize("alpha", [0.8, 1.0])
def test_how_many_searches_of_a_power_leave_their_start(alpha):
    over = regression_claims.toy_overestimation(alpha)[fig3.TRAIN].abs() > regression_claims.MOVED
    assert (over.sum(), len(over)) == (5, 30)
    assert "25 of the 30 searches at M = N never leave their start" in WHY[f"bui-fig3-end-{alpha:g}"]


def test_the_gap_of_the_full_gp_may_be_nought_point_two():
    low, high = INTERVAL["bui-sec5-smll"]
    assert low < 0.2 < high and WHY["bui-sec5-smll"].startswith("The interval contains 0.2,")


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
def in_first_runs():
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


def test_how_often_ep_is_first_and_last_in_log_loss():
    rank = regression_claims.losses("smll").rank(axis=1)[1.0]
    assert 0.45 < (rank == 1).mean() < 0.55 and 0.17 < (rank == 8).mean() < 0.23
    assert "EP takes the first place of all eight powers in about half of the comparisons and the last in about one in five." in (
        WHY["bui-fig4-smll-ep-vfe"])


def test_the_powers_that_may_rank_first():
    assert INTERVAL["bui-fig4b-smse-best"] == [0.5, 0.6]
    assert "The interval over splits goes from 0.5 to 0.6" in WHY["bui-fig4b-smse-best"]


def test_half_is_second_in_rank_by_less_than_a_tenth():
    rank = {alpha: estimate.value for alpha, estimate in significance.average_ranks(regression_claims.losses("smse")).items()}
    assert sorted(rank, key=rank.get)[:2] == [0.6, 0.5] and rank[0.5] - rank[0.6] < 0.1
    assert regression_claims.losses("smse").rank(axis=1).mean().idxmin() == 0.6         # the pool


def test_half_had_the_best_rank_in_the_first_runs():
    assert counts.best_rank(uci_regression.table(runner.results("uci_regression"), "smse")).value == 0.5


def test_the_closest_duel_of_half(in_first_runs):
    others = {other: regression_claims.wins("smse", 0.5, other) for other in uci_regression.ALPHAS if other not in (0.5, 0.6)}
    closest = min(others, key=lambda other: others[other].value)
    value, low, high = others[closest]
    assert (f"closest is {closest:g}, beaten in {value:.0f} % of the runs, 95 % interval {low:.0f} to {high:.0f}."
            in WHY["bui-fig5-smse-half"])
    value, low, high = in_first_runs("smse", 0.5, 0.4)
    assert f"it was 0.4, beaten in {value:.0f} %, which with other" in WHY["bui-fig5-smse-half"] and low < 50 < high


def test_the_duel_of_06_in_the_first_runs(in_first_runs):
    value, low, high = in_first_runs("smse", 0.6, 0.5)
    assert f"a draw, {value:.0f} % with an interval from {low:.0f} to {high:.0f}." in WHY["bui-fig5-smse-06"]


def test_the_closest_duel_of_vfe(in_first_runs):
    value, low, high = regression_claims.wins("smse", 0.0, 0.8)
    before = in_first_runs("smse", 0.0, 0.8).value
    assert (f"VFE wins {value:.0f} % of the runs, 95 % interval {low:.0f} to {high:.0f}. In our first runs, fewer and shorter, "
            f"it was {before:.0f} %") in WHY["bui-fig5-smse-vfe"]


@pytest.mark.parametrize("name", ["bui-fig5-smll-ep", "bui-fig5-smll-order"])
def test_the_closest_duel_of_ep(name, in_first_runs):
    value, low, high = regression_claims.wins("smll", 1.0, 0.8)
    assert f"these duels: {value:.0f} % of the runs, 95 % interval {low:.0f} to {high:.0f}." in WHY[name]
    assert round(in_first_runs("smll", 1.0, 0.8).low) == 50


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


def test_on_how_many_sets_ep_may_be_better_in_log_loss():
    assert INTERVAL["bui-fig16-smll"] == [3, 6] and WHY["bui-fig16-smll"].startswith("On three to six sets with other splits")


def test_one_row_of_energy_decides(by_set):
    mean, smll = by_set["smll"], regression_claims.losses("smll")
    assert set(mean.index[mean[1.0] >= mean[0.0]]) == {"energy"}
    splits = [split for split, (_, test) in enumerate(datasets.splits("energy")) if 271 in test]
    assert len(splits) == 4 and "Without row 271 of energy, which four of the splits test," in WHY["bui-fig15-smll"]
    tests_the_row = (smll.index.get_level_values("data") == "energy") & smll.index.get_level_values("split").isin(splits)
    without = smll[~tests_the_row].groupby(level="data").mean()
    assert (without[1.0] < without[0.0]).all()
