"""The data of the benchmarks: NumPy alone, the same in every environment."""

import numpy as np


def regression(N, D, M):
    """Inputs X (N, D), targets y (N,) and pseudo-inputs Z (M, D)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = np.sin(X.sum(1)) + 0.1 * rng.normal(size=N)
    return X, y, X[rng.choice(N, M, replace=False)].copy()


def probit(N, D, M):
    """Inputs X (N, D), labels −1 and +1 (N,) and pseudo-inputs Z (M, D)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = np.sign(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=N))
    return X, y, X[:M].copy()


def classes(C, D, M):
    """Inputs X (2000, D), labels 0 ... C − 1 (2000,) and pseudo-inputs Z (M, D)."""
    rng = np.random.default_rng(0)
    X = rng.random((2000, D))
    y = rng.integers(0, C, 2000)
    y[:C] = np.arange(C)  # no class is empty
    return X, y, X[:M].copy()


def two_bases(N, D, beta, gamma):
    """Inputs X (N, D), targets y (N,), and the two bases (beta, D) and (gamma, D)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = np.sin(X[:, 0]) + np.cos(X[:, 1]) + 0.3 * rng.normal(size=N)
    rows = rng.permutation(N)
    return X, y, X[rows[:beta]].copy(), X[rows[beta : beta + gamma]].copy()


def bundled(name):
    """X, y, X_test, y_test of a set that scikit-learn brings along: its first ten inputs, standardised; a fifth is test data."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    X = X[:, :10]
    rows = np.random.default_rng(0).permutation(len(X))
    test, train = rows[: len(X) // 5], rows[len(X) // 5 :]
    X = (X - X[train].mean(0)) / X[train].std(0)
    if y.dtype.kind == "f":
        y = (y - y[train].mean()) / y[train].std()
    return X[train], y[train], X[test], y[test]
