"""Checkers of the chapter "Stochastic EP for many classes"."""

import warnings

import numpy as np
from exercises import (
    ANY,
    RIGHT,
    Feedback,
    NotWhole,
    Within,
    as_array,
    as_things,
    called,
    checker,
    close,
    numbers,
    question,
    quiz_of,
)
from scipy.stats import norm

from pepcore import multiclass
from pepcore.kernels import SquaredExponential

NOISE, ALLOWED, NEAR = 0.05, 6, 0.07


CLASSES = np.array([5, 20])       # exercise 1
LOSSES = np.log(2.0) * (CLASSES - 1) - np.log(CLASSES)

numbers(
    "mc-1-pieces",
    {"five functions": LOSSES[0], "twenty functions": LOSSES[1]},
    decimals=1,
    mistakes=[
        (np.log(2.0) * (CLASSES - 1), "that is what the pieces cost; the exact factor costs something anyway."),
        (np.log(CLASSES), "that is what the exact factor costs; how much more do the pieces cost?"),
        (np.log(2.0) * CLASSES - np.log(CLASSES), "a function is not its own rival: how many comparisons are there?"),
        (-LOSSES, "the numbers are right but for the sign: losses are asked for as positive numbers."),
        (LOSSES / np.log(2.0), "these are bits; nats are asked for."),
    ],
    otherwise=[
        "what is the chance of the label under the exact factor, and what do the comparisons together make of it?",
        "the first is right. Do the same with twenty.",
    ],
    never=["log 2 · (C − 1) − log C", "logarithm of C − 1 factors"],
)


def two_sites(own, rival, noise, *, signs=(1.0, -1.0), with_residual=False, residual=True, with_noise=True, shift=1.0):
    """The sites of one comparison at α = 1, and what the usual mistakes make of them."""
    t = own[1] + rival[1] + with_noise * noise + residual * (own[2] + rival[2])
    z = (own[0] - rival[0]) / np.sqrt(t)
    hazard = np.exp(norm.logpdf(z) - norm.logcdf(z))
    d1, d2 = hazard / np.sqrt(t), -hazard * (hazard + z) / t
    found = []
    for (mean, s, h), sign in zip((own, rival), signs):
        shrink = 1 + d2 * (s + with_residual * h)
        found += [-d2 / shrink, (sign * d1 - shift * d2 * mean) / shrink]
    return np.array(found)


@checker("mc-2-site", never=["-d2 / (1 + d2 * s)", "−d2/(1 + d2 s)", "(sign * d1 - d2 * mean)"])
def comparison(answer):
    case = (0.3, 0.5, 0.2), (0.8, 0.9, 0.1), 0.4
    found, right = as_array(called(answer, *case), (4,)), two_sites(*case)
    if close(found, right):
        return None
    if close(found, right[[2, 3, 0, 1]]):
        return "the two roles are exchanged: the sites of the datum's own class come first, then those of the rival."
    if close(found, right[[1, 0, 3, 2]]) or close(found, right[[0, 2, 1, 3]]):
        return "these are the right numbers in another order: τ and ν of the winner, then τ and ν of the rival."
    if close(found, two_sites(*case, with_noise=False)):
        return "the noise is missing: the difference of the two functions is seen through the noise of both."
    if close(found, two_sites(*case, signs=(1.0, 1.0))):
        return ("the rival's site pulls upwards: that is the misprint of the paper. Its first derivative has the "
                "other sign.")
    if close(found, two_sites(*case, signs=(-1.0, 1.0))):
        return "both first derivatives are turned round: the winner must rise, the rival fall."
    if close(found[[0, 2]], right[[0, 2]]) and close(found[[1, 3]], -right[[1, 3]]):
        return "both ν have the wrong sign."
    if close(found, two_sites(*case, shift=0.0)):
        return "both τ are right. A site is centred at zero and not at its cavity's mean: ν has a second term."
    if close(found, two_sites(*case, with_residual=True)):
        return "the denominators hold the residual h; the sites are of a'v, whose cavity variance is s alone."
    if close(found, two_sites(*case, residual=False)):
        return "the variance of the difference lacks the two residuals h."
    if close(found[[0, 2]], right[[0, 2]]):
        return "both τ are right, at least one ν is not."
    if close(found[:2], right[:2]):
        return "the winner is right, the rival is not."
    return "neither τ is right. Begin with the variance of the difference: which five variances does it add up?"


C, M, N = 10, 200, 60_000       # exercise 3
FACTORS = C - 1

numbers(
    "mc-3-memory",
    {"EP": 4 * FACTORS * N, "SEP": C * (M**2 + M), "data": C * (M**2 + M) / (4 * FACTORS)},
    digits=4,
    mistakes=[
        ((FACTORS * N, ANY, ANY), "that is the number of factors. How many numbers does each of them need?"),
        ((2 * FACTORS * N, ANY, ANY), "each factor has two sites, and each site two numbers."),
        ((4 * C * N, ANY, ANY), "a class is not its own rival."),
        ((RIGHT, C * M**2, ANY), "the first is right. SEP also stores the vectors b."),
        ((RIGHT, C * (M * (M + 1) / 2 + M), ANY), "the first is right. Both triangles of a symmetric matrix are kept."),
        ((RIGHT, M**2 + M, ANY), "the first is right. SEP stores this for each class."),
        ((RIGHT, RIGHT, Within(0.0, 1.0)), "the first two are right. The last is a number of data, not a ratio."),
    ],
    otherwise=[
        "how many comparisons has a datum, how many sites has a comparison, how many numbers has a site?",
        "the first is right. What does one class store, if its sites are summed?",
        "the first two are right. For the last ask when the first, as a function of the number of data, reaches the "
        "second.",
    ],
    never=["4 (C − 1) N", "C (M² + M)", "C − 1 factors for each datum"],
)


OTHERS, ALIKE, ODD, FEW = 9, 0.5, 8.0, 0.1     # exercise 4: k, t, T and the excess that counts as small


def cavities(k):
    """Precisions of EP's and of SEP's cavity for the odd one among k others."""
    return 1 + k * ALIKE, 1 + k / (k + 1) * (k * ALIKE + ODD)


def first_small(small):
    """The first number of others, from 1 on, that is small in this sense."""
    return next(k for k in range(1, 1000) if small(k, *cavities(k)))


TAKEN, TIED = cavities(OTHERS)
SITES = OTHERS * ALIKE + ODD

numbers(
    "mc-4-cavity",
    {"EP": TAKEN, "SEP": TIED, "limit": ODD - ALIKE, "others": first_small(lambda k, ep, sep: sep < (1 + FEW) * ep)},
    digits=4,
    mistakes=[
        ((TAKEN - 1, ANY, ANY, ANY), "the prior has a precision too."),
        ((1 + SITES, ANY, ANY, ANY), "that is the posterior: nothing has been taken out yet."),
        ((1 + SITES - ALIKE, ANY, ANY, ANY), "that is the cavity of one of the others; we visit the odd datum."),
        ((RIGHT, TIED - 1, ANY, ANY), "the first is right. In SEP the prior has a precision too."),
        ((RIGHT, TAKEN, ANY, ANY), "the first is right. SEP does not know which site is the odd one's."),
        ((RIGHT, 1 + SITES, ANY, ANY), "the first is right. The second is the posterior: SEP takes something out as well."),
        ((RIGHT, TIED - 1 / (OTHERS + 1), ANY, ANY),
         "the first is right. In the second a share of the prior has gone as well: the sum of the sites does not contain it."),
        ((RIGHT, 1 + SITES * (1 - 1 / OTHERS), ANY, ANY), "the first is right. How many sites are tied, the odd one included?"),
        ((RIGHT, RIGHT, TIED - TAKEN, ANY), "the first two are right. That is their difference for 9 others, not the limit."),
        ((RIGHT, RIGHT, 0, ANY),
         "the first two are right. The ratio of the two precisions tends to 1; what does their difference tend to?"),
        ((RIGHT, RIGHT, ODD, ANY), "the first two are right. SEP takes something out, even in the limit: what?"),
        ((RIGHT, RIGHT, RIGHT, NotWhole()), "the first three are right. A number of sites is whole."),
        ((RIGHT, RIGHT, RIGHT, first_small(lambda k, ep, sep: ODD - ALIKE < FEW * ep)),
         "the first three are right. You have put the limit in the place of the difference, which is smaller."),
        ((RIGHT, RIGHT, RIGHT, first_small(lambda k, ep, sep: sep - ep < FEW * sep)),
         "the first three are right. Ten per cent of EP's precision, not of SEP's."),
    ],
    otherwise=[
        "EP's cavity has the prior and all sites but the odd one.",
        "the first is right. SEP takes out the mean of all sites, the odd one included. What is left of their sum?",
        "the first two are right. Write the difference as a function of k.",
        "the first three are right. Compare the difference with a tenth of EP's precision, for each k.",
    ],
    never=["k/(k+1)", "k (T − t)", "T − t"],
)


ALL, BATCH, LENGTH, BACK = 1000, 25, 0.2, 10      # exercise 5: N, B, ε and how many steps ago
WEIGHT, SHRUNK = LENGTH * (1 - LENGTH) ** BACK, LENGTH / (2 - LENGTH)

numbers(
    "mc-5-batch",
    {"weight": WEIGHT, "multiple": np.sqrt(SHRUNK), "data": BATCH / SHRUNK, "step": 2 * BATCH / (ALL + BATCH)},
    digits=3,
    mistakes=[
        (((1 - LENGTH) ** BACK, ANY, ANY, ANY), "with which weight did this estimate join the sum, ten steps ago?"),
        ((LENGTH, ANY, ANY, ANY), "that is the weight of the newest one. What does each later step do to it?"),
        ((WEIGHT / (1 - LENGTH), ANY, ANY, ANY), "that is the weight after nine steps."),
        ((WEIGHT * (1 - LENGTH), ANY, ANY, ANY), "that is the weight after eleven steps."),
        ((RIGHT, SHRUNK, ANY, ANY), "the first is right. That is a ratio of variances."),
        ((RIGHT, LENGTH, ANY, ANY), "the first is right. The older estimates scatter too, and there are many of them."),
        ((RIGHT, np.sqrt(LENGTH), ANY, ANY), "the first is right. Weights stand squared in a variance: add up their squares."),
        ((RIGHT, np.sqrt(LENGTH / 2), ANY, ANY), "the first is right. That is the limit of short steps; sum the series exactly."),
        ((RIGHT, RIGHT, 1 / SHRUNK, ANY), "the first two are right. That is a number of batches."),
        ((RIGHT, RIGHT, BATCH / LENGTH, ANY),
         "the first two are right. One over the step counts batches, but they do not have equal weights."),
        ((RIGHT, RIGHT, BATCH / np.sqrt(SHRUNK), ANY),
         "the first two are right. How does a standard deviation fall with the number of data?"),
        ((RIGHT, RIGHT, RIGHT, BATCH / ALL),
         "the first three are right. That is the share of the data in a batch; solve the equation."),
        ((RIGHT, RIGHT, RIGHT, 2 * BATCH / ALL), "the first three are right. That is the limit of small batches; solve exactly."),
    ],
    otherwise=[
        "follow one estimate: with which weight does it join the sum, and what becomes of that weight in a step?",
        "the first is right. The estimates are independent: how do their variances add up?",
        "the first two are right. The variance of an estimate falls as one over the number of its data.",
        "the first three are right. Set your expression for the third equal to N, and solve it for the step.",
    ],
    never=["ε/(2 − ε)", "2B/(N + B)", "B(2 − ε)/ε"],
)


def labelled(N, seed):
    """The data of the chapter."""
    rng = np.random.default_rng(3)
    frequencies, phases = rng.standard_normal((1, 300)) / 0.8, rng.uniform(0, 2 * np.pi, 300)
    weights = rng.standard_normal((300, 3)) * np.sqrt(2 * 2.0 / 300)
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, (N, 1))
    f = np.cos(X @ frequencies + phases) @ weights
    return X, (f + np.sqrt(NOISE) * rng.standard_normal((N, 3))).argmax(axis=1)


@checker("mc-6-groups", never=["3 * by_place", "half and class"])
def groups(answer):
    answer = as_array(answer, (25,))
    if not np.isfinite(answer).all() or np.any(answer != np.floor(answer)) or answer.min() < 0:
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


@checker("mc-7-yours", never=["predict_y"])
def your_classes(answer):
    y, ep, sep = (as_array(part) for part in as_things(
        answer, 3, "labels (S,), probabilities of EP (S, C) and of SEP (S, C)"))
    if ep.ndim != 2 or ep.shape != sep.shape or y.shape != ep.shape[:1] or ep.shape[1] < 3 or len(y) < 30:
        raise Feedback("labels (S,) and two arrays (S, C) are asked for, S at least 30 and C at least 3; "
                       f"got {y.shape}, {ep.shape}, {sep.shape}.")
    if not np.isin(y, np.arange(ep.shape[1])).all():
        return "labels are the columns of the probabilities: 0 to C − 1."
    classes = ep.shape[1]
    surely_worse = 1 / classes - 2 * np.sqrt((classes - 1) / len(y)) / classes     # two standard errors below guessing
    for p in (ep, sep):
        if p.max() <= 0:
            return "these are log probabilities; take their exponentials."
        if p.min() < 0 or p.max() > 1:
            return "probabilities lie between 0 and 1: these look like latent means."
        if np.abs(p.sum(axis=1) - 1).max() > 5e-3 * classes:      # they may be rounded
            return "each row of probabilities adds up to 1; these do not. Is the array transposed?"
        if np.isin(p, (0, 1)).all():
            return "these are decisions, 0 or 1; probabilities are asked for."
        if np.mean(p.argmax(axis=1) == y) < surely_worse:
            return "these do worse than guessing: do the columns stand in the order of the labels?"
    if close(ep, sep, rtol=1e-9):
        return "the two are the same: was the approximation passed on?"
    return None


quiz_of(
    "mc-quiz",
    question(
        "EP cuts a label of C classes into C − 1 comparisons. When is the product of the comparisons exact?",
        [("always", "the comparisons share the datum's own function, so they are not independent."),
         ("for two classes", None),
         ("where the functions are independent",
          "they are independent in the prior; it is the shared function that spoils it.")],
        why="With one rival there is one comparison. With more, the product is too pessimistic.",
    ),
    question(
        "A comparison leaves a site in the label's class and in the rival. How do the two sites pull?",
        [("both upwards", "then the rival would rise with the winner: that is the misprint of the paper."),
         ("only that class is pulled", "the difference depends on both."),
         ("in opposite directions", None)],
        why="The winner's function must rise, the rival's fall.",
    ),
    question(
        "SEP at a power α above 0 stores a sum for each class. Which cavity does it use for a datum?",
        [("it takes out that datum's own site", "that site is no longer known: only the sum is."),
         ("it takes out a share of the mean of all sites", None),
         ("it takes out nothing", "then each datum would be counted twice.")],
        why="The mean site stands for each of them, which is wrong by what one site differs from the mean one.",
    ),
    question(
        "At α = 0, how do EP and SEP differ at their fixed points?",
        [("they do not: nothing is taken out of q", None),
         ("SEP is surer of itself", "no site is taken out, so both cavities are q itself, and the fixed points are the same."),
         ("SEP does not converge", "it is stochastic variational inference, which does.")],
        why="At α = 0 nothing is taken out, so it does not matter which site it would have been.",
    ),
)
