"""Checkers of the chapter "Power EP and its limits"."""

from functools import cache

import numpy as np
from exercises import (
    Within,
    as_array,
    as_number,
    as_things,
    called,
    checker,
    close,
    number,
    question,
    quiz_of,
)
from scipy.optimize import brentq
from scipy.special import ndtr

from pepcore import exact
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit
from pepcore.sites import Sites, cavity, target


def _gaussian_divergence(alpha, p, q):
    """D_alpha of two Gaussians given as (mean, variance)."""
    (mp, vp), (mq, vq) = p, q
    precision = alpha / vp + (1 - alpha) / vq
    b = alpha * mp / vp + (1 - alpha) * mq / vq
    log_overlap = 0.5 * (b**2 / precision - np.log(precision)) - 0.5 * alpha * (mp**2 / vp + np.log(vp))
    log_overlap -= 0.5 * (1 - alpha) * (mq**2 / vq + np.log(vq))
    return (1 - np.exp(log_overlap)) / (alpha * (1 - alpha))


P, Q = (0, 1), (1, 4)      # exercise 1: mean and variance of p and of q
DIVERGENCE = _gaussian_divergence(0.25, P, Q)

number(
    "pep-1-divergence",
    DIVERGENCE,
    digits=3,
    mistakes=[
        (_gaussian_divergence(0.75, P, Q), "p and q are exchanged: the power α belongs to p, 1 − α to q."),
        (_gaussian_divergence(0.25, P, (1, 16)), "4 is the variance of q, not its standard deviation."),
        (DIVERGENCE * 0.25 * 0.75, "the factor 1/(α (1 − α)) is missing."),
        (1 - DIVERGENCE * 0.25 * 0.75,
         "that is the integral of p^α q^(1 − α); the divergence needs one step more."),
        (Within(high=0.0), "a divergence of two different densities is positive."),
    ],
    otherwise="add the natural parameters with weights 1/4 and 3/4, and mind the normalisers of both densities.",
)


@checker("pep-2-poisson", never=["exp(mean + variance / 2)", "e^(μ + s/2)", "y - tau + tau * mean"])
def poisson(answer):
    tried = np.array([(3.0, 0.4, 0.5), (0.0, -0.3, 0.8), (7.0, 0.9, 1.7)])
    tau, nu = np.transpose([_site(called(answer, *map(float, given))) for given in tried])
    y, mean, variance = tried.T
    rate = np.exp(mean + variance / 2)
    if close(nu, rate) and close(tau, y - rate + rate * mean):
        return "those are the right numbers the wrong way round: τ first, then ν."
    if close(tau, np.exp(mean)):
        return "this is the curvature at the mean of q: Laplace's approximation. Here it is averaged under q."
    if close(tau, -rate):
        return "the sign of τ: the log-likelihood bends downwards, so the site has a positive precision."
    if close(tau, np.exp(mean + variance)):
        return "E[exp f] of a Gaussian has half the variance in the exponent."
    if close(tau, np.exp(mean + variance**2 / 2)):
        return "the third argument is a variance, not a standard deviation."
    if not close(tau, rate):
        return "τ is not right. Which derivative of log p is averaged, and under which density?"
    if close(nu, y - rate):
        return "τ is right; ν has a second term, since a site is centred at zero and not at μ."
    if not close(nu, y - rate + rate * mean):
        return "τ is right, ν is not: take the expected first derivative, then centre the site at zero."


def _site(result):
    """τ and ν of what the reader's function returned."""
    if isinstance(result, Sites):
        result = result.tau, result.nu
    return [as_number(part) for part in as_things(result, 2, "two numbers, τ and ν,")]


@checker("pep-3-gaussian", never=["1 / (noise + alpha * h)", "noise + alpha h"])
def gaussian(answer):
    tests = [(0.3, 0.7, 0.2), (1.0, 0.5, 0.1), (0.0, 0.5, 0.1), (0.5, 0.0, 0.4)]
    got = []
    for alpha, h, noise in tests:
        try:
            with np.errstate(all="ignore"):
                value = called(answer, alpha, h, noise)
        except ZeroDivisionError:
            if alpha:
                raise
            value = np.inf
        if alpha == 0 and np.asarray(value).dtype.kind == "f" and not np.all(np.isfinite(value)):
            return "α = 0 is tried too: cancel the α before you divide."
        got.append(as_number(value))
    alpha, h, noise = np.array(tests).T
    if close(got, noise + alpha * h):
        return "that is the variance of the site; the precision is asked for."
    if close(got, 1 / (noise + h)):
        return "right for α = 1 (FITC) only: the residual enters with a weight that depends on α."
    if close(got, 1 / noise):
        return "right for α = 0 (VFE) only: where does h enter the tilted expectation?"
    if close(got, alpha / (noise + alpha * h)):
        return "this is the precision of the site to the power α; divide by α."
    if close(got, 1 / (noise**2 + alpha * h)):
        return "the argument noise is the variance σ² already: do not square it."
    if not close(got, 1 / (noise + alpha * h)):
        return ("not the precision. Average p^α over the variance s + h, differentiate twice, and put d2 into the "
                "target: s must drop out.")


def _data():
    """The chapter's 24 labels on a line."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-3, 3, 24))
    return x[:, None], np.where(rng.uniform(size=24) < ndtr(3 * np.sin(1.4 * x) + 0.8), 1.0, -1.0)


@cache
def _classifier(variance):
    X, y = _data()
    kernel = SquaredExponential(variance, 1.0)
    return exact.infer(kernel, X, y, likelihood=Probit(), alpha=0.0, step=0.5, tolerance=1e-9, max_sweeps=1000)


@cache
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


def _straight_line(slopes=1.0):
    """The bound at alpha = 0 plus so many times its slope."""
    fit = _classifier(25.0)
    return fit.log_evidence + slopes * _half_variances(fit)


DELTA = 0.01        # exercise 6: probability of a wrong label


def _bend(gain=1 - 2 * DELTA, spread=True):
    """Where the second derivative of log p changes sign, for z = y f."""
    density = lambda z: np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    likelihood = lambda z: DELTA * spread + (1 - 2 * DELTA * spread) * ndtr(z)
    return brentq(lambda z: -z * likelihood(z) - gain * density(z), -6, -0.5)


number(
    "pep-4-step",
    lambda: 2 / (1 - _smallest_eigenvalue()),
    digits=2,
    mistakes=[
        (lambda: 1 / (1 - _smallest_eigenvalue()),
         "at this step the worst direction is corrected in one go; it converges until it overshoots by as much again."),
        (lambda: 2 / (1 + _smallest_eigenvalue()),
         "the sign of lambda: the factor per sweep is 1 - step (1 - lambda)."),
        (lambda: -2 / (1 + _smallest_eigenvalue()),
         "the sign of lambda: the factor per sweep is 1 - step (1 - lambda)."),
        (lambda: _smallest_eigenvalue(), "this is the eigenvalue; for which steps is |1 - step (1 - lambda)| < 1?"),
        (Within(high=0.0), "a step is positive."),
    ],
    otherwise="find the most negative eigenvalue of the Jacobian of (τ, ν) -> targets at the fixed point of α "
              "= 0.",
    never=["2/(1 - lambda)"],
)

number(
    "pep-5-slope",
    _straight_line,
    decimals=2,
    mistakes=[
        (lambda: _straight_line() - _straight_line(0), "this is the slope; add it to the bound."),
        (lambda: _straight_line(0), "this is the bound itself; add its slope times the way from 0 to 1."),
        (lambda: _straight_line(2),
         "twice too steep: which factor stands before each variance in the limit of the slope?"),
        (lambda: _straight_line(-1), "the evidence rises with α: add the slope."),
        (lambda: Within(0.9 * np.exp(_straight_line()), 1.1 * np.exp(_straight_line())),
         "that is the evidence; its logarithm is asked for."),
    ],
    otherwise="which sum over the data does the slope of the evidence become at α = 0, and how far is it from "
              "there to 1?",
)

number(
    "pep-6-flips",
    _bend,
    digits=3,
    mistakes=[
        (lambda: -_bend(), "the sign: the logarithm bends upwards where the label is badly misclassified, yf < 0."),
        (lambda: _bend(gain=1.0), "the slope of p has a factor as well: only a part of p depends on f."),
        (lambda: _bend(gain=1 - DELTA),
         "a label that can flip both ways loses the probability twice, once at each end."),
    ],
    otherwise="set the second derivative of log p to zero: p p'' = (p')². What is p' for this p?",
)


@checker("pep-7-yours", never=["5 / (3 +"])
def your_likelihood(answer):
    derivatives, y = as_things(answer, 2, "the function derivatives(y, f) and one value y")
    y = y if isinstance(y, int | np.integer) else as_number(y)      # a count stays one: it may be an index
    f, t = np.linspace(-2.93, 3.07, 13), 1e-5      # kinks stand at round numbers
    at = lambda f: tuple(as_array(part, (13,)) for part in as_things(
        called(derivatives, y, f), 3, "log p and its first two derivatives in f"))
    (log_p, d1, d2), up, down = at(f), at(f + t), at(f - t)
    if np.ptp(log_p) == 0:
        return "log p does not depend on f: it says nothing about f."
    slope, bend = (up[0] - down[0]) / (2 * t), (up[1] - down[1]) / (2 * t)
    if not close(d1, slope, digits=4, atol=1e-6):
        return ("the sign of the first derivative is reversed." if close(d1, -slope, digits=4, atol=1e-6) else
                "the first derivative is not that of your log p, by finite differences. Is it the derivative in f?")
    if not close(d2, bend, digits=4, atol=1e-6):
        return ("the sign of the second derivative is reversed." if close(d2, -bend, digits=4, atol=1e-6) else
                "the second derivative is not that of your first one, by finite differences.")
    if abs(d2).max() <= 1e-9 * abs(d1).max():
        return ("log p is a straight line wherever it was tried, so no site can be made of its curvature. Choose a smooth "
                "likelihood.")
    if np.ptp(d2) < 1e-9 * abs(d2).max() and d2.max() < 0:
        return "the second derivative is constant: this likelihood is Gaussian, and every power gives the same."
    return None


quiz_of(
    "pep-quiz",
    question(
        "A target has two humps far apart. A Gaussian that minimises the divergence D_α[p‖q] with α near 1 "
        "...",
        [("sits on one hump", "that is what the other end prefers, where q must avoid places without p."),
         ("covers both humps", None),
         ("sits in the gap and is narrow", "then nearly all of p would lie outside q.")],
        why="Near 1 a place with p but without q costs much, so the Gaussian covers all of p.",
    ),
    question(
        "In a Power EP update with power α, which part of the site is taken out of the posterior?",
        [("all of it", "that is the case α = 1."),
         ("the fraction α", None),
         ("the fraction 1 − α", "that is what stays in.")],
        why="The fraction that was taken out is replaced through the likelihood to the power α.",
    ),
    question(
        "The paper's own step is damped by the power itself. What does this do at α = 0.01?",
        [("each sweep goes a hundredth of the way, so that learning crawls", None),
         ("it makes the fixed point differ", "a damped step has the same fixed points."),
         ("it makes the sweep diverge", "a short step is the safer one.")],
        why="Slowness of small powers belongs to the step. A step that does not depend on the power removes it.",
    ),
    question(
        "At fixed hyper-parameters, how does the log evidence estimate change as α goes from 0 to 1 (at fixed "
        "points that vary smoothly)?",
        [("it falls", "each datum adds a divergence to the slope: which sign does a divergence have?"),
         ("it has its maximum at one half", "its slope cannot change sign."),
         ("it rises or stays", None)],
        why="The slope of the estimate in α is a sum of divergences, none of which is negative.",
    ),
)
