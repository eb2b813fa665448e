"""Natural gradients for the orthogonally decoupled basis, its three parametrisations, and the optimum in closed form.

In the orthogonal basis the natural parameters are (a_γ, S⁻¹m_β, ½S⁻¹): those of a Gaussian on f(beta), which is the
coupled basis, and a_γ by itself. A natural-gradient step therefore moves the coupled part as if gamma were a known
offset of the mean, and a_γ along the derivative divided by the prior covariance of what beta leaves unexplained.
"""

from typing import NamedTuple

import numpy as np

from pepcore.decoupled.bases import Bases, Process, located
from pepcore.decoupled.bound import DataTerm
from pepcore.decoupled.parametrisations import Orthogonal
from pepcore.features import row_blocks
from pepcore.gaussian import (
    Array,
    cholesky_inverse,
    cholesky_solve,
    inverse_lower,
    log_determinant,
    multiply_lower,
    safe_cholesky,
    solve_lower,
    strict_cholesky,
)


class Natural(NamedTuple):
    """Natural parameters of `Orthogonal`; source: salimbeni2018 eq. (13)."""

    j_gamma: Array  # (G,), a_γ
    j_beta: Array  # (M,), S⁻¹m_β
    Theta: Array  # (M, M), ½ S⁻¹


class Expectation(NamedTuple):
    """Expectation parameters of `Orthogonal`; source: salimbeni2018 eq. (14)."""

    m_gamma: Array  # (G,), (K_γ − K_γβK_β⁻¹K_βγ) a_γ
    m_beta: Array  # (M,), as it is
    Lambda: Array  # (M, M), −S − m_βm_βᵀ


def to_natural(model: Orthogonal) -> Natural:
    """`Natural` of `model`, an `Orthogonal`. Source: salimbeni2018 eq. (13), figure 1; :eq:`og-natural`."""
    precision = cholesky_inverse(model.S_root)
    return Natural(model.a_gamma.copy(), precision @ model.m_beta, 0.5 * precision)


def from_natural(natural: Natural) -> Orthogonal:
    """`Orthogonal` of natural parameters; its S_root has a positive diagonal.

    Raises NotPositiveDefiniteError if Theta is not positive definite.
    """
    S_root = root_of_inverse(2 * natural.Theta, "Theta")
    return Orthogonal(natural.j_gamma.copy(), S_root @ (S_root.T @ natural.j_beta), S_root)


def to_expectation(bases: Bases, model: Orthogonal) -> Expectation:
    """`Expectation` of `model`, an `Orthogonal`. Source: salimbeni2018 eq. (14), figure 1; :eq:`og-natural`."""
    second = model.S_root @ model.S_root.T + np.outer(model.m_beta, model.m_beta)
    return Expectation(bases.residual_covariance @ model.a_gamma, model.m_beta.copy(), -second)


def from_expectation(bases: Bases, expectation: Expectation) -> Orthogonal:
    """`Orthogonal` of expectation parameters; its S_root has a positive diagonal. O(G³).

    Raises NotPositiveDefiniteError if −Lambda − m_βm_βᵀ is not positive definite.
    """
    m_beta = expectation.m_beta
    S_root = strict_cholesky(
        -expectation.Lambda - np.outer(m_beta, m_beta),
        "-Lambda - m_beta m_beta' is not positive definite, so these are no expectation parameters; they come from "
        "`to_expectation`, or from a shorter step.",
    )
    return Orthogonal(exact_direction(bases, expectation.m_gamma), m_beta.copy(), S_root)


def root_of_inverse(P: Array, name: str = "precision") -> Array:
    """The lower triangular R with R Rᵀ = P⁻¹, from a Cholesky factorisation of P (M, M) in reverse order, U Uᵀ = P.

    Raises NotPositiveDefiniteError if P is not positive definite.
    """
    C = strict_cholesky(P[::-1, ::-1], _no_q(name, len(P)))
    return np.asfortranarray(inverse_lower(C).T[::-1, ::-1])


def _no_q(name: str, size: int) -> str:
    return (f"{name} ({size} x {size}) is not positive definite, so it belongs to no q; take a smaller step, or a "
            "likelihood that is log-concave.")


def coupled_step(bases: Bases, process: Process, data: DataTerm, step: float) -> Process:
    """The process after a natural-gradient step of length `step` in (0, 1] on q(f(beta)), a_γ held still.

    V⁻¹ ← (1 − ε) V⁻¹ + ε (I − A diag(d2) Aᵀ) and V⁻¹m ← (1 − ε) V⁻¹m + ε A (d1 − d2 Aᵀm), with m = w + A_γa_γ: equations
    (16b) and (16c) in the coordinates of f(beta), and the damped site update at α = 0. For a Gaussian likelihood a
    step of 1 reaches the optimum given a_γ. `process` has a lower triangular root, and `data` was computed at it.

    Raises NotPositiveDefiniteError if the step leaves no proper q, which takes a likelihood that is not log-concave.
    Source: salimbeni2018 eqs (16b) and (16c); hensman2013; :eq:`og-natural-step`, :eq:`og-step`, :eq:`og-one-step`.
    """
    projected = bases.project(process.g)
    m = process.w + projected
    inverse = inverse_lower(process.root)
    before = inverse.T @ inverse
    precision = (1 - step) * before - step * data.curvature
    precision[np.diag_indices_from(precision)] += step
    shift = (1 - step) * (before @ m) + step * (data.dw - data.curvature @ m)
    root = root_of_inverse(precision)
    moved = root @ (root.T @ shift)
    return Process(moved - projected, process.g, root)


def exact_direction(bases: Bases, derivative: Array) -> Array:
    """(K_γ − K_γβK_β⁻¹K_βγ)⁻¹ derivative (G,): the natural gradient in a_γ. O(G³) once.

    Source: salimbeni2018 eq. (16a), whose last K_γβ should be K_βγ; :eq:`og-step`, :eq:`og-residual-step`.
    """
    if not len(bases.gamma):
        return np.zeros(0)
    return cholesky_solve(bases.residual_root, derivative)


def diagonal_direction(bases: Bases, derivative: Array, jitter: float = 1e-6) -> Array:
    """derivative (G,) over the diagonal of K_γ − K_γβK_β⁻¹K_βγ, plus `jitter` times the kernel's variance. O(GM²) once.

    Source: salimbeni2018 eq. (17); :eq:`og-diagonal`.
    """
    if not len(bases.gamma):
        return np.zeros(0)
    return derivative / (bases.residual_variance + jitter * bases.kernel.diagonal(bases.gamma))


def ramp(number: int, last: float = 0.005, first: float = 1e-5, length: int = 100) -> float:
    """The step size of step `number` (0, 1, ...): from `first` in a straight line to `last` over `length` steps.

    Source: salimbeni2018 appendix F, for likelihoods that are not Gaussian.
    """
    return last if number >= length else first + (last - first) * number / length


def optimum(bases: Bases, X: Array, y: Array, noise: float) -> Orthogonal:
    """The `Orthogonal` that maximises the bound of X (N, D), y (N,) for a Gaussian likelihood of variance `noise`.

    Its mean is that of the coupled optimum with beta and gamma together as pseudo-points, its covariance that of the
    coupled optimum with beta alone. O(N (G + M)² + (G + M)³).

    Source: salimbeni2018 appendix E, with the factor 1/noise that its last equation lost; :eq:`og-optimum`,
    :eq:`og-gain`.
    """
    M, G = len(bases.beta), len(bases.gamma)
    A_gamma = bases.basis.features(bases.gamma)[0] if G else np.zeros((M, 0))
    precision, shift = np.eye(M + G), np.zeros(M + G)
    for rows in row_blocks(len(X), M + G):
        A, _, K_gamma = located(bases, X[rows])
        if G:
            A = np.vstack([A, solve_lower(bases.residual_root, np.array(K_gamma - A_gamma.T @ A, order="F"))])
        precision += A @ A.T / noise
        shift += A @ y[rows] / noise
    C, _ = safe_cholesky(precision, name="precision of the optimal mean")
    weights = cholesky_solve(C, shift)
    root = root_of_inverse(precision[:M, :M])
    a_gamma = solve_lower(bases.residual_root, weights[M:], transposed=True) if G else np.zeros(0)
    return Orthogonal(a_gamma, bases.L @ weights[:M], multiply_lower(bases.L, root))


def log_partition(bases: Bases, natural: Natural) -> float:
    """A(η) = ½ j_γᵀ(K_γ − K_γβK_β⁻¹K_βγ)j_γ + ½ j_βᵀS j_β + ½ log|S| with S = ½Θ⁻¹; its gradient is `Expectation`.

    Raises NotPositiveDefiniteError if Theta is not positive definite.
    Source: salimbeni2018 section 3.3 and appendix C.4; :eq:`og-partition`.
    """
    C = strict_cholesky(2 * natural.Theta, _no_q("Theta", len(natural.Theta)))
    white = solve_lower(C, natural.j_beta)
    residual = natural.j_gamma @ bases.residual_covariance @ natural.j_gamma if len(bases.gamma) else 0.0
    return float(0.5 * (residual + white @ white - log_determinant(C)))
