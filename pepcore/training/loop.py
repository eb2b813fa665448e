"""The loop of every learner that takes steps, whether on batches or on all data."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

from scipy.linalg import LinAlgError

from pepcore.results import Record
from pepcore.sites import ImproperCavityError
from pepcore.training.adam import Adam

MENDED = (LinAlgError, ImproperCavityError)  # what a step that went too far may cause, and going back mends


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
    learner : Learner with `step(item)`, which returns what its record says beside the number, `result()`, which makes the
        result of that moment for the callback, and `finish(message)`, which makes what this function returns
    steps : iterable of what `step` is given, such as batches
    message : str, what the message says if all steps were taken
    callback : callable (record) or None, called after each step; a record with "log_evidence" enters the history
    count : str, the name of a step's number in the records
    mended : tuple of errors after which the last step is taken back, and learning ends
    """
    with Interruptible() as watch:
        try:
            for item in steps:
                said = learner.step(item)
                learner.steps += 1
                record = Record({count: learner.steps} | said)
                if "log_evidence" in said:
                    learner.history.append(record)
                record.show(callback, learner.result, learner.values)
        except mended as problem:
            message = f"stopped after {learner.steps} steps, the last of which is taken back: {problem}"
            learner.values = learner.before
    if watch.interrupted:
        message = "interrupted; what was learnt so far is kept"
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
