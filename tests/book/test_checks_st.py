"""The checkers of chapter "Study: many classes on real data": right answers pass, usual mistakes are named."""

import numpy as np
import pytest
from checks import st  # noqa: F401 - registers the checkers
from exercises import check
from scipy.special import ndtr


def apart(losses, mean, sem, ddof=1, combine=np.hypot):
    return (np.mean(losses) - mean) / combine(np.std(losses, ddof=ddof) / np.sqrt(len(losses)), sem)


def paired(first, second):
    difference = first - second
    return difference.mean(), np.std(difference, ddof=1) / np.sqrt(len(difference))


def unpaired(first, second):
    return (first - second).mean(), np.hypot(np.std(first, ddof=1), np.std(second, ddof=1)) / np.sqrt(len(first))


def sooner(seconds, loss, level):
    for k in range(len(loss)):
        if loss[k] <= level:
            if k == 0:
                return seconds[0]
            return np.interp(level, [loss[k], loss[k - 1]], [seconds[k], seconds[k - 1]])
    return np.inf


def steps(seconds, loss, level):
    return next((s for s, value in zip(seconds, loss) if value <= level), np.inf)


def never_inf(seconds, loss, level):
    value = sooner(seconds, loss, level)
    return value if np.isfinite(value) else -1.0


RIGHT = [
    ("st-1-chance", 4.37),
    ("st-2-apart", apart),
    ("st-3-paired", paired),
    ("st-4-clock", sooner),
    ("st-5-sure", (0.9, 0.3251, 0.6917)),
]
WRONG = [
    ("st-1-chance", 96 * ndtr(-2.0), "one direction"),
    ("st-1-chance", 4.8, "1.96"),
    ("st-1-chance", 91.6, "agree"),
    ("st-2-apart", lambda losses, mean, sem: -apart(losses, mean, sem), "sign"),
    ("st-2-apart", lambda losses, mean, sem: apart(losses, mean, sem, combine=np.add), "squares"),
    ("st-2-apart", lambda losses, mean, sem: apart(losses, mean, sem, ddof=0), "ddof"),
    ("st-2-apart", lambda losses, mean, sem: apart(losses, mean, 0.0), "uncertain"),
    ("st-3-paired", unpaired, "different ones"),
    ("st-3-paired", lambda first, second: paired(second, first), "sign"),
    ("st-4-clock", steps, "straight line"),
    ("st-4-clock", never_inf, "np.inf"),
    ("st-5-sure", (0.999, 0.3251, 0.6917), "derivative"),
    ("st-5-sure", (0.9, 0.469, 0.998), "bits"),
    ("st-5-sure", (0.9, 0.3251, 0.3251), "0.999"),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers(name, answer):
    assert check(name, answer)


@pytest.mark.parametrize(("name", "answer", "hint"), WRONG)
def test_usual_mistakes_are_named(name, answer, hint, capsys):
    assert not check(name, answer)
    assert hint in " ".join(capsys.readouterr().out.split())
