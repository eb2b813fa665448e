"""Processor time of one evidence and its gradient, full GP against M = 100 pseudo-points, as N grows.

Only the growth with N travels to another machine. Processor time of one thread is measured, which other programs disturb
less than the clock on the wall; run it with `--jobs 1` all the same.
"""

import time

import numpy as np

from pepcore import exact, power_ep
from pepcore.kernels import SquaredExponential

OUTPUTS = ("fastest",)
FULL = (250, 500, 1000, 2000, 4000)
SPARSE = (250, 500, 1000, 2000, 4000, 8000, 16000, 32000, 64000)
M, D, REPEATS = 100, 5, 3


def grid():
    """The full GP up to the largest N that takes seconds, the sparse one beyond it."""
    yield from ({"method": "full", "N": N} for N in FULL)
    yield from ({"method": "sparse", "N": N} for N in SPARSE)


def compute(method, N):
    """The fastest of a few repetitions, which other programs disturb least."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = np.sin(X.sum(axis=1)) + 0.1 * rng.standard_normal(N)
    kernel = SquaredExponential(1.0, np.full(D, 2.0))
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        fit = exact.regression(kernel, X, y) if method == "full" else power_ep.regression(kernel, X[:M], X, y)
        _ = fit.gradient
        seconds.append(time.process_time() - start)
    return {"fastest": float(f"{min(seconds):.3g}")}
