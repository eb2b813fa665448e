"""Where the mass of a tilted distribution N(f; mean, variance) p(y|f)^α lies: the windows that quadrature integrates over."""

import numpy as np

WINDOW = 8.0  # half width in standard deviations: outside, the integrand is below exp(-32) = 1e-14 of its peak
WEAK = 0.3  # a likelihood that moves the mode by fewer standard deviations leaves the Gaussian's own window valid


def concave_window(growth, derivatives, y, mean, variance, alpha):
    """Where the tilted mass lies, from `below` to `above` (N,), its width sd, and which likelihoods tilt weakly."""
    sd = np.sqrt(variance)
    _, g, curvature = derivatives(y, mean)
    # for a log-concave likelihood the mode of the tilted density lies between mean and mean + variance α g(mean)
    weak = (alpha * np.abs(g) * sd < WEAK) & (-alpha * curvature * variance < 1)
    # log p enters l as a factor: exp(growth f) moves the Gaussian's mass by growth · variance
    anchor, above = mean.copy(), (WINDOW + WEAK + growth * sd) * sd
    below = -above
    strong = np.flatnonzero(~weak)
    if len(strong):
        case = y[strong], mean[strong], variance[strong], alpha[strong]
        anchor[strong] = _mode(derivatives, *case, g[strong])
        below[strong] = _edge(derivatives, *case, anchor[strong], -1)
        above[strong] = _edge(derivatives, *case, anchor[strong], +1)
    tilted_sd = np.where(weak, sd, (above - below) / (2 * WINDOW))
    return anchor + below, anchor + above, tilted_sd, weak


def wide_window(centre, derivatives, y, mean, variance, alpha):
    """As `concave_window`, for a likelihood of any shape that is largest at `centre`: around the Gaussian's mean.

    At the mean p is exp(−ρ) of its largest value. So where the Gaussian has fallen by exp(−WINDOW²/2 − αρ), what p^α can
    lift is still negligible.
    """
    sd = np.sqrt(variance)
    log_p, g, curvature = derivatives(y, mean)
    deficit = alpha * (derivatives(y, centre)[0] - log_p)
    weak = (alpha * np.abs(g) * sd < WEAK) & (alpha * np.abs(curvature) * variance < 1)
    half = sd * np.sqrt(WINDOW**2 + 2 * np.maximum(deficit, 0.0))
    return mean - half, mean + half, sd, weak


def _mode(derivatives, y, mean, variance, alpha, g):
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


def _edge(derivatives, y, mean, variance, alpha, mode, side):
    """Distance (R,) from the mode, with the sign of `side`, at which the tilted density is below exp(−WINDOW²/2)."""

    def log_tilted(rows, offset):
        """Logarithm of the tilted density, not normalised, and its slope."""
        f = mode[rows] + offset
        log_p, g, _ = derivatives(y[rows], f)
        distance = f - mean[rows]
        return (
            alpha[rows] * log_p - 0.5 * distance**2 / variance[rows],
            alpha[rows] * g - distance / variance[rows],
        )

    everyone = np.arange(len(mode))
    level = log_tilted(everyone, 0.0)[0] - 0.5 * WINDOW**2
    edge = side * WINDOW * np.sqrt(variance)  # far enough: p^α only makes the density narrower
    active = everyone
    while len(active):
        active = active[log_tilted(active, edge[active] / 2)[0] < level[active]]
        edge[active] /= 2
    for _ in range(2):  # on a concave function Newton's step from outside stays outside
        value, slope = log_tilted(everyone, edge)
        outside = np.isfinite(slope) & (value < level)
        edge = edge - np.where(outside, (value - level) / np.where(outside, slope, 1.0), 0.0)
    return edge
