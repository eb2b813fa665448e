"""Checkers of the exercises in the chapter "EP, step by step"."""

from functools import cache

import numpy as np
from exercises import (
    ANY,
    RIGHT,
    Feedback,
    as_array,
    as_kernel,
    as_number,
    as_things,
    called,
    checker,
    close,
    number,
    numbers,
    question,
    quiz_of,
    rounded,
)
from scipy.special import log_ndtr, ndtr

from pepcore import exact
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit
from pepcore.sites import target

WEIGHTS, MEANS, VARIANCES = np.array([0.7, 0.3]), np.array([-1.0, 2.0]), np.array([0.25, 1.0])    # exercise 1
CENTRE, WITHIN = WEIGHTS @ MEANS, WEIGHTS @ VARIANCES
BETWEEN = WEIGHTS @ (MEANS - CENTRE) ** 2

numbers(
    "ep-1-mixture",
    {"mean": CENTRE, "variance": WITHIN + BETWEEN},
    decimals=2,
    mistakes=[
        ((MEANS[0], ANY), "the mean sits on the taller hump: that is where KL(q||p) would lead, not KL(p||q)."),
        ((MEANS.mean(), ANY), "the two humps do not have the same weight."),
        ((RIGHT, WITHIN),
         "the mean is right. The variance lacks a part: the two humps also lie apart from one another."),
        ((RIGHT, BETWEEN), "the mean is right. The variance lacks a part: each hump has a width of its own."),
        ((RIGHT, np.sqrt(WITHIN + BETWEEN)), "the mean is right, and that is the standard deviation: square it."),
        ((RIGHT, WEIGHTS @ np.sqrt(VARIANCES) + BETWEEN),
         "the mean is right. For the variance average variances, not deviations."),
    ],
    otherwise=[
        "the mean is not the mean of p. Which property of p does the nearest Gaussian copy?",
        "the mean is right, the variance is not. Try E[f^2] - E[f]^2.",
    ],
)


@checker("ep-2-step", never=["log Phi(y", "y rho / sd", "-rho (rho + z) / variance"])
def step_likelihood(answer):
    y, variance = np.array([1.0, -1.0, 1.0, -1.0]), np.array([0.5, 2.0, 1.0, 3.0])
    mean = np.array([0.4, 0.9, -1.3, -0.2])
    result = as_things(called(answer, y, mean, variance), 3, "three things, log Z, d1 and d2,")
    log_Z, d1, d2 = (as_array(part, shape=(4,)) for part in result)
    right_log_Z, right_d1, right_d2 = _step_moments(y, mean, variance)
    if close(log_Z, Probit().log_moment(y, mean, variance, 1.0)[0]):
        return "that is the probit with unit noise. Here the label is the exact sign of f: what becomes of 1 + s?"
    if close(log_Z, np.exp(right_log_Z)):
        return "that is Z; its logarithm is asked for."
    if close(log_Z, _step_moments(1.0, mean, variance)[0]):
        return "log Z does not depend on the label y; it must."
    if close(log_Z, log_ndtr(y * mean / variance)):
        return "z should be divided by the standard deviation, not the variance."
    if not close(log_Z, right_log_Z):
        return "log Z is not right. It is log P(y f > 0) for f ~ N(mean, variance)."
    if close(d1, y * right_d1):
        return "log Z is right. d1 lacks the factor y that comes from the chain rule."
    if not close(d1, right_d1):
        return "log Z is right, d1 is not: differentiate it in the mean, chain rule included."
    if close(d2, -right_d2):
        return "log Z and d1 are right. d2 has the wrong sign: log Z is concave in the mean."
    if not close(d2, right_d2):
        return "log Z and d1 are right, d2 is not. With rho = phi(z)/Phi(z), rho' = -rho (z + rho)."


def _step_moments(y, mean, variance):
    sd = np.sqrt(variance)
    z = y * mean / sd
    rho = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) / ndtr(z)
    return log_ndtr(z), y * rho / sd, -rho * (rho + z) / variance


SIGMA = 0.4      # exercise 3

number(
    "ep-3-worth",
    1 / SIGMA**2,
    digits=3,
    mistakes=[
        (1.0, "that is the bound for unit noise. A precision changes with the units of f."),
        (1 / SIGMA, "that is 1/sigma. In which units is a precision measured?"),
        (SIGMA**2, "that is a variance. Less noise should make a label worth more."),
        (SIGMA, "that is sigma. Less noise should make a label worth more."),
    ],
    otherwise="write f in units of sigma, where the bound is that of the chapter, and convert back.",
    never=["1/sigma^2", "1/σ²"],
)


@checker("ep-4-loo", never=["y * (mean - nu * variance) / c", "(μ − νs)/c"])
def leave_one_out(answer):
    rng = np.random.default_rng(12)
    X = rng.uniform(-3, 3, (25, 1))
    y = np.where(np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=25) > 0, 1.0, -1.0)
    kernel = SquaredExponential(4.0, 1.0)
    fit = exact.infer(kernel, X, y, likelihood=Probit())
    tau, nu = fit.sites.tau, fit.sites.nu
    mean, variance = fit.predict_f(X)
    result = as_array(called(answer, mean, variance, tau, nu, y))
    kept = 1 - tau * variance
    cavity_mean, cavity_variance = (mean - nu * variance) / kept, variance / kept
    right = log_ndtr(y * cavity_mean / np.sqrt(1 + cavity_variance))
    if result.shape == () and close(result, right.sum()):
        return "that is their sum; return the 25 log probabilities themselves."
    if result.shape != (25,):
        return f"25 log probabilities are expected for 25 data, got shape {result.shape}."
    if close(result, np.exp(right)):
        return "these are the probabilities; their logarithms are asked for."
    if close(result, -right):
        return "the sign is reversed: log probabilities are negative."
    if close(result, log_ndtr(y * mean / np.sqrt(1 + variance)), digits=5):
        return "that uses the posterior, which has already seen the label. Take the cavity."
    if close(result, log_ndtr(y * cavity_mean)) or close(result, log_ndtr(y * cavity_mean / np.sqrt(cavity_variance))):
        return "the cavity is right; the label has unit noise of its own on top of the cavity's variance: sqrt(1 + s)."
    if close(result, log_ndtr(cavity_mean / np.sqrt(1 + cavity_variance))):
        return "that is log P(y = +1); for a label y it needs a factor y inside."
    if not close(result, right):
        return "not the leave-one-out log probabilities: first the cavity's mean and variance, then log Z."


@checker("ep-5-step", never=["2 * w.real / abs(w)", "2 Re w/|w|²"])
def largest_step(answer):
    cases = [[-1.5, 0.3, 0.7], [-0.5 + 2j, -0.5 - 2j, 0.2], [0.5, 0.2], [0.9 + 1j, 0.9 - 1j, -2.0]]
    cases = [np.array(case) for case in cases]
    right = [np.min(2 * (1 - case).real / abs(1 - case) ** 2) for case in cases]
    values = [as_number(called(answer, case)) for case in cases]
    pairs = list(zip(values, right, strict=True))
    if all(close(*pair) for pair in pairs):
        return None
    if all(close(*pair, rtol=2e-3) for pair in pairs):
        return "close, as if found on a grid. Six digits must be right: solve for the step."
    if close(values[0], 1 / (1 + 1.5)):
        return "that makes 1 - eps (1 - lambda) equal to 0, the fastest decay, not the edge of stability, which is -1."
    if close(values[0], 2 / 1.7) or close(values[0], 2 / 0.3):
        return "the binding eigenvalue is the most negative one: every eigenvalue must shrink, so take the minimum."
    if not close(values[0], right[0]):
        return (f"for the real eigenvalues -1.5, 0.3, 0.7 you say {values[0]:.3g}. Which of the three leaves (-1, 1) "
                "first as eps grows?")
    if close(values[1], np.min(2 / (1 - cases[1].real))):
        return "right for real eigenvalues; for complex ones the imaginary part has been dropped. Expand |1 - eps w|^2."
    if close(values[1], np.min(2 / abs(1 - cases[1]))):
        return "right for real eigenvalues; for complex ones 2/|w| would do only if w were real. Expand |1 - eps w|^2."
    if not close(values[1], right[1]):
        return "right for real eigenvalues, not for complex ones. With w = 1 - lambda, when is |1 - eps w|^2 < 1?"
    if close(values[2], 1.0):
        return "do not cut the answer off at 1: here the supremum is larger, and that is asked for."
    return "right in most cases. Take the minimum over the eigenvalues of their own bounds."


def _alike(tau, nu, N, s_0, others):
    variance = 1 / (1 / s_0 + others * tau)
    mean = variance * others * nu
    _, d1, d2 = Probit().log_moment(1.0, mean, variance, 1.0)
    new = target(mean, variance, d1, d2, 1.0)
    return np.array([new.tau, new.nu], dtype=float)


@cache
def _first_unstable(s_0=100.0, h=1e-6):
    """The smallest N at whose fixed point the undamped map has an eigenvalue outside the unit circle."""
    for N in range(2, 60):
        point = np.array([0.1, 0.1])
        for _ in range(400):        # damped, so that it arrives also where the undamped map does not
            point = 0.7 * point + 0.3 * _alike(*point, N, s_0, N - 1)
        columns = [(_alike(*(point + d), N, s_0, N - 1) - _alike(*(point - d), N, s_0, N - 1)) / (2 * h)
                   for d in h * np.eye(2)]
        if np.abs(np.linalg.eigvals(np.array(columns).T)).max() > 1:
            return N
    raise ArithmeticError("stable for all N tried")


@checker("ep-6-alike", never=["-d2 / (1 + d2", "1/s_0 + (N-1) tau"])
def alike_map(answer):
    function, smallest = as_things(answer, 2, "the function and the smallest N")
    settings = (0.3, 0.4, 7, 5.0)
    result = as_array(called(function, *settings), shape=(2,))
    if close(result, _alike(*settings, others=7)):
        return "the cavity contains all N sites; the site's own one has to come out."
    if close(result, _alike(*settings, others=0)):
        return "the cavity is the prior alone; N - 1 other sites belong to it."
    if close(result[::-1], _alike(*settings, others=6)):
        return "those are the right numbers the wrong way round: tau first, then nu."
    if not close(result, _alike(*settings, others=6)):
        return ("not the new site. Write the cavity down for N = 1 and N = 2 first; then come the moments, then the "
                "target.")
    if smallest is None or smallest is Ellipsis:
        raise Feedback("the function is right. The smallest N is still missing.")
    N = as_number(smallest)
    if N == _first_unstable() - 1:
        return "the function is right. That N is the last stable one, or it counts the other sites only."
    if N < _first_unstable():
        return "the function is right. For that N it converges: start the undamped iteration near its fixed point."
    if N != _first_unstable():
        return ("the function is right. A smaller N is unstable already: the slowest oscillations take many sweeps to "
                "grow, so look at the eigenvalues of the map at its fixed point.")


number(
    "ep-7-modes",
    lambda: _liar_evidences()[1],
    decimals=2,
    mistakes=[
        (lambda: 2 * _liar_evidences()[0],
         "adding logarithms multiplies the two contributions. The humps are pieces of one integral."),
        (lambda: _liar_evidences()[0],
         "that is one hump's evidence (or the average of two equal ones). The integral contains both."),
        (lambda: _liar_evidences()[2], "that is the wide fixed point; combine the two lopsided ones."),
        (lambda: _liar_evidences()[3],
         "that is the exact value; the combined estimate from the two fixed points is asked for."),
    ],
    otherwise="not the combined log evidence of the two lopsided fixed points. What is each of the two an estimate of?",
    never=["log(exp(a) + exp(b))", "logsumexp", "log 2"],
)


@cache
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


@checker("ep-8-yours", never=["log_ndtr"])
def your_labels(answer):
    kernel, X, y, loo = as_things(answer, 4,
        "kernel, inputs X (N, D), labels y (N,) and N leave-one-out log probabilities")
    X, y, loo = as_array(X), as_array(y), as_array(loo)
    kernel = as_kernel(kernel)
    if X.ndim != 2 or not 20 <= len(X) <= 400 or y.shape != (len(X),):
        raise Feedback(f"20 to 400 rows are asked for, X (N, D) and y (N,); got the shapes {X.shape} and {y.shape}.")
    if not np.isin(y, (-1, 1)).all() or len(np.unique(y)) < 2:
        return "labels are -1 and +1, and both must occur: y = np.where(label == one_of_them, 1.0, -1.0)."
    if loo.shape != y.shape:
        return f"one log probability for each of the {len(y)} labels is asked for; got shape {loo.shape}."
    if loo.max() > 0:
        return "the logarithm of a probability is never positive."
    fit = exact.infer(kernel, X, y, likelihood=Probit())
    tau, nu = fit.sites.tau, fit.sites.nu
    mean, variance = fit.predict_f(X)
    kept = 1 - tau * variance
    mean_out, out = (mean - nu * variance) / kept, variance / kept
    right = log_ndtr(y * mean_out / np.sqrt(1 + out))
    if rounded(loo, right, 3):
        return None
    if np.all(np.abs(loo - right) <= 0.51e-3):
        return "close: three significant digits must be right, and not only three digits after the point."
    if rounded(loo, log_ndtr(y * mean / np.sqrt(1 + variance)), 3):
        return "that uses the posterior, which has already seen the label. Take the cavity."
    return "these are not the leave-one-out log probabilities of a fit with this kernel: was it learnt, or changed, in between?"


quiz_of(
    "ep-quiz",
    question(
        "EP replaces a likelihood factor by a Gaussian site. What does the new site copy?",
        [("the factor near its maximum", "that would be Laplace's method: it ignores how wide the cavity is."),
         ("the mean and variance that the factor gives to the cavity", None),
         ("the factor's own mean and variance",
          "a factor such as a probit has none: it does not even integrate to something finite.")],
        why="The site makes the cavity times the site have the moments of the cavity times the factor.",
    ),
    question(
        "The undamped parallel sweep oscillates between two values. What mends it?",
        [("more sweeps", "if the eigenvalue is below -1, the swings grow or stay."),
         ("a larger step", "a longer step overshoots more."),
         ("a smaller step, or one datum at a time", None)],
        why="A step multiplies the error by 1 - step (1 - eigenvalue). A small enough step brings that inside (-1, 1).",
    ),
    question(
        "Two fixed points of EP for one problem report a log evidence of −10.1 and of −12.3. What do you know?",
        [("the larger one is the closer to the truth",
          "no bound says so. A fixed point may cover one hump and miss another."),
         ("each is an estimate made around its own approximation", None),
         ("the algorithm has not converged", "both are fixed points; the equations can have several.")],
        why="EP's fixed points need not be unique, and its evidence is no bound.",
    ),
    question(
        "A probit label with unit noise can be worth at most how much as a site?",
        [("the precision of one measurement with unit noise", None),
         ("any precision, if the cavity is wide",
          "however wide the cavity is, the site's precision stays below that of one such measurement."),
         ("half of the prior's precision", "the bound does not involve the prior.")],
        why="One bit, seen through unit noise, never says more than one look at f through that noise.",
    ),
)
