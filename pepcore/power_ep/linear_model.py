"""Bayesian linear regression on the features A, in which datum n has the noise d_n = alpha_n h_n + noise.

Sums over groups of rows, each one pass over the data: one for posterior and evidence, one for the gradient.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pepcore.features import Features, add_up, grouped, through_data, through_pseudo_points
from pepcore.gaussian import Array, cholesky_inverse, log1p_ratio, log_determinant, safe_cholesky, solve_lower
from pepcore.threads import add_gram, add_outer, in_order, one_blas_thread

SUBTRACTED = 1e4  # mean of y²/d up to which the subtraction in the evidence loses too few digits to matter


@dataclass(frozen=True, eq=False)
class Solution:
    log_evidence: float
    mean: Array  # m (M,)
    precision_cholesky: Array  # C (M, M), C Cᵀ = I + gram
    gram: Array  # (M, M), A diag(1/d) Aᵀ, d = alpha h + noise, of which only the lower triangle is filled
    tau: Array  # (N,), 1/d


def solve_regression(load: Callable, rows: list[slice], y: Array, noise: float, alpha: float | Array) -> Solution:
    """Posterior and evidence; `load` turns each of the `rows` into A[:, rows] and h[rows]; source: :eq:`sr-collapsed`."""
    tau = np.empty(len(y))

    def sums(group):
        gram, shift, log_normal, quadratic = None, 0.0, 0.0, 0.0
        for part in group:
            A, h = load(part)
            power, y_part = _of(alpha, part), y[part]
            d = power * h + noise
            tau[part] = 1 / d
            gram = np.zeros((len(A), len(A)), order="F") if gram is None else gram
            add_gram(gram, A / np.sqrt(d))
            shift = shift + A @ (y_part / d)
            log_normal -= 0.5 * np.log(2 * np.pi * d).sum() + penalty(h, noise, power)
            quadratic += y_part @ (y_part / d)
        return gram, shift, log_normal, quadratic

    gram, shift, log_normal, quadratic = add_up(in_order(sums, grouped(rows)))
    C, _ = safe_cholesky(gram + np.eye(len(shift)), name="I + A diag(1/d) A'")
    mean = solve_lower(C, solve_lower(C, shift), transposed=True)

    # yᵀ(AᵀA + diag d)⁻¹y, by a subtraction where that has the digits, else as a minimum over v
    if quadratic < SUBTRACTED * len(y):
        quadratic -= shift @ mean
    else:
        residuals = in_order(lambda part: ((y[part] - mean @ load(part)[0]) ** 2 @ tau[part],), rows)
        quadratic = add_up(residuals)[0] + mean @ mean
    log_evidence = log_normal - 0.5 * (log_determinant(C) + quadratic)
    return Solution(float(log_evidence), mean, C, gram, tau)


def _of(alpha, rows):
    """The powers of some rows, or the one that all share."""
    return alpha[rows] if np.ndim(alpha) else alpha


def penalty(h: Array, noise: float, alpha: float | Array) -> float:
    """Σ (1 − α)/(2α) log(1 + α h/noise), which is Σ h/(2 noise) at α = 0; source: :eq:`sr-evidence`."""
    return ((1 - alpha) * log1p_ratio(alpha * h / noise) * h).sum() / (2 * noise)


def _residual_derivative(total, d, alpha):
    """dF/dh from dF/dd: h enters the noise d with weight α and the penalty by itself; source: :eq:`sr-gradient`."""
    return alpha * total - (1 - alpha) / (2 * d)


def noise_derivative(total: Array, h: Array, d: Array, noise: float, alpha: float | Array) -> Array:
    """The terms of dF/dnoise from dF/dd: the noise enters d and the penalty; source: :eq:`sr-gradient`."""
    return total + (1 - alpha) * h / (2 * noise * d)


@one_blas_thread
def pointwise_gradient(features: Features, y: Array, solution: Solution, noise: float, alpha: float | Array) -> dict:
    """Gradient of the evidence, in one more pass over the data.

    With v = (y − Aᵀm)/d, s = diag AᵀVA and fit = v² + s/d²:

        dF/dd = ½ (fit − 1/d),   dF/dh = α dF/dd − (1 − α)/(2d) = ½ (α fit − 1/d),
        dA = m vᵀ − V A/d                             at fixed h,
        dA − 2 A diag(dF/dh) = m vᵀ − V A/d + A diag(1/d − α fit)     with h = k − |a|².

    A vᵀ, the sum of the data's weighted residuals, is m, the stationary point of Σ r²/d + |m|². With gram = A diag(1/d) Aᵀ
    and V gram = V (V⁻¹ − I) = I − V, the product that K_uu needs has a closed form but for one weighted gram matrix:

        Σ dA Aᵀ = m mᵀ − (I − V) + gram − A diag(α fit) Aᵀ.
    """
    mean, V = solution.mean, cholesky_inverse(solution.precision_cholesky)
    dnoise = np.empty(len(y))

    def derivatives(rows, A, h):
        tau, power = solution.tau[rows], _of(alpha, rows)
        v = (y[rows] - mean @ A) * tau
        dA = (A.T @ V).T  # V A, in Fortran order
        fit = v**2 + np.einsum("nm,nm->n", A.T, dA.T) * tau**2
        total = 0.5 * (fit - tau)
        dnoise[rows] = noise_derivative(total, h, 1 / tau, noise, power)
        dA *= -tau
        add_outer(dA, mean, v)
        return dA, _residual_derivative(total, 1 / tau, power), power * fit

    gradient, gram_h = through_data(features, derivatives)
    T = np.outer(mean, mean) + V - np.eye(len(mean)) + solution.gram - gram_h
    return through_pseudo_points(features, gradient, T) | {"noise": float(dnoise.sum())}
