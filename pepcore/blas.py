"""Products with triangular and symmetric matrices that let other Python threads run meanwhile.

SciPy's own wrappers hold Python's global lock, so that two threads are as slow as one. The same routines are reached here
through ctypes, which releases it. All matrices are float64 in Fortran order.
"""

import ctypes
from ctypes import byref, c_double, c_int, c_void_p

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas

Array = NDArray[np.float64]


def _routine(name, arguments):
    """The BLAS routine of this name; BLAS takes every argument, numbers too, as a pointer."""
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = cython_blas.__pyx_capi__[name]
    return ctypes.CFUNCTYPE(None, *[c_void_p] * arguments)(pointer_of(capsule, name_of(capsule)))


_dtrmm, _dsyrk, _dger = _routine("dtrmm", 11), _routine("dsyrk", 10), _routine("dger", 9)
_ONE = c_double(1.0)


def multiply_triangular(T: Array, B: Array, transposed: bool = False) -> None:
    """B ← T B, or Tᵀ B if `transposed`, for lower-triangular T (M, M) and B (M, S), which is written over."""
    _check(T, B, T.shape == 2 * B.shape[:1])
    M, S = map(c_int, B.shape)
    trans = b"T" if transposed else b"N"
    _dtrmm(b"L", b"L", trans, b"N", byref(M), byref(S), byref(_ONE), _data(T), byref(M), _data(B), byref(M))


def add_gram(C: Array, B: Array) -> None:
    """C ← C + B Bᵀ for B (M, S), in the lower triangle of C (M, M) alone."""
    _check(C, B, C.shape == 2 * B.shape[:1])
    M, S = map(c_int, B.shape)
    _dsyrk(b"L", b"N", byref(M), byref(S), byref(_ONE), _data(B), byref(M), byref(_ONE), _data(C), byref(M))


def add_outer(B: Array, m: Array, v: Array) -> None:
    """B ← B + m vᵀ for B (M, S) and contiguous m (M,) and v (S,)."""
    _check(B, m, v, B.shape == m.shape + v.shape)
    M, S, step = *map(c_int, B.shape), c_int(1)
    _dger(byref(M), byref(S), byref(_ONE), _data(m), byref(step), _data(v), byref(step), _data(B), byref(M))


def _check(*arrays_and_fit):
    """A pointer does not say what it points to, so this is the last place where a wrong array can be noticed."""
    *arrays, fit = arrays_and_fit
    if not fit or not all(array.dtype == np.float64 and array.flags.f_contiguous for array in arrays):
        kinds = ", ".join(f"{array.dtype} of shape {array.shape} and strides {array.strides}" for array in arrays)
        raise TypeError(f"expected float64 arrays in Fortran order whose shapes fit; got {kinds}")


def _data(array):
    return array.ctypes.data
