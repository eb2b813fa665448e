"""The checkers of chapter "Can the data choose α?": right answers pass, usual mistakes are named."""

import numpy as np
import pytest
from checks import wd
from conftest import checker_tests

from pepcore import training


def leverages(fit, X, residual=0.0):
    _, h = fit.posterior.basis.features(X)
    return fit.sites.tau * (fit.predict_f(X)[1] - (1 - residual) * h)


def marginal_over_noise(fit, X):
    _, h = fit.posterior.basis.features(X)
    return (fit.predict_f(X)[1] - h) / 0.2


def fold_out(A, h, y, noise, alpha, fold, share=1.0, extra=0.0, latent=True):
    d = alpha * h + noise
    weight = np.where(np.isin(np.arange(len(y)), fold), 1 - share, 1.0) / d
    V = np.linalg.inv(np.eye(len(A)) + (A * weight) @ A.T)
    a = A[:, fold]
    return a.T @ V @ A @ (weight * y), np.einsum("mk,ml,lk->k", a, V, a) + latent * h[fold] + extra


def one_by_one(A, h, y, noise, alpha, fold):
    parts = [fold_out(A, h, y, noise, alpha, np.array([n])) for n in fold]
    return np.array([[mean[0] for mean, _ in parts], [variance[0] for _, variance in parts]])


def regret(estimate, test):
    return np.mean([row[guess.argmin()] - row.min() for guess, row in zip(estimate, test, strict=True)])


def anew(X, y, alpha, folds, power=None, leak=False, swap=False, latent=False, over=np.concatenate):
    lost = []
    for fold in folds:
        rest = np.arange(len(y)) if leak else np.setdiff1d(np.arange(len(y)), fold)
        known, asked = (fold, rest) if swap else (rest, fold)
        power = alpha if power is None else power
        model = training.fit(None, X[known], y[known], M=4, alpha=power, max_evaluations=10, seed=0)
        mean, variance = (model.predict_f if latent else model.predict_y)(X[asked])
        lost.append(0.5 * (np.log(2 * np.pi * variance) + (y[asked] - mean) ** 2 / variance))
    return over(lost).mean()


def own_losses(splits=6, powers=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(splits, powers)), rng.normal(size=(splits, powers))


def each(function, change):
    return lambda *given: change(function(*given))


LOO, TEST = own_losses()
RIGHT = {
    "wd-1-paper": [2 / 3, 2.5, 1.5],
    "wd-2-leverage": leverages,
    "wd-3-fold": fold_out,
    "wd-4-regret": regret,
    "wd-5-cautious": wd.one_standard_error,
    "wd-6-anew": anew,
    "wd-7-yours": (LOO, TEST),
}
ALSO_RIGHT = [("wd-1-paper", (0.667, 2.5, 1.5)), ("wd-7-yours", [LOO.tolist(), TEST.tolist()])]
WRONG = [
    ("wd-2-leverage", each(leverages, np.sum), "one number for each datum"),
    ("wd-2-leverage", lambda fit, X: leverages(fit, X, residual=1.0), "residual variance h"),
    ("wd-2-leverage", each(leverages, lambda found: 1 - found), "that is c"),
    ("wd-2-leverage", marginal_over_noise, "larger than the noise"),
    ("wd-2-leverage", each(leverages, np.zeros_like), "not the leverages"),
    ("wd-2-leverage", each(leverages, lambda found: found[:-1]), "shape (25,)"),
    ("wd-2-leverage", each(leverages, lambda found: found * np.nan), "NaN"),
    ("wd-3-fold", lambda *given: fold_out(*given, share=0.0), "nothing has gone out"),
    ("wd-3-fold", one_by_one, "go out together"),
    ("wd-3-fold", lambda *given: fold_out(*given, share=given[4]), "fraction α"),
    ("wd-3-fold", lambda *given: fold_out(*given, latent=False), "residual variance h on top"),
    ("wd-3-fold", lambda *given: fold_out(*given, extra=0.2), "without the noise"),
    ("wd-3-fold", lambda *given: fold_out(*given, extra=0.7), "the variance is not"),
    ("wd-3-fold", lambda *given: np.zeros((2, 4)), "Drop the columns"),
    ("wd-3-fold", lambda *given: np.zeros((4, 2)), "shape (2, 4)"),
    ("wd-3-fold", lambda *given: None, "returns nothing"),
    ("wd-4-regret", lambda estimate, test: test[np.arange(len(test)), estimate.argmin(axis=1)].mean(), "subtract the best"),
    ("wd-4-regret", lambda estimate, test: np.mean(test[np.arange(len(test)), estimate.argmin(axis=1)] - estimate.min(axis=1)),
     "smallest estimate was subtracted"),
    ("wd-4-regret", lambda estimate, test: regret(-estimate, test), "small is good"),
    ("wd-4-regret", lambda estimate, test: test.mean(axis=0)[estimate.mean(axis=0).argmin()] - test.mean(axis=0).min(),
     "for all rows"),
    ("wd-4-regret", lambda estimate, test: test[np.arange(len(test)), estimate.argmin(axis=1)].mean() - test.mean(axis=0).min(),
     "not the best one on average"),
    ("wd-4-regret", each(regret, np.negative), "never negative"),
    ("wd-4-regret", lambda estimate, test: 0.0, "not the regret"),
    ("wd-5-cautious", lambda densities: wd.one_standard_error(densities, root=False), "smaller by √N"),
    ("wd-5-cautious", lambda densities: wd.one_standard_error(densities, paired=False), "use the differences"),
    ("wd-5-cautious", lambda densities: wd.one_standard_error(densities, largest=True), "the largest power"),
    ("wd-5-cautious", lambda densities: densities.mean(axis=1).argmax(), "a smaller one"),
    ("wd-5-cautious", lambda densities: densities.mean(axis=1).argmin(), "the worst power"),
    ("wd-5-cautious", lambda densities: wd.one_standard_error(densities, errors=2.0), "two standard errors"),
    ("wd-5-cautious", lambda densities: wd.one_standard_error(densities) + 1, "counts from 0"),
    ("wd-5-cautious", lambda densities: wd.one_standard_error(densities) - 1, "not the index"),
    ("wd-5-cautious", lambda densities: wd.one_standard_error(densities, strict=True), "the lag of the best power is 0"),
    ("wd-5-cautious", lambda densities: 17, "not the index"),
    ("wd-6-anew", each(anew, np.negative), "sign"),
    ("wd-6-anew", lambda *given: anew(*given, over=lambda lost: np.array([part.mean() for part in lost])), "over rows"),
    ("wd-6-anew", lambda X, *given: len(X) * anew(X, *given), "sum over rows"),
    ("wd-6-anew", lambda *given: anew(*given, latent=True), "lacks the noise"),
    ("wd-6-anew", lambda *given: anew(*given, leak=True), "has seen the fold"),
    ("wd-6-anew", lambda *given: anew(*given, swap=True), "other way round"),
    ("wd-6-anew", lambda *given: anew(*given, power=0.5), "α = 0.5"),
    ("wd-6-anew", lambda *given: 0.0, "not the loss"),
    ("wd-7-yours", LOO, "as a tuple of 2"),
    ("wd-7-yours", (LOO, TEST[:, :3]), "one shape"),
    ("wd-7-yours", (LOO[:4], TEST[:4]), "at least 5 splits"),
    ("wd-7-yours", (LOO[:, :2], TEST[:, :2]), "3 powers"),
    ("wd-7-yours", (LOO, np.where(TEST > 0, np.inf, TEST)), "infinite"),
    ("wd-7-yours", (LOO, LOO), "the same"),
    ("wd-7-yours", (np.zeros((6, 4)), np.zeros((6, 4))), "the same"),
    ("wd-7-yours", (LOO, np.tile(TEST[0], (6, 1))), "splits different"),
    ("wd-7-yours", (np.tile(LOO[:, :1], 4), TEST), "power passed on"),
]

test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)


@pytest.mark.parametrize("number", range(len(wd.LEVELS)))
def test_the_standard_error_is_that_of_the_differences(number):
    """By hand: of the powers whose mean difference from the best is within one standard error, the first."""
    densities = wd.cautious_problem(number)
    powers = range(len(densities))
    best = max(powers, key=lambda k: densities[k].mean())
    lags = [densities[best] - row for row in densities]
    near = [k for k in powers if lags[k].mean() <= np.sqrt(lags[k].var(ddof=1) / 80)]
    assert wd.one_standard_error(densities) == near[0]


def test_no_two_rules_name_the_same_power():
    """In the first problem. There "less than one standard error" is right as well; in the second it names a power of its own."""
    rules = {"paired": False}, {"largest": True}, {"root": False}, {"errors": 2.0}
    first, second = wd.cautious_problem(0), wd.cautious_problem(1)
    right, means = wd.one_standard_error(first), first.mean(axis=1)
    named = [wd.one_standard_error(first, **rule) for rule in rules]
    assert sorted([right - 1, right, right + 1, means.argmax(), means.argmin(), *named]) == list(range(len(first)))
    assert wd.one_standard_error(first, strict=True) == right
    right, strict = wd.one_standard_error(second), wd.one_standard_error(second, strict=True)
    assert right == second.mean(axis=1).argmax()
    assert strict not in {right - 1, right, right + 1, *(wd.one_standard_error(second, **rule) for rule in rules)}
