"""Threads: one for BLAS inside the sparse routines, several for independent groups of rows.

The sparse routines work on blocks that fit the processor's cache, so a second BLAS thread has nothing to do but wait, and
NumPy's and SciPy's own pools wait for each other: on two cores two threads took three to six times as long as one. Large
problems use the cores in another way: groups of row blocks are summed in Python threads, and the sums are added in a fixed
order, so that every number of threads gives the same bits. `exact` is left alone, since its large factorisations do gain
from more BLAS threads.
"""

import ctypes
import multiprocessing
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_double, c_int, c_void_p
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import scipy.linalg  # noqa: F401 - loads the BLAS libraries, which the controller has to find
from numpy.typing import NDArray
from scipy.linalg import cython_blas
from threadpoolctl import OpenBLASController, ThreadpoolController

Array = NDArray[np.float64]
F = TypeVar("F", bound=Callable)


class _OneBlasThread:
    """Decorator and context: BLAS has one thread from the first of overlapping calls to the end of the last.

    BLAS knows one limit for the whole process. Were every call to restore what it found, the last of two that overlap in
    two Python threads would restore the limit of the other. `given_up` is the number of threads that BLAS had before.
    """

    def __init__(self) -> None:
        self.controller, self.lock, self.calls = ThreadpoolController(), threading.Lock(), 0
        self.limit: Any = None
        self.given_up = 1

    def __enter__(self) -> None:
        with self.lock:
            if not self.calls:
                pools = self.controller.select(user_api="blas").lib_controllers
                self.given_up = min((pool.get_num_threads() for pool in pools), default=1)
                self.limit = self.controller.limit(limits=1, user_api="blas")
                _let_others_set_limits()
            self.calls += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.calls -= 1
            if not self.calls:
                self.limit.restore_original_limits()
                _let_others_set_limits()
                self.given_up = 1

    def __call__(self, function: F) -> F:
        # not contextlib's ContextDecorator: a warning would then be blamed on a line of contextlib
        @wraps(function)
        def limited(*args: Any, **options: Any) -> Any:
            with self:
                return function(*args, **options)

        return cast(F, limited)


def _let_others_set_limits():
    """threadpoolctl >= 3.8 heeds only the Python thread that first set a limit, but the last to leave may be another one."""
    getattr(OpenBLASController, "clear_controlling_thread", lambda: None)()


one_blas_thread = _OneBlasThread()  # costs 11 microseconds a call, and 1 inside another

_chosen: int | None = None


def set_threads(threads: int | None) -> None:
    """Choose how many threads one call may use; None, the default, for as many as BLAS may use.

    These are all cores, unless OPENBLAS_NUM_THREADS, OMP_NUM_THREADS, threadpoolctl or a joblib worker sets fewer, and one
    in a child process or outside the main thread, where other calls are likely to run at the same time. The result is the
    same to the last bit.

    Raises
    ------
    ValueError
        For anything but None or a whole number, at least 1.
    """
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1):
        raise ValueError(f"threads = {threads!r} must be a whole number, at least 1, or None for as many as BLAS may use")
    global _chosen
    _chosen = threads


def thread_count() -> int:
    """How many threads the call in progress may use."""
    if _chosen is not None:
        return int(_chosen)
    alone = threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None
    return one_blas_thread.given_up if alone else 1


def in_order(work: Callable[[Any], Any], parts: Sequence[Any]) -> Iterator[Any]:
    """Yield work(part) for each of the parts, in their order, computed by `thread_count()` threads."""
    threads = min(thread_count(), len(parts))
    if threads < 2:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, parts)


LARGEST_BLOCK = 31 * 2**20  # bytes; anything above 32 MiB leaves the threshold as it is


def keep_freed_memory() -> None:
    """Free one large block, whose pages are never touched, so that up to 62 MiB of freed memory is kept from now on."""
    np.empty(LARGEST_BLOCK, dtype=np.uint8)


# --- products that let other threads run ------------------------------------------------------------------------------
#
# SciPy's own wrappers hold Python's global lock, so that two threads are as slow as one. The same routines are reached here
# through ctypes, which releases it. All matrices are float64 in Fortran order.


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
