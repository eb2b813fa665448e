"""Checkers of the chapter "Study: many classes on real data"."""

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
    number,
    numbers,
    question,
    quiz_of,
    rounded,
)
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

CELLS, OUTSIDE = 96, 2 * ndtr(-2.0)     # exercise 1: cells of a table; chance of more than two standard errors
DDOF = "the variance of a sample divides by n - 1: np.std needs ddof=1."

number(
    "st-1-chance",
    CELLS * OUTSIDE,
    digits=3,
    mistakes=[
        (CELLS * OUTSIDE / 2, "that counts one direction; a cell can be too high or too low."),
        (CELLS * (1 - OUTSIDE), "that many agree; the question is how many do not."),
        (OUTSIDE, "that is the chance for one cell; a table has more."),
        (CELLS * 0.05, "one in twenty belongs to 1.96 standard errors; for 2 it is a little less."),
        (Within(high=0.0), "a number of cells is positive."),
    ],
    otherwise="how often is a normal variable more than two standard deviations from its mean? Count the cells.",
    never=["2 * ndtr(-2"],
)


@checker("st-2-apart", never=["hypot(ours, sem)", "root of the sum"])
def apart(answer):
    rng = np.random.default_rng(0)
    for size, mean, sem, above in ((20, 0.4, 0.05, 0.1), (10, 1.3, 0.02, -0.2)):
        losses = mean + above + 0.2 * rng.standard_normal(size)
        value = as_number(called(answer, losses, mean, sem))
        sd = np.std(losses, ddof=1)
        difference, ours = losses.mean() - mean, sd / np.sqrt(size)
        if close(value, difference / np.hypot(ours, sem)):
            continue
        if close(value, -difference / np.hypot(ours, sem)):
            return "the sign is turned round: positive where ours is above the paper's."
        if close(value, difference / (ours + sem)):
            return "independent errors do not add like that: their variances add."
        if close(value, difference / np.hypot(sd, sem)):
            return "that takes the spread of the splits for the standard error of their mean."
        if close(value, difference / np.hypot(np.std(losses) / np.sqrt(size), sem)):
            return DDOF
        if close(value, difference / ours) or close(value, difference / sem):
            return "that has one of the two standard errors in it; both means are uncertain."
        return "a difference of two means, in units of its own standard error: what is the variance of the difference?"
    return None


@checker("st-3-paired", never=["np.std(difference, ddof=1) / np.sqrt(len(difference))"])
def paired(answer):
    rng = np.random.default_rng(1)
    common = rng.standard_normal(15)
    first, second = (common + 0.3 * rng.standard_normal(15) + shift for shift in (0.2, 0.0))
    mean, sem = as_array(called(answer, first, second), (2,))
    difference = first - second
    right = np.std(difference, ddof=1) / np.sqrt(15)
    if close(mean, -difference.mean()):
        return "the sign is turned round: the first less the second."
    if not close(mean, difference.mean()):
        return "the first number is the mean of the differences, first less second."
    if close(sem, right):
        return None
    if close(sem, np.hypot(np.std(first, ddof=1), np.std(second, ddof=1)) / np.sqrt(15)):
        return ("that combines two standard errors as if the splits were different ones. Take the difference on each "
                "split first.")
    if close(sem, right * np.sqrt(15)):
        return "that is the spread of the differences; their mean is more certain, the more so the more there are."
    if close(sem, np.std(difference) / np.sqrt(15)):
        return DDOF
    return "the second number is the standard error of the mean of the differences."


@checker("st-4-clock", never=["(loss[k - 1] - level) / (loss[k - 1] - loss[k])"])
def clock(answer):
    seconds, loss = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 0.8, 0.3, 0.5])

    def found(level):
        value = np.asarray(called(answer, seconds, loss, level), dtype=float)
        if value.size != 1:
            raise Feedback(f"one number of seconds is asked for, this is an array of shape {value.shape}.")
        return float(value.reshape(()))

    between = found(0.55)
    if close(between, 4.0):
        return "that is the next known time; between two times the loss runs on a straight line."
    if close(between, 2.0):
        return "that is the last time before; between two times the loss runs on a straight line."
    if not close(between, 3.0):
        return "from 0.8 at two seconds to 0.3 at four the loss passes 0.55 half-way."
    if not close(found(1.2), 1.0):
        return "a loss that starts at or below the level is there at the first time."
    if found(0.1) != np.inf:
        return "a level that is never reached takes np.inf seconds."
    if not close(found(0.45), 3.4):
        return "the first time counts, also if the loss rises again later."
    return None


def _nll(p):
    """Mean loss of a model that gives its favourite class the probability p and is right nine times in ten."""
    return -0.9 * np.log(p) - 0.1 * np.log1p(-p)


BEST = minimize_scalar(_nll, bounds=(0.5, 0.999), method="bounded", options={"xatol": 1e-9}).x
THERE, TOO_SURE = _nll(BEST), _nll(0.999)

numbers(
    "st-5-sure",
    {"best p": BEST, "NLL there": THERE, "NLL at p = 0.999": TOO_SURE},
    digits=3,
    mistakes=[
        ((0.999, ANY, ANY), "to be too sure costs more than it gains: try a few values."),
        ((1.0, ANY, ANY), "then a single wrong label costs infinitely much."),
        ((0.5, ANY, ANY), "a coin ignores what the model knows."),
        ((RIGHT, THERE / np.log(2), ANY), "these are bits; nats are asked for."),
        ((RIGHT, -np.log(BEST), ANY), "one label in ten is the other one, and has a cost as well."),
        ((RIGHT, -THERE, ANY), "the sign: a loss is minus a mean logarithm."),
        ((RIGHT, RIGHT, -np.log(0.999)), "the third number lacks the label that is wrong."),
        ((RIGHT, RIGHT, -0.1 * np.log1p(-0.999)), "the third number lacks the nine labels that are right."),
    ],
    otherwise=[
        "write the mean loss as a function of p, and set its derivative to zero.",
        "p is right. The loss is a mean over ten labels: what does each of them cost?",
        "the first two are right; put the other p in the same formula.",
    ],
    never=["-0.9 * np.log(p) - 0.1 * np.log(1 - p)"],
)


@checker("st-6-yours", never=["difference.mean() / (difference.std(ddof=1)", "mean / sem"])
def your_methods(answer):
    first, second, value = as_things(answer, 3, "two arrays of losses (S,) and a number")
    first, second, value = as_array(first), as_array(second), as_number(value)
    if first.ndim != 1 or first.shape != second.shape or len(first) < 5:
        raise Feedback(f"two arrays of one shape (S,), S at least 5, are asked for; got {first.shape} and {second.shape}.")
    difference, root = first - second, np.sqrt(len(first))
    spread = np.std(difference, ddof=1)
    if spread <= 1e-12 * np.abs(first).max():
        return "the two differ by the same amount on every split: are they two methods on splits that differ?"
    right = difference.mean() * root / spread
    if rounded(value, right, 3):
        return None
    if rounded(value, -right, 3):
        return "the sign is turned round: the first less the second."
    if rounded(value, difference.mean() * root / np.hypot(np.std(first, ddof=1), np.std(second, ddof=1)), 3):
        return "that treats the two as if their splits were different ones."
    if rounded(value, right / root, 3):
        return "that is in units of the spread of the differences; their mean is more certain."
    if rounded(value, right * np.sqrt(len(first) / (len(first) - 1)), 3):
        return DDOF
    if rounded(value, difference.mean(), 3):
        return "that is the difference itself; how many of its standard errors is it?"
    return "the number does not belong to these losses. Take the difference on each split, then the t of its mean."


LONGEST = 60        # exercise 7: `last` may be so large on average


def _training_runs(number=30, length=80):
    """(true, measured) losses of runs that fall, and rise again early or late; the measured ones are noisy."""
    rng, t = np.random.default_rng(2), np.arange(length)
    for _ in range(number):
        turn = rng.uniform(8, 60)
        true = 0.4 + 1.2 * np.exp(-t / turn * rng.uniform(3, 4)) + rng.uniform(0.3, 0.6) * np.maximum(t / turn - 1, 0)
        yield true, true + 0.01 * rng.standard_normal(length)


@checker("st-7-stop", never=["k - best >= patience"])
def stop(answer):
    lost, ends, same = [], [], []
    for true, measured in _training_runs():
        last, kept = as_array(called(answer, measured), (2,))
        if not (last.is_integer() and kept.is_integer() and 0 <= kept <= last < len(true)):
            return f"places between 0 and {len(true) - 1} are asked for, the kept one not after the last one."
        last, kept = int(last), int(kept)
        other = np.append(measured[:last + 1], np.zeros(len(true) - last - 1))
        if not np.array_equal(as_array(called(answer, other), (2,)), (last, kept)):
            return "what comes after the last checkpoint changes your answer: nobody knows that yet."
        lost.append(true[kept] - true.min())
        ends.append(last)
        same.append(kept == last)
    if np.mean(ends) > LONGEST:
        return f"it trains for too long: on average to place {np.mean(ends):.0f}, and {LONGEST} is allowed."
    if np.mean(lost) <= 0.02:
        return None
    if np.mean(ends) < 30:
        return "it stops too early: the losses are noisy, and one that rises may fall again."
    if np.mean(same) > 0.5:
        return "where it stops is not which model to keep: by then the loss has been rising for a while."
    return "the models that it keeps are more than 0.02 above the best of their runs, on average."


quiz_of(
    "st-quiz",
    question(
        "VI with the robust likelihood has EP's error and three times its log loss. What does this say?",
        [("it finds other classes", "it is right as often as EP. What differs is how sure it is."),
         ("it finds the classes, and is too sure of them", None),
         ("it was trained too briefly", "trained longer, its log loss rises on most of the eight sets.")],
        why="The error asks for the favourite class only; the log loss asks how sure the model was of it.",
    ),
    question(
        "Two methods were run on the same splits. Their means differ by half of a combined standard error. Then ...",
        [("take the differences split by split before you judge", None),
         ("they are equally good", "that they cannot be told apart this way does not make them equal."),
         ("more splits are needed in any case", "what the splits share may be most of the error; look at that first.")],
        why="What is hard about a split is hard for both, and cancels in the difference.",
    ),
    question(
        "You need class probabilities from a large data set, and the memory is small. Which method?",
        [("GFITC", "it waits for EP before each step, and keeps a site for every datum."),
         ("EP", "it keeps a site for every comparison of every datum."),
         ("SEP", None)],
        why="Tied sites need memory that does not grow with the data, and cost little in these tables.",
    ),
)
