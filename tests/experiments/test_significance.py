"""Tests and intervals against simulation, hand calculation and published tables."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from figures.experiments import significance


def table(losses, splits=20, sizes=(5, 10)):
    """A table of two methods on two data sets whose losses differ by `losses(rng)`."""
    rng = np.random.default_rng(1)
    index = pd.MultiIndex.from_product([("a", "b"), range(splits), sizes], names=["data", "split", "M"])
    return pd.DataFrame({0.0: np.zeros(len(index)), 1.0: losses(rng, len(index))}, index=index)


def test_win_percentage_of_a_clear_case():
    assert significance.win_percentage(table(lambda rng, n: np.ones(n)), 0.0, 1.0) == (100, 100, 100)
    assert significance.win_percentage(table(lambda rng, n: np.zeros(n)), 0.0, 1.0) == (50, 50, 50)


def test_interval_is_that_of_the_binomial_when_splits_are_independent():
    wide = table(lambda rng, n: rng.choice([-1.0, 1.0], n), splits=400, sizes=(5,))
    value, low, high = significance.win_percentage(wide, 0.0, 1.0)
    half = 1.96 * np.sqrt(value * (100 - value) / len(wide))
    assert (high - low) / 2 == pytest.approx(half, rel=0.1)
    assert (high + low) / 2 == pytest.approx(value, abs=0.2 * half)


def test_interval_is_wider_when_all_sizes_of_a_split_agree():
    wide = table(lambda rng, n: np.repeat(rng.choice([-1.0, 1.0], n // 8), 8), splits=100, sizes=range(8))
    value, low, high = significance.win_percentage(wide, 0.0, 1.0)
    naive = 1.96 * np.sqrt(value * (100 - value) / len(wide))
    assert (high - low) / 2 > 2 * naive


def test_interval_of_a_mean_is_the_usual_one():
    values = pd.Series(np.random.default_rng(2).normal(3, 2, size=400))
    value, low, high = significance.of_means([values])
    assert value == values.mean()
    np.testing.assert_allclose([low, high], value + 1.96 * values.sem() * np.array([-1, 1]), atol=0.02)


def test_interval_of_a_ratio_draws_both_means_together():
    """Two columns that are proportional have a ratio without any spread."""
    values = pd.Series(np.random.default_rng(2).uniform(1, 2, size=30))
    assert significance.of_means([3 * values, values], np.divide) == pytest.approx((3, 3, 3))


def test_splits_are_drawn_within_their_data_set():
    """So a difference between sets adds nothing to the interval."""
    index = pd.MultiIndex.from_product([("a", "b"), range(20)], names=["data", "split"])
    values = pd.Series(np.repeat([0.0, 100.0], 20), index=index)
    assert significance.of_means([values]) == (50, 50, 50)


def test_a_function_of_the_rows_gets_each_data_set_apart_and_draws_it_apart():
    """The products of the sets' means are those of sets drawn independently of each other."""
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([("a", "b"), range(200)], names=["data", "split"])
    rows = pd.DataFrame({"x": rng.normal(size=400)}, index)
    a, b = (part.to_numpy() for _, part in rows.groupby(level="data"))
    value, low, high = significance.bootstrap(rows, lambda *sets: np.subtract(*(part.mean(axis=(-2, -1)) for part in sets)))
    assert value == pytest.approx(a.mean() - b.mean())
    assert (high - low) / 2 == pytest.approx(1.96 * np.sqrt((a.var() + b.var()) / 200), rel=0.1)


def test_a_column_of_which_a_set_has_no_value_is_not_in_its_array():
    rows = pd.DataFrame({"x": [1.0, 1.0, 2.0, 2.0], "y": [3.0, 3.0, np.nan, np.nan]},
                        pd.MultiIndex.from_product([("a", "b"), range(2)], names=["data", "split"]))
    assert significance.bootstrap(rows, lambda a, b: a.shape[-1] + 0.0 * b.sum(axis=(-2, -1))) == (2, 2, 2)
    assert significance.bootstrap(rows, lambda a, b: b.shape[-1] + 0.0 * a.sum(axis=(-2, -1))) == (1, 1, 1)


def test_a_number_that_is_nan_for_a_draw_is_refused():
    with pytest.raises(ValueError, match="NaN"):
        significance.bootstrap(pd.DataFrame({"x": [1.0, np.nan]}), lambda rows: rows.mean(axis=(-2, -1)))


def test_student_s_interval_of_a_few_values():
    values = np.array([1.0, 2.0, 4.0])
    value, low, high = significance.student(values)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval()
    assert (value, low, high) == pytest.approx((values.mean(), expected.low, expected.high))


def test_each_data_set_has_one_vote_however_many_splits_and_sizes_it_has():
    index = [("a", split, M) for split in range(20) for M in (5, 10, 20)] + [("b", split, 5) for split in range(5)]
    index = pd.MultiIndex.from_tuples(index, names=["data", "split", "M"])
    wide = pd.DataFrame({0.0: np.ones(65), 1.0: np.where(index.get_level_values("data") == "a", 2.0, 0.5)}, index=index)
    assert significance.win_percentage(wide, 0.0, 1.0) == pytest.approx((50, 50, 50))
    assert significance.average_ranks(wide)[0.0] == pytest.approx((1.5, 1.5, 1.5))


def test_a_loss_that_is_nan_is_no_loss():
    wide = table(lambda rng, n: np.ones(n))
    wide.iloc[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"1 losses in the columns 0\.0 and 1\.0 are NaN"):
        significance.win_percentage(wide, 0.0, 1.0)


def test_ranks_are_averaged_over_the_rows():
    ranks = significance.average_ranks(table(lambda rng, n: np.where(np.arange(n) % 4 == 0, -1.0, 1.0)))
    assert ranks[0.0].value == 1.25 and ranks[1.0].value == 1.75
    assert ranks[0.0].low <= 1.25 <= ranks[0.0].high


def test_twenty_equal_signs_have_the_exact_p():
    rng = np.random.default_rng(0)
    first, shift = rng.normal(size=20), rng.uniform(0.1, 1, size=20)
    assert significance.wilcoxon(first, first + shift) == pytest.approx(2 / 2**20)


def test_losses_that_are_all_equal_have_a_p_of_one():
    first = np.random.default_rng(0).normal(size=20)
    assert significance.wilcoxon(first, first) == 1


def test_corrected_t_test_is_the_usual_one_without_overlap_and_milder_with_it():
    """The statistic :eq:`wr-corrected`, at 90:10 and without overlap."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=20), rng.normal(0.5, 1, size=20)
    usual = stats.ttest_rel(first, second).pvalue
    assert significance.corrected_t_test(first, second, test_fraction=0) == pytest.approx(usual)
    t = stats.ttest_rel(first, second).statistic / np.sqrt(1 + 20 / 9)
    assert significance.corrected_t_test(first, second, test_fraction=0.1) == pytest.approx(2 * stats.t.sf(abs(t), 19))
    assert significance.corrected_t_test(first, first, 0.1) == 1


@pytest.mark.parametrize("splits", [2, 3])
def test_splits_of_the_same_rows_have_the_covariance_of_their_overlap(splits):
    """All splits of five rows with two to test: :eq:`wc-covariance`, :eq:`wc-variance` and :eq:`wc-corrected`.

    The rows' differences are independent with variance 1: the covariance of two reports is the overlap over 2².
    """
    tests = np.array([[n in test for n in range(5)] for test in combinations(range(5), 2)]) / 2
    covariance = tests @ tests.T
    assert np.diag(covariance) == pytest.approx(1 / 2)
    assert covariance.mean() == pytest.approx(1 / 5)
    chosen = [covariance[np.ix_(s, s)] for s in product(range(len(tests)), repeat=splits)]
    of_mean = np.mean([part.mean() for part in chosen])
    estimated = np.mean([np.trace(part) - splits * part.mean() for part in chosen]) / (splits - 1)
    assert of_mean == pytest.approx((1 / 2 - 1 / 5) / splits + 1 / 5)
    assert of_mean / estimated == pytest.approx(1 / splits + 2 / 3)


def test_a_test_that_could_not_be_made_is_none():
    np.testing.assert_allclose(significance.holm([0.01, np.nan, 0.04]), [0.02, np.nan, 0.04])


def test_holms_steps_never_fall_and_end_at_one():
    assert significance.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert significance.holm([0.5, 0.9]) == pytest.approx([1, 1])


@pytest.mark.parametrize(("methods", "q"), [(2, 1.960), (5, 2.728), (8, 3.031), (10, 3.164)])
def test_critical_difference_against_the_published_table(methods, q):
    """Demsar (2006), table 5, two-tailed Nemenyi test at 5 %."""
    expected = q * np.sqrt(methods * (methods + 1) / (6 * 14))
    assert significance.critical_difference(methods, 14) == pytest.approx(expected, abs=2e-3)


def test_intervals_of_ranks_are_those_of_wins():
    """Of two methods without ties the rank is two less the share of wins, :eq:`wr-rank`; the same splits are drawn for both."""
    wide = table(lambda rng, n: rng.normal(0.2, 1, n))
    ranks, wins = significance.average_ranks(wide), significance.win_percentage(wide, 0.0, 1.0)
    assert wins.high - wins.low > 10
    assert ranks[0.0] == pytest.approx((2 - wins.value / 100, 2 - wins.high / 100, 2 - wins.low / 100), abs=1e-12)
    assert ranks[1.0] == pytest.approx((1 + wins.value / 100, 1 + wins.low / 100, 1 + wins.high / 100), abs=1e-12)


def test_what_the_corrected_test_notices_has_a_p_value_of_five_per_cent():
    difference = np.random.default_rng(0).normal(size=20)
    least = significance.noticed(difference, 0.1)
    moved = difference - difference.mean() + least
    assert significance.corrected_t_test(moved, np.zeros(20), 0.1) == pytest.approx(0.05)


def test_a_difference_that_never_varies_is_certain():
    assert significance.corrected_t_test(np.ones(5), np.zeros(5), 0.1) == 0.0


@pytest.mark.parametrize(("won", "count"), [(0, 7), (3, 7), (7, 7), (6, 8)])
def test_the_exact_interval_ends_where_the_tails_do(won, count):
    """At its ends, as many or more (as few or fewer) have a probability of 2.5 %."""
    value, low, high = significance.exact_percentage(won, count)
    assert value == pytest.approx(100 * won / count)
    assert low == 0 if won == 0 else stats.binom.sf(won - 1, count, low / 100) == pytest.approx(0.025)
    assert high == 100 if won == count else stats.binom.cdf(won, count, high / 100) == pytest.approx(0.025)
