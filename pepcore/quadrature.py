"""One-dimensional tilted moments by quadrature, to nearly full accuracy and far into the tails.

A Gauss-Hermite rule centred at N(mean, variance) fails where it matters: deep in the tail the likelihood moves the
mass to where the rule has no nodes, and for a large variance the likelihood is a cliff between two nodes. Here the
window lies on the tilted mass, and the trapezoidal rule is used in a stretched coordinate t,
f = centre + scale · sinh(t): nodes are dense where the likelihood bends and sparse far from there. On an analytic
integrand that vanishes at both ends the trapezoidal rule converges exponentially fast.
"""

import numpy as np

from pepcore.sites import log1p_ratio

WINDOW = 7.5  # half width in standard deviations: outside, the integrand is below exp(-28) = 6e-13 of its peak
WEAK = 0.3  # a likelihood that moves the mode by fewer standard deviations leaves the Gaussian's own window valid
STEP = 0.2  # in t, set by how near the likelihood's singularities in the complex plane are
FEWEST = 20  # nodes over a Gaussian of half width WINDOW
CHUNK = 2**14  # elements per array, so that the dozen of them stay in the second-level cache


def quadrature_log_moment(derivatives, y, mean, variance, alpha, centre=0.0, scale=3.0):
    """l = (1/alpha) log E[p(y|f)^alpha] under f ~ N(mean, variance), and its two derivatives in the mean.

    With the tilted distribution t(f) ∝ N(f; mean, variance) p(y|f)^α and g = ∂ log p/∂f,
    d1 = E_t[g] and d2 = E_t[∂g/∂f] + α Var_t[g]. Nothing is divided by α, so α = 0 needs no formula of its own.

    Parameters
    ----------
    derivatives : callable (y, f) -> log p(y|f), its first and its second derivative in f, broadcast over both
        p must be log-concave in f: the second derivative is <= 0.
    y, mean, variance : (N,), variance > 0
    alpha : float or (N,), in [0, 1]
    centre : float or (N,)
        Near where log p bends. It places the nodes; it does not change what is computed.
    scale : float
        Over what distance log p bends.

    Returns
    -------
    l, d1, d2 : (N,)

    Source: bui2017 section 3.3 and appendix G; :eq:`pep-log-moment`, :eq:`pep-stein`, :eq:`pep-limit`.
    """
    data = [np.asarray(a, dtype=float) for a in np.broadcast_arrays(y, mean, variance, alpha, centre)]
    shape = data[0].shape
    y, mean, variance, alpha, centre = (a.ravel() for a in data)

    anchor, below, above, weak = _windows(derivatives, y, mean, variance, alpha)
    start = _stretch(below, anchor - centre, scale)
    stop = _stretch(above, anchor - centre, scale)
    count = np.maximum(FEWEST, 4 * np.ceil((stop - start) / (4 * STEP)).astype(int))

    moments = np.empty((3, len(mean)))
    for n, is_weak in sorted(set(zip(count.tolist(), weak.tolist()))):
        group = np.flatnonzero((count == n) & (weak == is_weak))
        for rows in np.array_split(group, -(-n * len(group) // CHUNK)):
            step = (stop[rows] - start[rows]) / (n - 1)
            t = start[rows] + step * np.arange(n)[:, None]
            offset = _unstretch(t, (anchor - centre)[rows], scale)  # f - anchor
            f = anchor[rows] + offset
            log_p, g, curvature = derivatives(y[rows], f)
            exponent = -0.5 * (offset + (anchor - mean)[rows]) ** 2 / variance[rows]
            weight = np.hypot(scale, f - centre[rows]) * (step / np.sqrt(2 * np.pi * variance[rows]))  # df/dt dt
            moments[:, rows] = _moments(log_p, g, curvature, exponent, weight, alpha[rows], is_weak)
    return tuple(m.reshape(shape) for m in moments)


def _moments(log_p, g, curvature, exponent, weight, alpha, weak):
    """l, d1, d2 (R,) from values on the nodes (n, R); weight · exp(exponent) is the Gaussian's mass at a node."""
    tilted = exponent + alpha * log_p
    peak = tilted.max(axis=0)
    tilted = weight * np.exp(tilted - peak)
    total = tilted.sum(axis=0)
    if weak:
        # log E[p^α]/α as it stands loses all digits for small α; what p^α misses of 1 is summed instead
        best = log_p.max(axis=0)
        deficit = alpha * (log_p - best)
        missing = np.where(alpha > 0, np.expm1(deficit) / np.where(alpha > 0, alpha, 1.0), log_p - best)
        mean_missing = (weight * np.exp(exponent) * missing).sum(axis=0)
        l = best + mean_missing * log1p_ratio(alpha * mean_missing)
    else:
        l = (peak + np.log(total)) / alpha
    tilted /= total
    d1 = (tilted * g).sum(axis=0)
    d2 = (tilted * (curvature + alpha * (g - d1) ** 2)).sum(axis=0)
    return l, d1, d2


def _windows(derivatives, y, mean, variance, alpha):
    """Where the tilted mass lies: anchor (N,), the edges relative to it, below < 0 < above, who is weakly tilted."""
    sd = np.sqrt(variance)
    _, g, _ = derivatives(y, mean)
    # for a log-concave likelihood the mode of the tilted density lies between mean and mean + variance α g(mean)
    weak = alpha * np.abs(g) * sd < WEAK
    anchor, above = mean.copy(), (WINDOW + WEAK) * sd
    below = -above
    strong = np.flatnonzero(~weak)
    if len(strong):
        case = y[strong], mean[strong], variance[strong], alpha[strong]
        anchor[strong] = _mode(derivatives, *case, g[strong])
        below[strong] = _edge(derivatives, *case, anchor[strong], -1)
        above[strong] = _edge(derivatives, *case, anchor[strong], +1)
    return anchor, below, above, weak


def _mode(derivatives, y, mean, variance, alpha, g):
    """Mode (R,) of N(f; mean, variance) p(y|f)^α by Newton's method, kept between the two ends that enclose it."""
    mode, end = mean.copy(), mean + variance * alpha * g
    low, high = np.minimum(mean, end), np.maximum(mean, end)
    active = np.arange(len(mean))
    for _ in range(60):
        at = mode[active]
        _, g, curvature = derivatives(y[active], at)
        slope = alpha[active] * g - (at - mean[active]) / variance[active]
        low[active] = np.where(slope > 0, at, low[active])
        high[active] = np.where(slope < 0, at, high[active])
        precision = 1 / variance[active] - alpha[active] * curvature
        new = at + slope / precision
        inside = (new >= low[active]) & (new <= high[active])
        mode[active] = np.where(inside, new, 0.5 * (low[active] + high[active]))
        # a tenth of a standard deviation is enough to place a window
        active = active[~(np.abs(mode[active] - at) * np.sqrt(precision) < 0.1)]
        if not len(active):
            break
    return mode


def _edge(derivatives, y, mean, variance, alpha, mode, side):
    """Distance (R,) from the mode, with the sign of `side`, at which the tilted density is below exp(−WINDOW²/2)."""

    def excess(rows, offset):
        """Logarithm of the tilted density over the level sought, and its slope."""
        f = mode[rows] + offset
        log_p, g, _ = derivatives(y[rows], f)
        value = alpha[rows] * log_p - 0.5 * (f - mean[rows]) ** 2 / variance[rows] - level[rows]
        return value, alpha[rows] * g - (f - mean[rows]) / variance[rows]

    level = np.zeros(len(mode))
    everyone = np.arange(len(mode))
    level = excess(everyone, 0.0)[0] - 0.5 * WINDOW**2
    edge = side * WINDOW * np.sqrt(variance)  # far enough: p^α only makes the density narrower
    active = everyone
    while len(active):
        active = active[excess(active, edge[active] / 2)[0] < 0]
        edge[active] /= 2
    value, slope = excess(everyone, edge)
    # on a concave function Newton's step from outside stays outside
    inward = np.where(np.isfinite(slope) & (value < 0), value / np.where(slope == 0, 1.0, slope), 0.0)
    return edge - inward


def _stretch(offset, position, scale):
    """asinh((position + offset)/scale) − asinh(position/scale), also where the offset is tiny."""
    small = offset / np.hypot(scale, position)
    exact = np.arcsinh((position + offset) / scale) - np.arcsinh(position / scale)
    return np.where(np.abs(small) < 1e-3, small, exact)


def _unstretch(t, position, scale):
    """The inverse of `_stretch` in its first argument; sinh(t₀ + t) − sinh(t₀) is expanded, so nothing cancels."""
    rise = np.expm1(t)
    fall = -rise / (1 + rise)  # expm1(-t)
    return 0.5 * (position * (rise + fall) + np.hypot(scale, position) * (rise - fall))
