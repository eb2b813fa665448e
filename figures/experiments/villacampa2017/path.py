"""Where does a run of `vil_fig1` end if it has another start, or inputs that differ by one part in 10¹²?

Each of its runs has two twins. How far the first ends from its original says how much of the difference between two updates
is luck in the choice of the first pseudo-inputs; the second, how much is rounding.
"""

import numpy as np

from figures.experiments.villacampa2017 import fig1

PERTURBATION = 1e-12
OTHER = 100                                                     # added to the seed of the start
TWINS = ("rounding", "start")
READS = fig1.READS
OUTPUTS = ("final_evidence", "nll")


def grid():
    """All runs of `vil_fig1`, first with the perturbation."""
    return [{"twin": twin} | run for twin in TWINS for run in fig1.grid()]


def compute(twin, split, update, iterations=fig1.ITERATIONS):
    """The end of the twin's run."""
    change = {"perturbation": PERTURBATION} if twin == "rounding" else {"start": split + OTHER}
    run = fig1.compute(split, update, iterations, **change)
    return {name: run[name] for name in OUTPUTS}


def apart(results, originals, twin):
    """By how much the final log evidence of each run differs from its twin's, in %: a Series over (split, update)."""
    results = results[results["twin"] == twin]
    ends = [part.set_index(["split", "update"])["final_evidence"] for part in (results, originals)]
    return 100 * np.abs(ends[0] - ends[1]) / np.abs(ends[1])
