"""What the claims on real data count on a table of losses, each number with its interval for other splits.

`wide` has the index levels data, split and M, and one column of losses for each power.
"""

import numpy as np
from scipy.stats import rankdata

from figures.experiments import significance

DIGITS = 12  # of a mean: equal losses must stay equal, and the last bits depend on the order of a sum


def sets_won(wide, first, second, by=0.0):
    """On how many data sets `first` has the smaller loss in the mean over splits and M.

    The larger loss must exceed the smaller one by more than the fraction `by` of it.
    """
    def count(*sets):
        means = [[np.nanmean(losses, axis=(-2, -1)).round(DIGITS) for losses in np.split(rows, 2, axis=-1)] for rows in sets]
        return sum(one * (1 + by) < other for one, other in means)

    return significance.bootstrap(wide[[first, second]].unstack("M"), count)


def curves_that_fall_with_M(wide):
    """Share of the curves of mean loss against M, one per data set and power, that fall (negative rank correlation)."""
    def percentage(*sets):
        falling = [_fall(curves) for curves in _mean_curves(sets, wide.shape[1])]
        return 100 * np.mean(falling, axis=(0, -1))

    return significance.bootstrap(wide.unstack("M"), percentage)


def sets_where_powers_come_closer(wide):
    """Number of sets on which the mean losses of the powers span less at the largest M than at the smallest."""
    def count(*sets):
        spreads = [np.ptp(curves, axis=-2) for curves in _mean_curves(sets, wide.shape[1])]
        return sum(spread[..., -1] < spread[..., 0] for spread in spreads)

    return significance.bootstrap(wide.unstack("M"), count)


def _mean_curves(sets, powers):
    """For each set the mean over its splits: (..., powers, sizes); NaN for a size that none of them has."""
    with np.errstate(invalid="ignore"):
        means = [(np.nansum(rows, axis=-2) / np.isfinite(rows).sum(axis=-2)).round(DIGITS) for rows in sets]
    return [mean.reshape(*mean.shape[:-1], powers, -1) for mean in means]


def _fall(curves):
    """Whether the rank correlation of curves (..., sizes) with their place is negative; a constant one does not fall.

    A size is left out where a curve is NaN: no split that was drawn may have it.
    """
    ranks = rankdata(curves, axis=-1, nan_policy="omit")
    centred = ranks - np.nanmean(ranks, axis=-1, keepdims=True)
    return np.nansum(centred * np.arange(curves.shape[-1]), axis=-1) < 0


def rank_columns(wide):
    """The mean over M of the powers' ranks in each split, each set with one vote: a list of columns."""
    ranks = wide.rank(axis=1)
    return [significance.one_vote(ranks[alpha]) for alpha in ranks]


def best_rank(wide):
    """The power with the best average rank."""
    return significance.of_means(rank_columns(wide), lambda *means: at_smallest(wide.columns, means))


def losses_whose_best_power(holds, tables):
    """In how many of the losses a statement about the power with the best average rank holds.

    Parameters
    ----------
    holds : function of the name of a loss and the power with the best rank there, a float or an array, that returns bool
    tables : dict of loss -> wide
    """
    powers = next(iter(tables.values())).columns

    def count(*means):
        best = [at_smallest(powers, part) for part in np.split(np.array(means), len(tables))]
        return sum(np.asarray(holds(name, power), dtype=int) for name, power in zip(tables, best))

    return significance.of_means([column for wide in tables.values() for column in rank_columns(wide)], count)


def among_places(wide, powers, places):
    """How many of some powers are at these places of the order of average ranks, such as slice(3) for the three best."""
    chosen = [wide.columns.get_loc(power) for power in powers]

    def count(*means):
        return np.isin(np.argsort(means, axis=0, kind="stable")[places], chosen).sum(axis=0)

    return significance.of_means(rank_columns(wide), count)


def at_smallest(names, values):
    """The name of the smallest of as many values, floats or arrays."""
    return np.asarray(names)[np.argmin(values, axis=0)]
