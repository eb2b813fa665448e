"""Learning hyper-parameters and pseudo-inputs by maximising the evidence with L-BFGS."""

import inspect
import warnings
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError
from threadpoolctl import threadpool_limits

from pepcore import power_ep
from pepcore.kernels import SquaredExponential
from pepcore.validation import check_inputs, check_positive, check_targets

LOG_RANGE = np.log(1e9)  # positive parameters stay within a factor 1e9 of where they start
KMEANS_ROWS = 20_000  # k-means only has to spread Z over the data, for which a sample is enough


class _Interrupted(Exception):
    """Raised inside the objective to leave the optimiser; the best point so far is kept."""


@dataclass(frozen=True, eq=False)
class Model:
    """What `fit` returns.

    Attributes
    ----------
    kernel, Z (M, D) or None, noise (float or None), alpha : what was learnt, and the power it was learnt with
    fit : the inference result at those values, with `log_evidence`, `posterior`, ...
    evaluations : int, evaluations of evidence and gradient, over all restarts
    converged : bool, True when the best start met the tolerance within its evaluations
    message : str, why the best start ended
    history : (evaluations,) log evidence of every evaluation, in order, in nats
    """

    kernel: object
    Z: np.ndarray | None
    noise: float | None
    alpha: float | np.ndarray | None
    fit: object
    evaluations: int
    converged: bool
    message: str
    history: np.ndarray = field(repr=False)

    def predict(self, Xs, **options):
        """As `fit.predict`: mean (S,) and variance (S,) at Xs (S, D)."""
        return self.fit.predict(Xs, **options)


def fit(
    kernel,
    X,
    y,
    M=50,
    alpha=0.5,
    noise=None,
    Z="kmeans",
    method=power_ep.regression,
    optimise=("kernel", "noise", "Z"),
    restarts=1,
    max_evaluations=500,
    tolerance=1e-9,
    seed=0,
    progress=False,
    **options,
):
    """Maximise the log evidence over kernel parameters, noise and pseudo-inputs.

    Positive parameters are optimised as logarithms, Z in units of each input's spread, so that the units of the data
    do not matter. BLAS runs on one thread meanwhile: these problems are small, and more threads are slower.

    Parameters
    ----------
    kernel : kernel, or None for a squared exponential with one lengthscale per input that starts at the data's scales
    X : (N, D)
    y : (N,)
    M : int
        Number of pseudo-inputs, unless `Z` is an array.
    alpha : float or array, handed to `method`
    noise : float, or None to start at a tenth of the variance of y
    Z : "kmeans", "subset" (random rows), or an (M, D) array to start from
    method : callable like `power_ep.regression`, `power_ep.infer` or `exact.regression`
        It is given those of Z, noise and alpha that its signature names.
    optimise : which of "kernel", "noise", "Z" to learn; what is left out stays at its start
    restarts : int
        Number of starts, the first as given, the others with scattered parameters and new Z; the best is kept.
    max_evaluations : int, for each start
    tolerance : float, relative change of the evidence at which a start has converged
    seed : int, for the choice of Z and the restarts
    progress : bool
        Show a bar. Ctrl-C ends the optimisation and returns the best so far in any case.
    **options : handed to `method`, for example `blocks`, `jitter` or, for `power_ep.infer`, `likelihood`

    Returns
    -------
    Model

    Raises
    ------
    ValueError
        For wrong shapes, NaN, names in `optimise` that do not exist, or more pseudo-inputs than distinct rows of X.
    """
    X = check_inputs(X, "X")
    y = check_targets(y, len(X))
    accepted = inspect.signature(method).parameters
    unknown = set(optimise) - {"kernel", "noise", "Z"}
    if unknown:
        raise ValueError(f'optimise names "kernel", "noise" and "Z"; got {sorted(unknown)} as well.')
    rng = np.random.default_rng(seed)
    spread = _spread(X)
    kernel = kernel if kernel is not None else default_kernel(X, y)
    noise = check_positive(noise, "noise") if noise is not None else 0.1 * _variance(y)
    if "alpha" in accepted:
        options = {**options, "alpha": alpha}

    start = {"kernel": kernel}
    if "noise" in accepted:
        start["noise"] = noise
    if "Z" in accepted:
        start["Z"] = _start_pseudo_inputs(Z, X, M, spread, rng)
    learn = [name for name in start if name in optimise]

    def evaluate(values):
        leading = [values["kernel"]] + ([values["Z"]] if "Z" in values else [])
        keywords = {**options, "noise": values["noise"]} if "noise" in values else options
        return method(*leading, X, y, **keywords)

    search = _Search(evaluate, learn, spread, max_evaluations, tolerance, progress)
    with threadpool_limits(1, user_api="blas"), search:
        for attempt in range(restarts):
            if not search.interrupted:
                search.run(start if attempt == 0 else _scatter(start, Z, X, spread, rng))
        values = search.best_values
        last = evaluate(values)
    return Model(
        values["kernel"],
        values.get("Z"),
        values.get("noise"),
        options.get("alpha"),
        last,
        len(search.history),
        search.converged,
        search.message,
        np.array(search.history),
    )


def default_kernel(X, y):
    """Squared exponential with variance var(y) and lengthscales √D times the spread of each input."""
    spread = _spread(X)
    return SquaredExponential(_variance(y), spread * np.sqrt(X.shape[1]))


def choose_pseudo_inputs(X, M, how="kmeans", seed=0):
    """M starting pseudo-inputs (M, D) for X (N, D): k-means centres, or a random subset of distinct rows.

    Raises
    ------
    ValueError
        If X has fewer than M distinct rows, or `how` is neither "kmeans" nor "subset".
    """
    rng = np.random.default_rng(seed)
    distinct = np.unique(X, axis=0)
    if len(distinct) < M:
        raise ValueError(
            f"M = {M} pseudo-inputs were asked for, but X has {len(distinct)} distinct rows; give no more than that, "
            "or your own array Z."
        )
    subset = distinct[rng.permutation(len(distinct))[:M]]
    if how == "subset":
        return subset
    if how != "kmeans":
        raise ValueError(f'Z must be "kmeans", "subset" or an (M, D) array; got {how!r}.')
    from scipy.cluster.vq import kmeans2  # imported on demand: it would slow down `import pepcore`

    spread = _spread(X)
    sample = X if len(X) <= KMEANS_ROWS else X[rng.choice(len(X), KMEANS_ROWS, replace=False)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an emptied cluster keeps its last centre, which is as good a start
        centres, _ = kmeans2(sample / spread, subset / spread, iter=10, minit="matrix")
    return centres * spread


def _start_pseudo_inputs(Z, X, M, spread, rng):
    if isinstance(Z, str):
        return choose_pseudo_inputs(X, M, Z, seed=rng)
    return check_inputs(Z, "Z", columns=X.shape[1]).copy()


def _scatter(start, Z, X, spread, rng):
    """Another start: every positive parameter times e^N(0, 1), new pseudo-inputs unless they were given."""
    kernel = start["kernel"]
    scattered = {key: value * np.exp(rng.standard_normal(np.shape(value))) for key, value in kernel.parameters.items()}
    other = {**start, "kernel": kernel.with_parameters(scattered)}
    if "noise" in start:
        other["noise"] = start["noise"] * np.exp(rng.standard_normal())
    if "Z" in start and isinstance(Z, str):
        other["Z"] = choose_pseudo_inputs(X, len(start["Z"]), Z, seed=rng)
    return other


def _spread(X):
    """Standard deviation of each input, 1 for a constant one (where rounding can leave a deviation of 1e-17)."""
    return np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1.0)


def _variance(y):
    return float(y.var()) if np.ptp(y) > 0 else 1.0


class _Search:
    """L-BFGS from one or more starts; remembers the best point, so that an interrupt or a failure loses nothing."""

    def __init__(self, evaluate, learn, spread, max_evaluations, tolerance, progress):
        self.evaluate, self.learn, self.spread = evaluate, learn, spread
        self.max_evaluations, self.tolerance, self.progress, self.bar = max_evaluations, tolerance, progress, None
        self.history, self.best, self.best_values = [], -np.inf, None
        self.converged, self.message, self.interrupted = False, "", False

    def __enter__(self):
        if self.progress:
            from tqdm.auto import tqdm  # imported on demand: it is slow to load in a notebook

            self.bar = tqdm(unit=" evaluations")
        return self

    def __exit__(self, *_):
        if self.bar is not None:
            self.bar.close()

    def run(self, start):
        """One start; updates `best_values`, `converged` and `message` when it ends above what was found before."""
        from scipy.optimize import minimize  # imported on demand: it would slow down `import pepcore`

        before = self.best
        self.current = start
        point = self._pack(start)
        bounds = [(p - LOG_RANGE, p + LOG_RANGE) for p in point]
        for i in range(self._size_of_Z(start)):
            bounds[len(point) - 1 - i] = (None, None)
        limits = {"maxfun": self.max_evaluations, "maxiter": self.max_evaluations, "ftol": self.tolerance, "gtol": 1e-6}
        try:
            result = minimize(self._objective, point, jac=True, method="L-BFGS-B", bounds=bounds, options=limits)
            converged, message = result.success, str(result.message)
        except _Interrupted:
            self.interrupted, converged, message = True, False, "interrupted; the best point so far is kept"
        if self.best > before:
            self.converged, self.message = bool(converged), message
        if self.best_values is None and self.interrupted:
            raise KeyboardInterrupt
        if self.best_values is None:
            raise LinAlgError(
                "the evidence could not be evaluated at the start; look for extreme values in the starting kernel, "
                "noise or Z, or standardise the data."
            )

    def _objective(self, point):
        values = self._unpack(point)
        try:
            result = self.evaluate(values)
            value, gradient = result.log_evidence, self._pack_gradient(values, result.gradient)
        except KeyboardInterrupt:
            raise _Interrupted from None
        except LinAlgError:
            value = np.nan
        self.history.append(value)
        if self.bar is not None:
            self.bar.update()
            self.bar.set_postfix(log_evidence=f"{max(value, self.best):.2f}")
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            return 1e30, np.zeros_like(point)  # a wall: the line search steps back
        if value > self.best:
            self.best, self.best_values = value, values
        return -value, -gradient

    def _pack(self, values):
        parts = []
        if "kernel" in self.learn:
            parts += [np.log(np.ravel(value)) for value in values["kernel"].parameters.values()]
        if "noise" in self.learn:
            parts.append([np.log(values["noise"])])
        if "Z" in self.learn:
            parts.append((values["Z"] / self.spread).ravel())
        return np.concatenate(parts)

    def _unpack(self, point):
        values, position = dict(self.current), 0
        if "kernel" in self.learn:
            parameters = {}
            for key, old in values["kernel"].parameters.items():
                size = np.size(old)
                new = np.exp(point[position : position + size])
                parameters[key] = new if np.ndim(old) else float(new[0])
                position += size
            values["kernel"] = values["kernel"].with_parameters(parameters)
        if "noise" in self.learn:
            values["noise"] = float(np.exp(point[position]))
            position += 1
        if "Z" in self.learn:
            values["Z"] = point[position:].reshape(values["Z"].shape) * self.spread
        return values

    def _pack_gradient(self, values, gradient):
        """The chain rule to the coordinates of `_pack`: d/d log p = p d/dp, d/d(Z/spread) = spread d/dZ."""
        parts = []
        if "kernel" in self.learn:
            parts += [np.ravel(gradient[key] * value) for key, value in values["kernel"].parameters.items()]
        if "noise" in self.learn:
            parts.append([gradient["noise"] * values["noise"]])
        if "Z" in self.learn:
            parts.append((gradient["Z"] * self.spread).ravel())
        return np.concatenate(parts)

    def _size_of_Z(self, values):
        return values["Z"].size if "Z" in self.learn else 0
