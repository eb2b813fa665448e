"""Power EP behind scikit-learn's interface: `PowerEPRegressor` and `PowerEPClassifier`.

They work in pipelines, grid searches and cross-validation as any other estimator does. `model_` is the result of
`training.fit` or `multiclass.fit`. It belongs to the standardised data: inputs and real targets of mean 0 and variance 1.
So do kernel, noise and likelihood, given or learnt, and the log evidence. `Z`, `Z_` and all predictions are in the units of
X and y. Counts and labels are never standardised. `standardise=False` leaves everything in the units of X and y.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from pepcore import multiclass, power_ep, training
from pepcore.gaussian import Array
from pepcore.kernels import Kernel
from pepcore.likelihoods import Gaussian, Likelihood, Logit, Poisson, Probit, StudentT
from pepcore.results import Fit, Model
from pepcore.training.starts import spread_of, variance_of
from pepcore.validation import check_count, check_inputs, check_names

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import check_random_state
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as missing:
    raise ImportError('pepcore.estimators needs scikit-learn 1.6 or newer: pip install "pepcore[sklearn]"') from missing

LEARNABLE = ("kernel", "noise", "Z")
REAL = (Gaussian, StudentT)  # y = f + noise, in any units
DRAWS: dict[type, Callable] = {
    Gaussian: lambda own, f, rng: f + np.sqrt(own.noise) * rng.standard_normal(f.shape),
    StudentT: lambda own, f, rng: f + own.scale * rng.standard_t(own.degrees, f.shape),
    Poisson: lambda own, f, rng: rng.poisson(np.exp(f)).astype(float),
}


class _PowerEP(BaseEstimator):
    """What both estimators share: the units of the inputs, where learning starts, and the names of what was learnt."""

    def _measure(self, X: Array) -> Array:
        """Set the units of the inputs by X (N, D); X in these units."""
        self.X_mean_ = X.mean(axis=0) if self.standardise else np.zeros(X.shape[1])
        self.X_scale_ = spread_of(X) if self.standardise else np.ones(X.shape[1])
        return self._scaled(X)

    def _scaled(self, X: Array) -> Array:
        return (X - self.X_mean_) / self.X_scale_

    def _data(self, X: ArrayLike, y: ArrayLike, reset: bool = True, **options: bool) -> tuple[Array, np.ndarray]:
        """X (N, D) and y (N,), checked; numbers in C order, so that a table gives the same digits as an array."""
        return validate_data(self, X, y, dtype=np.float64, order="C", reset=reset, **options)

    def _inputs(self, X: ArrayLike) -> Array:
        """New inputs (S, D), checked and in the units of the model."""
        check_is_fitted(self, "model_")
        return self._scaled(validate_data(self, X, dtype=np.float64, order="C", reset=False))

    def _start(self, X: Array, y: Array | None = None) -> tuple[Kernel, Array, int]:
        """Kernel, pseudo-inputs (M, D) and seed that learning starts from, for X (N, D) and y (N,) in the model's units."""
        if self.restarts != 1 and (self.batch is not None or len(getattr(self, "classes_", ())) > 2):
            raise ValueError(f"restarts = {self.restarts!r} must be 1 on batches and for more than two classes")
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        if isinstance(self.Z, str):
            M = min(check_count(self.M, "M"), len(np.unique(X, axis=0)))
            Z = training.choose_pseudo_inputs(X, M, self.Z, seed)
        else:
            Z = self._scaled(check_inputs(self.Z, "Z", X.shape[1]))
        kernel = training.default_kernel(X, np.zeros(len(X)) if y is None else y) if self.kernel is None else self.kernel
        return kernel, Z, seed

    def _learn(self, X: Array, y: Array, likelihood: Likelihood) -> Model:
        """The model of one latent function for X (N, D) and y (N,) in its units, which starts at `likelihood`."""
        kernel, Z, seed = self._start(X, y if isinstance(likelihood, REAL) else None)
        if self.batch is not None:
            steps = {"optimise": self._names(noise="likelihood"), "batch": self.batch, "epochs": self.epochs, "seed": seed}
            return training.fit_minibatch(kernel, X, y, likelihood, Z=Z, alpha=self.alpha, **steps)
        infer: Callable = power_ep.infer
        values: dict = {"likelihood": likelihood}
        if isinstance(likelihood, Gaussian):
            infer, values = power_ep.regression, {"noise": likelihood.noise}
        names = self._names(noise=next(iter(values)))
        if not names:
            return _as_model({"kernel": kernel, "Z": Z, **values}, infer(kernel, Z, X, y, alpha=self.alpha, **values))
        search = {"restarts": self.restarts, "max_evaluations": self.max_evaluations, "optimise": names, "seed": seed}
        return training.fit(kernel, X, y, infer=infer, Z=Z, alpha=self.alpha, **values, **search)

    def _names(self, **renamed: str) -> tuple:
        """`optimise` in the words of the function that learns."""
        return tuple(renamed.get(name, name) for name in check_names(self.optimise, LEARNABLE))

    def _keep(self, model: Model) -> Self:
        """Name what was learnt as scikit-learn does."""
        self.model_, self.likelihood_ = model, model.likelihood
        self.kernel_ = model.parameters["kernels" if "kernels" in model.parameters else "kernel"]
        many, unscaled = isinstance(model.Z, list | tuple), lambda Z: Z * self.X_scale_ + self.X_mean_
        self.Z_ = [unscaled(Z) for Z in model.Z] if many else unscaled(model.Z)
        self.noise_ = getattr(model.likelihood, "noise", None)
        self.log_marginal_likelihood_value_, self.n_iter_ = model.log_evidence, model.evaluations
        if self.batch is None and not model.converged:
            message = f"learning has not converged: {model.message}; raise max_evaluations or change the starting kernel"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        return self


def _as_model(values: dict, fit: Fit) -> Model:
    """The fit at given values, as learning would return it."""
    return Model(values, fit, 1, fit.converged, fit.message, fit.history)


def _noise_is_gaussian(estimator: "PowerEPRegressor") -> bool:
    """Whether `partial_fit` exists: only Gaussian sites do not depend on the data that come later."""
    if estimator.likelihood is None or isinstance(estimator.likelihood, Gaussian):
        return True
    raise AttributeError("partial_fit needs Gaussian noise: the sites of other likelihoods change with later data; call fit")


class PowerEPRegressor(RegressorMixin, _PowerEP):
    """Sparse GP regression by Power EP: Gaussian noise, data with outliers, or counts.

    Parameters
    ----------
    kernel : kernel of pepcore, or None for a squared exponential with one lengthscale per input
    likelihood : None for Gaussian noise, or Gaussian(noise), StudentT(degrees, scale) for outliers, Poisson() for counts
        The latent f has mean 0. Far from the data, the log rate of counts therefore returns to 0.
    M : int, number of pseudo-inputs unless Z is an array; it is lowered to the number of distinct rows of X
    Z : "kmeans", "subset" (random rows), or (M, D) array to start from, in the units of X
    alpha : float, in [0, 1]; 0 is VFE, 1 is FITC and EP
    noise : float, variance of Gaussian noise to start from; None for a tenth of the variance of y
    optimise : tuple, which of "kernel", "noise" (the likelihood's parameter) and "Z" to learn; () for inference alone
    restarts : int, number of starts of L-BFGS, all but the first with scattered kernel parameters and noise
    max_evaluations : int, of the log evidence and its gradient, for each start
    batch : int, number of data in each step of Adam; None for L-BFGS on all data
    epochs : int, passes over the data if `batch` is given
    standardise : bool, whether the model sees inputs and real targets of mean 0 and variance 1
    random_state : int, RandomState or None, for the choice of Z, the restarts and the order of the batches

    Attributes
    ----------
    model_ : Model, the result of learning, in its own units (see the head of this module)
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
        optimise: Sequence[str] = LEARNABLE, restarts: int = 1, max_evaluations: int = 500,
        batch: int | None = None, epochs: int = 20, standardise: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel, self.likelihood = kernel, likelihood
        self.M, self.Z, self.alpha, self.noise = M, Z, alpha, noise
        self.optimise, self.restarts, self.max_evaluations = optimise, restarts, max_evaluations
        self.batch, self.epochs, self.standardise, self.random_state = batch, epochs, standardise, random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from X (N, D) and y (N,); returns the estimator itself.

        ValueError for wrong shapes, NaN, targets that the likelihood does not know, and settings out of range.
        """
        inputs, targets = self._data(X, y, y_numeric=True)
        self.y_mean_, self.y_scale_, likelihood = 0.0, 1.0, self.likelihood
        if isinstance(likelihood, Probit | Logit):
            raise ValueError(f"likelihood = {likelihood!r} is for labels; use PowerEPClassifier")
        if likelihood is not None and self.noise is not None:
            raise ValueError(f"noise = {self.noise} and likelihood = {likelihood!r}: give one of them, not both")
        if self.standardise and (likelihood is None or isinstance(likelihood, REAL)):
            self.y_mean_, self.y_scale_ = float(targets.mean()), float(np.sqrt(variance_of(targets)))
        targets = (targets - self.y_mean_) / self.y_scale_
        if likelihood is None:
            likelihood = Gaussian(self.noise if self.noise is not None else 0.1 * variance_of(targets))
        return self._keep(self._learn(self._measure(inputs), targets, likelihood))

    @available_if(_noise_is_gaussian)
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Add the data X (N, D) and y (N,); returns the estimator itself. For Gaussian noise only.

        The first call is `fit`. Later calls, or calls after `fit`, keep kernel, noise, pseudo-inputs and units, and cost
        O(N M² + M³) for the N new data. They leave exactly the posterior and the log evidence of all data at these values.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y)
        inputs, targets = self._data(X, y, reset=False, y_numeric=True)
        fit = power_ep.add_data(self.model_.fit, self._scaled(inputs), (targets - self.y_mean_) / self.y_scale_)
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


class PowerEPClassifier(ClassifierMixin, _PowerEP):
    """Sparse GP classification by Power EP, with the probit link for two classes and one latent function per class for more.

    For more than two classes each class learns its own kernel, pseudo-inputs and noise, all of which start alike.

    Parameters
    ----------
    kernel, M, Z, alpha, optimise, batch, epochs, standardise, random_state : as for `PowerEPRegressor`
    noise : float, variance of the noise on each latent function to start from; the probit link of two classes has none
    restarts : int, number of starts of L-BFGS; 1 for more than two classes
    max_evaluations : int, of the log evidence and its gradient; for more than two classes the number of inner updates

    Attributes
    ----------
    classes_ : (C,) labels in ascending order
    kernel_ : kernel, or C of them for more than two classes
    Z_ : (M, D) in the units of X, or C such arrays
    noise_ : (C,), or None for two classes
    model_, likelihood_, log_marginal_likelihood_value_, X_mean_, X_scale_, n_iter_ : as for `PowerEPRegressor`

    Source: bui2017 section 3.5; villacampa2017 section 2.3.
    """

    def __init__(
        self,
        *,
        kernel: Kernel | None = None,
        M: int = 50, Z: str | ArrayLike = "kmeans", alpha: float = 0.5, noise: float = 0.1,
        optimise: Sequence[str] = LEARNABLE, restarts: int = 1, max_evaluations: int = 250,
        batch: int | None = None, epochs: int = 20, standardise: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel, self.M, self.Z, self.alpha, self.noise = kernel, M, Z, alpha, noise
        self.optimise, self.restarts, self.max_evaluations = optimise, restarts, max_evaluations
        self.batch, self.epochs, self.standardise, self.random_state = batch, epochs, standardise, random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from X (N, D) and labels y (N,) of any kind; returns the estimator itself.

        ValueError for wrong shapes, NaN, labels of one class only, and settings out of range.
        """
        inputs, labels = self._data(X, y)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        C = len(self.classes_)
        if C < 2:
            raise ValueError(f"y holds one class only, {self.classes_[0]!r}; a classifier needs labels of two or more")
        inputs = self._measure(inputs)
        if C == 2:
            return self._keep(self._learn(inputs, np.where(codes == 1, 1.0, -1.0), Probit()))
        return self._keep(self._learn_classes(inputs, codes, C))

    def _learn_classes(self, X: Array, y: np.ndarray, C: int) -> Model:
        """The model of C latent functions for X (N, D) in its units and labels y (N,), 0 ... C − 1."""
        kernel, Z, seed = self._start(X)
        kernels, points, names = C * [kernel], C * [Z], self._names(kernel="kernels")
        options: dict = {"alpha": self.alpha, "noise": self.noise, "classes": C}
        if self.batch is not None:
            options |= {"batch": self.batch, "epochs": self.epochs, "optimise": names, "seed": seed}
            return multiclass.fit_minibatch(kernels, points, (X, y), **options)
        if not names:
            fit = multiclass.infer(kernels, points, X, y, **options)
            return _as_model({"kernels": kernels, "Z": points, "noise": fit.noise}, fit)
        return multiclass.fit(kernels, X, y, Z=points, iterations=self.max_evaluations, optimise=names, **options)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The most probable label (S,) at each row of X (S, D)."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities (S, C) at X (S, D) of the labels, in the order of `classes_`."""
        Xs = self._inputs(X)
        p = self.model_.predict_y(Xs)
        return np.stack([1 - p, p], axis=1) if len(self.classes_) == 2 else p

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Log probabilities (S, C) at X (S, D), accurate for improbable labels too."""
        Xs = self._inputs(X)
        mean, variance = self.model_.predict_f(Xs)
        labels = (-1, 1) if len(self.classes_) == 2 else range(len(self.classes_))
        each = [self.likelihood_.log_predictive(np.full(len(mean), label), mean, variance) for label in labels]
        return np.stack(each, axis=1)
