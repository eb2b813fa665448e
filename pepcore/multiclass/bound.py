"""The variational bound of many classes as a function of the posterior and the hyper-parameters.

The robust-max factors are not log-concave, so natural-gradient sweeps may take long; here the means m_c and lower
triangular R_c with V_c = R_c R_cᵀ are free, and an optimiser moves them along with everything else, as the paper does.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pepcore.gaussian import Array, safe_cholesky
from pepcore.multiclass.inference import Method, MulticlassFit


class Evaluation(NamedTuple):
    """The bound and its gradient, for a step of learning."""

    log_evidence: float
    gradient: dict


class Bound:
    """Σ E_q[log p] − Σ_c KL(q_c ‖ N(0, I)) and its gradient; source: villacampa2017 eq. (15); :eq:`mc-robust-bound`."""

    def __init__(self, X: Array, y: Array, C: int, epsilon: float, jitter: float) -> None:
        self.X, self.method = X, Method("vi", 0.0, epsilon, C, jitter)
        self.factors = self.method.factors(y)

    def start(self, values: dict) -> dict:
        """`values` with q at the prior."""
        sizes = [len(values["Z"][c % len(values["Z"])]) for c in range(self.method.C)]
        return values | {"q": tuple((np.zeros(M), np.eye(M)) for M in sizes)}

    def __call__(self, values: dict) -> Evaluation:
        """The bound in nats, and a dict with its gradient in "kernels", "Z", "noise" and "q"."""
        maps = self.method.maps(values, self.X)
        white = [R.T @ maps.of(c).A for c, (_, R) in enumerate(values["q"])]
        mean = np.stack([m @ maps.of(c).A for c, (m, _) in enumerate(values["q"])])
        variance = np.stack([maps.of(c).h + (W**2).sum(axis=0) for c, W in enumerate(white)])
        found = self.factors.tilted(mean, variance, values["noise"], 0.0)
        bound, dq = found.l.sum(), []
        for c, (m, R) in enumerate(values["q"]):
            diagonal = np.diag(R)
            bound -= 0.5 * ((R**2).sum() + m @ m - len(m)) - np.log(np.abs(diagonal)).sum()
            A = maps.of(c).A
            dq.append((A @ found.d1[c] - m, np.tril((A * found.d2[c]) @ white[c].T - R) + np.diag(1 / diagonal)))

        def slope(c: int, rows: Any, A: Array) -> Array:
            m, R = values["q"][c]
            return np.asfortranarray(np.outer(m, found.d1[c, rows]) + R @ white[c][:, rows] * found.d2[c, rows])

        gradient = maps.pull_back([partial(slope, c) for c in range(maps.C)], 0.5 * found.d2)
        return Evaluation(float(bound), gradient | {"noise": found.dnoise.sum(axis=1), "q": dq})

    def finish(self, values: dict) -> MulticlassFit:
        """MulticlassFit of the posterior as it stands; without sites, and not polished further."""
        bound, gradient = self(values)
        posteriors = []
        for m, R in values["q"]:
            half = np.linalg.inv(R)
            posteriors.append((m, safe_cholesky(half.T @ half, name="precision of q")[0]))
        del gradient["q"]
        found: tuple = posteriors, bound, values["noise"], None, partial(dict, gradient)
        ending: dict[str, Any] = {"converged": False, "message": "posterior and parameters learnt together", "sweeps": 0}
        return self.method.result(self.method.maps(values, self.X), *found, **ending)
