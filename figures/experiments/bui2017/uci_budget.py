"""Would a longer climb change the picture? Some runs of `uci_regression` with the paper's 2000 evaluations in place of 500."""

import pandas as pd

from figures.experiments.bui2017 import uci_regression

__all__ = ["OUTPUTS", "compute", "grid", "winners"]

MAX_EVALUATIONS = 2000
SIZE = 20
ALPHAS = (0.0, 0.5, 1.0)
SPLITS = range(8)
OUTPUTS = uci_regression.OUTPUTS


def grid():
    """The small data sets at one size and three powers, split by split."""
    return [{"data": data, "split": split, "M": SIZE, "alpha": alpha}
            for split in SPLITS for data in uci_regression.SMALL for alpha in ALPHAS]


def compute(data, split, M, alpha):
    """One run, as in `uci_regression` but for the budget."""
    return uci_regression.compute(data, split, M, alpha, max_evaluations=MAX_EVALUATIONS)


def winners(long, short, metric, first, second):
    """Whether `first` wins with 500 evaluations and whether it does with 2000, in the runs that both tables hold.

    Parameters
    ----------
    long, short : DataFrame, the results of this study and of `uci_regression`

    Returns
    -------
    DataFrame of bool with the columns 500 and 2000, one row per (data, split, M)
    """
    won = {}
    for budget, results in ((uci_regression.MAX_EVALUATIONS, short), (MAX_EVALUATIONS, long)):
        wide = uci_regression.table(results[results["alpha"].isin(ALPHAS)], metric)
        won[budget] = wide[first] < wide[second]
    return pd.concat(won, axis=1, join="inner")
