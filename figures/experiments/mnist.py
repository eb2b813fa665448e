"""What the two studies on MNIST share: the images, a kernel and places to start from, and their curves."""

from functools import cache

import numpy as np
from scipy.cluster.vq import kmeans2

from pepcore import datasets
from pepcore.kernels import SquaredExponential

BATCH, EPOCHS, RATE = 200, 20, 0.01
CHECKPOINTS = (10, 30, 100, 300, 600, 1000, 2000, 3000, 4000, 5000, 6000)      # steps; 300 are an epoch
KMEANS_ROWS = 5000


@cache
def digits():
    """X (60 000, 784) in [0, 1], y in 0 ... 9, and the same of the 10 000 test images."""
    dataset = datasets.load("mnist")
    train, test = datasets.official_split(dataset)
    X, y = dataset.X.astype(float) / 255, dataset.y.astype(int)
    return X[train], y[train], X[test], y[test]


def start_kernel(X):
    """r² = 2 for a typical pair, as in `training.default_kernel`, but one unit for all pixels: many are nearly always black."""
    return SquaredExponential(4.0, np.full(X.shape[1], np.sqrt(X.var(axis=0).sum())))


def centres(X, count, seed=0):
    """`count` cluster centres of the rows of X (N, D), by k-means: (count, D)."""
    return kmeans2(X, count, iter=10, minit="points", rng=np.random.default_rng(seed))[0]


def curve(row, metric, checkpoints=CHECKPOINTS):
    """Processor seconds and the loss at each checkpoint, of one row of the results."""
    return tuple(np.array([row[f"{name}_{number}"] for number in checkpoints]) for name in ("seconds", metric))
