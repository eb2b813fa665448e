"""The feature map (kernel, Z) -> A, h, and its pull-back.

Under the prior f(x) = a(x)ᵀv + e(x) with v ~ N(0, I): a(x) = L⁻¹k_u(x) are M features, e is an independent residual of
variance h(x) = k(x, x) − |a(x)|². Inference sees only A and h; this module turns its derivatives with respect to them
into derivatives with respect to the kernel and Z. Everything runs over blocks of data that fit the processor's cache.
"""

from dataclasses import dataclass

import numpy as np

from pepcore.gaussian import inverse_lower, multiply_lower, safe_cholesky, solve_lower

BLOCK_ELEMENTS = 2**17  # 1 MiB of float64: an M x block array stays in the second-level cache


def row_blocks(n_rows, n_columns):
    """Slices that cover range(n_rows) in steps such that step * n_columns is about `BLOCK_ELEMENTS`."""
    step = max(64, BLOCK_ELEMENTS // max(n_columns, 1))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def _pseudo_kernels(kernel):
    """The covariances of pseudo-points among each other and with f; those of f itself if u(z) = f(z)."""
    return getattr(kernel, "uu", kernel), getattr(kernel, "uf", kernel)


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
        L, used = safe_cholesky(uu(Z), scale=uu.diagonal(Z).mean(), jitter=jitter, name="K_uu")
        return cls(kernel, Z, L, used)

    def features(self, X):
        """Features A (M, N) and residual variances h (N,) >= 0 of inputs X (N, D).

        A is in Fortran order: the features of one datum lie next to each other.

        Source: :eq:`gp-feature-map`.
        """
        A = np.empty((len(X), len(self.Z))).T
        h = np.empty(len(X))
        for rows in row_blocks(len(X), len(self.Z)):
            A[:, rows], h[rows] = self._block(X[rows])
        return A, h

    def _block(self, X):
        _, uf = _pseudo_kernels(self.kernel)
        A = solve_lower(self.L, uf(X, self.Z).T)
        # h >= 0 up to rounding: it is a Schur complement of the prior covariance of (u, f(x))
        h = np.maximum(self.kernel.diagonal(X) - np.einsum("mn,mn->n", A, A), 0.0)
        return A, h


@dataclass(frozen=True, eq=False)
class Features:
    """The features of the training inputs: stored, or recomputed block by block where memory is short.

    Attributes
    ----------
    basis : Basis
    X : (N, D)
    A : (M, N), or None when streaming
    h : (N,), or None when streaming
    """

    basis: Basis
    X: np.ndarray
    A: np.ndarray | None
    h: np.ndarray | None

    def blocks(self):
        """Yield (rows, A[:, rows], h[rows]) over all data."""
        for rows in row_blocks(len(self.X), len(self.basis.Z)):
            if self.A is None:
                yield rows, *self.basis.features(self.X[rows])
            else:
                yield rows, self.A[:, rows], self.h[rows]


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

    Source: :eq:`gp-feature-map`.
    """
    basis = Basis.build(kernel, Z, jitter)
    A, h = (None, None) if stream else basis.features(X)
    return Features(basis, X, A, h)


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
    uu, uf = _pseudo_kernels(kernel)
    gradient = {key: np.zeros_like(value, dtype=float) for key, value in kernel.parameters.items()}
    dZ = np.zeros_like(Z)
    S = np.zeros((len(Z), len(Z)))

    for rows, A, h in features.blocks():
        dA, dh = derivatives(rows, A, h)
        dA -= 2 * dh * A  # h = k(x, x) - |a|²
        S += dA @ A.T
        dK_uf = multiply_lower(L_inverse, dA, transposed=True)
        dkernel, dZ_block = uf.vjp(Z, X[rows], dK_uf)
        dZ += dZ_block
        _accumulate(gradient, dkernel)
        _accumulate(gradient, kernel.diagonal_vjp(X[rows], dh))

    dK_uu = _cholesky_pull_back(basis.L, S)
    dkernel, dZ_half = uu.vjp(Z, Z, dK_uu)
    _accumulate(gradient, dkernel)
    jitter_share = basis.jitter * np.trace(dK_uu) / len(Z)
    _accumulate(gradient, uu.diagonal_vjp(Z, np.full(len(Z), jitter_share)))
    gradient["Z"] = dZ + 2 * dZ_half  # Z stands on both sides of K_uu
    return gradient


def _cholesky_pull_back(L, S):
    """dF/dK_uu (M, M) through A = L⁻¹K_uf, from S = dF/dA Aᵀ: −½ L⁻ᵀ sym(S) L⁻¹, sym mirroring the lower triangle."""
    lower = np.tril(S, -1)
    symmetric = np.array(lower + lower.T + np.diag(np.diag(S)), order="F")
    half = solve_lower(L, symmetric, transposed=True)
    return -0.5 * solve_lower(L, np.array(half.T, order="F"), transposed=True)


def _accumulate(total, part):
    for key, value in part.items():
        total[key] = total[key] + value
