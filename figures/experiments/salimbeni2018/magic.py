"""Why are the errors on magic a fifth lower in salimbeni2018? Four guesses, each tried on the runs of our tables.

* numbered: the paper's tables 5 and 6 count one input more than each set has, and the rows of magic are sorted by class. Was the
  row's number among the inputs?
* each its own: a lengthscale for each input.
* twice as long: 20 000 steps, as in the paper.
* easy split: other rows for the test; of eight splits the one on which a support vector machine errs least, see `magic_splits`.

A guess holds if it brings our error from 13 % to the paper's 10.5, or most of the way; that was written
before the runs.
"""

from figures.experiments.salimbeni2018 import tables
from figures.experiments.salimbeni2018.problems import problem

DATA, SPLIT, EASY = "magic", 0, 3
RUNS = (("numbered", "CoupledNat_400"), ("numbered", "OrthNat"), ("each its own", "CoupledNat_400"),
        ("twice as long", "CoupledNat_400"), ("easy split", "CoupledNat_400"))
READS = (DATA,)
OUTPUTS = tables.OUTPUTS


def grid():
    return [{"guess": guess, "method": method} for guess, method in RUNS]


def error_rates(row):
    return tables.error_rates({"data": DATA})


def compute(guess, method, steps=tables.STEPS):
    """One run, as `tables.compute`; `steps` are those before any doubling."""
    task = problem(DATA, EASY if guess == "easy split" else SPLIT, ard=guess == "each its own", numbered=guess == "numbered")
    steps *= 2 if guess == "twice as long" else 1
    return tables.run(task, *tables.METHODS[method], SPLIT, steps)
