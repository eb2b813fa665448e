"""Would a longer climb change the picture on the large sets? Some runs of `uci_whole` with 2000 evaluations in place of 1000.

The small sets have the paper's 2000 there, and `uci_regression` has their runs with 500.
"""

import pandas as pd

from figures.experiments.bui2017 import uci_regression

__all__ = ["OUTPUTS", "compute", "grid", "winners"]

MAX_EVALUATIONS = 2000
ALPHAS = (0.0, 0.5, 1.0)
SPLITS = range(2)
FEW_SPLITS = range(1)       # for the largest size, where a run takes minutes
OUTPUTS = uci_regression.OUTPUTS


def grid():
    """The large data sets at every size and three powers."""
    *sizes, largest = uci_regression.SIZES
    parts = [(SPLITS, sizes), (FEW_SPLITS, [largest])]
    return [{"data": data, "split": split, "M": M, "alpha": alpha}
            for splits, sizes in parts for split in splits for M in sizes for data in uci_regression.LARGE for alpha in ALPHAS]


def compute(data, split, M, alpha):
    """One run, as in `uci_regression` but for the budget."""
    return uci_regression.compute(data, split, M, alpha, max_evaluations=MAX_EVALUATIONS)


def winners(budgets, metric, first, second):
    """Whether `first` wins, with each of the budgets, in the comparisons that all the tables hold.

    Parameters
    ----------
    budgets : dict of evaluations -> DataFrame, the results of a study

    Returns
    -------
    DataFrame of bool with one column for each budget, one row per (data, split, M)
    """
    wide = {budget: uci_regression.table(results, metric) for budget, results in budgets.items()}
    return pd.concat({budget: losses[first] < losses[second] for budget, losses in wide.items()}, axis=1, join="inner")
