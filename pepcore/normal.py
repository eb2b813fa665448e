"""The logarithm of the normal distribution function, and its derivatives far into both tails."""

import numpy as np
from scipy.special import erfcx, ndtr

INVERSE_ROOT_TWO_PI = 1 / np.sqrt(2 * np.pi)


def log_ndtr_derivatives(z):
    """log Φ(z), its slope φ/Φ and minus its second derivative (φ/Φ)(φ/Φ + z), accurate in both tails.

    Parameters
    ----------
    z : array of any shape

    Returns
    -------
    log_p <= 0, hazard > 0, bend in (0, 1), each shaped as z
    """
    shape, z = np.shape(z), np.atleast_1d(z)
    negative, smaller = z < 0, ndtr(-np.abs(z))  # Φ(−|z|)
    p = np.where(negative, smaller, 1 - smaller)
    with np.errstate(divide="ignore", invalid="ignore"):  # the tail underflows only where it is replaced below
        log_p = np.where(negative, np.log(p), np.log1p(-smaller))
        hazard = z * z
        hazard *= -0.5
        hazard = np.exp(hazard, out=hazard)
        hazard /= p
        hazard *= INVERSE_ROOT_TWO_PI
        bend = hazard + z
        bend *= hazard
    tail = z < -8
    if tail.any():
        log_p[tail], hazard[tail], bend[tail] = _far_below(z[tail])
    return tuple(values.reshape(shape) for values in (log_p, hazard, bend))


def _far_below(z):
    """As `log_ndtr_derivatives` far below 0, where φ and Φ underflow and φ/Φ + z cancels.

    The scaled function erfcx does neither, Φ(z) = ½ exp(−z²/2) erfcx(−z/√2); it takes five times as long.
    """
    scaled = erfcx(-z * np.sqrt(0.5))
    hazard = np.sqrt(2 / np.pi) / scaled
    s = 1 / z**2
    series = 1 - s * (1 - s * (6 - s * 50))  # asymptotic; exact to rounding below -100
    return np.log(0.5 * scaled) - 0.5 * z * z, hazard, np.where(z < -100, series, hazard * (hazard + z))
