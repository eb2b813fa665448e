"""The interface of a likelihood, and the likelihoods of one latent function. Any object with these methods will do."""

from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, gammaln, log_ndtr, ndtr, wrightomega

from pepcore.gaussian import Array, log1p_ratio
from pepcore.likelihoods.normal import log_ndtr_derivatives
from pepcore.likelihoods.quadrature import quadrature_expectation, quadrature_log_moment
from pepcore.validation import as_real, check_finite, check_positive


class Likelihood(Protocol):
    """What a likelihood can be asked; arrays broadcast, y and f have the same units as in the model.

    Below, l_α (N,) is (1/α) log E[p(y|f)^α] under f ~ N(mean, variance), variance > 0, for alpha, a float or (N,), in
    [0, 1], both ends included. In predictions the latent f ~ N(mean, variance), (S,) each.
    """

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """log p(y|f), its first and its second derivative in f, each (N,)."""
        ...

    def predict(self, mean: Array, variance: Array) -> Any:
        """What is predicted for a new observation."""
        ...

    def validate(self, y: ArrayLike) -> Array:
        """y as finite floats, or ValueError: what was got, what the likelihood expects, and how to mend it."""
        return check_finite(as_real(y, "y"), "y")

    @property
    def parameters(self) -> dict:
        """dict: the parameters that can be learnt, each one positive number; most likelihoods have none."""
        return {}

    def with_parameters(self, parameters: dict) -> Any:
        """The same likelihood with other values; `parameters` may hold some of the keys of `self.parameters`."""
        unknown = set(parameters) - set(self.parameters)
        if unknown:
            raise ValueError(f"unknown likelihood parameters {sorted(unknown)}; this one has {sorted(self.parameters)}.")
        if not parameters:
            return self
        if not is_dataclass(self):
            raise TypeError(f"{type(self).__name__} has parameters to learn: make it a dataclass with a field for each, or "
                            "write its with_parameters")
        changed: Any = self
        return replace(changed, **parameters)

    def parameter_derivatives(self, y: Array, f: Array) -> dict:
        """dict over `parameters`: the derivative of log p(y|f) in each, shaped as y and f broadcast."""
        return {}

    def quadrature_hints(self, y: Array, mean: Array, variance: Array, alpha: float | Array) -> dict:
        """Where and how sharply log p bends, as the keywords of `quadrature_log_moment`.

        Needed for a log p that bends elsewhere than near f = 0, or over less than about 2.5 units of f ("centre", "scale"),
        and for p that is not log-concave: "log_concave" is False, and "centre" the f at which p is largest.
        """
        return {}

    def log_density(self, y: Array, f: Array) -> Array:
        """log p(y|f), (N,), in nats."""
        return self.derivatives(y, f)[0]

    def log_moment(self, y: Array, mean: Array, variance: Array, alpha: float | Array) -> tuple[Array, Array, Array]:
        """l_α (N,) and its first two derivatives in the mean, d1 (N,) and d2 (N,), of y (N,) as `validate` returns them.

        Source: :eq:`pep-log-moment`, :eq:`pep-stein`.
        """
        hints = self.quadrature_hints(y, mean, variance, alpha)
        return quadrature_log_moment(self.derivatives, y, mean, variance, alpha, **hints)

    def shrinkage(self, d2: Any, matched: Any, alpha: float | Array, rest: Any = 0.0) -> Any:
        """The tilted variance over the matched one (N,), 1 + α · d2 · matched, for the d2 at the variance matched + rest."""
        return 1 + alpha * d2 * matched

    def parameter_gradient(self, y: Array, mean: Array, variance: Array, alpha: float | Array) -> dict:
        """dict over `parameters`: ∂l_α/∂θ (N,), the expectation of ∂ log p/∂θ under the tilted distribution."""
        hints = self.quadrature_hints(y, mean, variance, alpha)

        def expectation(key: str) -> Array:
            slope = lambda y, f: self.parameter_derivatives(y, f)[key]
            return quadrature_expectation(slope, self.derivatives, y, mean, variance, alpha, **hints)

        return {key: expectation(key) for key in self.parameters}

    def log_predictive(self, y: Array, mean: Array, variance: Array) -> Array:
        """log E[p(y|f)] (S,), the log-probability (density) of y (S,). Source: :eq:`ep-tilted`."""
        return self.log_moment(y, mean, variance, 1.0)[0]


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """y = f + Gaussian noise of variance `noise`, > 0, in units of y²."""

    noise: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", check_positive(self.noise, "noise"))

    @property
    def parameters(self) -> dict:
        """dict with "noise" (float)."""
        return {"noise": self.noise}

    def parameter_gradient(self, y: Array, mean: Array, variance: Array, alpha: float | Array) -> dict:
        """dict with "noise": ∂l_α/∂noise (N,) in closed form."""
        total = self.noise + alpha * variance
        return {"noise": 0.5 * (((y - mean) / total) ** 2 + ((1 - alpha) * variance / self.noise - 1) / total)}

    def shrinkage(self, d2: Any, matched: Any, alpha: float | Array, rest: Any = 0.0) -> Any:
        """As `Likelihood.shrinkage`, where d2 = −1/(noise + α · variance) makes its difference cancel if the noise is small."""
        return (self.noise + alpha * rest) / (self.noise + alpha * (matched + rest))

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """log N(y; f, noise) and its first two derivatives in f."""
        residual = y - f
        log_p = -0.5 * (np.log(2 * np.pi * self.noise) + residual**2 / self.noise)
        return log_p, residual / self.noise, np.full(np.shape(residual), -1 / self.noise)

    def log_moment(self, y: Array, mean: Array, variance: Array, alpha: float | Array) -> tuple[Array, Array, Array]:
        """l_α and its derivatives in closed form, see `Likelihood.log_moment`.

        p^α is a Gaussian of variance noise/α up to a factor, so everything is a function of d = noise + α v.

        Source: bui2017 eq. (127); :eq:`pep-log-moment`.
        """
        total = self.noise + alpha * variance
        residual = y - mean
        spread = variance / self.noise * log1p_ratio(alpha * variance / self.noise)
        l = -0.5 * (np.log(2 * np.pi * self.noise) + spread + residual**2 / total)
        return l, residual / total, -1 / total + 0 * residual

    def predict(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Mean (S,) and variance (S,) of a new y."""
        return mean, variance + self.noise


@dataclass(frozen=True)
class Probit(Likelihood):
    """P(y|f) = Φ(y f) for labels y in {−1, +1}, Φ the standard normal distribution function."""

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """log Φ(y f) and its first two derivatives in f, accurate in both tails."""
        log_p, hazard, bend = log_ndtr_derivatives(np.asarray(y * f, dtype=float))
        return log_p, y * hazard, -bend

    def log_moment(self, y: Any, mean: Array, variance: Array, alpha: float | Array) -> tuple[Array, Array, Array]:
        """l_α and its derivatives, see `Likelihood.log_moment`: in closed form at α = 1, by quadrature elsewhere.

        Source: rasmussen2006 eq. (3.82); :eq:`ep-probit-moments`, :eq:`pep-log-moment`.
        """
        if np.ndim(alpha) == 0:
            return self._closed_form(y, mean, variance) if alpha == 1 else super().log_moment(y, mean, variance, alpha)
        y, mean, variance, alpha = np.broadcast_arrays(y, mean, variance, alpha)
        moments, ep = np.empty((3, *y.shape)), alpha == 1
        moments[:, ep] = self._closed_form(y[ep], mean[ep], variance[ep])
        moments[:, ~ep] = super().log_moment(y[~ep], mean[~ep], variance[~ep], alpha[~ep])
        return tuple(moments)

    @staticmethod
    def _closed_form(y: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """l_1 and its derivatives: log Φ of y·mean/√(1 + variance)."""
        spread = np.sqrt(1 + variance)
        l, hazard, bend = log_ndtr_derivatives(y * mean / spread)
        return l, y * hazard / spread, -bend / spread**2

    def predict(self, mean: Array, variance: Array) -> Array:
        """P(y = +1) (S,): Φ(mean/√(1 + variance)).

        Source: rasmussen2006 eq. (3.77); :eq:`ep-predict`.
        """
        return ndtr(mean / np.sqrt(1 + variance))

    def log_predictive(self, y: Array, mean: Array, variance: Array) -> Array:
        """log P(y) (S,) of labels y (S,) in {−1, +1}."""
        return log_ndtr(y * mean / np.sqrt(1 + variance))

    def validate(self, y: ArrayLike) -> Array:
        """y as floats, each exactly −1 or +1, or ValueError."""
        return _check_labels(y)


@dataclass(frozen=True)
class Logit(Likelihood):
    """P(y|f) = 1/(1 + exp(−y f)) for labels y in {−1, +1}."""

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """log P(y|f) and its first two derivatives in f, accurate in both tails."""
        z = np.asarray(y * f, dtype=float)
        decay = np.exp(-np.abs(z))
        wrong = np.where(z < 0, 1.0, decay) / (1 + decay)  # P(−y|f)
        return np.minimum(z, 0.0) - np.log1p(decay), y * wrong, -decay / (1 + decay) ** 2

    def predict(self, mean: Array, variance: Array) -> Array:
        """P(y = +1) (S,)."""
        return np.exp(self.log_predictive(np.ones_like(mean), mean, variance))

    def validate(self, y: ArrayLike) -> Array:
        """y as floats, each exactly −1 or +1, or ValueError."""
        return _check_labels(y)


@dataclass(frozen=True)
class Poisson(Likelihood):
    """Counts y with rate exp(f): P(y|f) = exp(y f − exp(f))/y!."""

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """log P(y|f) and its first two derivatives in f."""
        return self._expected(y, f, 0.0)

    def quadrature_hints(self, y: Array, mean: Array, variance: Array, alpha: float | Array) -> dict:
        """The bend is the wall exp(−α exp(f)): one above the tilted mode, or above log(y + 1/α) if that is larger.

        The mode solves α(y − exp(f)) = (f − mean)/variance: Wright's ω is the inverse of ω + log ω.
        """
        alpha = np.maximum(alpha, 1e-300)
        straight = mean + alpha * variance * y
        mode = straight - wrightomega(np.log(alpha * variance) + straight)
        return {"centre": np.maximum(mode, np.log(y + 1 / alpha)) + 1, "scale": 1.0, "growth": 1.0}

    def log_moment(self, y: Array, mean: Array, variance: Array, alpha: float | Array) -> tuple[Array, Array, Array]:
        """l_α and its derivatives, see `Likelihood.log_moment`: in closed form at α = 0, by quadrature elsewhere.

        Source: :eq:`pep-log-moment`.
        """
        y, mean, variance, alpha = np.broadcast_arrays(y, mean, variance, alpha)
        moments = np.array(self._expected(y, mean, variance))
        rest = alpha > 0
        if rest.any():
            moments[:, rest] = super().log_moment(y[rest], mean[rest], variance[rest], alpha[rest])
        return tuple(moments)

    @staticmethod
    def _expected(y: Array, mean: Array, variance: float | Array) -> tuple[Array, Array, Array]:
        """E[log P(y|f)] under f ~ N(mean, variance), by E[exp(f)] = exp(mean + variance/2), and its derivatives in the mean.

        For a large count, y·mean, the rate and log y! are far larger than what they add up to, so this is written
        relative to the peak at f = log y. The rate is held below exp(300) so that squares do not overflow.
        """
        top = np.log(np.maximum(y, 1.0))
        away, exponent = mean - top, np.minimum(mean + 0.5 * variance, 300.0)
        rate, growth = np.exp(exponent), np.expm1(exponent - top)
        counted = np.asarray(y) > 0
        l = np.where(counted, y * (away - growth), -rate) + (y * top - y - gammaln(y + 1))
        return l, np.where(counted, -y * growth, -rate), -rate

    def predict(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Mean (S,) and variance (S,) of a new count."""
        rate = np.exp(mean + 0.5 * variance)
        # rate² (e^variance − 1), whose factors can leave the range of floats
        return rate, rate + np.exp(2 * (mean + variance)) * -np.expm1(-variance)

    def validate(self, y: ArrayLike) -> Array:
        """y as floats, each a whole number from 0 upwards, or ValueError."""
        y = check_finite(as_real(y, "y"), "y")
        wrong = (y < 0) | (y != np.floor(y))
        if wrong.any():
            raise ValueError(f"y holds {y[wrong][0]:g}, expected counts 0, 1, 2, ... for a Poisson likelihood; give "
                             "the counts themselves, not rates, logarithms or standardised values")
        return y


@dataclass(frozen=True)
class StudentT(Likelihood):
    """y = f + Student-t noise, for data with outliers. Not log-concave: sites may have a negative precision.

    The `degrees` of freedom ν > 0 are not learnt; the variance of the noise is finite for ν > 2. The `scale` > 0 is in
    units of y.
    """

    degrees: float = 4.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degrees", check_positive(self.degrees, "degrees"))
        object.__setattr__(self, "scale", check_positive(self.scale, "scale"))

    @property
    def parameters(self) -> dict:
        """dict with "scale" (float)."""
        return {"scale": self.scale}

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """log p(y|f) and its first two derivatives in f. Source: :eq:`bp-student`."""
        nu, residual = self.degrees, y - f
        width2 = nu * self.scale**2
        spread = width2 + residual**2
        constant = -betaln(0.5, 0.5 * nu) - 0.5 * np.log(width2)
        log_p = constant - 0.5 * (nu + 1) * np.log1p(residual**2 / width2)
        return log_p, (nu + 1) * residual / spread, (nu + 1) * (residual**2 - width2) / spread**2

    def parameter_derivatives(self, y: Array, f: Array) -> dict:
        """dict with "scale": ∂ log p/∂scale."""
        square = (y - f) ** 2
        return {"scale": ((self.degrees + 1) * square / (self.degrees * self.scale**2 + square) - 1) / self.scale}

    def quadrature_hints(self, y: Array, mean: Array, variance: Array, alpha: float | Array) -> dict:
        """log p has its peak at f = y and its nearest singularities at y ± i scale √ν."""
        return {"centre": y, "scale": self.scale * min(1.0, np.sqrt(self.degrees)), "log_concave": False}

    def predict(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Mean (S,) of a new y, or its median where degrees <= 1, and variance (S,), infinite for degrees <= 2."""
        noise = self.scale**2 * self.degrees / (self.degrees - 2) if self.degrees > 2 else np.inf
        return mean, variance + noise


def _check_labels(y: ArrayLike) -> Array:
    """y as floats, each exactly −1 or +1, or ValueError."""
    y = check_finite(as_real(y, "y"), "y")
    if not np.all(np.abs(y) == 1):
        found = np.unique(y)
        shown = ", ".join(f"{value:g}" for value in found[:5]) + (", ..." if len(found) > 5 else "")
        hint = "give 2 * y - 1" if set(found) <= {0.0, 1.0} else "give np.where(y == positive, 1, -1)"
        raise ValueError(f"y holds the values {shown}, expected labels -1 and +1 for a binary likelihood; {hint}")
    return y
