"""Problems that several tests share."""

import numpy as np

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
