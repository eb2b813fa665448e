"""Answers that are numbers or a choice, declared once for `check` in Python and for the boxes of the page.

A declaration says what is right, how precise an answer must be, and which mistakes have a hint of their own. Its
`feedback` judges an answer in Python; its `exported` is what `_static/answers.js` judges by, in the same order:
right, the mistakes as they stand, what is said of every other answer.

    number("gp-2-half", np.sqrt(np.log(2)), digits=3, mistakes=[(np.log(2), "this is r squared.")], otherwise="...")
    numbers("gp-1-one-datum", {"mean": m, "standard deviation": s}, decimals=2, mistakes=[((RIGHT, s**2), "...")], ...)
    choice("start-2-ends", [("EP", "hint for those who choose it"), ("VFE", None)], why="None marks the right one.")
"""

import math
import re
from dataclasses import dataclass

import numpy as np

ANY, RIGHT = None, "right"      # in the pattern of a mistake: every number; the right one of this place
NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?", re.IGNORECASE)
THOUSANDS = re.compile(r"(?<=\d)[ \u00a0\u2009\u202f](?=\d{3}(\D|$))")       # the spaces in 2 160 000
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
INFINITE = re.compile(r"[+-]?(inf(inity)?|∞)", re.IGNORECASE)
MISSING = "a number is missing."
SHORT = 30                      # characters of an unusable answer that a message repeats
COUNTS = ("no", "one", "two", "three", "four", "five", "six")


class Feedback(Exception):
    """Raised inside a checker to end it: the message is what the reader sees after "Not yet:"."""


class NoAnswer(Exception):
    """Raised inside a checker where the reader has not answered yet; the message may say how one sees this."""


@dataclass(frozen=True)
class Within:
    """In the pattern of a mistake: all numbers from `low` to `high`, the ends included."""

    low: float = -math.inf
    high: float = math.inf

    def fits(self, value):
        return self.low <= value <= self.high

    def exported(self):
        return {"low": finite(self.low), "high": finite(self.high)}


@dataclass(frozen=True)
class NotWhole:
    """In the pattern of a mistake: all numbers that are not whole."""

    def fits(self, value):
        return math.isfinite(value) and value != math.floor(value)

    def exported(self):
        return {"whole": False}


@dataclass(frozen=True)
class Near:
    """A number, and all others that agree with it to the precision asked for."""

    centre: float
    tolerance: float

    def fits(self, value):
        return abs(value - self.centre) <= self.tolerance

    def exported(self):
        return {"near": self.centre, "tolerance": self.tolerance}


def near(value, *, decimals=None, digits=None):
    """The numbers that count as this one to so many decimals, or else to so many significant digits."""
    if decimals is not None:
        half = 0.5 * 10.0**-decimals
    elif value == 0:
        half = 1e-6
    else:
        half = 0.5 * 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return Near(centre=float(value), tolerance=1.02 * half)      # rounding is not wrong


@dataclass(frozen=True)
class Numbers:
    """One number or several that are asked for together."""

    name: str
    labels: tuple
    expected: object
    mistakes: tuple
    otherwise: tuple
    decimals: int | None
    digits: int | None

    def values(self):
        """The right numbers. Those that take time are computed here, not when the declaration is read."""
        return as_tuple(computed(self.expected))

    def near(self, value, less=0):
        """The numbers that count as this one, or that would if fewer digits were asked for, by `less`."""
        return near(value, decimals=self.decimals and self.decimals - less, digits=self.digits and self.digits - less)

    def rules(self):
        """(pattern, hint) of each mistake, a pattern being one condition, or None, for each number."""
        right = self.values()
        reverse = [self.near(value) for value in reversed(right)]
        if not all(place.fits(value) for place, value in zip(reverse, right)):
            yield reverse, f"the numbers are right, in the reverse order: {self.labels[0]} comes first."
        for pattern, hint in self.mistakes:
            pattern = as_tuple(computed(pattern))
            if len(pattern) != len(right):
                raise ValueError(f"{self.name}: {pattern} is a pattern of {len(pattern)} numbers, not {len(right)}")
            yield [self.condition(place, value) for place, value in zip(pattern, right)], hint
        asked = self.decimals or self.digits
        if asked > 1 and not any(float(value).is_integer() for value in right):
            which = "digits after the point" if self.decimals else "significant digits"
            yield [self.near(value, less=1) for value in right], f"close: {COUNTS[asked]} {which} must be right."

    def condition(self, place, right):
        """One place of a pattern as a condition, or None where every number will do."""
        if place is ANY or hasattr(place, "fits"):
            return place
        return self.near(right if isinstance(place, str) and place == RIGHT else place)

    def feedback(self, answer):
        """None for a right answer, else what to look at."""
        expected = self.values()
        values = self.read(answer, expected)
        right = [self.near(value).fits(given) for value, given in zip(expected, values)]
        if all(right):
            return None
        for pattern, hint in self.rules():
            if all(place is ANY or place.fits(value) for place, value in zip(pattern, values)):
                return hint
        return self.otherwise[right.index(False)]

    def read(self, answer, expected):
        """The answer as floats; texts are read as the page reads them, in view of the numbers that are expected."""
        given = [answer] if isinstance(answer, str) else list(np.asarray(answer, dtype=object).ravel())
        if len(given) != len(self.labels):
            raise Feedback(f"{count(len(self.labels))} asked for, this is {describe(answer)}.")
        return [read_number(value if isinstance(value, str) else as_text(value), 1000 <= abs(right) < math.inf)
                for value, right in zip(given, expected)]

    def exported(self):
        """What the page needs, ready for JSON."""
        return {"kind": "numbers", "labels": list(self.labels), "otherwise": list(self.otherwise), "missing": MISSING,
                "right": [self.near(value).exported() for value in self.values()],
                "mistakes": [{"pattern": [place and place.exported() for place in pattern], "hint": hint}
                             for pattern, hint in self.rules()]}


@dataclass(frozen=True)
class Choice:
    """One of several options; a wrong one has a hint, the right one has none."""

    name: str
    options: tuple
    why: str
    text: str = ""

    @property
    def right(self):
        """Place of the right option."""
        return [hint for _, hint in self.options].index(None)

    @property
    def letters(self):
        return "abcdefgh"[: len(self.options)]

    def which(self):
        """What is said where no option was chosen."""
        return f"choose one: {', '.join(self.letters[:-1])} or {self.letters[-1]}."

    def feedback(self, answer):
        """None for the right option, named by its letter or its text; else what to look at."""
        (answer,) = answer if isinstance(answer, list | tuple) and len(answer) == 1 else (answer,)
        answer = str(answer).strip().lower()
        letter = answer.strip("(). ")
        places = [i for i, (text, _) in enumerate(self.options) if answer == text.lower() or letter == self.letters[i]]
        return self.options[places[0]][1] if places else self.which()

    def exported(self):
        """What the page needs, ready for JSON."""
        return {"kind": "choice", "options": [text for text, _ in self.options], "right": self.right, "why": self.why,
                "hints": [hint for _, hint in self.options], "which": self.which()}


@dataclass(frozen=True)
class Quiz:
    """A few questions, each a choice."""

    name: str
    questions: tuple

    def exported(self):
        return {"kind": "quiz", "questions": [question.exported() | {"text": question.text}
                                              for question in self.questions]}


def read_number(text, large=False):
    """A number as people write it: 0.25, 0,25, 1/4, 2.5e-1, −3, 60 000, inf. Raises Feedback for anything else.

    A comma before three digits parts thousands if there are more of them, or if a `large` number is expected.
    """
    plain = THOUSANDS.sub("", text.strip().replace("−", "-").replace("–", "-"))
    if GROUPED.fullmatch(plain) and (large or plain.count(",") > 1):
        plain = plain.replace(",", "")
    if not plain:
        raise Feedback(MISSING)
    if INFINITE.fullmatch(plain):
        return -math.inf if plain.startswith("-") else math.inf
    parts = [part.strip() for part in plain.split("/")]
    if len(parts) > 2 or not all(NUMBER.fullmatch(part) for part in parts):
        raise Feedback(f"“{text.strip()[:SHORT]}” is not a number. Write one like 0.25, 1/4 or 2.5e-1.")
    values = [float(part.replace(",", ".")) for part in parts]
    value = values[0] if len(values) == 1 else values[0] / values[1] if values[1] else math.inf
    if not math.isfinite(value):
        raise Feedback(f"“{text.strip()[:SHORT]}” is not a number. Write one like 0.25, 1/4 or 2.5e-1.")
    return value


def as_text(value):
    """A number as text, or feedback that says what it is instead."""
    try:
        return repr(float(value))
    except (TypeError, ValueError):
        raise Feedback(f"numbers are asked for, this is {describe(value)}.") from None


def describe(answer):
    """What kind of thing an answer is, for feedback."""
    if callable(answer):
        return "a function"
    if isinstance(answer, int | float | np.number):
        return "one number"
    shape = np.shape(np.asarray(answer, dtype=object))
    return f"of shape {shape}" if shape else f"of type {type(answer).__name__}"


def count(n):
    return "one number is" if n == 1 else f"{n} numbers are"


def computed(value):
    return value() if callable(value) else value


def as_tuple(value):
    """A declared value as a tuple, whether it is one number or several."""
    if isinstance(value, dict):
        return tuple(value.values())
    return tuple(value) if isinstance(value, list | tuple | np.ndarray) else (value,)


def finite(value):
    """None in the place of an infinity, which JSON does not know."""
    return float(value) if math.isfinite(value) else None
