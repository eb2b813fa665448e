"""Checkers of the chapter "Gaussian processes and the feature map"."""

import numpy as np
from exercises import Feedback, as_array, as_function, as_number, checker, close

from pepcore import datasets
from pepcore.features import feature_map
from pepcore.kernels import SquaredExponential


@checker("gp-1-one-datum")
def one_datum(answer):
    mean, deviation = as_array(answer, (2,))
    k, y, noise = np.exp(-0.5 * 1.5**2), 2.0, 0.25
    variance = 1 - k**2 / (1 + noise)
    if close(mean, np.exp(-(1.5**2)) * y / (1 + noise), rtol=5e-3):
        return "the exponent of the squared exponential has a factor one half."
    if close(mean, k * y, rtol=5e-3):
        return "the mean treats the observation as exact; where does the noise enter?"
    if not close(mean, k * y / (1 + noise), rtol=5e-3):
        return "the mean is not right: it is k(x, 0) y divided by one number."
    if close(deviation, variance, rtol=5e-3):
        return "the mean is right; the second number is the variance, take its root."
    if close(deviation, np.sqrt(variance + noise), rtol=5e-3):
        return "the mean is right; the second number is the deviation of a new observation y, not of f."
    if close(deviation, np.sqrt(1 - k**2), rtol=5e-3):
        return "the mean is right; in the variance the observation is treated as exact."
    if not close(deviation, np.sqrt(variance), rtol=5e-3):
        return "the mean is right, the standard deviation is not: start from k(x, x) and subtract what the datum explains."


@checker("gp-2-half")
def half(answer):
    r = as_number(answer)
    if close(r, np.sqrt(2 * np.log(2)), rtol=5e-3):
        return "there the correlation is one half; how much of the variance does that explain?"
    if close(r, np.log(2), rtol=5e-3):
        return "this is r squared."
    if close(abs(r), np.sqrt(np.log(2)), rtol=5e-3):
        return None if r > 0 else "a distance is positive."
    return "write h with one pseudo-input, a(x) = k(z, x)/sqrt(s), and set it to s/2."


@checker("gp-3-chain")
def chain(answer):
    chain = as_function(answer)
    K, y = _covariance(7), np.random.default_rng(1).standard_normal(7)
    expected = _chain(K, y)
    terms = as_array(_call(chain, K.copy(), y.copy()), (7,))
    if close(terms, expected):
        return None
    if close(terms, _leave_one_out(K, y)):
        return "these predict each datum from all others; the chain predicts it from those before it only."
    if close(terms, expected + 0.5 * np.log(2 * np.pi)):
        return "only the constant is missing: half of log 2 pi for each datum."
    if close(terms, _chain(K[::-1, ::-1], y[::-1])[::-1]):
        return "these predict each datum from those after it; begin at the other end."
    if close(terms.sum(), expected.sum()):
        return "the sum is right but the single terms are not: which data does term n condition on?"
    if close(terms, -expected):
        return "the sign is turned round: log densities are asked for."
    return "the terms are not the log densities of y_n given y_1 ... y_(n-1); try N = 1 and N = 2 by hand."


@checker("gp-4-pathwise")
def pathwise(answer):
    pathwise = as_function(answer)
    rng = np.random.default_rng(2)
    K = _covariance(9)
    noise, y = 0.3, rng.standard_normal(6)
    K_sx, K_hat = K[6:, :6], K[:6, :6] + noise * np.eye(6)
    f = np.linalg.cholesky(K) @ rng.standard_normal(9)
    f_s, f_x, epsilon = f[6:], f[:6], np.sqrt(noise) * rng.standard_normal(6)

    def path(data):
        return f_s + K_sx @ np.linalg.solve(K_hat, data)

    drawn = as_array(_call(pathwise, K_sx, K_hat, f_s, f_x, epsilon, y), (3,))
    if close(drawn, path(y - f_x - epsilon)):
        return None
    if close(drawn, path(y - f_x)):
        return "without epsilon the residual is not independent of the observations, and the draws come out too narrow."
    if close(drawn, path(y)):
        return "this adds the posterior mean to a prior draw; take away what the pretended data had said."
    if close(drawn, path(y - f_x + epsilon)) or close(drawn, path(f_x + epsilon - y)):
        return "look at the signs: the pretended data f(X) + epsilon leave, y comes."
    if close(drawn, K_sx @ np.linalg.solve(K_hat, y)):
        return "this is the posterior mean, the same for every draw; where is the residual?"
    return "write the residual r of f(X_*) given the pretended data, then put the real data in their place."


@checker("gp-5-pull-back")
def pull_back(answer):
    K_uu_bar = as_function(answer)
    L = np.linalg.cholesky(_covariance(5))
    T = np.random.default_rng(3).standard_normal((5, 5))
    expected = _K_uu_bar(L, np.tril(T) + np.tril(T, -1).T)
    bar = as_array(_call(K_uu_bar, L.copy(), T.copy()), (5, 5))
    if close(bar, expected):
        return None
    if close(bar, _K_uu_bar(L, 0.5 * (T + T.T))):
        return "the average of T and its transpose is right only for objectives that do not see rotations of the features."
    if close(bar, _K_uu_bar(L, T)):
        return "T itself is not symmetric, so this is no derivative with respect to a symmetric matrix; which half counts?"
    if close(bar, _K_uu_bar(L, np.triu(T) + np.triu(T, 1).T)):
        return "this mirrors the upper triangle; L is lower triangular."
    if close(bar, -expected) or close(bar, 2 * expected) or close(bar, -2 * expected):
        return "right up to the factor in front."
    return "take the three steps in their order: T, its mirrored lower triangle, then one solve with L transposed from each side."


@checker("gp-6-clothes")
def clothes(answer):
    undress = as_function(answer)
    K_uu = _covariance(4)
    rng = np.random.default_rng(4)
    L = np.linalg.cholesky(K_uu)
    root = rng.standard_normal((4, 4))
    V = np.linalg.inv(np.eye(4) + root @ root.T)
    m = rng.standard_normal(4)
    gamma = np.linalg.solve(L.T, m)
    beta = np.linalg.solve(L.T, np.linalg.solve(L.T, np.eye(4) - V).T)
    mean, S = _call(undress, gamma.copy(), beta.copy(), K_uu.copy())
    mean, S = as_array(mean, (4,)), as_array(S, (4, 4))
    if close(mean, np.linalg.solve(K_uu, gamma)):
        return "for the mean multiply by K_uu in place of dividing."
    if not close(mean, L @ m):
        return "the mean of u is the predictive mean at the pseudo-inputs."
    if close(S, K_uu @ beta @ K_uu):
        return "the mean is right; this is the part of the prior covariance that the data explained, not what is left."
    if close(S, V):
        return "the mean is right; this is the covariance of v, and u = L v."
    if not close(S, L @ V @ L.T):
        return "the mean is right; S is the predictive covariance at the pseudo-inputs, prior included."


def nystrom_problem():
    """Kernel and standardised inputs (442, 10) of the research exercise."""
    X = datasets.load("diabetes").X
    return SquaredExponential(1.0, np.sqrt(10.0)), datasets.standardise(X, X)[0]


@checker("gp-7-nystrom")
def nystrom(answer):
    Z = as_array(answer, (20, 10))
    kernel, X = nystrom_problem()
    features = feature_map(kernel, Z, X)
    missed = features.h.sum()
    if features.basis.jitter > 1e-6:
        return f"some of these pseudo-inputs coincide: K_uu needed a jitter of {features.basis.jitter:.0e}."
    if missed >= NYSTROM_TARGET:
        return f"these features miss {missed:.1f} of {len(X)}; fewer than {NYSTROM_TARGET} are asked for."


NYSTROM_TARGET = 58


def _call(function, *arguments):
    result = function(*arguments)
    if result is None:
        raise Feedback("the function returns nothing yet.")
    return result


def _covariance(size):
    root = np.random.default_rng(size).standard_normal((size, size + 2))
    return root @ root.T + 0.1 * np.eye(size)


def _chain(K, y):
    L = np.linalg.cholesky(K)
    return -0.5 * np.linalg.solve(L, y) ** 2 - np.log(np.diag(L)) - 0.5 * np.log(2 * np.pi)


def _leave_one_out(K, y):
    precision = np.linalg.inv(K)
    variance = 1 / np.diag(precision)
    residual = variance * (precision @ y)
    return -0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance)


def _K_uu_bar(L, symmetric):
    return -0.5 * np.linalg.solve(L.T, np.linalg.solve(L.T, symmetric).T).T
