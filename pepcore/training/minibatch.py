"""Learning on mini-batches: sites of one batch at a time, and a step of Adam on the hyper-parameters after each."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore.features import Basis, Features, feature_map
from pepcore.gaussian import Array
from pepcore.kernels.base import Kernel
from pepcore.likelihoods.scalar import Likelihood
from pepcore.normal_equations import natural_parameters, solve_posterior
from pepcore.posterior import Posterior
from pepcore.power_ep import iterative
from pepcore.results import Fit, Model, refuse_gradient
from pepcore.sites import Sites
from pepcore.sweeps import halving, infer_from, unless_astray
from pepcore.threads import one_blas_thread
from pepcore.training.coordinates import Coordinates
from pepcore.training.loop import Learner, bar, remedied, run
from pepcore.training.starts import UNITS_OF_Y, spread_of, starting_kernel, starting_points, warn_of_offset
from pepcore.validation import (
    as_generator,
    check_alpha,
    check_count,
    check_inputs,
    check_jitter,
    check_kernel,
    check_likelihood,
    check_names,
    check_not_negative,
    check_step,
    check_targets,
)

NO_GRADIENT = partial(refuse_gradient, "learning on batches keeps no gradient; call power_ep.infer at the learnt values for it")
STREAM_ELEMENTS = 10**8  # the last fit keeps the features of all data if these are fewer numbers (0.8 GB)


@one_blas_thread
def fit_minibatch(
    kernel: Kernel | None, X: ArrayLike, y: ArrayLike, likelihood: Likelihood, *,
    M: int = 50, alpha: float = 0.5, Z: str | ArrayLike = "kmeans",
    optimise: Iterable[str] = ("kernel", "Z", "likelihood"), batch: int = 200, epochs: int = 20, rate: float = 0.02,
    step: float = 1.0, jitter: float = 1e-6, max_sweeps: int = 50, seed: int | np.random.Generator = 0,
    progress: bool = False, callback: Callable | None = None,
) -> Model:
    """Learn kernel, pseudo-inputs and likelihood without waiting for Power EP to converge.

    Each step moves the sites of one batch, O(batch M² + M³), and takes the gradient as if inference had converged. What
    all sites together add to the posterior is kept as one (M, M) matrix. Since the features move, it is renewed once an
    epoch, and a batch's old sites are taken out of it with the features with which they went in. With rate = 0 this is
    Power EP on parts of the data and ends at the same fixed point.

    Parameters
    ----------
    kernel, M, Z, progress : as in `training.fit`
    X, y : (N, D) and (N,)
    likelihood : an object as in `pepcore.likelihoods`
    alpha : float, in [0, 1]
    optimise : which of "kernel", "Z", "likelihood" to learn; what is left out stays at its start
    batch : int, data per step
    epochs : int, passes over the data
    rate : float
        Adam's step in the logarithms of positive parameters and in Z over each input's spread; 0 moves the sites only.
    step : float, the damped step of the sites, in (0, 1]
    jitter : float, as in `power_ep.infer`
    max_sweeps : int, for the last inference, on all data at the learnt parameters
    seed : int or Generator, for the choice of Z and the order of the data
    callback : callable (record) or None, called after each step with the dict that enters the history
        `record.result()` makes a Fit with the posterior of that moment, without inference on all data; in it each site
        uses the features of its last turn.

    Returns a Model; its `history` holds the evidence as estimated from each batch, its `fit` inference on all data.
    Raises ValueError for wrong shapes, NaN, targets the likelihood does not accept, names in `optimise` that do not exist
    or have no parameters, and settings out of range.
    Source: bui2017 section 3.9; :eq:`sc-minibatch`, :eq:`bp-take-over`; Adam: kingma2015.
    """
    check_likelihood(likelihood)
    X = check_inputs(X, "X")
    y = likelihood.validate(check_targets(y, len(X)))
    alpha, jitter = float(check_alpha(alpha)), check_jitter(jitter)
    batch, epochs = check_count(batch, "batch"), check_count(epochs, "epochs")
    max_sweeps, step = check_count(max_sweeps, "max_sweeps", least=0), check_step(step)
    rate = check_not_negative(rate, "rate", "0 moves the sites only, 0.02 suits most problems")
    optimise = check_names(optimise, ("kernel", "Z", "likelihood"))
    rng = as_generator(seed, "seed")
    Z = starting_points(Z, X, M, rng)
    kernel = check_kernel(starting_kernel(kernel, X, y, likelihood), others=("Z", *likelihood.parameters))
    values = {"kernel": kernel, "likelihood": likelihood, "Z": Z}
    if isinstance(likelihood, UNITS_OF_Y):
        warn_of_offset(y)
    coordinates = Coordinates(tuple(name for name in values if name in optimise) if rate else (), spread_of(X))
    learner = _Learner(X, y, alpha, values, coordinates, rate, step, jitter, max_sweeps)
    return run(learner, _batches(learner, batch, epochs, rng, progress), f"{epochs} epochs", callback)


def _batches(learner: Any, batch: int, epochs: int, rng: np.random.Generator, progress: bool) -> Iterator[np.ndarray]:
    """Yield arrays of row numbers, all data in a new order in each epoch; the sum of all sites is renewed before each."""
    size = len(learner.X)
    with bar(progress, " epochs", range(epochs)) as numbers:
        for _ in numbers:
            order = rng.permutation(size)
            learner.renew()
            yield from np.array_split(order, -(-size // batch))


class _Learner(Learner):
    """Values, their climber, the sites, and the sites' sum."""

    def __init__(
        self, X: Array, y: Array, alpha: float | Array, values: dict, coordinates: Coordinates, rate: float,
        step: float, jitter: float, max_sweeps: int,
    ) -> None:
        super().__init__(values, coordinates, rate)
        self.X, self.y, self.alpha, self.longest, self.jitter, self.max_sweeps = X, y, alpha, step, jitter, max_sweeps
        self.tau, self.nu = np.zeros(len(X)), np.zeros(len(X))
        self.summed: Any = None  # the features with which the sites went into the sum
        self.precision: Any = None
        self.shift: Any = None

    def renew(self) -> None:
        """Add up all sites anew, on the features as they are now."""
        self.summed = self._features(slice(None), stream=True)
        self.precision, self.shift = natural_parameters(self.summed, Sites(self.tau, self.nu))

    def step(self, rows: np.ndarray) -> dict:
        """One batch: its sites move, then the parameters."""
        features, weight = self._features(rows), len(self.X) / len(rows)
        self._take_over(features, rows)
        # the features may have moved too far for the other sites, or for these
        state = remedied(partial(self._state, features, rows, weight), self.renew, self._flatten_negative)
        after = self._move_sites(features, rows, weight, state)
        if self.climber is not None:
            gradient = iterative.gradient_of(features, self.y[rows], self.values["likelihood"], self.alpha, after)
            self.climb(gradient, weight)
        return {"log_evidence": state.log_evidence}

    def _take_over(self, features: Features, rows: np.ndarray) -> None:
        """Put the sites of a batch, which comes once between two renewals, on the features as they are now.

        Source: :eq:`bp-take-over`.
        """
        sites = Sites(self.tau[rows], self.nu[rows])
        old, new = (natural_parameters(each, sites) for each in (replace(self.summed, X=features.X), features))
        self.precision, self.shift = (total + b - a for total, a, b in zip((self.precision, self.shift), old, new, strict=True))

    def _flatten_negative(self) -> None:
        """Reset the sites of negative precision: all others only narrow the prior, and leave proper cavities."""
        negative = self.tau < 0
        self.tau[negative] = self.nu[negative] = 0.0
        self.renew()

    def _move_sites(self, features: Features, rows: Any, weight: float, state: iterative.State) -> iterative.State:
        """Move the sites of a batch, less far if they would run away or leave no posterior; return the state after it.

        Source: :eq:`sc-minibatch`.
        """
        kept = self.precision, self.shift

        def attempt(step: float) -> Any:
            moved = state.sites.toward(state.target, step)
            change = Sites(moved.tau - state.sites.tau, moved.nu - state.sites.nu)
            precision, shift = natural_parameters(features, change)
            self.tau[rows], self.nu[rows] = moved.tau, moved.nu
            self.precision, self.shift = kept[0] + precision, kept[1] + shift
            return unless_astray(self._state(features, rows, weight), state)

        after, _, _ = halving(attempt, self.longest)
        if after is None:
            self.tau[rows], self.nu[rows] = state.sites.tau, state.sites.nu
            self.precision, self.shift = kept
            return state
        return after

    def _state(self, features: Features, rows: Any, weight: float) -> iterative.State:
        """Moments of the batch's data under the posterior that all sites make."""
        sites = Sites(self.tau[rows], self.nu[rows])
        mean, C = solve_posterior(self.precision, self.shift, concave=False)
        likelihood = self.values["likelihood"]
        return iterative.local_moments(features, self.y[rows], likelihood, self.alpha, sites, mean=mean, C=C, weight=weight)

    def _features(self, rows: Any, stream: bool = False) -> Features:
        return feature_map(self.values["kernel"], self.values["Z"], self.X[rows], self.jitter, stream)

    def result(self) -> Fit:
        """The posterior at this moment, in which each site uses the features of its last turn."""
        basis = Basis.build(self.values["kernel"], self.values["Z"], self.jitter)
        posterior = Posterior(basis, *solve_posterior(self.precision, self.shift, concave=False))
        ending: dict[str, Any] = {"converged": False, "message": f"after {len(self.history)} steps", "sweeps": 0}
        found = self.history[-1]["log_evidence"], posterior, self.values["likelihood"], self.alpha
        return Fit(*found, Sites(self.tau.copy(), self.nu.copy()), NO_GRADIENT, **ending, history=list(self.history))

    def finish(self, message: str) -> Model:
        """What was learnt, with inference on all data."""
        values = self.values
        options: dict[str, Any] = {"alpha": self.alpha, "tolerance": 1e-5, "jitter": self.jitter}
        options |= {"max_sweeps": self.max_sweeps, "stream": len(self.X) * len(values["Z"]) > STREAM_ELEMENTS}
        data = values["kernel"], values["Z"], self.X, self.y, values["likelihood"]
        fit = infer_from(lambda sites: iterative.infer(*data, sites=sites, **options), Sites(self.tau, self.nu))
        return Model(values, fit, len(self.history), fit.converged, message, self.history)
