"""How hard is the race of figure 2 on kin40k? The Hessian of the loss of the mean at full size, in four bases.

Everything else being fixed and the likelihood Gaussian, that loss is a quadratic: its condition number and the plain descents
on it are exact. Planned when the curves were known, to find out why the orthogonal basis is behind the hybrid one in weights and
ahead of it in values.
"""

import numpy as np

from figures.experiments import runner
from figures.experiments.salimbeni2018 import conditioning
from figures.experiments.salimbeni2018.fig2 import POINTS
from figures.experiments.salimbeni2018.problems import problem

ROWS = 36_000  # all that are trained on
BASES = (*conditioning.BASES, "orthogonal-weights")
STEPS = (100, 1000, 10_000, 20_000)
READS = ("kin40k",)
OUTPUTS = ("condition_scaled", "beta_condition_scaled", "prior_condition_scaled", "likelihood_condition_scaled",
           "prior_at_flattest", "correlation", "largest", *(f"left_{steps}" for steps in STEPS))


def grid():
    """Each basis with all training rows."""
    return [{"data": "kin40k", "rows": ROWS, "basis": basis} for basis in BASES]


def compute(data, rows, basis, points=POINTS):
    """One basis, a dict.

    condition_scaled: of the Hessian with a unit diagonal; beta_..., prior_..., likelihood_...: the same of its block for beta, of
    the prior's part and of the likelihood's. prior_at_flattest: the prior's share of the smallest curvature. correlation: the
    largest canonical one of the two parts of the mean. largest: of the parameters of the best mean. left_...: what is left of
    the gap after so many steps of the best constant length, the diagonal being one.
    """
    task = problem(data, 0, rows)
    parts = conditioning.parts(task.kernel, *task.points(points, points, seed=0), task.X, task.likelihood.noise)
    slope = np.vstack([parts.A, parts.B]) @ task.y / parts.noise
    goal = np.linalg.solve(conditioning.hessian(parts), slope)
    own = np.linalg.solve(conditioning.change_of_coordinates(parts, basis), goal)
    H = conditioning.in_basis(parts, basis)
    prior = conditioning.in_basis(parts, basis, likelihood=False)
    scaled, length = conditioning.rescaled(H), np.sqrt(np.diag(H))
    curvatures, directions = np.linalg.eigh(scaled)
    flattest = directions[:, 0] / length
    gaps = conditioning.descent(scaled, own * length, (0, *STEPS))
    return {"condition_scaled": np.linalg.cond(scaled), "beta_condition_scaled": np.linalg.cond(scaled[:points, :points]),
            "prior_condition_scaled": np.linalg.cond(conditioning.rescaled(prior)),
            "likelihood_condition_scaled": np.linalg.cond(conditioning.rescaled(H - prior)),
            "prior_at_flattest": flattest @ prior @ flattest / curvatures[0],
            "correlation": conditioning.correlation(parts, basis), "largest": np.abs(own).max(),
            **{f"left_{steps}": gap / gaps[0] for steps, gap in zip(STEPS, gaps[1:])}}


def better_conditioned(basis, than="hybrid"):
    """How many times smaller the condition number in a basis is than in another one, diagonals one.

    The hybrid basis has function values; the same means in weights, without a projection, are those of the decoupled one.
    """
    numbers = runner.results("salimbeni_landscape").set_index("basis")["condition_scaled"]
    return float(numbers[than] / numbers[basis])
