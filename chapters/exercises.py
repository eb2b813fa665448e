"""`check("gp-evidence", answer)`: is the answer to an exercise right, and if not, what went wrong?

A chapter's checkers stand in `checks/<prefix>.py`, where the prefix is the part of the name before the first "-".
Where the answer is a number or a choice, they are declarations, which serve the page as well (`checks/declared.py`).
Where it is a function or an array, a checker returns None when it is right, else one sentence of feedback:

    from exercises import as_array, called, checker, close

    @checker("gp-chain", never=["1 / (noise + h)"])      # what no message may say: the solution
    def chain(answer):
        terms = as_array(called(answer, K, y), (7,))     # ends the check with a message when it is no such array
        if close(terms, -expected):
            return "the sign is turned round."
        if not close(terms, expected):
            return "these are not the terms. Does the term with log 2 pi stand in each?"

`quiz("gp-quiz")` asks the questions of a chapter; `quiz("gp-quiz", "bca")` answers them.
"""

import copy
import difflib
import importlib
import re
import textwrap
from functools import partial
from html import escape
from pathlib import Path

import numpy as np
from checks.declared import ANY, RIGHT, Choice, Feedback, NoAnswer, NotWhole, Numbers, Quiz, Within, describe, near
from IPython.display import display

__all__ = ["ANY", "RIGHT", "Feedback", "NotWhole", "Within", "as_array", "as_function", "as_kernel", "as_number", "as_things",
           "called", "check", "checker", "choice", "close", "feedback", "grade", "number", "numbers", "question", "quiz",
           "quiz_of", "rounded"]

CHECKS = Path(__file__).with_name("checks")
WHAT_TO_DO = "Put your answer in place of `...` and run this cell."
LONG = 200          # characters of an exception that a message repeats
_checkers, _declared, _never = {}, {}, {}
_returned = []      # what the reader's functions gave to the checker that runs now


# What a chapter's module of checks declares.

def checker(name, never=()):
    """Register the decorated function as the checker of `name`; `never` lists what none of its messages may say."""

    def register(function):
        if name in _checkers:
            raise ValueError(f"two checkers are called {name!r}: rename one")
        _checkers[name], _never[name] = function, tuple(never)
        return function

    return register


def numbers(name, expected, *, labels=None, mistakes=(), otherwise, decimals=None, digits=None, never=()):
    """Declare an exercise whose answer is a few numbers.

    Parameters
    ----------
    name : str                  the exercise's name
    expected : dict of label -> right number, or a function that computes the numbers where that takes time
    labels : list of str        the labels, where `expected` is a function
    mistakes : list of (pattern, hint); a pattern holds a wrong number, ANY, RIGHT, Within() or NotWhole() for each number
    otherwise : str or list     what is said of every other answer, for each number that may be the first wrong one
    decimals, digits : int      how many decimals, or else significant digits, an answer must have
    never : list of str         what no message may say
    """
    labels = tuple(labels or expected)
    otherwise = (otherwise,) * len(labels) if isinstance(otherwise, str) else tuple(otherwise)
    declared = Numbers(name, labels, expected, tuple(mistakes), otherwise, decimals, digits)
    _declared[name] = declared
    checker(name, never)(declared.feedback)


def number(name, expected, **options):
    """Declare an exercise whose answer is one number: `numbers` with one label."""
    numbers(name, expected if callable(expected) else (expected,), labels=["answer"], **options)


def choice(name, options, why):
    """Declare an exercise whose answer is one of several options, (text, hint) each; for the right one the hint is None."""
    _declared[name] = Choice(name, tuple(options), why)
    checker(name)(_declared[name].feedback)


def question(text, options, why):
    """One question of a quiz, with options as those of `choice`."""
    return partial(Choice, options=tuple(options), why=why, text=text)


def quiz_of(name, *questions):
    """Declare a quiz of some questions, for `quiz(name)`."""
    _declared[name] = Quiz(name, tuple(made(f"{name}-{i}") for i, made in enumerate(questions, start=1)))


# What a chapter's cells call.

def check(name, answer=...):
    """Say whether `answer` solves the exercise `name`.

    Parameters
    ----------
    name : str                  the exercise's name as the chapter gives it, e.g. "gp-evidence"
    answer : number, array, function or whatever the exercise asks for

    Returns
    -------
    bool, after saying "Correct." or "Not yet:" and what to look at, or, where there is no answer yet, what to do

    Raises
    ------
    ValueError when there is no such exercise; the message lists names that look like it.
    """
    try:
        said = feedback(name, answer)
    except NoAnswer as nothing:
        display(Invitation(name, str(nothing)))
        return False
    why = getattr(_declared.get(name), "why", "")
    print(textwrap.fill(f"Correct. ({name}) {why}".strip() if said is None else f"Not yet: {said}", 88))
    return said is None


def feedback(name, answer):
    """None when the answer is right, else a sentence; raises NoAnswer where nothing was answered yet."""
    judge = checker_of(name)
    if answer is None or answer is Ellipsis:
        raise NoAnswer
    _returned.clear()
    try:
        return judge(answer)
    except Feedback as message:
        return str(message)
    except NoAnswer:
        raise
    except Exception as error:       # raised by the reader's own function, or by an answer of quite another kind
        return f"the answer could not be used ({type(error).__name__}: {textwrap.shorten(str(error), LONG)})."


def grade(name, answer=...):
    """Raise AssertionError with the hint unless `answer` is right: what an assignment's hidden test calls."""
    try:
        said = feedback(name, answer)
    except NoAnswer as nothing:
        said = f"nothing was answered. {nothing}".strip()
    if said is not None:
        raise AssertionError(f"{name}: {said}")


def quiz(name, answers=None):
    """Ask the questions of a quiz, or say of each answer, a text such as "bca", whether it is right."""
    _load(name)
    if not isinstance(_declared.get(name), Quiz):
        quizzes = ", ".join(known for known, declared in _declared.items() if isinstance(declared, Quiz))
        raise ValueError(f"there is no quiz called {name!r}; there is {quizzes or 'none'}.")
    questions = _declared[name].questions
    if answers is None:
        display(Questions(_declared[name]))
        return
    if not isinstance(answers, str | list | tuple):
        raise ValueError(f'answers are letters, one for each question, such as "bca"; got {answers!r}.')
    letters = re.findall("[a-z-]", "".join(one if isinstance(one, str) else "-" for one in answers).lower())
    if len(letters) > len(questions):
        raise ValueError(f"{name} has {len(questions)} questions, and {len(letters)} answers were given: {answers!r}.")
    letters += "-" * (len(questions) - len(letters))
    for place, (asked, letter) in enumerate(zip(questions, letters, strict=True), start=1):
        said = asked.feedback(letter)
        print(textwrap.fill(f"{place}. " + (f"Correct. {asked.why}" if said is None else f"Not yet: {said}"), 88))


class Invitation:
    """What `check` shows where nothing was answered yet: what to do. In the page an answer box takes its place."""

    def __init__(self, name, found):
        self.name, self.found = name, f"{WHAT_TO_DO} {found}".strip()

    def __repr__(self):
        return self.found

    def _repr_html_(self):
        said = re.sub("`([^`]+)`", r"<code>\1</code>", escape(self.found))
        return f'<div class="answer-here" data-answer="{self.name}">{said}</div>'


class Questions:
    """What `quiz` shows: its questions as text. In the page they can be answered."""

    def __init__(self, quiz):
        self.quiz = quiz
        example = "abcabc"[: len(quiz.questions)]
        self.how = f'Answer with one letter for each question: quiz("{quiz.name}", "{example}")'

    def __repr__(self):
        lines = []
        for place, asked in enumerate(self.quiz.questions, start=1):
            lines.append(textwrap.fill(f"{place}. {asked.text}", 88))
            lines += [textwrap.fill(f"   {letter}) {text}", 88, subsequent_indent="      ")
                      for letter, (text, _) in zip(asked.letters, asked.options)]
        return "\n".join([*lines, self.how])

    def _repr_html_(self):
        asked = ""
        for one in self.quiz.questions:
            options = "".join(f"<li>{escape(text)}</li>" for text, _ in one.options)
            asked += f"<li>{escape(one.text)}<ol type='a'>{options}</ol></li>"
        inside = f"<ol>{asked}</ol><p>{escape(self.how)}</p>"
        return f'<div class="answer-here" data-answer="{self.quiz.name}">{inside}</div>'


# What checkers use.

def called(function, *arguments):
    """What the reader's function returns for copies of these arguments; there is no answer where it is nothing."""
    result = as_function(function)(*(copy.copy(value) if isinstance(value, np.ndarray | list) else value for value in arguments))
    if result is None or result is Ellipsis:
        if _returned:
            raise Feedback("the function returns nothing in one of the cases that are tried: does every path end with a return?")
        raise NoAnswer("(The function returns nothing yet.)")
    _returned.append(result)
    return result


def as_number(answer):
    """The answer as a float, or feedback that says what it is instead."""
    value = as_array(answer)
    if value.size != 1:
        raise Feedback(f"one number is asked for, this is an array of shape {value.shape}.")
    return float(value.reshape(()))


def as_array(answer, shape=None):
    """The answer as a float array with no NaN in it (and of this shape), or feedback that says what it is instead."""
    if answer is None or answer is Ellipsis:
        raise Feedback("a part of the answer is still missing.")
    try:
        if np.iscomplexobj(answer):
            if np.any(np.imag(answer)):
                raise Feedback("real numbers are asked for, these are complex.")
            answer = np.real(answer)
        value = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        what = "an array of text" if getattr(answer, "dtype", np.dtype(float)).kind == "U" else describe(answer)
        raise Feedback(f"numbers are asked for, this is {what}.") from None
    if shape is not None and value.shape != tuple(shape):
        raise Feedback(f"an array of shape {tuple(shape)} is asked for, this one has shape {value.shape}.")
    if np.isnan(value).any():
        raise Feedback(f"{np.isnan(value).sum()} of {value.size} numbers are NaN.")
    return value


def as_things(answer, length, what):
    """The answer as a tuple of this length, or feedback that says what was asked for."""
    if isinstance(answer, np.ndarray) and answer.ndim and len(answer) == length:
        return tuple(answer)
    if not isinstance(answer, tuple | list) or len(answer) != length:
        raise Feedback(f"{what} are asked for, as a tuple of {length}.")
    return tuple(answer)


def as_function(answer):
    """The answer as a function that can be called, or feedback that says what it is instead."""
    if not callable(answer):
        raise Feedback(f"a function is asked for (its name, without brackets), this is {describe(answer)}.")
    return answer


def as_kernel(answer):
    """The first part of an answer as a kernel, or feedback that says what it is instead."""
    if isinstance(answer, type):
        raise Feedback(f"first in the tuple comes a kernel; this is a class of kernels. Make one: {answer.__name__}(1.0, 2.0).")
    if not callable(answer) or not hasattr(answer, "diagonal"):
        raise Feedback("first in the tuple comes the kernel, one of pepcore's.")
    return answer


def close(answer, expected, digits=6, rtol=None, atol=1e-12):
    """Whether numbers or arrays have the same shape and agree to so many digits of the largest expected one, or to `rtol`."""
    rtol = 5.1 * 10.0**-digits if rtol is None else rtol        # rounding is not wrong
    answer, expected = np.asarray(answer, dtype=float), np.asarray(expected, dtype=float)
    if answer.shape != expected.shape:
        return False
    scale = np.max(np.abs(expected), initial=0.0)
    return bool(np.all(np.abs(answer - expected) <= atol + rtol * scale))


def rounded(answer, expected, digits):
    """Whether each number is the expected one, exact or rounded to so many significant digits."""
    answer, expected = np.asarray(answer, dtype=float), np.asarray(expected, dtype=float)
    if answer.shape != expected.shape:
        return False
    return all(near(value, digits=digits).fits(given) for value, given in zip(expected.ravel(), answer.ravel()))


# What tests and tools ask for.

def names():
    """All exercises that have a checker, sorted."""
    _load_all()
    return sorted(_checkers)


def declarations():
    """Name -> declaration of the exercises that can be answered in the page, and of the quizzes."""
    _load_all()
    return dict(_declared)


def never(name):
    """What no message about this exercise may say."""
    checker_of(name)
    return _never[name]


def _load_all():
    for path in CHECKS.glob("*.py"):
        _load(path.stem)


def _load(name):
    """Import the chapter's checkers, if it has any; importing registers them."""
    prefix = str(name).split("-")[0]
    if prefix.isidentifier() and prefix != "__init__" and (CHECKS / f"{prefix}.py").exists():
        importlib.import_module(f"checks.{prefix}")


def checker_of(name):
    """The checker of this exercise or question of a quiz ("gp-quiz-1"), or an error with the names that look like it."""
    _load(name)
    if isinstance(_declared.get(name), Quiz):
        raise ValueError(f'{name} is a quiz: answer it with quiz("{name}", "abc"), one letter for each question.')
    asked = getattr(_declared.get(str(name).rpartition("-")[0]), "questions", ())
    if found := [question for question in asked if question.name == name]:
        return found[0].feedback
    if name not in _checkers:
        similar = difflib.get_close_matches(str(name), names(), n=5, cutoff=0.4)
        raise ValueError(f"there is no exercise called {name!r}; did you mean {' or '.join(similar or names())}?")
    return _checkers[name]
