"""Checkers of the chapter "Orthogonal natural gradients"."""

import numpy as np
from exercises import Feedback, as_array, as_function, as_number, checker, close

from figures.experiments.salimbeni2018 import small_problem
from pepcore.kernels import Matern52, SquaredExponential


def called(function, *arguments):
    """What the reader's function returns for copies of these arguments, or feedback when it is nothing."""
    result = as_function(function)(*(np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments))
    if result is None:
        raise Feedback("the function returns nothing yet.")
    return result


def pair(result, what):
    """Two things, or feedback that says of what."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise Feedback(f"two things are asked for, as a tuple: {what}.")
    return result


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


@checker("og-1-shift")
def shift(answer):
    theta, divergence, information = as_array(answer, (3,))
    if close(theta, 1.5):
        return "g is the natural parameter, R⁻¹ times the mean of e; the mean is R g."
    if not close(theta, 6.0):
        return "the expectation parameter is the mean of e under q, R g."
    if close(divergence, 18.0):
        return "the divergence lacks its factor ½."
    if not close(divergence, 9.0):
        return "two Gaussians of the same covariance: the divergence is ½ g R g."
    if close(information, 0.5):
        return "the third number is the information about g. That about the mean R g would be its inverse."
    if not close(information, 2.0):
        return "the Fisher information is the second derivative of the log-partition function ½ g R g."


@checker("og-2-residual")
def residual(answer):
    kernel, beta, gamma, X = points()
    B, R = pair(called(answer, kernel, beta, gamma, X), "B of shape (G, N) and R of shape (G, G)")
    right_B, right_R = residual_of(kernel, beta, gamma, X)
    B, R = as_array(B), as_array(R)
    if B.shape == right_B.T.shape and close(B, right_B.T):
        return "B is the other way round: one row per point of gamma, one column per datum."
    if close(B, kernel(gamma, X)):
        return "B is k_γ(x) as it stands. Take away what beta explains of it."
    if not close(B, right_B):
        return "B is not right: its columns are r(x) = k_γ(x) − K_γβ K_β⁻¹ k_β(x)."
    if close(R, kernel(gamma)):
        return "R is K_γ as it stands. Take away what beta explains of it."
    if not close(R, right_R):
        return "R is not right: it is r at the points gamma, K_γ − K_γβ K_β⁻¹ K_βγ."


@checker("og-3-divergence")
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
        return "that is the formula of the orthogonal basis with w in the place of m. First find m."
    if close(mine, right - 0.5 * spread):
        return "the squared length of the mean is right; the covariance has its share in the divergence too."
    return "not the divergence: ½(|μ|² + tr V − log|V| − M), where |μ|² = |m|² + gᵀR g and m = w + A_γ g."


@checker("og-4-step")
def natural_step(answer):
    rng = np.random.default_rng(7)
    m, V, A = rng.normal(size=3), covariance(8, 3), rng.normal(size=(3, 5))
    d1, d2 = rng.normal(size=5), -rng.uniform(0.2, 1.5, 5)
    for step in (1.0, 0.3):
        result = pair(called(answer, m, V, A, d1, d2, step), "m of shape (M,) and V of shape (M, M)")
        mean, spread = as_array(result[0], (3,)), as_array(result[1], (3, 3))
        P = np.linalg.inv(V)
        target = np.eye(3) - (A * d2) @ A.T
        precision = (1 - step) * P + step * target
        b = (1 - step) * P @ m + step * A @ (d1 - d2 * (A.T @ m))
        if close(spread, precision):
            return "V is returned as a precision. Turn it round at the end."
        if close(spread, np.linalg.inv((1 - step) * P + step * (target - np.eye(3)))):
            return "the prior is missing in the precision: the target is I + Σ τ* a aᵀ."
        if close(spread, np.linalg.inv((1 - step) * P + step * (np.eye(3) + (A * d2) @ A.T))):
            return "τ* = −d2: for a log-concave likelihood d2 is negative and the precision grows."
        if close(spread, (1 - step) * V + step * np.linalg.inv(target)) and step < 1:
            return "the covariances were averaged. Natural parameters are: average the precisions."
        if not close(spread, np.linalg.inv(precision)):
            return f"V is not right (step {step}): its inverse moves towards I + Σ τ* a aᵀ."
        if close(mean, (1 - step) * m + step * np.linalg.solve(target, A @ (d1 - d2 * (A.T @ m)))) and step < 1:
            return "the means were averaged. Average b = V⁻¹m, then divide by the new precision."
        if close(mean, np.linalg.solve(precision, (1 - step) * P @ m + step * A @ d1)):
            return "ν* = d1 + τ* aᵀm; the second term is missing."
        if not close(mean, np.linalg.solve(precision, b)):
            return f"V is right, m is not (step {step}): b moves towards Σ ν* a."
    return None


@checker("og-5-limit")
def limit(answer):
    kernel, beta, gamma, X = points(9)
    L = np.linalg.cholesky(kernel(beta))
    A, (B, R), noise = np.linalg.solve(L, kernel(beta, X)), residual_of(kernel, beta, gamma, X), 0.05
    inner = A.T @ A + noise * np.eye(6)

    def longest(H, over=2.0):
        return over / np.linalg.eigvals(np.linalg.solve(R, H)).real.max()

    mine = as_number(called(answer, A, B, R, noise))
    H = R + B @ np.linalg.solve(inner, B.T)
    if close(mine, longest(H)):
        return None
    if close(mine, longest(H, 1.0)):
        return "with 1/λ the largest error vanishes in one step; it only has to shrink: |1 − ελ| < 1."
    if close(mine, longest(R + B @ B.T / noise)):
        return "that holds m still. The coupled part is solved after each step, and takes its share of the residuals."
    if close(mine, longest(H - R)):
        return "R is missing in the Hessian: the divergence bends too."
    if close(mine, 2 / np.linalg.eigvalsh(H).max()):
        return "the step is taken in the metric R: the eigenvalues are those of R⁻¹H."
    return "not the limit. The error of g is multiplied by I − ε R⁻¹H with H = R + B(AᵀA + σ²I)⁻¹Bᵀ."


@checker("og-6-gain")
def gain(answer):
    rng = np.random.default_rng(11)
    kernel, X = SquaredExponential(1.2, 0.8), rng.uniform(-3, 3, (30, 1))
    y, beta, gamma, noise = rng.normal(size=30), rng.uniform(-3, 3, (3, 1)), rng.uniform(-3, 3, (4, 1)), 0.1

    def terms(Z):
        Q = kernel(X, Z) @ np.linalg.solve(kernel(Z) + 1e-6 * np.eye(len(Z)), kernel(Z, X))
        S = Q + noise * np.eye(30)
        return 0.5 * y @ np.linalg.solve(S, y), 0.5 * np.linalg.slogdet(S)[1], (30 * 1.2 - np.trace(Q)) / (2 * noise)

    mine = as_number(called(answer, kernel, beta, gamma, X, y, noise))
    (fit, size, fine), (fit_all, size_all, fine_all) = terms(beta), terms(np.vstack([beta, gamma]))
    if close(mine, fit - fit_all):
        return None
    if close(mine, fit_all - fit):
        return "the sign is turned round: a gain is positive."
    if close(mine, 2 * (fit - fit_all)):
        return "the factor ½ is missing."
    if close(mine, fit + size + fine - fit_all - size_all - fine_all):
        return "that is the gain of a coupled basis with all points. Here complexity and fine stay with beta."
    if close(mine, fit + size - fit_all - size_all):
        return "the complexity, the log determinant, belongs to the covariance and stays with beta."
    return "not the gain: the difference of ½ yᵀ(Q + σ²I)⁻¹y with the points beta and with all of them."


@checker("og-7-places")
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
