"""The checkers of chapter "Sparse EP by projection": right answers pass, usual mistakes are named."""

import numpy as np
from checks import cs
from conftest import changed, checker_tests

from pepcore import datasets


def include(alpha, C, k, q, r, below=1.0, sign=1.0, through=True):
    s = np.append(C @ k if through else k, below)
    return np.append(alpha, 0.0) + q * s, np.pad(C, (0, 1)) + sign * r * np.outer(s, s)


def forget(alpha, C, K, i):
    r = np.arange(len(K)) != i
    precision = np.linalg.inv(C + np.linalg.inv(K))
    covariance = np.linalg.inv(precision[np.ix_(r, r)])
    return covariance @ (precision @ alpha)[r], covariance - np.linalg.inv(K[np.ix_(r, r)])


def marginalise(alpha, C, K, i):
    r = np.arange(len(K)) != i
    R = np.linalg.solve(K[np.ix_(r, r)], K[r])
    return R @ alpha, R @ C @ R.T


def drop(alpha, C, K, i):
    return np.delete(alpha, i), np.delete(np.delete(C, i, axis=0), i, axis=1)


def project(alpha, C, K, k, own, q, r, factor=lambda r, h, variance: 1 / (1 + r * h)):
    e = np.linalg.solve(K, k)
    s, eta = C @ k + e, factor(r, own - k @ e, own + k @ C @ k)
    return alpha + q * eta * s, C + r * eta * np.outer(s, s)


def projected_with(factor):
    return lambda *arguments: project(*arguments, factor=factor)


def without_newcomer(alpha, C, K, k, own, q, r):
    eta = 1 / (1 + r * (own - k @ np.linalg.solve(K, k)))
    return alpha + q * eta * C @ k, C + r * eta * np.outer(C @ k, C @ k)


def lean(P, K, i, sign=1.0):
    r = np.arange(len(K)) != i
    return P[:, r] + sign * np.outer(P[:, i], np.linalg.solve(K[np.ix_(r, r)], K[r, i]))


def farthest_first():
    x, line = datasets.snelson_like(seed=0, N=100).X[:, 0], [50]
    while len(line) < 100:
        distance = np.abs(x[:, None] - x[line]).min(axis=1)
        distance[line] = -1.0
        line.append(int(np.argmax(distance)))
    return line


q = np.sqrt(2 / (5 * np.pi))
RIGHT = {
    "cs-1-first": (q, -(q**2), q**2 / (1 - 4 * q**2)),
    "cs-2-include": include,
    "cs-3-prune": forget,
    "cs-4-project": project,
    "cs-5-disguise": (0.7, 0.45, 6.0),
    "cs-6-directions": lean,
    "cs-7-nystrom": ([0.0], [5.0], 5.0, 0.1),
    "cs-8-order": farthest_first(),
}
ALSO_RIGHT = [
    ("cs-1-first", [0.36, -0.13, 0.26]),
    ("cs-2-include", lambda *given: list(include(*given))),
    ("cs-3-prune", lambda *given: list(forget(*given))),
    ("cs-4-project", lambda *given: list(project(*given))),
    ("cs-7-nystrom", [[0.0], [5.0], 5.0, 0.1]),
]
WRONG = [
    ("cs-1-first", (np.sqrt(2 / np.pi), -2 / np.pi, 1.0), "blur"),
    ("cs-1-first", (q, q**2, 0.3), "wrong sign"),
    ("cs-1-first", (q, -(q**2), q**2), "not −r"),
    ("cs-1-first", (0.36, -0.13, 0.25), "third number"),
    ("cs-2-include", lambda *given: include(*given, below=0.0), "last element of g is 1: the newcomer acts too"),
    ("cs-2-include", lambda *given: include(*given, through=False), "g holds C k above the 1, not k"),
    ("cs-2-include", lambda *given: include(*given, sign=-1.0), "C loses"),
    ("cs-2-include", changed(include, 1, lambda C: 2 * C), "r g gᵀ"),
    ("cs-2-include", lambda *given: (np.zeros(5), np.zeros((5, 5))), "by q g and r g gᵀ"),
    ("cs-2-include", lambda *given: include(*given)[0], "as a tuple"),
    ("cs-2-include", lambda *given: None, "returns nothing"),
    ("cs-3-prune", marginalise, "marginal"),
    ("cs-3-prune", drop, "dropped"),
    ("cs-4-project", projected_with(lambda r, h, variance: 1.0), "without η"),
    ("cs-4-project", projected_with(lambda r, h, variance: 1 / (1 + r * variance)), "not the predictive"),
    ("cs-4-project", projected_with(lambda r, h, variance: 1 + r * h), "one over"),
    ("cs-4-project", projected_with(lambda r, h, variance: 1 / (1 - r * h)), "sign in η"),
    ("cs-4-project", without_newcomer, "ĝ lacks ê"),
    ("cs-4-project", lambda *given: (np.zeros(4), np.zeros((4, 4))), "ĝ = C k + K⁻¹k"),
    ("cs-5-disguise", (0.3, 0.45, 6.0), "against each other"),
    ("cs-5-disguise", (0.7, 0.25, 6.0), "not ρ"),
    ("cs-5-disguise", (0.7, 0.45, 1 / 6), "ratio round"),
    ("cs-6-directions", lambda P, K, i: np.delete(P, i, axis=1), "column was dropped"),
    ("cs-6-directions", lambda P, K, i: lean(P, K, i, sign=-1.0), "sign is turned"),
    ("cs-6-directions", lambda P, K, i: P, "one column per basis vector"),
    ("cs-7-nystrom", ([0.0], [0.1], 0.1, 0.1), "the variance is"),
    ("cs-7-nystrom", ([0.0], [5.0], 5.0, -1.0), "between"),
    ("cs-8-order", np.arange(100), "its distance is"),
    ("cs-8-order", np.zeros(100), "once"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)


def test_the_process_of_the_checks_is_a_proper_one():
    K, alpha, C = cs.random_process(0)
    covariance = K + K @ C @ K
    assert alpha.shape == (4,)
    assert np.linalg.eigvalsh(covariance).min() > 0
    assert np.linalg.eigvalsh(K - covariance).min() > 0
