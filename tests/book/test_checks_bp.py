"""The checkers of "Beyond the probit": right answers pass, usual mistakes are named."""

import numpy as np
import scipy.linalg
from conftest import changed, checker_tests
from exercises import check
from scipy.stats import poisson
from test_checks_sc import moments

GROWTH = np.exp(0.25)
MEAN = 100 * np.sqrt(GROWTH)
VARIANCE = MEAN + MEAN**2 * (GROWTH - 1)


def mean_step(A, h, y, tau, nu, alpha, likelihood, around="cavity", wider=True, residual=True):
    V = np.linalg.inv(np.eye(len(A)) + (A * tau) @ A.T)
    mu, s = A.T @ V @ A @ nu, np.einsum("mn,mk,kn->n", A, V, A)
    c = 1 - alpha * tau * s
    mu_out = (mu - alpha * nu * s) / c
    d1 = likelihood.log_moment(y, mu_out, s / c + (h if residual else 0), alpha)[1]
    return tau * (mu_out if around == "cavity" else mu) + d1 / (c if wider else 1)


def full_target(A, h, y, tau, nu, alpha, likelihood):
    V = np.linalg.inv(np.eye(len(A)) + (A * tau) @ A.T)
    mu, s = A.T @ V @ A @ nu, np.einsum("mn,mk,kn->n", A, V, A)
    c = 1 - alpha * tau * s
    mu_out, s_out = (mu - alpha * nu * s) / c, s / c
    _, d1, d2 = likelihood.log_moment(y, mu_out, s_out + h, alpha)
    return (d1 - d2 * mu_out) / (1 + alpha * d2 * s_out)


def waiting(y, f):
    return f - y * np.exp(f), 1 - y * np.exp(f), -y * np.exp(f)


def visit(m, V, a, h, y, tau, nu, alpha, residual=True, with_h=False, whole=False):
    s, mu = a @ V @ a, a @ m
    c = 1 - alpha * tau * s
    mean, left = (mu - alpha * nu * s) / c, s / c
    d1, d2 = (float(d) for d in moments(y, mean, left + residual * h, alpha))
    shrink = 1 + alpha * d2 * (left + with_h * h)
    new_tau, new_nu = -d2 / shrink, (d1 - d2 * mean) / shrink
    dtau, dnu, Va = new_tau - tau * (not whole), new_nu - nu * (not whole), V @ a
    return m + Va * (dnu - dtau * mu) / (1 + dtau * s), V - np.outer(Va, Va) * dtau / (1 + dtau * s), new_tau, new_nu


def finite_differences(y, f, step=1e-5):
    log_p = lambda f: waiting(y, f)[0]
    ahead, here, behind = log_p(f + step), log_p(f), log_p(f - step)
    return here, (ahead - behind) / (2 * step), waiting(y, f)[2]


def slopes_by_complex_steps(y, f):
    return waiting(y, f)[0], np.imag(waiting(y, f + 1e-30j)[0]) / 1e-30, np.imag(waiting(y, f + 1e-30j)[1]) / 1e-30


def solved(solve):
    """A visit that solves with the new precision: right, but not in O(M²)."""
    def anew(m, V, a, h, y, tau, nu, alpha):
        new_tau, new_nu = visit(m, V, a, h, y, tau, nu, alpha)[2:]
        larger = np.eye(len(m)) + (new_tau - tau) * np.outer(V @ a, a)
        return solve(larger, m + (new_nu - nu) * V @ a), solve(larger, V), new_tau, new_nu

    return anew


def otherwise(**options):
    return lambda *arguments: mean_step(*arguments, **options)


def loses():
    """Power means by Gauss-Hermite, with SciPy's Poisson; at α = 0 in closed form."""
    x, w = np.polynomial.hermite_e.hermegauss(150)
    roots = np.sqrt(poisson.pmf(np.arange(1200)[:, None], 100 * np.exp(0.5 * x))) @ (w / w.sum())
    return [np.log((roots**2).sum()), 100 * (1 - np.exp(0.125))]


POWERS, SPARSE, FULL = np.array([0.0, 0.5, 1.0]), np.array([-90.0, -70.0, -60.0]), np.array([-88.0, -87.5, -87.0])
RIGHT = {
    "bp-1-dispersion": [MEAN, VARIANCE, 1 / (GROWTH - 1)],
    "bp-2-noise": np.exp(11 / 3),
    "bp-4-means": mean_step,
    "bp-3-wild": (3.0, -1 / 6, 8.0),
    "bp-5-likelihood": waiting,
    "bp-6-sequential": visit,
    "bp-7-missing": (POWERS, SPARSE, FULL),
    "bp-8-loses": loses(),
}
ALSO_RIGHT = [
    ("bp-1-dispersion", ["113", "3760", "3,52"]),
    ("bp-2-noise", "39.1"),
    ("bp-4-means", lambda *given: mean_step(*given) + 1e-9),
    ("bp-3-wild", ["3", "-1/6", "8"]),
    ("bp-7-missing", (np.linspace(0, 1, 5), np.linspace(-9, -8.5, 5), np.full(5, -8.0))),
    ("bp-7-missing", (POWERS, np.array([-119.0, -70.0, -60.0]), np.array([-120.0, -119.0, -118.0]))),     # three digits
    ("bp-7-missing", (POWERS, [-18.2, -18.2, -18.2], [-18.2, -18.2, -18.2])),       # nothing is missing, to three digits
    ("bp-7-missing", (POWERS, [-7.98, -7.95, -7.93], [-7.98, -7.95, -7.93])),
    ("bp-5-likelihood", slopes_by_complex_steps),
    ("bp-8-loses", np.array(loses())),
]
WRONG = [
    ("bp-1-dispersion", [5.0, 1.0, 1.0], "log-normal"),
    ("bp-1-dispersion", [MEAN, 1.0, 1.0], "two parts"),
    ("bp-1-dispersion", [MEAN, VARIANCE, 2.0], "square of the mean"),
    ("bp-1-dispersion", [MEAN, VARIANCE], "3"),
    ("bp-2-noise", 1.0, "how many nats"),
    ("bp-4-means", lambda *given: None, "returns nothing yet"),
    ("bp-4-means", full_target, "target ν*"),
    ("bp-4-means", otherwise(wider=False), "the larger one"),
    ("bp-4-means", otherwise(around="posterior"), "mean of the cavity"),
    ("bp-4-means", otherwise(residual=False), "residual variance"),
    ("bp-4-means", lambda A, h, y, tau, nu, alpha, likelihood: np.full(15, np.nan), "are NaN"),
    ("bp-4-means", lambda A, h, y, tau, nu, alpha, likelihood: nu, "Print both sides"),
    ("bp-3-wild", (1.0, 1.0, 1.0), "in r²"),
    ("bp-3-wild", (3.0, 1.0, 1.0), "into the curvature"),
    ("bp-5-likelihood", lambda y, f: (-y * np.exp(f), *waiting(y, f)[1:]), "rate in front"),
    ("bp-5-likelihood", lambda y, f: (waiting(y, f)[0] + np.log(y), *waiting(y, f)[1:]), "density of log y"),
    ("bp-5-likelihood", lambda y, f: waiting(y, -f), "mean waiting time"),
    ("bp-5-likelihood", changed(waiting, 0, lambda l: l + 1), "the density given in the exercise"),
    ("bp-5-likelihood", changed(waiting, 1, lambda d: 2 * d), "first derivative"),
    ("bp-5-likelihood", changed(waiting, 2, lambda d: -d), "log-concave"),
    ("bp-5-likelihood", changed(waiting, 2, lambda d: 2 * d), "second derivative in f"),
    ("bp-5-likelihood", finite_differences, "exact up to rounding"),
    ("bp-6-sequential", lambda *given: visit(*given, residual=False), "h is missing"),
    ("bp-6-sequential", lambda *given: visit(*given, with_h=True), "Csató"),
    ("bp-6-sequential", changed(visit, 3, lambda nu: nu + 1), "in this order"),
    ("bp-6-sequential", lambda *given: visit(*given, whole=True), "counted twice"),
    ("bp-6-sequential", changed(visit, 0, lambda m: m + 1), "Sherman and Morrison"),
    ("bp-6-sequential", solved(lambda A, b: np.linalg.solve(A, b)), "O(M³)"),
    ("bp-6-sequential", solved(lambda A, b: np.linalg.inv(A) @ b), "O(M³)"),
    ("bp-6-sequential", solved(lambda A, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(A), b)), "O(M³)"),
    ("bp-7-missing", (POWERS, SPARSE), "as a tuple of 3"),
    ("bp-7-missing", (POWERS[:2], SPARSE[:2], FULL[:2]), "S at least 3"),
    ("bp-7-missing", (SPARSE, FULL, POWERS), "between 0 and 1"),
    ("bp-7-missing", (POWERS, SPARSE, np.full(3, -np.inf)), "is infinite"),
    ("bp-7-missing", (POWERS[::-1], SPARSE[::-1], FULL[::-1]), "rise from 0 to 1"),
    ("bp-7-missing", (POWERS, FULL - 1 / 3, FULL - 1 / 3), "really sparse"),
    ("bp-7-missing", (POWERS, np.full(3, -90 - 1 / 3), FULL), "was the power passed on"),
    ("bp-7-missing", (POWERS, SPARSE + 10, FULL), "both are bounds"),
    ("bp-7-missing", (POWERS, SPARSE + 10, FULL), "has each fit converged"),
    ("bp-7-missing", (POWERS, SPARSE - 20 * POWERS * 4, FULL), "learnt anew"),
    ("bp-8-loses", [1.0, 1.0], "into the tail"),
    ("bp-8-loses", [loses()[0], 1.0], "the first is right"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)


def test_the_solvers_are_back_after_the_check(capsys):
    solvers = np.linalg.solve, scipy.linalg.cholesky
    check("bp-6-sequential", solved(lambda A, b: np.linalg.solve(A, b)))
    assert (np.linalg.solve, scipy.linalg.cholesky) == solvers
