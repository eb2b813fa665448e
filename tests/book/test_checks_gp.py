"""The checkers of chapter "Gaussian processes and the feature map": right answers pass, usual mistakes are named."""

import numpy as np
from checks import gp
from conftest import checker_tests
from exercises import check


def solve_chain(K, y):
    L = np.linalg.cholesky(K)
    return -0.5 * np.linalg.solve(L, y) ** 2 - np.log(np.diag(L)) - 0.5 * np.log(2 * np.pi)


def leave_one_out(K, y):
    terms = []
    for n in range(len(y)):
        rest = np.arange(len(y)) != n
        weights = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, n])
        variance = K[n, n] - weights @ K[rest, n]
        terms.append(-0.5 * (np.log(2 * np.pi * variance) + (y[n] - weights @ y[rest]) ** 2 / variance))
    return np.array(terms)


def back_through_cholesky(symmetrise, factor=-0.5):
    def K_uu_bar(L, S):
        inverse = np.linalg.inv(L)
        return factor * inverse.T @ symmetrise(S) @ inverse

    return K_uu_bar


def mirror(S):
    return np.tril(S) + np.tril(S, -1).T


def pathwise(K_sx, K_hat, f_s, f_x, epsilon, y):
    return f_s + K_sx @ np.linalg.solve(K_hat, y - f_x - epsilon)


k = np.exp(-0.5 * 1.5**2)
RIGHT = {
    "gp-1-one-datum": (1.6 * k, np.sqrt(1 - 0.8 * k**2)),
    "gp-2-half": np.sqrt(np.log(2)),
    "gp-3-chain": solve_chain,
    "gp-4-pathwise": pathwise,
    "gp-5-pull-back": back_through_cholesky(mirror),
    "gp-6-clothes": lambda gamma, beta, K: (K @ gamma, K - K @ beta @ K),
}
ALSO_RIGHT = [
    ("gp-1-one-datum", (0.52, 0.96)),
    ("gp-2-half", 0.833),
]
WRONG = [
    ("gp-1-one-datum", (1.6 * k, 1 - 0.8 * k**2), "variance"),
    ("gp-1-one-datum", (2 * k, 1.0), "exact"),
    ("gp-1-one-datum", (1.6 * k, np.sqrt(1.25 - 0.8 * k**2)), "new observation"),
    ("gp-1-one-datum", (1.6 * k, np.sqrt(1 - k**2)), "in the variance the observation is treated as exact"),
    ("gp-1-one-datum", (0.52, 0.946), "in the variance the observation is treated as exact"),
    ("gp-1-one-datum", (0.52, 0.92), "variance"),
    ("gp-1-one-datum", (1.6 * k**2, 0.96), "one half"),
    ("gp-1-one-datum", (0.53, 0.96), "divided by one number"),
    ("gp-1-one-datum", 1.6 * k, "shape"),
    ("gp-2-half", np.sqrt(2 * np.log(2)), "correlation"),
    ("gp-2-half", 1.18, "correlation"),
    ("gp-2-half", np.log(2), "squared"),
    ("gp-2-half", 0.84, "one pseudo-input"),
    ("gp-2-half", -np.sqrt(np.log(2)), "positive"),
    ("gp-3-chain", leave_one_out, "all others"),
    ("gp-3-chain", lambda K, y: solve_chain(K[::-1, ::-1], y[::-1])[::-1], "after it"),
    ("gp-3-chain", lambda K, y: None, "returns nothing"),
    ("gp-4-pathwise", lambda K, Kh, fs, fx, e, y: pathwise(K, Kh, fs, fx, 0 * e, y), "too narrow"),
    ("gp-4-pathwise", lambda K, Kh, fs, fx, e, y: pathwise(K, Kh, fs, fx, -e, y), "signs"),
    ("gp-4-pathwise", lambda K, Kh, fs, fx, e, y: K @ np.linalg.solve(Kh, y), "posterior mean"),
    ("gp-5-pull-back", back_through_cholesky(lambda S: (S + S.T) / 2), "rotations"),
    ("gp-5-pull-back", back_through_cholesky(lambda S: S), "which half"),
    ("gp-5-pull-back", back_through_cholesky(lambda S: mirror(S.T)), "upper"),
    ("gp-5-pull-back", back_through_cholesky(mirror, 0.5), "factor"),
    ("gp-6-clothes", lambda gamma, beta, K: (K @ gamma, K @ beta @ K), "explained"),
    ("gp-6-clothes", lambda gamma, beta, K: (np.linalg.solve(K, gamma), K), "multiply"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)


def test_random_rows_are_not_good_enough_for_the_research_exercise(capsys):
    _, X = gp.nystrom_problem()
    assert not check("gp-7-nystrom", X[:20])
    assert "miss" in capsys.readouterr().out
    assert not check("gp-7-nystrom", np.zeros((20, 10)))
