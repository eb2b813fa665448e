"""The checkers of "Sparse classification with Power EP" and of the first page: right answers pass, usual mistakes are named."""

import numpy as np
import pytest
from checks import sc, start
from conftest import checker_tests
from scipy.special import log_ndtr, ndtr

from pepcore import SquaredExponential


def average(function):
    """E[function(1 + e)] for e ~ N(0, 3)."""
    x, w = np.polynomial.hermite_e.hermegauss(120)
    return w @ function(1 + np.sqrt(3) * x) / w.sum()


def moments(y, mean, variance, alpha):
    """d1 and d2 of l_α for the probit, by Gauss-Hermite; everything broadcasts."""
    x, w = np.polynomial.hermite_e.hermegauss(200)
    f = np.asarray(mean)[..., None] + np.sqrt(np.asarray(variance))[..., None] * x
    z = np.asarray(y)[..., None] * f
    rho = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
    g, bend = np.asarray(y)[..., None] * rho, -rho * (rho + z)
    p = w * np.exp(alpha * log_ndtr(z))
    p = p / p.sum(axis=-1, keepdims=True)
    d1 = (p * g).sum(axis=-1)
    return d1, (p * bend).sum(axis=-1) + alpha * ((p * g**2).sum(axis=-1) - d1**2)


def pays(y, mean, variance, alpha, weight=None):
    if alpha == 1:
        return y * mean < 0
    d1, d2 = moments(y, mean, variance, alpha)
    return d2 + (alpha if weight is None else weight) * d1**2 > 0


def scale_slope(A, h, tau, nu, alpha, features=0.5, gamma_too=True, weight=None, kept=True, residual=0.5):
    V = np.linalg.inv(np.eye(len(A)) + (A * tau) @ A.T)
    m, VA = V @ A @ nu, V @ A
    gamma, s = nu - tau * (A.T @ m), (A * VA).sum(axis=0)
    c = 1 - alpha * tau * s if kept else 1.0
    dA = np.outer(m, gamma if gamma_too else nu) - VA * tau
    return features * np.sum(dA * A) + residual * h @ ((alpha if weight is None else weight) * gamma**2 - c * tau)


MEANS = np.array([ndtr(0.5), average(lambda f: np.sqrt(ndtr(f))) ** 2, np.exp(average(log_ndtr))])
LABELS = np.random.default_rng(6).choice([-1.0, 1.0], 40)
CHANCES = np.array([ndtr(size * (LABELS + np.random.default_rng(7).normal(size=40))) for size in (0.8, 1.2)])
FEW_NEGATIVE = np.where(np.arange(50) < 44, 1.0, -1.0)     # 88 % have the label +1, and are easy to tell
SURE = np.where(FEW_NEGATIVE > 0, 0.9, 0.6)
GIVEN_UP = 0.5 + 1e-3 * np.where(np.arange(40) % 20 < 8, LABELS, -LABELS)     # right for 16 of the 40
RIGHT = {
    "sc-1-mean": MEANS,
    "sc-2-forget": 9,
    "sc-3-price": pays,
    "sc-4-gradient": scale_slope,
    "sc-6-yours": (LABELS, *CHANCES),
    "start-noise": 0.232,
}
ALSO_RIGHT = [
    ("sc-3-price", lambda *given: pays(*given).astype(int)),
    ("sc-6-yours", (FEW_NEGATIVE, 0.95 * SURE, SURE)),
    ("sc-6-yours", (LABELS, GIVEN_UP, CHANCES[1])),
    ("sc-6-yours", (FEW_NEGATIVE, np.full(50, 0.499), SURE)),
    ("sc-6-yours", (-FEW_NEGATIVE, np.full(50, 0.501), 1 - SURE)),
    ("sc-6-yours", (LABELS, *np.where(np.arange(40) % 20 < 8, CHANCES, 1 - CHANCES))),
    ("start-evidence", "the one with the smallest loss on data that were held back"),
    ("start-fan", "C"),
]
WRONG = [
    ("sc-3-price", lambda *given: pays(*given)[:7], "400 data"),
    ("sc-3-price", lambda *given: pays(*given).astype(float), "Booleans"),
    ("sc-3-price", lambda *given: ~pays(*given), "other way round"),
    ("sc-3-price", lambda *given: pays(*given, weight=1.0), "that is 1 at α = 1 only"),
    ("sc-3-price", lambda *given: 2 * pays(*given), "Booleans"),
    ("sc-3-price", lambda y, mean, *_: y * mean < 0, "answer for α = 1; at α = 0.5"),
    ("sc-3-price", lambda y, m, v, a: pays(y, m, v, a) if a else y * m < 0, "what is the sign of d2"),
    ("sc-3-price", lambda y, m, v, a: pays(y, m, v, a, weight=max(a, 0.25)), "what is the sign of d2"),
    ("sc-3-price", lambda y, mean, *_: mean < 0, "times the mean"),
    ("sc-3-price", lambda y, *_: y > 2, "of 400 are wrong"),
    ("sc-4-gradient", lambda *given: -scale_slope(*given), "energy"),
    ("sc-4-gradient", lambda *given: scale_slope(*given, residual=0), "residual variances change"),
    ("sc-4-gradient", lambda *given: scale_slope(*given, features=0), "features change"),
    ("sc-4-gradient", lambda *given: scale_slope(*given, features=1), "which power"),
    ("sc-4-gradient", lambda *given: scale_slope(*given, residual=1), "factor ½"),
    ("sc-4-gradient", lambda *given: scale_slope(*given, gamma_too=False), "its slope at zero"),
    ("sc-4-gradient", lambda *given: scale_slope(*given, weight=1.0), "that is 1 at α = 1 only"),
    ("sc-4-gradient", lambda *given: scale_slope(*given, kept=False), "what the cavity keeps"),
    ("sc-4-gradient", lambda *given: scale_slope(*given) + 1, "Compare with differences"),
    ("sc-4-gradient", lambda A, h, *_: A, "one number"),
    ("sc-5-walk", lambda X, y, M, start: (X, X[:M]), "comes the kernel"),
    ("sc-5-walk", lambda X, y, M, start: (X[:M], start), "comes the kernel"),
    ("sc-5-walk", lambda X, y, M, start: (start, X[:M]), "end with a fit at α = 0"),
    ("sc-5-walk", lambda X, y, M, start: [start + start, X[:M]], "end with a fit at α = 0"),
    ("sc-5-walk", lambda X, y, M, start: (SquaredExponential(1e-4, [0.5, 0.5]), X[:M]), "Where must a search"),
    ("sc-5-walk", lambda X, y, M, start: (SquaredExponential(0.1, [0.5, 0.5]), X[:M]), "begin at a power between"),
    ("sc-5-walk", lambda *_: None, "returns nothing yet"),
    ("sc-6-yours", (LABELS[:20], *CHANCES[:, :20]), "at least 30"),
    ("sc-6-yours", (LABELS > 0, *CHANCES), "-1 and +1"),
    ("sc-6-yours", (LABELS, CHANCES[0], 3 * CHANCES[1]), "latent means"),
    ("sc-6-yours", (LABELS, CHANCES[0], np.round(CHANCES[1])), "decisions"),
    ("sc-6-yours", (LABELS, *(1 - CHANCES)), "do worse than a coin"),
    ("sc-6-yours", (LABELS, *np.maximum(CHANCES, 1 - CHANCES)), "label decided for"),
    ("sc-6-yours", (LABELS, CHANCES[0], CHANCES[0]), "the two are the same"),
    ("start-noise", np.sqrt(start.share()), "square it"),
    ("start-noise", 100 * start.share(), "as a fraction"),
    ("start-noise", 23, "as a fraction"),
    ("start-noise", 23.2, "as a fraction"),
    ("start-noise", 1 - start.share(), "the curve explains"),
    ("start-noise", 1.5, "between 0 and 1"),
    ("start-noise", 0.4, "what is its variance"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)


@pytest.mark.parametrize("alpha", [1.0, 0.3, 0.0])
def test_the_slope_in_the_scale_of_the_kernel_is_that_of_the_evidence(alpha):
    A, h, fit = sc.converged(alpha)
    slope = scale_slope(A, h, fit.sites.tau, fit.sites.nu, alpha)
    up, down = (sc.converged(alpha, scale=np.exp(t))[2].log_evidence for t in (1e-4, -1e-4))
    assert slope == pytest.approx((up - down) / 2e-4, rel=1e-6)
