"""Small classification problems on which chapters count sweeps."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from pepcore import datasets, training
from pepcore.kernels import SquaredExponential

M = 25


def problems(count=5):
    """Name, kernel, Z (M, D), X (N, D) and y (N,) of the first `count` of five problems; three come with scikit-learn."""
    for name, X, y, kernel in list(_problems())[:count]:
        yield name, kernel, training.choose_pseudo_inputs(X, M), X, y


def _problems():
    """Name, X, y, kernel."""
    bananas = datasets.banana(seed=0, N=150)
    yield "banana", bananas.X, bananas.y, SquaredExponential(10.0, [1.0, 1.0])
    tumours = load_breast_cancer()
    yield ("tumours, D = 30", _scaled(tumours.data)[::4], np.where(tumours.target == 0, 1.0, -1.0)[::4],
           SquaredExponential(10.0, np.full(30, 8.0)))
    wine = load_wine()
    yield ("wine, one in two", _scaled(wine.data)[::2], np.where(wine.target == 2, 1.0, -1.0)[::2],
           SquaredExponential(4.0, np.full(13, 5.0)))
    X = np.random.default_rng(0).uniform(-1.5, 1.5, (150, 2))
    yield "checkerboard", X, np.sign(np.sin(np.pi * X).prod(axis=1)), SquaredExponential(4.0, [0.4, 0.4])
    digits = load_digits()
    chosen = np.flatnonzero((digits.target == 3) | (digits.target == 5))[:150]
    yield ("digits 3 or 5", digits.data[chosen] / 16, np.where(digits.target[chosen] == 3, 1.0, -1.0),
           SquaredExponential(10.0, np.full(64, 3.0)))


def _scaled(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)
