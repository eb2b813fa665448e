"""The checkers of chapter "Gaussian processes and the feature map": right answers pass, usual mistakes are named."""

import numpy as np
from checks import gp
from conftest import checker_tests
from exercises import check

from pepcore.features import feature_map
from pepcore.kernels import SquaredExponential


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
KERNEL, INPUTS = SquaredExponential(1.3, 0.7), np.random.default_rng(5).normal(size=(60, 2))
PLACES = [INPUTS[:M] for M in gp.SIZES]
MISSED = np.array([feature_map(KERNEL, Z, INPUTS).h.sum() / (1.3 * 60) for Z in PLACES])
SMOOTH = SquaredExponential(1.0, 50.0)      # here five pseudo-inputs miss nothing but what the jitter lets them miss
RIGHT = {
    "gp-1-one-datum": (1.6 * k, np.sqrt(1 - 0.8 * k**2)),
    "gp-2-half": np.sqrt(np.log(2)),
    "gp-3-chain": solve_chain,
    "gp-4-pathwise": pathwise,
    "gp-5-pull-back": back_through_cholesky(mirror),
    "gp-6-clothes": lambda gamma, beta, K: (K @ gamma, K - K @ beta @ K),
    "gp-8-yours": (KERNEL, INPUTS, PLACES, MISSED),
}
ALSO_RIGHT = [
    ("gp-8-yours", (KERNEL, INPUTS, PLACES, [float(f"{share:.3g}") for share in MISSED])),
    ("gp-8-yours", (SMOOTH + SMOOTH, INPUTS, tuple(PLACES), [1e-6, 1e-6, 1e-6, 2e-6])),
]
WRONG = [
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
    ("gp-5-pull-back", lambda L, T: 0 * T, "Which entries of L are free"),
    ("gp-6-clothes", lambda gamma, beta, K: (K @ gamma, K @ beta @ K), "explained"),
    ("gp-6-clothes", lambda gamma, beta, K: (K @ gamma, K), "prior included"),
    ("gp-6-clothes", lambda gamma, beta, K: K @ gamma, "the mean (M,) and the covariance"),
    ("gp-8-yours", (KERNEL, INPUTS, MISSED), "a tuple of 4"),
    ("gp-8-yours", (KERNEL, INPUTS, PLACES, [0.5, 0.4, 0.3]), "four shares"),
    ("gp-8-yours", (KERNEL, INPUTS[:10], PLACES, MISSED), "50 to 1000 rows"),
    ("gp-8-yours", (KERNEL, np.zeros((1001, 2)), PLACES, MISSED), "50 to 1000 rows"),
    ("gp-8-yours", (KERNEL, INPUTS, PLACES[:3], MISSED), "four arrays of pseudo-inputs"),
    ("gp-8-yours", (KERNEL, INPUTS, PLACES[::-1], MISSED), "M = 5, 10, 20, 40 in this order"),
    ("gp-8-yours", (KERNEL, INPUTS, PLACES, np.zeros(4)), "nothing is missed"),
    ("gp-8-yours", (KERNEL, INPUTS, PLACES, 60 * 1.3 * MISSED), "lies between 0 and 1"),
    ("gp-8-yours", (KERNEL, INPUTS, PLACES, 1.3 * MISSED), "per row"),
    ("gp-8-yours", (KERNEL, INPUTS, PLACES, 100 * MISSED), "per cent"),
    ("gp-8-yours", (KERNEL, INPUTS, PLACES, 1 - MISSED), "the features explain"),
    ("gp-8-yours", (KERNEL, INPUTS, PLACES, np.sqrt(MISSED)), "a variance already"),
    ("gp-8-yours", (KERNEL, INPUTS, PLACES, [0.9] * 4), "for M = 5, 10, 20, 40 this is not the share"),
    ("gp-8-yours", (KERNEL, INPUTS, PLACES, [*MISSED[:3], 0.9 * MISSED[3]]), "for M = 40 this is not the share"),
    ("gp-8-yours", (KERNEL, INPUTS, PLACES, MISSED[::-1]), "reversed"),
    ("gp-8-yours", (1.0, INPUTS, PLACES, MISSED), "comes the kernel"),
    ("gp-6-clothes", lambda gamma, beta, K: (np.linalg.solve(K, gamma), K), "the units"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)


def test_random_rows_are_not_good_enough_for_the_research_exercise(capsys):
    _, X = gp.nystrom_problem()
    assert not check("gp-7-nystrom", X[:20])
    assert "miss" in capsys.readouterr().out
    for twice in (np.zeros((20, 10)), X[[*range(19), 4]], X[[*range(19), 4]] + 1e-4 * np.eye(20, 10)):
        assert not check("gp-7-nystrom", twice)
        assert "(nearly) coincide" in capsys.readouterr().out
