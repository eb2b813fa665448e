"""The checkers of chapter "Which α should I use? Regression": right answers pass, usual mistakes are named."""

import numpy as np
from checks import wr
from conftest import checker_tests
from scipy import stats

from figures.experiments import runner
from figures.experiments.bui2017 import refits, regression_claims, uci_regression
from pepcore import metrics, training

LOPSIDED = ((5, 5), (6, 8), (8, 8))
SMSE, SMLL = wr.losses("smse"), wr.losses("smll")
FACTOR = 1 + refits.TOLERANCE[refits.LONG]["smse"]


def average_ranks(wins, first=1.0, turned=False, diagonal=False):
    lost = 1 - (wins.T if turned else wins)
    if not diagonal:
        np.fill_diagonal(lost, 0.0)
    return first + lost.sum(axis=1)


def first_k():
    half, ep = np.sort(SMLL[0.5]), np.sort(SMLL[1.0])
    return next(k for k in range(len(ep)) if ep[:len(ep) - k].mean() < half[:len(ep) - k].mean())


def pain(weight_smse=0.1, weight_smll=10.0):
    table = runner.results(regression_claims.STUDY)
    return weight_smse * uci_regression.regret(table, "smse") + weight_smll * uci_regression.regret(table, "smll")


def shares(ratio, factor):
    return 100 * np.array([np.mean(ratio > factor), np.mean(ratio < 1 / factor),
                           np.mean((ratio <= factor) & (ratio >= 1 / factor))])


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
MARGINS = np.random.default_rng(3).normal(size=12)
RIGHT = {
    "wr-1-sign": [stats.binomtest(k, n).pvalue for k, n in LOPSIDED],
    "wr-2-ranks": average_ranks,
    "wr-3-worth": (1 / (1 / 20 + 1 / 9), 9, np.sqrt((1 / 20 + 1 / 9) * 20)),
    "wr-4-mislead": first_k(),
    "wr-5-loss": BEST,
    "wr-6-ties": TIES,
    "wr-7-study": margins,
    "wr-8-yours": (MARGINS, 1 / 9),
}
ALSO_RIGHT = [
    ("wr-1-sign", ["0,0625", "74/256", "1/128"]),
    ("wr-2-ranks", lambda wins: [float(f"{rank:.9g}") for rank in average_ranks(wins)]),
]
WRONG = [
    ("wr-1-sign", (6.25, 28.9, 0.78), "Are these per cent?"),
    ("wr-1-sign", (6.2, 28.9, 0.8), "Are these per cent?"),
    ("wr-1-sign", (0.062, 28.9, 0.008), "Are these per cent?"),
    ("wr-2-ranks", lambda wins: average_ranks(wins, first=0.0), "counted from 1"),
    ("wr-2-ranks", lambda wins: average_ranks(wins, turned=True), "turned round"),
    ("wr-2-ranks", lambda wins: average_ranks(wins, diagonal=True), "diagonal"),
    ("wr-2-ranks", lambda wins: 1 + (1 - wins).sum(axis=1) - (1 - np.diag(wins)), "NaN as well"),
    ("wr-2-ranks", lambda wins: None, "returns nothing"),
    ("wr-7-study", lambda X, y, first, second, splits: -margins(X, y, first, second, splits), "sign"),
    ("wr-7-study", lambda *given: margins(*given, noise=False), "lacks the noise"),
    ("wr-7-study", lambda *given: margins(*given, leak=True), "training rows alone"),
    ("wr-7-study", lambda *given: margins(*given, loss=lambda t, m, v, y: metrics.smse(t, m, y)), "log loss"),
    ("wr-8-yours", (MARGINS[:5], 1 / 9), "at least 10 splits"),
    ("wr-8-yours", (np.ones(12), 1 / 9), "all margins are the same"),
    ("wr-8-yours", (np.sign(MARGINS), 1 / 9), "wins and losses"),
    ("wr-8-yours", (MARGINS, 10.0), "test over training"),
    ("wr-8-yours", (np.where(MARGINS > 0, np.inf, MARGINS), 1 / 9), "infinite"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)


def test_what_the_quiz_says_of_the_study_is_true():
    """Ten times as many pseudo-inputs change the mean SMSE more than the power does, on all sets but perhaps wine_red."""
    mean = SMSE.groupby(level=["data", "M"]).mean()
    few, many = (mean[0.5].xs(M, level="M") for M in (10, 100))
    middle = mean[[0.4, 0.5, 0.6, 0.8]]
    by_power = (middle.max(axis=1) / middle.min(axis=1)).groupby(level="data").max()
    assert (few / many > by_power).sum() >= 7
    assert (by_power < 8 / 7).sum() == 5
    assert refits.tolerance(runner.results("refits"), "smse", refits.LONG, 0.5) < 1e-3
