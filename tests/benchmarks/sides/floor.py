"""The floor: one product of an (M, N) and an (N, M) array, which no evaluation of a sparse method can do without."""

import numpy as np


def product(X, y, Z, done):
    rng = np.random.default_rng(0)
    left, right = rng.random((len(Z), len(X))), rng.random((len(X), len(Z)))
    while True:
        left @ right
        done()
