"""The checkers of chapter "Which α should I use? Classification": right answers pass, usual mistakes are named."""

import numpy as np
from conftest import checker_tests
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtr, ndtri


def share(first, second):
    untied = first != second
    return 100 * np.mean((first < second)[untied]) if untied.any() else np.nan


def boast(y, p):
    return np.maximum(p, 1 - p).mean() - np.mean((p > 0.5) == (y > 0))


def amplitude(y, mean, variance, with_variance=1.0):
    def loss(log_c):
        c = np.exp(log_c)
        return -log_ndtr(y * c * mean / np.sqrt(1 + with_variance * c**2 * variance)).mean()

    return np.exp(minimize_scalar(loss, bounds=(-6, 6), method="bounded", options={"xatol": 1e-7}).x)


def per_cent(low, high):
    return 100 * low, 100 * high


def unequal_weights(p):
    return np.repeat([1.05, 0.95], 4) @ p / 8


def geometric(p):
    yes, no = np.exp(np.log(p).mean(axis=0)), np.exp(np.log1p(-p).mean(axis=0))
    return yes / (yes + no)


def bootstrap(y, p, statistic=boast, size=None, ends=(2.5, 97.5)):
    """Ends of the interval of a statistic, from 1500 samples of the rows with replacement."""
    rng, size = np.random.default_rng(5), size or len(y)
    drawn = [rng.choice(len(y), size) for _ in range(1500)]
    return np.quantile([statistic(y[rows], p[rows]) for rows in drawn], np.array(ends) / 100)


def boast_of_row(y, p):
    return np.maximum(p, 1 - p) - ((p > 0.5) == (y > 0))


def with_interval(low, high):
    return LABELS, CHANCES, BOAST, low, high


def separately(y, p):
    """The interval that comes out when confidence and right decisions are drawn from different rows."""
    rng, right = np.random.default_rng(6), (p > 0.5) == (y > 0)
    drawn = [(rng.choice(len(y), len(y)), rng.choice(len(y), len(y))) for _ in range(1500)]
    return np.quantile([np.maximum(p, 1 - p)[one].mean() - right[other].mean() for one, other in drawn], [0.025, 0.975])


LABELS = np.random.default_rng(1).choice([-1.0, 1.0], 80)
CHANCES = ndtr(2 * LABELS + 1.5 * np.random.default_rng(2).normal(size=80))
Y_MANY = np.where(np.arange(400) % 2, 1.0, -1.0)       # sure where it is right, unsure where it is wrong
P_MANY = np.where(np.arange(400) < 240, np.where(Y_MANY > 0, 0.98, 0.02), np.where(Y_MANY > 0, 0.45, 0.55))
BOAST_MANY = boast(Y_MANY, P_MANY)
BOAST = boast(LABELS, CHANCES)
LOW, HIGH = bootstrap(LABELS, CHANCES)
ERROR = boast_of_row(LABELS, CHANCES).std() / np.sqrt(80)
T19, NORMAL = 2.093024, 1.959964      # from a table
RIGHT = {
    "wc-1-resolution": (0.05, np.sqrt(0.09 / 20)),
    "wc-2-share": share,
    "wc-3-splits": (T19 / np.sqrt(20), T19 * np.sqrt(1 / 20 + 1 / 9), NORMAL / 3),
    "wc-4-boast": boast,
    "wc-5-amplitude": amplitude,
    "wc-6-mix": lambda p: p.mean(axis=0),
    "wc-7-yours": with_interval(LOW, HIGH),
}
ALSO_RIGHT = [
    ("wc-7-yours", (LABELS, CHANCES, float(f"{BOAST:.3g}"), LOW, HIGH)),
    ("wc-7-yours", with_interval(BOAST - NORMAL * ERROR, BOAST + NORMAL * ERROR)),
    ("wc-6-mix", geometric),
    ("wc-6-mix", lambda p: ndtr(ndtri(p).mean(axis=0))),
]
WRONG = [
    ("wc-2-share", lambda a, b: share(a, b) / 100, "per cent"),
    ("wc-2-share", lambda a, b: 100 * np.mean(a < b), "denominator"),
    ("wc-2-share", lambda a, b: 100 * np.mean((a < b) + 0.5 * (a == b)), "count half"),
    ("wc-2-share", lambda a, b: 100 * np.mean(a <= b), "no win"),
    ("wc-2-share", lambda a, b: share(b, a), "smaller one wins"),
    ("wc-2-share", lambda a, b: 42.0, "is not the share of the wins"),
    ("wc-2-share", lambda a, b: share(a, b) if np.any(a != b) else 50.0, "NaN"),
    ("wc-2-share", lambda a, b: None, "returns nothing"),
    ("wc-2-share", lambda a, b: share(a, b) if np.any(a != b) else None, "in one of the cases"),
    ("wc-2-share", lambda a, b: share(a, b) if np.any(a != b) else [], "NaN"),
    ("wc-4-boast", lambda y, p: -boast(y, p), "sign"),
    ("wc-4-boast", lambda y, p: 100 * boast(y, p), "per cent"),
    ("wc-4-boast", lambda y, p: p.mean() - np.mean(y > 0), "that was chosen"),
    ("wc-4-boast", lambda y, p: p.mean() - np.mean((p > 0.5) == (y > 0)), "not always the probability of +1"),
    ("wc-4-boast", lambda y, p: 0.5, "not the boast"),
    ("wc-4-boast", lambda y, p: abs(boast(y, p)), "does not boast"),
    ("wc-4-boast", lambda y, p: max(boast(y, p), 0.0), "not the boast"),
    ("wc-5-amplitude", lambda *given: -1.0, "positive"),
    ("wc-5-amplitude", lambda *given: amplitude(*given, with_variance=0.0), "variance is scaled"),
    ("wc-5-amplitude", lambda *given: 1 / amplitude(*given), "one over c"),
    ("wc-5-amplitude", lambda *given: 1.0, "the loss is"),
    ("wc-6-mix", lambda p: np.median(p, axis=0), "median"),
    ("wc-6-mix", lambda p: np.exp(np.log(p).mean(axis=0)), "normalised"),
    ("wc-6-mix", lambda p: p.max(axis=0), "would have lost more"),
    ("wc-6-mix", lambda p: np.clip(p.mean(axis=0), 0.05, 0.95), "would have lost more"),
    ("wc-6-mix", lambda p: 0.5 + 0.999 * (p.mean(axis=0) - 0.5), "would have lost more"),
    ("wc-6-mix", unequal_weights, "would have lost more"),
    ("wc-6-mix", lambda p: 2 * p.mean(axis=0), "between 0 and 1"),
    ("wc-6-mix", lambda p: p, "shape"),
    ("wc-7-yours", (LABELS, CHANCES, -BOAST, LOW, HIGH), "turned round"),
    ("wc-7-yours", (LABELS, CHANCES, 100 * BOAST, LOW, HIGH), "not per cent"),
    ("wc-7-yours", (LABELS, CHANCES, 0.9, LOW, HIGH), "not the boast of these"),
    ("wc-7-yours", (LABELS, CHANCES > 0.5, 0.0, LOW, HIGH), "these are decisions"),
    ("wc-7-yours", (LABELS, 1 - CHANCES, 0.0, LOW, HIGH), "probabilities of +1"),
    ("wc-7-yours", (LABELS > 0, CHANCES, 0.0, LOW, HIGH), "-1 and +1"),
    ("wc-7-yours", (LABELS[:9], CHANCES[:9], 0.0, LOW, HIGH), "at least 50"),
    ("wc-7-yours", (LABELS, CHANCES, BOAST), "a tuple of 5"),
    ("wc-7-yours", with_interval(HIGH, LOW), "lower end comes first"),
    ("wc-7-yours", with_interval(*per_cent(LOW, HIGH)), "as fractions too"),
    ("wc-7-yours", (Y_MANY, P_MANY, BOAST_MANY, *per_cent(*bootstrap(Y_MANY, P_MANY))), "as fractions too"),
    ("wc-7-yours", (Y_MANY, P_MANY, BOAST_MANY, *bootstrap(Y_MANY, P_MANY) - BOAST_MANY), "lies around the boast"),
    ("wc-7-yours", with_interval(*np.quantile(boast_of_row(LABELS, CHANCES), [0.025, 0.975])), "single rows spread"),
    ("wc-7-yours", with_interval(BOAST - ERROR, BOAST + ERROR), "one standard error each way"),
    ("wc-7-yours", with_interval(*bootstrap(LABELS, CHANCES, size=200)), "too narrow"),
    ("wc-7-yours", with_interval(*bootstrap(LABELS, CHANCES, ends=(0.01, 99.99))), "not that of the percentiles"),
    ("wc-7-yours", with_interval(LOW - 0.1, HIGH - 0.1), "not that of the percentiles"),
    ("wc-7-yours", (Y_MANY, P_MANY, BOAST_MANY, *separately(Y_MANY, P_MANY)), "as a whole"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)
