"""The checkers of chapter "Stochastic EP for many classes": right answers pass, usual mistakes are named."""

from functools import partial

import numpy as np
import pytest
from checks import mc
from conftest import checker_tests
from exercises import check
from scipy.special import ndtr


def sites_by_integration(own, rival, noise):
    """τ and ν of both sites: the tilted Gaussian's natural parameters less the cavity's, on a grid."""
    found = []
    for (mean, s, h), (other, s_other, h_other), sign in ((own, rival, 1), (rival, own, -1)):
        x = np.linspace(mean - 14 * np.sqrt(s), mean + 14 * np.sqrt(s), 20_001)
        p = np.exp(-0.5 * (x - mean) ** 2 / s) * ndtr(sign * (x - other) / np.sqrt(h + s_other + h_other + noise))
        p /= p.sum()
        m = p @ x
        v = p @ (x - m) ** 2
        found += [1 / v - 1 / s, m / v - mean / s]
    return np.array(found)


def sites_of_joined_tuples(own, rival, noise):
    """The arguments are tuples, as the statement says, and + joins them."""
    mean, s, h, mean_other, s_other, h_other = own + rival
    return sites_by_integration((mean, s, h), (mean_other, s_other, h_other), noise)


def cavity_by_removal(Lam, b, n, alpha):
    """α of n equal sites is taken out of the posterior."""
    posterior = np.eye(len(b)) + Lam
    precision, shift = posterior - alpha * (Lam / n), b - alpha * (b / n)
    return np.linalg.solve(precision, shift), np.linalg.inv(precision)


def batch_by_rows(Lam, A, tau, N, epsilon):
    B = A.shape[1]
    return (1 - epsilon) * Lam + epsilon * sum(N / B * t * np.outer(a, a) for a, t in zip(A.T, tau, strict=True))


C = np.array([5, 20])
X, y = mc.labelled(25, 1)
half = np.empty(25, int)
half[np.argsort(X[:, 0])] = np.arange(25) * 2 // 25

RIGHT = {
    "mc-1-pieces": np.log(2.0 ** (C - 1) / C),
    "mc-2-site": sites_by_integration,
    "mc-3-memory": (2_160_000, 402_000, 402_000 / 36),
    "mc-4-cavity": cavity_by_removal,
    "mc-5-batch": batch_by_rows,
    "mc-6-groups": 3 * half + y,
}
ALSO_RIGHT = [
    ("mc-1-pieces", (1.2, 10.2)),
    ("mc-2-site", sites_of_joined_tuples),
    ("mc-4-cavity", lambda *given: list(cavity_by_removal(*given))),
]
WRONG = [
    ("mc-1-pieces", np.log(2.0 ** (C - 1)), "costs log C"),
    ("mc-1-pieces", np.log(2.0**C / C), "not C"),
    ("mc-1-pieces", -np.log(2.0 ** (C - 1) / C), "sign"),
    ("mc-1-pieces", (1.0, 2.0), "one half"),
    ("mc-1-pieces", (1.0, 10.17), "one half"),
    ("mc-1-pieces", (1.35, 10.17), "one half"),
    ("mc-1-pieces", (-1.2, -10.2), "sign"),
    ("mc-1-pieces", (1.86, 10.9), "not C"),
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


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)


@pytest.mark.parametrize("name", [name for name in RIGHT if callable(RIGHT[name])])
def test_functions_that_return_nothing_are_told_so(name, capsys):
    assert not check(name, lambda *_: None)
    assert "returns nothing yet" in capsys.readouterr().out
