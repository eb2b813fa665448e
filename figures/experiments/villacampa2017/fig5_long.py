"""MNIST, ten classes, for sixty epochs: how far stochastic EP gets with pseudo-inputs of each class's own.

As in `vil_fig5`, three times as long; in the last third Adam's rate falls to a hundredth, so that the curve comes to rest.
"""

from figures.experiments.mnist import RATE
from figures.experiments.villacampa2017 import fig5

EPOCHS, STEPS_OF_AN_EPOCH = 60, 300
STEPS = EPOCHS * STEPS_OF_AN_EPOCH
CHECKPOINTS = (10, 30, 100, 300, 1000, 3000, 6000, 9000, 12000, 13500, 15000, 16500, 18000)
READS = fig5.READS
OUTPUTS = tuple(f"{name}_{number}" for name in fig5.MEASURED for number in CHECKPOINTS)


def grid():
    """One run, of three quarters of an hour."""
    return [{"method": "sep", "pseudo_inputs": "own"}]


def falling(steps):
    """Adam's rate: constant for two thirds of the steps, then down to a hundredth, by the same factor in every step."""
    return RATE * 0.01 ** max(0.0, 3 * steps / STEPS - 2)


def compute(method, pseudo_inputs):
    """One curve, see `fig5.compute`."""
    return fig5.compute(method, pseudo_inputs, epochs=EPOCHS, checkpoints=CHECKPOINTS, rate=falling)
