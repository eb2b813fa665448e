"""One BLAS thread for the sparse routines.

They work on blocks that fit the processor's cache, so a second thread has nothing to do but wait, and NumPy's and SciPy's
own pools wait for each other: on two cores two threads took three to six times as long as one. Run independent fits in
parallel processes instead. `exact` is left alone, since its large factorisations do gain from more threads.
"""

from functools import wraps
from threading import Lock

import numpy as np
import scipy.linalg  # noqa: F401 - loads the BLAS libraries, which the controller has to find
from threadpoolctl import OpenBLASController, ThreadpoolController


class _OneBlasThread:
    """Decorator and context: BLAS has one thread from the first of overlapping calls to the end of the last.

    BLAS knows one limit for the whole process. Were every call to restore what it found, the last of two that overlap in
    two Python threads would restore the limit of the other.
    """

    def __init__(self):
        self.controller, self.lock, self.calls, self.limit = ThreadpoolController(), Lock(), 0, None

    def __enter__(self):
        with self.lock:
            if not self.calls:
                self.limit = self.controller.limit(limits=1, user_api="blas")
                _let_others_set_limits()
            self.calls += 1

    def __exit__(self, *_):
        with self.lock:
            self.calls -= 1
            if not self.calls:
                self.limit.restore_original_limits()
                _let_others_set_limits()

    def __call__(self, function):
        # not contextlib's ContextDecorator: a warning would then be blamed on a line of contextlib
        @wraps(function)
        def limited(*args, **options):
            with self:
                return function(*args, **options)

        return limited


def _let_others_set_limits():
    """threadpoolctl >= 3.8 heeds only the Python thread that first set a limit, but the last to leave may be another one."""
    getattr(OpenBLASController, "clear_controlling_thread", lambda: None)()


one_blas_thread = _OneBlasThread()  # costs 11 microseconds a call, and 1 inside another


LARGEST_BLOCK = 31 * 2**20  # bytes; anything above 32 MiB leaves the threshold as it is


def keep_freed_memory():
    """Free one large block, whose pages are never touched, so that up to 62 MiB of freed memory is kept from now on."""
    np.empty(LARGEST_BLOCK, dtype=np.uint8)
