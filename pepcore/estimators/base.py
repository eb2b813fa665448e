"""What the estimators share: units, where learning starts, and the names of what was learnt."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pepcore import power_ep, training
from pepcore.gaussian import Array
from pepcore.likelihoods import Gaussian, Likelihood, StudentT
from pepcore.results import Fit, Model, refuse_gradient
from pepcore.sweeps import warn
from pepcore.training.loop import INTERRUPTED
from pepcore.training.starts import spread_of
from pepcore.validation import as_real, check_count, check_inputs, check_names, check_not_negative, refuse_mask

LEARNABLE = ("kernel", "noise", "Z")
EPOCHS, STEPS = 20, 1000  # passes over the data in batches, and the steps that they should make at least
NO_GRADIENT = partial(refuse_gradient, "a copied or loaded estimator keeps no training data, and so no gradient; fit it again")
REAL = (Gaussian, StudentT)  # y = f + noise, in any units


class PowerEPBase(BaseEstimator):
    """What both estimators share: the units of the inputs, where learning starts, and the names of what was learnt."""

    _is_short = False  # whether the fit is meant to end early, and not to warn of it

    def __getstate__(self) -> dict:
        """What a copy or a file keeps: all but the training data, which only the gradient of the evidence needs."""
        state = super().__getstate__()
        if "model_" not in state:
            return state
        fit = replace(state["model_"].fit, _gradient=NO_GRADIENT)
        return state | {"model_": replace(state["model_"], fit=fit)}

    def _forget(self) -> None:
        """Leave nothing of an earlier fit, so that a fit that fails or is interrupted leaves no mixture of both."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _check_settings(self) -> None:
        """Refuse settings out of range, whether or not this fit will use them."""
        if not isinstance(self.standardise, bool | np.bool_):
            raise ValueError(f"standardise = {self.standardise!r} must be True or False")
        check_not_negative(self.tol, "tol", "0 goes on until the evidence no longer rises, 0.03 nats is usual")
        if self.epochs is not None:
            check_count(self.epochs, "epochs")

    def _measure(self, X: Array) -> Array:
        """Set the units of the inputs from X (N, D), and return X in these units."""
        self.X_mean_ = X.mean(axis=0) if self.standardise else np.zeros(X.shape[1])
        self.X_scale_ = spread_of(X) if self.standardise else np.ones(X.shape[1])
        return self._scaled(X)

    def _scaled(self, X: Array) -> Array:
        return (X - self.X_mean_) / self.X_scale_

    def _data(self, X: ArrayLike, y: ArrayLike, reset: bool = True, **options: bool) -> tuple[Array, np.ndarray]:
        """X (N, D) and y (N,), checked; numbers in C order, so that a table gives the same digits as an array."""
        if reset:
            self._forget()
            self._check_settings()
        refuse_mask(X, "X")
        refuse_mask(y, "y")
        inputs, targets = validate_data(self, X, y, dtype=np.float64, order="C", reset=reset, **options)
        return inputs, as_real(targets, "y") if options.get("y_numeric") else targets

    def _inputs(self, X: ArrayLike) -> Array:
        """New inputs (S, D), checked and in the units of the model."""
        check_is_fitted(self, "model_")
        refuse_mask(X, "X")
        return self._scaled(validate_data(self, X, dtype=np.float64, order="C", reset=False))

    def _points(self, Z: ArrayLike) -> Array:
        """Pseudo-inputs (M, D), given in the units of X, in those of the model."""
        return self._scaled(check_inputs(Z, "Z", len(self.X_scale_)))

    def _start(self, X: Array, y: Array | None = None) -> tuple[Any, Any, int]:
        """Kernel and pseudo-inputs (M, D), or lists of them, and seed to start from, for X (N, D) in the model's units."""
        if self.restarts != 1 and (self.batch is not None or len(getattr(self, "classes_", ())) > 2):
            raise ValueError(f"restarts = {self.restarts!r} must be 1 on batches and for more than two classes")
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        Z: Any
        if isinstance(self.Z, str):
            M = min(check_count(self.M, "M"), len(np.unique(X, axis=0)))
            Z = training.choose_pseudo_inputs(X, M, self.Z, seed)
        elif isinstance(self.Z, list | tuple) and self.Z and np.ndim(self.Z[0]) == 2:
            Z = [self._points(own) for own in self.Z]
        else:
            Z = self._points(self.Z)
        kernel = training.default_kernel(X, np.zeros(len(X)) if y is None else y) if self.kernel is None else self.kernel
        return kernel, Z, seed

    def _learn(self, X: Array, y: Array, likelihood: Likelihood) -> Model:
        """The model of one latent function for X (N, D) and y (N,) in its units, which starts at `likelihood`."""
        kernel, Z, seed = self._start(X, y if isinstance(likelihood, REAL) else None)
        if self._names() == ("noise",) and not likelihood.parameters:
            raise ValueError(f'optimise = ("noise",) leaves nothing to learn, since {likelihood!r} has no parameter; name '
                             '"kernel" or "Z" as well, or () for inference alone')
        if self.batch is not None:
            steps = {"optimise": self._names(noise="likelihood"), "batch": self.batch, "epochs": self._passes(X), "seed": seed}
            return training.fit_minibatch(kernel, X, y, likelihood, Z=Z, alpha=self.alpha, **steps)
        infer: Callable = power_ep.infer
        values: dict = {"likelihood": likelihood}
        if isinstance(likelihood, Gaussian):
            infer, values = power_ep.regression, {"noise": likelihood.noise}
        names = self._names(noise=next(iter(values)))
        if not names:
            return as_model({"kernel": kernel, "Z": Z, **values}, infer(kernel, Z, X, y, alpha=self.alpha, **values))
        search = {"restarts": self.restarts, "max_evaluations": self.max_evaluations, "least_rise": self.tol}
        return training.fit(kernel, X, y, infer=infer, Z=Z, alpha=self.alpha, optimise=names, seed=seed, **values, **search)

    def _passes(self, X: Array) -> int:
        """How often learning on batches passes over the data X (N, D)."""
        if self.epochs is not None:
            return self.epochs
        steps = -(-len(X) // check_count(self.batch, "batch"))  # in each pass
        return max(EPOCHS, -(-STEPS // steps))

    def _log_densities(self, X: Array, y: np.ndarray, left_out: bool = False) -> Array:
        """Log densities (S,) of checked targets, in nats and in the units of y; if `left_out`, of fitted data from all others."""
        targets, scale = self._targets(y)
        inputs = self._scaled(X)
        model = self.model_
        found = model.leave_one_out(inputs, targets).log_density if left_out else model.log_density(inputs, targets)
        return found - np.log(scale)

    def _names(self, **renamed: str) -> tuple:
        """`optimise` in the words of the function that learns."""
        return tuple(renamed.get(name, name) for name in check_names(self.optimise, LEARNABLE))

    def _finish(self, model: Model) -> Self:
        """Keep what was learnt. Whoever interrupts a fit wants to end whatever it is a part of."""
        if model.message.startswith(INTERRUPTED):
            raise KeyboardInterrupt
        if self.batch is None and not model.converged and not self._is_short:
            message = f"learning has not converged: {model.message}; raise max_evaluations or change the starting kernel"
            if len(getattr(self, "classes_", ())) > 2:  # its steps do not say whether they have converged
                message = f"inference after learning has {model.fit.message}; change the starting kernel or noise"
            warn(message, ConvergenceWarning)
        return self._keep(model)

    def _keep(self, model: Model) -> Self:
        """Name what was learnt as scikit-learn does."""
        self.model_, self.likelihood_ = model, model.likelihood
        self.kernel_ = model.parameters["kernels" if "kernels" in model.parameters else "kernel"]
        many, unscaled = isinstance(model.Z, list | tuple), lambda Z: Z * self.X_scale_ + self.X_mean_
        self.Z_ = [unscaled(Z) for Z in model.Z] if many else unscaled(model.Z)
        self.noise_ = getattr(model.likelihood, "noise", None)
        self.log_marginal_likelihood_value_, self.n_iter_ = model.log_evidence, model.evaluations
        return self

    def _goes_on(self) -> dict:
        """The settings of an estimator that starts where this one ended."""
        return {"kernel": self.kernel_, "Z": self.Z_, "restarts": 1}


def as_model(values: dict, fit: Fit) -> Model:
    """The fit at given values, as learning would return it."""
    return Model(values, fit, 1, fit.converged, fit.message, fit.history)
