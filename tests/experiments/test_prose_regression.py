"""What the chapter on α in regression says in words, beside the outputs of its cells: computed from the results."""

import numpy as np
import pytest
from prose import prose

from figures.experiments import runner
from figures.experiments.bui2017 import refits, regression_claims, reruns, uci_budget, uci_regression, uci_whole
from figures.experiments.bui2017 import regression_drawings as drawings
from pepcore import datasets

SAID = prose("which-alpha-regression")
LITTLE_NOISE = ["energy", "naval", "yacht"]
ROW = 271       # of energy


@pytest.fixture(scope="module")
def runs():
    return runner.results(regression_claims.STUDY)


@pytest.fixture(scope="module")
def regrets(runs):
    return {metric: uci_regression.regret(runs, metric) for metric in uci_regression.METRICS}


@pytest.fixture(scope="module")
def spared(runs):
    """The runs without the splits of energy that test the row."""
    splits = [split for split, (_, test) in enumerate(datasets.splits("energy")) if ROW in test]
    return runs[~((runs["data"] == "energy") & runs["split"].isin(splits))]


def test_how_many_splits_the_large_sets_have_at_the_largest_size(runs):
    largest = runs[runs["data"].isin(uci_regression.LARGE) & (runs["M"] == uci_regression.SIZES[-1])]
    assert set(largest.groupby("data")["split"].nunique()) == {10} == {len(uci_whole.FEW_SPLITS)}
    assert "but 10 splits for $M = 200$ on kin8nm, naval and power" in SAID
    assert "At $M = 200$ kin8nm, naval and power have ten splits; on one of them EP fails on power." in SAID
    on_power = largest[(largest["data"] == "power") & (largest["alpha"] == 1.0)]["smll"]
    assert (on_power > on_power.median() + 0.3).sum() == 1


# Wins, tests and ranks ------------------------------------------------------------------------------------------------

def test_the_histograms_of_wins_and_losses(runs):
    times = {}
    for metric in uci_regression.METRICS:
        margin = uci_regression.margins(runs, metric, 0.5, 0.0)
        drawn = margin[margin.abs() <= margin.abs().quantile(0.9)]
        times[metric] = (drawn > 0).sum() / (drawn <= 0).sum()
    assert {metric: round(value) for metric, value in times.items()} == {"smse": 2, "smll": 10}
    assert "there are twice as many wins as losses in SMSE, and ten times as many in SMLL." in SAID


def test_the_squares_that_are_coloured(runs):
    def share(metric, first, second, sign):
        tests = uci_regression.tests(runs, metric, first, second)
        return ((tests["p"] < 0.05) & (sign * tests["margin"] > 0)).mean()

    assert share("smse", 1.0, 0.0, -1) == 3 / 8 and "three in eight hold blue squares for EP against VFE" in SAID
    assert 0.4 < share("smse", 0.5, 1.0, 1) < 0.5 and "nearly half are red for power 0.5 against EP" in SAID
    assert 0.38 < share("smll", 1.0, 0.0, 1) < 0.42 and "EP against VFE red in two fifths" in SAID
    decided = uci_regression.tests(runs, "smse", 0.5, 0.0).query("holm < 0.05")
    assert (len(decided), set(decided.index.get_level_values("data"))) == (10, {"kin8nm", "naval", "power"})
    assert (decided["margin"] > 0).all()
    assert "tells VFE and 0.5 apart in ten of 48 cases, all on kin8nm, naval and power; there 0.5 is better." in SAID
    assert share("smll", 0.5, 0.0, 1) > 0.5 and "power 0.5 against VFE is red in most places" in SAID


def test_how_many_sets_would_tell_two_powers_apart(runs):
    apart = {metric: drawings.ranks_of_sets(runs, metric) for metric in uci_regression.METRICS}
    assert (0.5, 0.6) not in drawings.told_apart(apart["smll"], 64) and (0.5, 0.6) in drawings.told_apart(apart["smll"], 128)
    assert (0.5, 0.6) not in drawings.told_apart(apart["smse"], 256)
    assert "more than 64 sets to tell 0.5 from 0.6 in log loss, and more than 256 in squared error." in SAID
    better = {metric: regression_claims.losses(metric).groupby(level="data").mean() for metric in uci_regression.METRICS}
    won = {metric: (mean[0.6] < mean[0.5]).sum() for metric, mean in better.items()}
    assert won == {"smse": 5, "smll": 8}
    assert "in log loss 0.6 has the smaller mean on all eight" in SAID and "in squared error on five." in SAID


def test_how_often_ep_is_first_and_last():
    rank = regression_claims.losses("smll").rank(axis=1)[1.0]
    first, last = rank == 1, rank == len(uci_regression.ALPHAS)
    assert 0.45 < first.mean() < 0.55 and 0.35 < last.sum() / (~first).sum() < 0.45
    assert "EP is first in half of the comparisons. In about four of ten of the others it is last" in SAID


# Means, and one row ---------------------------------------------------------------------------------------------------

def test_where_the_line_of_ep_rises_with_M(runs):
    mean = runs[runs["alpha"] == 1.0].groupby(["data", "M"])["smll"].mean().unstack()
    rise = mean.sub(mean.cummin(axis=1)).max(axis=1)
    assert rise["energy"] > 0.3 and set(rise.index[rise > 0.01]) == {"energy", "boston", "concrete", "wine_red"}
    assert rise.drop("energy").max() < 0.1
    assert "the red line rises far on energy and a little on boston, concrete and wine_red." in SAID


def test_most_of_the_rise_on_energy_comes_from_one_row(runs, spared):
    def rise(rows):
        mean = rows[(rows["data"] == "energy") & (rows["alpha"] == 1.0)].groupby("M")["smll"].mean()
        return mean[200] - mean[50]

    assert 0 < rise(spared) < rise(runs) / 2
    assert "Most of the rise of the red line on energy comes from a single test row" in SAID


def test_the_disasters_are_eps_and_most_of_one_row(runs, spared):
    place = {name: uci_regression.table(rows, "smll").mean().rank()[1.0] for name, rows in (("all", runs), ("spared", spared))}
    disasters = runs[runs["smll"] > 0]
    assert set(disasters["alpha"]) == {1.0} and (disasters["data"] == "energy").sum() == 16
    assert place == {"all": 5, "spared": 2}
    for said in ("By the mean EP is fifth of eight", "sixteen of them are on energy", "Without them EP is second."):
        assert said in SAID


def test_how_many_runs_decide_the_mean_of_ep():
    wide = regression_claims.losses("smll")
    half, ep = (np.sort(wide[alpha]) for alpha in (0.5, 1.0))
    without = next(k for k in range(len(wide)) if ep[:len(ep) - k].mean() < half[:len(half) - k].mean())
    assert (without, round(len(wide), -2)) == (9, 900)
    assert "Nine runs of nine hundred decide between the two, and all nine of EP's come from one row" in SAID


def test_near_ties():
    wide, factor = regression_claims.losses("smse"), 1 + refits.TOLERANCE[refits.LONG]["smse"]
    ratio = wide[0.0] / wide[0.5]
    won, lost = (ratio > factor).mean(), (ratio < 1 / factor).mean()
    assert 0.38 < 1 - won - lost < 0.42 and 1.4 < won / lost < 1.5
    assert "Two in five comparisons are ties by this measure." in SAID
    assert "Of the others 0.5 wins nearly three for each two that it loses." in SAID


# Budgets, and the advice ----------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def winners(runs):
    """For each loss and pair of powers: who wins with the smaller and the larger budgets, on the small sets and the large."""
    small = runs[runs["data"].isin(uci_regression.SMALL)]
    first, longer = (runner.results(name) for name in ("uci_regression", "uci_budget"))
    budgets = {"small": {500: first[first["data"].isin(uci_regression.SMALL)], 2000: small},
               "large": {1000: runs, 2000: uci_budget.on_the_way(longer), 6000: longer}}
    return {(kind, metric, pair): uci_budget.winners(tables, metric, *pair) for kind, tables in budgets.items()
            for metric in uci_regression.METRICS for pair in uci_regression.PAIRS}


def test_how_many_winners_a_larger_budget_changes(winners):
    def changed(kind, before, after):
        return {key[1:]: (table[before] != table[after]).sum() for key, table in winners.items() if key[0] == kind}

    size = {kind: {len(table) for key, table in winners.items() if key[0] == kind} for kind in ("small", "large")}
    assert size == {"small": {600}, "large": {33}}
    of_small = np.array(list(changed("small", 500, 2000).values())) / 600
    assert 0.04 < of_small.min() and 0.08 < of_small.mean() < 0.12
    assert "About one winner in ten changes, in both directions" in SAID
    at_first, then = changed("large", 1000, 2000), changed("large", 2000, 6000)
    assert round(6 * 33 / sum(at_first.values())) == 15 and at_first["smse", (0.5, 1.0)] == 6
    assert "one winner in fifteen changes, but six of 33 between $\\alpha = 0.5$ and EP in squared error." in SAID
    assert max(then.values()) == 3 and not any(count for (metric, _), count in then.items() if metric == "smll")
    assert "After that at most three of 33 change for a pair, and none in log loss." in SAID


def test_how_many_of_the_large_searches_converge_with_6000_evaluations():
    longer = runner.results("uci_budget")
    assert uci_budget.MAX_EVALUATIONS == 6000 and 0.57 < longer["converged"].mean() < 0.63
    assert "On the large sets three searches in five converge with 6000." in SAID
    naval = longer[longer["data"] == "naval"]
    larger = naval[naval["M"] >= 20]
    assert not larger["converged"].any() and naval.loc[naval["M"] < 20, "converged"].mean() > 0.5
    assert ((larger["log_evidence"] - larger["log_evidence_2000"]) > 200).mean() > 0.5
    assert "On naval no search with 20 or more pseudo-inputs converges, and most gain hundreds of nats after 2000." in SAID


def test_no_share_of_the_small_sets_moves_by_more_than_two_points(winners):
    for key, table in winners.items():
        if key[0] == "small":
            before, after = 100 * table.mean()
            assert abs(after - before) < 2.05, key
    assert "no share moves by more than two percentage points." in SAID


def test_who_has_almost_no_noise(runs):
    noise = runs[(runs["alpha"] == 0.0) & (runs["M"] >= 20)].groupby(["data", "M"])["noise"].median().unstack()
    assert set(noise.index[(noise < 0.01).all(axis=1)]) == set(LITTLE_NOISE)
    assert (noise.drop(LITTLE_NOISE) > 0.01).all(axis=None)
    assert "(VFE with 20 or more pseudo-inputs learns less than 1 % of the variance)" in SAID


def test_what_the_advice_for_a_mean_costs(regrets):
    quiet = regrets["smse"].index.isin(LITTLE_NOISE, level="data")
    with_noise, without = regrets["smse"][~quiet].mean(), regrets["smse"][quiet].mean()
    middle = [alpha for alpha in uci_regression.ALPHAS if 0.2 <= alpha <= 0.8]
    assert [round(value) for value in (with_noise[middle].min(), with_noise[middle].max())] == [2, 3]
    assert without.idxmin() == 0.2 and without[0.5] > 100 / 3 and (without[[0.6, 0.8, 1.0]] > without[0.5]).all()
    assert "take 0.2; there 0.5 adds more than a third to the best error, and larger powers add more." in SAID
    larger = regrets["smse"][0.5][regrets["smse"].index.get_level_values("M") >= 50].unstack()
    assert larger.loc[["energy", "naval"]].max(axis=None) < 2 and larger.loc["yacht"].min() > 30
    assert "(With 50 or more pseudo-inputs only on yacht.)" in SAID
    assert "all powers from 0.2 to 0.8 cost 2 to 3 %." in SAID


def test_the_advice_for_probabilities_is_best_by_every_summary(runs, spared):
    for rows in (runs, spared):
        wide = uci_regression.table(rows, "smll")
        assert wide.rank(axis=1).mean().idxmin() == wide.mean().idxmin() == 0.8
        assert uci_regression.regret(rows, "smll").mean().idxmin() == 0.8
    assert "here by mean and by regret as well, with row 271 or without it." in SAID


def test_the_powers_of_least_regret_by_size(regrets):
    mean = {metric: table.groupby(level="M").mean() for metric, table in regrets.items()}
    best = {metric: table.idxmin(axis=1) for metric, table in mean.items()}
    assert (best["smse"] == 0.2).sum() > 3 and (best["smll"] == 0.8).sum() > 3
    ends = [M for table in best.values() for M in table.index[table.isin([0.0, 1.0])]]
    assert set(ends) == {10} and "An end has the smallest mean at $M = 10$ only, and by little" in SAID
    assert regrets["smse"].max().idxmin() == 0.0 and "the power whose *worst* squared error costs least is VFE." in SAID


def test_which_searches_on_generated_data_had_ended():
    found = runner.results("bui_fig3").query("method == 'sparse'").groupby("M")["converged"].agg(["mean", "size"])
    assert (found.loc[[100, 200], "mean"] == 0).all() and (found.loc[[100, 200], "size"] == 240).all()
    assert "smaller powers are ahead when the 500 evaluations end; no search has converged by then." in SAID
    assert "time (no search with $M$ = 100 or 200 converged)" in SAID


def test_how_many_runs_keep_to_the_tolerance_with_another_processors_instructions():
    measured, kept = runner.results("reruns"), {}
    for study, budget in reruns.BUDGETS.items():
        part = measured[measured["study"] == study]
        within = [part[f"change_of_{metric}"] <= limit for metric, limit in refits.TOLERANCE[budget].items()]
        kept[study] = (int(np.logical_and(*within).sum()), len(part))
    assert kept == {"uci_whole": (56, 60), "bui_fig3": (40, 40), "uci_regression": (51, 60)}
    for said in ("do (56 of 60)", "generated data (40 of 40)", "do not (51 of 60)"):
        assert said in SAID
