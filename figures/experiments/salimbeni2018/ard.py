"""What does a lengthscale for each input change? The runs of salimbeni2018's tables once more, on five regression sets.

All else is as in `salimbeni_tables`, the two runs in weights on the first set included.
"""

from figures.experiments.salimbeni2018 import tables
from figures.experiments.salimbeni2018.problems import problem

SETS = ("kin40k", "elevators", "pol", "protein", "keggdirected")
OUTPUTS = tables.OUTPUTS


def grid():
    """All methods on all sets, set by set."""
    first = [{"data": SETS[0], "method": method, "split": 0} for method in tables.IN_WEIGHTS]
    return first + [{"data": data, "method": method, "split": 0} for data in SETS for method in tables.METHODS]


def compute(data, method, split, steps=tables.STEPS):
    """One run; the outputs are those of `salimbeni_tables`."""
    name, M = (tables.METHODS | tables.IN_WEIGHTS)[method]
    return tables.run(problem(data, split, ard=True), name, M, split, steps)
