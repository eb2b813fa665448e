"""Variational inference with decoupled bases: natural gradients for q, Adam for the rest."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore.decoupled.bases import Bases
from pepcore.decoupled.learning import DecoupledFit, Learner
from pepcore.decoupled.natural import ramp
from pepcore.decoupled.parametrisations import PARAMETRISATIONS
from pepcore.gaussian import Array
from pepcore.kernels.base import Kernel, check_plain
from pepcore.likelihoods import Gaussian
from pepcore.likelihoods.scalar import check_likelihood
from pepcore.threads import one_blas_thread
from pepcore.training.loop import run
from pepcore.validation import (
    as_real,
    check_count,
    check_finite,
    check_inputs,
    check_jitter,
    check_names,
    check_positive,
    check_step,
    check_targets,
)

LEARNABLE = ("kernel", "beta", "gamma", "likelihood")
GAMMA_RULES = ("adam", "diagonal", "exact")


@one_blas_thread
def infer(
    kernel: Kernel, beta: ArrayLike, gamma: ArrayLike | None, X: ArrayLike, y: ArrayLike, likelihood: Any, *,
    basis: str = "orthogonal", natural: bool = True, steps: int = 1000, step: float = 0.005, gamma_rule: str = "adam",
    rate: float = 0.001, batch: int | None = None, columns: int | None = None, optimise: Iterable[str] = (),
    start: Any = None, jitter: float = 1e-6, seed: int | np.random.Generator = 0, callback: Callable | None = None,
) -> DecoupledFit:
    """Maximise the variational bound over q, and over hyper-parameters and points if asked to.

    Parameters
    ----------
    beta : (M, D) points of the covariance; for every basis but "decoupled" of the mean as well
    gamma : (G, D) points of the mean alone, or None for none; in the basis "decoupled" all points of the mean
    X, y : (N, D) and (N,)
    likelihood : an object as in `pepcore.likelihoods`, or `RobustMax` for labels 0 ... C − 1
    basis : "orthogonal", "orthogonal-weights", "hybrid", "coupled" (without gamma) or "decoupled"
        What is held still where something else moves. The two orthogonal ones have the same natural steps on fixed points;
        in weights, Adam is slow, and hyper-parameters that move shake the mean.
    natural : bool
        Natural gradients for the coupled part of q; if False, Adam moves all parameters. "decoupled" allows only False.
    steps : int; 0 looks at the start
    step : length of the natural steps, in (0, 1]; of no effect without them. For a likelihood that is not Gaussian the
        first 100 are shorter, see `ramp`.
    gamma_rule : "adam", "diagonal" or "exact"
        How a_γ moves beside natural steps: Adam, or along the derivative over the diagonal of its metric, or over all of
        it, which costs O(G³) (once, if nothing is learnt). The last two take steps of length `step`, which must be below 2
        over the largest eigenvalue of the metric-scaled Hessian, else they diverge. Without natural steps only Adam.
    rate : float, Adam's step in all that it moves, in the logarithms of positive hyper-parameters
    batch : int, rows in a step, drawn at random; None takes all
    columns : int, columns of K_γ that estimate the norm of the mean in a step, drawn at random; None takes all, O(G²)
    optimise : which of "kernel", "beta", "gamma", "likelihood" to learn by Adam besides
    start : parameters to start from, as in `fit.parameters`; None starts from the prior
    jitter : float, added to the diagonal of K_β, relative to the kernel's variance
    seed : int, for batches and columns
    callback : callable (record) or None, called after each step with the dict that enters the history
        `record.result()` makes the DecoupledFit of that moment. Raising KeyboardInterrupt in it ends the iteration, as
        Ctrl-C does.

    Raises
    ------
    ValueError for wrong shapes, NaN, targets the likelihood does not know, unknown names, settings out of range
    DivergenceError if the bound is no longer finite, or has ended a million times further down than it began, since
        steps were too long; its `history` shows where
    NotPositiveDefiniteError if even a tiny natural step leaves no proper q, which a log-concave likelihood cannot do
        unless steps that were too long have led far away before

    Source: salimbeni2018 sections 3 and 4, appendix F; :eq:`og-step`, :eq:`og-diagonal`; Adam: kingma2015.
    """
    check_plain(kernel, "decoupled bases")
    check_likelihood(likelihood)
    X = check_inputs(X, "X")
    targets = likelihood.validate(check_targets(y, len(X)))
    beta = check_inputs(beta, "beta", columns=X.shape[1], copy=True)
    gamma = _check_gamma(gamma, basis, X.shape[1])
    _check_settings(basis, natural, gamma_rule)
    optimise = check_names(optimise, LEARNABLE)
    step, rate, jitter = check_step(step), check_positive(rate, "rate"), check_jitter(jitter)
    steps, batch = check_count(steps, "steps", least=0), check_count(batch, "batch") if batch is not None else len(X)
    columns = check_count(columns, "columns") if columns is not None else None
    kind, bases = PARAMETRISATIONS[basis], Bases.build(kernel, beta, gamma, jitter)
    parameters = _start(kind, bases, getattr(likelihood, "classes", None), start)
    learner = Learner(bases, parameters, X, targets, likelihood, natural, gamma_rule, optimise, rate, jitter)
    every = _steps(len(X), len(gamma), batch, columns, np.random.default_rng(seed))
    lengths = (step if isinstance(likelihood, Gaussian) else min(step, ramp(number, step)) for number in range(steps))
    # a step that is too long is reported, not taken back
    return run(learner, zip(lengths, every), f"{steps} steps", callback, mended=())


def _steps(size: int, points: int, batch: int, columns: int | None, rng: np.random.Generator) -> Iterator[tuple]:
    """For every step rows of the data and columns of K_γ, drawn at random; None for all of them."""
    while True:
        rows = rng.choice(size, batch, replace=False) if batch < size else None
        yield rows, rng.choice(points, columns, replace=False) if columns and columns < points else None


def _check_gamma(gamma: ArrayLike | None, basis: str, columns: int) -> Array:
    if basis not in PARAMETRISATIONS:
        raise ValueError(f"basis = {basis!r} is unknown; choose one of {', '.join(map(repr, PARAMETRISATIONS))}")
    if gamma is None:
        if basis == "decoupled":
            raise ValueError('the basis "decoupled" needs gamma, the points of its mean; beta carries only the '
                             'covariance')
        return np.zeros((0, columns))
    if basis == "coupled":
        raise ValueError('the basis "coupled" has no gamma; give gamma=None, or basis="orthogonal"')
    return check_inputs(gamma, "gamma", columns=columns, copy=True)


def _check_settings(basis: str, natural: bool, gamma_rule: str) -> None:
    if natural and basis == "decoupled":
        raise ValueError('the basis "decoupled" has no natural parameters; give natural=False, or basis="orthogonal"')
    if gamma_rule not in GAMMA_RULES:
        raise ValueError(f"gamma_rule = {gamma_rule!r} is unknown; choose one of {', '.join(map(repr, GAMMA_RULES))}")
    if gamma_rule != "adam" and (basis == "hybrid" or not natural):
        raise ValueError(f'gamma_rule = {gamma_rule!r} goes with natural=True and the basis "orthogonal" or '
                         f'"orthogonal-weights"; for natural={natural} and basis="{basis}" give gamma_rule="adam"')


def _start(kind: Any, bases: Bases, classes: int | None, start: Any) -> Any:
    """The parameters to start from, a tuple of them for a likelihood of several latent functions."""
    if classes is None:
        return kind.prior(bases) if start is None else _check_start(start, kind, bases)
    if start is None:
        return tuple(kind.prior(bases) for _ in range(classes))
    if not isinstance(start, tuple) or len(start) != classes:
        raise ValueError(f"start must be a tuple of {classes} parameters, one for each class; fit.parameters is one")
    return tuple(_check_start(part, kind, bases) for part in start)


def _check_start(start: Any, kind: Any, bases: Bases) -> Any:
    """A copy of the parameters `start` with arrays of float64."""
    if not isinstance(start, kind):
        raise ValueError(f"start is a {type(start).__name__}, but this basis needs a {kind.__name__}")
    checked = {}
    for name, expected in vars(kind.prior(bases)).items():
        value = check_finite(as_real(getattr(start, name), f"start.{name}"), f"start.{name}")
        if value.shape != expected.shape:
            raise ValueError(f"start.{name} has shape {value.shape}, expected {expected.shape} for these points")
        if value.ndim == 2 and np.triu(value, 1).any():  # what stands there would not be read
            raise ValueError(f"start.{name} has numbers above its diagonal, expected a lower triangle as "
                             "np.linalg.cholesky makes it")
        checked[name] = value.copy()
    return kind(**checked)
