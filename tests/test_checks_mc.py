"""The checkers of chapter "Stochastic EP for many classes": right answers pass, usual mistakes are named."""

from functools import partial

import numpy as np
import pytest
from checks import mc
from exercises import check

C = np.array([5, 20])
X, y = mc.labelled(25, 1)
half = np.empty(25, int)
half[np.argsort(X[:, 0])] = np.arange(25) * 2 // 25

RIGHT = {
    "mc-1-pieces": np.log(2.0 ** (C - 1) / C),
    "mc-2-site": mc.two_sites,
    "mc-3-memory": (2_160_000, 402_000, 402_000 / 36),
    "mc-4-cavity": mc.tied_cavity,
    "mc-5-batch": mc.batch_step,
    "mc-6-groups": 3 * half + y,
}
WRONG = [
    ("mc-1-pieces", np.log(2.0 ** (C - 1)), "costs log C"),
    ("mc-1-pieces", np.log(2.0**C / C), "not C"),
    ("mc-1-pieces", -np.log(2.0 ** (C - 1) / C), "sign"),
    ("mc-1-pieces", (1.0, 2.0), "one half"),
    ("mc-2-site", partial(mc.two_sites, rival_sign=1.0), "misprint"),
    ("mc-2-site", partial(mc.two_sites, with_residual=True), "denominators"),
    ("mc-2-site", partial(mc.two_sites, residual=False), "lacks the two residuals"),
    ("mc-2-site", lambda *_: np.zeros(4), "for each role"),
    ("mc-3-memory", (1_080_000, 402_000, 11_167), "two numbers"),
    ("mc-3-memory", (1, 402_000, 11_167), "C − 1 factors"),
    ("mc-3-memory", (2_160_000, 400_000, 11_167), "vectors b"),
    ("mc-3-memory", (2_160_000, 40_000, 11_167), "for each class"),
    ("mc-3-memory", (2_160_000, 402_000, 1), "last number"),
    ("mc-4-cavity", partial(mc.tied_cavity, prior_too=True), "prior"),
    ("mc-4-cavity", partial(mc.tied_cavity, shift_too=False), "loses its share"),
    ("mc-4-cavity", lambda Lam, b, n, alpha: mc.tied_cavity(Lam, b, n, 1.0), "fraction"),
    ("mc-4-cavity", lambda *_: np.zeros(3), "tuple"),
    ("mc-4-cavity", lambda Lam, b, n, alpha: (b, Lam), "precision is"),
    ("mc-5-batch", partial(mc.batch_step, weight=1.0), "N/B"),
    ("mc-5-batch", lambda Lam, A, tau, N, epsilon: Lam + epsilon * N / 4 * (A * tau) @ A.T, "grows"),
    ("mc-5-batch", lambda Lam, *_: Lam, "mix"),
    ("mc-6-groups", np.arange(25), "25 groups"),
    ("mc-6-groups", np.full(25, 0.5), "whole numbers"),
    ("mc-6-groups", np.zeros(25), "away from EP"),
]


@pytest.mark.parametrize("name", RIGHT)
def test_right_answers_pass(name):
    assert check(name, RIGHT[name])


@pytest.mark.parametrize(("name", "answer", "hint"), WRONG)
def test_mistakes_are_named(name, answer, hint, capsys):
    assert not check(name, answer)
    assert hint in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", [name for name in RIGHT if callable(RIGHT[name])])
def test_functions_that_return_nothing_are_told_so(name, capsys):
    assert not check(name, lambda *_: None)
    assert "returns nothing yet" in capsys.readouterr().out
