"""The feature map (kernel, Z) -> A, h, and its pull-back.

Under the prior f(x) = a(x)ᵀv + e(x) with v ~ N(0, I): a(x) = L⁻¹k_u(x) are M features, e is an independent residual of
variance h(x) = k(x, x) − |a(x)|². Inference sees only A and h; this module turns its derivatives with respect to them
into derivatives with respect to the kernel and Z. Everything runs over blocks of data that fit the processor's cache.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from pepcore.gaussian import inverse_lower, multiply_lower, safe_cholesky, solve_lower, symmetric

BLOCK_ELEMENTS = 2**17  # 1 MiB of float64: an M x block array stays in the second-level cache
KEPT_ELEMENTS = 2**20  # numbers in A up to which what the kernel computed is kept for its derivatives


def row_blocks(n_rows, n_columns, elements=None):
    """Slices that cover range(n_rows) in steps such that step * n_columns is about `elements`, else `BLOCK_ELEMENTS`."""
    step = max(64, (elements or BLOCK_ELEMENTS) // max(n_columns, 1))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def _pseudo_kernels(kernel):
    """The covariances of pseudo-points among each other and with f; those of f itself if u(z) = f(z)."""
    return getattr(kernel, "uu", kernel), getattr(kernel, "uf", kernel)


def points_of_f(kernel):
    """The covariance of f alone, whatever the kernel's pseudo-points are: for methods whose points are values of f."""
    return getattr(kernel, "ff", kernel)


@dataclass(frozen=True, eq=False)
class Basis:
    """A kernel, M pseudo-inputs, and the Cholesky factor that turns k_u(x) into orthonormal features.

    Attributes
    ----------
    kernel : kernel
    Z : (M, D) pseudo-inputs
    L : (M, M) lower triangular, L Lᵀ = K_uu + jitter · mean prior variance · I
    jitter : float, the relative jitter that was needed
    """

    kernel: object
    Z: np.ndarray
    L: np.ndarray
    jitter: float

    @classmethod
    def build(cls, kernel, Z, jitter=1e-6):
        """Factorise K_uu for pseudo-inputs Z (M, D); the jitter grows tenfold after a failure (see `safe_cholesky`)."""
        uu, _ = _pseudo_kernels(kernel)
        return cls._factorised(kernel, Z, jitter, uu(Z))

    @classmethod
    def build_with_vjp(cls, kernel, Z, jitter=1e-6):
        """The same, and the derivatives through K_uu as `value_and_vjp` of the kernel gives them."""
        uu, _ = _pseudo_kernels(kernel)
        K_uu, vjp = uu.value_and_vjp(Z)
        return cls._factorised(kernel, Z, jitter, K_uu), vjp

    @classmethod
    def _factorised(cls, kernel, Z, jitter, K_uu):
        scale = _pseudo_kernels(kernel)[0].diagonal(Z).mean()
        return cls(kernel, Z, *safe_cholesky(K_uu, scale=scale, jitter=jitter, name="K_uu"))

    def features(self, X):
        """Features A (M, N) and residual variances h (N,) >= 0 of inputs X (N, D).

        A is in Fortran order: the features of one datum lie next to each other.

        Source: :eq:`gp-feature-map`.
        """
        A = np.empty((len(X), len(self.Z))).T
        h = np.empty(len(X))
        _, uf = _pseudo_kernels(self.kernel)
        for rows in row_blocks(len(X), len(self.Z)):
            A[:, rows] = uf(X[rows], self.Z).T
            h[rows] = self._whiten(A[:, rows], X[rows])
        return A, h

    def features_with_vjp(self, X):
        """The same, and the derivatives through K_fu as `value_and_vjp` gives them, one for each block of rows."""
        _, uf = _pseudo_kernels(self.kernel)
        A, h, vjps = np.empty((len(X), len(self.Z))).T, np.empty(len(X)), []
        for rows in row_blocks(len(X), len(self.Z)):
            K_fu, vjp = uf.value_and_vjp(X[rows], self.Z)
            A[:, rows] = K_fu.T
            h[rows] = self._whiten(A[:, rows], X[rows])
            vjps.append(vjp)
        return A, h, vjps

    def _whiten(self, A, X):
        """Turn K_uf into features, in place, and return h."""
        A[:] = solve_lower(self.L, A)  # no copy: it solves in place, as fresh arrays of this size cost as much as the solution
        # h >= 0 up to rounding: it is a Schur complement of the prior covariance of (u, f(x))
        return np.maximum(self.kernel.diagonal(X) - np.einsum("mn,mn->n", A, A), 0.0)


@dataclass(frozen=True, eq=False)
class Features:
    """The features of the training inputs: stored, or recomputed block by block where memory is short.

    For few data the derivatives through the kernel are stored with them, for each block of rows: see `value_and_vjp`.

    Attributes
    ----------
    basis : Basis
    X : (N, D)
    A : (M, N), or None when streaming
    h : (N,), or None when streaming
    vjp_uu : derivatives through K_uu
    vjps : tuple of derivatives through K_fu, one a block, or None where they are computed when asked for
    """

    basis: Basis
    X: np.ndarray
    A: np.ndarray | None
    h: np.ndarray | None
    vjp_uu: Callable
    vjps: tuple | None

    def blocks(self):
        """Yield (rows, A[:, rows], h[rows]) over all data."""
        for rows in row_blocks(len(self.X), len(self.basis.Z)):
            if self.A is None:
                yield rows, *self.basis.features(self.X[rows])
            else:
                yield rows, self.A[:, rows], self.h[rows]

    def blocks_with_vjp(self):
        """Yield (rows, A[:, rows], h[rows], derivatives through K_fu of these rows) over all data."""
        _, uf = _pseudo_kernels(self.basis.kernel)
        for number, rows in enumerate(row_blocks(len(self.X), len(self.basis.Z))):
            X = self.X[rows]
            if self.A is None:
                A, h, (vjp,) = self.basis.features_with_vjp(X)
                yield rows, A, h, vjp
            else:
                vjp = self.vjps[number] if self.vjps is not None else uf.value_and_vjp(X, self.basis.Z)[1]
                yield rows, self.A[:, rows], self.h[rows], vjp


def feature_map(kernel, Z, X, jitter=1e-6, stream=False):
    """Features of X (N, D) for pseudo-inputs Z (M, D).

    Parameters
    ----------
    kernel : kernel
    Z : (M, D)
    X : (N, D)
    jitter : float, relative to the kernel's variance
    stream : bool
        Keep no (M, N) array; `Features.blocks` recomputes the features each time.

    Returns
    -------
    Features

    Source: :eq:`gp-prior-split`, :eq:`gp-feature-map`.
    """
    basis, vjp_uu = Basis.build_with_vjp(kernel, Z, jitter)
    if stream:
        return Features(basis, X, None, None, vjp_uu, None)
    if len(X) * len(Z) > KEPT_ELEMENTS:
        return Features(basis, X, *basis.features(X), vjp_uu, None)
    A, h, vjps = basis.features_with_vjp(X)
    return Features(basis, X, A, h, vjp_uu, tuple(vjps))


def pull_back(features, dA, dh):
    """Turn derivatives with respect to the features into derivatives with respect to kernel and Z.

    The transpose of `feature_map`: for F(A, h), dF = <dA, A'> + <dh, h'>.

    Parameters
    ----------
    features : Features, as `feature_map(kernel, Z, X)` returned them
    dA : (M, N)
        dF/dA at fixed h.
    dh : (N,)
        dF/dh at fixed A.

    Returns
    -------
    dict with the kernel's parameters and "Z" (M, D), in natural units

    Source: :eq:`gp-pull-back`.
    """
    M, N = len(features.basis.Z), len(features.X)
    if np.shape(dA) != (M, N) or np.shape(dh) != (N,):
        raise ValueError(
            f"dA must have shape {(M, N)} and dh {(N,)}, as A and h have; got {np.shape(dA)} and {np.shape(dh)}."
        )
    return pull_back_blocks(features, lambda rows, A, h: (np.array(dA[:, rows], order="F"), dh[rows]))


def pull_back_blocks(features, derivatives):
    """`pull_back` with the derivatives computed block by block, so that no second (M, N) array is needed.

    Parameters
    ----------
    features : Features
    derivatives : callable (rows, A (M, B), h (B,)) -> dA (M, B), dh (B,)
        dA must be a fresh array in Fortran order; it is written over.

    Returns
    -------
    dict with the kernel's parameters and "Z" (M, D), in natural units
    """
    basis, X = features.basis, features.X
    kernel, Z, L_inverse = basis.kernel, basis.Z, inverse_lower(basis.L)
    uu, _ = _pseudo_kernels(kernel)
    gradient = {key: np.zeros_like(value, dtype=float) for key, value in kernel.parameters.items()}
    dZ = np.zeros_like(Z)
    T = np.zeros((len(Z), len(Z)))

    for rows, A, h, vjp in features.blocks_with_vjp():
        dA, dh = derivatives(rows, A, h)
        dA -= 2 * dh * A  # h = k(x, x) - |a|²
        T += dA @ A.T
        dK_uf = multiply_lower(L_inverse, dA, transposed=True)
        dkernel, _, dZ_block = vjp(dK_uf.T, first=False, second=True)
        dZ += dZ_block
        accumulate(gradient, dkernel)
        accumulate(gradient, kernel.diagonal_vjp(X[rows], dh))

    dK_uu = cholesky_pull_back(partial(solve_lower, basis.L, transposed=True), T)
    dkernel, dZ_half, _ = features.vjp_uu(dK_uu.T)  # symmetric; transposed it lies in the order of K_uu
    accumulate(gradient, dkernel)
    jitter_share = basis.jitter * np.trace(dK_uu) / len(Z)
    accumulate(gradient, uu.diagonal_vjp(Z, np.full(len(Z), jitter_share)))
    gradient["Z"] = dZ + 2 * dZ_half  # Z stands on both sides of K_uu
    return gradient


def cholesky_pull_back(back, T):
    """dF/dK (M, M) for K = LLᵀ from T = −Lᵀ dF/dL: −½ L⁻ᵀ sym(T) L⁻¹, sym mirroring the lower triangle.

    `back` takes a matrix in Fortran order to L⁻ᵀ times it, written over it or not. Through A = L⁻¹K_uf, T = dF/dA Aᵀ.
    """
    half = back(np.asfortranarray(symmetric(T)))
    return -0.5 * back(np.array(half.T, order="F"))


def accumulate(total, part):
    """Add the values of the dict `part` to those of `total`."""
    for key, value in part.items():
        total[key] = total[key] + value if key in total else value
