"""The checkers of chapter "Power EP and its limits": right answers pass, usual mistakes are named."""

from math import comb

import numpy as np
from checks import pep
from conftest import changed, checker_tests
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from pepcore import exact
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit
from pepcore.sites import Sites


def divergence(alpha, deviation=2.0):
    overlap = quad(lambda f: norm.pdf(f) ** alpha * norm.pdf(f, 1, deviation) ** (1 - alpha), -40, 40, epsabs=1e-12)[0]
    return (1 - overlap) / (alpha * (1 - alpha))


def poisson(y, mean, variance):
    rate = np.exp(mean + variance / 2)
    return rate, y - rate + rate * mean


def site(alpha, h, noise):
    return 1 / (noise + alpha * h)


def student(y, f):
    r = y - f
    return -2.5 * np.log1p(r**2 / 4), 5 * r / (4 + r**2), 5 * (r**2 - 4) / (4 + r**2) ** 2


def gaussian(y, f):
    return -0.5 * (y - f) ** 2, y - f, -np.ones_like(f)


def laplace(y, f):
    return -np.abs(y - f), np.sign(y - f), np.zeros_like(f)


def logistic(y, f):
    p = 1 / (1 + np.exp(-y * f))
    return np.log(p), y * (1 - p), -p * (1 - p)


def counts(y, f):
    """Negative binomial of five failures; `comb` takes no floats."""
    p = 1 / (1 + np.exp(-f))
    return np.log(comb(y + 4, y)) + y * np.log(p) + 5 * np.log1p(-p), y - (y + 5) * p, -(y + 5) * p * (1 - p)


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
X, LABELS = pep._data()         # the question's data


def sweep(sites, K):
    """All sites (2N,) of a probit model replaced once at alpha = 0, with averages over q by quadrature."""
    tau, nu = sites.reshape(2, -1)
    V = np.linalg.solve(np.eye(len(K)) + K * tau, K)
    mean, deviation = V @ nu, np.sqrt(np.diag(V))
    z = LABELS[:, None] * (mean[:, None] + deviation[:, None] * NODES)
    rho = np.exp(norm.logpdf(z) - norm.logcdf(z))
    curvature = rho * (rho + z) @ WEIGHTS / WEIGHTS.sum()
    return np.concatenate([curvature, LABELS * (rho @ WEIGHTS) / WEIGHTS.sum() + curvature * mean])


def longest_step():
    """From finite differences of one sweep at its fixed point, signal variance 100."""
    K = SquaredExponential(100.0, 1.0)(X)
    sites = np.repeat([0.1, 0.0], len(X))
    for _ in range(600):
        sites = sites + 0.3 * (sweep(sites, K) - sites)
    assert np.allclose(sweep(sites, K), sites, atol=1e-9)
    moved = [sweep(sites + way, K) - sweep(sites - way, K) for way in 1e-5 * np.eye(2 * len(X))]
    return 2 / (1 - np.linalg.eigvals(np.array(moved) / 2e-5).real.min())


def evidence(alpha):
    """Of the chapter's labels at signal variance 25."""
    kernel = SquaredExponential(25.0, 1.0)
    return exact.infer(kernel, X, LABELS, likelihood=Probit(), alpha=alpha, step=0.5, tolerance=1e-10,
                       max_sweeps=2000).log_evidence


LONGEST = longest_step()
BOUND = evidence(0.0)
SLOPE = (-3 * BOUND + 4 * evidence(0.01) - evidence(0.02)) / 0.02       # of the evidence at alpha = 0, from fits beside it
FLIP = brentq(lambda z: -z * (0.01 + 0.98 * norm.cdf(z)) - 0.98 * norm.pdf(z), -6, -0.5)  # p p'' = (p')²

RIGHT = {
    "pep-1-divergence": divergence(0.25),
    "pep-2-poisson": poisson,
    "pep-3-gaussian": site,
    "pep-4-step": LONGEST,
    "pep-5-slope": BOUND + SLOPE,
    "pep-6-flips": FLIP,
    "pep-7-yours": (student, 1.0),
}
ALSO_RIGHT = [
    ("pep-2-poisson", lambda *given: Sites(*poisson(*given))),
    ("pep-7-yours", [student, -1.5]),
    ("pep-7-yours", (logistic, 1.0)),
    ("pep-7-yours", (counts, 3)),
]
WRONG = [
    ("pep-2-poisson", lambda y, m, v: (np.exp(m), poisson(y, m, v)[1]), "Laplace"),
    ("pep-2-poisson", lambda y, m, v: (-poisson(y, m, v)[0], poisson(y, m, v)[1]), "sign of τ"),
    ("pep-2-poisson", lambda y, m, v: (np.exp(m + v), poisson(y, m, v)[1]), "half the variance"),
    ("pep-2-poisson", lambda y, m, v: (9.0, 1.0), "τ is not right"),
    ("pep-2-poisson", lambda y, m, v: (np.exp(m + v**2), y - np.exp(m + v**2) * (1 - m)), "τ is not right"),
    ("pep-2-poisson", lambda y, m, v: poisson(y, m, v**2), "not a standard deviation"),
    ("pep-2-poisson", lambda *given: poisson(*given)[::-1], "τ first"),
    ("pep-2-poisson", lambda *given: Sites(*poisson(*given)[::-1]), "τ first"),
    ("pep-2-poisson", lambda *given: poisson(*given)[0], "two numbers, τ and ν"),
    ("pep-2-poisson", lambda y, m, v: poisson(y, m, v) if y else None, "returns nothing in one of the cases"),
    ("pep-2-poisson", lambda y, m, v: (poisson(y, m, v)[0], y - poisson(y, m, v)[0]), "second term"),
    ("pep-2-poisson", lambda y, m, v: (poisson(y, m, v)[0], 9.0), "centre the site at zero"),
    ("pep-2-poisson", lambda *_: None, "returns nothing yet"),
    ("pep-3-gaussian", lambda *given: 1 / site(*given), "the precision is asked for"),
    ("pep-3-gaussian", lambda alpha, *rest: site(1.0, *rest), "(FITC) only"),
    ("pep-3-gaussian", lambda alpha, *rest: site(0.0, *rest), "(VFE) only"),
    ("pep-3-gaussian", lambda alpha, h, noise: alpha * site(alpha, h, noise), "divide by α"),
    ("pep-3-gaussian", lambda alpha, h, noise: site(alpha, h, noise**2), "do not square it"),
    ("pep-3-gaussian", lambda *given: 1.0, "must drop out"),
    ("pep-3-gaussian", lambda alpha, *rest: alpha * site(alpha, *rest) / alpha, "cancel the α before you divide"),
    ("pep-3-gaussian", lambda alpha, *rest: alpha * site(alpha, *rest) / np.float64(alpha), "cancel the α before you divide"),
    ("pep-3-gaussian", lambda alpha, h, noise: site(alpha, h, noise) * h / h, "ZeroDivisionError"),
    ("pep-3-gaussian", lambda *given: None, "returns nothing yet"),
    ("pep-3-gaussian", lambda alpha, *rest: site(alpha, *rest) if alpha else None, "returns nothing in one of the cases"),
    ("pep-3-gaussian", lambda *given: "a text", "of type str"),
    ("pep-3-gaussian", lambda alpha, *rest: site(alpha, *rest) if alpha else "infinite", "of type str"),
    ("pep-7-yours", (changed(student, 1, np.negative), 1.0), "sign of the first"),
    ("pep-7-yours", (changed(student, 1, lambda d: 2 * d), 1.0), "not that of your log p"),
    ("pep-7-yours", (changed(student, 2, np.negative), 1.0), "sign of the second"),
    ("pep-7-yours", (changed(student, 2, lambda d: 2 * d), 1.0), "not that of your first one"),
    ("pep-7-yours", (gaussian, 1.0), "is Gaussian"),
    ("pep-7-yours", (laplace, 1.0), "straight line wherever it was tried"),
    ("pep-7-yours", (laplace, 0.5), "straight line wherever it was tried"),
    ("pep-7-yours", (laplace, -2.0), "straight line wherever it was tried"),
    ("pep-7-yours", (lambda y, f: (0 * f, 0 * f, 0 * f), 1.0), "does not depend on f"),
    ("pep-7-yours", student, "and one value y"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)
