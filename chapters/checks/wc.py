"""Checkers of the chapter "Which α should I use? Classification"."""

import numpy as np
from exercises import Feedback, as_array, as_function, as_number, checker, close
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr


def called(function, *arguments):
    """What the reader's function returns for copies of these arguments, or feedback when it is nothing."""
    result = as_function(function)(*(np.copy(a) for a in arguments))
    if result is None:
        raise Feedback("the function returns nothing yet.")
    return result


@checker("wc-1-resolution")
def resolution(answer):
    step, error = as_array(answer, (2,))
    if close(step, 5.0) or close(error, 6.7, rtol=0.01):
        return "give fractions, not per cent."
    if not close(step, 0.05):
        return "one row more or less that is wrong, out of twenty: that is the smallest step."
    if close(error, 0.09 / 20):
        return "that is the variance; take the root."
    if close(error, 0.3):
        return "that is the deviation of a single row; the error is a mean over twenty of them."
    if not close(error, np.sqrt(0.09 / 20), rtol=0.01):
        return "the number of wrong rows is binomial: the deviation of its share is √(p(1 − p)/n)."


@checker("wc-2-share")
def share(answer):
    first = np.array([0.1, 0.2, 0.3, 0.3, 0.3, 0.2, 0.5])
    second = np.array([0.2, 0.2, 0.3, 0.4, 0.1, 0.3, 0.6])
    value = as_number(called(answer, first, second))
    if close(value, 0.8):
        return "per cent are asked for."
    if close(value, 400 / 7):
        return "ties must leave the denominator too."
    if close(value, 500 / 7):
        return "ties count half here; leave them out."
    if close(value, 600 / 7):
        return "a tie is no win."
    if close(value, 20.0):
        return "it is the loss that is given: the smaller one wins."
    if not close(value, 80.0):
        return f"of the seven runs in our example two are tied and four of the other five are won; {value:.4g} is not 80."
    with np.errstate(all="ignore"):
        nothing = np.asarray(as_function(answer)(np.ones(3), np.ones(3)), dtype=float)
    if not np.isnan(nothing):
        return "where every run is tied there is no share: return NaN."


@checker("wc-3-splits")
def splits(answer):
    naive, corrected, limit = as_array(answer, (3,))
    if not close(naive, 2.093 / np.sqrt(20), rtol=1e-2):
        if close(naive, 1.96 / np.sqrt(20), rtol=1e-2):
            return "with 19 degrees of freedom the quantile is 2.09; 1.96 is that of the normal distribution."
        return "the first is the 97.5 % quantile of t with 19 degrees of freedom, over √20."
    if close(corrected, 2.093 * np.sqrt(1 / 20 + 0.1), rtol=1e-2):
        return "the ratio is test rows over training rows, 0.1/0.9."
    if not close(corrected, 2.093 * np.sqrt(1 / 20 + 1 / 9), rtol=1e-2):
        return "for the second the factor 1/20 becomes 1/20 + 1/9, under the root."
    if close(limit, 0.0):
        return "the part 1/n vanishes, the part 1/9 stays."
    if not close(limit, 1.96 / 3, rtol=1e-2):
        return "with no end of splits t becomes normal, 1.96, and √(0 + 1/9) is a third."


@checker("wc-4-boast")
def boast(answer):
    p = np.random.default_rng(0).uniform(0.01, 0.99, 400)
    y = np.where(np.random.default_rng(1).uniform(size=400) < 0.3 + 0.4 * p, 1.0, -1.0)
    value = as_number(called(answer, y, p))
    right = np.mean((p > 0.5) == (y > 0))
    expected = np.maximum(p, 1 - p).mean() - right
    if close(value, -expected):
        return "the sign is turned round: who says more than is true boasts, and that is positive."
    if close(value, 100 * expected):
        return "give a fraction, not per cent."
    if close(value, p.mean() - np.mean(y > 0)):
        return "that compares the probability of +1 with the share of +1; take the probability of the label that was chosen."
    if close(value, p.mean() - right):
        return "what it says of its own decision is the larger one of p and 1 − p."
    if not close(value, expected):
        return "the mean probability given to the label that was chosen, minus the share of decisions that were right."


def amplified_loss(c, y, mean, variance):
    return -log_ndtr(y * c * mean / np.sqrt(1 + c**2 * variance)).mean()


def best_amplitude(y, mean, variance):
    """The best factor and its loss."""
    found = minimize_scalar(lambda log_c: amplified_loss(np.exp(log_c), y, mean, variance), bounds=(-7, 7), method="bounded")
    return np.exp(found.x), found.fun


@checker("wc-5-amplitude")
def amplitude(answer):
    rng = np.random.default_rng(1)
    for boldness in (6.0, 0.3):
        truth = rng.normal(size=2000)
        y = np.where(truth + rng.normal(size=2000) > 0, 1.0, -1.0)
        mean, variance = boldness * truth, boldness**2 * rng.uniform(0.0, 0.1, 2000)
        value = as_number(called(answer, y, mean, variance))
        if not value > 0:
            return "c must be positive: it may not turn decisions round."

        best, smallest = best_amplitude(y, mean, variance)
        loss = amplified_loss(value, y, mean, variance)
        if loss <= smallest + 1e-6:
            continue
        if close(value, best_amplitude(y, mean, 0 * variance)[0], rtol=1e-3):
            return "the variance is scaled as well: Φ(c m/√(1 + c² v))."
        if close(value, 1 / best, rtol=1e-3):
            return "that is one over c."
        return f"at your c = {value:.3g} the loss is {loss:.5f}; at {best:.3g} it is {smallest:.5f}."


@checker("wc-6-mix")
def mix(answer):
    rng = np.random.default_rng(2)
    p = rng.uniform(0.001, 0.999, (8, 3000))
    p[:, 1000:2000] = np.clip(p[:1, 1000:2000] + 0.01 * rng.normal(size=(8, 1000)), 1e-3, 1 - 1e-3)  # they nearly agree
    p[:, 2000:] = p[:1, 2000:]  # they agree
    mixed = as_array(called(answer, p), (3000,))
    if mixed.min() < 0 or mixed.max() > 1:
        return "probabilities lie between 0 and 1."
    for label, mine, theirs in (("+1", mixed, p), ("−1", 1 - mixed, 1 - p)):
        with np.errstate(divide="ignore"):
            worse = -np.log(mine) > -np.log(theirs).mean(axis=0) + 1e-9
        if worse.any() and close(mixed, np.median(p, axis=0)):
            return "the median of the probabilities does not keep the promise; look at one row of which it fails."
        if worse.any():
            n = int(np.argmax(worse))
            return (f"in {worse.mean():.0%} of the rows, had the label been {label}, the mixture would have lost more than "
                    f"the {len(p)} classifiers in the mean; the first is row {n} of ours.")
    if not close(as_array(called(answer, 1 - p), (3000,)), 1 - mixed, rtol=1e-8):
        return "the promise is kept, but the two labels are not treated alike; a geometric mean must be normalised."
