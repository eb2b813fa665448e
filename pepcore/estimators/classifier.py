"""Classification: the probit link for two classes, one latent function per class for more."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from pepcore import multiclass
from pepcore.estimators.base import LEARNABLE, PowerEPBase, as_model
from pepcore.gaussian import Array
from pepcore.kernels import Kernel
from pepcore.likelihoods import Probit
from pepcore.results import Model
from pepcore.validation import check_count

APPROXIMATIONS = ("ep", "sep", "gfitc", "vi")


class PowerEPClassifier(ClassifierMixin, PowerEPBase):
    """Sparse GP classification by Power EP, with the probit link for two classes and one latent function per class for more.

    For more than two classes each class learns its own kernel, pseudo-inputs and noise, all of which start alike unless
    kernel, Z and noise are lists of C of them.

    Parameters
    ----------
    kernel, M, Z, alpha, optimise, batch, epochs, standardise, random_state : as for `PowerEPRegressor`
        With two classes an alpha of 1 is the quickest: the probit then needs no quadrature.
    approximation : "ep", "sep", "gfitc" or "vi", for more than two classes, see `pepcore.multiclass`; "vi" needs alpha = 0,
        and "gfitc" an alpha above 0.
        "ep" uses a label of C classes in C − 1 comparisons. With many classes that overlap it is too sure, its evidence is no
        log probability of the labels, and "gfitc", which takes longer, has the better probabilities.
    noise : float or (C,), variance of the noise on each latent function to start from; the probit link of two classes has none
    restarts : int, number of starts of L-BFGS; 1 for more than two classes
    max_evaluations : int, of the log evidence and its gradient; for more than two classes the number of inner updates,
        all of which are made, without testing whether learning has converged
    tol : float, in nats, for two classes, as for `PowerEPRegressor`

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
        kernel: Kernel | Sequence[Kernel] | None = None,
        M: int = 50, Z: str | ArrayLike = "kmeans", alpha: float = 0.5,
        approximation: str = "ep", noise: float | ArrayLike = 0.1,
        optimise: Sequence[str] = LEARNABLE, restarts: int = 1, max_evaluations: int = 250, tol: float = 0.03,
        batch: int | None = None, epochs: int | None = None, standardise: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel, self.M, self.Z, self.alpha, self.approximation, self.noise = kernel, M, Z, alpha, approximation, noise
        self.optimise, self.restarts, self.max_evaluations, self.tol = optimise, restarts, max_evaluations, tol
        self.batch, self.epochs, self.standardise, self.random_state = batch, epochs, standardise, random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from X (N, D) and labels y (N,), integers, strings or booleans; returns the estimator itself.

        ValueError for wrong shapes, NaN, labels of one class only, fractions, and settings out of range. Ctrl-C ends it, and
        the search it may be a part of; `training.fit` and `multiclass.fit` keep what was learnt until then.
        """
        inputs, labels = self._data(X, y)
        check_classification_targets(labels)
        if self.approximation not in APPROXIMATIONS:
            raise ValueError(f"approximation = {self.approximation!r} is unknown; choose one of {', '.join(APPROXIMATIONS)}")
        self.classes_, codes = np.unique(labels, return_inverse=True)
        C = len(self.classes_)
        if C < 2:
            raise ValueError(f"y holds one class only, {self.classes_.tolist()[0]!r}; a classifier needs labels of two or more")
        inputs = self._measure(inputs)
        if C == 2:
            self._refuse_lists()
            return self._finish(self._learn(inputs, np.where(codes == 1, 1.0, -1.0), Probit()))
        return self._finish(self._learn_classes(inputs, codes, C))

    def _refuse_lists(self) -> None:
        for name in ("kernel", "Z"):
            value = getattr(self, name)
            if isinstance(value, list | tuple) and (name == "kernel" or (value and np.ndim(value[0]) == 2)):
                raise ValueError(f"{name} is a list of {len(value)}, one for each class, but two classes share one latent "
                                 f"function; give one {name}")

    def _learn_classes(self, X: Array, y: np.ndarray, C: int) -> Model:
        """The model of C latent functions for X (N, D) in its units and labels y (N,), 0 ... C − 1."""
        if self.approximation == "gfitc" and self.alpha == 0:
            raise ValueError('approximation = "gfitc" needs alpha > 0 here; give "vi" for alpha = 0')
        kernel, Z, seed = self._start(X)
        kernels, points = (value if isinstance(value, list | tuple) else C * [value] for value in (kernel, Z))
        names = self._names(kernel="kernels")
        options: dict = {"approximation": self.approximation, "alpha": self.alpha, "noise": self.noise, "classes": C}
        if self.batch is not None:
            options |= {"batch": self.batch, "epochs": self._passes(X), "optimise": names, "seed": seed}
            return multiclass.fit_minibatch(kernels, points, (X, y), **options)
        if not names:
            fit = multiclass.infer(kernels, points, X, y, **options)
            return as_model({"kernels": kernels, "Z": points, "noise": fit.noise}, fit)
        iterations = check_count(self.max_evaluations, "max_evaluations")
        return multiclass.fit(kernels, X, y, Z=points, iterations=iterations, optimise=names, **options)

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

    def log_density(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Log probabilities (S,) of labels y (S,) at X (S, D); ValueError for a label that `fit` has not seen."""
        check_is_fitted(self, "model_")
        return self._log_densities(*self._data(X, y, reset=False))

    def _targets(self, y: np.ndarray) -> tuple[np.ndarray, float]:
        """Labels (N,) as the model knows them, and 1, the size of their unit."""
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y holds the label {unknown.tolist()[0]!r}, but fit has seen only {self.classes_.tolist()}; "
                             "each part of the data needs every class, as stratified folds give it")
        codes = np.searchsorted(self.classes_, y)
        return (np.where(codes == 1, 1.0, -1.0) if len(self.classes_) == 2 else codes), 1.0

    def _goes_on(self) -> dict:
        return super()._goes_on() | {"noise": self.noise_}
