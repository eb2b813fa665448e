"""Problems that several tests share, and what they measure them with."""

import os
import subprocess
import sys
import tracemalloc

import numpy as np
from conftest import ROOT

from pepcore.datasets import Dataset
from pepcore.gaussian import safe_cholesky
from pepcore.kernels import SquaredExponential


def three_classes(seed=0, N=1000, lengthscale=1.0):
    """Three classes in the plane: y is the index of the largest of three GP draws, on inputs uniform in [−2.5, 2.5]²."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.5, 2.5, (N, 2))
    kernel = SquaredExponential(1.0, lengthscale)
    L, _ = safe_cholesky(kernel(X), scale=1.0, jitter=1e-10, name="K")
    f = (L @ rng.normal(size=(N, 3))).T
    return Dataset("three classes", X, f.argmax(0).astype(float), "multiclass", truth={"f": f, "kernel": kernel})


def central_differences(function, point, step=1e-6):
    """Central differences of a scalar function, shaped like `point`."""
    point = np.array(point, dtype=float)
    gradient = np.zeros_like(point)
    for place in np.ndindex(point.shape):
        shift = np.zeros_like(point)
        shift[place] = step
        gradient[place] = (function(point + shift) - function(point - shift)) / (2 * step)
    return gradient


def slope(function, step=1e-3):
    """The derivative of a function of one number at 0, by differences of sixth order."""
    one, two, three = (function(k * step) - function(-k * step) for k in (1, 2, 3))
    return (45 * one - 9 * two + three) / (60 * step)


def peak(work):
    """The most bytes that Python's objects took at once while `work` ran."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def python(code, **environment):
    """What code prints in a process of its own, which finds the package and not what lies beside it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT / "tests",
                          env=environment).stdout
