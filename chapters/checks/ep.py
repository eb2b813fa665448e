"""Checkers of the exercises in the chapter "EP, step by step"."""

import numpy as np
from exercises import as_array, as_function, as_number, checker, close
from scipy.special import log_ndtr, ndtr

from pepcore import exact
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit
from pepcore.sites import target


@checker("ep-1-mixture")
def mixture(answer):
    mean, variance = as_array(answer, shape=(2,))
    means, variances, weights = np.array([-1.0, 2.0]), np.array([0.25, 1.0]), np.array([0.7, 0.3])
    right_mean = weights @ means
    within = weights @ variances
    between = weights @ (means - right_mean) ** 2
    if close(mean, -1.0, rtol=1e-2):
        return "The mean sits on the taller hump: that is where KL(q||p) would lead, not KL(p||q)."
    if not close(mean, right_mean):
        return "The mean is not the mean of p: weight the two means by 0.7 and 0.3."
    if close(variance, within):
        return "The mean is right. The variance lacks a part: the two humps also lie apart from one another."
    if close(variance, between):
        return "The mean is right. The variance lacks a part: each hump has a width of its own."
    if close(variance, np.sqrt(within + between)):
        return "The mean is right, and that is the standard deviation: square it."
    if not close(variance, within + between):
        return "The mean is right, the variance is not. Try E[f^2] - E[f]^2."


@checker("ep-2-step")
def step_likelihood(answer):
    function = as_function(answer)
    y, variance = np.array([1.0, -1.0, 1.0, -1.0]), np.array([0.5, 2.0, 1.0, 3.0])
    mean = np.array([0.4, 0.9, -1.3, -0.2])
    result = function(y, mean, variance)
    if isinstance(result, np.ndarray):
        result = list(np.atleast_1d(result))
    if not isinstance(result, tuple | list) or len(result) != 3:
        return "The function should return three things: log Z, d1 and d2."
    log_Z, d1, d2 = (as_array(part, shape=(4,)) for part in result)
    right_log_Z, right_d1, right_d2 = _step_moments(y, mean, variance)
    if close(log_Z, Probit().log_moment(y, mean, variance, 1.0)[0]):
        return "That is the probit with unit noise. Here the label is the exact sign of f: what becomes of 1 + s?"
    if close(log_Z, np.exp(right_log_Z)):
        return "That is Z; its logarithm is asked for."
    if close(log_Z, _step_moments(1.0, mean, variance)[0]):
        return "log Z does not depend on the label y; it must."
    if close(log_Z, log_ndtr(y * mean / variance)):
        return "z should be divided by the standard deviation, not the variance."
    if not close(log_Z, right_log_Z):
        return "log Z is not right. It is log P(y f > 0) for f ~ N(mean, variance)."
    if close(d1, y * right_d1):
        return "log Z is right. d1 lacks the factor y that comes from the chain rule."
    if not close(d1, right_d1):
        return "log Z is right, d1 is not: differentiate log Phi(y mean / sd) in the mean, chain rule included."
    if close(d2, -right_d2):
        return "log Z and d1 are right. d2 has the wrong sign: log Z is concave in the mean."
    if not close(d2, right_d2):
        return "log Z and d1 are right, d2 is not. With rho = phi(z)/Phi(z), rho' = -rho (z + rho)."


def _step_moments(y, mean, variance):
    sd = np.sqrt(variance)
    z = y * mean / sd
    rho = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) / ndtr(z)
    return log_ndtr(z), y * rho / sd, -rho * (rho + z) / variance


@checker("ep-3-worth")
def worth(answer):
    value = as_number(answer)
    if close(value, 1.0):
        return "1 is the bound for unit noise, sigma = 1. A precision changes with the units of f."
    if close(value, 2.0):
        return "That is 1/sigma. In which units is a precision measured?"
    if close(value, 0.25):
        return "That is sigma squared, a variance. Less noise should make a label worth more."
    if close(value, 0.5):
        return "That is sigma. Less noise should make a label worth more."
    if not close(value, 4.0):
        return "Write f in units of sigma, where the bound is 1, and convert back."


@checker("ep-4-loo")
def leave_one_out(answer):
    function = as_function(answer)
    rng = np.random.default_rng(12)
    X = rng.uniform(-3, 3, (25, 1))
    y = np.where(np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=25) > 0, 1.0, -1.0)
    kernel = SquaredExponential(4.0, 1.0)
    fit = exact.infer(kernel, X, y, likelihood=Probit())
    tau, nu = fit.sites.tau, fit.sites.nu
    mean, variance = fit.predict_f(X)
    result = as_array(function(mean, variance, tau, nu, y))
    kept = 1 - tau * variance
    cavity_mean, cavity_variance = (mean - nu * variance) / kept, variance / kept
    right = log_ndtr(y * cavity_mean / np.sqrt(1 + cavity_variance))
    if result.shape == () and close(result, right.sum()):
        return "That is their sum; return the 25 log probabilities themselves."
    if result.shape != (25,):
        return f"25 log probabilities are expected for 25 data, got shape {result.shape}."
    if close(result, np.exp(right)):
        return "These are the probabilities; their logarithms are asked for."
    if close(result, -right):
        return "The sign is turned round: log probabilities are negative."
    if close(result, log_ndtr(y * mean / np.sqrt(1 + variance)), rtol=1e-5):
        return "That uses the posterior, which has already seen the label. Take the cavity."
    if close(result, log_ndtr(y * cavity_mean)) or close(result, log_ndtr(y * cavity_mean / np.sqrt(cavity_variance))):
        return "The cavity is right; the label has unit noise of its own on top of the cavity's variance: sqrt(1 + s)."
    if close(result, log_ndtr(cavity_mean / np.sqrt(1 + cavity_variance))):
        return "That is log P(y = +1); for a label y it needs a factor y inside."
    if not close(result, right):
        return "Not the leave-one-out log probabilities: first the cavity's mean and variance, then log Z."


@checker("ep-5-step")
def largest_step(answer):
    function = as_function(answer)
    cases = [[-1.5, 0.3, 0.7], [-0.5 + 2j, -0.5 - 2j, 0.2], [0.5, 0.2], [0.9 + 1j, 0.9 - 1j, -2.0]]
    cases = [np.array(case) for case in cases]
    right = [np.min(2 * (1 - case).real / abs(1 - case) ** 2) for case in cases]
    values = [as_number(function(case)) for case in cases]
    if close(values[0], 1 / (1 + 1.5)):
        return "That makes 1 - eps (1 - lambda) equal to 0, the fastest decay, not the edge of stability, which is -1."
    if close(values[0], 2 / 1.7) or close(values[0], 2 / 0.3):
        return "The binding eigenvalue is the most negative one: every eigenvalue must shrink, so take the minimum."
    if not close(values[0], right[0]):
        return f"For the real eigenvalues -1.5, 0.3, 0.7 the supremum is where 1 - eps * 2.5 = -1; got {values[0]:.3g}."
    if close(values[1], np.min(2 / (1 - cases[1].real))):
        return "Right for real eigenvalues; for complex ones the imaginary part has been dropped. Expand |1 - eps w|^2."
    if close(values[1], np.min(2 / abs(1 - cases[1]))):
        return "Right for real eigenvalues; for complex ones 2/|w| would do only if w were real. Expand |1 - eps w|^2."
    if not close(values[1], right[1]):
        return "Right for real eigenvalues, not for complex ones. With w = 1 - lambda, when is |1 - eps w|^2 < 1?"
    if close(values[2], 1.0):
        return "Do not cut the answer off at 1: here the supremum is larger, and that is asked for."
    if not all(close(value, expected) for value, expected in zip(values, right, strict=True)):
        return "Right in most cases. Take the minimum over the eigenvalues of their own bounds."


@checker("ep-6-alike")
def alike_map(answer):
    function = as_function(answer)

    def right(tau, nu, N, v, others):
        variance = 1 / (1 / v + others * tau)
        mean = variance * others * nu
        _, d1, d2 = Probit().log_moment(1.0, mean, variance, 1.0)
        new = target(mean, variance, d1, d2, 1.0)
        return np.array([new.tau, new.nu], dtype=float)

    settings = (0.3, 0.4, 7, 5.0)
    result = as_array(function(*settings), shape=(2,))
    if close(result, right(*settings, others=7)):
        return "The cavity contains all N sites; the site's own one has to come out."
    if close(result, right(*settings, others=0)):
        return "The cavity is the prior alone; N - 1 other sites belong to it."
    if close(result[::-1], right(*settings, others=6)):
        return "Those are the right numbers the wrong way round: tau first, then nu."
    if not close(result, right(*settings, others=6)):
        return "Not the new site. The cavity has precision 1/v + (N-1) tau and mean (N-1) nu over that; then d1, d2."


@checker("ep-7-modes")
def two_humps(answer):
    value = as_number(answer)
    one, both, wide, truth = _liar_evidences()
    if close(value, both, rtol=1e-3):
        return None
    if close(value, 2 * one, rtol=1e-3):
        return "Adding logarithms multiplies the evidences. The humps are pieces of one integral: add the evidences."
    if close(value, one, rtol=1e-3):
        return "That is one hump's evidence (or the average of two equal ones). The integral contains both."
    if close(value, wide, rtol=1e-3):
        return "That is the wide fixed point; combine the two lopsided ones."
    if close(value, truth, rtol=1e-3):
        return "That is the exact value; the combined estimate from the two fixed points is asked for."
    return "Not the combined log evidence of the two lopsided fixed points: log(exp(a) + exp(b))."


def _liar_evidences():
    """Log evidence at a lopsided fixed point, of both together, at the wide one, and the exact one, for d = 3."""
    grid = np.linspace(-200, 200, 4001)
    dx = grid[1] - grid[0]
    places, signs = np.array([3.0, 3.3, 3.6, -3.0, -3.3, -3.6]), np.array([1, 1, 1, -1, -1, -1])
    factors = 0.05 + 0.9 * ndtr(signs[:, None] * (grid - places[:, None]) / 0.5)
    density = np.exp(-(grid**2) / 50) / np.sqrt(50 * np.pi) * factors.prod(axis=0)
    one = _fixed_point(factors, grid, np.array([0.5, 0.5, 0.5, 0.0, 0.0, 0.0]))
    wide = _fixed_point(factors, grid, np.zeros(6))
    return one, one + np.log(2), wide, np.log(density.sum() * dx)


def _fixed_point(factors, grid, shifts, sweeps=2000, step=0.2):
    """EP's log evidence at the fixed point reached from the given precision-means, all sites in parallel."""
    dx, prior = grid[1] - grid[0], 1 / 25
    log_integral = lambda shift, precision: 0.5 * shift**2 / precision - 0.5 * np.log(precision / (2 * np.pi))
    tau, nu = 0.1 * np.abs(shifts), shifts.astype(float)
    for _ in range(sweeps):
        precision, shift = prior + tau.sum() - tau, nu.sum() - nu
        height = log_integral(shift, precision)
        log_cavity = np.outer(shift, grid) - 0.5 * np.outer(precision, grid**2) - height[:, None]
        tilted = factors * np.exp(log_cavity) * dx
        Z = tilted.sum(axis=1)
        mean = tilted @ grid / Z
        variance = np.einsum("ng,ng->n", tilted, (grid - mean[:, None]) ** 2) / Z
        whole = log_integral(nu.sum(), prior + tau.sum())
        log_Z = whole - log_integral(0.0, prior) + np.sum(np.log(Z) + height - whole)
        tau, nu = tau + step * (1 / variance - precision - tau), nu + step * (mean / variance - shift - nu)
    return float(log_Z)
