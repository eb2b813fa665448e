"""`check("gp-evidence", answer)`: is the answer to an exercise right, and if not, what went wrong?

A chapter's checkers stand in `checks/<prefix>.py`, where the prefix is the part of the name before the first "-".
A checker looks at an answer and returns None when it is right, or one sentence of feedback when it is not:

    from exercises import as_number, checker, close

    @checker("gp-evidence")
    def evidence(answer):
        answer = as_number(answer)                       # ends the check with a message when it is no number
        if close(answer, -expected):
            return "The sign is turned round: that is the energy, minus the log evidence."
        if not close(answer, expected):
            return "That is not the log evidence. Did you keep the term with log 2 pi?"
"""

import difflib
import importlib
import textwrap
from pathlib import Path

import numpy as np

CHECKS = Path(__file__).with_name("checks")
_checkers = {}


class Feedback(Exception):
    """Raised inside a checker to end it: the message is what the reader sees after "Not yet:"."""


def checker(name):
    """Register the decorated function as the checker of the exercise `name`."""

    def register(function):
        if name in _checkers and _checkers[name].__module__ != function.__module__:
            raise ValueError(f"two checkers are called {name!r}: rename one")
        _checkers[name] = function
        return function

    return register


def check(name, answer):
    """Say whether `answer` solves the exercise `name`.

    Parameters
    ----------
    name : str                  the exercise's name as the chapter gives it, e.g. "gp-evidence"
    answer : number, array, function or whatever the exercise asks for

    Returns
    -------
    bool, after printing "Correct." or "Not yet:" and what to look at

    Raises
    ------
    ValueError when there is no such exercise; the message lists names that look like it.
    """
    feedback = _feedback(_find(name), answer)
    print(f"Correct. ({name})" if feedback is None else textwrap.fill(f"Not yet: {feedback}", 88))
    return feedback is None


def as_number(answer):
    """The answer as a float, or feedback that says what it is instead."""
    value = as_array(answer)
    if value.size != 1:
        raise Feedback(f"one number is asked for, this is an array of shape {value.shape}.")
    return float(value.reshape(()))


def as_array(answer, shape=None):
    """The answer as a float array with no NaN in it (and of this shape), or feedback that says what it is instead."""
    try:
        value = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        raise Feedback(f"numbers are asked for, this is {_describe(answer)}.") from None
    if shape is not None and value.shape != tuple(shape):
        raise Feedback(f"an array of shape {tuple(shape)} is asked for, this one has shape {value.shape}.")
    if np.isnan(value).any():
        raise Feedback(f"{np.isnan(value).sum()} of {value.size} numbers are NaN.")
    return value


def as_function(answer):
    """The answer as a function that can be called, or feedback that says what it is instead."""
    if not callable(answer):
        raise Feedback(f"a function is asked for (its name, without brackets), this is {_describe(answer)}.")
    return answer


def close(answer, expected, rtol=1e-6, atol=1e-12):
    """Whether numbers or arrays have the same shape and agree to `rtol` of the largest expected one."""
    answer, expected = np.asarray(answer, dtype=float), np.asarray(expected, dtype=float)
    if answer.shape != expected.shape:
        return False
    scale = np.max(np.abs(expected), initial=0.0)
    return bool(np.all(np.abs(answer - expected) <= atol + rtol * scale))


def names():
    """All exercises that have a checker, sorted."""
    for path in CHECKS.glob("*.py"):
        _load(path.stem)
    return sorted(_checkers)


def _load(prefix):
    """Import the chapter's checkers, if it has any; importing registers them."""
    if prefix.isidentifier() and prefix != "__init__" and (CHECKS / f"{prefix}.py").exists():
        importlib.import_module(f"checks.{prefix}")


def _find(name):
    """The checker of this name, or an error with the names that look like it."""
    _load(str(name).split("-")[0])
    if name not in _checkers:
        similar = difflib.get_close_matches(str(name), names(), n=5, cutoff=0.4)
        raise ValueError(f"there is no exercise called {name!r}; did you mean {' or '.join(similar or names())}?")
    return _checkers[name]


def _feedback(function, answer):
    """None when the checker accepts the answer, else a sentence; an answer that cannot even be used gives one too."""
    if answer is None or answer is Ellipsis:
        return "there is no answer yet."
    try:
        return function(answer)
    except Feedback as feedback:
        return str(feedback)
    except Exception as error:       # raised by the reader's own function, or by an answer of quite another kind
        return f"the answer could not be used ({type(error).__name__}: {error})."


def _describe(answer):
    """What kind of thing an answer is, for feedback."""
    return "a function" if callable(answer) else f"of type {type(answer).__name__}"
