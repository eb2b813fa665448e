"""The protocol of results: what every method returns, whatever the likelihood and the approximation.

`log_evidence`, `gradient`, `posterior`, `likelihood`, `converged`, `message`, `history`, `predict_f`, `predict_y` and
`log_density` mean the same for regression, for any likelihood, exact, online, on a fixed basis, for many classes, for
decoupled bases and for learnt models. A method that cannot have one of them raises an error that names what to call
instead.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from pepcore.features import Features
from pepcore.gaussian import Array
from pepcore.kernels import Kernel
from pepcore.likelihoods import Gaussian
from pepcore.normal_equations import SAME, without_own_site
from pepcore.posterior import Posterior
from pepcore.sites import Sites
from pepcore.threads import one_blas_thread
from pepcore.validation import check_inputs, check_targets

LINE = 120  # characters; a result that fits is shown on one line, else on four


class Record(dict):
    """One line of a history: a dict, such as {"step": 3, "log_evidence": -12.5}.

    While a callback has it, `result()` makes the result of that moment, and `parameters` are those of the model.
    The history keeps only the dict.
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


class LeftOut(NamedTuple):
    """Each datum as the others predict it."""

    mean: Array  #: (N,), or (N, C) for C latent functions, of the latent f at the datum's own input
    variance: Array  #: (N,) or (N, C), its variance
    log_density: Array  #: (N,), log p(y_n | all other data) in nats; a density for real y, else a probability


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
    history: list  #: one dict for each sweep, step or evaluation, with "log_evidence" and what else there is

    def predict_f(self, Xs: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of the latent f at Xs (S, D): (S,) each, or (S, C) for C latent functions."""
        return self.posterior.predict(Xs)

    def predict_y(self, Xs: ArrayLike) -> Any:
        """What the likelihood predicts for y at Xs (S, D).

        Mean (S,) and variance (S,) for real targets and counts; P(y = +1) (S,) for labels −1 and +1; probabilities
        (S, C) for C classes.
        """
        return self.likelihood.predict(*self.predict_f(Xs))

    def log_density(self, Xs: ArrayLike, ys: ArrayLike) -> Array:
        """log p(y | data) (S,) in nats of each target ys (S,) at Xs (S, D); a density for real y, else a probability."""
        mean, variance = self.predict_f(Xs)
        ys = self.likelihood.validate(check_targets(ys, len(mean), "ys", each="row of Xs"))
        return self.likelihood.log_predictive(ys, mean, variance)

    def leave_one_out(self, X: ArrayLike, y: ArrayLike) -> LeftOut:
        """Predict each datum of the fit from all others, see `pepcore.leave_one_out`."""
        raise NotImplementedError(f"{type(self).__name__} keeps no site for each datum that could be taken out; fit "
                                  "with power_ep.infer, exact.infer or online.infer, which do, or measure on data "
                                  "held out")

    def trace(self, key: str = "log_evidence") -> Array:
        """The values of one key of the history that holds numbers, as an array; NaN where a record has none."""
        return np.array([record.get(key, np.nan) for record in self.history], dtype=float)

    def __repr__(self) -> str:
        name = f"{type(self).__name__}("
        parts = f"log_evidence={self.log_evidence:.6g}", repr(self.posterior), repr(self.likelihood), repr(self.message)
        line = f"{name}{', '.join(parts)})"
        return line if len(line) <= LINE else f",\n{' ' * len(name)}".join([name + parts[0], *parts[1:]]) + ")"


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Result):
    """Inference at fixed hyper-parameters; see `Result` for what is not described here."""

    log_evidence: float
    posterior: Any
    likelihood: Any
    alpha: float | Array  #: the power as given; 1 for exact regression, where it makes no difference
    sites: Any  #: Sites of the N data; None where no datum has its own: blocks, add_data, decoupled bases, update = "joint"
    _gradient: Callable[[], dict]
    converged: bool = True
    message: str = "closed form"
    sweeps: int = 1  #: sweeps over the data; 1 for regression
    #: before the first sweep and after each: "log_evidence", "change", "step"; empty for regression
    history: list = field(default_factory=list)

    def __post_init__(self) -> None:
        if isinstance(self.sites, Sites):  # the gradient is computed from them later
            for values in (self.sites.tau, self.sites.nu):
                values.setflags(write=False)

    @cached_property
    def gradient(self) -> dict:
        """dict: the kernel's keys, "Z" (M, D) for sparse methods, the likelihood's keys ("noise" of a Gaussian one).

        Computed at first use. After iterations it is exact at the fixed point; elsewhere it is what the same formula
        gives, as if the sites were at rest.
        """
        return self._gradient()

    @property
    def jitter(self) -> float:
        """The relative jitter that was used."""
        return self.posterior.basis.jitter

    @one_blas_thread
    def leave_one_out(self, X: ArrayLike, y: ArrayLike) -> LeftOut:
        """Predict each datum of the fit from all others, see `pepcore.leave_one_out`."""
        if not isinstance(self.sites, Sites):
            raise NotImplementedError("this fit keeps no site for each datum that could be taken out: those of blocks "
                                      "belong to a whole block, those of 'sep', and of 'vi' learnt on batches, are tied, "
                                      "and add_data, update = 'joint' and decoupled bases keep none; fit all data without "
                                      "blocks, with another approximation or with power_ep.infer, or measure on data held out")
        size = self.sites.tau.shape[-1]
        X = check_inputs(X)
        targets: Array = self.likelihood.validate(check_targets(y, len(X)))
        if len(X) != size:
            raise ValueError(f"X and y must be the {size} data of the fit, in the same order; got {len(X)} rows")
        at_rest = isinstance(self.likelihood, Gaussian) and self.converged  # then ν = y τ
        if at_rest and np.any(np.abs(targets * self.sites.tau - self.sites.nu) > SAME * np.abs(self.sites.nu).max()):
            raise ValueError("y must be the targets of the fit, in the same order and in the same units; these have other sites")
        return self._left_out(X, targets)

    def _left_out(self, X: Array, y: Array) -> LeftOut:
        mean, variance = latent_left_out(self.posterior, self.sites, X)
        return LeftOut(mean, variance, self.likelihood.log_predictive(y, mean, variance))


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
    #: estimate from each, for "sep" and "vi" from every tenth; NaN where an evaluation failed)
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

    def leave_one_out(self, X: ArrayLike, y: ArrayLike) -> LeftOut:
        """Predict each datum from all others at the parameters learnt from all, see `pepcore.leave_one_out`."""
        return self.fit.leave_one_out(X, y)

    @property
    def kernel(self) -> Kernel:
        """The kernel of the one latent function; AttributeError for many classes."""
        return self._learnt("kernel", "kernels")

    @property
    def kernels(self) -> Any:
        """One kernel for all classes, or a list of C; AttributeError for one latent function."""
        return self._learnt("kernels", "kernel")

    def _learnt(self, name: str, other: str) -> Any:
        if name not in self.parameters:
            raise AttributeError(f"this model has no {name}, but {other}; its parameters are {', '.join(self.parameters)}")
        return self.parameters[name]

    @property
    def Z(self) -> Any:
        """Pseudo-inputs (M, D); None for a method without them, a list of C arrays where each class has its own."""
        return self.parameters.get("Z")

    @property
    def noise(self) -> Any:
        """Noise variance as an argument of `infer`, or (C,) for the classes; None where the likelihood holds it, or has none."""
        return self.parameters.get("noise")


class NoGradientError(NotImplementedError, AttributeError):
    """This result has no gradient; the message says what to call for one. `hasattr(result, "gradient")` is False."""


def refuse_gradient(advice: str) -> NoReturn:
    """Raise NoGradientError(advice), for a `Fit` that has no gradient."""
    raise NoGradientError(advice)


def latent_left_out(posterior: Posterior, sites: Sites, X: Array) -> tuple[Array, Array]:
    """Mean (N,) and variance (N,) of the latent f at each row of X (N, D) without its own site, which lies along a_n."""
    none: Any = None  # features are computed block by block, and nothing is differentiated
    features = Features(posterior.basis, check_inputs(X, columns=posterior.basis.Z.shape[1]), none, none, none, none)
    mean, variance = without_own_site(features, sites, posterior.mean, posterior.precision_cholesky)
    for rows, _, h in features.blocks():
        variance[rows] += h
    return mean, variance


def leave_one_out(fit: Result, X: ArrayLike, y: ArrayLike) -> LeftOut:
    """Predict each datum of a fit from all others, without a refit.

    The whole site of datum n is divided out of the posterior, whatever the power: the posterior of the other data has no
    factor of datum n at all, while the fraction alpha belongs to the update alone. With Gaussian noise this is exactly what a
    refit without the datum, at the same hyper-parameters and Z, would predict. With other likelihoods the other sites would
    still move in a refit, but here they do not; the error is small compared with the change itself. Hyper-parameters and Z, if
    learnt, have seen every datum, so the predictions are better than they would be on new data.

    Parameters
    ----------
    fit : Fit, OnlineFit, MulticlassFit ("ep", "gfitc" or "vi") or Model, with a site for each datum
        Parts shared by all data, such as the basis vectors of `online.infer`, stay.
    X, y : (N, D) inputs of the fit, in the same order, and (N,) its targets

    Returns a LeftOut, after O(NM²) time; O(N³) for a fit by `exact`.

    Raises
    ------
    NotImplementedError if the fit has no site for each datum: blocks, "sep", "vi" learnt on batches or jointly, `add_data`,
        decoupled bases, streams
    ValueError if X and y have more or fewer rows than the data of the fit, or are found not to be these data; not every
        exchange of rows or of targets is detected
    ImproperCavityError if the others leave no proper posterior; it names the data. It happens only if the likelihood is
        not log-concave.

    Source: :eq:`loo-cavity`, :eq:`loo-density`.
    """
    return fit.leave_one_out(X, y)
