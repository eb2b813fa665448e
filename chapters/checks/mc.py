"""Checkers of the chapter "Stochastic EP for many classes"."""

import warnings

import numpy as np
from exercises import Feedback, as_array, as_function, checker, close
from scipy.stats import norm

from pepcore import multiclass
from pepcore.kernels import SquaredExponential

NOISE, ALLOWED, NEAR = 0.05, 6, 0.07


def called(function, *arguments):
    """What the reader's function returns for copies of these arguments, or feedback when it is nothing."""
    result = as_function(function)(*(np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments))
    if result is None:
        raise Feedback("the function returns nothing yet.")
    return result


@checker("mc-1-pieces")
def pieces(answer):
    answer = as_array(answer, (2,))
    C = np.array([5, 20])
    same = lambda expected: all(close(a, e, rtol=0.04) for a, e in zip(answer, expected, strict=True))
    if same(np.log(2.0) * (C - 1)):
        return "that is what the pieces cost; the exact factor costs log C of it anyway."
    if same(np.log(2.0) * C - np.log(C)):
        return "there are C − 1 rivals, not C."
    if same(np.log(C) - np.log(2.0) * (C - 1)):
        return "the numbers are right but for the sign: losses are asked for as positive numbers."
    if not same(np.log(2.0) * (C - 1) - np.log(C)):
        return "compare log(1/C) with the logarithm of C − 1 factors of one half."


def two_sites(own, rival, noise, rival_sign=-1.0, with_residual=False, residual=True):
    """The sites of one comparison at α = 1, and what the usual mistakes make of them."""
    t = own[1] + rival[1] + noise + residual * (own[2] + rival[2])
    z = (own[0] - rival[0]) / np.sqrt(t)
    hazard = np.exp(norm.logpdf(z) - norm.logcdf(z))
    d1, d2 = hazard / np.sqrt(t), -hazard * (hazard + z) / t
    found = []
    for (mean, s, h), sign in ((own, 1.0), (rival, rival_sign)):
        shrink = 1 + d2 * (s + with_residual * h)
        found += [-d2 / shrink, (sign * d1 - d2 * mean) / shrink]
    return np.array(found)


@checker("mc-2-site")
def comparison(answer):
    case = (0.3, 0.5, 0.2), (0.8, 0.9, 0.1), 0.4
    found = as_array(called(answer, *case), (4,))
    if close(found, two_sites(*case, rival_sign=1.0)):
        return "the rival's site pulls upwards: that is the misprint of the paper. Its first derivative has the other sign."
    if close(found, two_sites(*case, with_residual=True)):
        return "the denominators hold the residual h; the sites are of a'v, whose cavity variance is s alone."
    if close(found, two_sites(*case, residual=False)):
        return "the variance of the difference lacks the two residuals h."
    if not close(found, two_sites(*case)):
        return "take t = all variances together, z = (difference of means)/√t, and then (mc-site) for each role."


@checker("mc-3-memory")
def memory(answer):
    answer = as_array(answer, (3,))
    C, M, N = 10, 200, 60_000
    if close(answer[0], 2 * (C - 1) * N):
        return "each factor has two sites, and each site two numbers."
    if not close(answer[0], 4 * (C - 1) * N):
        return "EP: C − 1 factors for each datum, two sites for each factor, two numbers for each site."
    if close(answer[1], C * M**2):
        return "SEP also stores the vectors b."
    if not close(answer[1], C * (M**2 + M)):
        return "SEP: a matrix (M, M) and a vector (M,) for each class."
    if not close(answer[2], C * (M**2 + M) / (4 * (C - 1)), rtol=1e-3):
        return "the last number is the N at which 4 (C − 1) N is what SEP stores."


def tied_cavity(Lam, b, n, alpha, prior_too=False, shift_too=True):
    """SEP's cavity, and what the usual mistakes make of it."""
    left = 1 - alpha / n
    precision = left * (np.eye(len(b)) + Lam) if prior_too else np.eye(len(b)) + left * Lam
    V = np.linalg.inv(precision)
    return V @ ((left if shift_too else 1.0) * b), V


@checker("mc-4-cavity")
def cavity(answer):
    root = np.random.default_rng(0).normal(size=(3, 5))
    case = root @ root.T, np.array([0.4, -1.2, 0.8]), 7, 0.6
    result = called(answer, *case)
    if not isinstance(result, tuple | list) or len(result) != 2:
        return "two things are asked for, as a tuple: the mean (M,) and the covariance (M, M)."
    found = as_array(result[0], (3,)), as_array(result[1], (3, 3))
    same = lambda other: close(found[0], other[0]) and close(found[1], other[1])
    if same(tied_cavity(*case, prior_too=True)):
        return "a share of the prior has gone as well: the sum of the sites does not contain it."
    if same(tied_cavity(*case, shift_too=False)):
        return "the sites' precision-mean b loses its share too."
    if same(tied_cavity(case[0], case[1], 7, 1.0)):
        return "a fraction α of one site is left out, not all of it."
    if not same(tied_cavity(*case)):
        return "the precision is I + (1 − α/n) Λ, and the precision-mean (1 − α/n) b."


def batch_step(Lam, A, tau, N, epsilon, weight=None):
    weight = N / A.shape[1] if weight is None else weight
    return (1 - epsilon) * Lam + epsilon * weight * (A * tau) @ A.T


@checker("mc-5-batch")
def batch(answer):
    rng = np.random.default_rng(1)
    A = rng.normal(size=(3, 4))
    case = A @ A.T, A, rng.uniform(0.1, 1, 4), 20, 0.3
    found = as_array(called(answer, *case), (3, 3))
    if close(found, batch_step(*case, weight=1.0)):
        return "a batch speaks for all N data: its sum has the weight N/B."
    if close(found, case[0] + 0.3 * 5 * (A * case[2]) @ A.T):
        return "the old sum must shrink by 1 − ε, or it grows for ever."
    if not close(found, batch_step(*case)):
        return "mix (1 − ε) of the old Λ with ε N/B times the sum of τ a a' over the batch."


def labelled(N, seed):
    """The data of the chapter."""
    rng = np.random.default_rng(3)
    frequencies, phases = rng.standard_normal((1, 300)) / 0.8, rng.uniform(0, 2 * np.pi, 300)
    weights = rng.standard_normal((300, 3)) * np.sqrt(2 * 2.0 / 300)
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, (N, 1))
    f = np.cos(X @ frequencies + phases) @ weights
    return X, (f + np.sqrt(NOISE) * rng.standard_normal((N, 3))).argmax(axis=1)


@checker("mc-6-groups")
def groups(answer):
    answer = as_array(answer, (25,))
    if np.any(answer != np.floor(answer)) or answer.min() < 0:
        return "groups are whole numbers from 0 upwards."
    number = len(np.unique(answer))
    if number > ALLOWED:
        return f"these are {number} groups; {ALLOWED} are allowed."
    X, y = labelled(25, 1)
    options = {"noise": NOISE, "classes": 3, "tolerance": 1e-4, "max_sweeps": 300}
    kernel, Z, at = SquaredExponential(2.0, 0.8), np.linspace(-2.8, 2.8, 12)[:, None], np.linspace(-3, 3, 121)[:, None]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "EP has not converged")
        ep = multiclass.infer(kernel, Z, X, y, **options)
        tied = multiclass.infer(kernel, Z, X, y, approximation="sep", groups=answer.astype(int), **options)
    apart = np.abs(ep.predict_y(at) - tied.predict_y(at)).max()
    if apart > NEAR:
        return f"with these {number} groups SEP is up to {apart:.2f} away from EP; below {NEAR} is asked for."
