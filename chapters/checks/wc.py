"""Checkers of the chapter "Which α should I use? Classification"."""

import numpy as np
from exercises import (
    ANY,
    RIGHT,
    Feedback,
    Within,
    as_array,
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
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr
from scipy.stats import norm, t

ROWS, ERROR = 20, 0.1         # exercise 1
DEVIATION = np.sqrt(ERROR * (1 - ERROR) / ROWS)

numbers(
    "wc-1-resolution",
    {"smallest step": 1 / ROWS, "standard deviation": DEVIATION},
    digits=2,
    mistakes=[
        ((100 / ROWS, ANY), "give fractions, not per cent."),
        ((ERROR / ROWS, ANY),
         "the step does not know the error rate: by what does one more wrong row change the measured error?"),
        ((RIGHT, 100 * DEVIATION), "give fractions, not per cent."),
        ((RIGHT, DEVIATION**2), "that is the variance; take the root."),
        ((RIGHT, np.sqrt(ERROR * (1 - ERROR))),
         "that is the deviation of a single row; the error is a mean over twenty of them."),
        ((RIGHT, np.sqrt(ERROR / ROWS)),
         "a row is either right or wrong: the variance of that is not the error rate itself."),
    ],
    otherwise=[
        "the measured error is a share of the test rows: which values can it take?",
        "the first is right. The number of wrong rows is binomial: what is the variance of a share?",
    ],
    never=["√(p(1 − p)/n)"],
)


@checker("wc-2-share", never=["first[untied] < second[untied]"])
def share(answer):
    first = np.array([0.1, 0.2, 0.3, 0.3, 0.3, 0.2, 0.5])
    second = np.array([0.2, 0.2, 0.3, 0.4, 0.1, 0.3, 0.6])
    value = as_number(called(answer, first, second))
    if close(value, 0.8):
        return "answer in per cent."
    if close(value, 400 / 7):
        return "ties must leave the denominator too."
    if close(value, 500 / 7):
        return "ties count half here; leave them out."
    if close(value, 600 / 7):
        return "a tie is no win."
    if close(value, 20.0):
        return "it is the loss that is given: the smaller one wins."
    if not close(value, 80.0):
        return (f"of the seven runs in our example two are tied, four are won and one is lost; {value:.4g} is not "
                "the share of the wins.")
    with np.errstate(all="ignore"):
        nothing = np.asarray(called(answer, np.ones(3), np.ones(3)), dtype=float)
    if nothing.size != 1 or not np.isnan(nothing).all():
        return "where every run is tied there is no share: return NaN."


SPLITS, PART = 20, 1 / 9          # exercise 3: test rows over training rows
QUANTILE, NORMAL = t.ppf(0.975, SPLITS - 1), norm.ppf(0.975)
PLAIN, CORRECTED, END = QUANTILE / np.sqrt(SPLITS), QUANTILE * np.sqrt(1 / SPLITS + PART), NORMAL * np.sqrt(PART)

numbers(
    "wc-3-splits",
    {"plain": PLAIN, "corrected": CORRECTED, "infinitely many": END},
    digits=2,
    mistakes=[
        ((NORMAL / np.sqrt(SPLITS), ANY, ANY),
         "with 19 degrees of freedom the quantile is larger than that of the normal distribution."),
        ((t.ppf(0.95, SPLITS - 1) / np.sqrt(SPLITS), ANY, ANY),
         "that is one-sided; you would have believed the opposite as well."),
        ((QUANTILE, ANY, ANY), "t is a mean over its standard error: how many splits does that error average over?"),
        ((RIGHT, QUANTILE * np.sqrt(1 / SPLITS + 0.1), ANY),
         "the first is right. The ratio is test rows over training rows, not over all."),
        ((RIGHT, QUANTILE / np.sqrt(SPLITS) + PART, ANY), "the first is right. The two parts add up under the root."),
        ((RIGHT, RIGHT, Within(-0.01, 0.01)), "the part 1/n vanishes; does the other one?"),
        ((RIGHT, RIGHT, QUANTILE * np.sqrt(PART)),
         "with infinitely many splits there are infinitely many degrees of freedom as well."),
    ],
    otherwise=[
        "which quantile of t with 19 degrees of freedom is it, and over which root?",
        "the first is right. What does the corrected test add under the root?",
        "the first two are right. What is left under the root with infinitely many splits, and what becomes of t?",
    ],
    never=["1/20 + 1/9", "1.96/3"],
)


@checker("wc-4-boast", never=["np.maximum(p, 1 - p).mean()", "max(p, 1 − p)"])
def boast(answer):
    said, lots = np.random.default_rng(0).uniform(0.01, 0.99, 400), np.random.default_rng(1).uniform(size=400)
    # surer than it is right, and less sure
    for p, chance in ((said, 0.3 + 0.4 * said), (0.4 + 0.2 * said, np.where(said > 0.5, 0.95, 0.1))):
        y = np.where(lots < chance, 1.0, -1.0)
        value, right = as_number(called(answer, y, p)), np.mean((p > 0.5) == (y > 0))
        expected = np.maximum(p, 1 - p).mean() - right
        if close(value, expected):
            continue
        if expected < 0 and close(value, -expected):
            return "one that is right more often than it says does not boast: its number is negative."
        if close(value, -expected):
            return "the sign is turned round: who says more than is true boasts, and that is positive."
        if close(value, 100 * expected):
            return "give a fraction, not per cent."
        if close(value, p.mean() - np.mean(y > 0)):
            return ("that compares the probability of +1 with the share of +1; take the probability of the label that "
                    "was chosen.")
        if close(value, p.mean() - right):
            return "what it says of its own decision is not always the probability of +1."
        return ("not the boast. How sure is the classifier of its own decision at each row, and how often is that "
                "decision right?")
    return None


def amplified_loss(c, y, mean, variance):
    return -log_ndtr(y * c * mean / np.sqrt(1 + c**2 * variance)).mean()


def best_amplitude(y, mean, variance):
    """The best factor and its loss."""
    loss = lambda log_c: amplified_loss(np.exp(log_c), y, mean, variance)
    found = minimize_scalar(loss, bounds=(-7, 7), method="bounded")
    return np.exp(found.x), found.fun


@checker("wc-5-amplitude", never=["minimize_scalar"])
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
            return "the variance is scaled as well, and by another factor than the mean."
        if close(value, 1 / best, rtol=1e-3):
            return "that is one over c."
        return (f"at your c = {value:.3g} the loss is {loss:.5f}, and it can be smaller: "
                f"{'lower' if best < value else 'raise'} c.")


@checker("wc-6-mix", never=["p.mean(axis=0)", "mean of the probabilities"])
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
            return (
                f"in {worse.mean():.0%} of the rows, had the label been {label}, the mixture would have lost more than "
                    f"the {len(p)} classifiers in the mean; the first is row {n} of ours.")
    if not close(as_array(called(answer, 1 - p), (3000,)), 1 - mixed, digits=8):
        return "the promise is kept, but the two labels are not treated alike; a geometric mean must be normalised."


AGAIN, ENDS, SLACK = 4000, [2.5, 97.5], 0.1      # exercise 7: resamplings, percentiles, share of the width that ends may be off


def interval(statistic, S):
    """Percentiles of a statistic of resampled rows; the statistic gets a generator and S, the number of rows."""
    rng = np.random.default_rng(0)
    return np.percentile([statistic(rng, S) for _ in range(AGAIN)], ENDS)


@checker("wc-7-yours", never=["np.maximum(p, 1 - p).mean()", "excess.std"])
def your_boast(answer):
    y, p, found, *ends = as_things(answer, 5, "labels (S,), probabilities of +1 (S,), the boast and both ends of its interval")
    y, p, found = as_array(y), as_array(p), as_number(found)
    if y.ndim != 1 or len(y) < 50 or p.shape != y.shape:
        raise Feedback(f"labels and probabilities of one shape (S,), S at least 50, are asked for; got {y.shape} and "
                       f"{p.shape}.")
    if not np.isin(y, (-1, 1)).all() or len(np.unique(y)) < 2:
        return "labels are -1 and +1, and both must occur: y = np.where(label == one_of_them, 1.0, -1.0)."
    if p.min() < 0 or p.max() > 1:
        return "probabilities lie between 0 and 1."
    if np.isin(p, (0, 1)).all():
        return "these are decisions, 0 or 1; ask your classifier for probabilities."
    sure, right = np.maximum(p, 1 - p), (p > 0.5) == (y > 0)
    if right.mean() < 0.5:
        return "more than half of the decisions are wrong: are these the probabilities of +1?"
    expected = sure.mean() - right.mean()
    if rounded(found, -expected, 3):
        return "the sign is turned round: who says more than is true boasts, and that is positive."
    if rounded(found, 100 * expected, 3):
        return "give a fraction, not per cent."
    if not (rounded(found, expected, 3) or abs(found - expected) < 1e-6):
        return "that is not the boast of these probabilities on these labels."
    return interval_of_the_boast(np.array([as_number(end) for end in ends]), sure - right, sure, right)


def interval_of_the_boast(mine, excess, sure, right):
    """What is wrong with the interval of the mean excess, if anything."""
    def resampled(rng, S):
        return excess[rng.integers(S, size=S)].mean()

    def apart(rng, S):
        return sure[rng.integers(S, size=S)].mean() - right[rng.integers(S, size=S)].mean()

    S, mean = len(excess), excess.mean()
    ends = interval(resampled, S)
    near = lambda other: bool(np.all(np.abs(mine - other) <= SLACK * np.ptp(other)))
    if near(ends):
        return None
    if near(100 * ends):
        return "the boast is right. Give the ends as fractions too, not per cent."
    if near(ends[::-1]):
        return "the boast is right. The lower end comes first."
    if near(ends - mean):
        return "the boast is right. These are deviations from it; the interval lies around the boast."
    if near(np.percentile(excess, ENDS)) or np.ptp(mine) > 0.5 * np.sqrt(S) * np.ptp(ends):
        return "the boast is right. That is how single rows spread; the boast is a mean over all of them."
    if near(mean + (ends - mean) / 1.96):
        return "the boast is right. That is one standard error each way; a 95 % interval is wider."
    if near(interval(apart, S)):
        return "the boast is right. Labels and probabilities were drawn from different rows. A row is drawn as a whole."
    if np.ptp(mine) < 0.8 * np.ptp(ends):
        return "the boast is right, the interval is too narrow. Are as many rows drawn as there are, with replacement?"
    return "the boast is right, the interval is not that of the percentiles 2.5 and 97.5 of a bootstrap over rows."


quiz_of(
    "wc-quiz",
    question(
        "Twenty random splits of one data set give twenty differences of the loss. Are they independent?",
        [("yes, since the splits are drawn independently", "the splits are, but they share most of their rows."),
         ("no: any two splits share most of their training rows", None),
         ("only the test parts are",
          "test parts of different splits overlap too, and the training parts nearly coincide.")],
        why="More splits of the same rows are not more data. The correction adds what never averages out.",
    ),
    question(
        "Two powers decide every test row alike. Can their NLL differ?",
        [("no", "the NLL looks at the probabilities and not only at the decisions."),
         ("only by rounding", "bold probabilities that are wrong now and then cost a lot."),
         ("yes: one can be surer than the other", None)],
        why="α changes mostly the amplitude, and the NLL depends on it.",
    ),
    question(
        "EP's log evidence is higher than that of every other power on all six sets. What follows?",
        [("EP predicts best", "on several of them it does not."),
         ("nothing about predictions", None),
         ("the other powers have not converged",
          "half of EP's searches have not either; the estimates of the others are lower by construction.")],
        why="At fixed parameters the estimate rises with α whatever the data are.",
    ),
    question(
        "The verdict 'reproduced' depends on a tolerance. When should it be chosen?",
        [("before the runs", None),
         ("after the first runs, when one knows the spread",
          "then one knows which tolerance gives which verdict as well."),
         ("it does not matter if it is reported", "a reader cannot tell how many others were considered.")],
        why="Otherwise the tolerance is a result, and not a rule.",
    ),
)
