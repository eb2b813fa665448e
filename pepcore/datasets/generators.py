"""Synthetic problems, the same for the same seed on every machine, with their truth.

Each function takes a seed, an int or a numpy Generator, and returns a `Dataset` whose `truth` holds what real data hide.
ValueError for sizes that are not whole numbers >= 1, and for scales and variances out of range.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from pepcore.datasets.catalogue import Dataset
from pepcore.gaussian import Array, safe_cholesky
from pepcore.kernels import SquaredExponential
from pepcore.kernels.base import Kernel
from pepcore.validation import as_generator, as_real, check_count, check_not_negative, check_number, check_positive


def toy_ard_gp(
    seed: int | np.random.Generator = 0, N: int = 1000, D: int = 5, noise: float = 0.1,
    lengthscales: ArrayLike | None = None,
) -> Dataset:
    """Regression data drawn from a GP with an ARD squared exponential kernel of variance one.

    bui2017 gives the size (30 sets of 1000 points in 5-D, split 50:50) but neither the hyper-parameters nor the inputs;
    here the inputs are standard normal and each seed draws its own lengthscales.

    Parameters
    ----------
    noise : float, noise variance; the prior variance is 1
    lengthscales : (D,), optional; by default log-uniform between 1 and 5, in standard deviations of the inputs

    Returns a Dataset with X (N, D), y (N,) and truth f (N,), kernel, noise.
    Source: bui2017 section 4.1, figures 3 and 8 to 13.
    """
    N, D = check_count(N, "N"), check_count(D, "D")
    noise = check_not_negative(noise, "noise", "it is a variance")
    rng = as_generator(seed, "seed")
    if lengthscales is None:
        lengthscales = 5.0 ** rng.uniform(size=D)
    kernel = SquaredExponential(1.0, as_real(lengthscales, "lengthscales"))
    X = rng.normal(size=(N, D))
    f = _gp_draws(kernel, X, 1, rng)[0]
    y = f + np.sqrt(noise) * rng.normal(size=N)
    return Dataset("toy_ard_gp", X, y, "regression", truth={"f": f, "kernel": kernel, "noise": noise})


def snelson_like(seed: int | np.random.Generator = 0, N: int = 200, noise: float = 0.06) -> Dataset:
    """Regression on the line with the look of the data of snelson2006: inputs in [0, 6], a wiggle of amplitude one.

    The function is ⅔ sin(3x) + ½ cos(1.3x + 1) for every seed; the seed sets inputs and noise.

    Returns a Dataset with X (N, 1) sorted, y (N,) and truth f (N,), noise (variance), function (x -> f).
    """
    N = check_count(N, "N")
    noise = check_not_negative(noise, "noise", "it is a variance")
    rng = as_generator(seed, "seed")
    x = np.sort(rng.uniform(0, 6, N))
    f = _wiggle(x)
    y = f + np.sqrt(noise) * rng.normal(size=N)
    return Dataset("snelson_like", x[:, None], y, "regression", truth={"f": f, "noise": noise, "function": _wiggle})


def chain_1d(seed: int | np.random.Generator = 3, N: int = 8) -> Dataset:
    """A few binary labels on a line, drawn from the model that EP will fit, for stepping from prior to posterior.

    Inputs are spread over [−3, 3], f ~ GP(0, SquaredExponential(4, 1)), and y = +1 with probability Φ(f).

    Returns a Dataset with X (N, 1) sorted, y (N,) in {−1, +1} and truth f (N,), kernel.
    Source: for csato2002 figure 4.1, which shows no particular data.
    """
    N = check_count(N, "N")
    rng = as_generator(seed, "seed")
    x = -3 + 6 * (np.arange(N) + rng.uniform(0.2, 0.8, N)) / N
    kernel = SquaredExponential(4.0, 1.0)
    f = _gp_draws(kernel, x[:, None], 1, rng)[0]
    return Dataset("chain_1d", x[:, None], _probit_labels(f, rng), "binary", truth={"f": f, "kernel": kernel})


def banana(seed: int | np.random.Generator = 0, N: int = 400, steepness: float = 3.0) -> Dataset:
    """Two classes in the plane, one bent around the other, with a boundary that is known: the parabola x₂ = x₁² − 1.

    Inputs are standard normal, f(x) = steepness · (x₂ + 1 − x₁²)/√(1 + 4x₁²), the distance to the parabola to first
    order times `steepness`, and y = +1 with probability Φ(f).

    Returns a Dataset with X (N, 2), y (N,) in {−1, +1} and truth f (N,), function ((N, 2) -> f).
    Source: for bui2017 figure 23, whose data are not given.
    """
    N, steepness = check_count(N, "N"), check_number(steepness, "steepness")
    rng = as_generator(seed, "seed")
    X = rng.normal(size=(N, 2))
    function = partial(_distance_to_parabola, steepness=steepness)
    f = function(X)
    return Dataset("banana", X, _probit_labels(f, rng), "binary", truth={"f": f, "function": function})


def factors(seed: int | np.random.Generator = 0, N: int = 5, scale: float = 0.3) -> Dataset:
    """Thresholds for one number: θ ~ N(0, 1) and factors Φ(yₙ (θ − xₙ)/scale), a one-dimensional product to approximate.

    Returns a Dataset with X (N, 1) the thresholds, y (N,) in {−1, +1} on which side θ was seen, and truth theta, scale.
    Source: for villacampa2017 figure 2.
    """
    N, scale = check_count(N, "N"), check_positive(scale, "scale")
    rng = as_generator(seed, "seed")
    theta, x = rng.normal(), rng.normal(size=N)
    y = _probit_labels((theta - x) / scale, rng)
    return Dataset("factors", x[:, None], y, "binary", truth={"theta": theta, "scale": scale})


def stream(
    seed: int | np.random.Generator = 0, *,
    rows: int = 5_000_000, block: int = 10_000, D: int = 8, noise: float = 0.1, lengthscale: float = 2.0,
    features: int = 128,
) -> Iterator[Dataset]:
    """Regression data too large for memory: an iterator of blocks drawn from one random function.

    The function is a sum of `features` random cosines, close to a draw of a GP with a squared exponential kernel of
    variance one; inputs are standard normal. A block depends on the seed, on its number and on its size alone.

    Returns an iterator of Dataset with X (block, D), y (block,) and truth f (block,), noise; the last block may be shorter.
    """
    D, features = check_count(D, "D"), check_count(features, "features")
    lengthscale = check_positive(lengthscale, "lengthscale")
    noise = check_not_negative(noise, "noise", "it is a variance")
    rows, block = check_count(rows, "rows"), check_count(block, "block")
    return _blocks(as_generator(seed, "seed"), rows, block, D, noise, lengthscale, features)


def _blocks(
    root: np.random.Generator, rows: int, block: int, D: int, noise: float, lengthscale: float, features: int
) -> Iterator[Dataset]:
    (rng,) = root.spawn(1)
    frequencies = rng.normal(size=(D, features)) / lengthscale
    phases = rng.uniform(0, 2 * np.pi, features)
    weights = rng.normal(size=features) * np.sqrt(2 / features)
    for start in range(0, rows, block):
        (rng,) = root.spawn(1)
        X = rng.normal(size=(min(block, rows - start), D))
        f = np.cos(X @ frequencies + phases) @ weights
        y = f + np.sqrt(noise) * rng.normal(size=len(X))
        yield Dataset("stream", X, y, "regression", truth={"f": f, "noise": noise})


def _wiggle(x: Array) -> Array:
    """What `snelson_like` draws around, (N,) -> (N,); a function of the module, so that the data set can be pickled."""
    return 2 / 3 * np.sin(3 * x) + 0.5 * np.cos(1.3 * x + 1)


def _distance_to_parabola(X: Array, steepness: float) -> Array:
    """The latent function of `banana`, (N, 2) -> (N,)."""
    return steepness * (X[:, 1] + 1 - X[:, 0] ** 2) / np.sqrt(1 + 4 * X[:, 0] ** 2)


def _gp_draws(kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
    """`size` draws (size, N) of a GP at X (N, D), with a relative jitter of 1e-10."""
    L, _ = safe_cholesky(kernel(X), scale=kernel.diagonal(X).mean(), jitter=1e-10, name="K")
    return (L @ rng.normal(size=(len(X), size))).T


def _probit_labels(f: Array, rng: np.random.Generator) -> Array:
    """Labels −1, +1, with +1 at probability Φ(f): the sign of f plus unit noise."""
    return np.where(f + rng.normal(size=len(f)) > 0, 1.0, -1.0)
