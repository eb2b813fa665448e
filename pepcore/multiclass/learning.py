"""Learning the hyper-parameters of all classes: L-BFGS, Adam or adaptive steps, with converged or with moving sites."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.kernels import SquaredExponential
from pepcore.kernels.base import Kernel
from pepcore.multiclass.bound import Bound, Evaluation
from pepcore.multiclass.inference import Method, MulticlassFit, check_model
from pepcore.multiclass.maps import ClassMaps
from pepcore.results import Model
from pepcore.sites import parallel
from pepcore.sweeps import halving, infer_from
from pepcore.threads import one_blas_thread
from pepcore.training.coordinates import Coordinates
from pepcore.training.loop import Adam, Adaptive, Learner, run
from pepcore.training.search import Search
from pepcore.training.starts import choose_pseudo_inputs, spread_of
from pepcore.validation import check_count, check_inputs, check_names, check_positive, check_sweeps, check_targets

UPDATES, OPTIMISERS = ("outer", "inner", "inner-exact", "joint"), ("lbfgs", "adaptive", "adam")
LEARNABLE = ("kernels", "Z", "noise")


@one_blas_thread
def fit(
    kernels: Kernel | Sequence[Kernel] | None, X: ArrayLike, y: ArrayLike, *,
    approximation: str = "ep", M: int = 50, alpha: float | None = None, noise: ArrayLike = 0.1,
    epsilon: float | None = None, classes: int | None = None, Z: str | ArrayLike = "kmeans", shared: bool = False,
    optimise: Iterable[str] = ("kernels", "Z", "noise"), update: str = "inner", optimiser: str = "adaptive",
    iterations: int = 250, rate: float = 0.05, step: float = 0.5, max_sweeps: int = 100, tolerance: float = 1e-4,
    jitter: float = 1e-6, seed: int | np.random.Generator = 0, callback: Callable | None = None,
) -> Model:
    """Maximise the log evidence over kernels, pseudo-inputs and noises of all classes.

    Parameters
    ----------
    kernels : kernel or C of them as in `multiclass.infer`, or None for squared exponentials at the data's scales
    X, y : (N, D) and (N,) labels 0 ... C − 1
    M : int, number of pseudo-inputs in each class, unless Z holds arrays
    approximation, alpha, noise, epsilon, classes, jitter : as in `multiclass.infer`
    Z : "kmeans", "subset" (random rows), or (M, D), or C such arrays
    shared : bool, whether classes share the kernel if None was given, and Z if a string was; if False they only start alike
    optimise : which of "kernels", "Z", "noise" to learn
    update : "outer", "inner", "inner-exact" or "joint"
        "outer" lets the sites converge before every gradient. "inner" moves them once and takes the gradient as if they had
        converged, "inner-exact" with them held still. "joint" is for "vi" only: posterior and parameters are optimised
        together, and the fit has no sites. Where "outer" stops at max_sweeps, with a RuntimeWarning, the evidence it has
        reached is used, except by "lbfgs", for which that evaluation fails, as in `training.fit`.
    optimiser : "lbfgs" (with "outer" or "joint"), "adaptive" or "adam"
        With "adaptive" each parameter has a rate of its own, which grows by 2 % while its derivative keeps its sign, and
        halves otherwise.
    iterations : int, of the optimiser
    rate : float
        The largest step in the first iteration, in logarithms of positive parameters and in Z over each input's spread.
    step : float, damped step of the sites in an inner update, in (0, 1]
    max_sweeps, tolerance : of an outer update, and of the last inference
    seed : int or Generator, for the choice of Z
    callback : called with the dict that enters the history, after each iteration, or with "lbfgs" after each evaluation
        that gave a number. `record.parameters` is a dict "kernels", "Z", "noise" (for "joint" also "q", with mean (M,)
        and root (M, M) of the covariance of each class's q(v)), and `record.result()` makes the MulticlassFit. With
        "adaptive" and "adam" these are the values after the step, while the record has the evidence before it.

    Returns a Model: its `parameters` are "kernels", "Z" and "noise" as learnt, of one kernel or array if shared, else lists
    of C; `fit` is the MulticlassFit there; `history` has the log evidence of each iteration, or with "lbfgs" of each
    evaluation. `converged` says whether "lbfgs" met its tolerance; with the other optimisers, whether the last inference
    converged, which it never has after "joint".

    Raises ValueError as `multiclass.infer`, and for unknown words, or an optimiser and an update that do not go
    together; LinAlgError, with "lbfgs", if no evaluation of the first start gives a number.
    Source: villacampa2017 section 2.3 and appendix G.
    """
    X, y = check_inputs(X, "X", copy=True), check_targets(y, len(X))
    _check_choices(approximation, update, optimiser)
    optimise = check_names(optimise, LEARNABLE)
    if not optimise:
        raise ValueError(f"optimise = () leaves nothing to learn; name some of {LEARNABLE}, or call multiclass.infer")
    values, labels, C = _start(kernels, X, y, M, noise, classes, Z, shared, seed)
    method = Method.checked(approximation, alpha, epsilon, C, jitter)
    sweeps = check_sweeps(step, tolerance, max_sweeps)
    step = sweeps.pop("step")
    iterations, rate = check_count(iterations, "iterations"), check_positive(rate, "rate")
    coordinates = Coordinates(optimise, spread_of(X))
    if update == "joint":
        coordinates = Coordinates((*optimise, "q"), spread_of(X))
        objective: Any = Bound(X, labels, C, method.epsilon, method.jitter)
        values = objective.start(values)
    elif update == "outer":
        objective = _Outer(method, X, labels, sweeps, keep_unconverged=optimiser != "lbfgs")
    else:
        objective = _Inner(method, X, labels, sweeps, update == "inner-exact", step)
    if optimiser == "lbfgs":
        limits, result = {"maxiter": iterations, "maxfun": 2 * iterations}, lambda values, _: objective.finish(values)
        search = Search(objective, coordinates, limits, callback=callback, result=result)
        search.maximise([values])
        found = search.best_values
        return model_of(found, objective.finish(found), search.history, search.converged, search.message)
    climber = Adam if optimiser == "adam" else Adaptive
    learner = _Climb(objective, values, coordinates, rate, climber)
    return run(learner, range(iterations), f"{iterations} iterations", callback, count="evaluation")


def model_of(values: dict, fit: MulticlassFit, history: list, converged: bool, message: str) -> Model:
    """Model of the values that were learnt; one kernel or Z for all classes stands as it is, others are lists of C."""
    kernels, Z = (parts[0] if len(parts) == 1 else list(parts) for parts in (values["kernels"], values["Z"]))
    learnt = {"kernels": kernels, "Z": Z, "noise": values["noise"]}
    return Model(learnt, fit, len(history), converged, message, history)


class _Climb(Learner):
    """Steps of Adam, or adaptive ones, on an objective."""

    def __init__(self, objective: Any, *settings: Any) -> None:
        super().__init__(*settings)
        self.objective = objective

    def step(self, _: Any) -> dict:
        found = self.objective(self.values)
        self.climb(found.gradient)
        return {"log_evidence": found.log_evidence}

    def result(self) -> MulticlassFit:
        return self.objective.finish(self.values)

    def finish(self, message: str) -> Model:
        last = self.result()
        return model_of(self.values, last, self.history, last.converged, message)


class _Objective:
    """What both kinds of update share: inference to convergence, from the sites as they are now."""

    sites: Any

    def __init__(self, method: Method, X: Array, y: np.ndarray, sweeps: dict) -> None:
        self.method, self.X, self.factors, self.sweeps = method, X, method.factors(y), sweeps

    def finish(self, values: dict) -> MulticlassFit:
        """MulticlassFit at these values."""
        maps = self.method.maps(values, self.X)

        def attempt(sites: Any) -> MulticlassFit:
            start = self._flat(maps) if sites is None else sites
            return self.method.converge(maps, self.factors, values["noise"], start, **self.sweeps)

        return infer_from(attempt, self.sites)

    def _flat(self, maps: ClassMaps) -> Any:
        return self.method.flat(maps, self.factors)


class _Outer(_Objective):
    """Inference from the sites of the previous evaluation."""

    def __init__(self, *data: Any, keep_unconverged: bool) -> None:
        super().__init__(*data)
        self.keep_unconverged = keep_unconverged
        self.sites = None

    def __call__(self, values: dict) -> MulticlassFit:
        found = self.finish(values)
        self.sites = found.sites if found.converged or self.keep_unconverged else None
        return found


class _Inner(_Objective):
    """One damped sweep, and the gradient from the state before it."""

    state: Any = None

    def __init__(self, method: Method, X: Array, y: np.ndarray, sweeps: dict, exact: bool, step: float) -> None:
        super().__init__(method, X, y, sweeps)
        self.exact, self.step = exact, step

    def __call__(self, values: dict) -> Evaluation:
        maps = self.method.maps(values, self.X)
        self.state = self._next_state(maps, values["noise"])
        return Evaluation(self.state.log_evidence, self.method.gradient(maps, self.factors, self.state, self.exact))

    @property
    def sites(self) -> Any:
        """The sites after the last sweep; None before the first."""
        return None if self.state is None else parallel(self.state, self.step)

    def _next_state(self, maps: ClassMaps, noise: Array) -> Any:
        """The state after the sites have moved; less far where the damped step leaves no posterior on the new features."""
        evaluate, after = partial(self.method.evaluate, maps, self.factors, noise), None
        if self.state is not None:
            after, _, _ = halving(lambda step: evaluate(parallel(self.state, step)), self.step)
        return evaluate(self._flat(maps)) if after is None else after


def _start(
    kernels: Any, X: Array, y: Array, M: int, noise: ArrayLike, classes: int | None, Z: Any, shared: bool,
    seed: int | np.random.Generator,
) -> tuple[dict, np.ndarray, int]:
    """The values to start from, the labels as int, and C."""
    chosen = {"kernels": kernels is None, "Z": isinstance(Z, str)}
    if chosen["kernels"]:
        kernels = SquaredExponential(1.0, spread_of(X) * np.sqrt(X.shape[1]))
    if chosen["Z"]:
        Z = choose_pseudo_inputs(X, M, Z, seed=seed)
    values, labels, C = check_model(kernels, Z, noise, classes, y, X.shape[1])
    if not shared:  # what was not given starts alike in every class
        values |= {name: values[name] * C for name in chosen if chosen[name]}
    return values, labels, C


def _check_choices(approximation: str, update: str, optimiser: str) -> None:
    for name, value, known in (("update", update, UPDATES), ("optimiser", optimiser, OPTIMISERS)):
        if value not in known:
            raise ValueError(f"{name} = {value!r} is unknown; choose one of {', '.join(map(repr, known))}")
    if optimiser == "lbfgs" and update not in ("outer", "joint"):
        raise ValueError('optimiser = "lbfgs" needs update = "outer" or "joint": a line search must find the same '
                         'value again')
    if update == "joint" and approximation != "vi":
        raise ValueError(f'update = "joint" maximises the bound of approximation = "vi"; got it with {approximation!r}')
    if update == "inner-exact" and approximation == "sep":
        raise ValueError('for approximation = "sep" the inner gradient is already that with the sites held still; '
                         'give update = "inner"')
