"""The checkers of chapter "Which α should I use? Regression": right answers pass, usual mistakes are named."""

import numpy as np
from checks import wr
from conftest import checker_tests
from scipy import stats

from figures.experiments import runner, significance
from figures.experiments.bui2017 import refits, uci_regression
from pepcore import metrics, training

LOPSIDED = ((5, 5), (6, 8), (8, 8))
SMSE, SMLL = wr.losses("smse"), wr.losses("smll")
CONCRETE = SMSE.loc["concrete"].xs(20, level="M")
LOG_RATIO = np.log(CONCRETE[0.0] / CONCRETE[0.5]).to_numpy()
FACTOR = 1 + refits.TOLERANCE["smse"]


def average_ranks(wins, first=1.0, turned=False, diagonal=False):
    lost = 1 - (wins.T if turned else wins)
    if not diagonal:
        np.fill_diagonal(lost, 0.0)
    return first + lost.sum(axis=1)


def p_value(margin, fraction=0.1):
    return significance.corrected_t_test(margin, np.zeros(len(margin)), fraction)


def first_k():
    half, ep = np.sort(SMLL[0.5]), np.sort(SMLL[1.0])
    return next(k for k in range(len(ep)) if ep[:len(ep) - k].mean() < half[:len(ep) - k].mean())


def pain(weight_smse=0.1, weight_smll=10.0):
    table = runner.results("uci_regression")
    return weight_smse * uci_regression.regret(table, "smse") + weight_smll * uci_regression.regret(table, "smll")


def shares(ratio, factor):
    return 100 * np.array([np.mean(ratio > factor), np.mean(ratio < 1 / factor),
                           np.mean((ratio <= factor) & (ratio >= 1 / factor))])


def one_sided(ratio, won_below, lost_above):
    won, lost = 100 * np.mean(ratio < won_below), 100 * np.mean(ratio > lost_above)
    return [round(share, 1) for share in (won, lost, 100 - won - lost)]


def margins(X, y, first, second, splits, noise=True, leak=False, loss=metrics.smll):
    result = []
    for train, test in splits:
        known_X, known_y = (X, y) if leak else (X[train], y[train])
        Xs, Xt = ((X[rows] - known_X.mean(axis=0)) / known_X.std(axis=0) for rows in (train, test))
        ys, yt = ((y[rows] - known_y.mean()) / known_y.std() for rows in (train, test))
        values = []
        for alpha in (first, second):
            model = training.fit(None, Xs, ys, M=5, alpha=alpha, max_evaluations=5, seed=0)
            predict = model.predict_y if noise else model.predict_f
            values.append(loss(yt, *predict(Xt), ys))
        result.append(values[1] - values[0])
    return np.array(result)


BEST = [pain().mean().idxmin(), pain().max().idxmin()]
TIES = shares(SMSE[0.0] / SMSE[0.5], FACTOR)
RIGHT = {
    "wr-1-sign": [stats.binomtest(k, n).pvalue for k, n in LOPSIDED],
    "wr-2-ranks": average_ranks,
    "wr-3-corrected": p_value(LOG_RATIO),
    "wr-4-mislead": first_k(),
    "wr-5-loss": BEST,
    "wr-6-ties": TIES,
    "wr-7-study": margins,
}
ALSO_RIGHT = [
    ("wr-1-sign", [0.062, 0.289, 0.008]),
    ("wr-3-corrected", 0.025),
    ("wr-6-ties", [29.0, 24.1, 46.8]),
]
WRONG = [
    ("wr-1-sign", [stats.binomtest(k, n, alternative="greater").pvalue for k, n in LOPSIDED], "one direction"),
    ("wr-1-sign", [stats.binom.pmf(k, n, 0.5) for k, n in LOPSIDED], "exactly this count"),
    ("wr-1-sign", [stats.binom.sf(k, n, 0.5) for k, n in LOPSIDED], "k itself"),
    ("wr-1-sign", [0.031, 0.145, 0.004], "one direction"),
    ("wr-1-sign", [0.031, 0.109, 0.004], "exactly this count"),
    ("wr-1-sign", [0.0, 0.035, 0.0], "k itself"),
    ("wr-1-sign", [0.0625, 0.5, 0.5], "the first is right"),
    ("wr-1-sign", [0.062, 0.289, 0.004], "the first is right"),
    ("wr-2-ranks", lambda wins: average_ranks(wins, first=0.0), "counted from 1"),
    ("wr-2-ranks", lambda wins: average_ranks(wins, turned=True), "turned round"),
    ("wr-2-ranks", lambda wins: average_ranks(wins, diagonal=True), "diagonal"),
    ("wr-2-ranks", lambda wins: 1 + (1 - wins).sum(axis=1) - (1 - np.diag(wins)), "NaN as well"),
    ("wr-2-ranks", lambda wins: None, "returns nothing"),
    ("wr-3-corrected", stats.ttest_1samp(LOG_RATIO, 0).pvalue, "plain paired t-test"),
    ("wr-3-corrected", p_value(LOG_RATIO) / 2, "one-sided"),
    ("wr-3-corrected", p_value((CONCRETE[0.0] - CONCRETE[0.5]).to_numpy()), "log ratios"),
    ("wr-3-corrected", p_value(LOG_RATIO, fraction=0.1 / 1.1), "10 against 90"),
    ("wr-3-corrected", significance.wilcoxon(LOG_RATIO, np.zeros(len(LOG_RATIO))), "Wilcoxon"),
    ("wr-4-mislead", first_k() + 1, "a smaller k"),
    ("wr-4-mislead", 0, "still has the better mean"),
    ("wr-4-mislead", 2.5, "a whole one"),
    ("wr-5-loss", [BEST[0], 1.0 if BEST[1] != 1.0 else 0.0], "the first is right"),
    ("wr-5-loss", [0.3, 0.3], "among the powers"),
    ("wr-6-ties", TIES / 100, "per cent"),
    ("wr-6-ties", [0.290, 0.241, 0.468], "per cent"),
    ("wr-6-ties", one_sided(SMSE[0.5] / SMSE[0.0], 2 - FACTOR, FACTOR), "with one over it"),
    ("wr-6-ties", one_sided(SMSE[0.5] / SMSE[0.0], 1 / FACTOR, 1 / (2 - FACTOR)), "with one over it"),
    ("wr-6-ties", TIES[[1, 0, 2]], "exchanged"),
    ("wr-6-ties", [10.0, 10.0, 10.0], "the three make"),
    ("wr-6-ties", shares(np.exp(SMSE[0.0] - SMSE[0.5]), np.exp(refits.TOLERANCE["smse"])), "a factor"),
    ("wr-7-study", lambda X, y, first, second, splits: -margins(X, y, first, second, splits), "sign"),
    ("wr-7-study", lambda *given: margins(*given, noise=False), "lacks the noise"),
    ("wr-7-study", lambda *given: margins(*given, leak=True), "training rows alone"),
    ("wr-7-study", lambda *given: margins(*given, loss=lambda t, m, v, y: metrics.smse(t, m, y)), "log loss"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)
