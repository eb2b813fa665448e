"""Learning on mini-batches: one step of the sites of a batch, and one step of Adam on the hyper-parameters.

"sep" and "vi" keep only the summed natural parameters, O(C M²) numbers, so that the data may be arrays in memory, arrays
mapped from a file, or blocks from an iterator, and be as many as time allows. "ep" and "gfitc" keep every datum's sites.
"""

from functools import partial

import numpy as np
from scipy.linalg import LinAlgError

from pepcore.multiclass import sites_each, sites_tied
from pepcore.multiclass.batches import InMemory, Streamed, check_units, units_of
from pepcore.multiclass.checks import check_epsilon, check_labels, check_model, check_power, check_tied_sites
from pepcore.multiclass.factors import Joint, Pairwise
from pepcore.multiclass.inference import MulticlassFit
from pepcore.multiclass.learning import LEARNABLE
from pepcore.multiclass.likelihood import RobustMax
from pepcore.multiclass.maps import ClassMaps, solve_posteriors
from pepcore.multiclass.steps import Parameters
from pepcore.posterior import Posterior, Posteriors
from pepcore.results import Model, Record
from pepcore.sites import ImproperCavityError, Sites, check_sites
from pepcore.sweeps import SMALLEST_STEP
from pepcore.threads import one_blas_thread
from pepcore.training.adam import Adam
from pepcore.training.minibatch import finish_or_step_back, remedied
from pepcore.validation import (
    check_count,
    check_inputs,
    check_jitter,
    check_names,
    check_not_negative,
    check_step,
    check_targets,
)

TIED = ("sep", "vi")
RECORD = 10  # for these the evidence is estimated in every tenth step: it costs two more factorisations


@one_blas_thread
def fit_minibatch(
    kernels,
    Z,
    data,
    *,
    approximation="sep",
    alpha=None,
    noise=0.1,
    epsilon=None,
    classes=None,
    size=None,
    sites=None,
    optimise=("kernels", "Z", "noise"),
    batch=200,
    epochs=1,
    rate=0.01,
    step=None,
    spread=None,
    jitter=1e-6,
    seed=0,
    callback=None,
):
    """Learn from one batch of data after the other.

    Parameters
    ----------
    kernels, Z, noise : as `multiclass.infer` takes them, to start from
    data : (X, y), arrays or memory-mapped arrays (N, D) and (N,); or, for "sep" and "vi", an iterable of such pairs
        An iterable gives the batches as they are to be used; `batch` and `seed` have no part in it then. For more than
        one epoch it must be one that can be gone through again, such as a list or an object with __iter__.
    approximation, alpha, epsilon, jitter : as in `multiclass.infer`
    classes : int, C; needed where neither kernels nor Z nor noise nor labels in memory tell it
    size : int, N; needed for an iterable, which may hold several passes over the data, or a part of them
    sites : TiedSites or Sites to start from, as a fit to as many data holds them; None starts from the prior
        "sep" and "vi" can go on from each other's sums.
    optimise : which of "kernels", "Z", "noise" to learn
    batch, epochs : int
    rate : float, or a callable from the number of steps taken to the rate of the next, for one that falls
        Adam's step in logarithms of positive parameters and in Z over `spread`; 0 from the start moves the sites only.
    step : float in (0, 1], or None
        For "sep" and "vi" how much of the sum a batch replaces; None is 1/t in step t until every datum had its turn, and
        the batch's share of the data afterwards, or from the beginning if `sites` are given. For "ep" and "gfitc" the
        damped step of the batch's own sites; None is 1.
    spread : (D,), units of Z's columns
        None for the spread of the Z given or, in columns where all of these are equal, of the inputs (of the first batch).
    seed : int, for the order of the data
    callback : callable (record) or None, called after each step with "step" and "log_evidence" (NaN if not estimated)
        `record.result()` makes a MulticlassFit with the posterior of that moment.

    Returns
    -------
    Model
        Its fit has the posterior of the last step and no gradient; `log_evidence` is what the last batch said of all data
        just before it was learnt from, `sweeps` the number of steps.

    Raises
    ------
    ValueError
        As `multiclass.infer`; for an iterable without size, with an approximation that keeps sites for every datum, without
        batches, with a batch of more than N rows, or that can be gone through only once if epochs > 1; for sites of
        another kind or shape.

    Source: villacampa2017 sections 2.3.1 and 2.3.2; at alpha = 0 a natural-gradient step on the bound.
    """
    alpha = check_power(alpha, approximation)
    epochs, optimise = check_count(epochs, "epochs"), check_names(optimise, LEARNABLE)
    if isinstance(data, tuple):
        batches = InMemory(data, batch, seed)
    elif approximation in TIED:
        batches = Streamed(data, size, epochs)
    else:
        raise ValueError(f"{approximation!r} keeps sites for every datum and needs arrays (X, y); blocks are for 'sep' and 'vi'")
    kernels, Z, noise, C = check_model(kernels, Z, noise, classes, batches.labels, batches.columns)
    epsilon, jitter = check_epsilon(epsilon, approximation, alpha, C), check_jitter(jitter)
    if batches.labels is not None:
        check_labels(batches.labels, C)
    rates = rate if callable(rate) else lambda steps: rate
    step = step if step is None else check_step(step)
    values = {"kernels": kernels, "Z": Z, "noise": noise}
    spread = units_of(Z, batches) if spread is None else check_units(spread, Z[0].shape[1])
    learner = _Tied if approximation in TIED else _PerDatum
    settings = Parameters(optimise, spread), rates, step, jitter
    learner = learner(batches.size, C, values, alpha, epsilon, approximation, *settings)
    if sites is not None:
        learner.resume(sites)
    message, number = f"{epochs} epochs", 0
    try:
        for _ in range(epochs):
            learner.begin_epoch(batches)
            for rows, X, y in batches.epoch():
                X = check_inputs(X, "X", columns=Z[0].shape[1])
                learner.learn(rows, X, check_labels(check_targets(y, len(X)), C))
                number += 1
                learner.history[-1].show(callback, learner.fit, learner.values)
    except KeyboardInterrupt:
        message = "interrupted; what was learnt so far is kept"
    except (LinAlgError, ImproperCavityError) as problem:
        message = f"stopped after {number} steps, the last of which is taken back: {problem}"
        learner.values = learner.before
    return learner.model(message)


class _Learner:
    """Values and Adam's averages; subclasses keep the sites."""

    def __init__(self, N, C, values, alpha, epsilon, approximation, parameters, rates, step, jitter):
        self.N, self.C, self.values, self.alpha, self.epsilon, self.approximation = N, C, values, alpha, epsilon, approximation
        self.parameters, self.step, self.jitter, self.history = parameters, step, jitter, []
        self.before = values  # the last step: values that have been seen to work
        self.state, self.steps = None, 0  # of the last batch before its sites moved, and how many there were
        advice = "0 moves the sites only, 0.01 suits most problems"
        self.rate = lambda steps: check_not_negative(rates(steps), "rate", advice)
        self.adam = Adam(parameters.pack(values), self.rate(0)) if self.rate(0) and parameters.learn else None

    def maps(self, X, stream=False):
        return ClassMaps.build(self.values["kernels"], self.values["Z"], self.C, X, self.jitter, stream)

    def factors(self, y):
        return Joint(y, self.C, self.epsilon) if self.approximation in ("gfitc", "vi") else Pairwise(y, self.C)

    def climb(self, gradient):
        """One step of Adam on the gradient for all data."""
        self.adam.rate = self.rate(self.adam.steps)
        point = self.adam.ascend(self.parameters.pack_gradient(self.values, gradient))
        self.before, self.values = self.values, self.parameters.unpack(point, self.values)

    def fit(self):
        """MulticlassFit with the posterior as it is now; it says of itself that it has not converged."""
        maps = self.maps(self.values["Z"][0])
        posteriors = solve_posteriors(*self.total(), concave=False)
        posterior = Posteriors(tuple(Posterior(maps.of(c).basis, *posteriors[c][:2]) for c in range(self.C)))
        likelihood = RobustMax(self.C, self.epsilon, self.values["noise"])
        evidence = self.state.log_evidence if self.state is not None else np.nan
        # the sites of every datum go on being written into
        sites = Sites(self.sites.tau.copy(), self.sites.nu.copy()) if isinstance(self.sites, Sites) else self.sites
        ending = {"converged": False, "message": f"after {self.steps} steps", "sweeps": self.steps}
        found = evidence, posterior, likelihood, self.alpha, sites, _no_gradient
        return MulticlassFit(*found, **ending, history=list(self.history), approximation=self.approximation)

    def model(self, message):
        """What was learnt."""
        last, message = finish_or_step_back(self, self.fit, message)
        values = self.values
        kernels, Z = (parts[0] if len(parts) == 1 else list(parts) for parts in (values["kernels"], values["Z"]))
        learnt = {"kernels": kernels, "Z": Z, "noise": values["noise"]}
        return Model(learnt, last, len(self.history), False, message, self.history)


class _Tied(_Learner):
    """All sites as one sum."""

    def __init__(self, *settings):
        super().__init__(*settings)
        self.sites = sites_tied.TiedSites.flat(self.maps(self.values["Z"][0]))
        self.whole = False  # whether the sums stand for all data from the beginning

    def resume(self, sites):
        """Go on from sums that stand for all data already."""
        self.sites, self.whole = check_tied_sites(sites, self.sites, self.approximation), True

    def begin_epoch(self, batches):
        pass

    def total(self):
        return self.sites.total()

    def learn(self, rows, X, y):
        maps, factors, weight = self.maps(X), self.factors(y), self.N / len(y)
        state = sites_tied.evaluate(maps, factors, self.values["noise"], self.alpha, [1.0], self.sites, weight)
        self.history.append(Record(step=self.steps + 1))
        if self.steps % RECORD == 0:
            self.history[-1]["log_evidence"] = state.log_evidence
        if self.adam is not None:
            self.climb(sites_tied.gradient_of(maps, factors, state, weight))
        self.state, self.steps = state, self.steps + 1
        share = 1 / weight if self.whole else max(1 / self.steps, 1 / weight)
        self.move(state, self.step if self.step is not None else min(1.0, share))

    def move(self, state, step):
        """Towards the batch's target; by less where that leaves no posterior, as factors that are not log-concave may."""
        while step > SMALLEST_STEP:
            self.sites = state.sites.toward(state.target, step)
            if self.approximation == "sep" or _proper(*self.sites.total()):  # the factors of "sep" are log-concave
                return
            step /= 2
        self.sites = state.sites


class _PerDatum(_Learner):
    """Sites of every datum, and their sum, which is made anew in each epoch since the features have moved."""

    def __init__(self, *settings):
        super().__init__(*settings)
        self.sites = None

    def resume(self, sites):
        """Go on from sites of every datum."""
        shape = (self.C, self.N) if self.approximation == "gfitc" else (2, self.C - 1, self.N)
        self.sites = check_sites(sites, shape, f"sites for {self.approximation!r}")

    def begin_epoch(self, batches):
        self.data, self.all_factors = batches, self.factors(check_labels(batches.labels, self.C))
        if self.sites is None:
            self.sites = Sites(np.zeros(self.all_factors.shape), np.zeros(self.all_factors.shape))
        self.renew()

    def renew(self):
        """Add up all sites on the features as they are now."""
        maps = self.maps(check_inputs(self.data.X, "X"), stream=True)
        tau, nu = self.all_factors.scatter(self.sites.tau), self.all_factors.scatter(self.sites.nu)
        self.precisions, self.shifts = maps.natural_parameters(tau, nu)

    def total(self):
        return self.precisions, self.shifts

    def learn(self, rows, X, y):
        maps, factors, weight = self.maps(X), self.factors(y), self.N / len(y)
        # the features may have moved too far for the sum, or for the sites
        state = remedied(partial(self.evaluate, maps, factors, rows, weight), self.renew, self.flatten_negative)
        self.history.append(Record(step=self.steps + 1, log_evidence=state.log_evidence))
        self.state, self.steps = state, self.steps + 1
        if self.adam is not None:
            self.climb(_scaled(sites_each.gradient_of(maps, factors, self.alpha, state), weight))
        self.move(maps, factors, rows, state)

    def move(self, maps, factors, rows, state):
        """Towards the batch's target; by less where sites of negative precision leave no posterior."""
        kept, step = (self.precisions, self.shifts), self.step or 1.0
        while step > SMALLEST_STEP:
            moved = state.sites.toward(state.target, step)
            change = factors.scatter(moved.tau - state.sites.tau), factors.scatter(moved.nu - state.sites.nu)
            more = maps.natural_parameters(*change)
            self.sites.tau[..., rows], self.sites.nu[..., rows] = moved.tau, moved.nu
            self.precisions = [old + new for old, new in zip(kept[0], more[0], strict=True)]
            self.shifts = [old + new for old, new in zip(kept[1], more[1], strict=True)]
            if self.sites.tau.min() >= 0 or _proper(self.precisions, self.shifts):
                return
            step /= 2
        self.sites.tau[..., rows], self.sites.nu[..., rows] = state.sites.tau, state.sites.nu
        self.precisions, self.shifts = kept

    def flatten_negative(self):
        """Begin anew with the sites of negative precision: all others only narrow the prior, and leave proper cavities."""
        negative = self.sites.tau < 0
        self.sites.tau[negative] = self.sites.nu[negative] = 0.0
        self.renew()

    def evaluate(self, maps, factors, rows, weight):
        posteriors = solve_posteriors(self.precisions, self.shifts, concave=False)
        sites = Sites(self.sites.tau[..., rows], self.sites.nu[..., rows])
        return sites_each.local_moments(
            maps, factors, self.values["noise"], self.alpha, sites, posteriors, weight
        )


def _proper(precisions, shifts):
    """Whether these natural parameters, added to the prior's, leave a posterior."""
    try:
        solve_posteriors(precisions, shifts, concave=False)
    except ImproperCavityError:
        return False
    return True


def _scaled(gradient, weight):
    """Every array of a gradient times `weight`."""
    if isinstance(gradient, dict):
        return {key: _scaled(value, weight) for key, value in gradient.items()}
    return [_scaled(value, weight) for value in gradient] if isinstance(gradient, list) else weight * gradient


def _no_gradient():
    raise NotImplementedError("learning on batches keeps no gradient; call multiclass.infer at the learnt values for it")
