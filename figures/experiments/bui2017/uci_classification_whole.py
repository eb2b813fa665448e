"""UCI classification with a budget that lets most searches end: the runs of `uci_classification` with 1000 evaluations.

Those of `uci_classification` stop after 200, where few searches have converged. Once this grid is whole it takes that
study's place, and the two together say what the budget does; until then no figure and no verdict reads it.
"""

from figures.experiments.bui2017 import uci_classification
from figures.experiments.bui2017.uci_classification import OUTPUTS, grid, prepare

__all__ = ["OUTPUTS", "UNFINISHED", "compute", "grid", "prepare"]

MAX_EVALUATIONS = 1000
UNFINISHED = "the whole grid takes some eight hours of one processor, and is computed split by split"


def compute(data, split, M, alpha):
    """One run, as in `uci_classification` but for the budget."""
    return uci_classification.compute(data, split, M, alpha, max_evaluations=MAX_EVALUATIONS)
