"""The checkers of chapter "Which α should I use? Classification": right answers pass, usual mistakes are named."""

import numpy as np
import pytest
from checks import wc  # noqa: F401 - registers the checkers
from exercises import check
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtr, ndtri


def share(first, second):
    untied = first != second
    return 100 * np.mean((first < second)[untied]) if untied.any() else np.nan


def boast(y, p):
    return np.maximum(p, 1 - p).mean() - np.mean((p > 0.5) == (y > 0))


def amplitude(y, mean, variance, with_variance=1.0):
    def loss(log_c):
        c = np.exp(log_c)
        return -log_ndtr(y * c * mean / np.sqrt(1 + with_variance * c**2 * variance)).mean()

    return np.exp(minimize_scalar(loss, bounds=(-6, 6), method="bounded", options={"xatol": 1e-7}).x)


def unequal_weights(p):
    return np.repeat([1.05, 0.95], 4) @ p / 8


def geometric(p):
    yes, no = np.exp(np.log(p).mean(axis=0)), np.exp(np.log1p(-p).mean(axis=0))
    return yes / (yes + no)


RIGHT = [
    ("wc-1-resolution", (0.05, 0.0671)),
    ("wc-2-share", share),
    ("wc-3-splits", (0.468, 0.840, 0.653)),
    ("wc-3-splits", (0.47, 0.84, 0.65)),
    ("wc-4-boast", boast),
    ("wc-5-amplitude", amplitude),
    ("wc-6-mix", lambda p: p.mean(axis=0)),
    ("wc-6-mix", geometric),
    ("wc-6-mix", lambda p: ndtr(ndtri(p).mean(axis=0))),
]
WRONG = [
    ("wc-1-resolution", (5.0, 6.7), "fractions"),
    ("wc-1-resolution", (0.1, 0.067), "one row more"),
    ("wc-1-resolution", (0.05, 0.0045), "take the root"),
    ("wc-1-resolution", (0.05, 0.3), "single row"),
    ("wc-1-resolution", (0.05, 0.02), "binomial"),
    ("wc-1-resolution", 0.05, "shape"),
    ("wc-2-share", lambda a, b: share(a, b) / 100, "per cent"),
    ("wc-2-share", lambda a, b: 100 * np.mean(a < b), "denominator"),
    ("wc-2-share", lambda a, b: 100 * np.mean((a < b) + 0.5 * (a == b)), "count half"),
    ("wc-2-share", lambda a, b: 100 * np.mean(a <= b), "no win"),
    ("wc-2-share", lambda a, b: share(b, a), "smaller one wins"),
    ("wc-2-share", lambda a, b: 42.0, "is not 80"),
    ("wc-2-share", lambda a, b: share(a, b) if np.any(a != b) else 50.0, "NaN"),
    ("wc-2-share", lambda a, b: None, "returns nothing"),
    ("wc-3-splits", (0.438, 0.84, 0.653), "19 degrees"),
    ("wc-3-splits", (2.093, 0.84, 0.653), "over √20"),
    ("wc-3-splits", (0.44, 0.84, 0.65), "19 degrees"),
    ("wc-3-splits", (0.468, 0.8106, 0.653), "0.1/0.9"),
    ("wc-3-splits", (0.47, 0.81, 0.65), "0.1/0.9"),
    ("wc-3-splits", (0.47, 0.84, 0.70), "normal"),
    ("wc-3-splits", (0.468, 0.468, 0.653), "under the root"),
    ("wc-3-splits", (0.468, 0.840, 0.0), "stays"),
    ("wc-3-splits", (0.468, 0.840, 0.2), "normal"),
    ("wc-4-boast", lambda y, p: -boast(y, p), "sign"),
    ("wc-4-boast", lambda y, p: 100 * boast(y, p), "per cent"),
    ("wc-4-boast", lambda y, p: p.mean() - np.mean(y > 0), "that was chosen"),
    ("wc-4-boast", lambda y, p: p.mean() - np.mean((p > 0.5) == (y > 0)), "larger one"),
    ("wc-4-boast", lambda y, p: 0.5, "minus the share"),
    ("wc-5-amplitude", lambda *given: -1.0, "positive"),
    ("wc-5-amplitude", lambda *given: amplitude(*given, with_variance=0.0), "variance is scaled"),
    ("wc-5-amplitude", lambda *given: 1 / amplitude(*given), "one over c"),
    ("wc-5-amplitude", lambda *given: 1.0, "the loss is"),
    ("wc-6-mix", lambda p: np.median(p, axis=0), "median"),
    ("wc-6-mix", lambda p: np.exp(np.log(p).mean(axis=0)), "normalised"),
    ("wc-6-mix", lambda p: p.max(axis=0), "would have lost more"),
    ("wc-6-mix", lambda p: np.clip(p.mean(axis=0), 0.05, 0.95), "would have lost more"),
    ("wc-6-mix", lambda p: 0.5 + 0.999 * (p.mean(axis=0) - 0.5), "would have lost more"),
    ("wc-6-mix", unequal_weights, "would have lost more"),
    ("wc-6-mix", lambda p: 2 * p.mean(axis=0), "between 0 and 1"),
    ("wc-6-mix", lambda p: p, "shape"),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers(name, answer, capsys):
    assert check(name, answer), capsys.readouterr().out


@pytest.mark.parametrize(("name", "answer", "said"), WRONG)
def test_usual_mistakes(name, answer, said, capsys):
    assert not check(name, answer)
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", sorted({name for name, _ in RIGHT}))
def test_no_answer_yet(name, capsys):
    assert not check(name, ...)
    assert "no answer yet" in capsys.readouterr().out
