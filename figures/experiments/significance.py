"""Is a difference between methods more than chance? Intervals and tests over the splits of the data sets.

Runs on the same split share their training and test rows, so methods are compared in pairs. The random splits of one
data set share most of their rows with each other: the pairs are not independent, and a test that takes them to be so
finds differences too easily. `corrected_t_test` allows for it; intervals and Wilcoxon's test below do not, and describe
how far the numbers would move with other splits of the same data.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

REPETITIONS = 2000
LEVEL = 0.95


class Estimate(NamedTuple):
    """A number and the interval that holds it with 95 % confidence."""

    value: float
    low: float
    high: float


def win_percentage(wide, first, second):
    """In how many per cent of the rows the loss in column `first` is smaller, with a bootstrap interval.

    Parameters
    ----------
    wide : DataFrame with the index levels data, split and M, and one column of losses per method
        Each data set has one vote, however many rows it has, see `one_vote`.

    Returns
    -------
    Estimate, in per cent; a tie counts half

    Raises
    ------
    ValueError
        If a loss is NaN: it would count as lost by both.
    """
    return of_means([percentages_won(wide, first, second)])


def percentages_won(wide, first, second):
    """The same for each (data, split), as `of_means` takes it."""
    if (lacking := int(wide[[first, second]].isna().to_numpy().sum())):
        raise ValueError(f"{lacking} losses in the columns {first} and {second} are NaN; leave these rows out first")
    return 100.0 * one_vote((wide[first] < wide[second]) + 0.5 * (wide[first] == wide[second]))


def exact_percentage(won, count):
    """`won` of `count` independent trials in per cent, with the exact interval of Clopper and Pearson.

    It has a width even where all or none are won, unlike a bootstrap interval. `won` may hold fractions: what is counted on
    one data set or split, such as several pairs of methods, is one trial, of which a part may be won.
    """
    tail = (1 - LEVEL) / 2
    low = stats.beta.ppf(tail, won, count - won + 1) if won > 0 else 0.0
    high = stats.beta.ppf(1 - tail, won + 1, count - won) if won < count else 1.0
    return Estimate(100.0 * won / count, 100.0 * float(low), 100.0 * float(high))


def average_ranks(wide):
    """The average rank of every column over the rows, 1 for the smallest loss, each with a bootstrap interval.

    Parameters
    ----------
    wide : DataFrame as for `win_percentage`

    Returns
    -------
    dict of column -> Estimate
    """
    ranks = wide.rank(axis=1)
    return {column: of_means([one_vote(ranks[column])]) for column in wide}


def one_vote(values):
    """The mean of each split over its M, scaled so that in a plain mean over all splits each data set has one vote.

    Parameters
    ----------
    values : Series with the index levels data, split and M
        All M of a split are taken together, since they share test rows.

    Returns
    -------
    Series with the levels data and split, as `of_means` takes it
    """
    means = values.groupby(level=["data", "split"]).mean()
    splits = means.groupby(level="data").transform("size")
    weights = splits.mean() / splits                   # exactly 1 where all sets have equally many splits
    return means * weights / weights.mean()


def of_means(columns, statistic=lambda mean: mean):
    """A function of the means of some columns, with the interval of `bootstrap`.

    Parameters
    ----------
    columns : list of Series with the same index, as `bootstrap` takes it
    statistic : function of as many means, floats or arrays of them

    Returns
    -------
    Estimate
    """
    def of_rows(*sets):
        return statistic(*np.moveaxis(np.concatenate(sets, axis=-2).mean(axis=-2), -1, 0))

    return bootstrap(pd.concat(columns, axis=1), of_rows)


def bootstrap(table, statistic):
    """A function of the rows of a table, with the interval in which 95 % of its values lie when rows are drawn anew.

    Where that function counts, such as the data sets that a method wins, the interval holds the counts of other splits.

    Parameters
    ----------
    table : DataFrame
        If its index has the levels data and split, the splits of each data set are drawn anew, else the rows.
    statistic : function of an array (..., splits, columns) for each data set, by name, or of one array (..., rows, columns)
        A column of which a set has no value is not in its array.

    Returns
    -------
    Estimate

    Raises
    ------
    ValueError
        If the function is NaN for the table or for one of the draws.
    """
    parts = [part for _, part in table.groupby(level="data")] if "split" in table.index.names else [table]
    rng, sets = np.random.default_rng(0), [part.dropna(axis=1, how="all").to_numpy(dtype=float) for part in parts]
    drawn = [rows[rng.integers(len(rows), size=(REPETITIONS, len(rows)))] for rows in sets]
    value, repeated = statistic(*sets), statistic(*drawn)
    if np.isnan(value) or np.isnan(repeated).any():
        raise ValueError("the number is NaN, or is for some of the draws; leave out rows that lack a value")
    low, high = np.quantile(repeated, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(value), float(low), float(high))


def student(values):
    """The mean of a few independent values, such as those of ten data sets, with Student's interval."""
    mean, half = np.mean(values), stats.t.ppf((1 + LEVEL) / 2, len(values) - 1) * stats.sem(values)
    return Estimate(float(mean), float(mean - half), float(mean + half))


def wilcoxon(first, second):
    """The p-value of Wilcoxon's signed-rank test for paired losses (splits,); 1 where all pairs are equal."""
    difference = np.asarray(first) - np.asarray(second)
    return float(stats.wilcoxon(difference).pvalue) if np.any(difference) else 1.0


def corrected_t_test(first, second, test_fraction):
    """The p-value of the paired t-test whose variance allows for training sets that overlap.

    The variance of the mean difference over n random splits is s² (1/n + n_test/n_train) in place of s²/n.

    Parameters
    ----------
    first, second : (splits,) paired losses
    test_fraction : float, share of the rows that is held out

    Source: nadeau2003; :eq:`wr-corrected`, :eq:`wc-corrected`.
    """
    difference = np.asarray(first) - np.asarray(second)
    n, error = len(difference), corrected_error(difference, test_fraction)
    if error == 0:
        return 1.0 if difference[0] == 0 else 0.0
    return float(2 * stats.t.sf(abs(difference.mean() / error), n - 1))


def corrected_error(difference, test_fraction):
    """The standard error of the mean of paired differences (splits,), as in `corrected_t_test`."""
    return np.sqrt(np.var(difference, ddof=1) * (1 / len(difference) + test_fraction / (1 - test_fraction)))


def noticed(difference, test_fraction):
    """The smallest mean difference that `corrected_t_test` calls significant, if the splits scatter as `difference` does."""
    return float(stats.t.ppf((1 + LEVEL) / 2, len(difference) - 1) * corrected_error(difference, test_fraction))


def holm(p_values):
    """Holm's correction for several tests at once: adjusted p-values, in the given order; a NaN stays one and is no test."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)[:np.isfinite(p).sum()]        # NaN comes last
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return adjusted


def critical_difference(methods, problems):
    """How far two average ranks must lie apart to differ at 5 %: Nemenyi's test, as used by demsar2006.

    `problems` should be independent: the number of data sets, not of splits times M.
    """
    return float(stats.studentized_range.ppf(LEVEL, methods, np.inf) * np.sqrt(methods * (methods + 1) / (12 * problems)))
