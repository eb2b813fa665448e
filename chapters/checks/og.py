"""Checkers of the chapter "Orthogonal natural gradients"."""

from functools import partial

import numpy as np
from exercises import (
    ANY,
    RIGHT,
    Feedback,
    NotWhole,
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

from figures.experiments.salimbeni2018 import small_problem
from pepcore.kernels import SquaredExponential


def covariance(seed, M):
    root = np.random.default_rng(seed).normal(size=(M, M))
    return root @ root.T / M + 0.3 * np.eye(M)


R, G = 2.0, 3.0       # exercise 1

numbers(
    "og-1-shift",
    {"θ": R * G, "divergence": 0.5 * G * R * G, "information": R},
    digits=3,
    mistakes=[
        ((G / R, ANY, ANY), "g is the natural parameter: the mean of e is not divided by R."),
        ((G, ANY, ANY), "that is the natural parameter itself; the expectation parameter is the mean of e."),
        ((RIGHT, G * R * G, ANY), "the first is right. The divergence lacks its factor ½."),
        ((RIGHT, 0.5 * G**2 / R, ANY),
         "the first is right. In natural parameters R multiplies; it would divide where a mean is given."),
        ((RIGHT, RIGHT, 1 / R),
         "the third number is the information about g. That about the mean would be its inverse."),
        ((RIGHT, RIGHT, R * G**2), "the third number does not depend on g."),
    ],
    otherwise=[
        "the expectation parameter is the mean of e under the moved Gaussian. How far does g move it?",
        "the first is right. The two Gaussians have the same covariance: what is left of their divergence?",
        "the first two are right. The Fisher information is a second derivative: of which function, in g?",
    ],
    never=["½ g R g", "R g."],
)


@checker("og-2-residual", never=["x/ℓ", "np.sqrt(variance) * t", "expm1", "slope"])
def form(answer):
    x = np.array([-1.7, -0.4, 0.0, 0.3, 1.1, 2.6])
    for variance, lengthscale in ((2.5, 0.7), (0.6, 1.3)):
        found = as_array(called(answer, x, variance, lengthscale), (6,))
        t = x / lengthscale
        bell = np.exp(-0.5 * t**2)
        right = np.sqrt(variance) * t * bell
        if close(found, right):
            continue
        if not found.any():
            return "both vanish, and as fast as each other: divide first, then let the distance go to zero."
        if close(found, variance * bell) or close(found, np.sqrt(variance) * bell):
            return "that is the kernel seen from beta. Take away what beta explains before you go to the limit."
        if close(found, -right):
            return "the sign is turned round: gamma comes from the right."
        if close(found, variance * t * bell / lengthscale):
            return "that is the limit of r(x)/d. R depends on variance and lengthscale too."
        if close(found, right * np.sqrt(variance)) or close(found, right / np.sqrt(variance)):
            return f"it may be right for a variance of 1, but not for {variance}: how do r and the root of R grow with it?"
        if close(found, right / lengthscale) or close(found, right * lengthscale):
            return f"it may be right for a lengthscale of 1, but not for {lengthscale}: check the units."
        if close(found, np.sqrt(variance) * t * np.exp(-(t**2))):
            return "the exponent of the kernel has a factor ½."
        if close(found, right, rtol=0.05):
            return "this is near to the limit, but not to six digits. A small distance loses digits by cancellation: expand."
        return (f"not the limit (variance {variance}, lengthscale {lengthscale}). To which order in d do you need the kernel "
                "at gamma, and the share of it that beta explains?")
    return None


@checker("og-3-divergence", never=["½(|μ|² + tr V − log|V| − M)", "m = w + A_γ g", "w + A_gamma @ g"])
def divergence(answer):
    rng = np.random.default_rng(4)
    w, g, A, V = rng.normal(size=3), rng.normal(size=4), rng.normal(size=(3, 4)), covariance(5, 3)
    K = A.T @ A + covariance(6, 4)
    mine = as_number(called(answer, w, V, g, A, K))
    spread = np.trace(V) - np.linalg.slogdet(V)[1] - 3
    right = 0.5 * (w @ w + 2 * w @ A @ g + g @ K @ g + spread)
    if close(mine, right):
        return None
    if close(mine, 2 * right):
        return "the factor ½ is missing."
    if close(mine, 0.5 * (w @ w + g @ K @ g + spread)):
        return "the two parts of this mean are not orthogonal: a cross term is missing."
    if close(mine, 0.5 * (w @ w + g @ (K - A.T @ A) @ g + spread)):
        return ("that is the formula of the orthogonal basis with w in the place of m. First find the m of the same "
                "mean.")
    if close(mine, right - 0.5 * spread):
        return "the squared length of the mean is right; the covariance has its share in the divergence too."
    return "not the divergence. What is the squared length of this mean, cross term included, and what does V add?"


STEP, TOO_SURE, TOO_WIDE, LITTLE = 0.5, 10.0, 0.1, 0.01     # exercise 4: ε, P over P*, and the share that may be left


def left(start, k):
    """The share of the way that the mean has still to go after k steps, from a precision of `start` times the best one."""
    old = (1 - STEP) ** k
    return old * start / (old * start + 1 - old)


def steps(left_after):
    """After how many steps little is left."""
    return next(k for k in range(1000) if left_after(k) < LITTLE)


SHARES = 1 - left(TOO_SURE, 1), 1 - left(TOO_WIDE, 1)
STEPS = steps(partial(left, TOO_SURE)), steps(partial(left, TOO_WIDE))

numbers(
    "og-4-step",
    {"share, too sure": SHARES[0], "share, too wide": SHARES[1], "steps, too sure": STEPS[0], "steps, too wide": STEPS[1]},
    digits=3,
    mistakes=[
        ((STEP, STEP, ANY, ANY), "P and b go half of the way. The mean is neither of the two."),
        ((SHARES[1], SHARES[0], ANY, ANY), "the two shares are exchanged: which posterior is harder to move?"),
        ((1 - SHARES[0], ANY, ANY, ANY), "that share is left. Which one has it gone?"),
        ((STEP / TOO_SURE, ANY, ANY, ANY), "half of the target has joined the precision too: by what must b be divided?"),
        ((1 / TOO_SURE, ANY, ANY, ANY), "a share compares one weight with the sum of both, not with the other one."),
        ((RIGHT, 1 - SHARES[1], ANY, ANY), "the first is right. In the second case, which share has the mean gone?"),
        ((RIGHT, RIGHT, steps(lambda k: (1 - STEP) ** k), ANY),
         "the shares are right. So many steps bring P and b near; how far does the mean lag behind them?"),
        ((RIGHT, RIGHT, steps(lambda k: left(TOO_SURE, 1) ** k), ANY),
         "the shares are right. They are those of the first step: after it, P is no longer ten times too large."),
        ((RIGHT, RIGHT, STEPS[0] - 1, ANY), "the shares are right. After so many steps more than 1 % is left."),
        ((RIGHT, RIGHT, RIGHT, steps(lambda k: left(TOO_WIDE, 1) ** k)),
         "the first three are right. The share of the first step is not that of the second: P has changed."),
        ((RIGHT, RIGHT, RIGHT, STEPS[1] - 1), "the first three are right. After so many steps more than 1 % is left."),
    ],
    otherwise=[
        "write down P and b after the step, then the mean: with which weights do the old mean and the best one stand in it?",
        "the first is right. Do the same with a precision that is too small.",
        "the shares are right. Which weights do the start and the target have in P and b after k steps?",
        "the first three are right. Count for the precision that is too small.",
    ],
    never=["2^{-k} c", "c/(c + 1)", "1/11", "10/11"],
)


REACH, SPREAD, DATA, SIGMA2 = 0.1, 0.5, 20, 0.1      # exercise 5: r(x_n), R, N and the noise variance


def curvature(N):
    """Second derivative of the bound in g, with the sign that makes it positive."""
    return SPREAD + N * REACH**2 / SIGMA2


numbers(
    "og-5-limit",
    {"longest step": 2 * SPREAD / curvature(DATA),
     "most data": next(N for N in range(1000) if 2 * SPREAD / curvature(N + 1) <= 1)},
    digits=3,
    mistakes=[
        ((SPREAD / curvature(DATA), ANY),
         "with this step the error vanishes at once. It only has to shrink: a longer one does that too."),
        ((2 / curvature(DATA), ANY), "the step is taken in the metric R, and its natural gradient is divided by it."),
        ((2 * SPREAD / (curvature(DATA) - SPREAD), ANY), "R is missing in the curvature: the divergence bends too."),
        ((2 * SPREAD / curvature(1), ANY), "that is for one datum; they add up."),
        ((RIGHT, NotWhole()), "the first is right. A number of data is whole."),
        ((RIGHT, next(N for N in range(1000) if 2 * SPREAD / curvature(N) <= 1)),
         "the first is right. With so many the error is turned round at each step, and neither grows nor shrinks."),
    ],
    otherwise=[
        "what does one step multiply the error of g by, if the bound bends so much and the metric is R?",
        "the first is right. For how many data does a step of 1 still shrink the error?",
    ],
    never=["2 R / (R + N", "2 / np.linalg.eigvals"],
)


@checker("og-6-gain", never=["½ yᵀ(Q + σ²I)⁻¹y", "fit_of(beta) - fit_of"])
def gain(answer):
    rng = np.random.default_rng(11)
    kernel, X = SquaredExponential(0.2, 1.5), rng.uniform(-3, 3, (30, 1))      # the jitter matters: 0.1 per cent
    y, beta, gamma, noise = rng.normal(size=30), rng.uniform(-3, 3, (3, 1)), rng.uniform(-3, 3, (4, 1)), 0.1

    def terms(Z, jitter=1e-6):
        Q = kernel(X, Z) @ np.linalg.solve(kernel(Z) + jitter * np.eye(len(Z)), kernel(Z, X))
        S = Q + noise * np.eye(30)
        return (0.5 * y @ np.linalg.solve(S, y), 0.5 * np.linalg.slogdet(S)[1],
                (30 * kernel.variance - np.trace(Q)) / (2 * noise))

    mine, together = as_number(called(answer, kernel, beta, gamma, X, y, noise)), np.vstack([beta, gamma])
    (fit, size, penalty), (fit_all, size_all, penalty_all) = terms(beta), terms(together)
    if close(mine, fit - fit_all):
        return None
    if any(close(mine, terms(beta, jitter)[0] - terms(together, jitter)[0]) for jitter in (0.0, 1e-6 * kernel.variance)):
        return "nearly: the exercise adds 1e-6 to both diagonals, the same for every variance of the kernel."
    if close(mine, fit_all - fit):
        return "the sign is turned round: a gain is positive."
    if close(mine, 2 * (fit - fit_all)):
        return "the factor ½ is missing."
    if close(mine, fit + size + penalty - fit_all - size_all - penalty_all):
        return "that is the gain of a coupled basis with all points. Here complexity and penalty stay with beta."
    if close(mine, fit + size - fit_all - size_all):
        return "the complexity, the log determinant, belongs to the covariance and stays with beta."
    return "not the gain. Which of the three terms of the bound knows of gamma, and which two know of beta alone?"


@checker("og-7-places", never=["argmax(gains)"])
def places(answer):
    gamma = as_array(answer, (10, 1))
    if not np.all(np.isfinite(gamma)):
        return "the places must be finite numbers."
    X, y = small_problem.data()
    kernel, noise = small_problem.KERNEL, small_problem.NOISE
    beta, _ = small_problem.points(X, 10, 0)

    def fit(Z):
        Q = kernel(X, Z) @ np.linalg.solve(kernel(Z) + 1e-6 * np.eye(len(Z)), kernel(Z, X))
        return 0.5 * y @ np.linalg.solve(Q + noise * np.eye(len(y)), y)

    A = np.linalg.solve(np.linalg.cholesky(kernel(beta) + 1e-6 * np.eye(10)), kernel(beta, X))
    Q = A.T @ A
    S = Q + noise * np.eye(len(y))
    fixed = -0.5 * (len(y) * np.log(2 * np.pi) + np.linalg.slogdet(S)[1]) - (len(y) - np.trace(Q)) / (2 * noise)
    value = fixed - fit(np.vstack([beta, gamma]))
    if not value > -975:
        return f"the bound at its optimum is {value:.0f}, and more than -975 is asked for."


@checker("og-8-yours", never=["½ yᵀ(Q + σ²I)⁻¹y"])
def your_gain(answer):
    kernel, beta, gamma, X, y, noise, gain = as_things(answer, 7,
        "kernel, beta, gamma, X, y, noise and the gain in nats")
    kernel = as_kernel(kernel)
    beta, gamma, X, y, noise, gain = *map(as_array, (beta, gamma, X, y)), as_number(noise), as_number(gain)
    if X.ndim != 2 or not 50 <= len(X) <= 2000 or y.shape != (len(X),):
        raise Feedback(f"X (N, D) and y (N,) with 50 to 2000 rows are asked for; got the shapes {X.shape} and "
                       f"{y.shape}.")
    if any(Z.ndim != 2 or len(Z) == 0 or Z.shape[1] != X.shape[1] for Z in (beta, gamma)):
        raise Feedback(f"beta and gamma hold one place a row, with the columns of X; got the shapes {beta.shape} and "
                       f"{gamma.shape}.")
    if not noise > 0:
        return "the noise is a variance, and positive."
    if abs(y.mean()) > 3 * y.std():
        return "the mean of y is far from zero, and the prior's is zero: subtract it first."

    def gained(jitter):
        def fit(Z):
            Q = kernel(X, Z) @ np.linalg.solve(kernel(Z) + jitter * np.eye(len(Z)), kernel(Z, X))
            return 0.5 * y @ np.linalg.solve(Q + noise * np.eye(len(y)), y)

        return fit(beta) - fit(np.vstack([beta, gamma]))

    expected, relative = gained(1e-6), gained(1e-6 * np.mean(np.diag(kernel(beta))))
    if rounded(gain, expected, 3) or rounded(gain, relative, 3):
        return None
    if rounded(gain, -expected, 3):
        return "the sign is turned round: a gain is positive."
    if rounded(gain, 2 * expected, 3):
        return "the factor ½ is missing."
    if rounded(gain, expected / len(y), 3):
        return "that is the gain per datum; the gain of the whole bound is asked for."
    return "not the gain of these points at this kernel and noise: was something learnt, or changed, in between?"


quiz_of(
    "og-quiz",
    question(
        "What do the extra points γ of a decoupled basis contribute?",
        [("to the covariance only", "there the prior's residual stays."),
         ("to the mean only", None),
         ("to both", "then they would cost as much as ordinary pseudo-points.")],
        why="Their covariance stays that of the prior. That makes them cheap.",
    ),
    question(
        "A natural-gradient step of length 1 for the coupled part, with a Gaussian likelihood ...",
        [("diverges", "for the residual part a long step can; the coupled part it solves."),
         ("halves the distance to the optimum", "the natural parameters arrive in one step."),
         ("solves it, given the rest", None)],
        why="In natural parameters the natural gradient is target minus current value.",
    ),
    question(
        "You add a hundred points to γ and none to β. Which terms of the bound can get better?",
        [("the fit to the data", None),
         ("the fit and the trace term", "complexity and penalty stay with β."),
         ("all of them", "log determinant and penalty do not know of γ.")],
        why="Extra points buy fit. For a narrower band one needs points in β.",
    ),
    question(
        "Orthogonal basis: what does orthogonality uncouple?",
        [("the likelihood", "both parts still meet in each datum."),
         ("the divergence from the prior", None),
         ("everything", "the data still see the sum of the two parts.")],
        why="The two parts of the mean have no cross term in the divergence; the data keep them coupled.",
    ),
)
