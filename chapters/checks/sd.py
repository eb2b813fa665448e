"""Checkers of the chapter "Study: decoupled bases on real data"."""

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
    numbers,
    question,
    quiz_of,
    rounded,
)
from scipy.stats import rankdata

from figures.experiments.salimbeni2018 import small_problem
from pepcore import exact, power_ep

METHODS, SETS = 6, 10                       # exercise 1: ranks in random order
ONE_RANK = np.sqrt((METHODS**2 - 1) / 12)

numbers(
    "sd-1-ranks",
    {"mean": (METHODS + 1) / 2, "standard deviation": ONE_RANK, "of the average": ONE_RANK / np.sqrt(SETS)},
    digits=3,
    mistakes=[
        (((METHODS - 1) / 2, ANY, ANY), "ranks are counted from 1."),
        ((METHODS / 2, ANY, ANY), "what is the mean of the whole numbers from 1 to 6?"),
        ((RIGHT, ONE_RANK**2, ANY), "the mean is right. The second number is a variance; its root is asked for."),
        ((RIGHT, np.std(np.arange(METHODS), ddof=1), ANY),
         "the mean is right. The six ranks are the whole distribution, not a sample: do not divide by 5."),
        ((RIGHT, METHODS / np.sqrt(12), ANY),
         "the mean is right. The second number belongs to a continuous distribution; ranks are whole numbers."),
        ((RIGHT, RIGHT, ONE_RANK / SETS), "the first two are right. The variance of an average falls like 1/n."),
        ((RIGHT, RIGHT, ONE_RANK), "the first two are right. An average over ten sets varies less than one rank."),
    ],
    otherwise=[
        "each of the six ranks is equally probable: what is their mean?",
        "the mean is right. The variance is the mean of the squares less the square of the mean.",
        "the first two are right. What happens to a standard deviation when ten independent numbers are averaged?",
    ],
    never=["(K² − 1)/12", "(6**2 - 1) / 12"],
)

numbers(
    "sd-2-labels",
    {"p, two among the six": 2 * 0.5**4, "p, none in common": 2 * (1 + 8 + 28) * 0.5**8, "rows": 6},
    digits=3,
    mistakes=[
        ((0.5**4, ANY, ANY), "that is one side only; the other method might have been the better one as well."),
        ((RIGHT, (1 + 8 + 28) * 0.5**8, ANY), "the first is right. The second is one side only."),
        ((RIGHT, 2 * 28 * 0.5**8, ANY),
         "the first is right. For the second, more uneven results than two of eight count as well."),
        ((RIGHT, 2 * 0.5**8, ANY), "the first is right. In the second case not all rows favour one method."),
        ((RIGHT, RIGHT, 5), "the first two are right. With five rows the two-sided p-value is still above 5 %."),
        ((RIGHT, RIGHT, 4), "the first two are right. Four rows are the first case, and that p-value was above 5 %."),
    ],
    otherwise=[
        "on how many rows is exactly one of the two right, and for whom? Then count the outcomes of as many coins.",
        "the first is right. Now eight rows count, two for one method and six for the other.",
        "the first two are right. Try one more row at a time, all for the same method.",
    ],
    never=["2 * 37 / 256", "2 / 2**4"],
)


def table(seed, decimals=None):
    """Losses (S, K) of sets of very different scale; rounded, some of them are equal."""
    rng = np.random.default_rng(seed)
    losses = rng.uniform(0.2, 1.0, (5, 4)) * 10 ** rng.uniform(-1, 1, (5, 1))
    return losses if decimals is None else np.round(losses / losses.max(axis=1, keepdims=True), decimals)


def first_without(values):
    """The column with the smallest sum when each row in turn is left out (S,)."""
    return np.argmin(values.sum(axis=0) - values, axis=1)


@checker("sd-3-leave", never=["argmin(total - ranks", "ranks.sum(axis=0) - ranks"])
def leaders(answer):
    for losses in (table(17), table(27), table(12, decimals=1)):
        ranks = rankdata(losses, axis=1)
        mine = as_array(called(answer, losses), (len(losses),))
        if np.array_equal(mine, first_without(ranks)):
            continue
        if np.array_equal(mine, np.full(len(losses), ranks.sum(axis=0).argmin())):
            return "no set is left out: the same method is first each time."
        if np.array_equal(mine, ranks.argmin(axis=1)):
            return "that is who is first on each set alone; leave the set out and average over the others."
        if np.array_equal(mine, first_without(losses)):
            return "that averages the losses themselves, and one set with large losses decides. Average ranks."
        if np.array_equal(mine, first_without(-ranks)):
            return "that is the method with the worst average rank: the smallest loss has rank 1."
        if np.array_equal(mine, first_without(rankdata(losses, axis=0))):
            return "the ranks run over the sets here; on each set the methods are to be ranked."
        others = (rankdata(losses, axis=1, method=method) for method in ("ordinal", "min", "max"))
        if any(np.array_equal(mine, first_without(other)) for other in others):
            return "equal losses share a rank, the mean of the places that they take."
        if np.any(ranks % 1):       # the last table, which has equal losses; the others were right
            return "right where no losses are equal. Equal losses share a rank, the mean of the places that they take."
        return "not the method that is first. Rank the methods on each set, leave one set out, average, take the smallest."
    return None


def reached(contains):
    """The containment relation (K, K), made transitive."""
    relation = np.array(contains, dtype=bool)
    for _ in relation:
        relation = relation | (relation @ relation)
    return relation


def shortfall(bounds, contains):
    return np.maximum(np.where(contains, bounds, -np.inf).max(axis=1) - bounds, 0)


@checker("sd-4-behind", never=["maximum(best - bounds, 0)"])
def behind(answer):
    chain = np.zeros((7, 7), dtype=bool)
    chain[[1, 2, 3, 4, 5], [0, 1, 2, 3, 0]] = True      # four links, from 4 down to 0; 5 contains 0; 6 is on its own
    whole, twice = reached(chain), chain | (chain @ chain)
    for bounds in (np.array([-10.0, -14.0, -13.0, -12.0, -15.0, -7.0, -9.0]),
                   np.array([-3.0, -8.0, -5.5, -9.0, -11.0, -1.0, -20.0])):
        mine = as_array(called(answer, bounds, chain), (7,))
        if close(mine, shortfall(bounds, whole)):
            continue
        if close(mine, shortfall(bounds, chain)):
            return "what a basis contains through another one is missing: if 2 contains 1 and 1 contains 0, 2 contains 0."
        if close(mine, shortfall(bounds, twice)):
            return "a chain may be longer: if 3 contains 2, 2 contains 1 and 1 contains 0, then 3 contains 0."
        if close(mine, shortfall(bounds, whole.T)) or close(mine, shortfall(bounds, chain.T)):
            return "the relation is turned round: row i says what i contains, and i must reach at least that bound."
        if close(mine, -shortfall(bounds, whole)):
            return "the sign is turned round: a method that is behind gets a positive number."
        if (mine < 0).any():
            return "a method ahead of all that it contains is not known to be behind: zero."
        if not np.isfinite(mine).all():
            return "a basis that contains no other one gets zero."
        return "not these distances. Of all that a basis contains, which bound says most about its own optimum?"
    return None


ROWS, ERROR, DIFFER = 1902, 0.127, 0.04         # exercise 5: the test part of magic
ONE_ERROR, DIFFERENCE = 100 * np.sqrt(ERROR * (1 - ERROR) / ROWS), 100 * np.sqrt(DIFFER / ROWS)

numbers(
    "sd-5-rows",
    {"one error": ONE_ERROR, "difference, same rows": DIFFERENCE, "two standard errors, other rows": 2 * np.sqrt(2) * ONE_ERROR},
    digits=3,
    mistakes=[
        ((ONE_ERROR / 100, ANY, ANY), "that is a share; percentage points are asked for."),
        ((100 * np.sqrt(ERROR / ROWS), ANY, ANY), "a share p has the variance p (1 - p) over the number of rows."),
        ((RIGHT, np.sqrt(2) * ONE_ERROR, ANY),
         "the first is right. The second would be for different rows; on the same rows most of the error is shared."),
        ((RIGHT, 100 * np.sqrt(DIFFER * (1 - DIFFER) / ROWS), ANY),
         "the first is right. On a row the difference is 1, -1 or 0, with mean zero: what is its mean square?"),
        ((RIGHT, RIGHT, 2 * ONE_ERROR), "the first two are right. In the third both errors are uncertain."),
        ((RIGHT, RIGHT, np.sqrt(2) * ONE_ERROR), "the first two are right. The third is one standard error; two are asked for."),
    ],
    otherwise=[
        "the number of wrong rows is binomial: what is the standard deviation of its share?",
        "the first is right. On each row the difference of the two is 1, -1 or 0. What is its variance?",
        "the first two are right. Variances of independent errors add.",
    ],
    never=["2 * np.sqrt(2) * se", "np.sqrt(differ / rows)"],
)


def bounds_of(kernel, beta, gamma, X, y, noise, jitter=None):
    """Bounds of beta alone, of gamma joined for the mean only, and of all points coupled: (og-gain).

    The jitter is that of `power_ep.regression` if none is given.
    """
    together = np.vstack([beta, gamma])
    alone, coupled = (power_ep.regression(kernel, Z, X, y, noise=noise, alpha=0.0).log_evidence for Z in (beta, together))
    jitter = 1e-6 * kernel.diagonal(beta).mean() if jitter is None else jitter

    def fit(Z):
        K_uu = kernel(Z) + jitter * np.eye(len(Z))
        Q = kernel(X, Z) @ np.linalg.solve(K_uu, kernel(Z, X))
        return 0.5 * y @ np.linalg.solve(Q + noise * np.eye(len(y)), y)

    return alone, alone + fit(beta) - fit(together), coupled


@checker("sd-6-yours", never=["gain / gap", "(extra - alone) / (coupled - alone)"])
def your_share(answer):
    kernel, beta, gamma, X, y, noise, share = as_things(answer, 7,
        "kernel, beta, gamma, X, y, noise and the share")
    kernel = as_kernel(kernel)
    beta, gamma, X, y, noise, share = *map(as_array, (beta, gamma, X, y)), as_number(noise), as_number(share)
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
    alone, extra, coupled = bounds_of(kernel, beta, gamma, X, y, noise)
    if coupled - alone < 0.1:
        return "here the points gamma gain less than a tenth of a nat either way: take other points, or a shorter lengthscale."
    right = (extra - alone) / (coupled - alone)
    with_the_same_jitter = bounds_of(kernel, beta, gamma, X, y, noise, jitter=1e-6)[1]      # whatever the variance is
    if rounded(share, right, 2) or rounded(share, (with_the_same_jitter - alone) / (coupled - alone), 2):
        return None
    if rounded(share, 100 * right, 2):
        return "give the share as a number between 0 and 1, not in per cent."
    if rounded(share, 1 - right, 2):
        return "that is the part which extra points of the mean leave open; the part that they close is asked for."
    if rounded(share, extra - alone, 2):
        return "that is the gain in nats; which part of the coupled points' gain is it?"
    if right < 0.8 and rounded(share, 1 / right, 2):        # near 1 it may as well be a mistake of another kind
        return "the ratio is turned round."
    truth = exact.regression(kernel, X, y, noise=noise).log_evidence
    if rounded(share, (extra - alone) / (truth - alone), 2):
        return "that compares with the full process; compare with the same points, coupled."
    return "not the share at this kernel and noise: was something learnt, or changed, in between?"


BUDGET, ENOUGH = 3000, -510.0


@checker("sd-7-budget", never=["fit.gradient[\"Z\"]"])
def budget(answer):
    beta, gamma = (as_array(part) for part in as_things(answer, 2, "two arrays of places, beta (M, 1) and gamma (G, 1),"))
    gamma = gamma.reshape(-1, 1) if gamma.size == 0 else gamma
    if beta.ndim != 2 or gamma.ndim != 2 or beta.shape[1] != 1 or gamma.shape[1] != 1 or len(beta) == 0:
        raise Feedback(f"beta (M, 1) with at least one point and gamma (G, 1) are asked for; got the shapes {beta.shape} and "
                       f"{gamma.shape}.")
    if not (np.isfinite(beta).all() and np.isfinite(gamma).all()):
        return "the places must be finite numbers."
    M, G = len(beta), len(gamma)
    cost = M**3 + 10 * M * G
    if cost > BUDGET:
        return f"{M} points beta and {G} points gamma cost {cost}, and {BUDGET} are allowed."
    if np.ptp(np.sort(beta[:, 0])) == 0 and M > 1:
        return "all points of beta are in one place."
    X, y = small_problem.data()
    value = bounds_of(small_problem.KERNEL, beta, gamma, X, y, small_problem.NOISE)[1]
    if value > ENOUGH:
        return None
    if M < 10:
        return f"the bound is {value:.0f}. Complexity and penalty know beta only: are {M} points enough for them?"
    return f"the bound is {value:.0f}, and more than {ENOUGH:.0f} is asked for. The places matter as much as the numbers."


quiz_of(
    "sd-quiz",
    question(
        "A basis contains another one, and ends with the lower bound. What follows?",
        [("the larger basis is worse", "its optimum is at least as high."),
         ("the data have too few rows", "the optimum of the larger basis is at least as high on any data."),
         ("its learning has not reached its optimum", None)],
        why="The larger basis could copy the smaller one. So look at the bounds before you compare errors.",
    ),
    question(
        "Six methods lie within Nemenyi's distance of each other. Then ...",
        [("their order over these sets may be chance", None),
         ("they are equally good", "that their order may be chance does not make them equal."),
         ("the sets are too large", "the distance depends on the number of sets and methods, not on rows.")],
        why="More sets make the distance smaller, with the root of their number.",
    ),
    question(
        "Your error and a published one differ by two percentage points, on different test rows of the same set. First "
        "ask ...",
        [("which of the two has the error in its code", "the test rows alone may account for it."),
         ("how much the error varies between splits", None),
         ("which method has the better rank", "ranks compare methods on the same rows.")],
        why="With one split, all methods of a table share the luck of its test rows.",
    ),
)
