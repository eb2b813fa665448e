"""Where the mass of a tilted distribution N(f; mean, variance) p(y|f)^α lies: the windows that quadrature integrates over."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pepcore.gaussian import Array

WINDOW = 8.3  # half width in standard deviations: outside, the integrand is below exp(-34) = 1e-15 of its peak
NEAR = 3.0  # if the likelihood moves the mode by fewer standard deviations, the Gaussian's window needs no search
WEAK = 1.0  # in log p^α: below this p^α tilts the Gaussian little, and log E[p^α] loses no digits if 1 is split off


def concave_window(
    growth: float, derivatives: Callable, y: Array, mean: Array, variance: Array, alpha: Array
) -> tuple[Array, Array, Array, np.ndarray]:
    """Where the tilted mass lies, from `below` to `above` (N,), its width sd, and which likelihoods tilt weakly.

    For a log-concave likelihood the mode of the tilted density lies between mean and mean + variance α g(mean), and its
    mass no further from there than that of the Gaussian. Where that is much too wide, mode and edges are searched for.
    """
    sd = np.sqrt(variance)
    _, g, curvature = derivatives(y, mean)
    tilt = alpha * g * sd
    narrowing = np.maximum(-alpha * curvature * variance, 0.0)
    near = (np.abs(tilt) < NEAR) & (narrowing < 1)
    # log p enters l as a factor: exp(growth f) moves the Gaussian's mass by growth · variance
    reach = WINDOW + growth * sd
    below, above = mean - (reach - np.minimum(tilt, 0.0)) * sd, mean + (reach + np.maximum(tilt, 0.0)) * sd
    sd /= np.sqrt(1 + narrowing)
    far = np.flatnonzero(~near)
    if len(far):
        case = y[far], mean[far], variance[far], alpha[far]
        below[far], above[far] = _edges(derivatives, *case, _mode(derivatives, *case, g[far]))
        sd[far] = (above[far] - below[far]) / (2 * WINDOW)
    return below, above, sd, near & (np.abs(tilt) < WEAK)


def wide_window(
    centre: Array, derivatives: Callable, y: Array, mean: Array, variance: Array, alpha: Array
) -> tuple[Array, Array, Array, np.ndarray]:
    """As `concave_window`, for a likelihood of any shape that is largest at `centre`: around the Gaussian's mean.

    At the mean p is exp(−ρ) of its largest value. So where the Gaussian has fallen by exp(−WINDOW²/2 − αρ), what p^α
    can lift is still negligible.
    """
    sd = np.sqrt(variance)
    deficit = alpha * (derivatives(y, centre)[0] - derivatives(y, mean)[0])
    half = sd * np.sqrt(WINDOW**2 + 2 * np.maximum(deficit, 0.0))
    return mean - half, mean + half, sd, deficit < WEAK


def _mode(derivatives: Callable, y: Array, mean: Array, variance: Array, alpha: Array, g: Array) -> Array:
    """Mode (R,) of N(f; mean, variance) p(y|f)^α by Newton's method, with bisection wherever that is slow."""
    mode, end = mean.copy(), mean + variance * alpha * g
    low, high = np.minimum(mean, end), np.maximum(mean, end)
    previous = np.full(len(mean), np.inf)  # length of the last step
    active = np.arange(len(mean))
    while len(active):
        at = mode[active]
        _, g, curvature = derivatives(y[active], at)
        slope = alpha[active] * g - (at - mean[active]) / variance[active]
        low[active] = np.where(slope > 0, at, low[active])
        high[active] = np.where(slope < 0, at, high[active])
        precision = 1 / variance[active] - alpha[active] * curvature
        step = slope / precision
        inside = (at + step >= low[active]) & (at + step <= high[active]) & (np.abs(step) <= 0.5 * previous[active])
        step = np.where(inside, step, 0.5 * (low[active] + high[active]) - at)
        mode[active] = at + step
        previous[active] = np.abs(step)
        # a tenth of a standard deviation is enough to place a window
        active = active[np.abs(step) * np.sqrt(precision) > 0.1]
    return mode


def _edges(
    derivatives: Callable, y: Array, mean: Array, variance: Array, alpha: Array, mode: Array
) -> tuple[Array, Array]:
    """Where below and above the mode, (R,) each, the tilted density is below exp(−WINDOW²/2) of its largest value."""
    R = len(mode)
    y, mean, precision, alpha, mode = (np.tile(part, 2) for part in (y, mean, 1 / variance, alpha, mode))

    def log_tilted(rows: Any, offset: float | Array) -> tuple[Array, Array]:
        """Logarithm of the tilted density, not normalised, and its slope."""
        f = mode[rows] + offset
        log_p, g, _ = derivatives(y[rows], f)
        distance = f - mean[rows]
        pull = distance * precision[rows]
        return alpha[rows] * log_p - 0.5 * pull * distance, alpha[rows] * g - pull

    level = np.tile(log_tilted(slice(R), 0.0)[0] - 0.5 * WINDOW**2, 2)
    edge = WINDOW / np.sqrt(precision)  # far enough: p^α only makes the density narrower
    edge[:R] *= -1
    active = np.arange(2 * R)
    while len(active):
        active = active[log_tilted(active, edge[active] / 2)[0] < level[active]]
        edge[active] /= 2
    for _ in range(2):  # on a concave function Newton's step from outside stays outside
        value, slope = log_tilted(slice(None), edge)
        outside = np.isfinite(slope) & (value < level)
        edge -= np.where(outside, (value - level) / np.where(outside, slope, 1.0), 0.0)
    return mode[:R] + edge[:R], mode[:R] + edge[R:]
