"""Checkers of the chapter "Sparse classification with Power EP"."""

import numpy as np
from exercises import (
    ANY,
    RIGHT,
    Feedback,
    NotWhole,
    Within,
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
)
from scipy.special import log_ndtr, ndtr

from pepcore import power_ep
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit

PROBIT = Probit()


def converged(alpha, scale=1.0, seed=0):
    """Features A (M, N), h (N,) and the fit of a small problem at its fixed point, with the kernel times `scale`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=30) > 0, 1.0, -1.0)
    fit = power_ep.infer(SquaredExponential(4.0 * scale, [0.8, 1.1]), X[:5] + 0.1, X, y, PROBIT, alpha=alpha, tolerance=1e-11,
                         max_sweeps=500)
    return *fit.posterior.basis.features(X), fit


E = np.sqrt(3.0) * np.linspace(-12, 12, 20001)       # exercise 1: the residual, of variance 3
WEIGHT = np.exp(-0.5 * E**2 / 3.0) / np.exp(-0.5 * E**2 / 3.0).sum()
ARITHMETIC, GEOMETRIC = ndtr(1 / np.sqrt(1 + 3.0)), np.exp(WEIGHT @ log_ndtr(1 + E))
BETWEEN = (WEIGHT @ np.sqrt(ndtr(1 + E))) ** 2

numbers(
    "sc-1-mean",
    {"α = 1": ARITHMETIC, "α = ½": BETWEEN, "α = 0": GEOMETRIC},
    digits=3,
    mistakes=[
        ((ndtr(1 / np.sqrt(3)), ANY, ANY),
         "at α = 1 the probit has a variance of its own, besides that of the residual."),
        ((ndtr(0.25), ANY, ANY), "at α = 1 divide by a standard deviation, not by the variance."),
        ((ndtr(1.0), ANY, ANY), "at α = 1 this is the likelihood at e = 0. Average over the residual."),
        ((RIGHT, WEIGHT @ np.sqrt(ndtr(1 + E)), ANY), "at α = ½ the average is right; the outer power 1/α is missing."),
        ((RIGHT, ANY, WEIGHT @ log_ndtr(1 + E)), "at α = 0 this is the logarithm of the mean; take its exponential."),
        ((RIGHT, ANY, ndtr(1.0)),
         "at α = 0 this is the likelihood at the mean, e = 0. Average the logarithm of the likelihood."),
    ],
    otherwise=[
        "at α = 1 average the likelihood over e ~ N(0, h).",
        "the first is right. At α = ½ average a power of the likelihood, then undo the power.",
        "the first two are right. At α = 0 the limit of the power means is the geometric mean.",
    ],
    never=["Φ(g/√(1 + h))", "exp(E[log Φ"],
)

STEP, LEFT = 0.8, 1e-6       # exercise 2: the step, and what may be left
VISITS = np.ceil(np.log(LEFT) / np.log(1 - STEP))

number(
    "sc-2-forget",
    VISITS,
    digits=6,
    mistakes=[
        (NotWhole(), "a visit is a whole one: after how many is it below a millionth?"),
        (np.ceil(np.log(LEFT) / np.log(STEP)), "a visit keeps 1 − ε of what is off the direction, not ε."),
        (Within(VISITS - 1, VISITS + 1),
         "close: multiply it out. After how many visits is it below a millionth for the first time?"),
        (Within(high=0.0), "at least one visit is needed."),
    ],
    otherwise="by which factor does one visit multiply what is off the direction? Nothing is added to it.",
    never=["log(1e-6) / log(0.2)"],
)


@checker("sc-3-price", never=["d2 + α d1²", "d2 + alpha * d1**2"])
def pays(answer):
    rng = np.random.default_rng(1)
    y, mean, variance = rng.choice([-1.0, 1.0], 400), 2 * rng.normal(size=400), rng.uniform(0.1, 4, 400)
    for alpha in (1.0, 0.5, 0.0):
        result = np.asarray(called(answer, y, mean, variance, alpha))
        if result.shape != (400,):
            raise Feedback(f"one Boolean for each of the 400 data is asked for; this has shape {result.shape}.")
        if result.dtype.kind in "iu" and np.isin(result, (0, 1)).all():
            result = result.astype(bool)
        if result.dtype != bool:
            return "an array of Booleans is asked for: is the derivative positive?"
        _, d1, d2 = PROBIT.log_moment(y, mean, variance, alpha)
        expected = d2 + alpha * d1**2 > 0
        if np.array_equal(result, ~expected):
            return "just the other way round: these are the data that would lower it."
        if alpha == 0 and not np.array_equal(result, expected):
            return "right at α = 1 and ½, but not at α = 0: what is the sign of d2?"
        if alpha < 1 and np.array_equal(result, d2 + d1**2 > 0):
            return f"at α = {alpha:g} the square of d1 has a weight that is 1 at α = 1 only."
        if alpha < 1 and np.array_equal(result, y * mean < 0):
            return f"this is the answer for α = 1; at α = {alpha:g} it takes more than a negative margin."
        if np.array_equal(result, mean < 0):
            return "the side of the border is that of y times the mean."
        if not np.array_equal(result, expected):
            return (f"at α = {alpha:g} {np.sum(result != expected)} of 400 are wrong. What is the derivative of log "
                    "Z_n / α in h?")


@checker("sc-4-gradient", never=["tr V − M", "m @ m + np.trace(V)", "α γ² − c τ"])
def scale_slope(answer):
    for alpha in (1.0, 0.3, 0.0):
        A, h, fit = converged(alpha)
        tau, nu = fit.sites.tau, fit.sites.nu
        value = as_number(called(answer, A, h, tau, nu, alpha))
        V = np.linalg.inv(np.eye(len(A)) + (A * tau) @ A.T)
        m = V @ A @ nu
        gamma, s = nu - tau * (A.T @ m), (A * (V @ A)).sum(axis=0)
        c = 1 - alpha * tau * s
        of_A, of_h = 0.5 * (m @ m + np.trace(V) - len(A)), 0.5 * h @ (alpha * gamma**2 - c * tau)
        if close(value, of_A + of_h, digits=5):
            continue
        if close(value, -of_A - of_h, digits=5):
            return "the sign is reversed: that is the slope of the energy."
        if close(value, of_A, digits=5):
            return "that is what the features contribute. The residual variances change with the kernel as well."
        if close(value, of_h, digits=5):
            return "that is what the residual variances contribute. The features change with the kernel as well."
        if close(value, 2 * of_A + of_h, digits=5):
            return "the features do not grow like λ: which power of it?"
        if close(value, of_A + 2 * of_h, digits=5):
            return "the derivative in h lacks the factor ½."
        if close(value, 0.5 * (m @ A @ nu - tau @ s) + of_h, digits=5):
            return "the derivative in A takes the log site's slope at the posterior mean; this is its slope at zero."
        if alpha < 1 and close(value, of_A + 0.5 * h @ (gamma**2 - c * tau), digits=5):
            return "in the derivative in h the square of the slope has a weight that is 1 at α = 1 only."
        if alpha > 0 and close(value, of_A + 0.5 * h @ (alpha * gamma**2 - tau), digits=5):
            return "in the derivative in h the precision τ is weighted with what the cavity keeps."
        return (f"at α = {alpha:g} it is not the slope. Compare with differences: the evidence at fixed sites, with the "
                "features and residual variances of a kernel that is a little larger.")
    return None


@checker("sc-5-walk", never=["(0.5, 0.25, 0.0)", "0.75"])
def walk(answer):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (200, 2))
    fields = np.sign(np.sin(np.pi * X).prod(axis=1))
    y = np.where(rng.uniform(size=200) < 0.05, -fields, fields)
    start = SquaredExponential(4.0, [0.5, 0.5])
    kernel, Z = as_things(called(answer, X, y, 12, start), 2, "two things, a kernel and pseudo-inputs Z,")
    kernel = as_kernel(kernel)
    Z = as_array(Z, (12, 2))
    bound = power_ep.infer(kernel, Z, X, y, PROBIT, alpha=0.0, max_sweeps=1000).log_evidence
    coin = len(y) * np.log(0.5)
    reached = f"your kernel and pseudo-inputs have a bound of {bound:.0f} at α = 0, and more than -127 is asked for"
    if bound < coin - 1:
        return f"{reached}. Even a coin has {coin:.0f}: does your path end with a fit at α = 0?"
    if bound < coin + 1:
        return f"{reached}. That is the coin's. Where must a search at α = 0 begin, so that it does not end there?"
    if bound < -127:
        return (f"{reached}. A coin has {coin:.0f}, and a search at α = 0 from the usual start ends little above it. Did your "
                "path begin at a power between the two ends, and pass on both the kernel and Z?")
    return None


@checker("sc-6-yours", never=["predict_y"])
def your_labels(answer):
    y, vfe, ep = as_things(answer, 3, "labels (S,), probabilities of +1 at α = 0 (S,) and at α = 1 (S,)")
    y, vfe, ep = as_array(y), as_array(vfe), as_array(ep)
    if y.ndim != 1 or len(y) < 30 or vfe.shape != y.shape or ep.shape != y.shape:
        raise Feedback(f"three arrays of one shape (S,), S at least 30, are asked for; got {y.shape}, {vfe.shape}, "
                       f"{ep.shape}.")
    if not np.isin(y, (-1, 1)).all() or len(np.unique(y)) < 2:
        return "labels are -1 and +1, and both must occur."
    positive = np.mean(y > 0)
    for p in (vfe, ep):
        if p.min() < 0 or p.max() > 1:
            return "probabilities lie between 0 and 1: are these latent means, or per cent?"
        if np.isin(p, (0, 1)).all():
            return "these are decisions, 0 or 1; probabilities are asked for."
        if np.ptp(p) < 0.05:
            continue        # learnt nothing, which can happen at α = 0: then it may lie on either side of one half
        if np.mean((p > 0.5) == (y > 0)) < 0.5 - 1 / np.sqrt(len(y)):       # two standard errors of a coin
            return "these do worse than a coin, and their complements do better: are they probabilities of the label -1?"
        if p.min() > 0.5 and p.mean() - positive > 4 * np.sqrt(np.mean(p * (1 - p)) / len(y)):
            return ("all are above one half: are they the probabilities of the label decided for? That of +1 is "
                    "asked for.")
    if close(vfe, ep, rtol=1e-9):
        return "the two are the same: was the power passed on?"
    return None


quiz_of(
    "sc-quiz",
    question(
        "What does Power EP keep of a likelihood p(y|f) when the features leave a residual e of variance h?",
        [("p at e = 0", "then h would not matter at all."),
         ("the power mean of p over e, with the exponent α", None),
         ("the mean of p^α over e", "the mean of a power still has to be brought back by the outer power 1/α.")],
        why="α = 1 takes the arithmetic mean, α → 0 the geometric one.",
    ),
    question(
        "Why are two numbers per datum enough for a site?",
        [("the likelihood looks at the weights along one known direction", None),
         ("the matrix is diagonal", "it is of rank one, along the features of the datum, and not diagonal."),
         ("more would be too slow", "nothing is lost: the target has rank one exactly.")],
        why="The direction is the datum's own feature vector, known before anything is learnt.",
    ),
    question(
        "EP, α = 1: a datum lies on the wrong side of the border. If its residual variance h grows, the evidence ...",
        [("rises", None),
         ("falls", "at α = 1 a label that is contradicted becomes less improbable when its residual variance grows."),
         ("stays", "it stays only where the derivative in h happens to be zero.")],
        why="That is why EP's pseudo-inputs keep away from contradicting labels.",
    ),
    question(
        "And at α = 0, with a log-concave likelihood?",
        [("it rises too", "the average of a concave function falls when its argument spreads."),
         ("it falls, on either side of the border", None),
         ("it falls only on the right side", "a concave function is concave on both sides.")],
        why="VFE penalises residual variance whatever the label says.",
    ),
)
