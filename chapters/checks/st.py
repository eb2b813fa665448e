"""Checkers of the chapter "Study: many classes on real data"."""

import numpy as np
from exercises import Feedback, as_array, as_function, as_number, checker, close
from scipy.special import ndtr


@checker("st-1-chance")
def chance(answer):
    answer = as_number(answer)
    outside = 2 * ndtr(-2.0)
    if close(answer, 96 * outside, rtol=0.02):
        return None
    if close(answer, 96 * outside / 2, rtol=0.02):
        return "that counts one direction; a cell can be too high or too low."
    if close(answer, 96 * (1 - outside), rtol=0.02):
        return "that many agree; the question is how many do not."
    if close(answer, outside, rtol=0.02):
        return "that is the chance for one cell; there are 96."
    if close(answer, 96 * 0.05, rtol=0.02):
        return "five per cent belongs to 1.96 standard errors; for 2 it is a little less."
    return "how often is a normal variable more than two standard deviations from its mean? Count 96 of them."


@checker("st-2-apart")
def apart(answer):
    rng = np.random.default_rng(0)
    for size, mean, sem in ((20, 0.4, 0.05), (10, 1.3, 0.02)):
        losses = mean + 0.1 + 0.2 * rng.standard_normal(size)
        value = as_function(answer)(losses.copy(), mean, sem)
        if value is None:
            raise Feedback("the function returns nothing yet.")
        value = as_number(value)
        sd = np.std(losses, ddof=1)
        difference, ours = losses.mean() - mean, sd / np.sqrt(size)
        right = difference / np.hypot(ours, sem)
        if close(value, right):
            continue
        if close(value, -right):
            return "the sign is turned round: positive where ours is above the paper's."
        if close(value, difference / (ours + sem)):
            return "errors of independent means add as squares: combine them by the root of the sum of squares."
        if close(value, difference / np.hypot(sd, sem)):
            return "that takes the spread of the splits for the standard error of their mean."
        if close(value, difference / np.hypot(np.std(losses) / np.sqrt(size), sem)):
            return "the variance of a sample divides by n - 1: np.std needs ddof=1."
        if close(value, difference / ours) or close(value, difference / sem):
            return "that has one of the two standard errors in it; both means are uncertain."
        return "mean of the losses less the paper's mean, over the root of the sum of the two squared standard errors."
    return None


@checker("st-3-paired")
def paired(answer):
    rng = np.random.default_rng(1)
    common = rng.standard_normal(15)
    first, second = (common + 0.3 * rng.standard_normal(15) + shift for shift in (0.2, 0.0))
    result = as_function(answer)(first.copy(), second.copy())
    if result is None:
        raise Feedback("the function returns nothing yet.")
    mean, sem = as_array(result, (2,))
    difference = first - second
    right = np.std(difference, ddof=1) / np.sqrt(15)
    if close(mean, -difference.mean()):
        return "the sign is turned round: the first less the second."
    if not close(mean, difference.mean()):
        return "the first number is the mean of the differences, first less second."
    if close(sem, right):
        return None
    if close(sem, np.hypot(np.std(first, ddof=1), np.std(second, ddof=1)) / np.sqrt(15)):
        return "that combines two standard errors as if the splits were different ones. Take the difference on each split first."
    if close(sem, right * np.sqrt(15)):
        return "that is the spread of the differences; their mean is more certain, by the root of their number."
    if close(sem, np.std(difference) / np.sqrt(15)):
        return "the variance of a sample divides by n - 1: np.std needs ddof=1."
    return "the second number is the standard error of the mean of the differences."


@checker("st-4-clock")
def clock(answer):
    function = as_function(answer)
    seconds, loss = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 0.8, 0.3, 0.5])

    def found(level):
        value = function(seconds.copy(), loss.copy(), level)
        if value is None:
            raise Feedback("the function returns nothing yet.")
        return float(value)

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


@checker("st-5-sure")
def sure(answer):
    best, there, at_most = as_array(answer, (3,))
    losses = [-0.9 * np.log(p) - 0.1 * np.log(1 - p) for p in (0.9, 0.999)]
    if not close(best, 0.9, rtol=1e-3):
        return "set the derivative of 0.9 log p + 0.1 log(1 - p) to zero."
    if close([there, at_most], np.array(losses) / np.log(2), rtol=0.01):
        return "these are bits; nats are asked for."
    if close(there, -np.log(0.9), rtol=0.01):
        return "one label in ten is the other one, and costs -log(1 - p)."
    if not close(there, losses[0], rtol=0.01):
        return "the NLL is the mean of -log p over the nine labels that are right and -log(1 - p) over the one that is not."
    if not close(at_most, losses[1], rtol=0.01):
        return "the first two are right; put p = 0.999 in the same formula."
    return None
