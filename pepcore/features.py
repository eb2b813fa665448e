"""The feature map (kernel, Z) -> A, h, and its pull-back.

Under the prior f(x) = a(x)ᵀv + e(x) with v ~ N(0, I): a(x) = L⁻¹k_u(x) are M features, e is an independent residual of
variance h(x) = k(x, x) − |a(x)|². Inference sees only A and h; this module turns its derivatives with respect to them
into derivatives with respect to the kernel and Z. Everything runs over blocks of data that fit the processor's cache.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from pepcore.gaussian import Array, inverse_lower, multiply_lower, safe_cholesky, solve_lower, symmetric
from pepcore.kernels.base import Kernel
from pepcore.threads import enter_pool, thread_count

BLOCK_ELEMENTS = 2**17  # 1 MiB of float64: an M x block array stays in the second-level cache
KEPT_ELEMENTS = 2**21  # numbers in A, 16 MiB; up to here the kernel's results are kept for its derivatives
EFFORT = 2e6  # multiplications, a tenth of a millisecond: parts with fewer are not worth a thread
GROUPS = 16  # a sum over all rows has at most this many parts, whatever the number of threads


def row_blocks(n_rows: int, n_columns: int, elements: int | None = None) -> list[slice]:
    """Slices that cover range(n_rows) in steps such that step * n_columns is about `elements` or `BLOCK_ELEMENTS`."""
    step = max(64, (elements or BLOCK_ELEMENTS) // max(n_columns, 1))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def grouped(blocks: list[slice]) -> list[list[slice]]:
    """The blocks in at most `GROUPS` groups of neighbours."""
    size = -(-len(blocks) // GROUPS)
    return [blocks[start : start + size] for start in range(0, len(blocks), size)]


def _pseudo_kernels(kernel):
    """The kernels of the pseudo-points with each other and with f; that of f itself if u(z) = f(z)."""
    return getattr(kernel, "uu", kernel), getattr(kernel, "uf", kernel)


@dataclass(frozen=True, eq=False)
class Basis:
    """A kernel, M pseudo-inputs, and the Cholesky factor that turns k_u(x) into orthonormal features."""

    kernel: Any  #: of f, with `uf` and `uu` where the pseudo-points are not values of f, see `pepcore.kernels`
    Z: Array  #: (M, D) pseudo-inputs
    L: Array  #: (M, M) lower triangular, L Lᵀ = K_uu + jitter · mean prior variance · I
    jitter: float  #: the relative jitter that was needed

    @classmethod
    def build(cls, kernel: Kernel, Z: Array, jitter: float = 1e-6) -> "Basis":
        """Factorise K_uu for pseudo-inputs Z (M, D); the jitter grows tenfold after a failure (see `safe_cholesky`)."""
        uu, _ = _pseudo_kernels(kernel)
        return cls._factorised(kernel, Z, jitter, uu(Z))

    @classmethod
    def build_with_vjp(cls, kernel: Kernel, Z: Array, jitter: float = 1e-6) -> tuple["Basis", Callable]:
        """As `build`, with the derivatives through K_uu as the kernel's `value_and_vjp` gives them."""
        uu, _ = _pseudo_kernels(kernel)
        K_uu, vjp = uu.value_and_vjp(Z)
        return cls._factorised(kernel, Z, jitter, K_uu), vjp

    @classmethod
    def _factorised(cls, kernel, Z, jitter, K_uu):
        scale = _pseudo_kernels(kernel)[0].diagonal(Z).mean()
        return cls(kernel, Z, *safe_cholesky(K_uu, scale=scale, jitter=jitter, name="K_uu"))

    @cached_property
    def L_inverse(self) -> Array:
        """L⁻¹ (M, M): a product with it takes half the time of solving, and lets other threads run."""
        return inverse_lower(self.L)

    def features(self, X: Array, solve: bool = False) -> tuple[Array, Array]:
        """Features A (M, N) and residual variances h (N,) >= 0 of inputs X (N, D).

        A is in Fortran order: the features of one datum lie next to each other. With `solve` it comes from solving with L
        and not from a product with L⁻¹, whose rounding errors in h are a few times larger.

        Source: :eq:`gp-feature-map`.
        """
        _, uf = _pseudo_kernels(self.kernel)
        A, h = np.empty((len(X), len(self.Z))).T, np.empty(len(X))

        def fill(rows):
            A[:, rows] = uf(X[rows], self.Z).T
            h[rows] = self._whiten(A[:, rows], X[rows], solve)

        list(in_order(fill, self._rows(X)))
        return A, h

    def features_with_vjp(self, X: Array) -> tuple[Array, Array, dict[int, Callable]]:
        """As `features`, with the derivatives through K_fu (see `value_and_vjp`), keyed by the first row of each block."""
        _, uf = _pseudo_kernels(self.kernel)
        A, h = np.empty((len(X), len(self.Z))).T, np.empty(len(X))

        def fill(rows):
            K_fu, vjp = uf.value_and_vjp(X[rows], self.Z)
            A[:, rows] = K_fu.T
            h[rows] = self._whiten(A[:, rows], X[rows])
            return rows.start, vjp

        return A, h, dict(in_order(fill, self._rows(X)))

    def _rows(self, X):
        """Blocks of rows; L⁻¹, which all threads share, is computed first."""
        self.L_inverse  # noqa: B018
        return row_blocks(len(X), len(self.Z))

    def _whiten(self, A, X, solve=False):
        """Turn K_uf into features, in place, and return h."""
        if solve:
            A[:] = solve_lower(self.L, A)
        else:
            multiply_lower(self.L_inverse, A)
        # h >= 0 up to rounding: it is a Schur complement of the prior covariance of (u, f(x))
        return np.maximum(self.kernel.diagonal(X) - np.einsum("nm,nm->n", A.T, A.T), 0.0)


@dataclass(frozen=True, eq=False)
class Features:
    """The features of the training inputs: stored, or recomputed block by block where memory is short.

    For small data sets the derivatives through the kernel are stored too, for each block of rows: see `value_and_vjp`.
    """

    basis: Basis
    X: Array  #: (N, D)
    A: Any  #: (M, N), or None when streaming
    h: Any  #: (N,), or None when streaming
    vjp_uu: Callable  #: derivatives through K_uu
    #: derivatives through K_fu, keyed by the first row of a block; None if they are computed on demand
    vjps: dict[int, Callable] | None

    def rows(self) -> list[slice]:
        """The blocks of rows that all loops run over."""
        return row_blocks(len(self.X), len(self.basis.Z))

    def load(self, rows: slice) -> tuple[Array, Array]:
        """A[:, rows] (M, B) and h[rows] (B,)."""
        if self.A is None or self.h is None:
            return self.basis.features(self.X[rows])
        return self.A[:, rows], self.h[rows]

    def load_with_vjp(self, rows: slice) -> tuple[Array, Array, Callable]:
        """As `load`, with the derivatives through K_fu of these rows."""
        if self.A is None:
            A, h, vjps = self.basis.features_with_vjp(self.X[rows])
            return A, h, vjps[0]
        if self.vjps is not None:
            return *self.load(rows), self.vjps[rows.start]
        _, uf = _pseudo_kernels(self.basis.kernel)
        return *self.load(rows), uf.value_and_vjp(self.X[rows], self.basis.Z)[1]

    def blocks(self) -> Iterator[tuple[slice, Array, Array]]:
        """Yield (rows, A[:, rows], h[rows]) over all data."""
        for rows in self.rows():
            yield rows, *self.load(rows)


def feature_map(kernel: Kernel, Z: Array, X: Array, jitter: float = 1e-6, stream: bool = False) -> Features:
    """Features of X (N, D) for pseudo-inputs Z (M, D).

    The jitter is relative to the kernel's variance. With `stream` no (M, N) array is kept: `Features.load` recomputes
    the features each time.

    Source: :eq:`gp-prior-split`, :eq:`gp-feature-map`.
    """
    basis, vjp_uu = Basis.build_with_vjp(kernel, Z, jitter)
    if stream:
        return Features(basis, X, None, None, vjp_uu, None)
    if len(X) * len(Z) > KEPT_ELEMENTS:
        return Features(basis, X, *basis.features(X), vjp_uu, None)
    A, h, vjps = basis.features_with_vjp(X)
    return Features(basis, X, A, h, vjp_uu, vjps)


def pull_back(features: Features, dA: Array, dh: Array) -> dict[str, Any]:
    """Turn derivatives with respect to the features into derivatives with respect to kernel and Z.

    The transpose of `feature_map`: for F(A, h), dF = <dA, A'> + <dh, h'>.

    Parameters
    ----------
    features : Features, as `feature_map(kernel, Z, X)` returned them
    dA, dh : (M, N) and (N,), dF/dA at fixed h and dF/dh at fixed A

    Returns a dict with the kernel's parameters and "Z" (M, D), in natural units.
    Raises ValueError for other shapes.
    Source: :eq:`gp-pull-back`.
    """
    M, N = len(features.basis.Z), len(features.X)
    if np.shape(dA) != (M, N) or np.shape(dh) != (N,):
        raise ValueError(f"dA must have shape {(M, N)} and dh {(N,)}, as A and h have; got {np.shape(dA)} and "
                         f"{np.shape(dh)}.")
    return pull_back_blocks(features, lambda rows, A, h: (np.array(dA[:, rows], order="F"), dh[rows]))


def pull_back_blocks(features: Features, derivatives: Callable) -> dict[str, Any]:
    """`pull_back` with the derivatives computed block by block, so that no second (M, N) array is needed.

    `derivatives` maps (rows, A (M, B), h (B,)) to dA (M, B), a fresh array in Fortran order that is overwritten, and
    dh (B,). Several threads may call it at the same time.

    Source: :eq:`gp-total`, :eq:`gp-pull-back`.
    """

    def through_features(rows: slice, A: Array, h: Array, T: Array) -> tuple[Array, Array]:
        dA, dh = derivatives(rows, A, h)
        dA -= 2 * dh * A  # h = k(x, x) - |a|²
        T += dA @ A.T
        multiply_lower(features.basis.L_inverse, dA, transposed=True)
        return dA, dh

    return through_pseudo_points(features, *through_data(features, through_features))


def through_data(features: Features, derivatives: Callable) -> tuple[dict[str, Any], Array]:
    """The part of `pull_back_blocks` that is a sum over data.

    `derivatives` maps (rows, A, h, T) to dK_uf (M, B), in Fortran order, and dh (B,), and may add to T (M, M).
    Returns a dict of the derivatives in the kernel's parameters and "Z", through K_uf and the variance of f; and T.
    """
    basis = features.basis
    kernel, M = basis.kernel, len(basis.Z)
    basis.L_inverse  # noqa: B018 - computed here, once, and not by every thread

    def sums(group):
        gradient: dict[str, Any] = {}
        T = np.zeros((M, M), order="F")
        for rows in group:
            A, h, vjp = features.load_with_vjp(rows)
            dK_uf, dh = derivatives(rows, A, h, T)
            dkernel, _, dZ = vjp(dK_uf.T, first=False, second=True)
            accumulate(gradient, dkernel | {"Z": dZ})
            accumulate(gradient, kernel.diagonal_vjp(features.X[rows], dh))
        return gradient, T

    return add_up(sums, grouped(features.rows()))


def through_pseudo_points(features: Features, gradient: dict[str, Any], T: Array) -> dict[str, Any]:
    """Add to the gradient the part through K_uu, given the lower triangle of T = Σ dA Aᵀ (M, M)."""
    basis = features.basis
    uu, _ = _pseudo_kernels(basis.kernel)
    dK_uu = cholesky_pull_back(partial(solve_lower, basis.L, transposed=True), T)
    dkernel, dZ_half, _ = features.vjp_uu(dK_uu.T)  # symmetric; its transpose has K_uu's memory order
    jitter_share = basis.jitter * np.trace(dK_uu) / len(basis.Z)
    accumulate(gradient, dkernel | {"Z": 2 * dZ_half})  # Z is both arguments of K_uu
    accumulate(gradient, uu.diagonal_vjp(basis.Z, np.full(len(basis.Z), jitter_share)))
    return gradient


def in_order(work: Callable[[Any], Any], parts: Sequence[Any], effort: float = np.inf) -> Iterator[Any]:
    """Yield work(part) for each part, in order; in threads, unless a part's `effort`, in multiplications, is small."""
    threads = min(thread_count(), len(parts))
    if threads < 2 or effort < EFFORT:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(threads, initializer=enter_pool) as pool:
        # each part in a copy of the caller's context, which holds NumPy's way with floating-point errors
        futures = [pool.submit(copy_context().run, work, part) for part in parts]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def add_up(work: Callable[[Any], tuple], parts: Sequence[Any], effort: float = np.inf) -> tuple:
    """The sum over the parts of work(part), a tuple of arrays, numbers and dicts of them, in the order of the parts."""
    values = in_order(work, parts, effort)
    total = list(next(values))
    for more in values:
        for i, value in enumerate(more):
            if isinstance(value, dict):
                accumulate(total[i], value)
            else:
                total[i] += value
    return tuple(total)


def cholesky_pull_back(back: Callable, T: Array) -> Array:
    """dF/dK (M, M) for K = LLᵀ from T = −Lᵀ dF/dL: −½ L⁻ᵀ sym(T) L⁻¹, sym mirroring the lower triangle.

    `back` maps a matrix B in Fortran order to L⁻ᵀB and may overwrite B. Through A = L⁻¹K_uf, T = dF/dA Aᵀ.
    """
    half = back(np.asfortranarray(symmetric(T)))
    return -0.5 * back(np.array(half.T, order="F"))


def accumulate(total: dict, part: dict) -> None:
    """Add the values of the dict `part` to those of `total`."""
    for key, value in part.items():
        total[key] = total[key] + value if key in total else value
