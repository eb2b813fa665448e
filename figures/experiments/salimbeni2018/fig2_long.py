"""Half as many iterations again for the one curve of figure 2 whose end is needed: Orth on kin40k, in both coordinates.

OrthNat has one per cent of the gap left after some 2100 iterations. Whether Orth takes ten times as many cannot be seen from
20 000. Planned when both curves were known.
"""

from figures.experiments.salimbeni2018 import fig2

CHECKPOINTS = (0, 1000, 10_000, 20_000, 25_000, 30_000)
READS = ("kin40k",)
OUTPUTS = (*(f"{name}_{number}" for name in fig2.MEASURED for number in CHECKPOINTS), "bound_optimum",
           "log_likelihood_optimum")


def grid():
    """The curve by values, and that by weights."""
    return [{"data": "kin40k", "basis": basis} for basis in ("Orth", "OrthWeights")]


def compute(data, basis, checkpoints=CHECKPOINTS):
    """One curve, as `fig2.compute`; its beginning is that of the shorter run."""
    return fig2.compute(data, basis, checkpoints=checkpoints)
