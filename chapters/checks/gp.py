"""Checkers of the chapter "Gaussian processes and the feature map"."""

import numpy as np
from exercises import (
    ANY,
    RIGHT,
    Feedback,
    Within,
    as_array,
    as_kernel,
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

from figures.experiments.book.nystrom_problem import nystrom_problem
from pepcore.features import feature_map

K, Y, NOISE = np.exp(-0.5 * 1.5**2), 2.0, 0.25      # exercise 1: covariance with the datum, the datum, its noise
MEAN, SD = K * Y / (1 + NOISE), np.sqrt(1 - K**2 / (1 + NOISE))

numbers(
    "gp-1-one-datum",
    {"mean": MEAN, "standard deviation": SD},
    decimals=2,
    mistakes=[
        ((K**2 * Y / (1 + NOISE), ANY), "the exponent of the squared exponential has a factor one half."),
        ((K * Y, ANY), "the mean treats the observation as exact; where does the noise enter?"),
        ((RIGHT, SD**2), "the mean is right; the second number is the variance, take its root."),
        ((RIGHT, np.sqrt(SD**2 + NOISE)),
         "the mean is right; the second number is the deviation of a new observation y, not of f."),
        ((RIGHT, np.sqrt(1 - K**2)), "the mean is right; in the variance the observation is treated as exact."),
    ],
    otherwise=[
        "the mean is not right: it is the covariance with the datum times y, divided by one number. Which?",
        "the mean is right, the standard deviation is not: what is the prior variance, and how much of it does the "
        "datum explain?",
    ],
    never=["k(x, 0) y / (1 + σ²)"],
)

number(
    "gp-2-half",
    np.sqrt(np.log(2)),
    digits=3,
    mistakes=[
        (np.sqrt(2 * np.log(2)), "there the correlation is one half; how much of the variance does that explain?"),
        (np.log(2), "this is the square of the distance."),
        (Within(high=0.0), "a distance is positive."),
    ],
    otherwise="write down the residual variance with one pseudo-input as a function of the distance, and set it to "
              "half of s.",
    never=["√log 2", "sqrt(log"],
)


@checker("gp-3-chain", never=["-0.5 * solve(L, y) ** 2", "log diag L"])
def chain(answer):
    K, y = _covariance(7), np.random.default_rng(1).standard_normal(7)
    expected = _chain(K, y)
    terms = as_array(called(answer, K, y), (7,))
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
        return "the sign is reversed: log densities are asked for."
    return "the terms are not the log densities of y_n given y_1 ... y_(n-1); try N = 1 and N = 2 by hand."


@checker("gp-4-pathwise", never=["y - f_x - epsilon", "y − f(X) − ε"])
def pathwise(answer):
    rng = np.random.default_rng(2)
    K = _covariance(9)
    noise, y = 0.3, rng.standard_normal(6)
    K_sx, K_hat = K[6:, :6], K[:6, :6] + noise * np.eye(6)
    f = np.linalg.cholesky(K) @ rng.standard_normal(9)
    f_s, f_x, epsilon = f[6:], f[:6], np.sqrt(noise) * rng.standard_normal(6)

    def path(data):
        return f_s + K_sx @ np.linalg.solve(K_hat, data)

    drawn = as_array(called(answer, K_sx, K_hat, f_s, f_x, epsilon, y), (3,))
    if close(drawn, path(y - f_x - epsilon)):
        return None
    if close(drawn, path(y - f_x)):
        return "without epsilon the residual is not independent of the observations, and the draws come out too narrow."
    if close(drawn, path(y)):
        return "this adds the posterior mean to a prior draw; take away what the pretended data had said."
    if close(drawn, path(y - f_x + epsilon)) or close(drawn, path(f_x + epsilon - y)):
        return "look at the signs: one set of observations leaves, the other enters."
    if close(drawn, K_sx @ np.linalg.solve(K_hat, y)):
        return "this is the posterior mean, the same for every draw; where is the residual?"
    return "write the residual r of f(X_*) given the pretended data, then put the real data in their place."


@checker("gp-5-pull-back", never=["tril(T) + tril(T, -1)", "L⁻ᵀ"])
def pull_back(answer):
    L = np.linalg.cholesky(_covariance(5))
    T = np.random.default_rng(3).standard_normal((5, 5))
    expected = _K_uu_bar(L, np.tril(T) + np.tril(T, -1).T)
    bar = as_array(called(answer, L, T), (5, 5))
    if close(bar, expected):
        return None
    if close(bar, _K_uu_bar(L, 0.5 * (T + T.T))):
        return ("the average of T and its transpose is right only for objectives that do not see rotations of the "
                "features.")
    if close(bar, _K_uu_bar(L, T)):
        return ("T itself is not symmetric, so this is no derivative with respect to a symmetric matrix; which half "
                "counts?")
    if close(bar, _K_uu_bar(L, np.triu(T) + np.triu(T, 1).T)):
        return "this mirrors the upper triangle; L is lower triangular."
    if close(bar, -expected) or close(bar, 2 * expected) or close(bar, -2 * expected):
        return "right up to the factor in front."
    return ("not the derivative. Which entries of L are free, and what does that make of T? Then K_uu = L Lᵀ, seen "
            "from both sides.")


@checker("gp-6-clothes", never=["K_uu @ gamma", "K_uu - K_uu", "K_uu γ"])
def clothes(answer):
    K_uu = _covariance(4)
    rng = np.random.default_rng(4)
    L = np.linalg.cholesky(K_uu)
    root = rng.standard_normal((4, 4))
    V = np.linalg.inv(np.eye(4) + root @ root.T)
    m = rng.standard_normal(4)
    gamma = np.linalg.solve(L.T, m)
    beta = np.linalg.solve(L.T, np.linalg.solve(L.T, np.eye(4) - V).T)
    mean, S = as_things(called(answer, gamma, beta, K_uu), 2, "the mean (M,) and the covariance (M, M)")
    mean, S = as_array(mean, (4,)), as_array(S, (4, 4))
    if close(mean, np.linalg.solve(K_uu, gamma)):
        return "look at the units: γ has those of 1/f, so this mean has those of 1/f³."
    if not close(mean, L @ m):
        return "the mean of u is the predictive mean at the pseudo-inputs."
    if close(S, K_uu @ beta @ K_uu):
        return "the mean is right; this is the part of the prior covariance that the data explained, not what is left."
    if close(S, V):
        return "the mean is right; this is the covariance of v, and u = L v."
    if not close(S, L @ V @ L.T):
        return "the mean is right; S is the predictive covariance at the pseudo-inputs, prior included."


@checker("gp-7-nystrom")
def nystrom(answer):
    Z = as_array(answer, (20, 10))
    kernel, X = nystrom_problem()
    missed = feature_map(kernel, Z, X).h.sum()
    if missed < NYSTROM_TARGET:
        return None
    distances = np.linalg.norm(Z[:, None] - Z, axis=-1) + 1e9 * np.eye(20)
    if distances.min() < 0.01:
        first, second = np.unravel_index(distances.argmin(), distances.shape)
        return f"rows {first} and {second} of Z (nearly) coincide, and the second of two equal pseudo-inputs adds nothing."
    return f"these features miss {missed:.1f} of {len(X)}; less than {NYSTROM_TARGET} is asked for."


NYSTROM_TARGET = 58


@checker("gp-8-yours")
def spectrum(answer):
    kernel, X, Zs, missed = as_things(answer, 4, "a kernel, inputs X (N, D), four arrays of pseudo-inputs and four shares")
    X, missed = as_array(X), as_array(missed)
    sizes = ", ".join(map(str, SIZES))
    kernel = as_kernel(kernel)
    if X.ndim != 2 or not 50 <= len(X) <= 1000:
        raise Feedback(f"inputs of shape (N, D) are asked for, with 50 to 1000 rows; these have shape {X.shape}.")
    Zs = [as_array(Z) for Z in as_things(Zs, 4, f"four arrays of pseudo-inputs, with M = {sizes} rows,")]
    if [Z.shape for Z in Zs] != [(M, X.shape[1]) for M in SIZES]:
        raise Feedback(f"pseudo-inputs of shape (M, {X.shape[1]}) are asked for, with M = {sizes} in this order; got the shapes "
                       f"{', '.join(str(Z.shape) for Z in Zs)}.")
    if missed.shape != (4,):
        raise Feedback(f"four shares are asked for, one for each of M = {sizes}; got shape {missed.shape}.")
    total = kernel.diagonal(X).sum()
    shares = np.array([feature_map(kernel, Z, X).h.sum() for Z in Zs]) / total
    if _same_shares(missed, shares):
        return None
    if close(missed, np.zeros(4)):
        return "nothing is missed at all? A share of zero needs as many pseudo-inputs as there are different rows."
    if _same_shares(missed, shares[::-1]):
        return "the order is reversed: the share for the fewest pseudo-inputs comes first."
    if _same_shares(missed, 1 - shares):
        return "these are the shares that the features explain."
    if _same_shares(missed, np.sqrt(shares)):
        return "these are the roots of the shares: h is a variance already."
    if _same_shares(missed, shares * total / len(X)):
        return "that is the residual variance per row. Which share is it of the prior variance?"
    if _same_shares(missed / 100, shares):
        return "these are per cent; shares between 0 and 1 are asked for."
    if missed.max() > 1 + 1e-9:
        return ("a share of the prior variance lies between 0 and 1: divide the sum of h by the sum of the prior "
                "variances.")
    wrong = [str(M) for M, given, share in zip(SIZES, missed, shares, strict=True) if not _same_shares(given, share)]
    return (f"for M = {', '.join(wrong)} this is not the share that these pseudo-inputs miss. Did the kernel, X or Z change "
            "after it was computed?")


def _same_shares(given, shares):
    """Whether they agree to three digits; below 1e-5 a share depends on the jitter, and anything as small will do."""
    return rounded(np.where(np.abs(given - shares) < 1e-5, shares, given), shares, 3)


SIZES = (5, 10, 20, 40)      # of exercise 8

quiz_of(
    "gp-quiz",
    question(
        "A sparse Gaussian process with features A and residual variances h rewrites the prior of f. Which sentence "
        "is exact?",
        [("f is linear regression on the features, and h is rounding error",
          "h is a variance of the prior, and it can be large."),
         (
          "f is linear regression on the features plus a residual process of variance h, independent of the "
          "weights", None),
         ("f is linear regression on the features plus white noise of variance h",
          "the residual is correlated between inputs: only its variance at a single input is h.")],
        why="Nothing has been approximated yet. The approximation begins when the residuals of different data are "
            "cut apart.",
    ),
    question(
        "You add one pseudo-input and change nothing else. What can happen to the residual variance h at a datum?",
        [("it falls or stays", None),
         ("it rises or stays", "a further feature explains more of f, never less."),
         ("either, depending on y", "h depends on inputs and kernel; the targets do not enter.")],
        why="h is what is left of the prior variance once the values at the pseudo-inputs are known.",
    ),
    question(
        "How does the evidence stop a very flexible kernel from winning?",
        [("it counts the hyper-parameters", "it does not know how many there are."),
         ("it tests on data held back", "no datum is held back; each is predicted from those before it."),
         ("a flexible model spreads its bets, and bets little on the data observed", None)],
        why="The evidence is the product of the predictions of each datum from those before it.",
    ),
    question(
        "At which data do DTC, FITC, VFE and Power EP give the same posterior, with the same parameters?",
        [("where h = 0", None),
         ("where the noise is zero",
          "then DTC and VFE trust the features completely, and FITC still counts h as noise."),
         ("nowhere: they are different methods", "they differ in what they do with h, and only in that.")],
        why="They differ only in how they treat h. Where h is zero they cannot differ.",
    ),
)


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
