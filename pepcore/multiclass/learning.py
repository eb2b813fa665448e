"""Learning the hyper-parameters of all classes: L-BFGS, Adam or an adaptive step, after convergence or along with it."""

from functools import partial

import numpy as np
from scipy.linalg import LinAlgError

from pepcore.kernels import SquaredExponential
from pepcore.multiclass import sites_each, sites_tied
from pepcore.multiclass.bound import Bound, BoundParameters
from pepcore.multiclass.checks import check_epsilon, check_labels, check_model, check_power
from pepcore.multiclass.factors import Joint, Pairwise
from pepcore.multiclass.inference import infer
from pepcore.multiclass.maps import ClassMaps
from pepcore.multiclass.steps import Adaptive, Parameters, climb, lbfgs
from pepcore.results import Model, Record
from pepcore.sites import ImproperCavityError, Sites
from pepcore.sweeps import SMALLEST_STEP
from pepcore.threads import one_blas_thread
from pepcore.training.adam import Adam
from pepcore.training.starts import choose_pseudo_inputs, spread_of
from pepcore.validation import (
    check_count,
    check_inputs,
    check_jitter,
    check_names,
    check_positive,
    check_step,
    check_targets,
)

UPDATES, OPTIMISERS = ("outer", "inner", "inner-exact", "joint"), ("lbfgs", "adaptive", "adam")
LEARNABLE = ("kernels", "Z", "noise")


@one_blas_thread
def fit(
    kernels,
    X,
    y,
    *,
    approximation="ep",
    M=50,
    alpha=None,
    noise=0.1,
    epsilon=None,
    classes=None,
    Z="kmeans",
    shared=False,
    optimise=("kernels", "Z", "noise"),
    update="inner",
    optimiser="adaptive",
    iterations=250,
    rate=0.05,
    step=0.5,
    max_sweeps=100,
    tolerance=1e-4,
    jitter=1e-6,
    seed=0,
    callback=None,
):
    """Maximise the log evidence over kernels, pseudo-inputs and noises of all classes.

    Parameters
    ----------
    kernels : kernel or C of them as in `multiclass.infer`, or None for squared exponentials at the data's scales
    X, y : (N, D) and (N,) labels 0 ... C − 1
    M : int, number of pseudo-inputs in each class, unless Z holds arrays
    approximation, alpha, noise, epsilon, classes, jitter : as in `multiclass.infer`
    Z : "kmeans", "subset" (random rows), or (M, D), or C such arrays
    shared : bool, whether classes share one kernel and Z where kernels is None and Z a word; else they start alike
    optimise : which of "kernels", "Z", "noise" to learn
    update : "outer", "inner", "inner-exact" or "joint"
        Let the sites converge before every gradient; or move them once, and take the gradient as if they had converged,
        or that with the sites held still. "joint" is for "vi" only: posterior and parameters are one optimisation, and
        the fit has no sites. Where "outer" stops at max_sweeps before convergence, with a RuntimeWarning, what it has then
        counts as the evidence: give more sweeps.
    optimiser : "lbfgs" (with "outer" only), "adaptive" or "adam"
        The adaptive step has a rate for each parameter, 2 % larger while the gradient keeps its sign, half when not.
    iterations : int, of the optimiser
    rate : float
        The largest step in the first iteration, in logarithms of positive parameters and in Z over each input's spread.
    step : float, damped step of the sites in an inner update, in (0, 1]
    max_sweeps, tolerance : of an outer update, and of the last inference
    seed : int, for the choice of Z
    callback : callable (record) or None
        Called with the dict that enters the history, after each iteration, or with "lbfgs" after each evaluation that is
        the best so far. `record.parameters` is a dict "kernels", "Z", "noise" (of "joint" also "q", with mean (M,) and
        root (M, M) of the covariance of each class's q(v)), and `record.result()` makes the MulticlassFit there.

    Returns
    -------
    Model

    Raises
    ------
    ValueError
        As `multiclass.infer`, and for unknown words, or an optimiser and an update that do not go together.

    Source: villacampa2017 section 2.3 and appendix G.
    """
    X, y = check_inputs(X, "X"), check_targets(y, len(X))
    _check_choices(approximation, update, optimiser)
    optimise = check_names(optimise, LEARNABLE)
    if not optimise:
        raise ValueError(f"optimise = () leaves nothing to learn; name some of {LEARNABLE}, or call multiclass.infer")
    values, C = _start(kernels, X, y, M, noise, classes, Z, shared, seed)
    y = check_labels(y, C)
    alpha = check_power(alpha, approximation)
    epsilon, jitter = check_epsilon(epsilon, approximation, alpha, C), check_jitter(jitter)
    step = check_step(step)
    iterations, rate = check_count(iterations, "iterations"), check_positive(rate, "rate")
    max_sweeps, tolerance = check_count(max_sweeps, "max_sweeps", least=0), check_positive(tolerance, "tolerance")
    parameters = Parameters(optimise, spread_of(X))
    options = {
        "alpha": alpha,
        "approximation": approximation,
        "epsilon": epsilon if approximation in ("gfitc", "vi") else None,
        "classes": C,
        "jitter": jitter,
        "max_sweeps": max_sweeps,
        "tolerance": tolerance,
    }
    if update == "joint":
        parameters, objective = BoundParameters(optimise, spread_of(X)), Bound(X, y, C, epsilon, jitter)
        values = objective.start(values)
    elif update == "outer":
        objective = _Outer(X, y, options)
    else:
        objective = _Inner(X, y, C, alpha, approximation, epsilon, update == "inner-exact", step, jitter)
    result = lambda values: objective.finish(values, options)
    if optimiser == "lbfgs":
        values, message = lbfgs(objective, parameters, values, iterations, callback, result)
        before = values
    else:
        climber = Adam if optimiser == "adam" else Adaptive
        values, before, message = climb(
            objective, parameters, values, climber(parameters.pack(values), rate), iterations, callback, result
        )
    try:
        last = objective.finish(values, options)
    except LinAlgError as problem:
        values, message = before, f"{message}; the last step is taken back: {problem}"
        last = objective.finish(values, options)
    kernels, Z = (parts[0] if len(parts) == 1 else list(parts) for parts in (values["kernels"], values["Z"]))
    learnt = {"kernels": kernels, "Z": Z, "noise": values["noise"]}
    return Model(learnt, last, len(objective.history), last.converged, message, objective.history)


def _infer(values, X, y, sites, options):
    """Inference to convergence, from given sites if they still leave proper cavities."""
    attempt = partial(infer, values["kernels"], values["Z"], X, y, noise=values["noise"], **options)
    try:
        return attempt(sites=sites)
    except ImproperCavityError:
        return attempt()


class _Outer:
    """Evidence and gradient after inference from the sites of the evaluation before."""

    def __init__(self, X, y, options):
        self.X, self.y, self.options, self.sites, self.history = X, y, options, None, []

    def __call__(self, values):
        result = self.finish(values, self.options)
        self.history.append(Record(evaluation=len(self.history) + 1, log_evidence=result.log_evidence))
        self.sites = result.sites
        return result.log_evidence, result.gradient

    def finish(self, values, options):
        return _infer(values, self.X, self.y, self.sites, options)


class _Inner:
    """One damped sweep, and the gradient from the state before it."""

    def __init__(self, X, y, C, alpha, approximation, epsilon, exact, step, jitter):
        self.X, self.C, self.alpha, self.approximation, self.exact = X, C, alpha, approximation, exact
        self.y, self.step, self.jitter, self.history, self.state = y, step, jitter, [], None
        self.factors = Joint(y, C, epsilon) if approximation in ("gfitc", "vi") else Pairwise(y, C)

    def __call__(self, values):
        maps = ClassMaps.build(values["kernels"], values["Z"], self.C, self.X, self.jitter)
        self.state = self._next_state(maps, values)
        self.history.append(Record(evaluation=len(self.history) + 1, log_evidence=self.state.log_evidence))
        return self.state.log_evidence, self._gradient(maps, self.state)

    def finish(self, values, options):
        sites = None if self.state is None else self._moved(self.step)
        return _infer(values, self.X, self.y, sites, options)

    def _next_state(self, maps, values):
        """That to which the sites move; less far where this leaves no posterior on the features as they are now."""
        step = self.step
        while self.state is not None and step >= SMALLEST_STEP:
            try:
                return self._state_of(maps, values, self._moved(step))
            except ImproperCavityError:
                step /= 2
        return self._state_of(maps, values, self._flat(maps))

    def _moved(self, step):
        return self.state.sites.toward(self.state.target, step)

    def _flat(self, maps):
        if self.approximation == "sep":
            return sites_tied.TiedSites.flat(maps)
        return Sites(np.zeros(self.factors.shape), np.zeros(self.factors.shape))

    def _state_of(self, maps, values, sites):
        if self.approximation == "sep":
            return sites_tied.evaluate(maps, self.factors, values["noise"], self.alpha, [1.0], sites)
        return sites_each.evaluate(maps, self.factors, values["noise"], self.alpha, sites)

    def _gradient(self, maps, state):
        if self.approximation == "sep":
            return sites_tied.gradient_of(maps, self.factors, state)
        gradient_of = sites_each.exact_gradient_of if self.exact else sites_each.gradient_of
        return gradient_of(maps, self.factors, self.alpha, state)


def _start(kernels, X, y, M, noise, classes, Z, shared, seed):
    """The values to start from, and C."""
    chosen = {"kernels": kernels is None, "Z": isinstance(Z, str)}
    if chosen["kernels"]:
        kernels = SquaredExponential(1.0, spread_of(X) * np.sqrt(X.shape[1]))
    if chosen["Z"]:
        Z = choose_pseudo_inputs(X, M, Z, seed=seed)
    kernels, Z, noise, C = check_model(kernels, Z, noise, classes, y, X.shape[1])
    values = {"kernels": kernels, "Z": Z, "noise": noise}
    if not shared:  # what nobody gave starts alike in every class
        values |= {name: values[name] * C for name in chosen if chosen[name]}
    return values, C


def _check_choices(approximation, update, optimiser):
    for name, value, known in (("update", update, UPDATES), ("optimiser", optimiser, OPTIMISERS)):
        if value not in known:
            raise ValueError(f"{name} = {value!r} is unknown; choose one of {', '.join(map(repr, known))}")
    if optimiser == "lbfgs" and update not in ("outer", "joint"):
        raise ValueError(
            'optimiser = "lbfgs" needs update = "outer" or "joint": a line search must find the same value again'
        )
    if update == "joint" and approximation != "vi":
        raise ValueError(f'update = "joint" maximises the bound of approximation = "vi"; got it with {approximation!r}')
    if update == "inner-exact" and approximation == "sep":
        raise ValueError(
            'for approximation = "sep" the inner gradient is already that with the sites held still; give update = "inner"'
        )
