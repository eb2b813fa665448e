"""The checkers of chapter "Power EP and its limits": right answers pass, usual mistakes are named."""

import numpy as np
from checks import pep
from conftest import checker_tests
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm


def divergence(alpha, deviation=2.0):
    overlap = quad(lambda f: norm.pdf(f) ** alpha * norm.pdf(f, 1, deviation) ** (1 - alpha), -40, 40, epsabs=1e-12)[0]
    return (1 - overlap) / (alpha * (1 - alpha))


def poisson(y, mean, variance):
    rate = np.exp(mean + variance / 2)
    return rate, y - rate + rate * mean


def site(alpha, h, noise):
    return 1 / (noise + alpha * h)


LONGEST = 2 / (1 - pep._smallest_eigenvalue())
FIT = pep._classifier(25.0)
SLOPE = pep._half_variances(FIT)
FLIP = brentq(lambda z: -z * (0.01 + 0.98 * norm.cdf(z)) - 0.98 * norm.pdf(z), -6, -0.5)  # p p'' = (p')²

RIGHT = {
    "pep-1-divergence": divergence(0.25),
    "pep-2-poisson": poisson,
    "pep-3-gaussian": site,
    "pep-4-step": LONGEST,
    "pep-5-slope": FIT.log_evidence + SLOPE,
    "pep-6-flips": FLIP,
}
ALSO_RIGHT = [
    ("pep-1-divergence", 0.789),
    ("pep-5-slope", -7.72),
    ("pep-6-flips", -1.72),
]
WRONG = [
    ("pep-1-divergence", divergence(0.75), "exchanged"),
    ("pep-1-divergence", divergence(0.25, deviation=4.0), "not its standard deviation"),
    ("pep-1-divergence", divergence(0.25) * 3 / 16, "factor"),
    ("pep-1-divergence", 1 - divergence(0.25) * 3 / 16, "one step more"),
    ("pep-1-divergence", 7.0, "normalisers"),
    ("pep-2-poisson", lambda y, m, v: (np.exp(m), poisson(y, m, v)[1]), "Laplace"),
    ("pep-2-poisson", lambda y, m, v: (-poisson(y, m, v)[0], poisson(y, m, v)[1]), "sign of tau"),
    ("pep-2-poisson", lambda y, m, v: (np.exp(m + v), poisson(y, m, v)[1]), "half the variance"),
    ("pep-2-poisson", lambda y, m, v: (9.0, 1.0), "tau is not right"),
    ("pep-2-poisson", lambda y, m, v: (poisson(y, m, v)[0], y - poisson(y, m, v)[0]), "second term"),
    ("pep-2-poisson", lambda y, m, v: (poisson(y, m, v)[0], 9.0), "expected first derivative"),
    ("pep-2-poisson", lambda *_: None, "no answer yet"),
    ("pep-3-gaussian", lambda *given: 1 / site(*given), "the precision is asked for"),
    ("pep-3-gaussian", lambda alpha, *rest: site(1.0, *rest), "(FITC) only"),
    ("pep-3-gaussian", lambda alpha, *rest: site(0.0, *rest), "(VFE) only"),
    ("pep-3-gaussian", lambda alpha, h, noise: alpha * site(alpha, h, noise), "divide by alpha"),
    ("pep-3-gaussian", lambda *given: 1.0, "must drop out"),
    ("pep-3-gaussian", lambda alpha, *rest: alpha * site(alpha, *rest) / alpha, "cancel the α before you divide"),
    ("pep-3-gaussian", lambda alpha, *rest: alpha * site(alpha, *rest) / np.float64(alpha), "cancel the α before you divide"),
    ("pep-3-gaussian", lambda alpha, h, noise: site(alpha, h, noise) * h / h, "ZeroDivisionError"),
    ("pep-3-gaussian", lambda *given: None, "no answer yet"),
    ("pep-3-gaussian", lambda alpha, *rest: site(alpha, *rest) if alpha else None, "no answer yet"),
    ("pep-4-step", LONGEST / 2, "in one go"),
    ("pep-4-step", 1 - 2 / LONGEST, "this is the eigenvalue"),
    ("pep-4-step", 0.9, "most negative eigenvalue"),
    ("pep-4-step", 2 / (2 - 2 / LONGEST), "sign of lambda"),
    ("pep-5-slope", SLOPE, "add it to the bound"),
    ("pep-5-slope", FIT.log_evidence, "the bound itself"),
    ("pep-5-slope", FIT.log_evidence + 2 * SLOPE, "factor one half"),
    ("pep-5-slope", FIT.log_evidence - SLOPE, "add the slope"),
    ("pep-5-slope", 0.0, "half the variance under q"),
    ("pep-5-slope", -7.763, "half the variance under q"),
    ("pep-5-slope", -7.99, "the bound itself"),
    ("pep-5-slope", 0.27, "add it to the bound"),
    ("pep-6-flips", -FLIP, "the sign"),
    ("pep-6-flips", 1.72, "the sign"),
    ("pep-6-flips", -1.7, "second derivative"),
    ("pep-6-flips", 3.0, "second derivative"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)
