"""Checkers of the chapter "Sparse regression: one family"."""

import tracemalloc

import numpy as np
from exercises import (
    ANY,
    RIGHT,
    Feedback,
    Within,
    as_array,
    as_kernel,
    as_number,
    as_things,
    called,
    checker,
    close,
    numbers,
    question,
    quiz_of,
    rounded,
)
from scipy.stats import multivariate_normal

from pepcore import power_ep


def random_problem(seed, M=4, N=12):
    """A (M, N), h (N,), y (N,) of a problem with nothing special about it."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(M, N)), rng.exponential(size=N), 2 * rng.normal(size=N)


def penalty(h, noise, alpha):
    if alpha == 0:
        return h.sum() / (2 * noise)
    return (1 - alpha) / (2 * alpha) * np.log1p(alpha * h / noise).sum()


def log_normal(y, covariance):
    return multivariate_normal.logpdf(y, np.zeros(len(y)), covariance)


H, SIGMA2 = np.array([0.3]), 0.1      # exercise 1
PENALTIES = {f"α = {words}": penalty(H, SIGMA2, alpha) for words, alpha in (("0", 0.0), ("½", 0.5), ("1", 1.0))}
AT_ZERO, AT_HALF, AT_ONE = PENALTIES.values()

numbers(
    "sr-1-penalty",
    PENALTIES,
    digits=3,
    mistakes=[
        ((-AT_ZERO, -AT_HALF, -AT_ONE),
         "the size is right. A penalty is what is subtracted, so give it as a positive number."),
        ((2 * AT_ZERO, ANY, ANY), "at α = 0 the limit of log(1 + x)/x is 1, and the ½ stays."),
        ((Within(high=0.01), ANY, ANY),
         "at α = 0 the whole residual is penalised, so the penalty is not zero: take the limit."),
        ((RIGHT, Within(AT_HALF + 0.001, AT_HALF + 0.005), ANY), "the second is right to two digits; three are asked for."),
        ((RIGHT, 2 * AT_HALF, ANY),
         "at α = ½ look at the factor in front of the logarithm: the 2 belongs to the denominator."),
        ((RIGHT, 0.5 * np.log1p(H[0] / SIGMA2), ANY), "at α = ½ only a share of h stands in the logarithm."),
        ((RIGHT, RIGHT, AT_ZERO), "at α = 1 look at the factor in front of the logarithm: what is left of it?"),
    ],
    otherwise=[
        "at α = 0 take the limit: log(1 + x) is x for small x, so the α cancels.",
        "the first is right. At α = ½ which share of h is believed, and which is penalised?",
        "the first two are right. At α = 1 which share of the residual is left to be penalised?",
    ],
    never=["h/(2σ²)", "(1 − α)/(2α)"],
)


LARGE = 1500        # so many data that an N × N matrix is told from what is allowed by the memory it takes


@checker("sr-2-rise", never=["x/2 + x²/4", "h @ g", "log1p(alpha * x) / alpha"])
def rise(answer):
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
        if alpha == 0.0 and np.asarray(value).dtype.kind == "f" and not np.all(np.isfinite(value)):
            return "at α = 0 it divides by zero: the slope of the penalty has a limit there; take that."
        value = as_number(value)
        inverse = np.linalg.inv(A.T @ A + np.diag(alpha * h + noise))
        u, kappa = inverse @ y, np.diag(inverse)
        believed, paid = 0.5 * h @ (u**2 - kappa), _penalty_rise(h, noise, alpha)
        if close(value, believed - paid):
            continue
        if close(value, believed):
            return f"at α = {alpha:g} the penalty is missing: it changes with α as well."
        if close(value, believed + paid):
            return f"at α = {alpha:g} the derivative of the penalty has the wrong sign: the penalty is subtracted."
        if close(value, paid - believed):
            return "that is the slope of the energy, minus the log evidence."
        if close(value, 0.5 * h @ u**2 - paid):
            return "the determinant of the covariance changes with α as well."
        if close(value, 0.5 * np.sum(u**2 - kappa) - paid):
            return "this lets the variance of each datum grow by one. By how much does it grow with α?"
        if alpha and close(value, believed - 0.5 * (1 - alpha) / alpha * np.sum(h / (noise + alpha * h))):
            return "the factor in front of the logarithm changes with α, too."
        return (f"at α = {alpha:g} it is off by {value - believed + paid:.4g}; compare with differences of the evidence, "
                "by dense N x N matrices.")
    A, h, y = random_problem(2, N=LARGE)
    value, peak = with_peak(answer, A, h, y, 0.2, 1.0)
    if not close(as_number(value), _large(A, h, y, 0.2)):
        return f"it is wrong for N = {LARGE} although right for N = 12."
    return too_large(peak)


def with_peak(answer, *given):
    """What the reader's function returns, and the bytes that it held at most."""
    tracemalloc.start()
    try:
        return called(answer, *given), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def too_large(peak):
    """What to say if something of size N × N was made, which takes 18 MB here, where M × N takes 0.05; else None."""
    if peak > 8 * LARGE**2 / 2:
        return f"the numbers are right, but something of size N × N was made on the way: for N = {LARGE} it takes over 9 MB."
    return None


def _penalty_rise(h, noise, alpha):
    """Derivative of the penalty in α."""
    x = h / noise
    if alpha == 0:
        return -np.sum(x / 2 + x**2 / 4)
    return np.sum((1 - alpha) / (2 * alpha) * x / (1 + alpha * x) - np.log1p(alpha * x) / (2 * alpha**2))


def _large(A, h, y, noise):
    """The answer at α = 1 for large N, by the matrix inversion lemma."""
    d = h + noise
    V = np.linalg.inv(np.eye(len(A)) + (A / d) @ A.T)
    u = (y - A.T @ (V @ (A @ (y / d)))) / d
    kappa = 1 / d - (A * (V @ A)).sum(axis=0) / d**2
    return 0.5 * h @ (u**2 - kappa) - _penalty_rise(h, noise, 1.0)


@checker("sr-3-loo", never=["u/√κ", "K⁻¹y", "u / sqrt(kappa)"])
def leave_one_out(answer):
    A, h, y = random_problem(3)
    d = h + 0.3
    residuals = as_array(called(answer, A, y, d), y.shape)
    K = A.T @ A + np.diag(d)
    inverse = np.linalg.inv(K)
    u = inverse @ y
    expected = u / np.sqrt(np.diag(inverse))
    if close(residuals, -expected):
        return "the sign is reversed: the residual is y minus its prediction."
    if close(residuals, d * u / np.sqrt(d)) or close(residuals, d * u):
        return "these residuals come from the posterior that has seen datum n itself; leave it out."
    if close(residuals, u / np.diag(inverse)):
        return "these are the leave-one-out residuals; divide each by its predictive standard deviation."
    if close(residuals, u):
        return "divided once too often: that is a residual over a variance."
    if close(residuals, expected**2):
        return "these are the squares; ζ keeps its sign."
    if close(residuals, np.abs(expected)):
        return "the sizes are right; ζ keeps its sign, y minus what the others predict."
    if not close(residuals, expected):
        return ("not the leave-one-out residuals. Take the site of datum n out of its own prediction, mean and "
                "variance both.")
    _, peak = with_peak(answer, random_problem(2, N=LARGE)[0], np.sin(np.arange(float(LARGE))), np.ones(LARGE))
    return too_large(peak)


@checker("sr-4-unequal", never=["1/√S", "S^(-1/2)", "1 / np.sqrt(S_b)"])
def unequal_noise(answer):
    A, _, y = random_problem(4, N=5)
    rng = np.random.default_rng(5)
    root = rng.normal(size=(5, 5))
    H, S = root @ root.T, rng.uniform(0.2, 2.0, 5)
    result = called(answer, A, H, y, S)
    result = as_things(result, 3, "three arrays, A (M, B), h (B,) and y (B,),")
    A_r, h_r, y_r = as_array(result[0], A.shape), as_array(result[1], (5,)), as_array(result[2], (5,))

    def posterior(A, noise_covariance, y):
        weights = A @ np.linalg.inv(noise_covariance)
        return np.concatenate([(weights @ A.T).ravel(), weights @ y])

    def right(alpha):
        target = posterior(A, alpha * H + np.diag(S), y)
        return close(posterior(A_r, np.diag(alpha * h_r + 1.0), y_r), target, digits=8)

    eigenvalues, U = np.linalg.eigh(H)
    if close(np.sort(h_r), eigenvalues) and close(A_r @ A_r.T, (A / S) @ A.T):
        return "the noise is 1 now, but H_b was left as it was: what becomes of the residuals when the data are scaled?"
    if close(A_r, A @ U) or close(h_r, eigenvalues):
        return "after this rotation the noise is no longer diagonal: U'SU is not. Make the noise isotropic first."
    if h_r.min() < -1e-9:
        return "a residual variance cannot be negative."
    if right(1.0) and not right(0.5):
        return "it is right at α = 1 only: h and the noise must be kept apart, with noise 1."
    if not (right(0.5) and right(1.0)):
        return ("the posterior differs from that of the block. What has to be scaled, and by what, so that the noise "
                "is 1 everywhere?")


@checker("sr-5-private", never=["np.ones(40)", "all ones"])
def private(answer):
    answer = as_array(answer)
    if answer.ndim == 0 or answer.shape != (40,):
        raise Feedback(f"one power for each of the 40 data is asked for; this has shape {answer.shape}.")
    if answer.min() < 0 or answer.max() > 1:
        return "a power lies between 0 and 1."
    if close(answer, np.zeros(40)):
        return "that is VFE for every datum. What does the first law say of the power of a single datum?"
    if not close(answer, np.ones(40)):
        return "these are not the best ones: move one of them a little, up and down, and see what the evidence does."


@checker("sr-6-surrogate", never=["V⁻¹ − I", "cholesky(inv(V)", "V⁻¹m"])
def surrogate(answer):
    A, h, y = random_problem(6)
    precision = np.eye(4) + (A / (h + 0.3)) @ A.T
    V = np.linalg.inv(precision)
    m = V @ A @ (y / (h + 0.3))
    for log_evidence in (-20.0, 3.0):
        result = called(answer, m, V, log_evidence)
        result = as_things(result, 3, "three things, W (M, M), y (M,) and a number c,")
        W, y_s, c = as_array(result[0], (4, 4)), as_array(result[1], (4,)), as_number(result[2])
        if c <= 0:
            return "the noise variance c must be positive."
        if close(W.T @ W / c, np.linalg.inv(V), digits=8):
            return "W'W/c must be what the data add to the precision; the prior brings its own part itself."
        if not close(W.T @ W / c, precision - np.eye(4), digits=8):
            return "the posterior precision that W and c give is not that of the posterior asked for."
        if close(W.T @ y_s / c, m, digits=8):
            return "W'y/c is a precision times a mean, not the mean: that is erratum bui-2."
        if not close(W.T @ y_s / c, precision @ m, digits=8):
            return "the posterior covariance is right, the posterior mean is not m."
        got = log_normal(y_s, W @ W.T + c * np.eye(4))
        if not close(got, log_evidence, digits=8):
            return (f"the posterior is right; the log evidence should be {log_evidence:g} and is {got:.4g}. c is "
                    "still free.")


@checker("sr-7-yours", never=["(1 − α)/(2α)"])
def your_evidence(answer):
    kernel, Z, X, y, noise, found = as_things(answer, 6, "kernel, Z, X, y, noise and the log evidence at five powers")
    kernel = as_kernel(kernel)
    Z, X, y, noise, found = as_array(Z), as_array(X), as_array(y), as_number(noise), as_array(found, (5,))
    if X.ndim != 2 or len(X) < 50 or y.shape != (len(X),):
        raise Feedback(f"X (N, D) and y (N,) with at least 50 rows are asked for; got the shapes {X.shape} and "
                       f"{y.shape}.")
    if abs(y.mean()) >= 0.1 or not 0.5 < y.std() < 2:
        return f"y has mean {y.mean():.2g} and standard deviation {y.std():.2g}: standardise it first."
    fits = [power_ep.regression(kernel, Z, X, y, noise=noise, alpha=alpha) for alpha in POWERS]
    expected = np.array([fit.log_evidence for fit in fits])
    if rounded(found, expected, 4):
        return None
    if rounded(found, -expected, 4):
        return "these are energies, minus the log evidence."
    if rounded(found, expected[::-1], 4):
        return "the order is reversed: the smallest power comes first."
    if rounded(found, expected / len(y), 4):
        return "these are per datum; the log evidence of the whole data set is asked for."
    return ("these are not the values of the log evidence at this kernel, noise and Z. Was anything learnt between two "
            "of the powers?")


POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)      # of exercise 7

quiz_of(
    "sr-quiz",
    question(
        "At power α, what happens to the residual variance h of a datum?",
        [("the share α is believed and counts as noise; the rest is penalised", None),
         ("the share 1 − α counts as noise; the rest is penalised", "at α = 1, FITC, all of h counts as noise."),
         ("it is dropped at every α but 1",
          "between 0 and 1 a part of it counts as noise, and VFE, at α = 0, penalises what it drops.")],
        why="The method that drops it without a penalty is DTC, and no α gives that.",
    ),
    question(
        "Kernel, noise and pseudo-inputs are held fixed. What does raising α do to the log evidence?",
        [("it never falls", None),
         ("it never rises", "the penalty shrinks faster than the fit can lose."),
         ("it can do either", "for fixed parameters the first law settles the direction.")],
        why="That is why the evidence cannot choose α: it would always choose 1.",
    ),
    question(
        "Why does one visit to each datum suffice in regression?",
        [("the sites are damped", "no damping is needed."),
         ("the target of a site does not depend on the cavity", None),
         ("the data are independent", "so they are in classification, which needs many sweeps.")],
        why="A Gaussian likelihood, seen from the features, is a site already.",
    ),
    question(
        "A block of data shares one site at α = 0. What changes in comparison with single data?",
        [("the evidence rises",
          "at α = 0 only the trace of the residual's covariance counts. (For α > 0 the evidence can rise or fall.)"),
         ("nothing", None),
         ("the posterior becomes exact", "only for Z = X or h = 0.")],
        why="VFE believes none of the residual, so it does not see that residuals in a block are correlated.",
    ),
)
