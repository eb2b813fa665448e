"""Checkers of the chapter "Sparse classification with Power EP"."""

import numpy as np
from exercises import Feedback, as_array, as_function, as_number, checker, close
from scipy.special import log_ndtr, ndtr

from pepcore import power_ep
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit

PROBIT = Probit()


def called(function, *arguments):
    """What the reader's function returns for copies of these arguments, or feedback when it is nothing."""
    result = as_function(function)(*(np.copy(a) if np.ndim(a) else a for a in arguments))
    if result is None:
        raise Feedback("the function returns nothing yet.")
    return result


def as_tuple(result, length, what):
    """The reader's result, a tuple or list of this length, or feedback that says what was asked for."""
    if not isinstance(result, tuple | list) or len(result) != length:
        raise Feedback(f"{what} are asked for, as a tuple of {length}.")
    return result


def converged(alpha, seed=0):
    """Features A (M, N), h (N,) and the fit of a small problem at its fixed point."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=30) > 0, 1.0, -1.0)
    fit = power_ep.infer(SquaredExponential(4.0, [0.8, 1.1]), X[:5] + 0.1, X, y, PROBIT, alpha=alpha, tolerance=1e-11,
                         max_sweeps=500)
    return *fit.posterior.basis.features(X), fit


@checker("sc-1-mean")
def means(answer):
    answer = as_array(answer, (3,))
    e = np.sqrt(3.0) * np.linspace(-12, 12, 20001)
    weight = np.exp(-0.5 * e**2 / 3.0)
    weight /= weight.sum()
    arithmetic, geometric = ndtr(0.5), np.exp(weight @ log_ndtr(1 + e))
    half = (weight @ np.sqrt(ndtr(1 + e))) ** 2
    expected = np.array([arithmetic, half, geometric])
    if close(answer, expected[::-1], rtol=1e-3):
        return "the numbers are right, in the reverse order: α = 1 first."
    if close(answer[0], ndtr(1 / np.sqrt(3)), rtol=1e-3) or close(answer[0], ndtr(1 / 3), rtol=1e-3):
        return "at α = 1 the probit has a variance of its own: it is Φ(g/√(1 + h))."
    if close(answer[0], ndtr(0.25), rtol=1e-3):
        return "at α = 1 divide by a standard deviation, √(1 + h), not by the variance."
    if not close(answer[0], arithmetic, rtol=1e-3):
        return "at α = 1 average Φ(g + e) over e ~ N(0, h)."
    if close(answer[1], weight @ np.sqrt(ndtr(1 + e)), rtol=1e-3):
        return "at α = ½ the average of p^½ is right; the outer power 1/α is missing."
    if close(answer[2], weight @ log_ndtr(1 + e), rtol=1e-3):
        return "at α = 0 this is the logarithm of the mean; take its exponential."
    if close(answer[2], ndtr(1.0), rtol=1e-3):
        return "at α = 0 this is the likelihood at the mean, e = 0. Average the logarithm of the likelihood."
    if not close(answer[1], half, rtol=1e-3):
        return "at α = ½ average the square root of Φ(g + e), then square."
    if not close(answer[2], geometric, rtol=1e-3):
        return "at α = 0 it is the geometric mean: the exponential of the average of log Φ(g + e)."


@checker("sc-2-forget")
def forget(answer):
    value = as_number(answer)
    exact = np.log(1e-6) / np.log(0.2)
    if value == np.ceil(np.log(1e-6) / np.log(0.8)):
        return "each visit keeps 1 − ε = 0.2 of what is off the direction, not 0.8."
    if close(value, exact, rtol=1e-2) and value != np.ceil(exact):
        return "a visit is a whole one: after how many is it below a millionth?"
    if value != np.ceil(exact):
        return "what is off the direction is multiplied by 1 − ε at each visit, and nothing is added to it."


@checker("sc-3-price")
def pays(answer):
    rng = np.random.default_rng(1)
    y, mean, variance = rng.choice([-1.0, 1.0], 400), 2 * rng.normal(size=400), rng.uniform(0.1, 4, 400)
    for alpha in (0.0, 1.0, 0.5):
        result = np.asarray(called(answer, y, mean, variance, alpha))
        if result.shape != (400,):
            raise Feedback(f"one Boolean for each of the 400 data is asked for; this has shape {result.shape}.")
        if result.dtype != bool:
            return "Booleans are asked for: is the derivative positive?"
        _, d1, d2 = PROBIT.log_moment(y, mean, variance, alpha)
        expected = d2 + alpha * d1**2 > 0
        if np.array_equal(result, ~expected):
            return "just the other way round: these are the data that would lower it."
        if alpha < 1 and np.array_equal(result, d2 + d1**2 > 0):
            return f"at α = {alpha:g} the square of d1 is weighted with α."
        if alpha < 1 and np.array_equal(result, y * mean < 0):
            return f"this is the answer for α = 1; at α = {alpha:g} it takes more than a negative margin."
        if np.array_equal(result, mean < 0):
            return "the side of the border is that of y times the mean."
        if not np.array_equal(result, expected):
            return f"at α = {alpha:g} {np.sum(result != expected)} of 400 are wrong. Look at the sign of d2 + α d1²."


@checker("sc-4-gradient")
def gradient(answer):
    for alpha in (1.0, 0.3, 0.0):
        A, h, fit = converged(alpha)
        tau, nu = fit.sites.tau, fit.sites.nu
        result = as_tuple(called(answer, A, tau, nu, alpha), 2, "dA (M, N) and dh (N,)")
        dA, dh = as_array(result[0], A.shape), as_array(result[1], h.shape)
        V = np.linalg.inv(np.eye(len(A)) + (A * tau) @ A.T)
        m, VA = V @ A @ nu, V @ A
        gamma, s = nu - tau * (A.T @ m), (A * VA).sum(axis=0)
        c = 1 - alpha * tau * s
        right_A, right_h = np.outer(m, gamma) - VA * tau, 0.5 * (alpha * gamma**2 - c * tau)
        if close(dA, np.outer(m, nu) - VA * tau):
            return "in dA stands γ = ν − τμ, the slope of the site at the posterior mean, not ν."
        if close(dA, -right_A) or close(dh, -right_h):
            return "the sign is turned round: that is the gradient of the energy."
        if not close(dA, right_A, rtol=1e-5):
            return f"at α = {alpha:g} dA is not m γᵀ − V A diag(τ)."
        if close(dh, 2 * right_h):
            return "dh lacks the factor ½."
        if alpha < 1 and close(dh, 0.5 * (gamma**2 - c * tau)):
            return "in dh the square of γ is weighted with α."
        if alpha > 0 and close(dh, 0.5 * (alpha * gamma**2 - tau)):
            return "in dh the precision τ is weighted with c = 1 − ατs, what the cavity keeps."
        if not close(dh, right_h, rtol=1e-5):
            return f"at α = {alpha:g} dh is wrong although dA is right."


@checker("sc-5-likelihood")
def waiting(answer):
    y, f = np.array([0.2, 1.0, 3.0, 0.7]), np.array([-1.0, 0.3, 0.5, 2.0])
    result = as_tuple(called(answer, y, f), 3, "log p and its first two derivatives")
    log_p, first, second = (as_array(value, (4,)) for value in result)
    expected = y * np.exp(f)
    if close(log_p, -expected):
        return "log p also contains the rate in front: + f."
    if close(log_p, np.log(y) + f - expected):
        return "this is the density of log y; that of y itself has no factor y."
    if close(log_p, -f - y * np.exp(-f)):
        return "here e^f is taken for the mean waiting time; it is the rate."
    if not close(log_p, f - expected):
        return "log p = f − y e^f."
    if not close(first, 1 - expected):
        return "log p is right; its first derivative in f is not."
    if close(second, expected):
        return "the second derivative has the wrong sign: the likelihood is log-concave."
    if not close(second, -expected):
        return "the second derivative in f is not right."


@checker("sc-6-sequential")
def sequential(answer):
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 4))
    for alpha, tau, nu, rank in ((0.5, 0.0, 0.0, 4), (1.0, 0.2, 0.3, 4), (0.0, 0.1, -0.2, 4), (0.5, 0.2, 0.1, 2)):
        V, m, a, h, y = root[:, :rank] @ root[:, :rank].T / 6, rng.normal(size=4), rng.normal(size=4), 0.4, -1.0
        result = as_tuple(called(answer, m, V, a, h, y, tau, nu, alpha), 4, "m, V, tau and nu")
        new_m, new_V = as_array(result[0], (4,)), as_array(result[1], (4, 4))
        new_tau, new_nu = as_number(result[2]), as_number(result[3])
        s, mu = a @ V @ a, a @ m
        right_tau, right_nu, c, s_out = _site(y, mu, s, h, tau, nu, alpha)
        wrong_tau = _site(y, mu, s, 0.0, tau, nu, alpha)[0]
        if close(new_tau, wrong_tau):
            return "the residual variance h is missing: the likelihood sees h + s of the cavity."
        d2 = PROBIT.log_moment(y, (mu - alpha * nu * s) / c, h + s_out, alpha)[2]
        if alpha > 0 and close(new_tau, -d2 / (1 + alpha * d2 * (s_out + h))):
            return "in the target stands the cavity variance of aᵀv alone, without h; with h it is Csató's method."
        if not (close(new_tau, right_tau, rtol=1e-5) and close(new_nu, right_nu, rtol=1e-5)):
            return f"the new site is wrong (α = {alpha:g}, old τ = {tau:g}, ν = {nu:g}): cavity, moments, target, in this order."
        dtau, dnu, Va = right_tau - tau, right_nu - nu, V @ a
        right_V = V - np.outer(Va, Va) * dtau / (1 + dtau * s)
        if tau and close(new_V, V - np.outer(Va, Va) * right_tau / (1 + right_tau * s)):
            return "the old site is still in V: multiply only the change, τ_new − τ_old, in."
        if not close(new_V, right_V, rtol=1e-5) or not close(new_m, m + Va * (dnu - dtau * mu) / (1 + dtau * s), rtol=1e-5):
            return (f"the new site is right, the new m and V are not (rank of V: {rank}). The factor that came in has the "
                    "precision τ_new − τ_old along a; Sherman and Morrison know what it does, also where V has no inverse.")


def _site(y, mu, s, h, tau, nu, alpha):
    """New τ and ν of one probit datum, and its c and cavity variance."""
    c = 1 - alpha * tau * s
    mu_out, s_out = (mu - alpha * nu * s) / c, s / c
    _, d1, d2 = PROBIT.log_moment(y, mu_out, h + s_out, alpha)
    shrink = 1 + alpha * d2 * s_out
    return float(-d2 / shrink), float((d1 - d2 * mu_out) / shrink), c, s_out


@checker("sc-7-walk")
def walk(answer):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (200, 2))
    fields = np.sign(np.sin(np.pi * X).prod(axis=1))
    y = np.where(rng.uniform(size=200) < 0.05, -fields, fields)
    start = SquaredExponential(4.0, [0.5, 0.5])
    kernel, Z = as_tuple(called(answer, X, y, 12, start), 2, "a kernel and pseudo-inputs Z")
    Z = as_array(Z, (12, 2))
    if not hasattr(kernel, "variance"):
        raise Feedback("first in the tuple comes the kernel, for example model.kernel.")
    bound = power_ep.infer(kernel, Z, X, y, PROBIT, alpha=0.0, max_sweeps=1000).log_evidence
    if bound < -127:
        return (f"your kernel and pseudo-inputs have a bound of {bound:.0f} at α = 0; a coin has -139, learning at α = 0 from "
                "the start -135, and a walk down the dial more than -127.")
