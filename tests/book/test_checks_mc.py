"""The checkers of chapter "Stochastic EP for many classes": right answers pass, usual mistakes are named."""

from functools import partial

import numpy as np
import pytest
from checks import mc
from conftest import checker_tests
from exercises import check
from scipy.optimize import brentq
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


def removed(k, ordinary=0.5, odd=8.0):
    """Precisions at the odd datum: its own site taken out of an array of sites, and their mean."""
    sites = np.append(np.full(k, ordinary), odd)
    return np.array([1 + np.delete(sites, k).sum(), 1 + (sites - sites.mean() / len(sites)).sum()])


def few_enough():
    worse = [k for k in range(1, 1000) if removed(k)[1] / removed(k)[0] >= 1.1]
    return max(worse) + 1


def spread_of_the_sum(step):
    """The variance of the sum in units of a single estimate's, by its recursion."""
    variance = 0.0
    for _ in range(5000):
        variance = (1 - step) ** 2 * variance + step**2
    return variance


C = np.array([5, 20])
X, y = mc.labelled(25, 1)
half = np.empty(25, int)
half[np.argsort(X[:, 0])] = np.arange(25) * 2 // 25

CLASSES = np.arange(60) % 3
EP = np.random.default_rng(8).dirichlet(np.ones(3), 60) + 2.0 * np.eye(3)[CLASSES]
EP /= EP.sum(axis=1, keepdims=True)
SEP = 0.9 * EP + 0.1 / 3
UNLUCKY = np.where(np.arange(60) < 17, EP.argmax(axis=1), (EP.argmax(axis=1) + 1) % 3)        # 17 of 60 are right
RIGHT = {
    "mc-1-pieces": np.log(2.0 ** (C - 1) / C),
    "mc-2-site": sites_by_integration,
    "mc-3-memory": (2_160_000, 402_000, 402_000 / 36),
    "mc-4-cavity": (*removed(9), np.diff(removed(10**6))[0], few_enough()),
    "mc-5-batch": (0.2 * np.prod(np.full(10, 0.8)), spread_of_the_sum(0.2) ** 0.5, 25 / spread_of_the_sum(0.2),
                   brentq(lambda step: 25 / spread_of_the_sum(step) - 1000, 0.03, 0.1)),
    "mc-6-groups": 3 * half + y,
    "mc-7-yours": (CLASSES, EP, SEP),
}
ALSO_RIGHT = [
    ("mc-5-batch", "0.0215 0.333 225 0.0488".split()),
    ("mc-2-site", sites_of_joined_tuples),
    ("mc-7-yours", (CLASSES, EP.round(3), SEP.round(3))),
    ("mc-7-yours", (CLASSES, EP.round(2), SEP.round(2))),
    ("mc-7-yours", (UNLUCKY, EP, SEP)),
    ("mc-4-cavity", ("5.5", "12.25", "7.5", few_enough())),
]
WRONG = [
    ("mc-2-site", partial(mc.two_sites, signs=(1.0, 1.0)), "misprint"),
    ("mc-2-site", partial(mc.two_sites, with_residual=True), "denominators"),
    ("mc-2-site", partial(mc.two_sites, residual=False), "lacks the two residuals"),
    ("mc-2-site", partial(mc.two_sites, signs=(-1.0, 1.0)), "both first derivatives are turned round"),
    ("mc-2-site", partial(mc.two_sites, with_noise=False), "the noise is missing"),
    ("mc-2-site", partial(mc.two_sites, shift=0.0), "ν has a second term"),
    ("mc-2-site", lambda *given: mc.two_sites(*given) * [1, -1, 1, -1], "both ν have the wrong sign"),
    ("mc-2-site", lambda *given: mc.two_sites(*given)[[2, 3, 0, 1]], "the two roles are exchanged"),
    ("mc-2-site", lambda *given: mc.two_sites(*given)[[1, 0, 3, 2]], "in another order"),
    ("mc-2-site", lambda *given: mc.two_sites(*given)[[0, 2, 1, 3]], "in another order"),
    ("mc-2-site", lambda *given: mc.two_sites(*given) * [1, 1, 1, 2], "at least one ν is not"),
    ("mc-2-site", lambda *given: mc.two_sites(*given) * [1, 1, 3, 2], "the winner is right"),
    ("mc-2-site", lambda *_: np.zeros(4), "neither τ is right"),
    ("mc-6-groups", np.arange(25), "25 groups"),
    ("mc-6-groups", np.full(25, 0.5), "whole numbers"),
    ("mc-6-groups", np.full(25, np.inf), "whole numbers"),
    ("mc-6-groups", np.zeros(25), "away from EP"),
    ("mc-7-yours", (CLASSES, EP, EP), "was the approximation passed on"),
    ("mc-7-yours", (CLASSES, np.log(EP), SEP), "log probabilities"),
    ("mc-7-yours", (CLASSES, 2 * EP - 0.5, SEP), "latent means"),
    ("mc-7-yours", (CLASSES, 0.5 * EP, SEP), "adds up to 1"),
    ("mc-7-yours", (CLASSES, np.eye(3)[CLASSES], SEP), "these are decisions"),
    ("mc-7-yours", (CLASSES + 1, EP, SEP), "0 to C − 1"),
    ("mc-7-yours", (CLASSES, EP[:, [1, 2, 0]], SEP), "order of the labels"),
    ("mc-7-yours", (CLASSES, EP[:5], SEP), "S at least 30"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)


@pytest.mark.parametrize("name", [name for name in RIGHT if callable(RIGHT[name])])
def test_functions_that_return_nothing_are_told_so(name, capsys):
    assert not check(name, lambda *_: None)
    assert "returns nothing yet" in capsys.readouterr().out
