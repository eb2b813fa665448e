"""The checkers of the chapter "Study: many classes on real data": right answers pass, usual mistakes are named."""

import numpy as np
from conftest import checker_tests
from scipy.special import ndtr
from scipy.stats import ttest_rel


def apart(losses, mean, sem, ddof=1, combine=np.hypot):
    return (np.mean(losses) - mean) / combine(np.std(losses, ddof=ddof) / np.sqrt(len(losses)), sem)


def paired(first, second):
    difference = first - second
    return difference.mean(), np.std(difference, ddof=1) / np.sqrt(len(difference))


def unpaired(first, second):
    return (first - second).mean(), np.hypot(np.std(first, ddof=1), np.std(second, ddof=1)) / np.sqrt(len(first))


def sooner(seconds, loss, level):
    for k in range(len(loss)):
        if loss[k] <= level:
            if k == 0:
                return seconds[0]
            return np.interp(level, [loss[k], loss[k - 1]], [seconds[k], seconds[k - 1]])
    return np.inf


def steps(seconds, loss, level):
    return next((s for s, value in zip(seconds, loss) if value <= level), np.inf)


def never_inf(seconds, loss, level):
    value = sooner(seconds, loss, level)
    return value if np.isfinite(value) else -1.0


def patient(kept, patience=8):
    best = 0
    for k in range(len(kept)):
        best = k if kept[k] < kept[best] else best
        if k - best >= patience:
            break
    return k, best


def first_rise(kept):
    up = np.flatnonzero(np.diff(kept) > 0)[0]
    return up + 1, up


def smooth(kept, window=5):
    """Stops when the mean of the last few is above that of the few before; keeps the middle of the best window."""
    means = np.convolve(kept, np.ones(window) / window, mode="valid")
    for k in range(window, len(means)):
        if means[k] > means[k - window] + 0.01:
            return k + window - 1, int(np.argmin(means[:k + 1])) + window // 2
    return len(kept) - 1, int(np.argmin(means)) + window // 2


FIRST = np.random.default_rng(3).uniform(0.3, 1.0, 12)
SECOND = FIRST - np.random.default_rng(4).normal(0.1, 0.1, 12)
APART = ttest_rel(FIRST, SECOND).statistic
RIGHT = {
    "st-1-chance": 96 * 2 * ndtr(-2.0),
    "st-2-apart": apart,
    "st-3-paired": paired,
    "st-4-clock": sooner,
    "st-5-sure": (0.9, -0.9 * np.log(0.9) - 0.1 * np.log(0.1), -0.9 * np.log(0.999) - 0.1 * np.log(0.001)),
    "st-6-yours": (FIRST, SECOND, APART),
    "st-7-stop": patient,
}
ALSO_RIGHT = [
    ("st-1-chance", "4.37"),
    ("st-2-apart", lambda losses, mean, sem: (losses.mean() - mean) / (losses.var(ddof=1) / losses.size + sem**2) ** 0.5),
    ("st-3-paired", lambda first, second: np.array(paired(first, second))),
    ("st-4-clock", lambda *given: np.array([sooner(*given)])),
    ("st-5-sure", ["9/10", "0,325", "0.692"]),
    ("st-6-yours", (SECOND, FIRST, float(f"{-APART:.3g}"))),
    ("st-7-stop", smooth),
    ("st-7-stop", lambda kept: np.array(patient(kept, patience=4))),
]
WRONG = [
    ("st-1-chance", 50, "how often is a normal variable"),
    ("st-2-apart", lambda losses, mean, sem: -apart(losses, mean, sem), "sign"),
    ("st-2-apart", lambda losses, mean, sem: abs(apart(losses, mean, sem)), "sign"),
    ("st-2-apart", lambda losses, mean, sem: apart(losses, mean, sem, combine=np.add), "variances add"),
    ("st-2-apart", lambda losses, mean, sem: apart(losses, mean, sem, ddof=0), "ddof"),
    ("st-2-apart", lambda losses, mean, sem: apart(losses, mean, 0.0), "uncertain"),
    ("st-2-apart", lambda losses, mean, sem: (losses.mean() - mean) / np.hypot(losses.std(ddof=1), sem), "spread"),
    ("st-2-apart", lambda losses, mean, sem: losses.mean() - mean, "units of its own"),
    ("st-3-paired", unpaired, "different ones"),
    ("st-3-paired", lambda first, second: paired(second, first), "sign"),
    ("st-3-paired", lambda first, second: (first.mean(), 1.0), "first less second"),
    ("st-3-paired", lambda first, second: ((first - second).mean(), (first - second).std(ddof=1)), "spread"),
    ("st-3-paired", lambda first, second: ((first - second).mean(), (first - second).std() / np.sqrt(15)), "ddof"),
    ("st-4-clock", steps, "straight line"),
    ("st-4-clock", lambda seconds, loss, level: 2.0, "last time before"),
    ("st-4-clock", never_inf, "np.inf"),
    ("st-4-clock", lambda seconds, loss, level: sooner(seconds, loss, level) + 0.5, "half-way"),
    ("st-4-clock", lambda *_: None, "returns nothing yet"),
    ("st-5-sure", (0.8, 0.3, 0.7), "derivative"),
    ("st-5-sure", (0.9, 0.4, 0.7), "mean over ten labels"),
    ("st-5-sure", (0.9, 0.325, 0.325), "the other p"),
    ("st-6-yours", (FIRST, SECOND), "and a number"),
    ("st-6-yours", (FIRST, SECOND[:7], APART), "of one shape"),
    ("st-6-yours", (FIRST, FIRST - 1, APART), "same amount"),
    ("st-6-yours", (FIRST, SECOND, -APART), "sign"),
    ("st-6-yours", (FIRST, SECOND, (FIRST - SECOND).mean() / unpaired(FIRST, SECOND)[1]), "different ones"),
    ("st-6-yours", (FIRST, SECOND, APART / np.sqrt(12)), "more certain"),
    ("st-6-yours", (FIRST, SECOND, APART * np.sqrt(12 / 11)), "ddof"),
    ("st-6-yours", (FIRST, SECOND, (FIRST - SECOND).mean()), "the difference itself"),
    ("st-6-yours", (FIRST, SECOND, 77.0), "does not belong"),
    ("st-7-stop", first_rise, "may fall again"),
    ("st-7-stop", lambda kept: (len(kept) - 1, np.argmin(kept)), "on average to place 79"),
    ("st-7-stop", lambda kept: patient(kept, patience=30), "for too long"),
    ("st-7-stop", lambda kept: patient(kept, patience=2), "may fall again"),
    ("st-7-stop", lambda kept: (30, 25), "above the best"),
    ("st-7-stop", lambda kept: (30, np.argmin(kept[:31])), "above the best"),
    ("st-7-stop", lambda kept: (np.inf, 3), "places between 0 and 79"),
    ("st-7-stop", lambda kept: (np.argmin(kept), np.argmin(kept)), "nobody knows that yet"),
    ("st-7-stop", lambda kept: (patient(kept)[0], patient(kept)[0]), "which model to keep"),
    ("st-7-stop", lambda kept: (40, 30), "above the best"),
    ("st-7-stop", lambda kept: (3, 5), "not after the last"),
    ("st-7-stop", lambda kept: None, "returns nothing yet"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)
