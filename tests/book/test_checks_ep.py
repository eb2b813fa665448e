"""The checkers of chapter "EP, step by step": right answers pass, usual mistakes are named."""

import numpy as np
import pytest
from checks import ep
from conftest import changed, checker_tests
from exercises import check
from scipy.special import log_ndtr, ndtr


def moments(y, mean, variance, over=np.sqrt, label=True, sign=1.0):
    sd = over(variance)
    z = (y if label else 1.0) * mean / sd
    rho = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
    return log_ndtr(z), y * rho / sd, -sign * rho * (rho + z) / sd**2


def left_out(mean, variance, tau, nu, y, cavity=True, noise=1.0):
    kept = 1 - cavity * tau * variance
    return log_ndtr(y * (mean - cavity * nu * variance) / kept / np.sqrt(noise + variance / kept))


def longest(eigenvalues):
    w = 1 - np.asarray(eigenvalues)
    return np.min(2 * w.real / np.abs(w) ** 2)


def alike(tau, nu, N, v, others=None):
    """The site of a label +1 whose N − 1 companions all have the site (τ, ν)."""
    others = N - 1 if others is None else others
    variance = 1 / (1 / v + others * tau)
    mean = variance * others * nu
    z = mean / np.sqrt(1 + variance)
    rho = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) / ndtr(z)
    d1, d2 = rho / np.sqrt(1 + variance), -rho * (rho + z) / (1 + variance)
    return np.array([-d2, d1 - d2 * mean]) / (1 + d2 * variance)


RIGHT = {
    "ep-1-mixture": (-0.1, 2.365),
    "ep-2-step": moments,
    "ep-3-worth": 4.0,
    "ep-4-loo": left_out,
    "ep-5-step": longest,
    "ep-6-alike": alike,
}
ALSO_RIGHT = [
    ("ep-2-step", lambda *given: np.array(moments(*given))),
    ("ep-2-step", lambda *given: list(moments(*given))),
]
WRONG = [
    ("ep-1-mixture", (-1.0, 2.365), "taller hump"),
    ("ep-1-mixture", (0.5, 2.365), "0.7 and 0.3"),
    ("ep-1-mixture", (-0.1, 0.475), "lie apart"),
    ("ep-1-mixture", (-0.1, 1.89), "a width of its own"),
    ("ep-1-mixture", (-0.1, np.sqrt(2.365)), "square it"),
    ("ep-1-mixture", (-0.1, 9.0), "E[f^2]"),
    ("ep-2-step", lambda *given: moments(*given)[:2], "three things"),
    ("ep-2-step", lambda *given: np.array(moments(*given)[:2]), "three things"),
    ("ep-2-step", lambda *given: np.array(1.0), "three things"),
    ("ep-2-step", lambda y, m, v: moments(y, m, v, over=lambda v: np.sqrt(1 + v)), "unit noise"),
    ("ep-2-step", changed(moments, 0, np.exp), "logarithm is asked for"),
    ("ep-2-step", lambda *given: moments(*given, label=False), "depend on the label"),
    ("ep-2-step", lambda *given: moments(*given, over=np.array), "not the variance"),
    ("ep-2-step", changed(moments, 0, lambda l: l + 1), "log P(y f > 0)"),
    ("ep-2-step", lambda y, m, v: (moments(y, m, v)[0], y * moments(y, m, v)[1], moments(y, m, v)[2]), "factor y"),
    ("ep-2-step", changed(moments, 1, lambda d: 2 * d), "chain rule included"),
    ("ep-2-step", lambda *given: moments(*given, sign=-1.0), "concave"),
    ("ep-2-step", changed(moments, 2, lambda d: 2 * d), "rho'"),
    ("ep-3-worth", 1.0, "unit noise"),
    ("ep-3-worth", 2.0, "1/sigma"),
    ("ep-3-worth", 0.25, "sigma squared"),
    ("ep-3-worth", 0.5, "That is sigma."),
    ("ep-3-worth", 3.0, "convert back"),
    ("ep-4-loo", lambda *given: left_out(*given).sum(), "their sum"),
    ("ep-4-loo", lambda *given: left_out(*given)[:5], "got shape (5,)"),
    ("ep-4-loo", lambda *given: np.exp(left_out(*given)), "logarithms are asked for"),
    ("ep-4-loo", lambda *given: -left_out(*given), "turned round"),
    ("ep-4-loo", lambda *given: left_out(*given, cavity=False), "already seen the label"),
    ("ep-4-loo", lambda *given: left_out(*given, noise=0.0), "noise of its own"),
    ("ep-4-loo", lambda m, v, t, n, y: left_out(m, v, t, n, np.ones_like(y)), "factor y inside"),
    ("ep-4-loo", lambda *given: left_out(*given) - 0.1, "first the cavity"),
    ("ep-5-step", lambda e: 0.5 * longest(e), "the edge of stability"),
    ("ep-5-step", lambda e: np.max(2 / (1 - np.asarray(e)).real), "take the minimum"),
    ("ep-5-step", lambda e: 3.0, "got 3"),
    ("ep-5-step", lambda e: np.min(2 / (1 - np.asarray(e)).real), "imaginary part"),
    ("ep-5-step", lambda e: np.min(2 / np.abs(1 - np.asarray(e))), "only if w were real"),
    ("ep-5-step", lambda e: longest(e) if np.isrealobj(e) else 0.1, "not for complex ones"),
    ("ep-5-step", lambda e: min(1.0, longest(e)), "cut the answer off"),
    ("ep-5-step", lambda e: longest(e) if np.real(e).min() > -2 else 0.9, "in most cases"),
    ("ep-6-alike", lambda *given: alike(*given, others=given[2]), "own one has to come out"),
    ("ep-6-alike", lambda *given: alike(*given, others=0), "prior alone"),
    ("ep-6-alike", lambda *given: alike(*given)[::-1], "tau first"),
    ("ep-6-alike", lambda *given: 2 * alike(*given), "Not the new site"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)


def test_mistakes_with_the_two_humps_are_named(monkeypatch, capsys):
    one, both, wide, truth = ep._liar_evidences()
    assert both == pytest.approx(np.logaddexp(one, one)) and abs(both - truth) < abs(one - truth)
    monkeypatch.setattr(ep, "_liar_evidences", lambda: (one, both, wide, truth))  # it takes seconds
    assert check("ep-7-modes", both)
    for answer, hint in ((2 * one, "Adding logarithms"), (one, "one hump's"), (wide, "wide fixed point"),
                         (truth, "exact value"), (-50.0, "log(exp(a) + exp(b))")):
        capsys.readouterr()
        assert not check("ep-7-modes", answer)
        assert hint in " ".join(capsys.readouterr().out.split())
