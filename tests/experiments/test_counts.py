"""What claims count on tables of losses, by tables whose counts are plain, and the intervals of these counts."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from figures.experiments.bui2017 import counts


def losses(value, splits=range(4), sizes=(5, 10, 20), sets=("a", "b")):
    """Of powers 0, 0.5 and 1, each `value(data, split, M, alpha)`."""
    index = pd.MultiIndex.from_product([sets, splits, sizes], names=["data", "split", "M"])
    return pd.DataFrame({alpha: [value(*key, alpha) for key in index] for alpha in (0.0, 0.5, 1.0)}, index)


def test_a_set_is_won_by_the_smaller_mean_over_splits_and_sizes():
    wide = losses(lambda data, split, M, alpha: alpha if data == "a" else 2 * (M == 5) - alpha)
    assert counts.sets_won(wide, 0.0, 1.0) == (1, 1, 1)
    assert counts.sets_won(wide, 1.0, 0.0) == (1, 1, 1)
    assert counts.sets_won(wide, 0.0, 0.0) == (0, 0, 0)


def test_a_set_can_be_asked_to_be_won_by_a_fraction():
    wide = losses(lambda data, split, M, alpha: 1.0 + 0.2 * alpha)
    assert counts.sets_won(wide, 0.0, 1.0, by=0.19).value == 2
    assert counts.sets_won(wide, 0.0, 1.0, by=0.21).value == 0


def test_a_set_that_one_split_decides_is_won_in_some_draws_only():
    wide = losses(lambda data, split, M, alpha: -alpha if data == "a" else alpha * (1.0 if split else -2.0))
    assert counts.sets_won(wide, 1.0, 0.0) == (1, 1, 2)


def test_a_size_that_some_splits_lack_counts_where_it_is():
    wide = losses(lambda data, split, M, alpha: alpha * (1.0 if M < 20 else -9.0))
    assert counts.sets_won(wide.drop(index=[("b", 3, 20)]), 1.0, 0.0).value == 2
    assert counts.sets_won(wide.drop(index=20, level="M"), 1.0, 0.0).value == 0
    assert counts.sets_won(wide.drop(index=[("b", split, 20) for split in range(4)]), 1.0, 0.0).value == 1


def test_curves_fall_if_their_rank_correlation_with_the_size_is_negative():
    rng = np.random.default_rng(0)
    noise = {key: rng.normal() for key in np.ndindex(2, 3, 5)}
    wide = losses(lambda data, split, M, alpha: noise["ab".index(data), int(2 * alpha), M], splits=range(1), sizes=range(5))
    signs = [spearmanr(range(5), [noise[data, power, M] for M in range(5)]).statistic < 0
             for data in range(2) for power in range(3)]
    assert 0 < sum(signs) < 6
    assert counts.curves_that_fall_with_M(wide) == pytest.approx([100 * np.mean(signs)] * 3)


def test_a_constant_curve_does_not_fall_whatever_rounding_does_to_its_means():
    wide = losses(lambda data, split, M, alpha: 0.1 * split)
    assert counts.curves_that_fall_with_M(wide) == (0, 0, 0)


def test_powers_come_closer_where_their_means_span_less_at_the_largest_size():
    wide = losses(lambda data, split, M, alpha: alpha / M if data == "a" else alpha)
    assert counts.sets_where_powers_come_closer(wide) == (1, 1, 1)


def test_places_in_the_order_of_ranks():
    wide = losses(lambda data, split, M, alpha: {0.0: 2.0, 0.5: 1.0, 1.0: 3.0}[alpha])
    assert counts.best_rank(wide) == (0.5, 0.5, 0.5)
    assert counts.among_places(wide, [0.0, 1.0], slice(2)) == (1, 1, 1)
    assert counts.among_places(wide, [0.0, 1.0], slice(-2, None)) == (2, 2, 2)


def test_a_statement_about_the_best_power_is_asked_of_each_loss():
    tables = {name: losses(lambda data, split, M, alpha, best=best: abs(alpha - best))
              for name, best in (("first", 0.5), ("second", 1.0))}
    assert counts.losses_whose_best_power(lambda name, best: best == 0.5, tables) == (1, 1, 1)
    expected = {"first": 0.5, "second": 1.0}
    assert counts.losses_whose_best_power(lambda name, best: best == expected[name], tables) == (2, 2, 2)


def test_a_best_power_that_depends_on_the_split_widens_the_interval():
    tables = {"first": losses(lambda data, split, M, alpha: alpha if split else -alpha)}
    assert counts.losses_whose_best_power(lambda _, best: best == 0.0, tables) == (1, 0, 1)
