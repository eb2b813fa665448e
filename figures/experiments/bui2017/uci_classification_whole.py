"""UCI classification with at most 1000 evaluations: does an intermediate power predict best (bui2017 figures 6 to 30)?

The runs of `uci_classification` stop after 200, where few searches have converged. Figures and verdicts read this study; the
two together say what the budget does.
"""

from figures.experiments.bui2017 import uci_classification
from figures.experiments.bui2017.uci_classification import FIGURES, OUTPUTS, grid

__all__ = ["FIGURES", "OUTPUTS", "compute", "grid"]

MAX_EVALUATIONS = 1000


def compute(data, split, M, alpha):
    """One run, as in `uci_classification` but for the budget."""
    return uci_classification.compute(data, split, M, alpha, max_evaluations=MAX_EVALUATIONS)
