"""Checkers of the chapter "Sparse regression: one family"."""

import numpy as np
from exercises import Feedback, as_array, as_function, as_number, checker, close
from scipy.stats import multivariate_normal


def random_problem(seed, M=4, N=12):
    """A (M, N), h (N,), y (N,) of a problem with nothing special about it."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(M, N)), rng.exponential(size=N), 2 * rng.normal(size=N)


def fine(h, noise, alpha):
    if alpha == 0:
        return h.sum() / (2 * noise)
    return (1 - alpha) / (2 * alpha) * np.log1p(alpha * h / noise).sum()


def log_normal(y, covariance):
    return multivariate_normal.logpdf(y, np.zeros(len(y)), covariance)


def called(function, *arguments):
    """What the reader's function returns for copies of these arguments, or feedback when it is nothing."""
    result = as_function(function)(*(np.copy(a) if np.ndim(a) else a for a in arguments))
    if result is None:
        raise Feedback("the function returns nothing yet.")
    return result


@checker("sr-1-fine")
def fines(answer):
    answer = as_array(answer, (3,))
    h, noise = np.array([0.3]), 0.1
    expected = [fine(h, noise, alpha) for alpha in (0.0, 0.5, 1.0)]
    if close(answer, np.negative(expected), rtol=2e-3):
        return "the size is right. A fine is what is subtracted, so give it as a positive number."
    if close(answer[1], 2 * expected[1], rtol=2e-3):
        return "at α = ½ the factor in front of the logarithm is (1 − α)/(2α) = ½: the 2 belongs to the denominator."
    if close(answer[1], 0.5 * np.log1p(0.3 / 0.1), rtol=2e-3):
        return "at α = ½ the logarithm holds α h/σ², not h/σ²."
    if close(answer[0], 3.0):
        return "at α = 0 it is h/(2σ²): the limit of log(1 + x)/x is 1, and the ½ stays."
    if not close(answer[2], expected[2]):
        return "at α = 1 look at the factor 1 − α: FITC is not fined."
    if not close(answer[0], expected[0]):
        return "at α = 0 take the limit: log(1 + x) is x for small x, so the α cancels."
    if not close(answer[1], expected[1], rtol=2e-3):
        return "at α = ½ the fine is (1 − α)/(2α) · log(1 + α h/σ²)."


@checker("sr-2-collapsed")
def collapsed(answer):
    for alpha in (0.5, 1.0, 0.0):
        A, h, y = random_problem(1)
        noise = 0.2
        try:
            with np.errstate(all="ignore"):
                value = called(answer, A, h, y, noise, alpha)
        except ZeroDivisionError:
            if alpha:
                raise
            value = np.inf
        if alpha == 0.0 and not np.all(np.isfinite(value)):
            return "at α = 0 it divides by zero: the fine has the limit Σ h/(2σ²)."
        value = as_number(value)
        believed = log_normal(y, A.T @ A + np.diag(alpha * h + noise))
        dropped = log_normal(y, A.T @ A + noise * np.eye(len(y)))
        expected = believed - fine(h, noise, alpha)
        if close(value, expected):
            continue
        if close(value, believed):
            return f"at α = {alpha:g} the fine is missing: part of the residual is believed, the rest must be paid for."
        if close(value, believed + fine(h, noise, alpha)):
            return f"at α = {alpha:g} the fine has the wrong sign: it lowers the evidence."
        if close(value, dropped - fine(h, noise, alpha)):
            return f"at α = {alpha:g} the noise of datum n must be α h + σ²; this is σ² alone."
        if close(value, -expected):
            return "that is the energy, minus the log evidence."
        if close(value, expected + 0.5 * len(y) * np.log(2 * np.pi)):
            return "the term with log 2π is missing."
        return f"at α = {alpha:g} it is off by {value - expected:.4g}; compare with a dense N x N computation."
    y = A.T @ np.array([1.0, -2.0, 0.5, 3.0]) + 1e-6 * y  # the features all but reach it: two numbers of 1e13 leave one of 100
    tiny = as_number(called(answer, A, np.zeros_like(h), y, 1e-12, 0.5))
    if not close(tiny, _sharp(A, 1e-12, y), rtol=1e-8):
        return "with a noise of 1e-12 digits are lost; add Σ r²/d and mᵀm in place of subtracting two large numbers."
    A, h, y = random_problem(2, N=20_000)
    if not close(as_number(called(answer, A, h, y, 0.2, 1.0)), _large(A, h + 0.2, y)):
        return "it is wrong for N = 20 000 although right for N = 12; is something of size N x N in the way?"


def _sharp(A, noise, y):
    """log N(y; 0, A'A + noise I) by the singular values of A, in which nothing cancels."""
    _, s, Vt = np.linalg.svd(A, full_matrices=False)
    inside = Vt @ y
    outside = y - Vt.T @ inside
    log_det = np.log(s**2 + noise).sum() + (len(y) - len(s)) * np.log(noise)
    quadratic = (inside**2 / (s**2 + noise)).sum() + outside @ outside / noise
    return -0.5 * (len(y) * np.log(2 * np.pi) + log_det + quadratic)


def _large(A, d, y):
    """log N(y; 0, A'A + diag d) for large N, by the matrix inversion lemma."""
    B = np.eye(len(A)) + (A / d) @ A.T
    projected = A @ (y / d)
    quadratic = (y**2 / d).sum() - projected @ np.linalg.solve(B, projected)
    return -0.5 * (len(y) * np.log(2 * np.pi) + np.log(d).sum() + np.linalg.slogdet(B)[1] + quadratic)


@checker("sr-3-loo")
def leave_one_out(answer):
    A, h, y = random_problem(3)
    d = h + 0.3
    answer = as_array(called(answer, A, y, d), y.shape)
    K = A.T @ A + np.diag(d)
    inverse = np.linalg.inv(K)
    u = inverse @ y
    expected = u / np.sqrt(np.diag(inverse))
    if close(answer, -expected):
        return "the sign is turned round: the residual is y minus its prediction."
    if close(answer, d * u / np.sqrt(d)) or close(answer, d * u):
        return "these residuals come from the posterior that has seen datum n itself; leave it out."
    if close(answer, u / np.diag(inverse)):
        return "these are the leave-one-out residuals; divide each by its predictive standard deviation."
    if close(answer, expected**2):
        return "these are the squares; ζ keeps its sign."
    if not close(answer, expected):
        return "not the leave-one-out residuals. With u = K⁻¹y and κ the diagonal of K⁻¹ they are u/√κ."


@checker("sr-4-unequal")
def unequal_noise(answer):
    A, _, y = random_problem(4, N=5)
    rng = np.random.default_rng(5)
    root = rng.normal(size=(5, 5))
    D, S = root @ root.T, rng.uniform(0.2, 2.0, 5)
    result = called(answer, A, D, y, S)
    if not isinstance(result, tuple | list) or len(result) != 3:
        raise Feedback("three arrays are asked for, as a tuple: A of shape (M, n), h (n,) and y (n,).")
    A_r, h_r, y_r = as_array(result[0], A.shape), as_array(result[1], (5,)), as_array(result[2], (5,))

    def posterior(A, noise_covariance, y):
        weights = A @ np.linalg.inv(noise_covariance)
        return np.concatenate([(weights @ A.T).ravel(), weights @ y])

    def right(alpha):
        target = posterior(A, alpha * D + np.diag(S), y)
        return close(posterior(A_r, np.diag(alpha * h_r + 1.0), y_r), target, rtol=1e-8)

    eigenvalues, U = np.linalg.eigh(D)
    if close(A_r, A @ U) or close(h_r, eigenvalues):
        return "after this rotation the noise is no longer diagonal: U'SU is not. Make the noise isotropic first."
    if h_r.min() < -1e-9:
        return "a residual variance cannot be negative."
    if right(1.0) and not right(0.5):
        return "it is right at α = 1 only: h and the noise must be kept apart, with noise 1."
    if not (right(0.5) and right(1.0)):
        return "the posterior differs from that of the block. Scale by 1/√S on both sides of D, and A and y alike."


@checker("sr-5-private")
def private(answer):
    answer = as_array(answer)
    if answer.ndim == 0 or answer.shape != (40,):
        raise Feedback(f"one power for each of the 40 data is asked for; this has shape {answer.shape}.")
    if answer.min() < 0 or answer.max() > 1:
        return "a power lies between 0 and 1."
    if close(answer, np.zeros(40)):
        return "that is VFE, the smallest evidence of all. Which way does the first law point?"
    if not close(answer, np.ones(40)):
        return "raise any of them that is below 1, and look what the evidence does."


@checker("sr-6-surrogate")
def surrogate(answer):
    A, h, y = random_problem(6)
    precision = np.eye(4) + (A / (h + 0.3)) @ A.T
    V = np.linalg.inv(precision)
    m = V @ A @ (y / (h + 0.3))
    for log_evidence in (-20.0, 3.0):
        result = called(answer, m, V, log_evidence)
        if not isinstance(result, tuple | list) or len(result) != 3:
            raise Feedback("three things are asked for, as a tuple: W of shape (M, M), y of shape (M,) and a number c.")
        W, y_s, c = as_array(result[0], (4, 4)), as_array(result[1], (4,)), as_number(result[2])
        if c <= 0:
            return "the noise variance c must be positive."
        if close(W.T @ W / c, np.linalg.inv(V), rtol=1e-8):
            return "W'W/c must be what the data add, V⁻¹ − I; the prior brings the I itself."
        if not close(W.T @ W / c, precision - np.eye(4), rtol=1e-8):
            return "the posterior precision I + W'W/c is not V⁻¹."
        if close(W.T @ y_s / c, m, rtol=1e-8):
            return "W'y/c must be V⁻¹m, not m: that is erratum bui-2."
        if not close(W.T @ y_s / c, precision @ m, rtol=1e-8):
            return "the posterior mean V W'y/c is not m."
        got = log_normal(y_s, W @ W.T + c * np.eye(4))
        if not close(got, log_evidence, rtol=1e-8):
            return f"the posterior is right; the log evidence should be {log_evidence:g} and is {got:.4g}. c is still free."
