"""Variational inference with decoupled bases: natural gradients for the coupled part of q, Adam for all else."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore.decoupled.bases import Bases, DecoupledPosterior, Process, StoredRows
from pepcore.decoupled.bound import Bound, DataTerm, bound
from pepcore.decoupled.natural import coupled_step, diagonal_direction, exact_direction, ramp
from pepcore.decoupled.parametrisations import PARAMETRISATIONS
from pepcore.gaussian import Array, NotPositiveDefiniteError
from pepcore.kernels.base import Kernel
from pepcore.likelihoods import Gaussian
from pepcore.posterior import Posteriors
from pepcore.results import Fit
from pepcore.sweeps import halving, warn
from pepcore.threads import one_blas_thread
from pepcore.training.coordinates import Coordinates
from pepcore.training.loop import Learner, run
from pepcore.training.minibatch import STREAM_ELEMENTS
from pepcore.training.starts import spread_of
from pepcore.validation import (
    as_generator,
    as_real,
    check_count,
    check_finite,
    check_inputs,
    check_jitter,
    check_kernel,
    check_likelihood,
    check_names,
    check_plain,
    check_positive,
    check_step,
    check_targets,
)

LEARNABLE = ("kernel", "beta", "gamma", "likelihood")
GAMMA_RULES = ("adam", "diagonal", "exact")
SHORTEST = 2.0**-20  # of the natural step asked for; a shorter one would only hide that q has become improper
# times (size of the first bound + a nat per datum); in Adam's first steps the bound may fall by thousands and return
FAR = 1e6
LOWER = 0.1  # of the first bound: an end that is lower by more is no accident of a batch
TOO_LONG = "the steps are too long. Take a shorter `step`, gamma_rule='adam', or a smaller `rate`."


class DivergenceError(ArithmeticError):
    """The bound is no longer a finite number, or has ended far below where it began: the steps were too long.

    Attributes
    ----------
    history : (steps,) array, the bound as estimated before each step
    """

    # without a default for history no process could hand the error to another
    def __init__(self, message: str, history: Iterable[float] = ()) -> None:
        super().__init__(message)
        self.history = np.array(history)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DecoupledFit(Fit):
    """A `Fit` after a number of steps, without a test of convergence: `converged` is False.

    Attributes
    ----------
    log_evidence : float, the variational lower bound on all data, in nats
    gradient : dict, the fields of `parameters`, the kernel's keys, "beta" (M, D), "gamma" (G, D) and the likelihood's own;
        each with the others held still
    posterior : DecoupledPosterior; `Posteriors` of them for several latent functions
    history : list of dict, one for each step, with "log_evidence", the bound as estimated before it
    """

    bases: Bases
    #: in the parametrisation of the basis, see `decoupled.parametrisations`; a tuple of them for several classes
    parameters: Any

    @property
    def jitter(self) -> float:
        return self.bases.basis.jitter


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
        The parametrisation of q, which decides what is held still where something else moves. The two orthogonal ones have
        the same natural steps on fixed points; in weights, Adam is slow, and hyper-parameters that move shake the mean.
    natural : bool
        Natural gradients for the coupled part of q; if False, Adam moves all parameters. "decoupled" allows only False.
    steps : int; 0 only evaluates the start
    step : length of the natural steps, in (0, 1]; of no effect without them. For a likelihood that is not Gaussian the
        first 100 are shorter, see `pepcore.decoupled.natural.ramp`.
    gamma_rule : "adam", "diagonal" or "exact"
        How a_γ moves beside natural steps: by Adam, or along the derivative divided by the diagonal of its metric, or by all
        of it, which costs O(G³) (once, if nothing is learnt). The last two take steps of length `step`, which must be below 2
        over the largest eigenvalue of the metric-scaled Hessian, else they diverge. Without natural steps only Adam.
    rate : float, Adam's step, for positive hyper-parameters in their logarithms, for points over each input's spread
    batch : int, rows in a step, drawn at random; None takes all
    columns : int, columns of K_γ that estimate the norm of the mean in a step, drawn at random; None takes all, O(G²)
    optimise : which of "kernel", "beta", "gamma", "likelihood" to learn by Adam as well
    start : parameters to start from, as in `fit.parameters`; None starts from the prior
    jitter : float, added to the diagonal of K_β, relative to the kernel's variance
    seed : int or Generator, for batches and columns
    callback : callable (record) or None, called after each step with the dict that enters the history
        `record.result()` makes the DecoupledFit of that moment. Like Ctrl-C, a KeyboardInterrupt that it raises ends
        the iteration.

    Returns a DecoupledFit after `steps` steps, without a test of convergence: `converged` is False. Look at
    `history`.

    Raises
    ------
    ValueError for wrong shapes, NaN, targets the likelihood does not accept, unknown names, settings out of range
    DivergenceError if the bound is no longer finite, or has ended far below where it began; its `history` shows where
    NotPositiveDefiniteError if even a tiny natural step leaves no proper q, which a log-concave likelihood cannot do
        unless steps that were too long have led far away before

    Source: salimbeni2018 sections 3 and 4, appendix F; :eq:`og-step`, :eq:`og-diagonal`; Adam: kingma2015.
    """
    check_plain(kernel, "decoupled bases")
    check_likelihood(likelihood, several=True)
    check_kernel(kernel, others=("beta", "gamma", *likelihood.parameters))
    X = check_inputs(X, "X")
    targets = likelihood.validate(check_targets(y, len(X)))
    beta = check_inputs(beta, "beta", columns=X.shape[1], copy=True)
    _check_choices(basis, gamma, natural, gamma_rule)
    gamma = np.zeros((0, X.shape[1])) if gamma is None else check_inputs(gamma, "gamma", columns=X.shape[1], copy=True)
    optimise = check_names(optimise, LEARNABLE)
    step, rate, jitter = check_step(step), check_positive(rate, "rate"), check_jitter(jitter)
    steps, batch = check_count(steps, "steps", least=0), check_count(batch, "batch") if batch is not None else len(X)
    columns = check_count(columns, "columns") if columns is not None else None
    kind, bases = PARAMETRISATIONS[basis], Bases.build(kernel, beta, gamma, jitter)
    classes = getattr(likelihood, "classes", None)
    outputs = _start(kind, bases, classes, start)
    several = classes is not None
    learner = _Learner(bases, outputs, several, X, targets, likelihood, natural, gamma_rule, optimise, rate, jitter)
    every = _steps(len(X), len(gamma), batch, columns, as_generator(seed, "seed"))
    lengths = (step if isinstance(likelihood, Gaussian) else min(step, ramp(number, step)) for number in range(steps))
    # a step that is too long is reported, not taken back
    return run(learner, zip(lengths, every), f"{steps} steps", callback, mended=())


def _steps(size: int, points: int, batch: int, columns: int | None, rng: np.random.Generator) -> Iterator[tuple]:
    """For every step rows of the data and columns of K_γ, drawn at random; None for all of them."""
    while True:
        rows = rng.choice(size, batch, replace=False) if batch < size else None
        yield rows, rng.choice(points, columns, replace=False) if columns and columns < points else None


def _check_choices(basis: str, gamma: Any, natural: bool, gamma_rule: str) -> None:
    if basis not in tuple(PARAMETRISATIONS):
        raise ValueError(f"basis = {basis!r} is unknown; choose one of {', '.join(map(repr, PARAMETRISATIONS))}")
    if gamma is None and basis == "decoupled":
        raise ValueError('the basis "decoupled" needs gamma, the points of its mean; beta carries only the covariance')
    if gamma is not None and basis == "coupled":
        raise ValueError('the basis "coupled" has no gamma; give gamma=None, or basis="orthogonal"')
    if natural and basis == "decoupled":
        raise ValueError('the basis "decoupled" has no natural parameters; give natural=False, or basis="orthogonal"')
    if gamma_rule not in GAMMA_RULES:
        raise ValueError(f"gamma_rule = {gamma_rule!r} is unknown; choose one of {', '.join(map(repr, GAMMA_RULES))}")
    if gamma_rule != "adam" and (basis == "hybrid" or not natural):
        raise ValueError(f'gamma_rule = {gamma_rule!r} goes with natural=True and the basis "orthogonal" or '
                         f'"orthogonal-weights"; for natural={natural} and basis="{basis}" give gamma_rule="adam"')


def _start(kind: Any, bases: Bases, classes: int | None, start: Any) -> tuple:
    """The parameters of every latent function to start from; one function if `classes` is None."""
    if start is None:
        return tuple(kind.prior(bases) for _ in range(classes or 1))
    if classes is None:
        start = (start,)
    elif not isinstance(start, tuple) or len(start) != classes:
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
        if value.ndim == 2 and np.triu(value, 1).any():  # numbers there would be ignored
            raise ValueError(f"start.{name} has numbers above its diagonal, expected a lower triangle as "
                             "np.linalg.cholesky makes it")
        if name == "S_root" and not np.diag(value).all():
            raise ValueError("start.S_root has a zero on its diagonal, so that q would have no density; give the Cholesky "
                             "factor of a positive definite matrix")
        checked[name] = value.copy()
    return kind(**checked)


class _Learner(Learner):
    """q, hyper-parameters and points while they are learnt; `outputs` are the parameters of every latent function."""

    def __init__(
        self, bases: Bases, outputs: tuple, several: bool, X: Array, y: Array, likelihood: Any, natural: bool,
        gamma_rule: str, optimise: Iterable[str], rate: float, jitter: float,
    ) -> None:
        self.bases, self.outputs, self.several = bases, outputs, several
        self.X, self.y, self.likelihood = X, y, likelihood
        self.natural, self.gamma_rule, self.jitter, self.hyper = natural, gamma_rule, jitter, bool(optimise)
        small = len(X) * len(bases.points) <= STREAM_ELEMENTS
        self.stored = StoredRows(bases, X) if small and not self.hyper else None
        by_adam = ["a_gamma"] if gamma_rule == "adam" and len(bases.gamma) else []
        self.fields = fields = by_adam if natural else list(vars(outputs[0]))
        q = tuple(tuple(vars(output)[name] for name in fields) for output in outputs)
        values = {"q": q, "kernel": bases.kernel, "likelihood": likelihood, "gamma": bases.gamma, "beta": bases.beta}
        learnt = [name for name in optimise if name != "likelihood" or likelihood.parameters]
        super().__init__(values, Coordinates((*learnt, "q") if fields else tuple(learnt), spread_of(X)), rate)

    def step(self, item: tuple) -> dict:
        """Take one step; its record has the estimate of the bound before it."""
        length, (rows, columns) = item
        now = self._bound(rows, columns)
        own = [name for name in vars(self.outputs[0]) if name in now.gradient]
        gradients = [{name: now.gradient[name][c] for name in own} for c in range(len(self.outputs))]
        moved: list[dict] = [{} for _ in gradients]
        if self.natural:
            every = zip(self.outputs, now.process, now.data, gradients, strict=True)
            moved = [self._natural(*output, length) for output in every]
        if self.climber is not None:
            self.climb(now.gradient | {"q": [[part[name] for name in self.fields] for part in gradients]})
        climbed = [dict(zip(self.fields, part, strict=True)) for part in self.values["q"]]
        kind = type(self.outputs[0])
        self.outputs = tuple(kind(**(one | other)) for one, other in zip(moved, climbed, strict=True))
        if self.hyper:
            values, self.likelihood = self.values, self.values["likelihood"]
            self.bases = Bases.build(values["kernel"], values["beta"], values["gamma"], self.jitter)
        return {"log_evidence": now.value}

    def result(self) -> DecoupledFit:
        """The DecoupledFit of this moment."""
        return self._fit(f"after {len(self.history)} steps")

    def finish(self, message: str) -> DecoupledFit:
        """The DecoupledFit at the end; DivergenceError if its bound is far below the first."""
        fit = self._fit(message)
        check_end(self._bounds(), fit.log_evidence, len(self.X))
        return fit

    def _fit(self, message: str) -> DecoupledFit:
        parameters = self.outputs if self.several else self.outputs[0]
        last = bound(self.bases, parameters, self.X, self.y, self.likelihood, hyper=True)
        posterior: Any = DecoupledPosterior(self.bases, last.process)
        if self.several:
            posterior = Posteriors(tuple(DecoupledPosterior(self.bases, process) for process in last.process))
        return DecoupledFit(
            last.value, posterior, self.likelihood, 0.0, None, partial(dict, last.gradient), converged=False,
            message=message, sweeps=len(self.history), history=list(self.history), bases=self.bases, parameters=parameters,
        )

    def _bounds(self) -> list:
        """The bound as estimated before each step."""
        return [record["log_evidence"] for record in self.history]

    def _bound(self, rows: Any, columns: np.ndarray | None) -> Bound:
        """The bound, estimated from rows and columns; DivergenceError if it is not finite."""
        X, y = self.X, self.y
        stored: Any = self.stored
        if rows is not None:
            X, y = X[rows], y[rows]
            stored = stored and (lambda block, every=stored: every(rows[block]))
        how: dict[str, Any] = {"columns": columns, "stored": stored, "hyper": self.hyper, "roots": not self.natural}
        with np.errstate(over="ignore", invalid="ignore"):
            now = bound(self.bases, self.outputs, X, y, self.likelihood, weight=len(self.X) / len(X), **how)
        if not np.isfinite(now.value):
            message = f"the bound has become {now.value} after {len(self.history)} steps: {TOO_LONG}"
            raise DivergenceError(message, self._bounds())
        return now

    def _natural(self, output: Any, process: Process, data: DataTerm, gradient: dict, length: float) -> dict:
        """The fields of the parameters after a natural step, the coupled part given a_γ, halved until q is proper."""
        shortest = SHORTEST * length
        after, _, _ = halving(partial(coupled_step, self.bases, process, data), length, shortest)
        if after is None:
            raise NotPositiveDefiniteError(f"even a natural step of length {shortest:.2g} leaves no proper q; take a "
                                           "likelihood that is log-concave, or a smaller rate.")
        moved = dict(vars(type(output).from_process(self.bases, after)))
        if self.gamma_rule != "adam" and len(self.bases.gamma):
            direction = {"diagonal": diagonal_direction, "exact": exact_direction}[self.gamma_rule]
            moved["a_gamma"] = moved["a_gamma"] + length * direction(self.bases, gradient["a_gamma"])
        return moved


def check_end(history: list, value: float, size: int) -> None:
    """Raise DivergenceError if the bound of all `size` data is not finite in the end, or lies `FAR` below the first.

    Only in the end: on the way the bound may fall as far and return, since a step of Adam does not grow with the
    gradient. `history` lists the bound as estimated before each step, `value` is the bound after the last one.
    """
    values = np.array([*history, value])
    far = ~np.isfinite(values) | (values < values[0] - FAR * (abs(values[0]) + size))
    if far[-1]:
        raise DivergenceError(f"the bound was {values[0]:.4g} at first, far below that after {far.argmax()} steps and "
                              f"{value:.4g} in the end: {TOO_LONG}", history)
    if values[-1] < values[0] - LOWER * abs(values[0]):
        warn(f"the bound was {values[0]:.4g} at first and is {value:.4g} in the end: {TOO_LONG}")
