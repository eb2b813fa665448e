"""The toy problem of the chapter on decoupled bases: a slow wave with a fast one on it, and too few points for the fast one."""

import numpy as np

from pepcore.kernels import SquaredExponential

NOISE = 0.04
KERNEL = SquaredExponential(variance=1.0, lengthscales=0.35)


def data(seed=0, N=200):
    """X (N, 1), sorted, and y (N,)."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 10, N))
    return x[:, None], np.sin(x) + 0.6 * np.sin(4 * x) + np.sqrt(NOISE) * rng.normal(size=N)


def points(X, M=10, G=10, seed=1):
    """beta (M, 1), evenly spaced, and gamma (G, 1), the first of one random order of the inputs."""
    return np.linspace(0.3, 9.7, M)[:, None], np.random.default_rng(seed).permutation(X)[:G]
