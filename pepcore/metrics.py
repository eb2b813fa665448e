"""How good a prediction is.

Regression metrics take targets y (S,) and the mean and variance, (S,) each, that are predicted for y (noise included);
binary ones labels y (S,) in {−1, +1} and the probability p (S,) of +1; multi-class ones classes y (S,), 0 ... C − 1,
and probabilities p (S, C). Losses are averaged over the test points and in nats; smaller is better for all metrics.
The two "standardised" ones divide by, or subtract, the loss of the trivial predictor: the Gaussian with the mean and the
variance of the training targets y_train (N,), which ignores the inputs. All raise ValueError for wrong shapes, no
points, unknown labels, probabilities outside [0, 1], variances that are not positive, or values that are not
finite.
"""

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.validation import as_real, check_all_positive, check_finite, check_targets

ROUNDING = 1e-14  # of a mean, relative to the largest of the numbers averaged


def rmse(y: ArrayLike, mean: ArrayLike) -> float:
    """Root mean squared error, √(1/S Σ (yₛ − meanₛ)²), in the units of y (S,) and of its predicted mean (S,)."""
    return float(np.sqrt(_mean_squared(*_pair(y, mean))))


def smse(y: ArrayLike, mean: ArrayLike, y_train: ArrayLike) -> float:
    """Standardised mean squared error, Σ (yₛ − meanₛ)² / Σ (yₛ − ȳ)² with ȳ the mean of y_train (N,); no unit.

    0 is perfect and 1 is what the trivial predictor reaches. Rasmussen & Williams divide by the variance of the test
    targets; the denominator here is that variance plus (mean of y − ȳ)². It is the same for every method on a split.

    Also raises ValueError if every target equals ȳ, so that there is nothing to explain.
    Source: rasmussen2006 section 2.5; bui2017 section 4.1; :eq:`gp-metrics`, :eq:`wr-losses`.
    """
    (y, mean), y_train = _pair(y, mean), _vector(y_train, "y_train")
    trivial = _mean_squared(y, y_train.mean())
    if trivial <= (ROUNDING * np.abs(y_train).max()) ** 2:
        raise ValueError("every y equals the mean of y_train, so the standardised error is 0/0; use rmse instead.")
    return float(_mean_squared(y, mean) / trivial)


def nll(y: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> float:
    """Mean negative log predictive density, 1/S Σ ½ log(2π varₛ) + ½ (yₛ − meanₛ)²/varₛ, in nats.

    `variance` (S,) is that of y, latent variance plus noise, in squared units of y. Source: :eq:`gp-metrics`.
    """
    y, mean = _pair(y, mean)
    variance = check_all_positive(check_targets(variance, len(y), "variance", "element of y"), "variance")
    return float(_gaussian_loss(y, mean, variance).mean())


def smll(y: ArrayLike, mean: ArrayLike, variance: ArrayLike, y_train: ArrayLike) -> float:
    """Standardised mean log loss: `nll` minus the `nll` of the trivial predictor N(mean, variance of y_train), in nats.

    The sign is that of Rasmussen & Williams and of bui2017: 0 is the trivial predictor, negative is better than it.

    Also raises ValueError if the training targets y_train (N,) are all equal.
    Source: rasmussen2006 section 2.5; bui2017 section 4.1; :eq:`gp-metrics`, :eq:`wr-losses`.
    """
    y_train = _vector(y_train, "y_train")
    if np.ptp(y_train) == 0:
        raise ValueError("y_train holds one value only, so the trivial predictor has variance 0; use nll instead.")
    y = _vector(y, "y")
    trivial = _gaussian_loss(y, y_train.mean(), y_train.var()).mean()
    return float(nll(y, mean, variance) - trivial)


def error_rate(y: ArrayLike, prediction: ArrayLike) -> float:
    """Fraction of test points whose most probable class is wrong.

    `prediction` holds the probabilities of y = +1 (S,), where exactly ½ is half an error, or those of all classes (S, C),
    where the first of the largest counts. Source: :eq:`gp-metrics`.
    """
    if np.ndim(prediction) == 2:
        y, prediction = _class_probabilities(y, prediction)
        return float((prediction.argmax(1) != y).mean())
    y, p = _binary(y, prediction)
    return float(np.where(p == 0.5, 0.5, (p > 0.5) != (y > 0)).mean())


def nll_binary(y: ArrayLike, p: ArrayLike) -> float:
    """Mean negative log probability of the true label, −1/S Σ log p(yₛ), in nats; infinite if a probability is 0.

    Source: :eq:`gp-metrics`.
    """
    y, p = _binary(y, p)
    return _mean_negative_log(np.where(y > 0, p, 1 - p))


def nll_classes(y: ArrayLike, p: ArrayLike) -> float:
    """Mean negative log probability of the true class, −1/S Σ log p(s, yₛ), in nats; infinite if a probability is 0.

    Also raises ValueError for rows of p (S, C) that do not sum to one. Source: :eq:`gp-metrics`.
    """
    y, p = _class_probabilities(y, p)
    return _mean_negative_log(p[np.arange(len(y)), y])


# --- losses -----------------------------------------------------------------------------------------------------------


def _mean_squared(y: Array, mean: float | Array) -> float:
    return ((y - mean) ** 2).mean()


def _gaussian_loss(y: Array, mean: float | Array, variance: float | Array) -> Array:
    return 0.5 * (np.log(2 * np.pi * variance) + (y - mean) ** 2 / variance)


def _mean_negative_log(p: Array) -> float:
    with np.errstate(divide="ignore"):  # log 0 = −inf is the answer, not an accident
        return float(-np.log(p).mean())


# --- checks -----------------------------------------------------------------------------------------------------------


def _vector(value: ArrayLike, name: str) -> Array:
    value = as_real(value, name)
    if value.ndim != 1 or value.size == 0:
        raise ValueError(f"{name} has shape {value.shape}, expected a vector with at least one element.")
    return check_finite(value, name)


def _pair(y: ArrayLike, mean: ArrayLike) -> tuple[Array, Array]:
    y = _vector(y, "y")
    return y, check_targets(mean, len(y), "mean", "element of y")


def _probabilities(p: Array, name: str) -> Array:
    if ((p < 0) | (p > 1)).any():
        raise ValueError(f"{name} must hold probabilities in [0, 1]; got values from {p.min():.6g} to {p.max():.6g}.")
    return p


def _binary(y: ArrayLike, p: ArrayLike) -> tuple[Array, Array]:
    y = _vector(y, "y")
    if not np.isin(y, (-1, 1)).all():
        raise ValueError(f"y must hold the labels -1 and +1, got {np.unique(y)[:5]}; for labels 0 and 1 give 2 * y - 1.")
    return y, _probabilities(check_targets(p, len(y), "p", "element of y"), "p")


def _class_probabilities(y: ArrayLike, p: ArrayLike) -> tuple[np.ndarray, Array]:
    y, p = _vector(y, "y"), check_finite(as_real(p, "p"), "p")
    if p.ndim != 2 or len(p) != len(y):
        raise ValueError(f"p has shape {p.shape}, expected ({len(y)}, C): one row per label, one column per class.")
    if not np.isin(y, np.arange(p.shape[1])).all():
        raise ValueError(f"y must hold classes 0 ... {p.shape[1] - 1}, as p has that many columns; got "
                         f"{np.unique(y)[:5]}.")
    if not np.allclose(_probabilities(p, "p").sum(1), 1, rtol=0, atol=1e-6):
        raise ValueError("every row of p must sum to one, to within 1e-6.")
    return y.astype(int), p
