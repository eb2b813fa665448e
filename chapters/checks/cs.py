"""Checkers of the chapter "Sparse EP by projection"."""

import numpy as np
from exercises import (
    ANY,
    RIGHT,
    Feedback,
    as_array,
    as_number,
    as_things,
    called,
    checker,
    close,
    numbers,
    question,
    quiz_of,
)

from pepcore import datasets, exact, online
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Gaussian


def random_process(seed, M=4):
    """K (M, M), alpha (M,), C (M, M) of a process that has seen two data per basis vector."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(M, M))
    K = root @ root.T / M + 0.3 * np.eye(M)
    P = rng.normal(size=(2 * M, M))
    Lambda = P.T @ (rng.uniform(0.2, 1.5, 2 * M)[:, None] * P)
    both = np.linalg.inv(np.eye(M) + Lambda @ K)
    return K, both @ rng.normal(size=M), -both @ Lambda


def datum(seed, K):
    """k (M,), own, q and r of a new datum that is neither in the span nor far from it."""
    rng = np.random.default_rng(seed)
    k = K @ rng.normal(size=len(K)) / len(K)
    return k, float(k @ np.linalg.solve(K, k)) + 0.4, 0.7, -0.45


def process(result, M):
    """alpha (M,) and C (M, M) out of what the reader's function returned."""
    result = as_things(result, 2, f"alpha of shape ({M},) and C of shape ({M}, {M})")
    return as_array(result[0], (M,)), as_array(result[1], (M, M))


def same(mine, theirs):
    return close(mine[0], theirs[0], digits=8) and close(mine[1], theirs[1], digits=8)


PRIOR = 4.0                                                 # exercise 1: the prior's variance
SLOPE = np.sqrt(2 / np.pi) / np.sqrt(1 + PRIOR)             # of log Φ(m/√(1 + h + s)) at m = 0
BEND = -(SLOPE**2)

numbers(
    "cs-1-first",
    {"α": SLOPE, "C": BEND, "τ": -BEND / (1 + PRIOR * BEND)},
    decimals=2,
    mistakes=[
        ((np.sqrt(2 / np.pi), ANY, ANY),
         "the label sees f through a blur of variance 1: what does the prior's variance do to the slope?"),
        ((-SLOPE, ANY, ANY), "a label +1 pulls the mean upwards."),
        ((RIGHT, -BEND, ANY), "C has the wrong sign: a datum takes variance away."),
        ((RIGHT, -(SLOPE**2) / 2, ANY), "C is a full second derivative, without a factor ½."),
        ((RIGHT, RIGHT, -BEND), "τ is not −r: the site must be divided by what the prior knew already."),
        ((RIGHT, RIGHT, 1 / PRIOR), "that is the precision of the prior; the site has one of its own."),
    ],
    otherwise=[
        "α is q, the slope of the log of the label's probability in the prior's mean, with nothing learnt before.",
        "α is right. C is r, the second derivative in the same place.",
        "α and C are right. For τ use the site of an online step, with the variance that the prior has.",
    ],
    never=["√(2/π)", "−r/(1 + r(h + s))", "Φ(m/√(1 + h + s))"],
)

VALUES, NOISE = np.array([1.0, 2.0]), 0.5                    # exercise 2: one place, measured twice, prior variance 1
LEARNT = len(VALUES) / (NOISE + len(VALUES))                 # share of the prior variance that both take away

numbers(
    "cs-2-twice",
    {"α": VALUES.sum() / (NOISE + len(VALUES)), "C": -LEARNT},
    decimals=2,
    mistakes=[
        ((VALUES[0] / (1 + NOISE), ANY),
         "that is the process after the first value; the second one has still to come."),
        ((VALUES[1] / (1 + NOISE), ANY), "that is the process after the second value alone."),
        ((VALUES.sum() / (1 + NOISE), ANY),
         "the second value is not compared with the prior, but with what the first one has left."),
        ((VALUES.mean(), ANY), "that is the mean of the two values, as if there were no prior."),
        ((RIGHT, LEARNT), "α is right. C takes variance away: its sign."),
        ((RIGHT, 1 - LEARNT), "α is right. That is the variance which is left; C is what was taken from the prior's."),
        ((RIGHT, -1 / (1 + NOISE)), "α is right. That is C after one of the two."),
    ],
    otherwise=[
        "with k = 1 the mean at this place is α itself. What is it after two measurements?",
        "α is right. With k = 1 the variance at this place is 1 + C. What is it after two measurements?",
    ],
)


def parts_of_price(alpha, C, K, gone):
    """Of the coordinates that go, in an orthonormal basis: mean m, covariance V and precision Pi."""
    J, block = np.linalg.inv(K), np.ix_(gone, gone)
    root = np.linalg.inv(np.linalg.cholesky(J[block]))
    Pi = np.eye(len(gone)) - root @ np.linalg.solve(np.eye(len(K)) + C @ K, C)[block] @ root.T
    return root @ alpha[gone], root @ (J + C)[block] @ root.T, Pi


@checker("cs-3-prune", never=["np.trace(np.linalg.solve", "a trace and a log determinant", "one after the other"])
def price(answer):
    K, alpha, C = random_process(7, M=5)
    for gone in ([2], [1, 3], [4, 0, 2]):
        mine = as_number(called(answer, alpha, C, K, gone))
        m, V, Pi = parts_of_price(alpha, C, K, gone)
        log_V, log_Pi, number = np.linalg.slogdet(V)[1], np.linalg.slogdet(Pi)[1], len(gone)
        mean, trace = m @ np.linalg.solve(V, m), np.trace(Pi) - number
        right = 0.5 * (mean + trace + log_V)
        alone = [parts_of_price(alpha, C, K, [i]) for i in gone]
        single = sum(0.5 * (m @ m / V[0, 0] + Pi[0, 0] - 1 + np.log(V[0, 0])) for m, V, Pi in alone)
        if close(mine, right, digits=8):
            continue
        if close(mine, 2 * right):
            return "the factor ½ is missing."
        if close(mine, right + 0.5 * number):
            return "a precision of 1 is the prior's: it adds nothing to the price. How many of them are in your trace?"
        if close(mine, 0.5 * (m @ m + np.trace(V) - number + log_Pi)):
            return "that is the price in the other direction, KL(full ‖ pruned)."
        if close(mine, 0.5 * mean):
            return "that is what the lost mean costs; the lost covariance has its price too."
        if number > 1 and close(mine, single):
            return ("that is the sum of the single prices. But once the first has gone, the price of the next one is "
                    "another.")
        if number > 1 and close(mine, 0.5 * (mean + trace + sum(np.log(V[0, 0]) for _, V, _ in alone))):
            return "the coordinates that go are correlated: their log variances do not add up to a log determinant."
        if number > 1:
            return (f"right for a single one, not for {number} that go together. In (cs-score) the coordinate is a vector "
                    "now: what becomes of the square, the number and the logarithm?")
        return "not the price of a single one. For it half of (cs-score-all) is right."
    return None


def joined(alpha, C, K, k, own, q, r):
    """alpha, C and K with the newcomer as the last basis vector."""
    g = np.append(C @ k, 1.0)
    return np.append(alpha, 0) + q * g, np.pad(C, (0, 1)) + r * np.outer(g, g), np.block([[K, k[:, None]], [k, own]])


def pruned(alpha, C, K, i):
    """alpha and C without basis vector i, by conditioning on its coefficient being zero."""
    stay = np.arange(len(K)) != i
    precision = np.linalg.inv(C + np.linalg.inv(K))
    covariance = np.linalg.inv(precision[np.ix_(stay, stay)])
    return covariance @ (precision @ alpha)[stay], covariance - np.linalg.inv(K[np.ix_(stay, stay)])


def marginal(alpha, C, K, i):
    """alpha and C without basis vector i, with the values at the others as they are."""
    stay = np.arange(len(K)) != i
    R = np.linalg.solve(K[np.ix_(stay, stay)], K[stay])
    return R @ alpha, R @ C @ R.T


@checker("cs-4-swap", never=["E @ C @ E.T", "marginal(joined"])
def swap(answer):
    for i in (1, 3):
        K, alpha, C = random_process(8 + i)
        k, own, q, r = datum(9 + i, K)
        mine = process(called(answer, alpha, C, K, k, own, q, r, i), 4)
        whole, stay = joined(alpha, C, K, k, own, q, r), np.arange(5) != i
        if same(mine, marginal(*whole, i)):
            continue
        if same(mine, pruned(*whole, i)):
            return "this conditions on the coefficient being zero, KL(pruned ‖ full), and moves the values that stay."
        if same(mine, marginal(*whole, 4)):
            return "the newcomer went out again. It was to stay, and the old basis vector i to go."
        if same(mine, (whole[0][stay], whole[1][np.ix_(stay, stay)])):
            return "the newcomer is right, but basis vector i was struck out, and the others were left as they were."
        before = marginal(alpha, C, K, i)
        left = np.arange(4) != i
        if same(mine, joined(*before, K[np.ix_(left, left)], k[left], own, q, r)[:2]):
            return "the old vector went first, so the newcomer's slopes no longer belong to the process that it met."
        forgot_own = np.block([[K, k[:, None]], [k, 0 * k[:1] + 1.0]])
        if same(mine, marginal(whole[0], whole[1], forgot_own, i)):
            return "the matrix of the larger basis has the newcomer's own prior variance in its corner."
        right, newcomer_first = marginal(*whole, i), np.roll(np.arange(4), 1)
        if same(mine, (right[0][newcomer_first], right[1][np.ix_(newcomer_first, newcomer_first)])):
            return "this is the right process, only in another order: the newcomer comes last."
        if close(mine[0], right[0], digits=8):
            return f"alpha is right, C is not (i = {i})."
        return (f"not the process whose values stay as they are (i = {i}). In which order do the two steps come, and "
                "which K belongs to each?")
    return None


numbers(
    "cs-5-disguise",
    {"α": 0.7, "noise": 0.1 + (1 - 0.3) * 0.5, "ratio": (0.1 + 0.5) / 0.1},
    digits=3,
    mistakes=[
        ((0.3, ANY, ANY), "ρ = 1 is VFE, and VFE is the power 0: the two dials run against each other."),
        ((RIGHT, 0.1 + 0.3 * 0.5, ANY),
         "α is right. The share of the residual that counts as noise is the one that is not projected."),
        ((RIGHT, 0.1, ANY), "α is right. Only at ρ = 1 does the residual add nothing to the noise."),
        ((RIGHT, RIGHT, 0.1 / 0.6), "turn the ratio round: without ξ the site is weaker, and it belongs in the denominator."),
        ((RIGHT, RIGHT, 0.45 / 0.1), "the last number compares ρ = 1 with ρ = 0, not with 0.3."),
    ],
    otherwise=[
        "compare the noise variance of the datum in the two families: which share of h does each add?",
        "α is right. Which share of h is added to σ² when ρ of it is projected?",
        "the first two are right. Write down the precision of the site at either end, then divide.",
    ],
    never=["1 − ρ", "σ² + (1 − ρ)h", "1/(σ² + h)"],
)


def runs_against(means, full):
    """Whether the means of a stream rise where those of the full process fall, as in a wrong order of the rows."""
    return means.std() >= 0.3 * full.std() and np.corrcoef(means, full)[0, 1] < -0.9


@checker("cs-6-yours", never=["order=np.argsort"])
def your_stream(answer):
    first, second, full = (as_array(part) for part in as_things(
        answer, 3, "the means (S,) after one order, after another order, and of the full process"))
    if first.ndim != 1 or len(first) < 20 or first.shape != second.shape or first.shape != full.shape:
        raise Feedback("three arrays of one shape (S,), S at least 20, are asked for; "
                       f"got {first.shape}, {second.shape}, {full.shape}.")
    if not all(np.isfinite(part).all() for part in (first, second, full)):
        return "some of the means are infinite: is the noise variance too small for your targets?"
    if np.ptp(full) == 0:
        return "the full process predicts the same everywhere: has it seen any data?"
    if close(first, second):
        return "both orders end alike. Are they different, and is the budget smaller than the number of data?"
    if close(first, full) or close(second, full):
        return "one of the streams is the full process itself: the budget is so large that nothing had to go."
    if runs_against(first, full) or runs_against(second, full):
        return "one of the streams runs against the full process. Do the rows of all three belong to the same inputs?"
    return None


@checker("cs-7-nystrom", never=["[0.0], [5.0], 5.0"])
def nystrom(answer):
    answer = as_things(answer, 4, "four things, places z, inputs x, one new place and the noise,")
    z, x, new, noise = (np.atleast_1d(as_array(part)).ravel() for part in answer)
    if new.size != 1 or noise.size != 1:
        return "the third is one place and the fourth one noise variance."
    if z.size == 0 or x.size == 0:
        return "at least one basis vector and one datum are needed."
    if not (np.isfinite(z).all() and np.isfinite(x).all() and np.isfinite(new).all() and 1e-3 <= noise[0] <= 1e3):
        return "places must be finite, and the noise variance between 0.001 and 1000."
    k = SquaredExponential(1.0, 1.0)
    z, x, new = z[:, None], x[:, None], new[:, None]
    k_xz = k(x, z)
    smooth = k_xz @ np.linalg.solve(k(z) + 1e-10 * np.eye(len(z)), k_xz.T)
    towards = k(x, new)[:, 0]
    variance = 1.0 - towards @ np.linalg.solve(smooth + noise[0] * np.eye(len(x)), towards)
    if not variance < 0:
        return (f"the variance is {variance:.3g}, which is not negative. By how much do the data vary in this model, and by "
                "how much does the prediction think they vary with it?")


ROOM, NEAR = 10, 0.25       # exercise 8


def leaves_a_room(line, size):
    """Whether a waiting room of this size can let the data pass in this order."""
    return bool(np.all(line - np.arange(len(line)) < size))


def distance_after(line):
    """How far one sweep in this order ends from the full process."""
    toy = datasets.snelson_like(seed=0, N=100)
    kernel = SquaredExponential(variance=0.7, lengthscales=0.6)
    target, _ = exact.regression(kernel, toy.X, toy.y, noise=0.06).predict_f(toy.X)
    fit = online.infer(kernel, toy.X, toy.y, Gaussian(0.06), budget=6, novelty=0.01, order=line)
    return np.sqrt(np.mean((fit.predict_f(toy.X)[0] - target) ** 2))


def solves(line):
    """Whether an order comes out of the room and ends near the full process."""
    return leaves_a_room(line, ROOM) and distance_after(line) < NEAR


@checker("cs-8-order", never=["t + 9", "n % 10", "np.arange(100) + 10"])
def order(answer):
    line = as_array(answer, (100,))
    if not np.array_equal(np.sort(line), np.arange(100)):
        return "an order holds each of the numbers 0 to 99 once."
    line = line.astype(int)
    if np.array_equal(line, np.arange(100)):
        return "this is left to right: here no datum waits."
    if solves(line):
        return None
    if solves(np.argsort(line)):
        return "this says when each datum is read. Turn it round: which datum is read first, which next?"
    if not leaves_a_room(line, ROOM):
        if leaves_a_room(line, ROOM + 1):
            return "such an order needs one place more than the room has. Count those that wait when the first is chosen."
        place = int(np.argmax(line - np.arange(100) >= ROOM))
        return (f"at place {place}, counted from 0, number {line[place]} is read, but it has not come in yet. Which data wait "
                "at that moment?")
    return (f"the room can produce this order. Its distance is {distance_after(line):.2f}, and {NEAR} is asked for. The "
            "data that are read first keep their places. Which should be read early?")


quiz_of(
    "cs-quiz",
    question(
        "A datum arrives far from all basis vectors, but its likelihood hardly changes there (q and r are nearly "
        "zero). Is it worth a place?",
        [("yes, since it is new", "novelty alone is not enough."),
         ("no, since it has nothing to say", None),
         ("yes, if the budget is not used up", "a place that changes nothing is still a place lost.")],
        why="A datum is worth a place if it is far from the span and has something to say.",
    ),
    question(
        "Pruning by KL(pruned ‖ full) conditions the coefficients on the lost one being zero. What does it keep?",
        [("every site, along a projected direction", None),
         ("the marginal of what stays", "that is the other direction of the divergence."),
         ("the mean, but not the covariance", "both change.")],
        why="Each site keeps its two numbers; the direction it acts along is projected onto those that stay.",
    ),
    question(
        "Regression. With ξ every site has the precision 1/σ², whatever the novelty h. Which method's posterior is "
        "this?",
        [("FITC's", "there h counts as noise, and a novel datum has a weaker site."),
         ("that of the full process", "only if h = 0 for all data."),
         ("that of DTC and VFE", None)],
        why="One factor decides between the two families.",
    ),
    question(
        "EP forgets the order of the data. Why does the order matter here all the same?",
        [("sites depend on the order at the fixed point", "they do not, for a fixed basis."),
         ("which basis vectors were taken in depends on it", None),
         ("rounding errors add up", "they are far too small.")],
        why="The sites forget; the choice of the basis remembers.",
    ),
)
