"""Estimators that choose the power α by predictions of data that were left out."""

import time
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from pepcore.estimators.base import LEARNABLE, PowerEPBase
from pepcore.estimators.classifier import PowerEPClassifier
from pepcore.estimators.regressor import PowerEPRegressor
from pepcore.gaussian import Array
from pepcore.kernels import Kernel
from pepcore.likelihoods import Likelihood
from pepcore.sweeps import warn
from pepcore.validation import check_alpha, check_count

ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
BELOW_ONE = (*ALPHAS[:-1], 0.9)  # for leave-one-out
LEAVE_ONE_OUT = "leave-one-out"
SHARE = 4  # a fit that starts where the last power ended has 1/SHARE of the evaluations of a fresh one


class _ChoosesAlpha(PowerEPBase):
    """The search that both estimators share, over estimators of the class `_one`, each of one power."""

    _one: ClassVar[Any]

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Choose the power and learn from all of X (N, D) and y (N,) at it; returns the estimator itself.

        `groups` (N,) are for a `cv` that splits by groups, such as GroupKFold.

        ValueError for powers outside [0, 1], for `scoring` beside `cv="leave-one-out"`, and whatever the estimator of one
        power refuses. UserWarning for `cv="leave-one-out"` beside a power of 1.
        """
        inputs, targets = self._data(X, y, y_numeric=not is_classifier(self))
        leave_one_out = isinstance(self.cv, str) and self.cv == LEAVE_ONE_OUT
        given: Any = self._usual(BELOW_ONE if leave_one_out else ALPHAS, targets) if self.alphas is None else self.alphas
        alphas = sorted({float(check_alpha(alpha)) for alpha in (given if np.iterable(given) else [given])})
        if not alphas:
            raise ValueError("alphas is empty; give at least one power in [0, 1]")
        if leave_one_out and alphas[-1] == 1.0:
            warn(f'cv = "{LEAVE_ONE_OUT}" is far too optimistic at alpha = 1; give alphas up to 0.9', UserWarning)
        random = self.random_state
        seed = int(random) if isinstance(random, Integral) else check_random_state(random).randint(np.iinfo(np.int32).max)
        names = [name for name in self._one._get_param_names() if name != "alpha"]
        fresh = self._one(**{name: getattr(self, name) for name in names} | {"random_state": seed})
        paths = Parallel(n_jobs=self.n_jobs)(
            delayed(_path)(fresh, alphas, inputs, targets, *part)
            for part in self._parts(fresh, inputs, targets, groups, leave_one_out))
        self.cv_results_ = _table(alphas, *map(np.array, zip(*paths, strict=True)))
        self.best_index_ = int(np.argmin(self.cv_results_["rank_test_score"]))
        self.best_score_, self.alpha_ = self.cv_results_["mean_test_score"][self.best_index_], alphas[self.best_index_]
        chosen = fresh.set_params(alpha=self.alpha_).fit(inputs, targets)
        for name in vars(chosen):
            if name.endswith("_"):
                setattr(self, name, getattr(chosen, name))
        return self

    def _usual(self, alphas: tuple, y: np.ndarray) -> tuple:
        """Those of the powers that can be compared on targets y (N,)."""
        return alphas

    def _parts(
        self, fresh: Any, X: Array, y: np.ndarray, groups: ArrayLike | None, leave_one_out: bool
    ) -> list[tuple[np.ndarray, np.ndarray, Callable]]:
        """For each path over the powers the rows to learn from, the rows to predict, and the score of a fitted estimator."""
        if leave_one_out:
            if self.scoring is not None:
                raise ValueError(f'cv = "{LEAVE_ONE_OUT}" scores by log densities; leave scoring = {self.scoring!r} out')
            return [(np.arange(len(y)), np.arange(len(y)), _left_out_score)]
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise ValueError(f"scoring = {self.scoring!r} must be None, one name or a function: one score chooses the power")
        score = _score if self.scoring is None else check_scoring(fresh, self.scoring)
        return [(*part, score) for part in check_cv(self.cv, y, classifier=is_classifier(self)).split(X, y, groups)]


def _score(estimator: Any, X: Array, y: np.ndarray) -> float:
    return estimator._log_densities(X, y).mean()


def _left_out_score(estimator: Any, X: Array, y: np.ndarray) -> float:
    return estimator._log_densities(X, y, left_out=True).mean()


def _path(
    fresh: Any, alphas: list, X: Array, y: np.ndarray, learn: np.ndarray, predict: np.ndarray, score: Callable
) -> tuple[list, list]:
    """Scores and seconds of fits at one power after another; each but the first starts where the one before it ended."""
    scores, seconds, settings = [], [], fresh.get_params(deep=False)
    if fresh.batch is None:
        limit, most = "max_evaluations", check_count(fresh.max_evaluations, "max_evaluations", least=0)
    else:
        limit, most = "epochs", fresh._passes(X[learn])
    settings[limit], fewer = most, {limit: max(1, most // SHARE)}
    for alpha in alphas:
        start = time.perf_counter()
        fit = type(fresh)(**settings | {"alpha": alpha})
        fit._is_short = True
        fit.fit(X[learn], y[learn])
        seconds.append(time.perf_counter() - start)
        scores.append(score(fit, X[predict], y[predict]))
        settings |= fewer | fit._goes_on()
    return scores, seconds


def _table(alphas: list, scores: Array, seconds: Array) -> dict:
    """`cv_results_` as in GridSearchCV, for scores and seconds (paths, powers)."""
    mean = scores.mean(axis=0)
    if not np.isfinite(mean).any():
        raise ValueError("no power has a finite score on all the data left out; look at the data, or give another scoring")
    columns = {"param_alpha": np.array(alphas), "params": [{"alpha": alpha} for alpha in alphas]}
    columns |= {f"split{k}_test_score": row for k, row in enumerate(scores)}
    columns |= {"mean_test_score": mean, "std_test_score": scores.std(axis=0)}
    columns |= {"rank_test_score": rankdata(-np.nan_to_num(mean, nan=-np.inf), method="min").astype(int)}
    return columns | {"mean_fit_time": seconds.mean(axis=0), "std_fit_time": seconds.std(axis=0)}


class PowerEPRegressorCV(_ChoosesAlpha, PowerEPRegressor):
    """`PowerEPRegressor` whose power is chosen by cross-validation.

    In each fold the first power has `max_evaluations`. Each further power starts where the one before it ended and has a
    quarter of them, so that five powers in five folds cost about ten single fits. Then one fit to all data at the chosen
    power follows, the same as `PowerEPRegressor(alpha=alpha_)`.

    Parameters
    ----------
    alphas : sequence of powers in [0, 1]; None for 0, 0.25, 0.5, 0.75 and 1, or 0.9 in place of 1 with "leave-one-out"
    cv : None for 5 folds, a number of folds, a splitter, an iterable of (train, test), or "leave-one-out"
        The last scores each power by its own fit, which costs no refit; but hyper-parameters and pseudo-inputs have then
        seen the datum that is left out, and at a power of 1 it is far too optimistic.
    scoring : None for the mean log density of the targets left out, in nats; or a name or a callable as in scikit-learn
    n_jobs : int, folds in parallel, as in joblib; None for one
    kernel, likelihood, M, Z, noise, optimise, restarts, max_evaluations, tol, batch, epochs, standardise, random_state : as
        for `PowerEPRegressor`

    Attributes
    ----------
    alpha_ : float, the chosen power
    best_score_, best_index_ : its mean score, and its place in `cv_results_`
    cv_results_ : dict with "param_alpha", "mean_test_score", "split0_test_score" and the like, as in `GridSearchCV`,
        powers in ascending order
    kernel_, likelihood_, noise_, Z_, model_, ... : as for `PowerEPRegressor`

    Source: chapter "Can the data choose α?".
    """

    _one = PowerEPRegressor

    def __init__(
        self,
        *,
        alphas: Sequence[float] | None = None, cv: Any = None, scoring: str | Callable | None = None, n_jobs: int | None = None,
        kernel: Kernel | None = None, likelihood: Likelihood | None = None,
        M: int = 50, Z: str | ArrayLike = "kmeans", noise: float | None = None,
        optimise: Sequence[str] = LEARNABLE, restarts: int = 1, max_evaluations: int = 500, tol: float = 0.03,
        batch: int | None = None, epochs: int | None = None, standardise: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.alphas, self.cv, self.scoring, self.n_jobs = alphas, cv, scoring, n_jobs
        self.kernel, self.likelihood, self.M, self.Z, self.noise = kernel, likelihood, M, Z, noise
        self.optimise, self.restarts, self.max_evaluations, self.tol = optimise, restarts, max_evaluations, tol
        self.batch, self.epochs, self.standardise, self.random_state = batch, epochs, standardise, random_state


class PowerEPClassifierCV(_ChoosesAlpha, PowerEPClassifier):
    """`PowerEPClassifier` whose power is chosen by cross-validation.

    Parameters
    ----------
    alphas, cv, scoring, n_jobs : as for `PowerEPRegressorCV`; folds are stratified by class, and the default score is the
        mean log probability of the labels left out. For more than two classes the default powers are those that the
        approximation has: above 0 for "gfitc", 0 alone for "vi".
    kernel, M, Z, approximation, noise, optimise, restarts, max_evaluations, tol, batch, epochs, standardise, random_state :
        as for `PowerEPClassifier`

    Attributes
    ----------
    alpha_, best_score_, best_index_, cv_results_ : as for `PowerEPRegressorCV`
    classes_, kernel_, Z_, noise_, model_, ... : as for `PowerEPClassifier`

    Source: chapter "Can the data choose α?".
    """

    _one = PowerEPClassifier

    def __init__(
        self,
        *,
        alphas: Sequence[float] | None = None, cv: Any = None, scoring: str | Callable | None = None, n_jobs: int | None = None,
        kernel: Kernel | Sequence[Kernel] | None = None,
        M: int = 50, Z: str | ArrayLike = "kmeans", approximation: str = "ep", noise: float | ArrayLike = 0.1,
        optimise: Sequence[str] = LEARNABLE, restarts: int = 1, max_evaluations: int = 250, tol: float = 0.03,
        batch: int | None = None, epochs: int | None = None, standardise: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.alphas, self.cv, self.scoring, self.n_jobs = alphas, cv, scoring, n_jobs
        self.kernel, self.M, self.Z, self.approximation, self.noise = kernel, M, Z, approximation, noise
        self.optimise, self.restarts, self.max_evaluations, self.tol = optimise, restarts, max_evaluations, tol
        self.batch, self.epochs, self.standardise, self.random_state = batch, epochs, standardise, random_state

    def _usual(self, alphas: tuple, y: np.ndarray) -> tuple:
        several = len(np.unique(y)) > 2
        own = {"gfitc": tuple(alpha for alpha in alphas if alpha > 0), "vi": (0.0,)}
        return own.get(self.approximation, alphas) if several else alphas
