"""Checkers of the chapter "Which α should I use? Regression"."""

from functools import cache

import numpy as np
from exercises import Feedback, as_array, as_function, as_number, checker, close
from scipy import stats

from figures.experiments import runner, significance
from figures.experiments.bui2017 import refits, uci_regression
from pepcore import metrics, training


@cache
def losses(metric):
    """The table that the chapter draws: one row per (data, split, M), one column per power."""
    return uci_regression.table(runner.results("uci_regression"), metric)


@checker("wr-1-sign")
def sign(answer):
    answer = as_array(answer, (3,))
    expected = np.array([stats.binomtest(k, n).pvalue for k, n in ((5, 5), (6, 8), (8, 8))])
    if close(answer, expected, rtol=5e-3):
        return None
    if close(answer, expected / 2, rtol=5e-3):
        return "that is one direction; a result as lopsided the other way would have surprised you as much."
    if close(answer, [stats.binom.pmf(k, n, 0.5) for k, n in ((5, 5), (6, 8), (8, 8))], rtol=5e-3):
        return "that is the chance of exactly this count; add the more lopsided ones, and the other direction."
    if close(answer, [1 - stats.binom.cdf(k, n, 0.5) for k, n in ((5, 5), (6, 8), (8, 8))], rtol=5e-3):
        return "P(more than k) leaves out k itself, which belongs to 'at least as lopsided'."
    if close(answer[0], expected[0], rtol=1e-2):
        return "the first is right. For 6 of 8 add up 6, 7 and 8, and 2, 1 and 0."
    return "count: of 2^n equally likely outcomes, how many have at least k heads, or at least k tails?"


@checker("wr-2-ranks")
def ranks(answer):
    as_function(answer)
    rng = np.random.default_rng(0)
    for K in (2, 5):
        table = rng.normal(size=(30, K)) + np.arange(K)
        expected = stats.rankdata(table, axis=1).mean(axis=0)
        wins = np.mean(table[:, :, None] < table[:, None, :], axis=0)
        for diagonal in (0.0, 0.5, np.nan):
            np.fill_diagonal(wins, diagonal)
            result = answer(wins.copy())
            if result is None:
                return "the function returns nothing yet."
            if np.isnan(diagonal) and np.isnan(np.asarray(result, dtype=float)).any():
                return "the diagonal may hold anything, NaN as well: nobody plays against itself. Leave it out."
            result = as_array(result, (K,))
            if close(result, expected, rtol=1e-9):
                continue
            if close(result, expected - 1, rtol=1e-9):
                return "the ranks are counted from 1: being beaten by nobody is rank 1, not 0."
            if close(result, K + 1 - expected, rtol=1e-9):
                return "the order is turned round: rows beat columns, and the one who wins most has the smallest rank."
            off = ~np.eye(K, dtype=bool)
            if diagonal == 0.0 and close(result, expected + 1, rtol=1e-9):
                return "one too many for each: the diagonal is among the losses."
            if close(result, [wins[i][off[i]].mean() for i in range(K)], rtol=1e-9):
                return "that is the mean share of wins. A rank is one plus the number of rivals that are better, on average."
            return f"not the average ranks (diagonal {diagonal:g}). Start at one and add the share that is lost to each other."
    return None


@checker("wr-3-corrected")
def corrected(answer):
    answer = as_number(answer)
    here = losses("smse").loc["concrete"].xs(20, level="M")
    log_ratio, difference = np.log(here[0.0] / here[0.5]).to_numpy(), (here[0.0] - here[0.5]).to_numpy()

    def p(margin, fraction=uci_regression.TEST_FRACTION):
        return significance.corrected_t_test(margin, np.zeros(len(margin)), fraction)

    if close(answer, p(log_ratio), rtol=1e-2):
        return None
    if close(answer, stats.ttest_1samp(log_ratio, 0).pvalue, rtol=1e-3):
        return "that is the plain paired t-test, which takes the splits to be independent. They share most of their rows."
    if close(answer, p(log_ratio) / 2, rtol=1e-3):
        return "that is one-sided; you would have believed the opposite as well."
    if close(answer, p(difference), rtol=1e-3):
        return "these are differences of the SMSE; log ratios are asked for."
    if close(answer, significance.wilcoxon(log_ratio, np.zeros(len(log_ratio))), rtol=1e-3):
        return "that is Wilcoxon's test, which takes the splits to be independent as well."
    n = len(log_ratio)
    t = log_ratio.mean() / np.sqrt(log_ratio.var(ddof=1) * (1 / n + uci_regression.TEST_FRACTION))
    if close(answer, 2 * stats.t.sf(abs(t), n - 1), rtol=1e-3):
        return "almost: the term is n_test / n_train, 10 against 90, not 10 against 100."
    return "not the p-value asked for. Log ratios of concrete at M = 20, one per split; sample variance with n − 1."


@checker("wr-4-mislead")
def mislead(answer):
    answer = as_number(answer)
    half, ep = (np.sort(losses("smll")[alpha]) for alpha in (0.5, 1.0))

    def ep_is_better(k):
        return ep[:len(ep) - k].mean() < half[:len(half) - k].mean()

    expected = next(k for k in range(len(ep)) if ep_is_better(k))
    if answer == expected:
        return None
    if answer != int(answer) or answer < 0:
        return "a number of runs is asked for, a whole one."
    if ep_is_better(int(answer)):
        return "EP has the better mean then, but already for a smaller k."
    rows = losses("smll").sort_values(1.0)
    same = np.cumsum(rows[1.0].to_numpy()) < np.cumsum(rows[0.5].to_numpy())     # the first so many comparisons
    if answer == len(ep) - 1 - np.flatnonzero(same).max(initial=-1):
        return "you left out the same comparisons for both, those where EP is worst. Leave out each power's own worst runs."
    return "with so few left out, α = 0.5 still has the better mean. The worst runs are those with the largest SMLL."


@checker("wr-5-loss")
def stated_loss(answer):
    answer = as_array(answer, (2,))
    table = runner.results("uci_regression")
    smse, smll = (uci_regression.regret(table, metric) for metric in ("smse", "smll"))
    pain = smse / 10 + smll / 0.1
    right = np.array([pain.mean().idxmin(), pain.max().idxmin()])
    if close(answer, right):
        return None
    if not np.isin(answer, uci_regression.ALPHAS).all():
        return f"choose among the powers of the study: {', '.join(f'{alpha:g}' for alpha in uci_regression.ALPHAS)}."
    if close(answer, right[::-1]):
        return "the average comes first, the worst second."
    if close(answer[0], right[0]):
        return "the first is right. For the second add the two regrets in each pair of data set and M, then take the largest."
    if close(answer[0], (smse + smll).mean().idxmin()):
        return "per cent and nats were added as they are; ten per cent weigh as much as a tenth of a nat."
    if answer[0] in (smse.mean().idxmin(), smll.mean().idxmin()):
        return "that is the choice for one of the two losses alone; she pays for both."
    return "divide the first regret by 10 and the second by 0.1, add, average over the rows, and take the smallest."


@checker("wr-6-ties")
def ties(answer):
    answer = as_array(answer, (3,))
    factor = 1 + refits.TOLERANCE["smse"]
    ratio = losses("smse")[0.0] / losses("smse")[0.5]
    won, lost = 100 * np.mean(ratio > factor), 100 * np.mean(ratio < 1 / factor)
    right = np.array([won, lost, 100 - won - lost])
    if close(answer, right, rtol=2e-3):
        return None
    if close(answer, right / 100, rtol=2e-3):
        return "right as shares; per cent are asked for."
    if close(answer, right[[1, 0, 2]], rtol=2e-3):
        return "wins and losses are exchanged: a small SMSE is good."
    difference = losses("smse")[0.0] - losses("smse")[0.5]
    inside = 100 * np.mean(np.abs(difference) <= refits.TOLERANCE["smse"])
    if close(answer[2], inside, rtol=1e-3):
        return "the tolerance is a fraction of the SMSE, a factor between the two, and not a difference."
    if abs(answer.sum() - 100) > 0.1:
        return f"the three make {answer.sum():.0f} %; every comparison is one of won, lost and tied."
    return "compare the ratio of the two SMSE with the factor and with one over it."


@checker("wr-7-study")
def study(answer):
    as_function(answer)
    rng = np.random.default_rng(0)
    X = 5 + 3 * rng.normal(size=(40, 2))
    y = 20 + 4 * np.sin(X[:, 0]) + rng.normal(size=40)
    X[:8] += 6      # test rows that lie elsewhere: whoever standardises with them is found out
    orders = [np.arange(40), np.roll(np.arange(40), 5)]
    splits = [(order[8:], order[:8]) for order in orders]
    result = answer(X.copy(), y.copy(), 0.5, 0.0, [(train.copy(), test.copy()) for train, test in splits])
    if result is None:
        return "the function returns nothing yet."
    result = as_array(result, (2,))

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
    if close(result, right, rtol=1e-5):
        return None
    if close(result, -right, rtol=1e-5):
        return "the sign is turned round: positive means that `first` has the smaller loss."
    if close(result, expected(noise=False), rtol=1e-5):
        return "the variance lacks the noise; an observation is predicted, not the function: predict_y, not predict_f."
    if close(result, expected(leak=True), rtol=1e-5):
        return "something was standardised with the test rows. Mean and spread must come from the training rows alone."
    smse = expected(metric=lambda y_test, mean, variance, y_train: metrics.smse(y_test, mean, y_train))
    if close(result, smse, rtol=1e-5):
        return "these are margins of the SMSE; the log loss is asked for."
    if not np.all(np.isfinite(result)):
        raise Feedback("the margins are not finite.")
    off = np.max(np.abs(result - right))
    return f"the margins differ from mine by up to {off:.2g}. Standardise, fit with the options given, take the SMLL."
