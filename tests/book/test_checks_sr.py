"""The checkers of chapter "Sparse regression: one family": right answers pass, usual mistakes are named."""

import numpy as np
import pytest
from checks import sr
from conftest import checker_tests

from pepcore import power_ep
from pepcore.kernels import SquaredExponential


def rise(A, h, y, noise, alpha, weight=1.0, determinant=1.0, share=None, factor_too=True):
    """The slope of the evidence in α in O(N M²), and what the usual mistakes make of it."""
    d, x = alpha * h + noise, h / noise
    C = np.linalg.cholesky(np.eye(len(A)) + (A / d) @ A.T)
    B = np.linalg.solve(C, A / d)
    u, kappa = y / d - B.T @ (B @ y), 1 / d - (B**2).sum(axis=0)
    believed = 0.5 * np.sum((h if share is None else share) * (u**2 - determinant * kappa))
    if alpha == 0:
        return believed + weight * np.sum(x / 2 + x**2 / 4)
    paid = -(1 - alpha) / (2 * alpha) * x / (1 + alpha * x) + factor_too * np.log1p(alpha * x) / (2 * alpha**2)
    return believed + weight * paid.sum()


def rise_by_inversion(A, h, y, noise, alpha):
    """The same by the matrix of the data."""
    inverse = np.linalg.inv(A.T @ A + np.diag(alpha * h + noise))
    given = A, h, y, noise, alpha
    return 0.5 * h @ ((inverse @ y) ** 2 - np.diag(inverse)) + rise(*given) - rise(*given, weight=0.0)


def with_limit_forgotten(A, h, y, noise, alpha):
    """The formula of the slope at every power, 0 included."""
    x = h / noise
    paid = np.log1p(alpha * x) / alpha - (1 - alpha) * x / (1 + alpha * x)
    return rise(A, h, y, noise, alpha, weight=0.0) + paid.sum() / (2 * alpha)


def left_out(A, y, d):
    """By leaving each datum out in turn."""
    K, found = A.T @ A + np.diag(d), []
    for n in range(len(y)):
        rest = np.arange(len(y)) != n
        w = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, n])
        found.append((y[n] - w @ y[rest], K[n, n] - w @ K[rest, n]))
    return np.array([r for r, _ in found]), np.array([v for _, v in found])


def standardised(A, y, d):
    r, v = left_out(A, y, d)
    return r / np.sqrt(v)


def in_one_pass(A, y, d):
    V = np.linalg.inv(np.eye(len(A)) + (A / d) @ A.T)
    u = (y - A.T @ V @ (A @ (y / d))) / d
    return u / np.sqrt(1 / d - (A * (V @ A)).sum(axis=0) / d**2)


def by_inversion(A, y, d):
    inverse = np.linalg.inv(A.T @ A + np.diag(d))
    return inverse @ y / np.sqrt(np.diag(inverse))


def posterior_residuals(A, y, d):
    return y - A.T @ np.linalg.solve(np.eye(len(A)) + (A / d) @ A.T, A @ (y / d))


def unequal(A, H, y, S):
    root = np.sqrt(S)
    values, U = np.linalg.eigh(H / np.outer(root, root))
    return (A / root) @ U, np.maximum(values, 0), U.T @ (y / root)


def rotated_only(A, H, y, S):
    values, U = np.linalg.eigh(H)
    return A @ U, values, U.T @ y


def residual_forgotten(A, H, y, S, turned=False):
    values, U = np.linalg.eigh(H)
    if turned:
        values, U = values[::-1], -U[:, ::-1]
    return (A / np.sqrt(S)) @ U, values, U.T @ (y / np.sqrt(S))


def only_at_one(A, H, y, S):
    values, U = np.linalg.eigh(H + np.diag(S))  # noise and residual in one
    scale = np.sqrt(values[0])
    return A @ U / scale, values / values[0] - 1, U.T @ y / scale


def surrogate(m, V, log_evidence, prior_too=False, mean=None, shift=0.0):
    precision = np.linalg.inv(V)
    W = np.linalg.cholesky(precision - (0 if prior_too else 1) * np.eye(len(m))).T
    y = np.linalg.solve(W.T, precision @ m if mean is None else mean)
    S = W @ W.T + np.eye(len(m))
    unit = -0.5 * (len(m) * np.log(2 * np.pi) + np.linalg.slogdet(S)[1] + y @ np.linalg.solve(S, y))
    c = np.exp(2 * (unit - log_evidence) / len(m) + shift)
    return np.sqrt(c) * W, np.sqrt(c) * y, c


EXPECTED = np.array([1.5, 0.5 * np.log(2.5), 0.0])
ONES = np.ones(40)
X = np.random.default_rng(4).normal(size=(60, 2))
TARGETS = np.sin(2 * X[:, 0])
PROBLEM = SquaredExponential(1.2, 0.9), X[:6], X, (TARGETS - TARGETS.mean()) / TARGETS.std()
EVIDENCES = np.array([power_ep.regression(*PROBLEM, noise=0.3, alpha=alpha).log_evidence for alpha in (0, 0.25, 0.5, 0.75, 1)])
FOUR_DIGITS = [power_ep.regression(*PROBLEM, noise=0.01, alpha=alpha).log_evidence for alpha in (0, 0.25, 0.5, 0.75, 1)]
RIGHT = {
    "sr-1-penalty": EXPECTED,
    "sr-2-rise": rise,
    "sr-3-loo": in_one_pass,
    "sr-4-unequal": unequal,
    "sr-5-private": ONES,
    "sr-6-surrogate": surrogate,
    "sr-7-yours": (*PROBLEM, 0.3, EVIDENCES),
}
ALSO_RIGHT = [
    ("sr-7-yours", (*PROBLEM, 0.3, [float(f"{value:.4g}") for value in EVIDENCES])),
    ("sr-7-yours", (*PROBLEM, 0.01, [float(f"{value:.4g}") for value in FOUR_DIGITS])),
    ("sr-4-unequal", lambda *given: list(unequal(*given))),
    ("sr-6-surrogate", lambda *given: list(surrogate(*given))),
]
WRONG = [
    ("sr-2-rise", lambda *given: rise(*given, weight=0.0), "the penalty is missing"),
    ("sr-2-rise", lambda *given: rise(*given, weight=-1.0), "wrong sign"),
    ("sr-2-rise", lambda *given: -rise(*given), "energy"),
    ("sr-2-rise", lambda *given: rise(*given, determinant=0.0), "determinant"),
    ("sr-2-rise", lambda *given: rise(*given, share=1.0), "grow by one"),
    ("sr-2-rise", lambda *given: rise(*given, factor_too=False), "in front of the logarithm"),
    ("sr-2-rise", lambda *given: 0.0, "it is off by"),
    ("sr-2-rise", lambda A, h, y, s, a: rise(A, h, y, s, a) if a else np.inf, "divides by zero"),
    ("sr-2-rise", with_limit_forgotten, "at α = 0 it divides by zero"),
    ("sr-2-rise", lambda A, h, y, s, a: with_limit_forgotten(A, h, y, s, np.float64(a)), "at α = 0 it divides by zero"),
    ("sr-2-rise", lambda A, h, y, s, a: 1 / 0, "ZeroDivisionError"),
    ("sr-2-rise", lambda A, h, y, s, a: rise(A, h, y, s, a) if a else None, "returns nothing in one of the cases"),
    ("sr-2-rise", lambda A, h, y, s, a: rise(A, h, y, s, a) if a else "infinite", "of type str"),
    ("sr-2-rise", lambda A, h, y, *rest: rise(A, h, y, *rest) if len(y) < 1000 else 0.0, "wrong for N = 1500"),
    ("sr-2-rise", rise_by_inversion, "of size N × N"),
    ("sr-3-loo", lambda *given: np.abs(standardised(*given)), "keeps its sign, y minus"),
    ("sr-3-loo", lambda *given: -standardised(*given), "reversed"),
    ("sr-3-loo", posterior_residuals, "has seen datum n itself"),
    ("sr-3-loo", lambda A, y, d: posterior_residuals(A, y, d) / np.sqrt(d), "has seen datum n itself"),
    ("sr-3-loo", lambda *given: left_out(*given)[0], "standard deviation"),
    ("sr-3-loo", lambda *given: standardised(*given) ** 2, "keeps its sign"),
    ("sr-3-loo", lambda A, y, d: y, "Take the site of datum n out"),
    ("sr-3-loo", by_inversion, "of size N × N"),
    ("sr-4-unequal", lambda A, H, y, S: A, "three arrays"),
    ("sr-4-unequal", rotated_only, "isotropic first"),
    ("sr-4-unequal", residual_forgotten, "H_b was left as it was"),
    ("sr-4-unequal", lambda *given: residual_forgotten(*given, turned=True), "H_b was left as it was"),
    ("sr-4-unequal", only_at_one, "at α = 1 only"),
    ("sr-4-unequal", lambda *given: (unequal(*given)[0], -unequal(*given)[1], unequal(*given)[2]), "cannot be negative"),
    ("sr-4-unequal", lambda A, H, y, S: (*unequal(A, H, y, S)[:2], y), "so that the noise is 1 everywhere"),
    ("sr-5-private", ONES[:3], "one power for each"),
    ("sr-5-private", 2 * ONES, "between 0 and 1"),
    ("sr-5-private", 0 * ONES, "say of the power of a single datum"),
    ("sr-5-private", 0.5 * ONES, "up and down"),
    ("sr-6-surrogate", lambda *given: surrogate(*given)[:2], "three things"),
    ("sr-6-surrogate", lambda *given: (*surrogate(*given)[:2], -1.0), "must be positive"),
    ("sr-6-surrogate", lambda *given: surrogate(*given, prior_too=True), "brings its own part itself"),
    ("sr-6-surrogate", lambda *given: (2 * surrogate(*given)[0], *surrogate(*given)[1:]), "is not that of the posterior"),
    ("sr-6-surrogate", lambda m, V, log_evidence: surrogate(m, V, log_evidence, mean=m), "erratum bui-2"),
    ("sr-6-surrogate", lambda m, V, log_evidence: surrogate(m, V, log_evidence, mean=0 * m), "the posterior mean is not m"),
    ("sr-6-surrogate", lambda *given: surrogate(*given, shift=0.1), "c is still free"),
    ("sr-2-rise", lambda *_: None, "returns nothing yet"),
    ("sr-7-yours", (*PROBLEM, 0.3, -EVIDENCES), "energies"),
    ("sr-7-yours", (*PROBLEM, 0.3, EVIDENCES[::-1]), "reversed"),
    ("sr-7-yours", (*PROBLEM, 0.3, EVIDENCES / 60), "per datum"),
    ("sr-7-yours", (*PROBLEM, 0.3, [float(f"{value:.2g}") for value in EVIDENCES]), "Was anything learnt"),
    ("sr-7-yours", (*PROBLEM, 0.4, EVIDENCES), "Was anything learnt"),
    ("sr-7-yours", (*PROBLEM[:3], PROBLEM[3] + 20, 0.3, EVIDENCES), "y has mean 20"),
    ("sr-7-yours", (*PROBLEM[:3], PROBLEM[3] + 0.2, 0.3, EVIDENCES), "standardise it first"),
    ("sr-7-yours", (*PROBLEM[:3], 8 * PROBLEM[3], 0.3, EVIDENCES), "standard deviation 8"),
    ("sr-7-yours", (*PROBLEM[:3], 0.3 * PROBLEM[3], 0.3, EVIDENCES), "standardise it first"),
    ("sr-7-yours", (*PROBLEM, 0.3, EVIDENCES[:3]), "shape (5,)"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_the_rise_of_the_evidence_is_the_slope_of_the_evidence(alpha):
    A, h, y = sr.random_problem(1)

    def log_evidence(alpha):
        return sr.log_normal(y, A.T @ A + np.diag(alpha * h + 0.2)) - sr.penalty(h, 0.2, alpha)

    t = 1e-4
    if alpha == 0:       # one-sided, to the third order
        values = [log_evidence(k * t) for k in range(4)]
        slope = np.dot([-11 / 6, 3, -3 / 2, 1 / 3], values) / t
    else:
        slope = (log_evidence(alpha + t) - log_evidence(alpha - t)) / (2 * t)
    assert rise(A, h, y, 0.2, alpha) == pytest.approx(slope, rel=1e-5) and slope > 0
