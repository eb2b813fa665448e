"""UCI regression with the budgets of the paper: all sizes, 20 splits, and searches that may take 2000 evaluations.

The runs of `uci_regression` stop after 500 evaluations, where few searches have converged, and its three large sets have
five splits. Figures and verdicts read this study; the two together say what the budget does.
"""

from figures.experiments.bui2017 import uci_regression

__all__ = ["FIGURES", "OUTPUTS", "compute", "grid"]

MAX_EVALUATIONS = {"small": 2000, "large": 1000}
SPLITS = range(20)
LARGEST = uci_regression.SIZES[-1]
FEW_SPLITS = range(10)      # for the largest size on the large sets
OUTPUTS, FIGURES = uci_regression.OUTPUTS, uci_regression.FIGURES


def grid():
    """The small sets first, split by split, so that an interrupted grid has whole ones."""
    small, large = uci_regression.SMALL, uci_regression.LARGE
    parts = [(small, SPLITS, uci_regression.SIZES), (large, SPLITS, uci_regression.SIZES[:-1]), (large, FEW_SPLITS, [LARGEST])]
    return [{"data": data, "split": split, "M": M, "alpha": alpha}
            for sets, splits, sizes in parts
            for split in splits for data in sets for M in sizes for alpha in uci_regression.ALPHAS]


def compute(data, split, M, alpha):
    """One run, as in `uci_regression` but for the budget."""
    kind = "small" if data in uci_regression.SMALL else "large"
    return uci_regression.compute(data, split, M, alpha, max_evaluations=MAX_EVALUATIONS[kind])
