"""Linear algebra of Gaussians: a Cholesky factor that never fails silently, triangular products, and a divergence."""

import ctypes
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_double, c_int, c_void_p
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, blas, cython_blas, cython_lapack, lapack

Array = NDArray[np.float64]
MAX_JITTER = 1e-2


class NotPositiveDefiniteError(LinAlgError):
    """A matrix that must be positive definite is not, even after the largest jitter allowed.

    "{condition}" in the message stands for the condition number of `matrix`, which takes long, and is computed only if somebody
    reads it: many of these errors are caught, and a shorter step is tried.
    """

    def __init__(self, message: str, matrix: Any = None) -> None:
        super().__init__(message)
        self.matrix = matrix

    def __str__(self) -> str:
        message = super().__str__()
        return message if self.matrix is None else message.replace("{condition}", f"{np.linalg.cond(self.matrix):.1e}")


def safe_cholesky(K: Array, scale: float = 1.0, jitter: float = 0.0, name: str = "matrix") -> tuple[Array, float]:
    """Lower Cholesky factor of ``K + jitter * scale * I``, and the jitter needed; it grows tenfold after each failure.

    K (M, M) is not changed. The jitter is relative to `scale`, for a kernel matrix the kernel's variance; from 0 it
    grows to 1e-10 first, at most to 1e-2. The factor L (M, M) is in Fortran order, so that BLAS uses it without a
    copy.

    Raises NotPositiveDefiniteError if K holds NaN or infinity, or if a jitter of 1e-2 does not help; it gives the matrix's
    `name`, size and condition.
    """
    if not np.all(np.isfinite(K)):
        raise NotPositiveDefiniteError(f"{name} ({K.shape[0]} x {K.shape[1]}) holds NaN or infinity, so it has no "
                                       "Cholesky factor; look for extreme hyper-parameters or inputs.")
    while True:
        shifted = np.array(K, dtype=float, order="F")
        shifted.flat[:: len(K) + 1] += jitter * scale  # the diagonal
        L, failed = lapack.dpotrf(shifted, lower=1, clean=1, overwrite_a=1)
        if not failed:
            return L, jitter
        if jitter >= MAX_JITTER:
            raise NotPositiveDefiniteError(f"{name} ({K.shape[0]} x {K.shape[1]}, condition number {{condition}}) is not "
                                           f"positive definite even with a jitter of {jitter:.0e} relative to {scale:.3g}; "
                                           "remove near-duplicate rows, rescale the inputs or choose shorter lengthscales.",
                                           K.copy())
        jitter = min(max(10 * jitter, 1e-10), MAX_JITTER)


def strict_cholesky(K: Array, message: str) -> Array:
    """Lower Cholesky factor of K (M, M), with no jitter to hide a mistake.

    Raises NotPositiveDefiniteError with the caller's message if K is not positive definite.
    """
    L, failed = lapack.dpotrf(K, lower=1, clean=1)
    if failed or not np.all(np.isfinite(L)):
        raise NotPositiveDefiniteError(message)
    return L


def solve_lower(L: Array, B: Array, transposed: bool = False) -> Array:
    """Solve ``L X = B``, or ``Lᵀ X = B`` if `transposed`, for lower-triangular L (M, M) and B (M,) or (M, S).

    It overwrites B when B is a Fortran-ordered matrix, as the block loops of this package pass it; anything else is
    copied first.
    """
    if B.ndim == 1:
        return blas.dtrsv(L, B, lower=1, trans=int(transposed))
    return blas.dtrsm(1.0, L, B, lower=1, trans_a=int(transposed), overwrite_b=1)


def cholesky_solve(L: Array, B: Array) -> Array:
    """Solve ``L Lᵀ X = B`` for the Cholesky factor L (M, M) and B (M,) or (M, S), as `solve_lower`."""
    return solve_lower(L, solve_lower(L, B), transposed=True)


def inverse_lower(L: Array) -> Array:
    """L⁻¹ (M, M) for lower-triangular L (M, M), in Fortran order; NotPositiveDefiniteError for a zero on its diagonal."""
    inverse = np.array(L, order="F")
    M, info = c_int(len(L)), c_int()
    _dtrtri(b"L", b"N", M, _data(inverse), M, info)
    if info.value:
        raise NotPositiveDefiniteError(f"the triangular matrix has a zero in row {info.value - 1} of its diagonal")
    return inverse


def gram_lower(T: Array) -> Array:
    """Tᵀ T (M, M) for lower-triangular T (M, M), in a third of the time of a product that does not skip zeros."""
    return symmetric(lapack.dlauum(T, lower=1)[0])


def cholesky_inverse(L: Array) -> Array:
    """(L Lᵀ)⁻¹ (M, M) from the Cholesky factor L (M, M)."""
    return gram_lower(inverse_lower(L))


def symmetric(lower: Array) -> Array:
    """The symmetric matrix (M, M) whose lower triangle is that of `lower`."""
    half = np.tril(lower)
    half.flat[:: len(half) + 1] *= 0.5  # the diagonal
    return half + half.T


def log_determinant(L: Array) -> float:
    """log |L Lᵀ| from the Cholesky factor L (M, M)."""
    return 2.0 * np.log(np.diag(L)).sum()


def kl_divergence(mean_q: Array, covariance_q: Array, mean_p: Array, covariance_p: Array) -> float:
    """KL(q ‖ p) in nats between two Gaussians, means (M,) and covariances (M, M).

    Raises NotPositiveDefiniteError for a covariance that is singular: with a jitter the divergence would be that of others.
    """
    size = f"({len(mean_q)} x {len(mean_q)}) is not positive definite"
    Lq = strict_cholesky(covariance_q, f"the covariance of q {size}")
    Lp = strict_cholesky(covariance_p, f"the covariance of p {size}")
    root = solve_lower(Lp, np.array(Lq, order="F"))
    shift = solve_lower(Lp, mean_p - mean_q)
    return 0.5 * ((root**2).sum() + shift @ shift - len(mean_q) + log_determinant(Lp) - log_determinant(Lq))


def log1p_ratio(x: ArrayLike) -> Array:
    """log(1 + x)/x for an array x > −1, with its limit 1 at x = 0."""
    x = np.asarray(x, dtype=float)
    safe = np.where(x == 0, 1.0, x)
    return np.where(x == 0, 1.0, np.log1p(safe) / safe)


def log_ratio(kept: Array, removed: Array) -> Array:
    """−log(kept)/removed for arrays with kept + removed = 1, computed from the smaller one so that no digits are lost."""
    most = removed > 0.5
    by_kept = -np.log(kept) / np.where(most, removed, 1.0)
    return np.where(most, by_kept, log1p_ratio(-np.where(most, 0.0, removed)))


# --- products that let other threads run ------------------------------------------------------------------------------
#
# SciPy's own wrappers hold Python's global lock, so that two threads are as slow as one. The same routines are reached here
# through ctypes, which releases it. All matrices are float64 in Fortran order.

_KINDS = {"o": c_char_p, "n": POINTER(c_int), "f": POINTER(c_double), "a": c_void_p}


def _routine(name: str, kinds: str) -> Callable:
    """The BLAS or LAPACK routine of this name; it takes pointers, to options, numbers, factors and arrays."""
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = (cython_blas.__pyx_capi__ | cython_lapack.__pyx_capi__)[name]
    return ctypes.CFUNCTYPE(None, *[_KINDS[kind] for kind in kinds])(  # type: ignore[arg-type]
        pointer_of(capsule, name_of(capsule)))


_dtrmm, _dsyrk = _routine("dtrmm", "oooonnfanan"), _routine("dsyrk", "oonnfanfan")
_dger, _dtrtri = _routine("dger", "nnfananan"), _routine("dtrtri", "oonann")
_ONE = c_double(1.0)


def multiply_lower(T: Array, B: Array, transposed: bool = False) -> Array:
    """B ← T B, or Tᵀ B if `transposed`, for lower-triangular T (M, M) and B (M, S); B is returned."""
    _check(T, out=B, fit=T.shape == 2 * B.shape[:1])
    M, S = map(c_int, B.shape)
    trans = b"T" if transposed else b"N"
    _dtrmm(b"L", b"L", trans, b"N", M, S, _ONE, _data(T), M, _data(B), M)
    return B


def add_gram(C: Array, B: Array, sign: float = 1.0) -> None:
    """C ← C + sign · B Bᵀ for B (M, S), in the lower triangle of C (M, M) alone."""
    _check(B, out=C, fit=C.shape == 2 * B.shape[:1])
    M, S = map(c_int, B.shape)
    _dsyrk(b"L", b"N", M, S, c_double(sign), _data(B), M, _ONE, _data(C), M)


def add_outer(B: Array, m: Array, v: Array) -> Array:
    """B ← B + m vᵀ for B (M, S), m (M,) and v (S,); B is returned."""
    m, v = np.ascontiguousarray(m), np.ascontiguousarray(v)
    _check(m, v, out=B, fit=B.shape == m.shape + v.shape)
    M, S, step = *map(c_int, B.shape), c_int(1)
    _dger(M, S, _ONE, _data(m), step, _data(v), step, _data(B), M)
    return B


def _check(*arrays: Array, out: Array, fit: bool) -> None:
    """A pointer does not say what it points to, so this is the last place where a wrong array can be noticed."""
    if not out.flags.writeable:
        raise ValueError("the array that the product is written into is read-only")
    arrays = (*arrays, out)
    if not fit or not all(array.dtype == np.float64 and array.flags.f_contiguous for array in arrays):
        kinds = ", ".join(f"{array.dtype} of shape {array.shape} and strides {array.strides}" for array in arrays)
        raise TypeError(f"expected float64 arrays in Fortran order whose shapes fit; got {kinds}")


def _data(array: Array) -> int:
    return array.ctypes.data
