"""Where does a run of vil_fig1 end if its inputs differ by one part in 10^12? The same runs, so perturbed.

An adaptive step that halves when a sign changes magnifies rounding. How far apart such twins end says which differences
between the updates mean something.
"""

import numpy as np

from figures import vil_fig1

PERTURBATION = 1e-12
OUTPUTS = ("final_evidence", "nll")


def grid():
    """All runs of vil_fig1."""
    return vil_fig1.grid()


def prepare():
    """Stop at once when the data are missing."""
    vil_fig1.prepare()


def compute(split, update, iterations=vil_fig1.ITERATIONS):
    """The end of the perturbed run."""
    run = vil_fig1.compute(split, update, iterations, perturbation=PERTURBATION)
    return {name: run[name] for name in OUTPUTS}


def apart(results, originals):
    """By how much the final log evidence of each run differs from its twin's, in %: a Series over (split, update)."""
    ends = [part.set_index(["split", "update"])["final_evidence"] for part in (results, originals)]
    return 100 * np.abs(ends[0] - ends[1]) / np.abs(ends[1])
