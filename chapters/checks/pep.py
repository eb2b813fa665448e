"""Checkers of the chapter "Power EP and its limits"."""

import numpy as np
from exercises import Feedback, as_array, as_function, as_number, checker, close
from scipy.optimize import brentq
from scipy.special import ndtr

from pepcore import exact
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit
from pepcore.sites import Sites, cavity, target


@checker("pep-1-divergence")
def divergence(answer):
    answer = as_number(answer)
    expected = _gaussian_divergence(0.25, (0, 1), (1, 4))
    if close(answer, _gaussian_divergence(0.75, (0, 1), (1, 4)), rtol=1e-3):
        return "p and q are exchanged: the power alpha belongs to p, 1 - alpha to q."
    if close(answer, _gaussian_divergence(0.25, (0, 1), (1, 16)), rtol=1e-3):
        return "4 is the variance of q, not its standard deviation."
    if close(answer, expected * 0.25 * 0.75, rtol=1e-3):
        return "the factor 1/(alpha (1 - alpha)) is missing."
    if close(answer, 1 - expected * 0.25 * 0.75, rtol=1e-3):
        return "that is the integral of p^alpha q^(1 - alpha); the divergence needs one step more."
    if not close(answer, expected, rtol=1e-3):
        return "add the natural parameters with weights 1/4 and 3/4, and mind the normalisers of both densities."


@checker("pep-2-poisson")
def poisson(answer):
    answer = as_function(answer)
    y, mean, variance = 3.0, 0.4, 0.5
    tau, nu = as_array(_call(answer, y, mean, variance), (2,))
    rate, at_mean = np.exp(mean + variance / 2), np.exp(mean)
    if close(tau, at_mean, rtol=1e-6):
        return "this is the curvature at the mean of q: Laplace's approximation. Here it is averaged under q."
    if close(tau, -rate):
        return "the sign of tau: the log-likelihood bends downwards, so the site has a positive precision."
    if close(tau, np.exp(mean + variance)):
        return "E[exp f] of a Gaussian has half the variance in the exponent."
    if not close(tau, rate):
        return "tau is not right: it is minus the expected second derivative of log p."
    if close(nu, y - rate):
        return "tau is right; nu has a second term, tau times mu, since a site is centred at zero and not at mu."
    if not close(nu, y - rate + rate * mean):
        return "tau is right; nu is the expected first derivative plus tau times mu."


@checker("pep-3-gaussian")
def gaussian(answer):
    answer = as_function(answer)
    tests = [(0.3, 0.7, 0.2), (1.0, 0.5, 0.1), (0.0, 0.5, 0.1), (0.5, 0.0, 0.4)]
    got = []
    for alpha, h, noise in tests:
        try:
            with np.errstate(all="ignore"):
                value = _call(answer, alpha, h, noise)
        except ZeroDivisionError:
            if alpha:
                raise
            value = np.inf
        if alpha == 0 and not np.all(np.isfinite(value)):
            return "α = 0 is tried too: cancel the α before you divide."
        got.append(as_number(value))
    alpha, h, noise = np.array(tests).T
    if close(got, noise + alpha * h):
        return "that is the variance of the site; the precision is asked for."
    if close(got, 1 / (noise + h)):
        return "right for alpha = 1 (FITC) only: the residual enters with a weight that depends on alpha."
    if close(got, 1 / noise):
        return "right for alpha = 0 (VFE) only: where does v = s + h enter the tilted expectation?"
    if close(got, alpha / (noise + alpha * h)):
        return "this is the precision of the site to the power alpha; divide by alpha."
    if not close(got, 1 / (noise + alpha * h)):
        return "use d2 = -1/(noise + alpha v) with v = s + h in the target; the cavity variance s must drop out."


@checker("pep-4-step")
def longest_step(answer):
    answer = as_number(answer)
    smallest = _smallest_eigenvalue()
    if close(answer, 1 / (1 - smallest), rtol=0.02):
        return "at this step the worst direction is corrected in one go; it converges until it overshoots by as much again."
    if close(abs(answer), abs(2 / (1 + smallest)), rtol=0.02):
        return "the sign of lambda: the factor per sweep is 1 - step (1 - lambda)."
    if close(answer, smallest, rtol=0.02):
        return "this is the eigenvalue; for which steps is |1 - step (1 - lambda)| < 1?"
    if not close(answer, 2 / (1 - smallest), rtol=0.02):
        return "find the most negative eigenvalue of the Jacobian of (tau, nu) -> targets at the fixed point of alpha = 0."


@checker("pep-5-slope")
def straight_line(answer):
    answer = as_number(answer)
    fit = _classifier(25.0)
    slope = _half_variances(fit)
    if close(answer, slope, rtol=2e-2):
        return "this is the slope; add it to the bound."
    if close(answer, fit.log_evidence, rtol=1e-3):
        return "this is the bound itself; add its slope times the way from 0 to 1."
    if close(answer, fit.log_evidence + 2 * slope, rtol=1e-3):
        return "the limit of the slope has a factor one half before the variance."
    if close(answer, fit.log_evidence - slope, rtol=1e-3):
        return "the evidence rises with alpha: add the slope."
    if not close(answer, fit.log_evidence + slope, rtol=1e-3):
        return "take half the variance under q of log p - (nu f - tau f²/2) for each datum, at the fixed point of alpha = 0."


@checker("pep-6-flips")
def flips(answer):
    answer = as_number(answer)
    delta = 0.01
    density = lambda z: np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    curvature = lambda z, gain: -z * (delta + (1 - 2 * delta) * ndtr(z)) - gain * density(z)
    expected = brentq(curvature, -6, -0.5, args=(1 - 2 * delta,))
    if close(answer, -expected, rtol=2e-3):
        return "the sign: the logarithm bends upwards where the label is badly misclassified, yf < 0."
    if not close(answer, expected, rtol=2e-3):
        return "set the second derivative of log p to zero: p p'' = (p')², with p' = (1 - 2 delta) times the normal density."


def _call(function, *arguments):
    """What the reader's function returns; the stub of the exercise returns nothing yet."""
    result = function(*arguments)
    if result is None or result is Ellipsis:
        raise Feedback("there is no answer yet.")
    return result


def _gaussian_divergence(alpha, p, q):
    """D_alpha of two Gaussians given as (mean, variance)."""
    (mp, vp), (mq, vq) = p, q
    precision = alpha / vp + (1 - alpha) / vq
    b = alpha * mp / vp + (1 - alpha) * mq / vq
    log_overlap = 0.5 * (b**2 / precision - np.log(precision)) - 0.5 * alpha * (mp**2 / vp + np.log(vp))
    log_overlap -= 0.5 * (1 - alpha) * (mq**2 / vq + np.log(vq))
    return (1 - np.exp(log_overlap)) / (alpha * (1 - alpha))


def _data():
    """The chapter's 24 labels on a line."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-3, 3, 24))
    return x[:, None], np.where(rng.uniform(size=24) < ndtr(3 * np.sin(1.4 * x) + 0.8), 1.0, -1.0)


def _classifier(variance):
    X, y = _data()
    kernel = SquaredExponential(variance, 1.0)
    return exact.infer(kernel, X, y, likelihood=Probit(), alpha=0.0, step=0.5, tolerance=1e-9, max_sweeps=1000)


def _smallest_eigenvalue():
    """Most negative eigenvalue of the Jacobian of (tau, nu) -> targets, at alpha = 0 and signal variance 100."""
    X, y = _data()
    K = SquaredExponential(100.0, 1.0)(X)
    fit = _classifier(100.0)

    def targets(z):
        sites = Sites(*z.reshape(2, -1))
        V = np.linalg.solve(np.eye(len(y)) + K * sites.tau, K)
        mean, variance = cavity(V @ sites.nu, np.diag(V), sites, 0.0)
        _, d1, d2 = Probit().log_moment(y, mean, variance, 0.0)
        new = target(mean, variance, d1, d2, 0.0)
        return np.r_[new.tau, new.nu]

    z, step = np.r_[fit.sites.tau, fit.sites.nu], 1e-6
    rows = [(targets(z + step * u) - targets(z - step * u)) / (2 * step) for u in np.eye(len(z))]
    return np.linalg.eigvals(np.array(rows).T).real.min()


def _half_variances(fit):
    """Half the variance under q of log p - log t, summed over the data: the slope of the evidence at alpha = 0."""
    X, y = _data()
    mean, variance = fit.predict_f(X)
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    f = mean + np.sqrt(variance) * nodes[:, None]
    log_ratio = Probit().log_density(y, f) - fit.sites.nu * f + 0.5 * fit.sites.tau * f**2
    weights = weights[:, None] / weights.sum()
    return 0.5 * np.sum((weights * log_ratio**2).sum(0) - (weights * log_ratio).sum(0) ** 2)
