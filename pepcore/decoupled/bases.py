"""Decoupled bases: M points beta carry mean and covariance, G points gamma only the mean.

Whatever its parametrisation, of which `pepcore.decoupled.parametrisations` has four, q(f) is the one process

    mean(x) = a(x)ᵀw + k_γ(x)ᵀg,    covariance(x, x') = k(x, x') − a(x)ᵀa(x') + a(x)ᵀV a(x')

with the features a(x) = L⁻¹k_β(x). Nothing here costs more than O(GM + M³), except `residual_variance`, O(GM²), and
what needs the covariance of gamma itself: `residual_covariance`, `residual_root` and the exact `gamma_product`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from pepcore.features import Basis, row_blocks
from pepcore.gaussian import Array, multiply_lower, safe_cholesky, solve_lower
from pepcore.kernels.base import Kernel
from pepcore.threads import one_blas_thread
from pepcore.validation import check_inputs

KEPT = 2048  # points gamma up to which K_γ is kept, 32 MiB; with more, its products are made anew from blocks of rows


@dataclass(frozen=True, eq=False)
class Bases:
    """The two bases and what they share."""

    basis: Basis  #: of the M points beta, with L Lᵀ = K_β + jitter
    gamma: Array  #: (G, D) points that carry only the mean; G may be 0
    vjp_beta: Callable  #: derivatives through K_β, as `value_and_vjp` of the kernel gives them

    @classmethod
    def build(cls, kernel: Kernel, beta: Array, gamma: Array, jitter: float = 1e-6) -> Self:
        """Factorise K_β for beta (M, D); gamma (G, D)."""
        basis, vjp_beta = Basis.build_with_vjp(kernel, beta, jitter)
        return cls(basis, gamma, vjp_beta)

    @property
    def kernel(self) -> Kernel:
        return self.basis.kernel

    @property
    def beta(self) -> Array:
        return self.basis.Z

    @property
    def L(self) -> Array:
        return self.basis.L

    @property
    def L_inverse(self) -> Array:
        """L⁻¹ (M, M): a product with it takes half the time of a solution, see `multiply_lower`."""
        return self.basis.L_inverse

    @cached_property
    def points(self) -> Array:
        """gamma and beta, one above the other, (G + M, D)."""
        return np.vstack([self.gamma, self.beta])

    @cached_property
    def cross_and_vjp(self) -> tuple[Array, Callable]:
        """K_βγ (M, G) and the derivatives through it; G > 0."""
        return self.kernel.value_and_vjp(self.beta, self.gamma)

    @property
    def cross(self) -> Array:
        """K_βγ (M, G)."""
        return self.cross_and_vjp[0] if len(self.gamma) else np.zeros((len(self.beta), 0))

    def project(self, weights: Array) -> Array:
        """A_γ weights (M,) for weights (G,): the share of Ψ_γ weights in the span of Ψ_β; A_γ = L⁻¹K_βγ."""
        return solve_lower(self.L, self.cross @ weights)

    def project_transposed(self, u: Array) -> Array:
        """A_γᵀu (G,) for u (M,)."""
        return self.cross.T @ solve_lower(self.L, u, transposed=True)

    @cached_property
    def residual_variance(self) -> Array:
        """diag(K_γ − K_γβK_β⁻¹K_βγ) (G,): what beta leaves unexplained at gamma. O(GM²), once."""
        return self.basis.features(self.gamma)[1]

    @cached_property
    def residual_covariance(self) -> Array:
        """K_γ − K_γβK_β⁻¹K_βγ (G, G); only for the exact rules, which cost O(G³); :eq:`og-residual`."""
        A = solve_lower(self.L, np.array(self.cross, order="F"))
        return self.gamma_covariance - A.T @ A

    @cached_property
    def residual_root(self) -> Array:
        """Lower Cholesky factor (G, G) of `residual_covariance`, with a jitter only where it fails without."""
        scale = self.kernel.diagonal(self.gamma).mean()
        return safe_cholesky(self.residual_covariance, scale, name="covariance of f(gamma) given f(beta)")[0]

    @cached_property
    def gamma_covariance(self) -> Array:
        """K_γ (G, G)."""
        return self.kernel(self.gamma) if len(self.gamma) else np.zeros((0, 0))

    def gamma_product(self, weights: Array, columns: np.ndarray | None = None, K: Array | None = None) -> Array:
        """An unbiased estimate of K_γ weights (G,) from the `columns` (C,) of K_γ; exact with all of them (None).

        K (G, C) are those columns, computed if left out. The estimate is half the gradient of the estimate of the
        squared norm, (G/C) Σ_c weights_c k_cᵀweights.

        Source: salimbeni2018 appendix A.3.
        """
        if not len(self.gamma):
            return np.zeros(0)
        if columns is None and len(self.gamma) <= KEPT:
            return self.gamma_covariance @ weights
        if columns is None:
            blocks = row_blocks(len(self.gamma), len(self.gamma))
            return np.concatenate([self.kernel(self.gamma[rows], self.gamma) @ weights for rows in blocks])
        K = self.kernel(self.gamma, self.gamma[columns]) if K is None else K
        scale = len(self.gamma) / len(columns)
        product = 0.5 * scale * (K @ weights[columns])
        np.add.at(product, columns, 0.5 * scale * (weights @ K))
        return product


@dataclass(frozen=True, eq=False)
class Process:
    """mean(x) = a(x)ᵀw + k_γ(x)ᵀg and V, see the head of this module."""

    w: Array  #: (M,)
    g: Array  #: (G,)
    root: Array  #: (M, M) triangular, root rootᵀ = V
    upper: bool = False  #: whether root is upper triangular; else it is lower triangular

    def whiten(self, A: Array) -> Array:
        """rootᵀA (M, B) for A (M, B): columns of squared length aᵀV a, in half the time of V A."""
        A = np.array(A, order="F")
        return multiply_lower(self.root.T, A) if self.upper else multiply_lower(self.root, A, transposed=True)

    def variance(self, A: Array, h: Array) -> Array:
        """h + aᵀV a (B,)."""
        white = self.whiten(A)
        return h + np.einsum("mb,mb->b", white, white)

    @cached_property
    def V(self) -> Array:
        """V (M, M)."""
        return self.root @ self.root.T

    @cached_property
    def log_determinant(self) -> float:
        """log |V|."""
        return 2 * np.log(np.abs(np.diag(self.root))).sum()


class DecoupledPosterior(NamedTuple):
    """q(f) of a decoupled basis."""

    bases: Bases
    process: Process  #: mean(x) = a(x)ᵀw + k_γ(x)ᵀg and covariance k − aᵀa' + aᵀV a'

    @one_blas_thread
    def predict(self, Xs: ArrayLike) -> tuple[Array, Array]:
        """Mean (S,) and variance (S,) of the latent f at Xs (S, D)."""
        return marginals(self.bases, self.process, self._check(Xs))

    def predict_full(self, Xs: ArrayLike) -> tuple[Array, Array]:
        """Mean (S,) and covariance (S, S) of the latent f at Xs (S, D)."""
        Xs = self._check(Xs)
        A, _, K_gamma = located(self.bases, Xs)
        mean = self.process.w @ A + self.process.g @ K_gamma
        covariance = self.bases.kernel(Xs) + A.T @ (self.process.V @ A - A)
        np.fill_diagonal(covariance, np.maximum(np.diag(covariance), 0.0))  # rounding may leave it below 0
        return mean, covariance

    def __repr__(self) -> str:
        M, G = len(self.bases.beta), len(self.bases.gamma)
        return f"DecoupledPosterior(M={M}, G={G}, {self.bases.kernel!r})"

    def _check(self, Xs: ArrayLike) -> Array:
        return check_inputs(Xs, "Xs", columns=self.bases.beta.shape[1])


def located(bases: Bases, X: Array, K: Array | None = None) -> tuple[Array, Array, Array]:
    """Features A (M, B) and h (B,) of rows X (B, D), and K_γx (G, B); K (G + M, B) is the kernel of points and rows."""
    K, G = bases.kernel(X, bases.points).T if K is None else K, len(bases.gamma)
    A = multiply_lower(bases.L_inverse, np.array(K[G:], order="F"))
    # h >= 0 up to rounding, as in `Basis.features`
    return A, np.maximum(bases.kernel.diagonal(X) - np.einsum("mb,mb->b", A, A), 0.0), K[:G]


class StoredRows:
    """A (M, N), h (N,) and K_γx (G, N) of all rows, for a kernel and bases that stay as they are: O(N (G + M)) memory."""

    def __init__(self, bases: Bases, X: Array) -> None:
        self.A, self.h = np.empty((len(bases.beta), len(X)), order="F"), np.empty(len(X))
        self.K_gamma = np.empty((len(bases.gamma), len(X)), order="F")
        for rows in row_blocks(len(X), len(bases.points)):
            self.A[:, rows], self.h[rows], self.K_gamma[:, rows] = located(bases, X[rows])

    def __call__(self, rows: Any) -> tuple[Array, Array, Array]:
        return self.A[:, rows], self.h[rows], self.K_gamma[:, rows]


def marginals(bases: Bases, process: Process, X: Array) -> tuple[Array, Array]:
    """Mean and variance (N,) of q(f(x)) for rows X (N, D).

    Source: salimbeni2018 eqs (6) and (11); the variance of eq. (10) has a wrong sign; :eq:`og-process`.
    """
    mean, variance = np.empty(len(X)), np.empty(len(X))
    for rows in row_blocks(len(X), len(bases.points)):
        A, h, K_gamma = located(bases, X[rows])
        mean[rows], variance[rows] = process.w @ A + process.g @ K_gamma, process.variance(A, h)
    return mean, variance
