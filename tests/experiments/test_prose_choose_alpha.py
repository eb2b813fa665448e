"""What the chapter on choosing α says in words, beside the outputs of its cells: computed from the results."""

import numpy as np
import pytest
from prose import prose

from figures.experiments import runner
from figures.experiments.book import choose_alpha_claims as measured
from figures.experiments.book import choose_alpha_unseen

SAID = prose("which-alpha-for-your-data")
WAYS = list(measured.STRATEGIES)
CHOICES = WAYS[len(measured.CONSTANTS):]


@pytest.fixture(scope="module")
def runs():
    return runner.results("choose_alpha")


@pytest.fixture(scope="module")
def summaries(runs):
    """Each loss: what `summary` has, one row per way of choosing."""
    return {metric: measured.summary(runs, metric) for metric in measured.UNITS}


@pytest.mark.parametrize(("way", "words"), [
    ("always 0", "It is still *inconclusive*"),
    ("always 0.75", "is *better* than always one half, for the price of one fit."),
    ("always 0.9", "its interval reaches just beyond zero: *inconclusive*."),
    ("always 1", "**Always 1** is *inconclusive*."),
    ("evidence", "**The evidence** is *inconclusive* for the same reason."),
    ("leave-one-out", "**Leave-one-out** is *inconclusive*, too."),
    ("leave-one-out up to 0.9", "has the smallest regret and is *better* than one half."),
    ("held out", "**A tenth held out** is *inconclusive*."),
    ("cross-validation", "**Cross-validation** is *inconclusive* and costs")])
def test_verdicts_in_log_density(way, words, summaries):
    assert f"*{summaries['log density'].loc[way, 'verdict']}*" in words and words in SAID


def test_verdicts_of_the_controls(summaries):
    table = summaries["log density"].loc[list(measured.CONTROLS)]
    assert set(table["verdict"]) == {"inconclusive"} and "**The controls** are *inconclusive*." in SAID
    best = summaries["log density"]["against half"].min()
    assert all(0.4 < share < 0.75 for share in table["against half"] / best)
    assert "achieve about half the gain of the best ways." in SAID


def test_what_the_advice_for_probabilities_gains(runs):
    mean = measured.by_set(measured.losses(runs, "log density"))
    real = mean.loc[measured.by_set(measured.losses(runs, "squared error")).index]
    gained = real.rsub(real[measured.HALF], axis=0).mean()
    assert len(real) == 12 and f"it gained {gained['always 0.75']:.2f} nats over 0.5" in SAID
    assert 0.005 < gained[measured.CAUTIOUS] - gained["always 0.75"] < 0.015 and "gained a hundredth of a nat more" in SAID


def test_what_leave_one_out_names(runs):
    share = measured.frequencies(runs)
    assert f"It names $\\alpha = 1$ in {share.loc['evidence', 1.0]:.0f} % of the comparisons" in SAID
    assert 0.64 < share.loc["leave-one-out", 1.0] / 100 < 0.69 and "It names 1 in two comparisons of three" in SAID


def test_wins_and_losses_of_always_0(summaries):
    wins, losses = summaries["log density"].loc["always 0", ["wins", "losses"]]
    assert (wins, losses) == (2, 13) and "is better than one half on two sets and worse on thirteen." in SAID


def test_the_two_best_constants_are_near_the_best_way(summaries):
    regret = summaries["log density"]["regret"]
    assert regret.idxmin() == measured.CAUTIOUS and (regret[["always 0.75", "always 0.9"]] - regret.min() < 0.01).all()
    assert "the constants 0.75 and 0.9 are within a hundredth of a nat of it" in SAID


def test_one_set_makes_the_regret_of_always_1(runs):
    mean = measured.by_set(measured.losses(runs, "log density"))
    lost = (mean["always 1"] - mean[measured.HALF]).sort_values()
    assert lost.index[-1] == "iris" and f"from a single set, iris, where it loses {lost.iloc[-1]:.0f} nats." in SAID


def test_what_cross_validation_costs(summaries):
    fits = summaries["log density"].loc["cross-validation", "fits"]
    assert round(fits) == 31 and "costs thirty-one fits." in SAID
    found = choose_alpha_unseen.regrets(runner.results("choose_alpha_unseen"))
    chained = [row["fits"] for row in found.values()]
    assert (round(min(chained)), round(max(chained))) == (9, 14)
    assert "about thirty fits, or nine to fourteen if each power" in SAID


def test_after_correction_nothing_is_significant(runs, summaries):
    assert min(measured.corrected(runs, metric).min() for metric in summaries) > 0.05
    assert "no difference is significant in any of the three losses." in SAID


def test_a_choice_by_the_log_density_is_poor_for_the_mean(summaries):
    table = summaries["squared error"]
    assert set(table.index[table["verdict"] == "worse"]) == {"always 1"}
    times = table.loc[CHOICES, "regret"] / table.loc[measured.HALF, "regret"]
    assert 2 < times.min() and times.max() < 3.2
    assert "all five of these ways have two or three times the regret of one half." in SAID


def test_the_advice_for_a_mean(runs):
    by_error = measured.summary(runs, "squared error", by="point").loc[measured.CAUTIOUS]
    half = measured.summary(runs, "squared error").loc[measured.HALF, "regret"]
    assert f"its error was {by_error['regret']:.1f} % above that of the best power;" in SAID
    assert f"that of always 0.5 was {half:.1f} % above it (in hundredths of the logarithm, see the design)." in SAID
    assert round(measured.summary(runs, "squared error").loc["always 1", "regret"]) == 29
    assert [f"{100 * np.expm1(each / 100):.2g}" for each in (8.5, 29)] == ["8.9", "34"]
    assert "so that a difference of 8.5 % means 8.9 % more, and 29 % means 34 % more" in SAID
    low, high = (f"{by_error[end]:.1f}".replace("-", "−") for end in ("low", "high"))
    assert f"the 95 % interval of the difference, {low} to {high} %, includes zero." in SAID


def test_the_ways_hardly_differ_in_the_error_rate(summaries):
    table = summaries["error rate"].loc[WAYS]
    assert set(table["verdict"].dropna()) == {"inconclusive"} and np.ptp(table["regret"]) < 0.5
    assert "Everything is *inconclusive*: in the mean over the six sets all ways lie within half a percentage point." in SAID


def test_how_long_the_controls_took(summaries):
    fits = summaries["log density"].loc[list(measured.CONTROLS), "fits"]
    assert "they took {:.1f} and {:.1f} times as long as a mean fit".format(*fits) in SAID
