"""Learning on mini-batches: one step of the sites of a batch, and one step of Adam on the hyper-parameters.

"sep" and "vi" keep only the summed natural parameters, O(C M²) numbers, so the data may be arrays in memory,
arrays mapped from a file, or blocks from an iterator, as many as time allows. "ep" and "gfitc" keep every
datum's sites.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.kernels.base import Kernel
from pepcore.multiclass import sites_each, sites_tied
from pepcore.multiclass.factors import Joint, Pairwise, check_labels
from pepcore.multiclass.inference import Method, MulticlassFit, check_model, check_power
from pepcore.multiclass.learning import LEARNABLE, model_of
from pepcore.multiclass.maps import ClassMaps, solve_posteriors
from pepcore.multiclass.sites_tied import TiedSites, check_tied_sites
from pepcore.normal_equations import solve_posterior
from pepcore.results import Model, refuse_gradient
from pepcore.sites import Sites, check_sites
from pepcore.sweeps import halving
from pepcore.threads import one_blas_thread
from pepcore.training.batches import InMemory, Streamed, units_of
from pepcore.training.coordinates import Coordinates
from pepcore.training.loop import Learner, remedied, run
from pepcore.validation import check_count, check_inputs, check_names, check_not_negative, check_step, check_targets

TIED = ("sep", "vi")
NO_GRADIENT = partial(refuse_gradient, "learning on batches keeps no gradient; call multiclass.infer at the learnt values for it")
RECORD = 10  # for TIED, the evidence is estimated in every tenth step: it costs two more factorisations


@one_blas_thread
def fit_minibatch(
    kernels: Kernel | Sequence[Kernel], Z: ArrayLike, data: Any, *,
    approximation: str = "sep", alpha: float | None = None, noise: ArrayLike = 0.1, epsilon: float | None = None,
    classes: int | None = None, size: int | None = None, sites: Sites | TiedSites | None = None,
    optimise: Iterable[str] = ("kernels", "Z", "noise"), batch: int = 200, epochs: int = 1,
    rate: float | Callable = 0.01, step: float | None = None, spread: ArrayLike | None = None, jitter: float = 1e-6,
    seed: int | np.random.Generator = 0, callback: Callable | None = None,
) -> Model:
    """Learn hyper-parameters and sites from one batch of data after another.

    Parameters
    ----------
    kernels, Z, noise : as `multiclass.infer` takes them, to start from
    data : (X, y), arrays or memory-mapped arrays (N, D) and (N,); or, for "sep" and "vi", an iterable of such pairs
        An iterable gives the batches as they are to be used; `batch` and `seed` are then ignored. For more than one
        epoch it must allow several passes, as a list does, or an object whose __iter__ begins anew.
    approximation, alpha, epsilon, jitter : as in `multiclass.infer`
    classes : int, C; needed where neither kernels nor Z nor noise nor labels in memory tell it
    size : int, N; needed for an iterable, which may hold several passes over the data, or a part of them
    sites : TiedSites or Sites to start from, as in a fit to equally many data; None starts from the prior
        "sep" and "vi" can go on from each other's sums.
    optimise : which of "kernels", "Z", "noise" to learn
    batch, epochs : int, rows in a step and passes over the data
    rate : float, or a callable from the number of steps taken to the rate of the next
        Adam's step in logarithms of positive parameters and in Z over `spread`; the number 0 moves the sites only.
    step : float in (0, 1], or None; for "sep" and "vi" how much of the sum a batch replaces; None is 1/t in step t
        until every datum has had its turn, and the batch's share of the data afterwards, or from the beginning if `sites`
        are given. For "ep" and "gfitc" the damped step of the batch's own sites; None is 1.
    spread : (D,), units of Z's columns
        None for the spread of the Z given or, in columns where all of these are equal, of the inputs (of the first batch).
    seed : int or Generator, for the order of the data
    callback : callable (record) or None, called after each step with "step" and "log_evidence" (NaN where it is not estimated:
        for "sep" and "vi" in nine steps of ten, which do not enter the history)
        `record.result()` makes a MulticlassFit with the posterior of that moment, in which the sites of a datum stand on
        the features of its last turn.

    Returns a Model; its fit has the posterior of the sites after the last step and no gradient, `log_evidence` is the
    estimate from the last batch just before it was learnt from, `sweeps` the number of steps.
    Raises ValueError as `multiclass.infer`; for an iterable without size, with an approximation that keeps sites for
    every datum, without batches, with a batch of more than N rows, or that can be gone through only once if epochs > 1.
    Source: villacampa2017 sections 2.3.1 and 2.3.2; at alpha = 0 a natural-gradient step on the bound.
    """
    alpha = check_power(alpha, approximation)
    epochs, optimise = check_count(epochs, "epochs"), check_names(optimise, LEARNABLE)
    if isinstance(data, tuple):
        batches: InMemory | Streamed = InMemory(data, batch, seed)
    elif approximation in TIED:
        batches = Streamed(data, size, epochs)
    else:
        raise ValueError(f"{approximation!r} keeps sites for every datum and needs arrays (X, y); blocks are for 'sep' and 'vi'")
    values, _, C = check_model(kernels, Z, noise, classes, batches.labels, batches.columns)
    method = Method.checked(approximation, alpha, epsilon, C, jitter)
    step = step if step is None else check_step(step)
    advice = "0 moves the sites only, 0.01 suits most problems"
    rate_at = lambda steps: check_not_negative(rate(steps) if callable(rate) else rate, "rate", advice)
    kind = _Tied if approximation in TIED else _PerDatum
    rate_at(0)
    learnt = optimise if callable(rate) or rate else ()
    learner: Any = kind(method, batches.size, values, learnt, units_of(values["Z"], batches, spread), rate_at, step)
    if sites is not None:
        learner.resume(sites)
    return run(learner, _steps(learner, batches, epochs), f"{epochs} epochs", callback)


def _steps(learner: Any, batches: InMemory | Streamed, epochs: int) -> Iterator[tuple]:
    """(rows, X, y) of all batches."""
    for _ in range(epochs):
        learner.begin_epoch(batches)
        for number, (rows, X, y) in enumerate(batches.epoch(), start=1):
            X = check_inputs(X, f"X of batch {number}", columns=learner.values["Z"][0].shape[1])
            yield rows, X, check_labels(check_targets(y, len(X), f"y of batch {number}"), learner.method.C)


class _Learner(Learner):
    """What learning with any kind of sites shares; subclasses keep the sites, and `total` adds them up."""

    sites: Any
    total: Callable[[], tuple[list, list]]

    def __init__(
        self, method: Method, N: int, values: dict, optimise: tuple, spread: Array, rate: Callable, step: float | None,
    ) -> None:
        super().__init__(values, Coordinates(optimise, spread), rate)
        self.method, self.N, self.given_step = method, N, step
        self.state: Any = None  # of the last batch, before its sites moved

    def maps(self, X: Array, stream: bool = False) -> ClassMaps:
        return self.method.maps(self.values, X, stream)

    def result(self) -> MulticlassFit:
        """MulticlassFit with the posterior as it is now; it is marked as not converged."""
        maps = self.maps(self.values["Z"][0])
        posteriors = solve_posteriors(*self.total(), concave=False)
        evidence = self.state.log_evidence if self.state is not None else np.nan
        # learning goes on writing into the sites of every datum
        sites = Sites(self.sites.tau.copy(), self.sites.nu.copy()) if isinstance(self.sites, Sites) else self.sites
        ending: dict[str, Any] = {"converged": False, "message": f"after {self.steps} steps", "sweeps": self.steps}
        found = posteriors, evidence, self.values["noise"], sites, NO_GRADIENT
        return self.method.result(maps, *found, **ending, history=list(self.history))

    def finish(self, message: str) -> Model:
        """What was learnt."""
        return replace(model_of(self.values, self.result(), self.history, False, message), evaluations=self.steps)


class _Tied(_Learner):
    """All sites as one sum."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.sites = sites_tied.TiedSites.flat(self.maps(self.values["Z"][0]))
        self.whole = False  # whether the sums stand for all data from the beginning

    def resume(self, sites: TiedSites) -> None:
        """Go on from sums that stand for all data already."""
        self.sites, self.whole = check_tied_sites(sites, self.sites, self.method.approximation), True

    def begin_epoch(self, batches: InMemory | Streamed) -> None:
        pass

    def total(self) -> tuple[list, list]:
        return self.sites.total()

    def step(self, batch: tuple) -> dict:
        _, X, y = batch
        maps, factors, weight, number = self.maps(X), self.method.factors(y), self.N / len(y), self.steps + 1
        self.state = sites_tied.evaluate(maps, factors, self.values["noise"], self.method.alpha, [1.0], self.sites, weight=weight)
        said = {} if (number - 1) % RECORD else {"log_evidence": self.state.log_evidence}
        if self.climber is not None:
            self.climb(sites_tied.gradient_of(maps, factors, self.state, weight))
        share = 1 / weight if self.whole else max(1 / number, 1 / weight)
        moved, _, _ = halving(self.toward_target, min(1.0, share) if self.given_step is None else self.given_step)
        self.sites = self.state.sites if moved is None else moved
        return said

    def toward_target(self, step: float) -> TiedSites:
        """The sites after a step towards the batch's target; ImproperCavityError where that leaves no posterior."""
        sites = self.state.sites.toward(self.state.target, step)
        if self.method.approximation != "sep":  # the factors of "sep" are log-concave
            for precision, shift in zip(*sites.total(), strict=True):
                solve_posterior(precision, shift, concave=False)
        return sites


class _PerDatum(_Learner):
    """Sites of every datum, and their sum, which is made anew in each epoch since the features have moved."""

    sites: Any = None
    summed: Any = None  # the maps with which the sites went into the sum

    def resume(self, sites: Sites) -> None:
        """Go on from sites of every datum."""
        C = self.method.C
        shape = (C, self.N) if self.method.approximation == "gfitc" else (2, C - 1, self.N)
        self.sites = check_sites(sites, shape, f"sites for {self.method.approximation!r}")

    def begin_epoch(self, batches: InMemory) -> None:
        self.data, self.all_factors = batches, self.method.factors(check_labels(batches.labels, self.method.C))
        if self.sites is None:
            self.sites = Sites(np.zeros(self.all_factors.shape), np.zeros(self.all_factors.shape))
        self.renew()

    def renew(self) -> None:
        """Add up all sites on the features as they are now."""
        maps = self.maps(check_inputs(self.data.X, "X"), stream=True)
        tau, nu = self.all_factors.scatter(self.sites.tau), self.all_factors.scatter(self.sites.nu)
        self.precisions, self.shifts = maps.natural_parameters(tau, nu)
        self.summed = maps.at(self.values["Z"][0])  # in place of all data, which may be mapped from a file

    def total(self) -> tuple[list, list]:
        return self.precisions, self.shifts

    def finish(self, message: str) -> Model:
        """What was learnt; all sites stand on the last features, so that each can be taken out again."""
        self.renew()
        return super().finish(message)

    def step(self, batch: tuple) -> dict:
        rows, X, y = batch
        maps, factors, weight = self.maps(X), self.method.factors(y), self.N / len(y)
        self.take_over(maps, factors, rows)
        # the features may have moved too far for the other sites, or for these
        self.state = remedied(partial(self.evaluate, maps, factors, rows, weight), self.renew, self.flatten_negative)
        if self.climber is not None:
            self.climb(sites_each.gradient_of(maps, factors, self.method.alpha, self.state), weight)
        self.move(maps, factors, rows)
        return {"log_evidence": self.state.log_evidence}

    def take_over(self, maps: ClassMaps, factors: Pairwise | Joint, rows: Any) -> None:
        """Put the sites of a batch, which comes once between two renewals, on the features as they are now.

        Source: :eq:`bp-take-over`.
        """
        tau, nu = factors.scatter(self.sites.tau[..., rows]), factors.scatter(self.sites.nu[..., rows])
        old, new = (each.natural_parameters(tau, nu) for each in (self.summed.at(maps.of(0).X), maps))
        self.precisions, self.shifts = (
            [total + b - a for total, a, b in zip(*each, strict=True)] for each in zip(self.total(), old, new, strict=True)
        )

    def move(self, maps: ClassMaps, factors: Pairwise | Joint, rows: Any) -> None:
        """Move towards the batch's target; by less where sites of negative precision leave no posterior."""
        kept, old, goal = self.total(), self.state.sites, self.state.target

        def attempt(step: float) -> list:
            moved = old.toward(goal, step)
            change = factors.scatter(moved.tau - old.tau), factors.scatter(moved.nu - old.nu)
            totals = [[a + b for a, b in zip(*pair, strict=True)] for pair in zip(kept, maps.natural_parameters(*change))]
            self.sites.tau[..., rows], self.sites.nu[..., rows] = moved.tau, moved.nu
            if self.sites.tau.min() < 0:
                solve_posteriors(totals[0], totals[1], concave=False)
            return totals

        totals, _, _ = halving(attempt, self.given_step or 1.0)
        if totals is None:
            self.sites.tau[..., rows], self.sites.nu[..., rows] = old.tau, old.nu
        self.precisions, self.shifts = totals or kept

    def flatten_negative(self) -> None:
        """Set the sites of negative precision to zero: all others only narrow the prior, and leave proper cavities."""
        negative = self.sites.tau < 0
        self.sites.tau[negative] = self.sites.nu[negative] = 0.0
        self.renew()

    def evaluate(self, maps: ClassMaps, factors: Pairwise | Joint, rows: Any, weight: float) -> sites_each.State:
        posteriors = solve_posteriors(self.precisions, self.shifts, concave=False)
        sites = Sites(self.sites.tau[..., rows], self.sites.nu[..., rows])
        return sites_each.local_moments(maps, factors, self.values["noise"], self.method.alpha, sites, posteriors, weight=weight)
