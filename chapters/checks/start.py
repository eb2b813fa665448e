"""Checkers of the first page."""

from functools import cache

import numpy as np
from exercises import Within, choice, number

from figures.experiments.book import start_here


@cache
def share():
    """The noise variance that α = 0 learns on the tumours; the target has variance 1."""
    return start_here.learn(*start_here.standardised(start_here.PICTURE), 0.0).noise


number(
    "start-noise",
    share,
    decimals=2,
    mistakes=[
        (lambda: np.sqrt(share()),
         "that is the noise as a standard deviation. Variances add up, standard deviations do not: square it."),
        (lambda: Within(100 * share() - 0.6, 100 * share() + 0.6),
         "right in per cent. Give it as a fraction, a number between 0 and 1."),
        (lambda: 1 - share(), "that is the rest: the part that the curve explains."),
        (Within(low=1.0), "a share of the variance lies between 0 and 1."),
        (Within(high=0.0), "a share of the variance lies between 0 and 1."),
    ],
    otherwise="that is not it. The target has standard deviation 1 here: what is its variance, and how much of it is "
              "noise?",
    never=["models[0.0].noise"],
)

choice(
    "start-evidence",
    [
        ("the one with the highest log evidence",
         "on the irises that is the power with the worst loss on new flowers."),
        ("the one with the smallest loss on data that were held back", None),
        ("always 1, since it won on the tumours", "on the wines it has the largest loss of all."),
        ("always 0, since it agrees with the full Gaussian process",
         "on the tumours it agrees with a model that predicts worse than another one does."),
    ],
    why="The evidence is an estimate made by the approximation itself. Held-back data do not know which power was "
        "used.",
)

choice(
    "start-fan",
    [
        ("the noise grows to the right", "the model has one noise level for all inputs, and at α = 1 that level is small."),
        ("the data are denser on the right", "then the band would close, not open."),
        ("the curve is known at the triangles, and less well far from them", None),
    ],
    why="At α = 1 most of the scatter is put down to ignorance of the curve, and ignorance grows with the distance from a "
        "triangle.",
)
