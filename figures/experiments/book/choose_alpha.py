"""Can the data choose the power? Ways to choose it, their losses and their cost, on eighteen sets.

The reader's question is which power suits *these* data. Each row of this study is one fit at one power, with everything
that a way of choosing could look at: the log evidence, the leave-one-out losses of that fit, the losses on a tenth of the
training rows after a refit to the others, and the losses of 5-fold cross-validation with refits. The ways of choosing are
then functions of the six rows of one (data, split, M), see `choose_alpha_claims`, which also holds the rules for the
verdicts. Two controls spend the time of six fits at alpha = 0.5: the best of six starts by its evidence, and one start
with six times as many evaluations.

Rules that were fixed before the first row:

* Data: the eight regression sets and six binary sets of bui2017, on the first ten of their standard 90:10 splits, and the
  four sets with one input in `start_here.PROBLEMS`, on ten random halves. Inputs, and real targets, are standardised on the
  training rows. M = 10, 20, 50; for one input 4, 10, 20, since a fold of petal lengths has not fifty distinct values.
* Powers: 0, 0.25, 0.5, 0.75, 0.9, 1. The same start for every power, by the number of the split.
* Every fit has so many evaluations of the evidence and its gradient as `EVALUATIONS` says, those of the refits too. Refits
  start afresh: a start at the parameters of the full fit would have seen the rows that are left out.
* Folds and the tenth come from one random order of the training rows for each split. Units are not computed anew within a fold.
* Losses, each a mean over rows: `nll`, the negative log density of the target in nats, and `point`, the squared error of
  real targets in units of their variance, or the error rate of labels.
* A run that raises an error is a failed run, and its (data, split, M) is left out for all ways of choosing, and counted.
"""

import time
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np

from figures.experiments.book import start_here
from figures.experiments.bui2017 import uci_classification, uci_regression
from pepcore import datasets, power_ep, training
from pepcore.likelihoods import Probit

ALPHAS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
HALF = 0.5
REGRESSION, BINARY, ONE_INPUT = uci_regression.DATA, uci_classification.SETS, tuple(start_here.PROBLEMS)
BUNDLED = ONE_INPUT
DATA = REGRESSION + BINARY + ONE_INPUT
SIZES = (20, 10, 50)
SIZES_OF_ONE_INPUT = (20, 10, 4)
SPLITS = range(10)
SEARCHES = ("one start", "six starts", "six times as long")
EVALUATIONS = {"real": 300, "labels": 100}
FOLDS, HELD_OUT = 5, 0.1
OUTPUTS = ("nll", "point", "train_nll", "log_evidence", "loo_nll", "loo_point", "held_out_nll", "held_out_point", "cv_nll",
           "cv_point", "fit_seconds", "loo_seconds", "held_out_seconds", "cv_seconds", "evaluations", "refit_evaluations",
           "noise", "converged")

GAPS = ("noise",)           # labels have none


def grid():
    """All runs: the first split with the middle M, its other M, the middle M of all splits, then the rest."""
    parts = [(SPLITS[:1], slice(0, 1)), (SPLITS[:1], slice(1, 3)), (SPLITS[1:], slice(0, 1)), (SPLITS[1:], slice(1, 3))]
    return [{"data": data, "split": split, "M": M, "search": search, "alpha": alpha}
            for splits, sizes in parts for split in splits for data in DATA
            for M in (SIZES_OF_ONE_INPUT if data in ONE_INPUT else SIZES)[sizes]
            for search, alphas in _searches(M) for alpha in alphas]


def _searches(M):
    """Controls only at the middle M: they take as long as all powers together."""
    return [(SEARCHES[0], ALPHAS)] + [(search, (HALF,)) for search in SEARCHES[1:] if M == SIZES[0]]


def compute(data, split, M, search, alpha, evaluations=None):
    """One run; what the controls do not need is NaN. Seconds are of the processor. `evaluations` replaces `EVALUATIONS`."""
    X, y, X_test, y_test, kind = problem(data, split)
    most = EVALUATIONS[kind] if evaluations is None else evaluations
    learn = partial(_learn, kind, M=M, alpha=alpha, seed=split)
    restarts, longer = (len(ALPHAS) if search == other else 1 for other in SEARCHES[1:])
    with _Stopwatch() as fit_time:
        model = learn(X, y, most=most * longer, restarts=restarts)
    outputs = dict.fromkeys(OUTPUTS, np.nan) | {
        "nll": losses(model, X_test, y_test).nll, "point": losses(model, X_test, y_test).point,
        "train_nll": losses(model, X, y).nll, "log_evidence": model.log_evidence, "fit_seconds": fit_time.seconds,
        "evaluations": model.evaluations, "noise": np.nan if model.noise is None else model.noise, "converged": model.converged}
    if search != SEARCHES[0]:
        return outputs
    with _Stopwatch() as loo_time:
        mean, _, log_density = model.leave_one_out(X, y)
        loo = Losses(-log_density.mean(), point_loss(kind, y, mean))
    order = np.random.default_rng(split).permutation(len(y))
    with _Stopwatch() as held_out_time:
        held_out, first = _refits(learn, X, y, [order[:round(HELD_OUT * len(y))]], most)
    with _Stopwatch() as cv_time:
        cv, others = _refits(learn, X, y, np.array_split(order, FOLDS), most)
    return outputs | {
        "loo_nll": loo.nll, "loo_point": loo.point, "held_out_nll": held_out.nll, "held_out_point": held_out.point,
        "cv_nll": cv.nll, "cv_point": cv.point, "loo_seconds": loo_time.seconds, "held_out_seconds": held_out_time.seconds,
        "cv_seconds": cv_time.seconds, "refit_evaluations": first + others}


class Losses(NamedTuple):
    """Means over rows; see the rules."""

    nll: float
    point: float


def losses(model, X, y):
    """Losses of a model on rows that it has or has not seen."""
    kind = "labels" if isinstance(model.likelihood, Probit) else "real"
    return Losses(-model.log_density(X, y).mean(), point_loss(kind, y, model.predict_f(X)[0]))


def point_loss(kind, y, mean):
    """The squared error of the latent mean, or the share of labels whose sign the mean misses."""
    return float(np.mean((y - mean) ** 2) if kind == "real" else np.mean(np.where(mean > 0, 1.0, -1.0) != y))


def problem(data, split):
    """Training X (N, D), y (N,), test X, y, standardised, and "real" or "labels"."""
    if data in REGRESSION:
        return *uci_regression.standardised(data, split), "real"
    if data in BINARY:
        return *uci_classification.standardised(data, split), "labels"
    x, y = start_here.raw(data)
    order = np.random.default_rng(split).permutation(len(y))
    half, rest = order[:len(y) // 2], order[len(y) // 2:]
    X, X_test = datasets.standardise(x[half, None], x[rest, None])
    y, y_test = datasets.standardise(y[half], y[rest])
    return X, y, X_test, y_test, "real"


def _learn(kind, X, y, M, alpha, seed, most, restarts=1):
    settings = {"M": M, "alpha": alpha, "max_evaluations": most, "restarts": restarts, "seed": seed}
    if kind == "labels":
        infer = partial(power_ep.infer, tolerance=uci_classification.TOLERANCE, max_sweeps=uci_classification.MAX_SWEEPS)
        settings |= {"infer": infer, "likelihood": Probit()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)     # inference that has not converged: a wall of the search
        return training.fit(None, X, y, **settings)


def _refits(learn, X, y, folds, most):
    """Losses over all rows of `folds` by models of the other rows, one for each fold, and the evaluations that they took."""
    parts, evaluations = [], 0
    for fold in folds:
        others = np.setdiff1d(np.arange(len(y)), fold)
        model = learn(X[others], y[others], most=most)
        parts.append((len(fold), losses(model, X[fold], y[fold])))
        evaluations += model.evaluations
    sizes, values = zip(*parts, strict=True)
    return Losses(*map(float, np.average(values, axis=0, weights=sizes))), evaluations


class _Stopwatch:
    """Seconds of processor time, so that other work on the machine does not count."""

    def __enter__(self):
        self.start = time.process_time()
        return self

    def __exit__(self, *_):
        self.seconds = float(f"{time.process_time() - self.start:.3g}")
