"""The probability that one of C independent Gaussians is the largest, and its derivatives, by one-dimensional quadrature.

P_y = ∫ N(f; μ_y, v_y) Π_{k≠y} Φ((f − μ_k)/√v_k) df. The integrand is log-concave, so it has one peak, which may lie
far from μ_y, and the window is put on it. There are two rules; each datum gets the one with fewer nodes. The trapezoidal rule
converges exponentially fast, but its even spacing must suit the narrowest feature. A narrow rival is a feature at the
window's lower end only: below its mean the integrand vanishes, above it Φ = 1. Panels that end where a rival is beaten,
with Gauss-Legendre nodes as dense as the remaining rivals require, need about 3 nodes for each deviation of each
rival, however different their deviations are.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.special import ndtr

from pepcore.gaussian import Array
from pepcore.likelihoods.normal import log_ndtr_derivatives
from pepcore.likelihoods.quadrature import CHUNK
from pepcore.likelihoods.windows import concave_window

SPACING = 0.9  # of even nodes, in units of the narrowest feature the product can have: error exp(−2π²/0.9²) = 3e-11
REACH = 8.0  # a rival more than this many of its deviations below is beaten, to 1e-15
PANEL = 6.0  # length of a panel in units of the narrowest feature in it; with 16 nodes the error is 3e-12
FAR = -35.0  # below this Φ is near the smallest number there is
WIDE = 50.0  # windows more than this many deviations of a rival wide are looked at again
FARTHEST = 1e8  # deviations between two means, beyond which rounding leaves no digits to place nodes by
LEGENDRE = np.polynomial.legendre.leggauss(16)


def rivals_of(y: np.ndarray, C: int) -> np.ndarray:
    """The C − 1 other classes for each label y (N,), in ascending order: (C − 1, N)."""
    others = np.arange(C - 1)[:, None]
    return others + (others >= y)


class _Race(NamedTuple):
    """N data, each with a Gaussian and its rivals."""

    own_mean: Array  # (N,)
    own_variance: Array  # (N,)
    centre: Array  # (C − 1, N), the rivals' means
    spread: Array  # (C − 1, N), the rivals' deviations

    def of(self, rows: Any) -> "_Race":
        """The same for some of the data, in that order."""
        return _Race(*(part[..., rows] for part in self))


def log_largest(y: np.ndarray, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
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

    Raises LinAlgError, a ValueError, for a variance that is not positive, and for means more than 1e8 deviations apart.
    Source: villacampa2017 eqs (3) and (68); :eq:`mc-largest`.
    """
    C, N = mean.shape
    if (variance <= 0).any():
        raise LinAlgError(f"the variance of f and its noise together must be positive, got {variance.min():.3g}; give some noise")
    others, every = rivals_of(y, C), np.arange(N)
    spread = np.sqrt(np.take_along_axis(variance, others, axis=0))
    race = _Race(mean[y, every], variance[y, every], np.take_along_axis(mean, others, axis=0), spread)
    apart = np.abs(race.own_mean - race.centre) / np.sqrt(race.own_variance + spread**2)
    if (apart > FARTHEST).any():
        raise LinAlgError(f"latent means lie {apart.max():.2g} deviations of their difference apart, expected at most "
                          f"{FARTHEST:.0e}: the kernel's variance is too large, or the noise too small")
    log_p, slope, bend = np.empty(N), np.empty((C, N)), np.empty((C, N))
    for rows, *nodes in _rules(race):
        parts = _moments(race.of(rows), *nodes)
        log_p[rows] = parts[0]
        for total, (own, other) in ((slope, parts[1]), (bend, parts[2])):
            total[y[rows], rows] = own
            total[others[:, rows], rows] = other
    return log_p, slope, bend


def probabilities(mean: Array, variance: Array) -> Array:
    """P (N, C) that each of C independent f_c ~ N(mean_c, variance_c) is the largest; (N, C) arrays, variance > 0.

    The C integrals are computed separately, so the distance of their sum from 1 shows their error: below 1e-8 for
    C up to 30.

    Source: villacampa2017 eq. (68).
    """
    N, C = mean.shape
    log_p = [log_largest(np.full(N, c), mean.T, variance.T)[0] for c in range(C)]
    return np.exp(np.minimum(np.stack(log_p, axis=1), 0.0))  # rounding can lift a log-probability above 0


def _rules(race: _Race) -> Iterator[tuple]:
    """Yield (rows (R,), f (n, P), weight (n, P) or (P,), owner (P,)) until all data have their nodes.

    The P panels lie one after the other, those of rows[0] first; owner says to which of `rows` each belongs.
    """
    below, above = _windows(race)
    beaten = np.clip(race.centre + REACH * race.spread, below, above)
    precision = race.spread**-2.0
    # a product of Gaussian-shaped factors is no narrower than the product of the Gaussians; others are flat in the window
    sharpest = 1 / race.own_variance + np.where(beaten > below, precision, 0.0).sum(axis=0)
    even = 8 * np.ceil((above - below) * np.sqrt(sharpest) / (8 * SPACING)) + 1
    # between the ends of the panels some rivals are beaten already, and the others stand
    order = np.argsort(beaten, axis=0)
    ends = np.vstack([below, np.take_along_axis(beaten, order, axis=0), above])
    standing = np.cumsum(np.take_along_axis(precision, order, axis=0)[::-1], axis=0)[::-1]
    density = np.sqrt(1 / race.own_variance + np.vstack([standing, np.zeros_like(below)]))
    panels = np.ceil(np.diff(ends, axis=0) * density / PANEL)
    graded = len(LEGENDRE[0]) * panels.sum(axis=0) < even

    size = 8 * CHUNK // len(race.centre)  # nodes at a time
    count = np.where(graded, 0, even).astype(int)
    for n in np.unique(count[~graded]):
        group = np.flatnonzero(count == n)
        for rows in np.array_split(group, -(-n * len(group) // size)):
            step = (above[rows] - below[rows]) / (n - 1)
            yield rows, below[rows] + np.arange(n)[:, None] * step, step, np.arange(len(rows))
    group = np.flatnonzero(graded)
    if len(group):
        total = len(LEGENDRE[0]) * np.cumsum(panels[:, group].sum(axis=0))
        for rows in np.split(group, np.searchsorted(total, np.arange(size, total[-1], size))):
            if len(rows):
                yield rows, *_graded(ends[:, rows], panels[:, rows].astype(int))


def _windows(race: _Race) -> tuple[Array, Array]:
    """Where each integrand begins and ends, both (N,)."""

    def log_product(rows: Any, f: Array) -> tuple[Array, Array, Array]:
        rows = rows.astype(int)
        spread = race.spread[:, rows]
        log_p, hazard, bend = log_ndtr_derivatives((f - race.centre[:, rows]) / spread)
        return log_p.sum(0), (hazard / spread).sum(0), -(bend / spread**2).sum(0)

    index: Any = np.arange(len(race.own_mean))
    with np.errstate(over="ignore", invalid="ignore"):  # the search turns back where p underflows
        below, above, _, _ = concave_window(0.0, log_product, index, race.own_mean, race.own_variance, np.ones(len(index)))
    wide = np.flatnonzero(((above - below) > WIDE * race.spread).any(axis=0))
    if len(wide):
        below[wide] = np.maximum(below[wide], _floor(race.of(wide)))
    return below, above


def _floor(race: _Race) -> Array:
    """For each datum the point (N,) below which the integrand is less than exp(−32) of its peak, from rivals that lie below it.

    If the peak is above a rival's mean μ, then at μ − 9√v the integrand is below Φ(−9) exp(9 φ(0)/Φ(0))/Φ(0) of the
    peak: the logarithm of the other factors is concave, and at the peak it does not fall faster than the rival's rises.
    """
    slope = (race.own_mean - race.centre) / race.own_variance
    for centre, spread in zip(race.centre, race.spread, strict=True):
        slope += _log_and_hazard((race.centre - centre) / spread)[1] / spread
    return np.where(slope > 0, race.centre - 9 * race.spread, -np.inf).max(axis=0)


def _graded(ends: Array, panels: np.ndarray) -> tuple[Array, Array, np.ndarray]:
    """Gauss-Legendre nodes f (n, P), their weights (n, P), and owner (P,), for intervals cut into panels.

    ends (C + 1, R), panels (C, R) int, how many panels each interval has.
    """
    pieces = panels.T.ravel()  # all intervals of the first datum, then those of the next
    owner = np.repeat(np.repeat(np.arange(panels.shape[1]), len(panels)), pieces)
    width = np.repeat((np.diff(ends, axis=0).T.ravel() / np.maximum(pieces, 1)), pieces)
    first = np.repeat(np.cumsum(pieces) - pieces, pieces)
    left = np.repeat(ends[:-1].T.ravel(), pieces) + (np.arange(len(owner)) - first) * width
    nodes, weights = LEGENDRE
    return left + 0.5 * (1 + nodes[:, None]) * width, 0.5 * weights[:, None] * width, owner


def _moments(race: _Race, f: Array, weight: Array, owner: np.ndarray) -> tuple[Array, tuple, tuple]:
    """log P of each datum; slopes and bends of the class itself (R,) and its rivals (K, R); arguments as from `_rules`."""
    begins = np.flatnonzero(np.diff(owner, prepend=-1))  # every datum has a panel
    single = len(begins) == len(owner)

    def add(parts: Array) -> Array:
        """Sums over a datum's panels."""
        return parts if single else np.add.reduceat(parts, begins, axis=-1)

    own_mean, own_variance, centre, spread = race if single else race.of(owner)
    z = (f - centre[:, None]) / spread[:, None]
    log_p, hazard = _log_and_hazard(z)
    exponent = log_p.sum(axis=0) - 0.5 * (f - own_mean) ** 2 / own_variance
    peak = np.maximum.reduceat(exponent.max(axis=0), begins)
    tilted = np.exp(exponent - peak[owner]) * weight
    total = add(tilted.sum(axis=0))
    tilted /= total[owner]

    residual = (f - own_mean) / own_variance
    own = (
        add(np.einsum("nr,nr->r", tilted, residual)),
        add(np.einsum("nr,nr->r", tilted, residual**2)) - 1 / race.own_variance,
    )
    hazard *= tilted
    other = -add(hazard.sum(axis=1)) / race.spread, -add(np.einsum("knr,knr->kr", hazard, z)) / race.spread**2
    log_p = peak + np.log(total) - 0.5 * np.log(2 * np.pi * race.own_variance)
    return log_p, (own[0], other[0]), (own[1], other[1])


def _log_and_hazard(z: Array) -> tuple[Array, Array]:
    """log Φ(z) and φ/Φ, to rounding of the larger of 1 and the value: logs are summed, so near 0 no more digits count."""
    p, hazard = ndtr(z), np.exp(-0.5 * z * z)
    far = z < FAR
    if some := far.any():
        p[far] = 1.0
    hazard /= p
    hazard *= 1 / np.sqrt(2 * np.pi)
    log_p = np.log(p, out=p)
    if some:
        log_p[far], hazard[far], _ = log_ndtr_derivatives(z[far])
    return log_p, hazard
