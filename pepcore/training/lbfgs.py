"""Learning hyper-parameters and pseudo-inputs with L-BFGS on all data."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore import power_ep
from pepcore.gaussian import Array
from pepcore.kernels.base import Kernel
from pepcore.results import Model
from pepcore.sweeps import infer_from
from pepcore.training.coordinates import Coordinates
from pepcore.training.search import Search
from pepcore.training.starts import UNITS_OF_Y, spread_of, starting_kernel, starting_points, variance_of, warn_of_offset
from pepcore.validation import (
    as_generator,
    as_real,
    check_count,
    check_inputs,
    check_likelihood,
    check_names,
    check_not_negative,
    check_positive,
    check_targets,
)


def fit(
    kernel: Kernel | None, X: ArrayLike, y: ArrayLike, *,
    infer: Callable = power_ep.regression, M: int = 50, alpha: ArrayLike = 0.5, noise: float | None = None,
    Z: str | ArrayLike = "kmeans", optimise: Iterable[str] = ("kernel", "noise", "Z", "likelihood"), restarts: int = 1,
    max_evaluations: int = 500, tolerance: float = 1e-9, least_rise: float = 0.0,
    seed: int | np.random.Generator = 0, progress: bool = False, callback: Callable | None = None, **options: Any,
) -> Model:
    """Maximise the log evidence over kernel parameters, noise, pseudo-inputs and parameters of the likelihood.

    Positive parameters are optimised as logarithms, Z in units of each input's spread, so that the units of the data
    do not matter.

    Parameters
    ----------
    kernel : kernel, or None for a squared exponential with one lengthscale per input that starts at the data's scales
        Its variance starts at that of y, or at 1 for counts and other y that are not in the units of f.
    X, y : (N, D) and (N,)
    M : number of pseudo-inputs, unless `Z` is an array
    alpha : float or array, handed to `infer`
    noise : float, or None to start at a tenth of the variance of y; for an `infer` with an argument of this name, such as
        `power_ep.regression`. With `power_ep.infer` the noise is part of the likelihood, and a number here is an error.
    Z : "kmeans", "subset" (random rows), or an (M, D) array to start from
    infer : callable like `power_ep.regression`, `power_ep.infer` or `exact.regression`
        It is given those of Z, noise and alpha that its signature names. If it names `sites` it starts from those of the
        evaluation before, which saves most of its sweeps.
    optimise : which of "kernel", "noise", "Z", "likelihood" to learn; what is left out stays at its start, and what `infer`
        does not have is passed over. "noise" is the argument of `infer`, "likelihood" the noise of Gaussian(noise).
    restarts : number of starts; the first as given, the others with scattered kernel parameters and noise, where these
        are learnt, and new Z unless that was given. The best is kept.
    max_evaluations : int, for each start; the line search that is under way is finished, which takes one or two more
    tolerance : float, relative change of the evidence in one step at which a start has converged
    least_rise : float, in nats; a start has also converged when ten steps together have raised the evidence by less
        At 0 this never happens. Many pseudo-inputs creep for hundreds of steps, which gain less than a nat in all.
    seed : int or Generator, for the choice of Z and the restarts
    progress : show a bar. With or without it, Ctrl-C returns the best result so far.
    callback : called after each evaluation that gave a number, with the dict that enters the history; `record.result()`
        is the fit of that evaluation
    **options : handed to `infer`, for example `blocks`, `jitter` or, for `power_ep.infer`, `likelihood`

    Returns
    -------
    Model; its `history` has NaN where an evaluation failed
        An evaluation whose inference has not converged counts as failed, unless none before it in the same start has
        converged. If the best one has not, `message` says so, and `fit.converged` and `converged` are False.

    Raises ValueError for wrong shapes, NaN, names in `optimise` that do not exist or leave nothing to learn, more
    pseudo-inputs than distinct rows of X, settings out of range, options that `infer` does not have, or a missing
    one that it needs; LinAlgError if no evaluation of the first start gives a number; KeyboardInterrupt if it is
    interrupted before one did.
    """
    X = check_inputs(X, "X")
    y = check_targets(y, len(X))
    if not callable(infer):
        raise ValueError(f"infer = {infer!r} must be a function such as power_ep.regression, power_ep.infer or exact.infer")
    accepted = inspect.signature(infer).parameters
    if "kernels" in accepted:
        raise ValueError(f"infer = {infer!r} has a kernel for each class; learn with multiclass.fit")
    optimise = check_names(optimise, ("kernel", "noise", "Z", "likelihood"))
    restarts = check_count(restarts, "restarts")
    max_evaluations = check_count(max_evaluations, "max_evaluations", least=0)
    tolerance = check_not_negative(tolerance, "tolerance", "0 goes on until the evidence no longer rises, 1e-9 is usual")
    least_rise = check_not_negative(least_rise, "least_rise", "0 leaves this test out, 0.03 nats is a usual value")
    rng = as_generator(seed, "seed")
    spread = spread_of(X)
    kernel = starting_kernel(kernel, X, y, options.get("likelihood"))
    if noise is not None and "noise" not in accepted:
        raise ValueError(f"noise = {noise} was given, but this infer takes none; give it to the likelihood, as Gaussian(0.1)")
    noise = check_positive(noise, "noise") if noise is not None else 0.1 * variance_of(y)
    if "alpha" in accepted:  # private powers are copied, since the model keeps them
        options = {**options, "alpha": as_real(alpha, "alpha").copy() if np.ndim(alpha) else alpha}

    start: dict[str, Any] = {"kernel": kernel}
    if "likelihood" in options:
        start["likelihood"] = check_likelihood(options.pop("likelihood"))
    if "noise" in accepted:
        start["noise"] = noise
    if "Z" in accepted:
        start["Z"] = starting_points(Z, X, M, rng)
    _check_options(infer, start, options)
    learn = tuple(name for name in start if name in optimise)
    if optimise and not learn:
        raise ValueError(f"optimise = {optimise} names nothing that is there to learn; name some of {', '.join(start)}")
    coordinates = Coordinates(learn, spread)
    if "noise" in start or isinstance(start.get("likelihood"), UNITS_OF_Y):
        warn_of_offset(y)

    evaluate = _Evaluate(infer, X, y, options, "sites" in accepted and "sites" not in options)

    def starts() -> Iterator[dict]:
        for attempt in range(restarts):
            evaluate.sites = None
            yield start if attempt == 0 else _scatter(start, coordinates.learn, Z, X, rng)

    limits = {"maxfun": max_evaluations, "maxiter": max_evaluations, "ftol": tolerance, "gtol": 1e-6}
    search = Search(evaluate, coordinates, limits, least_rise=least_rise, progress=progress, callback=callback)
    search.maximise(starts())
    history = search.history
    return Model(search.best_values, search.best_found, len(history), search.converged, search.message, history)


class _Evaluate:
    """Inference at given values, started from the sites of the previous evaluation if that converged."""

    def __init__(self, infer: Callable, X: Array, y: Array, options: dict, warm: bool) -> None:
        self.infer, self.X, self.y, self.options, self.warm, self.sites = infer, X, y, options, warm, None

    def __call__(self, values: dict) -> Any:
        result = infer_from(partial(self._from, values), self.sites)
        self.sites = result.sites if self.warm and result.converged else None
        return result

    def _from(self, values: dict, sites: Any) -> Any:
        named = {key: value for key, value in values.items() if key not in ("kernel", "Z")} | self.options
        if sites is not None:
            named["sites"] = sites
        points = [values["Z"]] if "Z" in values else []
        return self.infer(values["kernel"], *points, self.X, self.y, **named)


def _check_options(infer: Callable, start: dict, options: dict) -> None:
    """Raise ValueError if `infer` cannot be called with the values of `start` and these options."""
    data = [name for name in ("kernel", "Z", "X", "y") if name != "Z" or "Z" in start]
    named = {name: value for name, value in start.items() if name not in data} | options
    try:
        inspect.signature(infer).bind(*data, **named)  # names stand for the data
    except TypeError as reason:
        own = [name for name in inspect.signature(infer).parameters if name not in (*data, "noise", "alpha")]
        name = f"{infer.__module__}.{infer.__qualname__}" if inspect.isfunction(infer) else repr(infer)
        hint = "; power_ep.infer and exact.infer take a likelihood, regression takes none" * ("likelihood" in str(reason))
        raise ValueError(f"infer {name}: {reason}; its options are {', '.join(own)}{hint}") from None


def _scatter(start: dict, learn: tuple, Z: str | ArrayLike, X: Array, rng: np.random.Generator) -> dict:
    """Another start: kernel parameters and noise, if learnt, times e^N(0, 1), the likelihood as it is, new Z unless given."""
    other = dict(start)
    if "kernel" in learn:
        kernel = start["kernel"]
        scattered = {key: value * np.exp(rng.standard_normal(np.shape(value))) for key, value in kernel.parameters.items()}
        other["kernel"] = kernel.with_parameters(scattered)
    if "noise" in learn:
        other["noise"] = start["noise"] * np.exp(rng.standard_normal())
    if "Z" in start and isinstance(Z, str):
        other["Z"] = starting_points(Z, X, len(start["Z"]), rng)
    return other
