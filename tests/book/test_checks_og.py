"""The checkers of chapter "Orthogonal natural gradients": right answers pass, usual mistakes are named."""

import numpy as np
from conftest import checker_tests

from figures.experiments.salimbeni2018 import small_problem


def residual(kernel, beta, gamma, X):
    explained = np.linalg.solve(kernel(beta), kernel(beta, gamma))
    return kernel(gamma, X) - explained.T @ kernel(beta, X), kernel(gamma) - explained.T @ kernel(beta, gamma)


def spread(V):
    return np.trace(V) - np.linalg.slogdet(V)[1] - len(V)


def divergence(w, V, g, A, K):
    return 0.5 * (w @ w + 2 * w @ A @ g + g @ K @ g + spread(V))


def natural_step(m, V, A, d1, d2, step, prior=1.0, sign=-1.0):
    P = np.linalg.inv(V)
    P_new = (1 - step) * P + step * (prior * np.eye(len(m)) + sign * (A * d2) @ A.T)
    b_new = (1 - step) * P @ m + step * A @ (d1 - d2 * (A.T @ m))
    return np.linalg.solve(P_new, b_new), np.linalg.inv(P_new)


def averaged_moments(m, V, A, d1, d2, step):
    m1, V1 = natural_step(m, V, A, d1, d2, 1.0)
    return (1 - step) * m + step * m1, (1 - step) * V + step * V1


def precision_instead(*arguments):
    m, V = natural_step(*arguments)
    return m, np.linalg.inv(V)


def without_mean(m, V, A, d1, d2, step):
    _, V_new = natural_step(m, V, A, d1, d2, step)
    return V_new @ ((1 - step) * np.linalg.solve(V, m) + step * A @ d1), V_new


def limit(A, B, R, noise, over=2.0, inner=None):
    inner = A.T @ A + noise * np.eye(A.shape[1]) if inner is None else inner
    H = R + B @ np.linalg.solve(inner, B.T)
    return over / np.linalg.eigvals(np.linalg.solve(R, H)).real.max()


def fit(kernel, Z, X, y, noise):
    Q = kernel(X, Z) @ np.linalg.solve(kernel(Z) + 1e-6 * np.eye(len(Z)), kernel(Z, X))
    S = Q + noise * np.eye(len(y))
    return 0.5 * y @ np.linalg.solve(S, y), 0.5 * np.linalg.slogdet(S)[1], (np.trace(kernel(X)) - np.trace(Q)) / (2 * noise)


def gain(kernel, beta, gamma, X, y, noise, sign=1.0, terms=1):
    few, all_points = (fit(kernel, Z, X, y, noise) for Z in (beta, np.vstack([beta, gamma])))
    return sign * (sum(few[:terms]) - sum(all_points[:terms]))


def greedy_places():
    X, y = small_problem.data()
    kernel, noise = small_problem.KERNEL, small_problem.NOISE
    beta, _ = small_problem.points(X, 10, 0)
    candidates, chosen = np.linspace(0, 10, 101)[:, None], np.empty((0, 1))
    for _ in range(10):
        gains = [gain(kernel, beta, np.vstack([chosen, place]), X, y, noise) for place in candidates[:, None]]
        chosen = np.vstack([chosen, candidates[int(np.argmax(gains))]])
    return chosen


RIGHT = {
    "og-1-shift": (6, 9, 2),
    "og-2-residual": residual,
    "og-3-divergence": divergence,
    "og-4-step": natural_step,
    "og-5-limit": limit,
    "og-6-gain": gain,
    "og-7-places": greedy_places(),
}
ALSO_RIGHT = [
    ("og-2-residual", lambda *given: list(residual(*given))),
    ("og-4-step", lambda *given: list(natural_step(*given))),
]
WRONG = [
    ("og-1-shift", (1.5, 9, 2), "natural parameter"),
    ("og-1-shift", (6, 18, 2), "½"),
    ("og-1-shift", (6, 9, 0.5), "inverse"),
    ("og-2-residual", lambda *given: None, "returns nothing"),
    ("og-2-residual", lambda kernel, beta, gamma, X: kernel(gamma, X), "two things"),
    ("og-2-residual", lambda kernel, beta, gamma, X: (kernel(gamma, X), kernel(gamma)), "as it stands"),
    ("og-2-residual", lambda *given: (residual(*given)[0].T, residual(*given)[1]), "other way round"),
    ("og-2-residual", lambda kernel, *given: (residual(kernel, *given)[0], kernel(given[1])), "R is K_γ"),
    ("og-3-divergence", lambda *given: 2 * divergence(*given), "½ is missing"),
    ("og-3-divergence", lambda w, V, g, A, K: divergence(w, V, g, 0 * A, K), "cross term"),
    ("og-3-divergence", lambda w, V, g, A, K: divergence(w, V, g, 0 * A, K - A.T @ A), "First find m"),
    ("og-3-divergence", lambda w, V, g, A, K: divergence(w, V, g, A, K) - 0.5 * spread(V), "share"),
    ("og-4-step", precision_instead, "Turn it round"),
    ("og-4-step", lambda *given: natural_step(*given, prior=0.0), "prior is missing"),
    ("og-4-step", lambda *given: natural_step(*given, sign=1.0), "τ* = −d2"),
    ("og-4-step", averaged_moments, "covariances were averaged"),
    ("og-4-step", without_mean, "second term"),
    ("og-4-step", lambda *given: (averaged_moments(*given)[0], natural_step(*given)[1]), "means were averaged"),
    ("og-5-limit", lambda *given: limit(*given, over=1.0), "|1 − ελ|"),
    ("og-5-limit", lambda A, B, R, noise: limit(A, B, R, noise, inner=noise * np.eye(A.shape[1])), "holds m still"),
    ("og-5-limit", lambda A, B, R, noise: 1.0, "not the limit"),
    ("og-6-gain", lambda *given: gain(*given, sign=-1.0), "sign"),
    ("og-6-gain", lambda *given: gain(*given, sign=2.0), "½"),
    ("og-6-gain", lambda *given: gain(*given, terms=3), "coupled basis"),
    ("og-6-gain", lambda *given: gain(*given, terms=2), "complexity"),
    ("og-7-places", np.linspace(0, 10, 10)[:, None], "the bound at its optimum"),
    ("og-7-places", np.full((10, 1), np.inf), "finite"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)
