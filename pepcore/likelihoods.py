"""Likelihoods p(y|f): what inference asks of them is one function, `log_moment`.

l_α(m, v) = (1/α) log E[p(y|f)^α] under f ~ N(m, v), with the limit E[log p] at α = 0, and its first two derivatives in
m: that is all that Power EP needs, for every α in [0, 1]. A new likelihood derives from `Likelihood` and writes
`derivatives`, `predict` and `validate`; its moments then come from quadrature.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from pepcore.quadrature import quadrature_log_moment
from pepcore.sites import log1p_ratio
from pepcore.validation import as_real, check_finite, check_positive


class Likelihood(Protocol):
    """What a likelihood can be asked; arrays broadcast, y and f have the same units as in the model."""

    def derivatives(self, y, f):
        """log p(y|f), its first and its second derivative in f, each (N,); for quadrature log-concave in f."""
        ...

    def predict(self, mean, variance):
        """What is expected of a new observation where the latent f ~ N(mean, variance), (S,) each."""
        ...

    def validate(self, y):
        """y as an array of float, or ValueError with what was got, what was expected and how to mend it."""
        ...

    def log_density(self, y, f):
        """log p(y|f), (N,), in nats."""
        return self.derivatives(y, f)[0]

    def log_moment(self, y, mean, variance, alpha):
        """l_α (N,) and its first two derivatives in the mean, d1 (N,) and d2 (N,).

        Parameters
        ----------
        y : (N,), as `validate` returns them
        mean, variance : (N,) of the latent f, variance > 0
        alpha : float or (N,), in [0, 1], both ends included

        Returns
        -------
        l, d1, d2 : (N,)

        Source: :eq:`pep-log-moment`, :eq:`pep-stein`.
        """
        return quadrature_log_moment(self.derivatives, y, mean, variance, alpha)

    def log_predictive(self, y, mean, variance):
        """log E[p(y|f)] (N,), the log-probability (density) of y where f ~ N(mean, variance)."""
        return self.log_moment(y, mean, variance, 1.0)[0]


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """y = f + Gaussian noise.

    Parameters
    ----------
    noise : float
        The noise's variance, > 0, in units of y².
    """

    noise: float = 0.1

    def __post_init__(self):
        object.__setattr__(self, "noise", check_positive(self.noise, "noise"))

    def derivatives(self, y, f):
        """log N(y; f, noise) and its first two derivatives in f."""
        residual = y - f
        log_p = -0.5 * (np.log(2 * np.pi * self.noise) + residual**2 / self.noise)
        return log_p, residual / self.noise, np.full(np.shape(residual), -1 / self.noise)

    def log_moment(self, y, mean, variance, alpha):
        """l_α and its derivatives in closed form, see `Likelihood.log_moment`.

        p^α is a Gaussian of variance noise/α up to a factor, so everything is a function of d = noise + α v.

        Source: bui2017 eq. (127); :eq:`pep-log-moment`.
        """
        total = self.noise + alpha * variance
        residual = y - mean
        spread = variance / self.noise * log1p_ratio(alpha * variance / self.noise)
        l = -0.5 * (np.log(2 * np.pi * self.noise) + spread + residual**2 / total)
        return l, residual / total, -1 / total + 0 * residual

    def predict(self, mean, variance):
        """Mean (S,) and variance (S,) of a new y where the latent f ~ N(mean, variance)."""
        return mean, variance + self.noise

    def validate(self, y):
        """y as finite floats, or ValueError."""
        return check_finite(as_real(y, "y"), "y")


@dataclass(frozen=True)
class Probit(Likelihood):
    """P(y|f) = Φ(y f) for labels y in {−1, +1}, Φ the standard normal distribution function."""

    def derivatives(self, y, f):
        """log Φ(y f) and its first two derivatives in f, accurate in both tails."""
        log_p, hazard, bend = _log_ndtr_derivatives(np.asarray(y * f, dtype=float))
        return log_p, y * hazard, -bend

    def log_moment(self, y, mean, variance, alpha):
        """l_α and its derivatives, see `Likelihood.log_moment`: in closed form at α = 1, by quadrature elsewhere.

        Source: rasmussen2006 eq. (3.82); :eq:`ep-probit-moments`, :eq:`pep-log-moment`.
        """
        y, mean, variance, alpha = np.broadcast_arrays(y, mean, variance, alpha)
        moments = np.empty((3, *y.shape))
        ep = alpha == 1
        if ep.any():
            spread = np.sqrt(1 + variance[ep])
            l, hazard, bend = _log_ndtr_derivatives(y[ep] * mean[ep] / spread)
            moments[:, ep] = l, y[ep] * hazard / spread, -bend / spread**2
        if not ep.all():
            rest = ~ep
            moments[:, rest] = quadrature_log_moment(self.derivatives, y[rest], mean[rest], variance[rest], alpha[rest])
        return tuple(moments)

    def predict(self, mean, variance):
        """P(y = +1) (S,) where the latent f ~ N(mean, variance): Φ(mean/√(1 + variance)).

        Source: rasmussen2006 eq. (3.77); :eq:`ep-predict`.
        """
        return ndtr(mean / np.sqrt(1 + variance))

    def log_predictive(self, y, mean, variance):
        """log P(y) (S,) of labels y (S,) in {−1, +1} where the latent f ~ N(mean, variance)."""
        return log_ndtr(y * mean / np.sqrt(1 + variance))

    def validate(self, y):
        """y as floats, each exactly −1 or +1, or ValueError."""
        y = check_finite(as_real(y, "y"), "y")
        if not np.all(np.abs(y) == 1):
            found = np.unique(y)
            shown = ", ".join(f"{value:g}" for value in found[:5]) + (", ..." if len(found) > 5 else "")
            hint = "give 2 * y - 1" if set(found) <= {0.0, 1.0} else "give np.where(y == positive, 1, -1)"
            raise ValueError(f"y holds the values {shown}, expected labels -1 and +1 for a probit likelihood; {hint}")
        return y


def _log_ndtr_derivatives(z):
    """log Φ(z), its slope φ/Φ > 0 and minus its second derivative, (φ/Φ)(φ/Φ + z) in (0, 1), for an array z.

    All from the scaled function erfcx, Φ(−x) = ½ exp(−x²/2) erfcx(x/√2), so that nothing under- or overflows.
    """
    scaled = erfcx(np.abs(z) * np.sqrt(0.5))
    decay = np.exp(-0.5 * z * z)
    negative = z < 0
    upper_tail = 0.5 * scaled * decay  # Φ(−|z|)
    log_p = np.where(negative, np.log(0.5 * scaled) - 0.5 * z * z, np.log1p(-upper_tail))
    hazard = np.where(negative, np.sqrt(2 / np.pi) / scaled, decay / (np.sqrt(2 * np.pi) * (1 - upper_tail)))
    bend = hazard * (hazard + z)
    far = z < -100
    if far.any():  # hazard + z cancels; the asymptotic series is exact to rounding there
        s = 1 / np.where(far, z, 1.0) ** 2
        bend = np.where(far, 1 - s * (1 - s * (6 - s * 50)), bend)
    return log_p, hazard, bend
