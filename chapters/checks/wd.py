"""Checkers of the chapter "Can the data choose α?"."""

import numpy as np
from exercises import (
    ANY,
    RIGHT,
    as_array,
    as_number,
    as_things,
    called,
    checker,
    close,
    numbers,
    question,
    quiz_of,
)

from pepcore import power_ep, training
from pepcore.kernels import SquaredExponential


def regression_problem(seed, alpha=0.5, N=25, M=6):
    """Inputs (N, 2), targets (N,), and the fit of Power EP with noise 0.2."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    y = np.sin(2 * X[:, 0]) + 0.4 * rng.normal(size=N)
    kernel, Z = SquaredExponential(1.5, [0.9, 1.2]), rng.normal(size=(M, 2))
    fit = power_ep.regression(kernel, Z, X, y, noise=0.2, alpha=alpha)
    return X, y, fit


Y1, Y2, NOISE = 1.0, 5.0, 1.0                       # exercise 1: two data at one place, prior N(0, 1); the first goes out
VARIANCE = 1 / (1 + 2 / NOISE)                      # of the latent value, given both
SHARE = 1 - VARIANCE / NOISE
ALONE, LEFT = Y2 / (1 + NOISE), NOISE / (1 + NOISE)  # mean and variance of the latent value, given the second datum

numbers(
    "wd-1-paper",
    {"c": SHARE, "mean": ALONE, "variance": LEFT + NOISE},
    decimals=2,
    mistakes=[
        ((1 - 0.5 * VARIANCE / NOISE, ANY, ANY),
         "you took out half of the site. The fraction α belongs to the update; here the whole site goes."),
        ((VARIANCE / NOISE, ANY, ANY), "that is the leverage; c is what is left."),
        ((RIGHT, Y1 / (1 + NOISE), ANY), "c is right. You left out the second datum; the first one, y = 1, was to go."),
        ((RIGHT, (Y1 + Y2) * VARIANCE, ANY),
         "c is right. That is the mean from both data; divide the site of the first one out."),
        ((RIGHT, Y2, ANY), "c is right. That is the second datum itself; the prior has a say as well."),
        ((RIGHT, RIGHT, LEFT),
         "c and the mean are right. The variance is that of the latent value; a target has the noise on top."),
        ((RIGHT, RIGHT, VARIANCE + NOISE), "c and the mean are right. That is the variance with both data still in."),
    ],
    otherwise=[
        "begin with the posterior from both data: which precisions add up? Then c is 1 less the leverage.",
        "c is right. Check the mean by fitting the second datum alone.",
        "c and the mean are right. For the variance divide s by c, then think of what is predicted.",
    ],
)


@checker("wd-2-leverage", never=["fit.sites.tau * (", "τ s"])
def leverage(answer):
    for seed, alpha in ((0, 0.5), (1, 1.0), (2, 0.0)):
        X, _, fit = regression_problem(seed, alpha)
        _, h = fit.posterior.basis.features(X)
        s = fit.predict_f(X)[1] - h
        right, result = fit.sites.tau * s, as_array(called(answer, fit, X))
        if result.shape == () and close(result, right.sum()):
            return "that is the sum of the leverages; one number for each datum is asked for."
        result = as_array(result, (len(X),))
        if close(result, right):
            continue
        if close(result, fit.sites.tau * (s + h)):
            return "the residual variance h belongs to no site; take it off the variance that predict_f returns."
        if close(result, 1 - right):
            return "that is c, the share of the variance that a datum leaves to the others; the leverage is the rest."
        if close(result, s / 0.2):
            return f"right at α = 0 only: at α = {alpha:g} the variance of a site is larger than the noise."
        return f"not the leverages at α = {alpha:g}. What is s_n, what is d_n, and which of them does predict_f return?"
    return None


def fold_out(A, h, y, noise, alpha, fold, share=1.0):
    """Mean and variance of the latent f on a fold after a `share` of its sites was divided out."""
    d = alpha * h + noise
    weights = np.ones(len(y))
    weights[fold] = 1 - share
    V = np.linalg.inv(np.eye(len(A)) + A * (weights / d) @ A.T)
    a = A[:, fold]
    return a.T @ V @ A @ (weights * y / d), np.sum(a * (V @ a), axis=0) + h[fold]


@checker("wd-3-fold", never=["weight[fold] = 0"])
def fold(answer):
    for seed, alpha in ((0, 0.5), (1, 1.0), (2, 0.0)):
        X, y, fit = regression_problem(seed, alpha)
        A, h = fit.posterior.basis.features(X)
        given = A, h, y, 0.2, alpha, np.array([3, 7, 8, 20])
        result = as_array(called(answer, *given), (2, 4))
        mean, variance = right = np.array(fold_out(*given))
        if close(result, right):
            continue
        if close(result, fold_out(*given, share=0.0)):
            return "nothing has gone out: these are the predictions from all data."
        if close(result, np.array([fold_out(*given[:-1], np.array([n])) for n in given[-1]])[..., 0].T):
            return "each row went out alone. The rows of a fold go out together, also for each other's prediction."
        if alpha == 0.5 and close(result, fold_out(*given, share=alpha)):
            return "the fraction α of the sites went out; the whole sites should."
        if close(result, [mean, variance - h[given[-1]]]):
            return "the mean is right. The latent value has its residual variance h on top."
        if close(result, [mean, variance + 0.2]):
            return "the mean is right. The latent variance is asked for, without the noise."
        if close(result[0], mean):
            return f"the mean is right at α = {alpha:g}, the variance is not."
        return (f"not what the other rows predict at α = {alpha:g}. Drop the columns of the fold, then predict along "
                "them.")
    return None


@checker("wd-4-regret", never=["test.min(axis=1)", "picked - "])
def regret(answer):
    for seed, shape in ((0, (30, 6)), (1, (8, 3))):
        rng = np.random.default_rng(seed)
        test = rng.normal(size=shape) + 0.5 * np.arange(shape[1])
        estimate = test - 0.4 * np.arange(shape[1]) + 0.5 * rng.normal(size=shape)
        rows = np.arange(shape[0])
        picked, least = test[rows, estimate.argmin(axis=1)], test.min(axis=1)
        result = as_number(called(answer, estimate, test))
        if close(result, (picked - least).mean()):
            continue
        if close(result, picked.mean()):
            return "that is the mean loss of the choice; subtract the best loss of each row."
        if close(result, (picked - estimate.min(axis=1)).mean()):
            return "the smallest estimate was subtracted; regret compares test losses with test losses."
        if close(result, (test[rows, estimate.argmax(axis=1)] - least).mean()):
            return "the power with the largest estimate was chosen; these are losses, small is good."
        if close(result, test.mean(axis=0)[estimate.mean(axis=0).argmin()] - test.mean(axis=0).min()):
            return "one power was chosen for all rows; every row makes its own choice."
        if close(result, picked.mean() - test.mean(axis=0).min()):
            return "the best power must be that of each row, not the best one on average."
        if close(result, (least - picked).mean()):
            return "the sign is turned round: a regret is never negative."
        return ("not the regret. Row by row: what was chosen, what did it cost, and what would the best choice have "
                "cost?")
    return None


def one_standard_error(densities, paired=True, largest=False, root=True, errors=1.0, strict=False):
    """Index of the smallest power (the largest, if asked) that is within so many standard errors of the best."""
    best = densities.mean(axis=1).argmax()
    lag = densities[best] - densities
    spread = lag.std(axis=1, ddof=1) if paired else densities.std(axis=1, ddof=1)[best] * np.ones(len(lag))
    limit = errors * spread / (np.sqrt(densities.shape[1]) if root else 1.0)
    near = np.flatnonzero(lag.mean(axis=1) < limit if strict else lag.mean(axis=1) <= limit)
    return int(near[-1 if largest else 0])


# mean of each power: in the first problem every wrong rule but one names a power of its own; "less than" for "at most"
# is found out in the second, where the best power is the right one; in the third no other power is near the best
LEVELS = ((-1.0, -0.28, -0.21, -0.6, -0.08, -0.6, 0.0, -0.08, -3.0),
          (-0.8, -0.7, -0.6, 0.0, -0.6, -0.08, -0.08, -1.2),
          (-1.2, -0.9, -0.6, -0.5, -0.7, 0.0))


def cautious_problem(number):
    """Leave-one-out log densities (K, 80) of K powers, which differ by 1 and share twice as much."""
    rng = np.random.default_rng(number)
    own = rng.normal(size=(len(LEVELS[number]), 80))
    own -= own.mean(axis=1, keepdims=True)
    return np.array(LEVELS[number])[:, None] + own + 2 * rng.normal(size=80)


@checker("wd-5-cautious", never=["lag.std", "flatnonzero"])
def cautious(answer):
    for number in range(len(LEVELS)):
        densities = cautious_problem(number)
        result, right = as_number(called(answer, densities)), one_standard_error(densities)
        if result == right:
            continue
        if result == densities.mean(axis=1).argmin():
            return "that is the worst power: these are log densities, large is good."
        if result == right + 1:
            return "the index counts from 0."
        if result == one_standard_error(densities, errors=2.0):
            return "that is within two standard errors; one is asked for."
        if right == densities.mean(axis=1).argmax() and result == one_standard_error(densities, strict=True):
            return "the lag of the best power is 0, with standard error 0, and it must pass as well."
        if result == one_standard_error(densities, root=False):
            return "the standard deviation was used; the standard error of a mean over N data is smaller by √N."
        if result == one_standard_error(densities, paired=False):
            return ("the standard error is that of one power's own mean. All powers predict the same data: use the "
                    "differences, datum by datum.")
        if result == one_standard_error(densities, largest=True):
            return "that is the largest power that cannot be told from the best; the smallest is asked for."
        if result == densities.mean(axis=1).argmax():
            return "that is the best power by its mean; a smaller one is within one standard error of it."
        return ("not the index asked for: find the best mean, then test each smaller power against it by paired "
                "differences.")
    return None


@checker("wd-6-anew", never=["setdiff1d"])
def anew(answer):
    rng = np.random.default_rng(3)
    X = np.sort(rng.uniform(0, 4, 23))[:, None]
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=23)
    folds = np.array_split(rng.permutation(23), 3)
    result = as_number(called(answer, X, y, 0.75, [fold.copy() for fold in folds]))

    def losses(alpha=0.75, leak=False, swap=False):
        for fold in folds:
            rest = np.arange(23) if leak else np.setdiff1d(np.arange(23), fold)
            known, asked = (fold, rest) if swap else (rest, fold)
            model = training.fit(None, X[known], y[known], M=4, alpha=alpha, max_evaluations=10, seed=0)
            mean, variance = model.predict_f(X[asked])
            bare = 0.5 * (np.log(2 * np.pi * variance) + (y[asked] - mean) ** 2 / variance)
            yield -model.log_density(X[asked], y[asked]), bare

    right, bare = (np.concatenate(part) for part in zip(*losses(), strict=True))
    if close(result, right.mean(), digits=5):
        return None
    if close(result, -right.mean(), digits=5):
        return "the sign is turned round: the loss is the negative log density."
    if close(result, np.mean([part.mean() for part, _ in losses()]), digits=5):
        return "the folds have different sizes: take the mean over rows, not over folds."
    if close(result, right.sum(), digits=5):
        return "that is the sum over rows; the mean is asked for."
    if close(result, bare.mean(), digits=5):
        return "the variance lacks the noise: a target is predicted, not the function."
    if close(result, np.concatenate([part for part, _ in losses(leak=True)]).mean(), digits=5):
        return "the model has seen the fold that it predicts; learn from the other rows only."
    if close(result, np.concatenate([part for part, _ in losses(swap=True)]).mean(), digits=5):
        return "you learnt from the fold and predicted the rest; the other way round."
    if close(result, np.concatenate([part for part, _ in losses(alpha=0.5)]).mean(), digits=5):
        return "that is the loss at α = 0.5; pass the power to training.fit."
    return ("not the loss asked for: learn from the rows outside a fold with the options given, predict the fold, "
            "average.")


@checker("wd-7-yours", never=["leave_one_out(X"])
def yours(answer):
    """Losses of the reader's own data: only their form and what cannot be true of them can be checked."""
    loo, test = (as_array(part) for part in as_things(answer, 2,
        "leave-one-out losses and test losses, (splits, powers) each,"))
    if loo.shape != test.shape or loo.ndim != 2:
        return (f"two arrays of one shape (splits, powers) are asked for; these have shapes {loo.shape} and "
                f"{test.shape}.")
    if loo.shape[0] < 5 or loo.shape[1] < 3:
        return f"at least 5 splits and 3 powers are needed for an answer that means something; got {loo.shape}."
    if not (np.isfinite(loo).all() and np.isfinite(test).all()):
        return "some losses are infinite: look at the split and the power where this happens."
    if close(loo, test):
        return "the two arrays are the same; leave-one-out comes from the training rows, the test loss from the others."
    for name, losses in (("leave-one-out", loo), ("test", test)):
        if np.ptp(losses, axis=0).max() == 0:
            return f"the {name} losses are the same in every split: are the splits different?"
        if np.ptp(losses, axis=1).max() == 0:
            return f"the {name} losses are the same at every power: was the power passed on?"
    return None


quiz_of(
    "wd-quiz",
    question(
        "To leave datum n out of a fit at power α, which part of its site goes?",
        [("the fraction α", "the fraction belongs to the update, not to the question."),
         ("the whole site", None),
         ("none: the cavity is stored", "the cavity of the update keeps a part of the site when α < 1.")],
        why="A datum's contribution is its whole site, at whichever power.",
    ),
    question(
        "Leave-one-out at fixed parameters is exact for Gaussian noise. Why can it still be too good?",
        [("kernel, noise and pseudo-inputs have seen the datum", None),
         ("the sites are approximate", "for Gaussian noise they are not."),
         ("the leverages are estimated", "they are computed exactly.")],
        why="All data were used to learn, whichever leaves the posterior.",
    ),
    question(
        "When does such optimism mislead the choice of α?",
        [("when it is large", "if it is equally large at every power, the order of the powers stays."),
         ("when the data are few", "few data make it larger, but only a difference changes the order."),
         ("when it differs between powers", None)],
        why="A choice compares estimates, so only differences between their errors matter.",
    ),
    question(
        "An estimator chooses α in each data set, and its mean regret is 0.02. Is that good?",
        [("yes, regrets start at zero", "so do those of constants."),
         ("compare it with the regret of the best constant", None),
         ("no, it should be zero", "no choice from noisy estimates has none.")],
        why="A choice among powers must beat a constant, and beat as much time spent at one power.",
    ),
)
