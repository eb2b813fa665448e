"""Where training starts: a kernel at the data's scales, and pseudo-inputs among the data."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Gaussian, Logit, Probit, StudentT
from pepcore.sweeps import warn
from pepcore.validation import (
    as_generator,
    check_count,
    check_inputs,
    check_kernel,
    check_scale,
    check_targets,
    constant,
)

UNITS_OF_Y = (Gaussian, StudentT)  # y = f + noise
UNITS_OF_F = (*UNITS_OF_Y, Probit, Logit)  # or labels of about the size that f has at the start
FAR = 20  # standard deviations of y from 0 to its mean, from which on learning may take all of y for noise
KMEANS_ROWS = 20_000  # k-means only has to spread Z over the data, for which a sample is enough


def default_kernel(X: ArrayLike, y: ArrayLike) -> SquaredExponential:
    """Squared exponential with variance var(y) and lengthscales √D times the spread of each input; X (N, D), y (N,)."""
    X = check_inputs(X, "X")
    y = check_targets(y, len(X))
    spread = spread_of(X)
    return SquaredExponential(variance_of(y), spread * np.sqrt(X.shape[1]))


def starting_kernel(kernel: Any, X: Array, y: Array, likelihood: Any) -> Any:
    """Check the given kernel, or make the default one, whose variance is 1 unless y has the units of f."""
    if kernel is not None:
        return check_kernel(kernel)
    return default_kernel(X, y if likelihood is None or isinstance(likelihood, UNITS_OF_F) else np.zeros(len(X)))


def choose_pseudo_inputs(X: ArrayLike, M: int, how: str = "kmeans", seed: int | np.random.Generator = 0) -> Array:
    """M starting pseudo-inputs (M, D) for X (N, D): k-means centres, or a random subset of distinct rows.

    Raises ValueError if M is not a whole number >= 1, X has a wrong shape, NaN or fewer than M distinct rows, or
    `how` is neither "kmeans" nor "subset".
    """
    X = check_inputs(X, "X")
    M = check_count(M, "M")
    rng = as_generator(seed, "seed")
    distinct = np.unique(X, axis=0)
    if len(distinct) < M:
        raise ValueError(f"M = {M} pseudo-inputs were asked for, but X has {len(distinct)} distinct rows; give no more "
                         "than that, or your own array Z.")
    subset = distinct[rng.permutation(len(distinct))[:M]]
    if how == "subset":
        return subset
    if how != "kmeans":
        raise ValueError(f'Z must be "kmeans", "subset" or an (M, D) array; got {how!r}.')
    spread = spread_of(X)
    sample = X if len(X) <= KMEANS_ROWS else X[rng.choice(len(X), KMEANS_ROWS, replace=False)]
    return _kmeans(sample / spread, subset / spread) * spread


def _kmeans(X: Array, centres: Array, rounds: int = 10) -> Array:
    """Lloyd's algorithm for X (N, D) from centres (M, D); an emptied cluster keeps its last centre, as good a start as any.

    SciPy's kmeans2 does the same, with a warning that only the filters of the whole process could keep from the user.
    """
    from scipy.cluster.vq import vq  # imported on demand: it would slow down `import pepcore`

    for _ in range(rounds):
        nearest, _ = vq(X, centres)
        count = np.bincount(nearest, minlength=len(centres))
        sums = np.stack([np.bincount(nearest, column, len(centres)) for column in X.T], axis=1)
        centres = np.where(count[:, None] > 0, sums / np.maximum(count, 1)[:, None], centres)
    return centres


def starting_points(Z: str | ArrayLike, X: Array, M: int, rng: np.random.Generator) -> Array:
    """Pseudo-inputs (M, D) chosen as the string Z says, or a copy of the array Z."""
    if isinstance(Z, str):
        return choose_pseudo_inputs(X, M, Z, seed=rng)
    return check_inputs(Z, "Z", columns=X.shape[1], copy=True)


def spread_of(X: Array) -> Array:
    """Standard deviation of each input, 1 for one that is constant but for rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.where(constant(X), 1.0, X.std(axis=0))
    return check_scale(spread, "X")


def warn_of_offset(y: Array) -> None:
    """Issue a UserWarning if the mean of the targets (N,) is far from 0, the mean of f, measured by their spread."""
    mean, spread = float(y.mean()), float(y.std())
    if not constant(y) and abs(mean) > FAR * spread:
        warn(f"the mean of y, {mean:.3g}, is {abs(mean) / spread:.0f} of its standard deviations away from 0, the prior mean "
             "of f; give y - y.mean()", UserWarning)


def variance_of(y: Array) -> float:
    """Variance of the targets, 1 for constant ones."""
    with np.errstate(over="ignore", invalid="ignore"):
        variance = 1.0 if constant(y) else y.var()
    return float(check_scale(variance, "y"))
