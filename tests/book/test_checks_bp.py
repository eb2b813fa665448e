"""The checkers of "Beyond the probit": right answers pass, usual mistakes are named."""

import numpy as np
from conftest import checker_tests

GROWTH = np.exp(0.25)
MEAN = 100 * np.sqrt(GROWTH)
VARIANCE = MEAN + MEAN**2 * (GROWTH - 1)


def mean_step(A, h, y, tau, nu, alpha, likelihood, around="cavity", wider=True, residual=True):
    V = np.linalg.inv(np.eye(len(A)) + (A * tau) @ A.T)
    mu, s = A.T @ V @ A @ nu, np.einsum("mn,mk,kn->n", A, V, A)
    c = 1 - alpha * tau * s
    mu_out = (mu - alpha * nu * s) / c
    d1 = likelihood.log_moment(y, mu_out, s / c + (h if residual else 0), alpha)[1]
    return tau * (mu_out if around == "cavity" else mu) + d1 / (c if wider else 1)


def full_target(A, h, y, tau, nu, alpha, likelihood):
    V = np.linalg.inv(np.eye(len(A)) + (A * tau) @ A.T)
    mu, s = A.T @ V @ A @ nu, np.einsum("mn,mk,kn->n", A, V, A)
    c = 1 - alpha * tau * s
    mu_out, s_out = (mu - alpha * nu * s) / c, s / c
    _, d1, d2 = likelihood.log_moment(y, mu_out, s_out + h, alpha)
    return (d1 - d2 * mu_out) / (1 + alpha * d2 * s_out)


def otherwise(**options):
    return lambda *arguments: mean_step(*arguments, **options)


RIGHT = {"bp-1-dispersion": [MEAN, VARIANCE, 1 / (GROWTH - 1)], "bp-2-noise": np.exp(11 / 3), "bp-3-means": mean_step}
WRONG = [
    ("bp-1-dispersion", [100.0, 1.0, 1.0], "larger on average"),
    ("bp-1-dispersion", [5.0, 1.0, 1.0], "log-normal"),
    ("bp-1-dispersion", [MEAN, VARIANCE - MEAN, 1.0], "varies around its rate"),
    ("bp-1-dispersion", [MEAN, np.sqrt(VARIANCE), 1.0], "standard deviation"),
    ("bp-1-dispersion", [MEAN, MEAN, 1.0], "two parts"),
    ("bp-1-dispersion", [MEAN, VARIANCE, GROWTH - 1], "other way up"),
    ("bp-1-dispersion", [MEAN, VARIANCE, 4.0], "square of the mean"),
    ("bp-1-dispersion", [MEAN, VARIANCE], "3"),
    ("bp-2-noise", np.exp(-11 / 3), "it must fall"),
    ("bp-2-noise", 11 / 3, "logarithm of it"),
    ("bp-2-noise", np.exp(11 / 6), "half of M"),
    ("bp-2-noise", 1.0, "how many nats"),
    ("bp-3-means", lambda *given: None, "returns nothing yet"),
    ("bp-3-means", full_target, "target ν*"),
    ("bp-3-means", otherwise(wider=False), "how many times wider"),
    ("bp-3-means", otherwise(around="posterior"), "mean of the cavity"),
    ("bp-3-means", otherwise(residual=False), "residual variance"),
    ("bp-3-means", lambda A, h, y, tau, nu, alpha, likelihood: np.full(15, np.nan), "are NaN"),
    ("bp-3-means", lambda A, h, y, tau, nu, alpha, likelihood: nu, "Print both sides"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG)
