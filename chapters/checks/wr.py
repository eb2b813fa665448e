"""Checkers of the chapter "Which α should I use? Regression"."""

from functools import cache

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
    number,
    numbers,
    question,
    quiz_of,
)
from scipy import stats

from figures.experiments import runner
from figures.experiments.bui2017 import refits, regression_claims, uci_regression
from pepcore import metrics, training


@cache
def losses(metric):
    """The table that the chapter draws: one row per (data, split, M), one column per power."""
    return uci_regression.table(runner.results(regression_claims.STUDY), metric)


RESULTS = (5, 5), (6, 8), (8, 8)      # exercise 1: so many of so many
P_VALUES = np.array([stats.binomtest(k, n).pvalue for k, n in RESULTS])
EXACTLY = np.array([stats.binom.pmf(k, n, 0.5) for k, n in RESULTS])
MORE = np.array([stats.binom.sf(k, n, 0.5) for k, n in RESULTS])

PER_CENT = "probabilities are asked for, between 0 and 1. Are these per cent?"

numbers(
    "wr-1-sign",
    dict(zip(("5 of 5", "6 of 8", "8 of 8"), P_VALUES)),
    decimals=3,
    mistakes=[
        (100 * P_VALUES, "right in per cent. Give them as probabilities, between 0 and 1."),
        ((Within(low=1.0), ANY, ANY), PER_CENT),
        ((ANY, Within(low=1.0), ANY), PER_CENT),
        ((ANY, ANY, Within(low=1.0)), PER_CENT),
        (P_VALUES / 2, "that is one direction; a result as lopsided the other way would have surprised you as much."),
        (EXACTLY, "that is the chance of exactly this count; add the more lopsided ones, and the other direction."),
        (2 * MORE, "this leaves out k itself, which belongs to 'at least as lopsided'."),
        (MORE, "this leaves out k itself, which belongs to 'at least as lopsided', and the other direction."),
    ],
    otherwise=[
        "for 5 of 5: of the 32 equally likely outcomes, how many are at least as lopsided, in either direction?",
        "the first is right. For 6 of 8 which counts are at least as lopsided as 6, and which on the other side?",
        "the first two are right. For 8 of 8 do the same with 256 outcomes.",
    ],
    never=["binomtest"],
)


@checker("wr-2-ranks", never=["1 + lost.sum", "1 + Σ"])
def ranks(answer):
    rng = np.random.default_rng(0)
    for K in (2, 5):
        table = rng.normal(size=(30, K)) + np.arange(K)
        expected = stats.rankdata(table, axis=1).mean(axis=0)
        wins = np.mean(table[:, :, None] < table[:, None, :], axis=0)
        for diagonal in (0.0, 0.5, np.nan):
            np.fill_diagonal(wins, diagonal)
            result = called(answer, wins)
            if np.isnan(diagonal) and np.isnan(np.asarray(result, dtype=float)).any():
                return "the diagonal may hold anything, NaN as well: nobody plays against itself. Leave it out."
            result = as_array(result, (K,))
            if close(result, expected, digits=9):
                continue
            if close(result, expected - 1, digits=9):
                return "the ranks are counted from 1: being beaten by nobody is rank 1, not 0."
            if close(result, K + 1 - expected, digits=9):
                return "the order is turned round: rows beat columns, and the one who wins most has the smallest rank."
            off = ~np.eye(K, dtype=bool)
            if diagonal == 0.0 and close(result, expected + 1, digits=9):
                return "one too many for each: the diagonal is among the losses."
            if close(result, [wins[i][off[i]].mean() for i in range(K)], digits=9):
                return "that is the mean share of wins. A rank counts the rivals that are better."
            return (f"not the average ranks (diagonal {diagonal:g}). In one comparison, how does a rank follow from "
                    "who beats whom?")
    return None


SPLITS, PART = 20, 1 / 9              # exercise 3: test rows over training rows
WORTH = 1 / (1 / SPLITS + PART)

numbers(
    "wr-3-worth",
    {"20 splits": WORTH, "infinitely many": 1 / PART, "factor": np.sqrt(SPLITS / WORTH)},
    digits=2,
    mistakes=[
        ((SPLITS, ANY, ANY), "that is what they would be worth if they shared no row."),
        ((1 / SPLITS + PART, ANY, ANY),
         "that is the factor of the variance. For which n is one over n as large?"),
        ((1 / (1 / SPLITS + 0.1), ANY, ANY),
         "the ratio is test rows over training rows, 10 against 90, not 10 against 100."),
        ((RIGHT, Within(low=100.0), ANY),
         "the first is right. One part of the variance does not fall with the number of splits."),
        ((RIGHT, 10.0, ANY), "the first is right. The ratio is test rows over training rows, 10 against 90."),
        ((RIGHT, RIGHT, SPLITS / WORTH),
         "the first two are right. That is the factor of the variance; t is divided by its root."),
        ((RIGHT, RIGHT, np.sqrt(WORTH / SPLITS)),
         "the first two are right. The correction makes t smaller: by which factor is it divided?"),
    ],
    otherwise=[
        "the variance of the mean of n independent splits is that of one split over n. What stands in the place of "
        "1/n if the splits overlap?",
        "the first is right. Which part of the variance is left when there are infinitely many splits?",
        "the first two are right. t is a mean over its standard error: what becomes of the standard error?",
    ],
    never=["1/20 + 1/9", "1/n + 1/9"],
)


@cache
def smallest():
    """The smallest k for which EP has the better mean, each power without its own k worst runs."""
    ordered = {alpha: np.sort(losses("smll")[alpha]) for alpha in (0.5, 1.0)}
    better = lambda k: ordered[1.0][: len(ordered[1.0]) - k].mean() < ordered[0.5][: len(ordered[0.5]) - k].mean()
    return next(k for k in range(len(ordered[1.0])) if better(k))


@cache
def smallest_together():
    """The same where both powers lose the comparisons in which EP is worst."""
    rows = losses("smll").sort_values(1.0)
    better = np.cumsum(rows[1.0].to_numpy()) < np.cumsum(rows[0.5].to_numpy())     # over the first so many comparisons
    return len(rows) - 1 - np.flatnonzero(better).max(initial=-1)


number(
    "wr-4-mislead",
    smallest,
    digits=6,
    mistakes=[
        (NotWhole(), "a number of runs is asked for, a whole one."),
        (Within(high=-1.0), "a number of runs is not negative."),
        (0, "with all runs EP is the worse one."),
        (smallest_together,
         "you left out the same comparisons for both, those where EP is worst. Leave out each power's own worst runs."),
        (lambda: Within(low=smallest() + 0.5), "EP has the better mean then, but already for a smaller k."),
    ],
    otherwise="with so few left out, α = 0.5 still has the better mean. The worst runs are those with the largest "
              "SMLL.",
)


@cache
def pain():
    """What the customer pays at each power: the two regrets in her units, for each pair of data set and M."""
    table = runner.results(regression_claims.STUDY)
    return {metric: uci_regression.regret(table, metric) for metric in ("smse", "smll")}


def chosen(smse=0.1, smll=10.0, summary="mean"):
    """The power with the smallest mean, or largest, of the weighted regrets."""
    summed = getattr(smse * pain()["smse"] + smll * pain()["smll"], summary)()
    return float(summed.idxmin())


numbers(
    "wr-5-loss",
    lambda: (chosen(), chosen(summary="max")),
    labels=("average", "worst case"),
    decimals=2,
    mistakes=[
        ((Within(low=1.01), ANY), "a power lies between 0 and 1."),
        ((ANY, Within(low=1.01)), "a power lies between 0 and 1."),
        (lambda: (chosen(1.0, 1.0), ANY),
         "per cent and nats were added as they are; ten per cent weigh as much as a tenth of a nat."),
        (lambda: (chosen(smse=0.0), ANY), "that is the choice for the log loss alone; she pays for both."),
        (lambda: (RIGHT, chosen()), "the first is right. The second is about the largest of the sums, not their mean."),
        ((RIGHT, 1.0), "the first is right. In the worst case EP costs most of all."),
    ],
    otherwise=[
        "put both regrets into one unit, add them, average over the pairs of data set and M, and compare the powers "
        "of the study.",
        "the first is right. For the second add the two regrets in each pair of data set and M, then take the largest.",
    ],
    never=['regrets["smse"] / 10'],
)


@cache
def shares(difference=False):
    """Per cent of the comparisons that α = 0.5 wins against VFE, loses and ties in squared error."""
    vfe, half, tolerance = losses("smse")[0.0], losses("smse")[0.5], refits.TOLERANCE[refits.LONG]["smse"]
    won = vfe - half > tolerance if difference else vfe / half > 1 + tolerance
    lost = half - vfe > tolerance if difference else vfe / half < 1 / (1 + tolerance)
    return 100 * np.array([won.mean(), lost.mean(), 1 - won.mean() - lost.mean()])


numbers(
    "wr-6-ties",
    shares,
    labels=("won", "lost", "tied"),
    decimals=1,
    mistakes=[
        (lambda: shares() / 100, "right as shares; per cent are asked for."),
        (lambda: shares()[[1, 0, 2]], "wins and losses are exchanged: a small SMSE is good."),
        (lambda: shares()[[2, 0, 1]], "the right numbers in the wrong order: won, lost, tied."),
        (lambda: shares(True),
         "the tolerance is a fraction of the SMSE, a factor between the two, and not a difference."),
        (lambda: 100 * np.array([(losses("smse")[0.0] > losses("smse")[0.5]).mean(),
                                 (losses("smse")[0.0] < losses("smse")[0.5]).mean(), 0.0]),
         "that is without a tolerance: every difference counts."),
    ],
    otherwise=[
        "compare the ratio of the two SMSE with the factor.",
        "the first is right. When does a comparison count as lost?",
        "the first two are right. Every comparison is one of won, lost and tied.",
    ],
)


@checker("wr-7-study", never=["one_run("])
def study(answer):
    rng = np.random.default_rng(0)
    X = 5 + 3 * rng.normal(size=(40, 2))
    y = 20 + 4 * np.sin(X[:, 0]) + rng.normal(size=40)
    X[:8] += 6      # test rows that lie elsewhere: whoever standardises with them is found out
    orders = [np.arange(40), np.roll(np.arange(40), 5)]
    splits = [(order[8:], order[:8]) for order in orders]
    result = as_array(called(answer, X, y, 0.5, 0.0, [(train.copy(), test.copy()) for train, test in splits]), (2,))

    def loss(train, test, alpha, noise=True, leak=False, metric=metrics.smll):
        whole = (X, y) if leak else (X[train], y[train])
        (Xs, Xt), (ys, yt) = (tuple((part[rows] - known.mean(axis=0)) / known.std(axis=0) for rows in (train, test))
                              for part, known in zip((X, y), whole))
        model = training.fit(None, Xs, ys, M=5, alpha=alpha, max_evaluations=5, seed=0)
        mean, variance = model.predict_y(Xt) if noise else model.predict_f(Xt)
        return metric(yt, mean, variance, ys)

    def expected(**options):
        return np.array([loss(*split, 0.0, **options) - loss(*split, 0.5, **options) for split in splits])

    right = expected()
    if close(result, right, digits=5):
        return None
    if close(result, -right, digits=5):
        return "the sign is turned round: positive means that `first` has the smaller loss."
    if close(result, expected(noise=False), digits=5):
        return "the variance lacks the noise; an observation is predicted, not the function: predict_y, not predict_f."
    if close(result, expected(leak=True), digits=5):
        return "something was standardised with the test rows. Mean and spread must come from the training rows alone."
    smse = expected(metric=lambda y_test, mean, variance, y_train: metrics.smse(y_test, mean, y_train))
    if close(result, smse, digits=5):
        return "these are margins of the SMSE; the log loss is asked for."
    if not np.all(np.isfinite(result)):
        raise Feedback("the margins are not finite.")
    off = np.max(np.abs(result - right))
    return f"the margins differ from mine by up to {off:.2g}. Standardise, fit with the options given, take the SMLL."


@checker("wr-8-yours", never=["margins(X"])
def your_margins(answer):
    found, part = as_things(answer, 2, "the margins of your splits (S,) and test rows over training rows")
    found, part = as_array(found), float(as_array(part, ()))
    if found.ndim != 1 or len(found) < 10:
        raise Feedback(f"one margin for each of at least 10 splits is asked for; got shape {found.shape}.")
    if not np.isfinite(found).all():
        return "some margins are infinite: look at the split where this happens."
    if found.std() == 0:
        return "all margins are the same: are the splits different, and was the power passed on?"
    if not 0 < part < 5:
        return "the ratio is that of two numbers of rows: test over training."
    if np.isin(found, (-1, 0, 1)).all():
        return "these are wins and losses; the margins themselves are asked for."
    return None


quiz_of(
    "wr-quiz",
    question(
        "EP is first in half of the comparisons and has a bad average rank. How can both be true?",
        [("an average rank also counts how often EP is last", None),
         ("the average rank weighs the sizes of the losses", "a rank does not know how large a loss is."),
         ("one of the two numbers is wrong", "both come from the same table.")],
        why="How often a method fails decides its rank, how badly decides its mean.",
    ),
    question(
        "Regret in squared error and regret in log loss prefer different powers. Who decides?",
        [("the log loss, since it is proper", "a proper loss can still be the wrong loss for whoever pays."),
         ("the loss of the one who pays for the predictions", None),
         ("the average of the two", "an average needs a rate of exchange, and that is a decision as well.")],
        why="A stated loss ends the argument.",
    ),
    question(
        "You test 48 pairs of data set and M at the level of 5 %. How many discoveries do you expect if there is "
        "nothing to discover?",
        [("none", "one in twenty true nulls is rejected at this level."),
         ("two or three", None),
         ("half of them", "that would need a level of 50 %.")],
        why="That is what Holm's correction is for.",
    ),
    question(
        "Which of these changes the squared error most, on most of the eight data sets?",
        [("the choice of α between 0.4 and 0.8",
          "on five of the eight sets the errors of these powers are within a seventh of each other, at each M."),
         ("another processor, which rounds differently",
          "in half of the study's refits rounding changed the error by less than a thousandth of itself."),
         ("ten times as many pseudo-inputs", None)],
        why="Choosing M matters more than choosing α.",
    ),
)
