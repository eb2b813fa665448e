"""Checkers of the chapter "Beyond the probit: counts, wild readings, batches"."""

import numpy as np
from exercises import Feedback, as_array, as_function, as_number, checker, close

from pepcore.likelihoods import Poisson, Probit
from pepcore.sites import Sites, cavity, target


@checker("bp-1-dispersion")
def dispersion(answer):
    mean, variance, delta = as_array(answer, (3,))
    growth = np.exp(0.25)
    expected = 100 * np.sqrt(growth)
    if close(mean, 100, rtol=2e-3):
        return "the mean is not e to the mean of f: a rate that varies on a log scale is larger on average."
    if not close(mean, expected, rtol=2e-3):
        return "the mean of a log-normal rate is needed first: integrate e^f over the residual."
    if close(variance, expected**2 * (growth - 1), rtol=2e-3):
        return "that is the variance of the rate. The count varies around its rate as well."
    if close(variance, np.sqrt(expected + expected**2 * (growth - 1)), rtol=2e-3):
        return "that is a standard deviation; the variance is asked for."
    if not close(variance, expected + expected**2 * (growth - 1), rtol=2e-3):
        return "the variance has two parts: that of the rate, and the mean of the count's own variance given the rate."
    if close(delta, growth - 1, rtol=2e-3):
        return "the dispersion stands in the denominator of e^{2f}/δ, so it is the other way up."
    if not close(delta, 1 / (growth - 1), rtol=2e-3):
        return "compare the part of the variance that goes with the square of the mean, in both models."


@checker("bp-2-noise")
def noise(answer):
    answer = as_number(answer)
    expected = np.exp(2 * 11 / 6)
    if close(answer, 1 / expected, rtol=2e-3):
        return "the logarithm falls as the noise grows, and it must fall."
    if close(answer, 2 * 11 / 6, rtol=2e-3):
        return "that is the logarithm of it."
    if close(answer, np.exp(11 / 6), rtol=2e-3):
        return "it falls by half of M for each unit of log ς², not by M."
    if close(answer, np.sqrt(expected), rtol=2e-3):
        return "that is ς; the variance is asked for."
    if not close(answer, expected, rtol=2e-3):
        return "how many nats must log p(ỹ) fall, and by how many does it fall for each unit of log ς²?"


@checker("bp-3-means")
def means(answer):
    function = as_function(answer)
    rng = np.random.default_rng(0)
    A, h = 0.7 * rng.normal(size=(4, 15)), rng.exponential(size=15)
    tau, nu = rng.uniform(0.05, 0.4, 15), 0.3 * rng.normal(size=15)
    problems = ((Probit(), rng.choice([-1.0, 1.0], 15), 0.6), (Poisson(), rng.integers(0, 6, 15).astype(float), 0.6),
                (Probit(), rng.choice([-1.0, 1.0], 15), 0.0))
    for likelihood, y, alpha in problems:
        V = np.linalg.inv(np.eye(4) + (A * tau) @ A.T)
        mu, s = A.T @ V @ A @ nu, (A * (V @ A)).sum(axis=0)
        mu_out, s_out = cavity(mu, s, Sites(tau, nu), alpha)
        _, d1, d2 = likelihood.log_moment(y, mu_out, s_out + h, alpha)
        expected = tau * mu_out + d1 * s_out / s
        value = function(*(np.copy(part) for part in (A, h, y, tau, nu)), alpha, likelihood)
        if value is None:
            raise Feedback("the function returns nothing yet.")
        value = as_array(value, (15,))
        if close(value, expected):
            continue
        if close(value, target(mu_out, s_out, d1, d2, alpha).nu):
            return "that is the target ν*, for which the precision would have to move as well; here it stands still."
        if close(value, tau * mu_out + d1):
            return "the slope d1 belongs to the cavity; how many times wider than the posterior is that?"
        if close(value, tau * mu + d1 * s_out / s):
            return "the first term takes the mean of the cavity, not that of the posterior."
        without = likelihood.log_moment(y, mu_out, s_out, alpha)[1]
        if close(value, tau * mu_out + without * s_out / s):
            return "the likelihood sees the residual variance, too: it belongs to the variance in log_moment."
        return f"at α = {alpha:g} it is not the ν' whose mean is the tilted one. Print both sides of the first equation."
