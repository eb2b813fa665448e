"""Checkers of the chapter "Beyond the probit: counts, wild readings, batches"."""

from contextlib import ExitStack, contextmanager
from functools import cache, partial
from unittest import mock

import numpy as np
import scipy.linalg
from exercises import (
    ANY,
    RIGHT,
    Feedback,
    Within,
    as_array,
    as_number,
    as_things,
    called,
    checker,
    close,
    number,
    numbers,
    question,
    quiz_of,
)
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, logsumexp

from pepcore.likelihoods import Poisson, Probit, StudentT
from pepcore.sites import Sites, cavity, target

PROBIT = Probit()
RATE, H = 100.0, 0.25       # exercises 1 and 8: the rate, and the variance of the residual in its logarithm
GROWTH = np.exp(H)
MEAN = RATE * np.sqrt(GROWTH)
OF_THE_RATE = MEAN**2 * (GROWTH - 1)

numbers(
    "bp-1-dispersion",
    {"mean": MEAN, "variance": MEAN + OF_THE_RATE, "dispersion δ": 1 / (GROWTH - 1)},
    digits=3,
    mistakes=[
        ((RATE, ANY, ANY), "the mean is not e to the mean of f: a rate that varies on a log scale is larger on average."),
        ((np.log(RATE), ANY, ANY), "that is the mean of the log rate; the mean of the count is asked for."),
        ((RATE * GROWTH, ANY, ANY), "the mean of e^f has half the variance in the exponent."),
        ((RIGHT, OF_THE_RATE, ANY), "that is the variance of the rate. The count varies around its rate as well."),
        ((RIGHT, MEAN, ANY), "that is the variance of a count whose rate is known. Here the rate varies, too."),
        ((RIGHT, np.sqrt(MEAN + OF_THE_RATE), ANY), "the second is a standard deviation; the variance is asked for."),
        ((RIGHT, RIGHT, GROWTH - 1), "the dispersion stands in a denominator: this is its inverse."),
        ((RIGHT, RIGHT, 1 / H), "that is true for small h only: the variance of e^f is not that of f."),
    ],
    otherwise=[
        "the mean of a log-normal rate is needed first: integrate e^f over the residual.",
        "the mean is right. The variance has two parts: one of the rate, one of the count given its rate.",
        "the first two are right. Which part of the variance goes with the square of the mean, in both models?",
    ],
    never=["1 / (np.exp(0.25) - 1)", "1/(e^h - 1)"],
)

DROP, INVENTED = -20 + 31, 6        # exercise 2: by how much the logarithm must fall, and how many observations there are
NOISE = np.exp(2 * DROP / INVENTED)

number(
    "bp-2-noise",
    NOISE,
    digits=3,
    mistakes=[
        (1 / NOISE, "the logarithm falls as the noise grows. Must it fall here, or rise?"),
        (np.log(NOISE), "that is the logarithm of it."),
        (np.sqrt(NOISE), "is that ς, or did you let the logarithm fall by M for each unit of log ς²?"),
        (np.exp(2 * (20 + 31) / INVENTED), "both logarithms are negative: how far is it from one to the other?"),
        (np.exp(2 * 31 / INVENTED), "at noise 1 the logarithm is not zero: where does it start?"),
        (Within(high=0.0), "a variance is positive."),
    ],
    otherwise="how many nats must log p(ỹ) fall, and by how many does it fall for each unit of log ς²?",
    never=["exp(2 * 11 / 6)"],
)


@checker("bp-4-means", never=["d1 / c", "d1 * s_out / s"])
def means(answer):
    rng = np.random.default_rng(0)
    A, h = 0.7 * rng.normal(size=(4, 15)), rng.exponential(size=15)
    tau, nu = rng.uniform(0.05, 0.4, 15), 0.3 * rng.normal(size=15)
    problems = ((PROBIT, rng.choice([-1.0, 1.0], 15), 0.6), (Poisson(), rng.integers(0, 6, 15).astype(float), 0.6),
                (PROBIT, rng.choice([-1.0, 1.0], 15), 0.0))
    for likelihood, y, alpha in problems:
        V = np.linalg.inv(np.eye(4) + (A * tau) @ A.T)
        mu, s = A.T @ V @ A @ nu, (A * (V @ A)).sum(axis=0)
        mu_out, s_out = cavity(mu, s, Sites(tau, nu), alpha)
        _, d1, d2 = likelihood.log_moment(y, mu_out, s_out + h, alpha)
        expected = tau * mu_out + d1 * s_out / s
        value = as_array(called(answer, A, h, y, tau, nu, alpha, likelihood), (15,))
        if close(value, expected):
            continue
        if close(value, target(mu_out, s_out, d1, d2, alpha).nu):
            return "that is the target ν*, for which the precision would have to move as well; here it stands still."
        if close(value, tau * mu_out + d1):
            return "the slope d1 belongs to the cavity. By which factor is the cavity's variance the larger one?"
        if close(value, tau * mu + d1 * s_out / s):
            return "the first term takes the mean of the cavity, not that of the posterior."
        without = likelihood.log_moment(y, mu_out, s_out, alpha)[1]
        if close(value, tau * mu_out + without * s_out / s):
            return "the likelihood sees the residual variance, too: it belongs to the variance in log_moment."
        return f"at α = {alpha:g} it is not the ν' whose mean is the tilted one. Print both sides of the first equation."


def _precision(r):
    """Precision of the site of a Student-t reading at distance r from a posterior without width; α = 0, σ = 1."""
    return -float(StudentT(degrees=3.0, scale=1.0).derivatives(np.zeros(1), np.array([float(r)]))[2][0])


WORST = minimize_scalar(_precision, bounds=(0.0, 20.0), method="bounded", options={"xatol": 1e-9}).x
TAKEN, GIVEN = _precision(WORST), _precision(0.0)

numbers(
    "bp-3-wild",
    {"distance": WORST, "precision": TAKEN, "readings": -GIVEN / TAKEN},
    digits=3,
    mistakes=[
        ((np.sqrt(3), ANY, ANY), "there the precision changes its sign; where is it smallest?"),
        ((WORST**2, ANY, ANY), "that is the square of the distance."),
        ((0.0, ANY, ANY), "there the precision is largest; its derivative is zero at a second place."),
        ((RIGHT, -TAKEN, ANY), "the distance is right. The precision is minus the curvature of log p."),
        ((RIGHT, RIGHT, GIVEN / TAKEN), "a number of readings is positive."),
        ((RIGHT, RIGHT, -TAKEN / GIVEN), "that is the share which one wild reading takes. How many such shares make a whole?"),
    ],
    otherwise=[
        "set the derivative of the curvature in r² to zero.",
        "the distance is right. Put it into the curvature.",
        "the first two are right. What does a reading at distance zero give, compared with what a wild one takes?",
    ],
    never=["r = 3σ", "3 sigma", "-1/6", "8 readings"],
)


@checker("bp-5-likelihood", never=["f − y e^f", "f - y * np.exp(f)", "1 − y e^f", "−y e^f"])
def waiting(answer):
    small = np.array([0.2, 1.0, 3.0, 0.7]), np.array([-1.0, 0.3, 0.5, 2.0])
    table = small[0], np.array([[-1.0, 0.3, 0.5, 2.0], [0.4, -0.2, 1.1, 0.0], [0.0, 0.1, -2.0, 0.3]])
    for y, f in (small, table):      # one f for each y, and a table of them, as a quadrature asks for
        result = as_things(called(answer, y, f), 3, "log p and its first two derivatives")
        log_p, first, second = (as_array(value, f.shape) for value in result)
        expected = y * np.exp(f)
        if close(log_p, -expected):
            return "log p also contains the logarithm of the rate in front."
        if close(log_p, np.log(y) + f - expected):
            return "this is the density of log y; that of y itself has no factor y."
        if close(log_p, -f - y * np.exp(-f)):
            return "here e^f is taken for the mean waiting time; it is the rate."
        if not close(log_p, f - expected):
            return "log p is not the logarithm of the density given in the exercise."
        if close(first, -expected):
            return "log p is right; its first derivative lacks what the factor in front gives."
        if not close(first, 1 - expected):
            return "log p is right; its first derivative in f is not."
        if close(second, expected):
            return "the second derivative has the wrong sign: the likelihood is log-concave."
        if not close(second, -expected):
            return "the second derivative in f is not right."
        right = (log_p, f - expected), (first, 1 - expected), (second, -expected)
        if not all(close(mine, exact, rtol=1e-12) for mine, exact in right):
            return "near, but not exact up to rounding. A finite difference is not enough: differentiate on paper."
    return None


SOLVERS = ("inv", "pinv", "solve", "lstsq", "cholesky", "qr", "svd", "eig", "eigh", "lu", "lu_factor", "cho_factor",
           "cho_solve", "solve_triangular", "cholesky_banded")


@contextmanager
def no_solvers():
    """While this lasts, whoever calls a solver or a factorisation of NumPy or SciPy gets a hint in its place."""
    def refuse(*arguments, **options):
        raise Feedback("O(M²) is asked for: a solver or a factorisation costs O(M³), and none is needed.")

    with ExitStack() as patches:
        for module in (np.linalg, scipy.linalg):
            for name in filter(partial(hasattr, module), SOLVERS):
                patches.enter_context(mock.patch.object(module, name, refuse))
        yield


@checker("bp-6-sequential", never=["outer(Va, Va) * (dtau / grow)", "1 + dτ s"])
def sequential(answer):
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 4))
    for alpha, tau, nu, rank in ((0.5, 0.0, 0.0, 4), (1.0, 0.2, 0.3, 4), (0.0, 0.1, -0.2, 4), (0.5, 0.2, 0.1, 2)):
        V, m, a, h, y = root[:, :rank] @ root[:, :rank].T / 6, rng.normal(size=4), rng.normal(size=4), 0.4, -1.0
        with no_solvers():
            result = as_things(called(answer, m, V, a, h, y, tau, nu, alpha), 4, "m, V, tau and nu")
        new_m, new_V = as_array(result[0], (4,)), as_array(result[1], (4, 4))
        new_tau, new_nu = as_number(result[2]), as_number(result[3])
        s, mu = a @ V @ a, a @ m
        right_tau, right_nu, c, s_out = _site(y, mu, s, h, tau, nu, alpha)
        wrong_tau = _site(y, mu, s, 0.0, tau, nu, alpha)[0]
        if close(new_tau, wrong_tau):
            return "the residual variance h is missing: the likelihood sees h + s of the cavity."
        d2 = PROBIT.log_moment(y, (mu - alpha * nu * s) / c, h + s_out, alpha)[2]
        if alpha > 0 and close(new_tau, -d2 / (1 + alpha * d2 * (s_out + h))):
            return "the target takes the cavity variance of aᵀv alone, without h; with h it is Csató's method."
        if not (close(new_tau, right_tau, digits=5) and close(new_nu, right_nu, digits=5)):
            return (f"the new site is wrong (α = {alpha:g}, old τ = {tau:g}, ν = {nu:g}): cavity, moments, target, "
                    "in this order.")
        dtau, dnu, Va = right_tau - tau, right_nu - nu, V @ a
        right_V = V - np.outer(Va, Va) * dtau / (1 + dtau * s)
        if tau and close(new_V, V - np.outer(Va, Va) * right_tau / (1 + right_tau * s)):
            return "the old site is still in V: it must not be counted twice."
        right_m = m + Va * (dnu - dtau * mu) / (1 + dtau * s)
        if not close(new_V, right_V, digits=5) or not close(new_m, right_m, digits=5):
            return (
                f"the new site is right, the new m and V are not (rank of V: {rank}). The factor that came in has the "
                    "form of a site along a; Sherman and Morrison know what it does, also where V has no inverse.")


def _site(y, mu, s, h, tau, nu, alpha):
    """New τ and ν of one probit datum, and its c and cavity variance."""
    c = 1 - alpha * tau * s
    mu_out, s_out = (mu - alpha * nu * s) / c, s / c
    _, d1, d2 = PROBIT.log_moment(y, mu_out, h + s_out, alpha)
    shrink = 1 + alpha * d2 * s_out
    return float(-d2 / shrink), float((d1 - d2 * mu_out) / shrink), c, s_out


def _precise(values):
    """Whether some of the values have more than four significant digits."""
    return any(value != float(f"{value:.4g}") for value in values)


@checker("bp-7-missing", never=["sparse[-1] > full[-1]"])
def missing(answer):
    powers, sparse, full = (as_array(part) for part in as_things(
        answer, 3, "powers (S,), the sparse model's log evidence (S,) and the full process' (S,)"))
    if powers.ndim != 1 or len(powers) < 3 or sparse.shape != powers.shape or full.shape != powers.shape:
        raise Feedback(f"three arrays of one shape (S,), S at least 3, are asked for; got {powers.shape}, {sparse.shape}, "
                       f"{full.shape}.")
    if not (np.isfinite(sparse).all() and np.isfinite(full).all()):
        return "a log evidence is infinite: has each fit converged?"
    if powers.min() < 0 or powers.max() > 1:
        return "the first array holds the powers, which lie between 0 and 1."
    if powers[0] != 0 or powers[-1] != 1 or np.any(np.diff(powers) <= 0):
        return "let the powers rise from 0 to 1, both ends included."
    # rounded to three digits, both may be true: there is no parameter missing
    if _precise(sparse) and close(sparse, full, rtol=1e-9):
        return "the two are the same: is one of them really sparse?"
    if _precise(sparse) and np.ptp(sparse) <= 1e-9 * np.abs(sparse).max():
        return "the sparse evidence is the same at every power: was the power passed on?"
    if sparse[0] > full[0] + 1e-2 * max(1.0, abs(full[0])):
        return ("at α = 0 both are bounds, and the sparse one cannot be the higher: are kernel, likelihood and data the "
                "same, and has each fit converged?")
    if sparse[-1] < sparse[0] - 1e-2 * max(1.0, abs(sparse[0])):
        return "for one kernel and one Z the sparse estimate does not fall from α = 0 to 1: was either learnt anew?"
    return None


@cache
def _log_sums(alpha, outer=True):
    """log of the sum over all counts of the power mean of the Poisson probability; α = 0 is the geometric mean."""
    y, e = np.arange(2001.0)[:, None], np.sqrt(H) * np.linspace(-8, 8, 2001)
    log_weight = -0.5 * e**2 / H - logsumexp(-0.5 * e**2 / H)
    log_p = y * (np.log(RATE) + e) - RATE * np.exp(e) - gammaln(y + 1)
    if alpha == 0:
        return logsumexp(log_p @ np.exp(log_weight))
    return logsumexp(logsumexp(alpha * log_p + log_weight, axis=1) / (alpha if outer else 1.0))


numbers(
    "bp-8-loses",
    lambda: (_log_sums(0.5), _log_sums(0.0)),
    labels=["α = ½", "α = 0"],
    digits=3,
    mistakes=[
        (lambda: (np.exp(_log_sums(0.5)), ANY), "at α = ½ that is the sum; its logarithm is asked for."),
        (lambda: (_log_sums(0.5, outer=False), ANY), "at α = ½ the outer power is missing: a mean of roots is not a power mean."),
        ((0.0, ANY), "nothing is lost at α = 1 only, where the mean over e of densities is a density."),
        (lambda: (RIGHT, -_log_sums(0.0)), "a geometric mean lies below the arithmetic one: can the sum exceed one?"),
        (lambda: (RIGHT, -RATE * (GROWTH - 1)), "at α = 0 the mean of e^e has half the variance in the exponent."),
        ((RIGHT, 0.0), "at α = 0 average log p over e: this is p at e = 0."),
    ],
    otherwise=[
        "for each count average the root of p over e and square it; then add up over the counts, far into the tail.",
        "the first is right. At α = 0 average log p over e, and add up the exponentials.",
    ],
    never=["-100 * (np.exp(0.125) - 1)", "λ (1 - e^{h/2})"],
)

quiz_of(
    "bp-quiz",
    question(
        "A sparse Poisson model has a log evidence far above that of the full process with the same kernel, and a negative "
        "binomial raises that of the full process too. What would you change?",
        [("take more pseudo-inputs", "the full process has all of them, and its evidence is the low one."),
         ("give the likelihood a dispersion", None),
         ("trust the sparse model: its evidence is higher", "an estimate above that of the full process is the symptom.")],
        why="The residual stands in for a parameter that the likelihood lacks.",
    ),
    question(
        "For which likelihoods can a site have a negative precision at α = 0?",
        [("for those that are not log-concave", None),
         ("for every one, if a datum is far off", "minus the mean of a curvature that is never positive is not negative."),
         ("for none", "look at the rings in the figure of the sensor.")],
        why="The precision is minus the mean curvature of log p. It is negative where the posterior lies in a heavy tail.",
    ),
    question(
        "At a power below 1 a batch B has just moved its own sites. N/|B| times its share of the gradient is ...",
        [("unbiased, since the batch was drawn at random", "it was fair when it was drawn; then its data pulled q."),
         ("biased, since its data have pulled q towards themselves", None),
         ("biased, as that of every batch is", "one that is drawn without regard to the sites has no bias.")],
        why="Draw the batch for the gradient anew, or accept a bias that fades as the sites settle.",
    ),
    question(
        "EP on Student-t noise has not converged and reports a log evidence of 10 000. It is ...",
        [("a sign of a good scale", "the formula holds at fixed points; elsewhere it can return anything."),
         ("an upper bound", "no bound is known away from a fixed point, on either side."),
         ("of no meaning", None)],
        why="Look at fit.converged before you believe an estimate of the evidence.",
    ),
)
