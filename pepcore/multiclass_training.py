"""Learning the hyper-parameters of all classes: L-BFGS, Adam or an adaptive step, after convergence or along with it."""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize

from pepcore import multiclass, multiclass_inference, multiclass_sep
from pepcore.kernels import SquaredExponential
from pepcore.minibatch import _Adam
from pepcore.multiclass_factors import Joint, Pairwise
from pepcore.multiclass_maps import ClassMaps
from pepcore.multiclass_model import check_epsilon, check_labels, check_model, check_power
from pepcore.parameters import Coordinates
from pepcore.sites import ImproperCavityError, Sites
from pepcore.starts import choose_pseudo_inputs, spread_of
from pepcore.threads import one_blas_thread
from pepcore.validation import check_count, check_inputs, check_positive, check_targets

UPDATES, OPTIMISERS = ("outer", "inner", "inner-exact"), ("lbfgs", "adaptive", "adam")


@dataclass(frozen=True, eq=False)
class MulticlassModel:
    """What training returns.

    Attributes
    ----------
    kernels, Z, noise : what was learnt, as `multiclass.infer` takes them
    fit : MulticlassFit at those values
    evaluations : int, sweeps over the data, or parts of it
    message : str, why the training ended
    history : (evaluations,) log evidence of each, on batches its estimate
    """

    kernels: object
    Z: object
    noise: np.ndarray
    fit: multiclass.MulticlassFit
    evaluations: int
    message: str
    history: np.ndarray = field(repr=False)

    def predict(self, Xs):
        """Probabilities (S, C) of the classes at Xs (S, D)."""
        return self.fit.predict(Xs)


@one_blas_thread
def fit(
    kernels,
    X,
    y,
    M=50,
    alpha=None,
    method="ep",
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
    alpha, method, noise, epsilon, classes, jitter : as in `multiclass.infer`
    Z : "kmeans", "subset" (random rows), or (M, D), or C such arrays
    shared : bool, whether classes share one kernel and Z where kernels is None and Z a word; else they start alike
    optimise : which of "kernels", "Z", "noise" to learn
    update : "outer", "inner" or "inner-exact"
        Let the sites converge before every gradient; or move them once, and take the gradient as if they had converged,
        or that with the sites held still.
    optimiser : "lbfgs" (with "outer" only), "adaptive" or "adam"
        The adaptive step has a rate for each parameter, 2 % larger while the gradient keeps its sign, half when not.
    iterations : int, of the optimiser
    rate : float
        The largest step in the first iteration, in logarithms of positive parameters and in Z over each input's spread.
    step : float, damped step of the sites in an inner update, in (0, 1]
    max_sweeps, tolerance : of an outer update, and of the last inference
    seed : int, for the choice of Z
    callback : callable (iteration, values) or None; values is a dict "kernels", "Z", "noise"

    Returns
    -------
    MulticlassModel

    Raises
    ------
    ValueError
        As `multiclass.infer`, and for unknown words, or an optimiser and an update that do not go together.

    Source: villacampa2017 section 2.3 and appendix G.
    """
    X, y = check_inputs(X, "X"), check_targets(y, len(X))
    _check_choices(method, update, optimiser, optimise)
    values, C = _start(kernels, X, y, M, noise, classes, Z, shared, seed)
    y = check_labels(y, C)
    alpha, epsilon = check_power(alpha, method), check_epsilon(epsilon, method)
    iterations, rate = check_count(iterations, "iterations"), check_positive(rate, "rate")
    parameters = Parameters(tuple(optimise), spread_of(X))
    options = {
        "alpha": alpha,
        "method": method,
        "epsilon": epsilon if method in ("gfitc", "vi") else None,
        "classes": C,
        "jitter": jitter,
        "max_sweeps": max_sweeps,
        "tolerance": tolerance,
    }
    if update == "outer":
        objective = _Outer(X, y, options)
    else:
        objective = _Inner(X, y, C, alpha, method, epsilon, update == "inner-exact", step, jitter)
    if optimiser == "lbfgs":
        values, message = _lbfgs(objective, parameters, values, iterations, callback)
    else:
        climb = _Adam if optimiser == "adam" else _Adaptive
        values, message = _climb(
            objective, parameters, values, climb(parameters.pack(values), rate), iterations, callback
        )
    last = objective.finish(values, options)
    kernels, Z = (parts[0] if len(parts) == 1 else list(parts) for parts in (values["kernels"], values["Z"]))
    return MulticlassModel(
        kernels, Z, values["noise"], last, len(objective.history), message, np.array(objective.history)
    )


@dataclass(frozen=True, eq=False)
class Parameters:
    """To and from one vector for a dict "kernels" (tuple), "Z" (tuple), "noise" (C,); see `pepcore.parameters`."""

    learn: tuple
    spread: np.ndarray

    def _parts(self, values):
        """(coordinates, value as these want it) for each piece of the vector."""
        parts = []
        for name, single in (("kernels", "kernel"), ("Z", "Z")):
            if name in self.learn:
                parts += [(Coordinates((single,), self.spread), {single: value}) for value in values[name]]
        if "noise" in self.learn:
            parts.append((Coordinates(("noise",), self.spread), {"noise": values["noise"]}))
        return parts

    def pack(self, values):
        """The vector (P,) of `values`."""
        return np.concatenate([coordinates.pack(value) for coordinates, value in self._parts(values)])

    def unpack(self, point, values):
        """A dict like `values` with what the vector says."""
        new, position = {name: [] for name in self.learn}, 0
        for coordinates, old in self._parts(values):
            size = len(coordinates.pack(old))
            found = coordinates.unpack(point[position : position + size], old)
            position += size
            for name, value in found.items():
                new["kernels" if name == "kernel" else name].append(value)
        joined = {name: np.asarray(found[0]) if name == "noise" else tuple(found) for name, found in new.items()}
        return values | joined

    def pack_gradient(self, values, gradient):
        """The gradient in natural units, as `MulticlassFit` has it, in the vector's coordinates."""
        as_list = lambda parts: parts if isinstance(parts, list) else [parts]
        pieces = []
        if "kernels" in self.learn:
            pieces += as_list(gradient["kernels"])
        if "Z" in self.learn:
            pieces += [{"Z": part} for part in as_list(gradient["Z"])]
        if "noise" in self.learn:
            pieces.append({"noise": gradient["noise"]})
        pairs = zip(self._parts(values), pieces, strict=True)
        return np.concatenate([coordinates.pack_gradient(value, piece) for (coordinates, value), piece in pairs])

    def bounds(self, values):
        """(low, high) for each coordinate, None where there is no bound."""
        return [bound for coordinates, value in self._parts(values) for bound in coordinates.bounds(value)]


class _Outer:
    """Evidence and gradient after inference from the sites of the evaluation before."""

    def __init__(self, X, y, options):
        self.X, self.y, self.options, self.sites, self.history = X, y, options, None, []

    def __call__(self, values):
        result = self._infer(values, self.options)
        self.history.append(result.log_evidence)
        self.sites = result.sites
        return result.log_evidence, result.gradient

    def finish(self, values, options):
        return self._infer(values, options)

    def _infer(self, values, options):
        infer = partial(
            multiclass.infer, values["kernels"], values["Z"], self.X, self.y, noise=values["noise"], **options
        )
        try:
            return infer(sites=self.sites)
        except ImproperCavityError:
            return infer()


class _Inner:
    """One damped sweep, and the gradient from the state before it."""

    def __init__(self, X, y, C, alpha, method, epsilon, exact, step, jitter):
        self.X, self.C, self.alpha, self.method, self.exact = X, C, alpha, method, exact
        self.y, self.step, self.jitter, self.history, self.sites = y, step, jitter, [], None
        self.factors = Joint(y, C, epsilon) if method in ("gfitc", "vi") else Pairwise(y, C)

    def __call__(self, values):
        maps = ClassMaps.build(values["kernels"], values["Z"], self.C, self.X, self.jitter)
        if self.sites is None:
            self.sites = self._flat(maps)
        try:
            state = self._state(maps, values, self.sites)
        except ImproperCavityError:  # the features have moved too far for the sites: start them anew
            state = self._state(maps, values, self._flat(maps))
        self.sites = state.sites.toward(state.target, self.step)
        self.history.append(state.log_evidence)
        return state.log_evidence, self._gradient(maps, state)

    def finish(self, values, options):
        """Inference to convergence."""
        infer = partial(
            multiclass.infer, values["kernels"], values["Z"], self.X, self.y, noise=values["noise"], **options
        )
        try:
            return infer(sites=self.sites)
        except ImproperCavityError:
            return infer()

    def _flat(self, maps):
        if self.method == "sep":
            return multiclass_sep.TiedSites.flat(maps)
        return Sites(np.zeros(self.factors.shape), np.zeros(self.factors.shape))

    def _state(self, maps, values, sites):
        if self.method == "sep":
            return multiclass_sep.evaluate(maps, self.factors, values["noise"], self.alpha, [1.0], sites)
        return multiclass_inference.evaluate(maps, self.factors, values["noise"], self.alpha, sites)

    def _gradient(self, maps, state):
        if self.method == "sep":
            return multiclass_sep.gradient_of(maps, self.factors, state)
        gradient_of = multiclass_inference.exact_gradient_of if self.exact else multiclass_inference.gradient_of
        return gradient_of(maps, self.factors, self.alpha, state)


class _Adaptive:
    """Gradient ascent with a rate for each coordinate: 2 % more while its sign stays, half when it changes.

    The paper does not say where the rates start; here such that the first step's longest part is `rate`.

    Source: villacampa2017 appendix G.
    """

    def __init__(self, start, rate):
        self.point, self.rate, self.rates, self.sign = start, rate, None, None

    def ascend(self, gradient):
        """The point after one step; a gradient that is not finite leaves it where it was."""
        if not np.all(np.isfinite(gradient)):
            return self.point
        sign = np.sign(gradient)
        if self.rates is None:
            self.rates = np.full(len(gradient), self.rate / max(np.abs(gradient).max(), 1e-300))
        else:
            self.rates = self.rates * np.where(sign == self.sign, 1.02, 0.5)
        self.sign = sign
        # no coordinate moves by more than 1 at a time: a factor e, or an input's spread
        self.point = self.point + np.clip(self.rates * gradient, -1.0, 1.0)
        return self.point


def _climb(objective, parameters, values, climber, iterations, callback):
    message = f"{iterations} iterations"
    try:
        for iteration in range(iterations):
            try:
                _, gradient = objective(values)
            except LinAlgError as problem:
                message = f"stopped after {iteration} iterations: {problem}"
                break
            values = parameters.unpack(climber.ascend(parameters.pack_gradient(values, gradient)), values)
            if callback is not None:
                callback(iteration, values)
    except KeyboardInterrupt:
        message = "interrupted; what was learnt so far is kept"
    return values, message


def _lbfgs(objective, parameters, values, iterations, callback):
    best = {"value": -np.inf, "values": values}

    def negative(point):
        now = parameters.unpack(point, values)
        try:
            value, gradient = objective(now)
        except LinAlgError:
            return 1e30, np.zeros_like(point)  # a wall: the line search steps back
        gradient = parameters.pack_gradient(now, gradient)
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            return 1e30, np.zeros_like(point)
        if value > best["value"]:
            best.update(value=value, values=now)
            if callback is not None:
                callback(len(objective.history) - 1, now)
        return -value, -gradient

    try:
        result = minimize(
            negative,
            parameters.pack(values),
            jac=True,
            method="L-BFGS-B",
            bounds=parameters.bounds(values),
            options={"maxiter": iterations, "maxfun": 2 * iterations},
        )
        message = str(result.message)
    except KeyboardInterrupt:
        message = "interrupted; the best point so far is kept"
    return best["values"], message


def _start(kernels, X, y, M, noise, classes, Z, shared, seed):
    """The values to start from, and C."""
    if classes is None:
        given = [len(part) for part in (kernels, Z) if isinstance(part, list | tuple)]
        classes = max([*given, int(y.max()) + 1])
    copies = 1 if shared else check_count(classes, "classes")
    if kernels is None:
        kernels = [SquaredExponential(1.0, spread_of(X) * np.sqrt(X.shape[1]))] * copies
    if isinstance(Z, str):
        Z = [choose_pseudo_inputs(X, M, Z, seed=seed)] * copies
    kernels, Z, noise, C = check_model(kernels, Z, noise, classes, y, X.shape[1])
    return {"kernels": kernels, "Z": Z, "noise": noise}, C


def _check_choices(method, update, optimiser, optimise):
    for name, value, known in (("update", update, UPDATES), ("optimiser", optimiser, OPTIMISERS)):
        if value not in known:
            raise ValueError(f"{name} = {value!r} is unknown; choose one of {', '.join(map(repr, known))}")
    if optimiser == "lbfgs" and update != "outer":
        raise ValueError('optimiser = "lbfgs" needs update = "outer": a line search must find the same value again')
    if update == "inner-exact" and method == "sep":
        raise ValueError(
            'for method = "sep" the inner gradient is already that with the sites held still; give update = "inner"'
        )
    unknown = set(optimise) - {"kernels", "Z", "noise"}
    if unknown or not optimise:
        raise ValueError(f'optimise names some of "kernels", "Z" and "noise"; got {sorted(optimise)}')
