"""The loop of every learner that takes steps, whether on batches or on all data; Adam, and an adaptive step."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from pepcore.gaussian import Array
from pepcore.results import Record
from pepcore.sites import ImproperCavityError
from pepcore.sweeps import warn

LONGEST = 0.1  # the largest entry of an adaptive step: 10 % of a positive parameter, a tenth of an input's spread
NOTHING = 1e-8  # nats; at the prior all classes are equally likely, whatever the parameters, and the gradient is only rounding
INTERRUPTED = "interrupted"  # how a model's message begins if Ctrl-C ended its learning
MENDED = (LinAlgError, ImproperCavityError)  # errors of a step that went too far; going back mends them


class Interruptible:
    """Context in which Ctrl-C ends the block and nothing else; `interrupted` says afterwards whether it did."""

    interrupted = False

    def __enter__(self) -> "Interruptible":
        return self

    def __exit__(self, kind: type | None, *_: Any) -> bool:
        self.interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        return self.interrupted


def bar(progress: bool, unit: str, items: Iterable | None = None) -> Any:
    """Context manager for a progress bar around `items`; without `progress` it yields the items themselves."""
    if not progress:
        return nullcontext(items)
    from tqdm.auto import tqdm  # imported on demand: it is slow to load in a notebook

    return tqdm(items, unit=unit)


class Adam:
    """Adam for maximisation, with the usual averages over 10 and 1000 steps.

    Parameters
    ----------
    start : (P,)
    rate : float, or a callable from the number of steps taken to the rate of the next
    """

    def __init__(self, start: Array, rate: float | Callable) -> None:
        self.point, self.rate, self.steps, self.warned = start, rate, 0, False
        self.mean, self.square = np.zeros_like(start), np.zeros_like(start)

    def ascend(self, gradient: Array) -> Array:
        """The point after one step; a gradient that is not finite leaves it where it was, and the first is warned of."""
        rate = self.rate(self.steps) if callable(self.rate) else self.rate
        if np.all(np.isfinite(gradient)):
            self.steps += 1
            # written over in place: many pseudo-inputs in many dimensions make these vectors long
            self.mean *= 0.9
            self.mean += 0.1 * gradient
            self.square *= 0.999
            self.square += 0.001 * gradient**2
            move = np.sqrt(self.square)
            move *= 1 / np.sqrt(1 - 0.999**self.steps)
            move += 1e-8
            np.divide(self.mean, move, out=move)
            move *= rate / (1 - 0.9**self.steps)
            self.point = self.point + move
        elif not self.warned:
            warn("a gradient is not finite; its step is left out, and so will be others like it", RuntimeWarning)
            self.warned = True
        return self.point


class Adaptive:
    """Gradient ascent with a rate per coordinate: 2 % more while the derivative keeps its sign, else half.

    The paper does not say where the rates start; here they make the largest entry of the first step `rate`.

    Source: villacampa2017 appendix G.
    """

    def __init__(self, start: Array, rate: float) -> None:
        self.point, self.rate = start, rate
        self.rates: Any = None
        self.sign: Any = None

    def ascend(self, gradient: Array) -> Array:
        """The point after one step; a gradient that is not finite, or nothing but rounding, leaves it where it was."""
        largest = np.abs(gradient).max()
        if not (np.isfinite(largest) and largest > NOTHING):
            return self.point
        sign = np.sign(gradient)
        if self.rates is None:
            self.rates = self.rate / np.maximum(np.abs(gradient), 1e-3 * largest)
        else:
            self.rates = self.rates * np.where(sign == self.sign, 1.02, 0.5)
        self.sign = sign
        # a gradient may grow a thousandfold from one iteration to the next
        self.point = self.point + np.clip(self.rates * gradient, -LONGEST, LONGEST)
        return self.point


class Learner:
    """Values that climb along gradients. Subclasses have the methods that `run` calls.

    Attributes
    ----------
    values, before : dict, the values now, and those before the last step, which have been seen to work
    history : list of Record, of the steps that estimated the evidence
    steps : int, how many steps have been taken
    climber : Adam, or what steps as it does; None if there is nothing to learn
    """

    def __init__(self, values: dict, coordinates: Any, rate: Any, climber: Callable = Adam) -> None:
        self.values, self.before, self.coordinates, self.steps = values, values, coordinates, 0
        self.history: list = []
        self.climber: Any = climber(coordinates.pack(values), rate) if coordinates.learn else None

    def climb(self, gradient: dict, weight: float = 1.0) -> None:
        """One step of the values along `weight` times the gradient, in natural units."""
        point = self.climber.ascend(self.coordinates.pack_gradient(self.values, gradient, weight))
        self.before, self.values = self.values, self.coordinates.unpack(point, self.values)


def run(
    learner: Any, steps: Iterable, message: str, callback: Callable | None = None, *,
    count: str = "step", mended: tuple = MENDED,
) -> Any:
    """Take one step after the other; Ctrl-C ends it and keeps what has been learnt.

    Parameters
    ----------
    learner : Learner with `step(item)`, which returns what its record holds besides the number, `result()`, which makes the
        result of that moment for the callback, and `finish(message)`, which makes what this function returns
    steps : iterable of what `step` is given, such as batches
    message : str, the model's message if all steps were taken
    callback : callable (record) or None, called after each step; a record whose "log_evidence" the step gave enters the
        history, the others have NaN
    count : str, the name of a step's number in the records
    mended : tuple of errors after which the last step is taken back, and learning ends
    """
    with Interruptible() as watch:
        try:
            for item in steps:
                said = learner.step(item)
                learner.steps += 1
                record = Record({count: learner.steps, "log_evidence": np.nan} | said)
                if "log_evidence" in said:
                    learner.history.append(record)
                record.show(callback, learner.result, learner.values)
        except mended as problem:
            message = f"stopped after {learner.steps} steps, the last of which is taken back: {problem}"
            learner.values = learner.before
    if watch.interrupted:
        message = f"{INTERRUPTED}; what was learnt so far is kept"
    try:
        return learner.finish(message)
    except mended as problem:
        learner.values = learner.before
        return learner.finish(f"{message}; the last step is taken back: {problem}")


def remedied(attempt: Callable, *remedies: Callable) -> Any:
    """Call `attempt`; if it finds an improper cavity, call the first remedy and try again, then the next one."""
    for remedy in remedies:
        try:
            return attempt()
        except ImproperCavityError:
            remedy()
    return attempt()
