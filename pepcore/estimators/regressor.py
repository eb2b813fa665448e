"""Regression: Gaussian noise, outliers, counts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from pepcore import power_ep
from pepcore.estimators.base import LEARNABLE, REAL, PowerEPBase
from pepcore.gaussian import Array
from pepcore.kernels import Kernel
from pepcore.likelihoods import Gaussian, Likelihood, Logit, Poisson, Probit, StudentT
from pepcore.training.starts import variance_of

DRAWS: dict[type, Callable] = {
    Gaussian: lambda own, f, rng: f + np.sqrt(own.noise) * rng.standard_normal(f.shape),
    StudentT: lambda own, f, rng: f + own.scale * rng.standard_t(own.degrees, f.shape),
    Poisson: lambda own, f, rng: _counts(f, rng),
}
LARGEST = 43.0  # a log rate, beyond which NumPy does not draw counts: they would not fit into 64 bits


def _counts(f: Array, rng: np.random.RandomState) -> Array:
    """Counts drawn at log rates f (T, S)."""
    if f.max(initial=0.0) > LARGEST:
        rows = np.flatnonzero((f > LARGEST).any(axis=0)).tolist()
        raise ValueError(f"the drawn log rates reach {f.max():.3g} at rows {rows[:5]} of X, beyond {LARGEST:g}, where no counts "
                         "can be drawn; these rows lie far from the data, or the kernel's variance is large")
    return rng.poisson(np.exp(f)).astype(float)


def _noise_is_gaussian(estimator: "PowerEPRegressor") -> bool:
    """Whether `partial_fit` exists: only Gaussian sites do not depend on the data that come later."""
    if estimator.likelihood is None or isinstance(estimator.likelihood, Gaussian):
        return True
    raise AttributeError("partial_fit needs Gaussian noise: the sites of other likelihoods change with later data; call fit")


class PowerEPRegressor(RegressorMixin, PowerEPBase):
    """Sparse GP regression by Power EP: Gaussian noise, data with outliers, or counts.

    With `standardise` the model sees inputs and real targets of mean 0 and variance 1. Kernel, likelihood and noise are
    given, and learnt, in these units.

    Parameters
    ----------
    kernel : kernel of pepcore, or None for a squared exponential with one lengthscale per input
    likelihood : None for Gaussian noise, or Gaussian(noise), StudentT(degrees, scale) for outliers, Poisson() for counts
        The latent f has mean 0. Far from the data the log rate of counts therefore returns to 0, and their mean to
        exp(variance/2), which is large where the kernel's variance is.
    M : int, number of pseudo-inputs unless Z is an array; it is lowered to the number of distinct rows of X
    Z : "kmeans", "subset" (random rows), or (M, D) array to start from, in the units of X
    alpha : float, in [0, 1]; 0 is VFE, 1 is FITC and EP
    noise : float, variance of Gaussian noise to start from, in the units of the model; None for a tenth of the variance of y
    optimise : tuple, which of "kernel", "noise" (the likelihood's parameter) and "Z" to learn; () for inference alone
    restarts : int, number of starts of L-BFGS, all but the first with scattered kernel parameters and noise
    max_evaluations : int, of the log evidence and its gradient, for each start
    tol : float, in nats; learning has converged when ten steps of L-BFGS together raise the log evidence by less
    batch : int, number of data in each step of Adam; None for L-BFGS on all data
    epochs : int, passes over the data if `batch` is given, each of N / batch steps; None for 20, or as many as make 1000 steps
        Nothing tests whether these were enough: look at `model_.trace()`.
    standardise : bool, whether to give the model inputs and real targets of mean 0 and variance 1
    random_state : int, RandomState or None, for the choice of Z, the restarts and the order of the batches

    Attributes
    ----------
    model_ : Model, the result of learning, in its own units (see `pepcore.estimators`)
    kernel_, likelihood_, noise_ : as learnt, in the units of the model; `noise_` is None unless the noise is Gaussian
    Z_ : (M, D) in the units of X
    log_marginal_likelihood_value_ : float, log evidence of the targets in the units of the model, in nats
    X_mean_, X_scale_ : (D,), from the units of the model to those of the inputs
    y_mean_, y_scale_ : float, the same for the targets
    n_iter_ : int, evaluations, or steps on batches
    n_features_in_, feature_names_in_ : as in all of scikit-learn

    Source: bui2017 sections 3.4 and 3.5.
    """

    def __init__(
        self,
        *,
        kernel: Kernel | None = None, likelihood: Likelihood | None = None,
        M: int = 50, Z: str | ArrayLike = "kmeans", alpha: float = 0.5, noise: float | None = None,
        optimise: Sequence[str] = LEARNABLE, restarts: int = 1, max_evaluations: int = 500, tol: float = 0.03,
        batch: int | None = None, epochs: int | None = None, standardise: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel, self.likelihood = kernel, likelihood
        self.M, self.Z, self.alpha, self.noise = M, Z, alpha, noise
        self.optimise, self.restarts, self.max_evaluations, self.tol = optimise, restarts, max_evaluations, tol
        self.batch, self.epochs, self.standardise, self.random_state = batch, epochs, standardise, random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from X (N, D) and y (N,); returns the estimator itself.

        ValueError for wrong shapes, NaN, targets that the likelihood does not accept, and settings out of range. Ctrl-C ends
        it, and the search it may be a part of; `pepcore.training.fit` keeps what was learnt until then.
        """
        inputs, targets = self._data(X, y, y_numeric=True)
        self.y_mean_, self.y_scale_, likelihood = 0.0, 1.0, self.likelihood
        if isinstance(likelihood, Probit | Logit):
            raise ValueError(f"likelihood = {likelihood!r} is for labels; use PowerEPClassifier")
        if likelihood is not None and self.noise is not None:
            raise ValueError(f"noise = {self.noise} and likelihood = {likelihood!r}: give one of them, not both")
        if self.standardise and (likelihood is None or isinstance(likelihood, REAL)):
            self.y_mean_, self.y_scale_ = float(targets.mean()), float(np.sqrt(variance_of(targets)))
        if isinstance(likelihood, Poisson) and not targets.any():
            raise ValueError("all counts in y are 0, from which no rate can be learnt; the more such data, the smaller the rate")
        targets, _ = self._targets(targets)
        if likelihood is None:
            likelihood = Gaussian(self.noise if self.noise is not None else 0.1 * variance_of(targets))
        return self._finish(self._learn(self._measure(inputs), targets, likelihood))

    @available_if(_noise_is_gaussian)
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Add the data X (N, D) and y (N,); returns the estimator itself. For Gaussian noise only.

        The first call is `fit`. Later calls, or calls after `fit`, keep kernel, noise, pseudo-inputs and units, and cost
        O(N M² + M³) for the N new data. They leave exactly the posterior and the log evidence of all data at these values.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y)
        inputs, targets = self._data(X, y, reset=False, y_numeric=True)
        fit = power_ep.add_data(self.model_.fit, self._scaled(inputs), self._targets(targets)[0])
        return self._keep(replace(self.model_, fit=fit))

    def predict(self, X: ArrayLike, return_std: bool = False, return_cov: bool = False) -> Array | tuple[Array, Array]:
        """Mean of new targets at X (S, D), in the units of y.

        Returns
        -------
        mean : (S,)
        std : (S,), standard deviation of new targets, noise included; only if `return_std`
        cov : (S, S), joint covariance of new targets, noise included; only if `return_cov`

        ValueError if both are asked for, or the covariance of targets that are not f + noise.
        """
        Xs = self._inputs(X)
        if return_std and return_cov:
            raise ValueError("give return_std or return_cov, not both")
        if not return_cov:
            mean, variance = self.model_.predict_y(Xs)
            mean = mean * self.y_scale_ + self.y_mean_
            return (mean, np.sqrt(variance) * self.y_scale_) if return_std else mean
        if not isinstance(self.likelihood_, REAL):
            raise ValueError(f"return_cov needs y = f + noise, not {self.likelihood_!r}; sample_y draws targets jointly")
        mean, covariance = self.model_.posterior.predict_full(Xs)
        _, variance = self.likelihood_.predict(mean, np.diag(covariance))
        np.fill_diagonal(covariance, variance)
        return mean * self.y_scale_ + self.y_mean_, covariance * self.y_scale_**2

    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: int | np.random.RandomState | None = 0) -> Array:
        """Draws (S, n_samples) of new targets at X (S, D), jointly over the rows and with noise, in the units of y."""
        Xs, rng = self._inputs(X), check_random_state(random_state)
        draw = DRAWS.get(type(self.likelihood_))
        if draw is None:
            raise ValueError(f"sample_y cannot draw from {self.likelihood_!r}; model_.posterior.sample draws the latent f")
        y = draw(self.likelihood_, self.model_.posterior.sample(Xs, n_samples, rng), rng)
        return y.T * self.y_scale_ + self.y_mean_

    def log_density(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Log predictive densities (S,) of targets y (S,) at X (S, D), in nats and in the units of y."""
        check_is_fitted(self, "model_")
        return self._log_densities(*self._data(X, y, reset=False, y_numeric=True))

    def _targets(self, y: Array) -> tuple[Array, float]:
        """Targets (N,) in the units of the model, and the size of such a unit."""
        return (y - self.y_mean_) / self.y_scale_, self.y_scale_

    def _goes_on(self) -> dict:
        own = {"noise": self.noise_} if self.likelihood is None else {"likelihood": self.likelihood_}
        return super()._goes_on() | own
