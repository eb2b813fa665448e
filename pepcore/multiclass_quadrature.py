"""The probability that one of C independent Gaussians is the largest, and its derivatives, by one-dimensional quadrature.

P_y = ∫ N(f; μ_y, v_y) Π_{k≠y} Φ((f − μ_k)/√v_k) df. The integrand is log-concave, so it has one peak, which may lie
far from μ_y; the window is put on the integrand, and the trapezoidal rule converges exponentially fast in it.
"""

from functools import partial

import numpy as np

from pepcore.likelihoods import Probit
from pepcore.quadrature import CHUNK
from pepcore.windows import concave_window

SPACING = 0.9  # of nodes, in units of the narrowest feature that the product can have: error exp(−2π²/0.9²) = 3e-11
REACH = 8.0  # a rival more than so many of its deviations below the window is beaten throughout, to 1e-15

_step = partial(Probit().derivatives, 1.0)  # log Φ(z), φ/Φ, and minus (φ/Φ)(φ/Φ + z)


def rivals_of(y, C):
    """The C − 1 other classes for each label y (N,), in ascending order: (C − 1, N)."""
    others = np.arange(C - 1)[:, None]
    return others + (others >= y)


def log_largest(y, mean, variance):
    """log P that f_y is the largest of independent f_c ~ N(mean_c, variance_c), and what its derivatives are made of.

    Parameters
    ----------
    y : (N,) int, in 0 ... C − 1
    mean, variance : (C, N), variance > 0

    Returns
    -------
    log_p : (N,), accurate also where P underflows
    slope : (C, N), (∂P/∂mean_c)/P
    bend : (C, N), (∂²P/∂mean_c²)/P, which is also twice (∂P/∂variance_c)/P

    Source: villacampa2017 eqs (3) and (68).
    """
    C, N = mean.shape
    others = rivals_of(y, C)
    own_mean, own_variance = mean[y, np.arange(N)], variance[y, np.arange(N)]
    centre = np.take_along_axis(mean, others, axis=0)
    spread = np.sqrt(np.take_along_axis(variance, others, axis=0))
    below, count, width = _grid(own_mean, own_variance, centre, spread)

    log_p, slope, bend = np.empty(N), np.empty((C, N)), np.empty((C, N))
    for n in np.unique(count):
        group = np.flatnonzero(count == n)
        for rows in np.array_split(group, -(-n * len(group) * (C - 1) // (8 * CHUNK))):
            distance = np.linspace(0.0, 1.0, n)[:, None] * width[rows]
            parts = _moments(
                below[rows] + distance, own_mean[rows], own_variance[rows], centre[:, rows], spread[:, rows]
            )
            log_p[rows] = parts[0] + np.log(width[rows] / (n - 1))
            for total, (own, other) in ((slope, parts[1]), (bend, parts[2])):
                total[y[rows], rows] = own
                total[others[:, rows], rows] = other
    return log_p, slope, bend


def probabilities(mean, variance):
    """P (N, C) that each of C independent f_c ~ N(mean_c, variance_c) is the largest; (N, C) arrays, variance > 0.

    The C integrals are computed apart, so that how far their sum is from 1 shows their error: below 1e-8 for C up to 30.

    Source: villacampa2017 eq. (68).
    """
    N, C = mean.shape
    log_p = [log_largest(np.full(N, c), mean.T, variance.T)[0] for c in range(C)]
    return np.exp(np.stack(log_p, axis=1))


def _grid(own_mean, own_variance, centre, spread):
    """Where each datum's window begins, how many nodes it has, and how wide it is, all (N,)."""

    def log_product(rows, f):
        rows = rows.astype(int)
        log_p, hazard, bend = _step((f - centre[:, rows]) / spread[:, rows])
        return log_p.sum(0), (hazard / spread[:, rows]).sum(0), (bend / spread[:, rows] ** 2).sum(0)

    index, one = np.arange(len(own_mean)), np.ones(len(own_mean))
    with np.errstate(over="ignore", invalid="ignore"):  # the search turns back where p underflows
        below, above, _, _ = concave_window(0.0, log_product, index, own_mean, own_variance, one)
    # a product of Gaussian-shaped factors is no narrower than the product of the Gaussians; others are flat in the window
    bending = centre + REACH * spread > below
    precision = 1 / own_variance + np.where(bending, spread**-2.0, 0.0).sum(axis=0)
    count = 8 * np.ceil((above - below) * np.sqrt(precision) / (8 * SPACING)).astype(int) + 1
    return below, count, above - below


def _moments(f, own_mean, own_variance, centre, spread):
    """log of the sum of the integrand over nodes f (n, R); slopes and bends of the class itself (R,) and its rivals (K, R)."""
    z = (f - centre[:, None]) / spread[:, None]
    log_p, hazard, _ = _step(z)
    exponent = log_p.sum(axis=0) - 0.5 * (f - own_mean) ** 2 / own_variance
    peak = exponent.max(axis=0)
    tilted = np.exp(exponent - peak)
    total = tilted.sum(axis=0)
    tilted /= total

    residual = (f - own_mean) / own_variance
    own = np.einsum("nr,nr->r", tilted, residual), np.einsum("nr,nr->r", tilted, residual**2) - 1 / own_variance
    hazard *= tilted
    other = -hazard.sum(axis=1) / spread, -np.einsum("knr,knr->kr", hazard, z) / spread**2
    log_sum = peak + np.log(total) - 0.5 * np.log(2 * np.pi * own_variance)
    return log_sum, (own[0], other[0]), (own[1], other[1])
