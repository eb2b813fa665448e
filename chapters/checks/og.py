"""Checkers of the chapter "Orthogonal natural gradients"."""

import numpy as np
from exercises import (
    ANY,
    RIGHT,
    Feedback,
    NotWhole,
    as_array,
    as_number,
    as_things,
    called,
    checker,
    close,
    numbers,
    question,
    quiz_of,
    rounded,
)

from figures.experiments.salimbeni2018 import small_problem
from pepcore.kernels import Matern52, SquaredExponential


def points(seed=3):
    """kernel, beta (3, 2), gamma (4, 2) and X (6, 2)."""
    rng = np.random.default_rng(seed)
    return (Matern52(1.4, 1.1), *(rng.normal(size=(n, 2)) for n in (3, 4, 6)))


def residual_of(kernel, beta, gamma, X):
    """B (G, N) and R (G, G)."""
    explained = np.linalg.solve(kernel(beta), kernel(beta, gamma))
    return kernel(gamma, X) - explained.T @ kernel(beta, X), kernel(gamma) - explained.T @ kernel(beta, gamma)


def covariance(seed, M):
    root = np.random.default_rng(seed).normal(size=(M, M))
    return root @ root.T / M + 0.3 * np.eye(M)


R, G = 2.0, 3.0       # exercise 1

numbers(
    "og-1-shift",
    {"θ": R * G, "divergence": 0.5 * G * R * G, "information": R},
    digits=3,
    mistakes=[
        ((G / R, ANY, ANY), "g is the natural parameter: the mean of e is not divided by R."),
        ((G, ANY, ANY), "that is the natural parameter itself; the expectation parameter is the mean of e."),
        ((RIGHT, G * R * G, ANY), "the first is right. The divergence lacks its factor ½."),
        ((RIGHT, 0.5 * G**2 / R, ANY),
         "the first is right. In natural parameters R multiplies; it would divide where a mean is given."),
        ((RIGHT, RIGHT, 1 / R),
         "the third number is the information about g. That about the mean would be its inverse."),
        ((RIGHT, RIGHT, R * G**2), "the third number does not depend on g."),
    ],
    otherwise=[
        "the expectation parameter is the mean of e under the moved Gaussian. How far does g move it?",
        "the first is right. The two Gaussians have the same covariance: what is left of their divergence?",
        "the first two are right. The Fisher information is a second derivative: of which function, in g?",
    ],
    never=["½ g R g", "R g."],
)


@checker("og-2-residual", never=["k_γ(x) − K_γβ K_β⁻¹ k_β(x)", "K_γ − K_γβ"])
def residual(answer):
    kernel, beta, gamma, X = points()
    B, R = as_things(called(answer, kernel, beta, gamma, X), 2, "B of shape (G, N) and R of shape (G, G)")
    right_B, right_R = residual_of(kernel, beta, gamma, X)
    B, R = as_array(B), as_array(R)
    if B.shape == right_B.T.shape and close(B, right_B.T):
        return "B is the other way round: one row per point of gamma, one column per datum."
    if close(B, kernel(gamma, X)):
        return "B is k_γ(x) as it stands. Take away what beta explains of it."
    if not close(B, right_B):
        return "B is not right. Regress the process at gamma on its values at beta: what is left, seen from a datum?"
    if close(R, kernel(gamma)):
        return "R is K_γ as it stands. Take away what beta explains of it."
    if not close(R, right_R):
        return "B is right, R is not. It is the same residual, seen from the points gamma."


@checker("og-3-divergence", never=["½(|μ|² + tr V − log|V| − M)", "m = w + A_γ g", "w + A_gamma @ g"])
def divergence(answer):
    rng = np.random.default_rng(4)
    w, g, A, V = rng.normal(size=3), rng.normal(size=4), rng.normal(size=(3, 4)), covariance(5, 3)
    K = A.T @ A + covariance(6, 4)
    mine = as_number(called(answer, w, V, g, A, K))
    spread = np.trace(V) - np.linalg.slogdet(V)[1] - 3
    right = 0.5 * (w @ w + 2 * w @ A @ g + g @ K @ g + spread)
    if close(mine, right):
        return None
    if close(mine, 2 * right):
        return "the factor ½ is missing."
    if close(mine, 0.5 * (w @ w + g @ K @ g + spread)):
        return "the two parts of this mean are not orthogonal: a cross term is missing."
    if close(mine, 0.5 * (w @ w + g @ (K - A.T @ A) @ g + spread)):
        return ("that is the formula of the orthogonal basis with w in the place of m. First find the m of the same "
                "mean.")
    if close(mine, right - 0.5 * spread):
        return "the squared length of the mean is right; the covariance has its share in the divergence too."
    return "not the divergence. What is the squared length of this mean, cross term included, and what does V add?"


@checker("og-4-step", never=["I + Σ τ* a aᵀ", "d1 + τ* aᵀm", "Σ ν* a", "np.eye(len(m)) - (A * d2)"])
def natural_step(answer):
    rng = np.random.default_rng(7)
    m, V, A = rng.normal(size=3), covariance(8, 3), rng.normal(size=(3, 5))
    d1, d2 = rng.normal(size=5), -rng.uniform(0.2, 1.5, 5)
    for step in (1.0, 0.3):
        result = as_things(called(answer, m, V, A, d1, d2, step), 2, "m of shape (M,) and V of shape (M, M)")
        mean, spread = as_array(result[0], (3,)), as_array(result[1], (3, 3))
        P = np.linalg.inv(V)
        target = np.eye(3) - (A * d2) @ A.T
        precision = (1 - step) * P + step * target
        b = (1 - step) * P @ m + step * A @ (d1 - d2 * (A.T @ m))
        if close(spread, precision):
            return "V is returned as a precision. Turn it round at the end."
        if close(spread, np.linalg.inv((1 - step) * P + step * (target - np.eye(3)))):
            return "the prior is missing in the target's precision."
        if close(spread, np.linalg.inv((1 - step) * P + step * (np.eye(3) + (A * d2) @ A.T))):
            return "the sign of τ*: for a log-concave likelihood d2 is negative and the precision grows."
        if close(spread, (1 - step) * V + step * np.linalg.inv(target)) and step < 1:
            return "the covariances were averaged. Natural parameters are: average the precisions."
        if not close(spread, np.linalg.inv(precision)):
            return (f"V is not right (step {step}): its inverse moves towards that of the target. Of what is that "
                    "the sum?")
        if close(mean, (1 - step) * m + step * np.linalg.solve(target, A @ (d1 - d2 * (A.T @ m)))) and step < 1:
            return "the means were averaged. Natural parameters are: precision times mean, then divide."
        if close(mean, np.linalg.solve(precision, (1 - step) * P @ m + step * A @ d1)):
            return ("V is right. In m a term of ν* is missing: a site is centred at zero, the derivatives are taken "
                    "at aᵀm.")
        if not close(mean, np.linalg.solve(precision, b)):
            return f"V is right, m is not (step {step}): V⁻¹m moves towards that of the target."
    return None


REACH, SPREAD, DATA, SIGMA2 = 0.1, 0.5, 20, 0.1      # exercise 5: r(x_n), R, N and the noise variance


def curvature(N):
    """Second derivative of the bound in g, with the sign that makes it positive."""
    return SPREAD + N * REACH**2 / SIGMA2


numbers(
    "og-5-limit",
    {"longest step": 2 * SPREAD / curvature(DATA),
     "most data": next(N for N in range(1000) if 2 * SPREAD / curvature(N + 1) <= 1)},
    digits=3,
    mistakes=[
        ((SPREAD / curvature(DATA), ANY),
         "with this step the error vanishes at once. It only has to shrink: a longer one does that too."),
        ((2 / curvature(DATA), ANY), "the step is taken in the metric R, and its natural gradient is divided by it."),
        ((2 * SPREAD / (curvature(DATA) - SPREAD), ANY), "R is missing in the curvature: the divergence bends too."),
        ((2 * SPREAD / curvature(1), ANY), "that is for one datum; they add up."),
        ((RIGHT, NotWhole()), "the first is right. A number of data is whole."),
        ((RIGHT, next(N for N in range(1000) if 2 * SPREAD / curvature(N) <= 1)),
         "the first is right. With so many the error is turned round at each step, and neither grows nor shrinks."),
    ],
    otherwise=[
        "what does one step multiply the error of g by, if the bound bends so much and the metric is R?",
        "the first is right. For how many data does a step of 1 still shrink the error?",
    ],
    never=["2 R / (R + N", "2 / np.linalg.eigvals"],
)


@checker("og-6-gain", never=["½ yᵀ(Q + σ²I)⁻¹y", "fit_of(beta) - fit_of"])
def gain(answer):
    rng = np.random.default_rng(11)
    kernel, X = SquaredExponential(1.2, 0.8), rng.uniform(-3, 3, (30, 1))
    y, beta, gamma, noise = rng.normal(size=30), rng.uniform(-3, 3, (3, 1)), rng.uniform(-3, 3, (4, 1)), 0.1

    def terms(Z):
        Q = kernel(X, Z) @ np.linalg.solve(kernel(Z) + 1e-6 * np.eye(len(Z)), kernel(Z, X))
        S = Q + noise * np.eye(30)
        return 0.5 * y @ np.linalg.solve(S, y), 0.5 * np.linalg.slogdet(S)[1], (30 * 1.2 - np.trace(Q)) / (2 * noise)

    mine = as_number(called(answer, kernel, beta, gamma, X, y, noise))
    (fit, size, penalty), (fit_all, size_all, penalty_all) = terms(beta), terms(np.vstack([beta, gamma]))
    if close(mine, fit - fit_all):
        return None
    if close(mine, fit_all - fit):
        return "the sign is turned round: a gain is positive."
    if close(mine, 2 * (fit - fit_all)):
        return "the factor ½ is missing."
    if close(mine, fit + size + penalty - fit_all - size_all - penalty_all):
        return "that is the gain of a coupled basis with all points. Here complexity and penalty stay with beta."
    if close(mine, fit + size - fit_all - size_all):
        return "the complexity, the log determinant, belongs to the covariance and stays with beta."
    return "not the gain. Which of the three terms of the bound knows of gamma, and which two know of beta alone?"


@checker("og-7-places", never=["argmax(gains)"])
def places(answer):
    gamma = as_array(answer, (10, 1))
    if not np.all(np.isfinite(gamma)):
        return "the places must be finite numbers."
    X, y = small_problem.data()
    kernel, noise = small_problem.KERNEL, small_problem.NOISE
    beta, _ = small_problem.points(X, 10, 0)

    def fit(Z):
        Q = kernel(X, Z) @ np.linalg.solve(kernel(Z) + 1e-6 * np.eye(len(Z)), kernel(Z, X))
        return 0.5 * y @ np.linalg.solve(Q + noise * np.eye(len(y)), y)

    A = np.linalg.solve(np.linalg.cholesky(kernel(beta) + 1e-6 * np.eye(10)), kernel(beta, X))
    Q = A.T @ A
    S = Q + noise * np.eye(len(y))
    fixed = -0.5 * (len(y) * np.log(2 * np.pi) + np.linalg.slogdet(S)[1]) - (len(y) - np.trace(Q)) / (2 * noise)
    value = fixed - fit(np.vstack([beta, gamma]))
    if not value > -975:
        return f"the bound at its optimum is {value:.0f}, and more than -975 is asked for."


@checker("og-8-yours", never=["½ yᵀ(Q + σ²I)⁻¹y"])
def your_gain(answer):
    kernel, beta, gamma, X, y, noise, gain = as_things(answer, 7,
        "kernel, beta, gamma, X, y, noise and the gain in nats")
    if not callable(kernel):
        raise Feedback("first in the tuple comes the kernel.")
    beta, gamma, X, y, noise, gain = *map(as_array, (beta, gamma, X, y)), as_number(noise), as_number(gain)
    if X.ndim != 2 or not 50 <= len(X) <= 2000 or y.shape != (len(X),):
        raise Feedback(f"X (N, D) and y (N,) with 50 to 2000 rows are asked for; got the shapes {X.shape} and "
                       f"{y.shape}.")
    if abs(y.mean()) > 3 * y.std():
        return "the mean of y is far from zero, and the prior's is zero: subtract it first."

    def fit(Z):
        Q = kernel(X, Z) @ np.linalg.solve(kernel(Z) + 1e-6 * np.eye(len(Z)), kernel(Z, X))
        return 0.5 * y @ np.linalg.solve(Q + noise * np.eye(len(y)), y)

    expected = fit(beta) - fit(np.vstack([beta, gamma]))
    if rounded(gain, expected, 3):
        return None
    if rounded(gain, -expected, 3):
        return "the sign is turned round: a gain is positive."
    if rounded(gain, 2 * expected, 3):
        return "the factor ½ is missing."
    if rounded(gain, expected / len(y), 3):
        return "that is the gain per datum; the gain of the whole bound is asked for."
    return "not the gain of these points at this kernel and noise: was something learnt, or changed, in between?"


quiz_of(
    "og-quiz",
    question(
        "What do the extra points γ of a decoupled basis contribute?",
        [("to the mean only", None),
         ("to the covariance only", "there the prior's residual stays."),
         ("to both", "then they would cost as much as ordinary pseudo-points.")],
        why="Their covariance stays that of the prior. That makes them cheap.",
    ),
    question(
        "A natural-gradient step of length 1 for the coupled part, with a Gaussian likelihood ...",
        [("solves it, given the rest", None),
         ("diverges", "for the residual part a long step can; the coupled part it solves."),
         ("halves the distance to the optimum", "the natural parameters arrive in one step.")],
        why="In natural parameters the natural gradient is the difference to the target.",
    ),
    question(
        "You add a hundred points to γ and none to β. Which terms of the bound can get better?",
        [("the fit to the data", None),
         ("the fit and the trace term", "complexity and penalty stay with β."),
         ("all of them", "log determinant and penalty do not know of γ.")],
        why="Extra points buy fit. For a narrower band one needs points in β.",
    ),
    question(
        "Orthogonal basis: what does orthogonality uncouple?",
        [("the divergence from the prior", None),
         ("the likelihood", "both parts still meet in each datum."),
         ("everything", "the data still see the sum of the two parts.")],
        why="The two parts of the mean have no cross term in the divergence; the data keep them coupled.",
    ),
)
