"""The protocol of results: what every method returns, whatever the likelihood and the approximation.

`log_evidence`, `gradient`, `posterior`, `likelihood`, `converged`, `message`, `history`, `predict_f`, `predict_y` and
`log_density` mean the same for regression, for any likelihood, exact, online, on a fixed basis, for many classes, for
decoupled bases and for learnt models. A method that cannot have one of them raises an error that names what to call
instead.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.kernels import Kernel
from pepcore.validation import check_targets

LINE = 120  # characters that a result is shown in, if it fits; else it takes four lines


class Record(dict):
    """One line of a history: a dict, such as {"step": 3, "log_evidence": -12.5}.

    While a callback looks at it, `result()` makes the result of that moment, and `parameters` are those of the model.
    The history keeps the dict alone.
    """

    parameters: dict | None = None
    result: Callable[[], "Result"] | None = None

    def show(self, callback: Callable | None, result: Callable, parameters: dict | None = None) -> None:
        """Call the callback, if there is one, with this record."""
        if callback is not None:
            self.result, self.parameters = result, parameters
            try:
                callback(self)
            finally:  # a callback may raise KeyboardInterrupt to end the learning
                del self.result, self.parameters


class Result:
    """What the results of all methods share; `Fit`, `Model` and `online.State` hold the numbers.

    Attributes
    ----------
    gradient : dict, d log_evidence / d parameter in natural units
    converged : bool, whether the iteration came to rest
    """

    log_evidence: float  #: log p(y) in nats, or log Z of Power EP; at alpha = 0 a lower bound
    posterior: Any  #: of the latent function; `posterior.predict(Xs)` gives mean and variance
    likelihood: Any  #: p(y|f)
    message: str  #: how it ended
    history: list  #: one for each sweep, step or evaluation, with "log_evidence" and what else there is to watch

    def predict_f(self, Xs: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of the latent f at Xs (S, D): (S,) each, or (S, C) for C latent functions."""
        return self.posterior.predict(Xs)

    def predict_y(self, Xs: ArrayLike) -> Any:
        """What the likelihood predicts of y at Xs (S, D).

        Mean (S,) and variance (S,) for real targets and counts; P(y = +1) (S,) for labels −1 and +1; probabilities
        (S, C) for C classes.
        """
        return self.likelihood.predict(*self.predict_f(Xs))

    def log_density(self, Xs: ArrayLike, ys: ArrayLike) -> Array:
        """log p(y | data) (S,) in nats of each target ys (S,) at Xs (S, D); a density for real y, else a probability."""
        mean, variance = self.predict_f(Xs)
        ys = self.likelihood.validate(check_targets(ys, len(mean), "ys", each="row of Xs"))
        return self.likelihood.log_predictive(ys, mean, variance)

    def trace(self, key: str = "log_evidence") -> Array:
        """The values of one key of the history, as an array; NaN where a record has none."""
        return np.array([record.get(key, np.nan) for record in self.history], dtype=float)

    def __repr__(self) -> str:
        name = f"{type(self).__name__}("
        parts = f"log_evidence={self.log_evidence:.6g}", repr(self.posterior), repr(self.likelihood), repr(self.message)
        line = f"{name}{', '.join(parts)})"
        return line if len(line) <= LINE else f",\n{' ' * len(name)}".join([name + parts[0], *parts[1:]]) + ")"


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Result):
    """Inference at fixed hyper-parameters.

    Attributes
    ----------
    log_evidence, posterior, likelihood, converged, message : see `Result`
    gradient : the kernel's keys, "Z" (M, D) for sparse methods, the likelihood's keys ("noise" of a Gaussian
        one). Computed at first use. After iterations it is exact at the fixed point; before it, what the same formula gives
        there, as if the sites were at rest.
    jitter : float, the relative jitter that was used
    """

    log_evidence: float
    posterior: Any
    likelihood: Any
    alpha: float | Array  #: the power as given; 1 for exact regression, where it makes no difference
    sites: Any  #: Sites of the N data; None for regression with blocks, where one site couples a whole block
    _gradient: Callable[[], dict]
    converged: bool = True
    message: str = "closed form"
    sweeps: int = 1  #: sweeps over the data; 1 for regression
    #: before the first sweep and after each: "log_evidence", "change", "step"; empty for regression
    history: list = field(default_factory=list)

    @cached_property
    def gradient(self) -> dict:
        return self._gradient()

    @property
    def jitter(self) -> float:
        return self.posterior.basis.jitter


@dataclass(frozen=True, eq=False, repr=False)
class Model(Result):
    """What learning returns: a result at the parameters that were learnt."""

    parameters: dict  #: "kernel" (or "kernels" of many classes), "Z", "noise", "likelihood": those that the method has
    fit: Any  #: the result of inference at those values, which answers for the protocol
    evaluations: int  #: evaluations of evidence and gradient over all starts, or steps on batches
    #: whether the best start met the tolerance within its evaluations; for steps, whether `fit` has converged
    converged: bool
    message: str  #: why the best start ended, or that learning was interrupted
    #: list of Record, one for each evaluation or step, in order, with "log_evidence" in nats (on mini-batches its
    #: estimate from each; NaN where an evaluation failed)
    history: list

    @property
    def log_evidence(self) -> float:
        return self.fit.log_evidence

    @property
    def gradient(self) -> dict:
        return self.fit.gradient

    @property
    def posterior(self) -> Any:
        return self.fit.posterior

    @property
    def likelihood(self) -> Any:
        return self.fit.likelihood

    @property
    def alpha(self) -> float | Array:
        return self.fit.alpha

    @property
    def kernel(self) -> Kernel:
        return self.parameters["kernel"]

    @property
    def kernels(self) -> Any:
        return self.parameters["kernels"]

    @property
    def Z(self) -> Any:
        """Pseudo-inputs (M, D); None for a method without them, a list of C arrays where each class has its own."""
        return self.parameters.get("Z")

    @property
    def noise(self) -> Any:
        """Noise variance, or (C,) of the classes; None for a likelihood without noise."""
        return self.parameters.get("noise")
