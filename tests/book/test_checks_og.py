"""The checkers of chapter "Orthogonal natural gradients": right answers pass, usual mistakes are named."""

import numpy as np
from conftest import checker_tests

from figures.experiments.salimbeni2018 import small_problem
from pepcore.kernels import Matern52, SquaredExponential


def of_the_slope(x, variance, lengthscale):
    """Covariance of f(x) with a central difference at zero, over the standard deviation of the slope."""
    kernel, h = SquaredExponential(variance, lengthscale), 1e-4
    ahead, behind = (kernel(x[:, None], np.full((1, 1), end))[:, 0] for end in (h, -h))
    return (ahead - behind) / (2 * h) * lengthscale / np.sqrt(variance)


def nearby(x, variance, lengthscale, d=1e-3):
    """Before the limit, from the kernel itself."""
    kernel, beta, gamma = SquaredExponential(variance, lengthscale), np.zeros((1, 1)), np.full((1, 1), d)
    weight = kernel(beta, gamma)[0, 0] / variance
    r = kernel(x[:, None], gamma)[:, 0] - weight * kernel(x[:, None], beta)[:, 0]
    return r / np.sqrt(variance * (1 - weight**2))


def bell(x, variance, lengthscale):
    return variance * np.exp(-0.5 * (x / lengthscale) ** 2)


def spread(V):
    return np.trace(V) - np.linalg.slogdet(V)[1] - len(V)


def divergence(w, V, g, A, K):
    return 0.5 * (w @ w + 2 * w @ A @ g + g @ K @ g + spread(V))


def walk(start):
    """Natural steps of a half on one datum of one feature, from a precision of `start` times the best: the way left."""
    P_best, b_best, m = 3.0, 4.0, -1.0          # a datum y = 2 with noise 0.5, and the prior
    P, b, way = start * P_best, start * P_best * m, [1.0]
    for _ in range(20):
        P, b = (P + P_best) / 2, (b + b_best) / 2
        way.append((b_best / P_best - b / P) / (b_best / P_best - m))
    return np.array(way)


def near_enough(way):
    return int(np.argmax(way < 0.01))


SURE, WIDE = walk(10.0), walk(0.1)


def errors_of_steps(N, step, R=0.5, r=0.1, noise=0.1):
    """g under repeated natural steps on a toy whose optimum is g = 0: does it come closer each time?"""
    g, found = 1.0, [1.0]
    for _ in range(5):
        g -= step * (R * g + N * r * r * g / noise) / R      # the natural gradient: the plain one over R
        found.append(abs(g))
    return np.array(found)


def largest(works, tries):
    return max(value for value in tries if works(value))


STEPS = np.arange(1, 1000) / 1000
LIMIT = (largest(lambda step: errors_of_steps(20, step)[-1] <= 1 + 1e-9, STEPS),
         largest(lambda N: np.all(np.diff(errors_of_steps(N, 1.0)) < -1e-9), range(1, 20)))


def fit(kernel, Z, X, y, noise, jitter=1e-6):
    Q = kernel(X, Z) @ np.linalg.solve(kernel(Z) + jitter * np.eye(len(Z)), kernel(Z, X))
    S = Q + noise * np.eye(len(y))
    return 0.5 * y @ np.linalg.solve(S, y), 0.5 * np.linalg.slogdet(S)[1], (np.trace(kernel(X)) - np.trace(Q)) / (2 * noise)


def gain(kernel, beta, gamma, X, y, noise, sign=1.0, terms=1, jitter=1e-6):
    few, all_points = (fit(kernel, Z, X, y, noise, jitter) for Z in (beta, np.vstack([beta, gamma])))
    return sign * (sum(few[:terms]) - sum(all_points[:terms]))


def gain_with_relative_jitter(kernel, *given):
    return gain(kernel, *given, jitter=1e-6 * kernel.variance)


def with_weights(kernel, beta, gamma, X, y, noise):
    """The gain by features and the weights of the ridge regression."""
    def fit_of(Z):
        A = np.linalg.solve(np.linalg.cholesky(kernel(Z) + 1e-6 * np.eye(len(Z))), kernel(Z, X))
        m = np.linalg.solve(noise * np.eye(len(Z)) + A @ A.T, A @ y)
        return 0.5 * (np.sum((y - A.T @ m) ** 2) / noise + m @ m)

    return fit_of(beta) - fit_of(np.vstack([beta, gamma]))


def greedy_places():
    X, y = small_problem.data()
    kernel, noise = small_problem.KERNEL, small_problem.NOISE
    beta, _ = small_problem.points(X, 10, 0)
    candidates, chosen = np.linspace(0, 10, 101)[:, None], np.empty((0, 1))
    for _ in range(10):
        gains = [gain(kernel, beta, np.vstack([chosen, place]), X, y, noise) for place in candidates[:, None]]
        chosen = np.vstack([chosen, candidates[int(np.argmax(gains))]])
    return chosen


X = np.random.default_rng(9).normal(size=(60, 2))
POINTS = Matern52(1.1, 0.9), X[:4], X[4:9], X, np.sin(2 * X[:, 0]), 0.2
GAIN = gain(*POINTS)
SMOOTH = SquaredExponential(25.0, 6.0), np.linspace(-1, 1, 6)[:, None] * [1, 0], *POINTS[2:]
RIGHT = {
    "og-1-shift": (6, 9, 2),
    "og-2-residual": of_the_slope,
    "og-3-divergence": divergence,
    "og-4-step": (1 - SURE[1], 1 - WIDE[1], near_enough(SURE), near_enough(WIDE)),
    "og-5-limit": LIMIT,
    "og-6-gain": gain,
    "og-7-places": greedy_places(),
    "og-8-yours": (*POINTS, GAIN),
}
ALSO_RIGHT = [
    ("og-8-yours", (*POINTS, float(f"{GAIN:.3g}"))),
    ("og-2-residual", lambda x, v, l: bell(x, v, l) * x / l / v**0.5),
    ("og-2-residual", lambda *given: [float(f"{value:.6g}") for value in of_the_slope(*given)]),
    ("og-6-gain", with_weights),
    ("og-6-gain", lambda *given: float(f"{gain(*given):.6g}")),
    ("og-8-yours", (*SMOOTH, gain(*SMOOTH))),
    ("og-8-yours", (*SMOOTH, gain_with_relative_jitter(*SMOOTH))),
    ("og-4-step", ("0.0909", "0.909", near_enough(SURE), near_enough(WIDE))),
]
WRONG = [
    ("og-2-residual", lambda *given: None, "returns nothing"),
    ("og-2-residual", lambda x, v, l: 0 * x, "divide first"),
    ("og-2-residual", bell, "kernel seen from beta"),
    ("og-2-residual", lambda *given: -of_the_slope(*given), "comes from the right"),
    ("og-2-residual", lambda x, v, l: x * bell(x, v, l) / l**2, "the limit of r(x)/d"),
    ("og-2-residual", lambda x, v, l: x * bell(x, v, l) / l, "right for a variance of 1"),
    ("og-2-residual", lambda x, v, l: x * bell(x, v, l) / v**0.5, "right for a lengthscale of 1"),
    ("og-2-residual", lambda x, v, l: x / l * v**-0.5 * bell(x, v, l / 2**0.5), "a factor ½"),
    ("og-2-residual", nearby, "not to six digits"),
    ("og-2-residual", lambda x, v, l: x, "To which order in d"),
    ("og-3-divergence", lambda *given: 2 * divergence(*given), "½ is missing"),
    ("og-3-divergence", lambda w, V, g, A, K: divergence(w, V, g, 0 * A, K), "cross term"),
    ("og-3-divergence", lambda w, V, g, A, K: divergence(w, V, g, 0 * A, K - A.T @ A), "First find the m"),
    ("og-3-divergence", lambda w, V, g, A, K: divergence(w, V, g, A, K) - 0.5 * spread(V), "share"),
    ("og-6-gain", lambda *given: gain(*given, sign=-1.0), "sign"),
    ("og-6-gain", lambda *given: gain(*given, sign=2.0), "½"),
    ("og-6-gain", lambda *given: gain(*given, jitter=0.0), "to both diagonals"),
    ("og-6-gain", gain_with_relative_jitter, "to both diagonals"),
    ("og-6-gain", lambda *given: gain(*given, terms=3), "coupled basis"),
    ("og-6-gain", lambda *given: gain(*given, terms=2), "complexity"),
    ("og-7-places", np.linspace(0, 10, 10)[:, None], "the bound at its optimum"),
    ("og-6-gain", lambda *given: 1.0, "not the gain"),
    ("og-3-divergence", lambda *given: 0.0, "cross term included"),
    ("og-7-places", np.full((10, 1), np.inf), "finite"),
    ("og-7-places", np.zeros(10), "shape (10, 1)"),
    ("og-8-yours", (Matern52, *POINTS[1:], GAIN), "a class of kernels"),
    ("og-8-yours", (*POINTS[1:], GAIN, POINTS[0]), "first in the tuple"),
    ("og-8-yours", (*POINTS[:5], 0.0, GAIN), "positive"),
    ("og-8-yours", (*POINTS[:5], -0.2, GAIN), "positive"),
    ("og-8-yours", (*POINTS[:2], np.zeros((0, 2)), *POINTS[3:], 0.0), "one place a row"),
    ("og-8-yours", (POINTS[0], X[:4, 0], *POINTS[2:], GAIN), "one place a row"),
    ("og-8-yours", (*POINTS, -GAIN), "turned round"),
    ("og-8-yours", (*POINTS, 2 * GAIN), "factor ½"),
    ("og-8-yours", (*POINTS, GAIN / 60), "per datum"),
    ("og-8-yours", (*POINTS, 3 * GAIN), "not the gain of these points"),
    ("og-8-yours", (*POINTS[:4], POINTS[4] + 9, 0.2, GAIN), "subtract it first"),
    ("og-8-yours", (*POINTS[:3], X[:9], POINTS[4][:9], 0.2, GAIN), "50 to 2000 rows"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)
