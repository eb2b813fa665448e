"""One step after the other: natural gradients for the coupled part of q, Adam for what else is learnt."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pepcore.decoupled.bases import Bases, Process
from pepcore.decoupled.bound import Bound, DataTerm, StoredRows, bound, located, marginals
from pepcore.decoupled.natural import coupled_step, diagonal_direction, exact_direction
from pepcore.gaussian import Array, NotPositiveDefiniteError
from pepcore.posterior import Posteriors
from pepcore.results import Fit
from pepcore.sweeps import halving
from pepcore.threads import one_blas_thread
from pepcore.training import loop
from pepcore.training.coordinates import Coordinates
from pepcore.training.minibatch import STREAM_ELEMENTS
from pepcore.training.starts import spread_of
from pepcore.validation import check_inputs

SHORTEST = 2.0**-20  # of the natural step asked for; a shorter one would only hide that q has become improper
# times the size of the first bound, plus a nat a datum; first steps of Adam that are too long fall by thousands and return
FAR = 1e6
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


class DecoupledPosterior(NamedTuple):
    """q(f) of a decoupled basis."""

    bases: Bases
    process: Process  #: mean(x) = a(x)ᵀw + k_γ(x)ᵀg and covariance k − aᵀa' + aᵀV a'

    @one_blas_thread
    def predict(self, Xs: ArrayLike) -> tuple[Array, Array]:
        """Mean (S,) and variance (S,) of the latent f at Xs (S, D)."""
        return marginals(self.bases, self.process, self._check(Xs))

    def predict_full(self, Xs: ArrayLike) -> tuple[Array, Array]:
        """Mean (S,) and covariance (S, S) of the latent f at Xs (S, D)."""
        Xs = self._check(Xs)
        A, _, K_gamma = located(self.bases, Xs)
        mean = self.process.w @ A + self.process.g @ K_gamma
        return mean, self.bases.kernel(Xs) + A.T @ (self.process.V @ A - A)

    def __repr__(self) -> str:
        M, G = len(self.bases.beta), len(self.bases.gamma)
        return f"DecoupledPosterior(M={M}, G={G}, {self.bases.kernel!r})"

    def _check(self, Xs: ArrayLike) -> Array:
        return check_inputs(Xs, "Xs", columns=self.bases.beta.shape[1])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DecoupledFit(Fit):
    """A `Fit` by a number of steps, which is no test of convergence: `converged` is False.

    Attributes
    ----------
    log_evidence : float, the variational lower bound on all data, in nats
    gradient : dict, the fields of `parameters`, the kernel's keys, "beta" (M, D), "gamma" (G, D) and the likelihood's own;
        each with the others held still
    posterior : DecoupledPosterior; `Posteriors` of them for several latent functions
    history : list of dict, one for each step: "step" and "log_evidence", the bound as estimated before it
    """

    bases: Bases
    #: in the parametrisation of the basis, see `decoupled.parametrisations`; a tuple of them for several classes
    parameters: Any

    @property
    def jitter(self) -> float:
        return self.bases.basis.jitter


class Learner(loop.Learner):
    """q, hyper-parameters and points while they are learnt."""

    def __init__(
        self, bases: Bases, parameters: Any, X: Array, y: Array, likelihood: Any, natural: bool, gamma_rule: str,
        optimise: Iterable[str], rate: float, jitter: float,
    ) -> None:
        self.bases, self.parameters, self.X, self.y, self.likelihood = bases, parameters, X, y, likelihood
        self.natural, self.gamma_rule, self.jitter, self.hyper = natural, gamma_rule, jitter, bool(optimise)
        small = len(X) * len(bases.points) <= STREAM_ELEMENTS
        self.stored = StoredRows(bases, X) if small and not self.hyper else None
        by_adam = ["a_gamma"] if gamma_rule == "adam" and len(bases.gamma) else []
        self.fields = fields = by_adam if natural else list(vars(self.outputs[0]))
        q = tuple(tuple(vars(output)[name] for name in fields) for output in self.outputs)
        values = {"q": q, "kernel": bases.kernel, "likelihood": likelihood, "gamma": bases.gamma, "beta": bases.beta}
        learnt = [name for name in optimise if name != "likelihood" or likelihood.parameters]
        super().__init__(values, Coordinates((*learnt, "q") if fields else tuple(learnt), spread_of(X)), rate)

    def step(self, item: tuple) -> dict:
        """Take one step; its record says the bound before it, as estimated."""
        length, (rows, columns) = item
        now = self._bound(rows, columns)
        gradients = [now.gradient]
        moved: list[dict] = [{}]
        if self.several:
            own = [name for name in vars(self.parameters[0]) if name in now.gradient]
            gradients = [{name: now.gradient[name][c] for name in own} for c in range(len(now.data))]
            moved = [{} for _ in gradients]
        if self.natural:
            every = zip(self.outputs, *now.outputs, gradients, strict=True)
            moved = [self._natural(*output, length) for output in every]
        if self.climber is not None:
            self.climb(now.gradient | {"q": [[part[name] for name in self.fields] for part in gradients]})
        climbed = [dict(zip(self.fields, part, strict=True)) for part in self.values["q"]]
        kind = type(self.outputs[0])
        outputs = tuple(kind(**(one | other)) for one, other in zip(moved, climbed, strict=True))
        self.parameters = outputs if self.several else outputs[0]
        if self.hyper:
            values, self.likelihood = self.values, self.values["likelihood"]
            self.bases = Bases.build(values["kernel"], values["beta"], values["gamma"], self.jitter)
        return {"log_evidence": now.value}

    def result(self) -> DecoupledFit:
        """The DecoupledFit of this moment."""
        return self._fit(f"after {len(self.history)} steps")

    def finish(self, message: str) -> DecoupledFit:
        """The DecoupledFit of the end; DivergenceError if this lies far below the beginning."""
        fit = self._fit(message)
        check_end(fit.trace().tolist(), fit.log_evidence, len(self.X))
        return fit

    def _fit(self, message: str) -> DecoupledFit:
        last: Any = bound(self.bases, self.parameters, self.X, self.y, self.likelihood, hyper=True)
        processes = last.process if self.several else (last.process,)
        parts = tuple(DecoupledPosterior(self.bases, process) for process in processes)
        posterior = Posteriors(parts) if self.several else parts[0]
        found: tuple = last.value, posterior, self.likelihood, 0.0, None, partial(dict, last.gradient)
        ending: dict[str, Any] = {"converged": False, "message": message}
        ending |= {"sweeps": len(self.history), "history": list(self.history)}
        return DecoupledFit(*found, **ending, bases=self.bases, parameters=self.parameters)

    @property
    def several(self) -> bool:
        """Whether there are several latent functions."""
        return isinstance(self.parameters, tuple)

    @property
    def outputs(self) -> tuple:
        """The parameters of every latent function, a tuple."""
        return self.parameters if self.several else (self.parameters,)

    def _bound(self, rows: Any, columns: np.ndarray | None) -> Bound:
        """The bound as rows and columns estimate it; DivergenceError if it is not finite."""
        X, y = self.X, self.y
        stored: Any = self.stored
        if rows is not None:
            X, y = X[rows], y[rows]
            stored = stored and (lambda block, every=stored: every(rows[block]))
        how: dict[str, Any] = {"columns": columns, "stored": stored, "hyper": self.hyper, "roots": not self.natural}
        with np.errstate(over="ignore", invalid="ignore"):
            now = bound(self.bases, self.parameters, X, y, self.likelihood, weight=len(self.X) / len(X), **how)
        if not np.isfinite(now.value):
            message = f"the bound has become {now.value} after {len(self.history)} steps: {TOO_LONG}"
            raise DivergenceError(message, [record["log_evidence"] for record in self.history])
        return now

    def _natural(self, output: Any, process: Process, data: DataTerm, gradient: dict, length: float) -> dict:
        """The fields of the parameters after a natural step, the coupled part given a_γ, halved until q is proper."""
        shortest = SHORTEST * length
        after, _ = halving(partial(coupled_step, self.bases, process, data), length, shortest)
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
        raise DivergenceError(
            f"the bound was {values[0]:.4g} at first, far below that after {far.argmax()} steps and {value:.4g} in the "
            f"end: {TOO_LONG}",
            history,
        )
