"""Threads: one for BLAS inside the sparse routines, several for independent groups of rows.

The sparse routines work on blocks that fit the processor's cache, so a second BLAS thread has nothing to do but wait, and
NumPy's and SciPy's own pools wait for each other: two threads may take several times as long as one. Large
problems use the cores in another way: groups of row blocks are summed in Python threads, and the sums are added in a fixed
order, so that every number of threads gives the same bits. `exact` is left alone, since its large factorisations do gain
from more BLAS threads.
"""

import multiprocessing
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import scipy.linalg  # noqa: F401 - loads the BLAS libraries, which the controller has to find
from threadpoolctl import OpenBLASController, ThreadpoolController

F = TypeVar("F", bound=Callable)


class _OneBlasThread:
    """Decorator and context: BLAS has one thread from the first of overlapping calls to the end of the last.

    BLAS knows one limit for the whole process. If every call restored what it found, the last of two that overlap in
    two Python threads would restore the limit set by the other. `given_up` is the number of threads that BLAS had before.
    """

    def __init__(self) -> None:
        self.pools = ThreadpoolController().select(user_api="blas").lib_controllers
        self.lock, self.calls, self.given_up = threading.Lock(), 0, 1
        self.limited: list = []  # (pool, the threads it had) for pools that had more than one

    def __enter__(self) -> None:
        with self.lock:
            if not self.calls:
                threads = [pool.get_num_threads() for pool in self.pools]
                self.given_up = min(threads, default=1)
                self.limited = [pair for pair in zip(self.pools, threads, strict=True) if pair[1] != 1]
                for pool, _ in self.limited:
                    pool.set_num_threads(1)
                _let_others_set_limits()
            self.calls += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.calls -= 1
            if not self.calls:
                for pool, threads in self.limited:
                    pool.set_num_threads(threads)
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


one_blas_thread = _OneBlasThread()  # costs 4 microseconds a call, and 1 inside another

_chosen: int | None = None


def set_threads(threads: int | None) -> None:
    """Choose how many threads one call may use; None, the default, for as many as BLAS may use.

    That is all cores, unless OPENBLAS_NUM_THREADS, OMP_NUM_THREADS, threadpoolctl or a joblib worker sets fewer, and one
    in a child process or outside the main thread, where other calls are likely to run at the same time. The result is the
    same to the last bit.

    Raises
    ------
    ValueError
        For anything but None or a whole number >= 1.
    """
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1):
        raise ValueError(f"threads = {threads!r} must be a whole number, at least 1, or None for as many as BLAS may use")
    global _chosen
    _chosen = threads


_within = threading.local()


def enter_pool() -> None:
    """Mark this thread as a worker of a call, so that what it calls in its turn starts no further threads."""
    _within.pool = True


def thread_count() -> int:
    """How many threads the call in progress may use."""
    if getattr(_within, "pool", False):
        return 1
    if _chosen is not None:
        return int(_chosen)
    alone = threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None
    return one_blas_thread.given_up if alone else 1


LARGEST_BLOCK = 31 * 2**20  # bytes; glibc ignores blocks above 32 MiB


def keep_freed_memory() -> None:
    """Make glibc keep up to 62 MiB of freed memory, in the whole process; `import pepcore` calls this.

    glibc asks the system for each block above a threshold, and gives it back when it is freed, which costs time for arrays
    that come and go. A block of at most 32 MiB that is freed raises the threshold to its size. So one is made and freed;
    its pages are never touched. Other C libraries are not affected.
    """
    np.empty(LARGEST_BLOCK, dtype=np.uint8)
