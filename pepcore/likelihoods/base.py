"""The interface of a likelihood; any object with `log_moment` will do."""

from dataclasses import replace
from typing import Any, Protocol

from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.likelihoods.quadrature import quadrature_expectation, quadrature_log_moment
from pepcore.validation import as_real, check_finite, check_part


class Likelihood(Protocol):
    """What a likelihood can be asked; arrays broadcast, y and f have the same units as in the model."""

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """log p(y|f), its first and its second derivative in f, each (N,)."""
        ...

    def predict(self, mean: Array, variance: Array) -> Any:
        """What is expected of a new observation where the latent f ~ N(mean, variance), (S,) each."""
        ...

    def validate(self, y: ArrayLike) -> Array:
        """y as finite floats; a likelihood of other targets raises ValueError: what was got, expected, how to mend it."""
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
        changed: Any = self
        return replace(changed, **parameters)

    def parameter_derivatives(self, y: Array, f: Array) -> dict:
        """dict over `parameters`: the derivative of log p(y|f) in each, shaped as y and f broadcast."""
        return {}

    def quadrature_hints(self, y: Array, mean: Array, variance: Array, alpha: float | Array) -> dict:
        """How p^alpha is shaped: the keywords of `quadrature_log_moment`, for p that bends elsewhere than near f = 0."""
        return {}

    def log_density(self, y: Array, f: Array) -> Array:
        """log p(y|f), (N,), in nats."""
        return self.derivatives(y, f)[0]

    def log_moment(self, y: Array, mean: Array, variance: Array, alpha: float | Array) -> tuple[Array, Array, Array]:
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
        hints = self.quadrature_hints(y, mean, variance, alpha)
        return quadrature_log_moment(self.derivatives, y, mean, variance, alpha, **hints)

    def shrinkage(self, d2: Any, matched: Any, alpha: float | Array, rest: Any = 0.0) -> Any:
        """1 + α · d2 · matched (N,) for the d2 at the variance matched + rest: how much narrower p^α makes the matched part."""
        return 1 + alpha * d2 * matched

    def parameter_gradient(self, y: Array, mean: Array, variance: Array, alpha: float | Array) -> dict:
        """dict over `parameters`: ∂l_α/∂θ (N,), the expectation of ∂ log p/∂θ under the tilted distribution."""
        hints = self.quadrature_hints(y, mean, variance, alpha)

        def expectation(key: str) -> Array:
            slope = lambda y, f: self.parameter_derivatives(y, f)[key]
            return quadrature_expectation(slope, self.derivatives, y, mean, variance, alpha, **hints)

        return {key: expectation(key) for key in self.parameters}

    def log_predictive(self, y: Array, mean: Array, variance: Array) -> Array:
        """log E[p(y|f)] (N,), the log-probability (density) of y where f ~ N(mean, variance)."""
        return self.log_moment(y, mean, variance, 1.0)[0]


def check_likelihood(likelihood: Likelihood) -> Any:
    """Return the likelihood; ValueError for anything without `log_moment`, and for a class in place of its instance."""
    expected = "a likelihood, an object with the method log_moment"
    return check_part(likelihood, hasattr(likelihood, "log_moment"), "likelihood", expected, "Probit() or Gaussian(0.1)")
