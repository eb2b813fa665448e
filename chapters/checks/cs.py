"""Checkers of the chapter "Sparse EP by projection"."""

import numpy as np
from exercises import Feedback, as_array, as_function, checker, close

from pepcore import datasets, exact, online
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Gaussian


def random_process(seed, M=4):
    """K (M, M), alpha (M,), C (M, M) of a process that has seen two data per basis vector."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(M, M))
    K = root @ root.T / M + 0.3 * np.eye(M)
    P = rng.normal(size=(2 * M, M))
    Lambda = P.T @ (rng.uniform(0.2, 1.5, 2 * M)[:, None] * P)
    both = np.linalg.inv(np.eye(M) + Lambda @ K)
    return K, both @ rng.normal(size=M), -both @ Lambda


def datum(seed, K):
    """k (M,), own, q and r of a new datum that is neither in the span nor far from it."""
    rng = np.random.default_rng(seed)
    k = K @ rng.normal(size=len(K)) / len(K)
    return k, float(k @ np.linalg.solve(K, k)) + 0.4, 0.7, -0.45


def called(function, *arguments):
    """What the reader's function returns for copies of these arguments, or feedback when it is nothing."""
    result = as_function(function)(*(np.copy(a) if np.ndim(a) else a for a in arguments))
    if result is None:
        raise Feedback("the function returns nothing yet.")
    return result


def process(result, M):
    """alpha (M,) and C (M, M) out of what the reader's function returned."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise Feedback(f"two things are asked for, as a tuple: alpha of shape ({M},) and C of shape ({M}, {M}).")
    return as_array(result[0], (M,)), as_array(result[1], (M, M))


def same(mine, theirs):
    return close(mine[0], theirs[0], rtol=1e-8) and close(mine[1], theirs[1], rtol=1e-8)


@checker("cs-1-first")
def first_label(answer):
    alpha, C, tau = as_array(answer, (3,))
    q = np.sqrt(2 / np.pi) / np.sqrt(5)
    r = -(q**2)
    if close(alpha, np.sqrt(2 / np.pi), rtol=0.03):
        return "the label sees f through a blur of variance 1: the slope is that of Φ(m/√(1 + σ²))."
    if not close(alpha, q, rtol=0.03):
        return "α is q, the slope of log Φ(m/√(1 + σ²)) at m = 0, with σ² = 4 and nothing learnt before."
    if close(C, -r, rtol=0.03):
        return "C has the wrong sign: a datum takes variance away."
    if not close(C, r, rtol=0.03):
        return "C is r, the second derivative; at m = 0 it is minus the square of the first."
    if close(tau, -r, rtol=0.03):
        return "τ is not −r: the site must be divided by what the prior knew already, 1 + rσ²."
    if not close(tau, -r / (1 + 4 * r), rtol=0.03):
        return "the third number is τ = −r/(1 + rσ²), with the variance of the prior, 4."


@checker("cs-2-include")
def include(answer):
    K, alpha, C = random_process(2)
    k, _, q, r = datum(3, K)
    mine = process(called(answer, alpha, C, k, q, r), 5)
    s = np.append(C @ k, 1.0)

    def updated(s, q=q, r=r):
        return np.append(alpha, 0) + q * s, np.pad(C, (0, 1)) + r * np.outer(s, s)

    if same(mine, updated(s)):
        return None
    if same(mine, updated(np.append(C @ k, 0.0))):
        return "the last element of g is 1: the newcomer acts too."
    if same(mine, updated(np.append(k, 1.0))):
        return "g holds C k above the 1, not k: the process passes on what it has learnt."
    if same(mine, updated(s, r=-r)):
        return "C loses: r is negative already, do not subtract once more."
    if close(mine[0], updated(s)[0], rtol=1e-8):
        return "alpha is right, C is not: it grows by r g gᵀ."
    return "neither alpha nor C is right: with g = (C k, 1) they grow by q g and r g gᵀ."


@checker("cs-3-prune")
def prune(answer):
    for i in (1, 3, 0):
        K, alpha, C = random_process(4 + i)
        Q, r = np.linalg.inv(K), np.arange(4) != i
        mine = process(called(answer, alpha, C, K, i), 3)
        both = (Q + C)[r, i]
        Q_stay = np.linalg.inv(K[np.ix_(r, r)])
        right = (
            alpha[r] - both * alpha[i] / (Q + C)[i, i],
            (Q + C)[np.ix_(r, r)] - np.outer(both, both) / (Q + C)[i, i] - Q_stay,
        )
        R = np.linalg.solve(K[np.ix_(r, r)], K[r])  # K_rr⁻¹ K_r.
        marginal = R @ alpha, R @ C @ R.T
        if same(mine, right):
            continue
        if same(mine, marginal):
            return "this keeps the marginal of what stays, KL(full ‖ pruned). Condition on the coefficient being zero."
        if same(mine, (alpha[r], C[np.ix_(r, r)])):
            return "rows and columns were dropped and nothing was told of it. Coefficients are correlated: condition."
        if close(mine[1] + Q_stay, right[1] + np.linalg.inv(K)[np.ix_(r, r)], rtol=1e-8):
            return "subtract the prior of those that stay, the inverse of K_rr; a block of K⁻¹ is something else."
        if close(mine[0], right[0], rtol=1e-8):
            return f"alpha is right, C is not (i = {i}). C + K⁻¹ is conditioned, then the new K⁻¹ is taken off."
        return f"not the process that is closest (i = {i}). The coefficients are N(alpha, C + K⁻¹); set c_i = 0."
    return None


@checker("cs-4-project")
def project(answer):
    K, alpha, C = random_process(8)
    k, own, q, r = datum(9, K)
    e = np.linalg.solve(K, k)
    s, h, v = C @ k + e, own - k @ e, own + k @ C @ k
    mine = process(called(answer, alpha, C, K, k, own, q, r), 4)

    def updated(eta, s=s):
        return alpha + q * eta * s, C + r * eta * np.outer(s, s)

    if same(mine, updated(1 / (1 + r * h))):
        return None
    if same(mine, updated(1.0)):
        return "that is the update without η: it matches moments at the basis, and leads to FITC."
    if same(mine, updated(1 / (1 + r * v))):
        return "η has the novelty h in it, not the predictive variance σ²."
    if same(mine, updated(1 + r * h)):
        return "η is one over that: it makes the update stronger, not weaker."
    if same(mine, updated(1 / (1 + r * h), C @ k)):
        return "ĝ lacks ê = K⁻¹k: nobody acts for the newcomer."
    if same(mine, updated(1 / (1 - r * h))):
        return "the sign in η is turned round: r is negative, so η = 1/(1 + r h) is larger than 1."
    return "not the projected update. ĝ = C k + K⁻¹k, and both changes carry η = 1/(1 + r h)."


@checker("cs-5-disguise")
def disguise(answer):
    alpha, noise, tau_ratio = as_array(answer, (3,))
    if close(alpha, 0.3):
        return "ρ = 1 is VFE, and VFE is the power 0: the two dials run against each other."
    if not close(alpha, 0.7):
        return "the power follows from comparing d = σ² + (1 − ρ)h with α h + σ²."
    if close(noise, 0.25):
        return "the share of the residual that counts as noise is 1 − ρ, not ρ."
    if not close(noise, 0.45):
        return "the datum enters with the noise σ² + (1 − ρ)h."
    if close(tau_ratio, 1 / 6):
        return "turn the ratio round: without η the site is the weaker one, and it stands below."
    if not close(tau_ratio, 6.0):
        return "the precisions are 1/σ² at ρ = 1 and 1/(σ² + h) at ρ = 0; their ratio is asked for."


@checker("cs-6-directions")
def directions(answer):
    rng = np.random.default_rng(11)
    for i in (2, 0):
        K, _, _ = random_process(12 + i)
        P, r = rng.normal(size=(6, 4)), np.arange(4) != i
        mine = as_array(called(answer, P, K, i))
        e = np.linalg.solve(K[np.ix_(r, r)], K[r, i])
        if mine.shape != (6, 3):
            return f"one row per datum and one column per basis vector that stays is asked for, (6, 3); got {mine.shape}."
        if close(mine, P[:, r] + np.outer(P[:, i], e), rtol=1e-8):
            continue
        if close(mine, P[:, r]):
            return "the column was dropped. Whoever leaned on this basis vector must lean on its replacement now."
        if close(mine, P[:, r] - np.outer(P[:, i], e), rtol=1e-8):
            return "the sign is turned round: the replacement is added in the place of the one that leaves."
        Q = np.linalg.inv(K)
        if close(mine, P[:, r] + np.outer(P[:, i], Q[r, i] / Q[i, i]), rtol=1e-8):
            return "with Q = K⁻¹ the replacement is −Q_ri/Q_ii; the minus is missing."
        return f"not the projected directions (i = {i}): φ_i is replaced by its projection on the others, K_rr⁻¹ K_ri."
    return None


@checker("cs-7-nystrom")
def nystrom(answer):
    if not isinstance(answer, tuple | list) or len(answer) != 4:
        raise Feedback("four things are asked for, as a tuple: places z, inputs x, one new place, and the noise.")
    z, x, new, noise = (np.atleast_1d(as_array(part)).ravel() for part in answer)
    if new.size != 1 or noise.size != 1:
        return "the third is one place and the fourth one noise variance."
    if z.size == 0 or x.size == 0:
        return "at least one basis vector and one datum are needed."
    if not (np.isfinite(z).all() and np.isfinite(x).all() and np.isfinite(new).all() and 1e-3 <= noise[0] <= 1e3):
        return "places must be finite, and the noise variance between 0.001 and 1000."
    k = SquaredExponential(1.0, 1.0)
    z, x, new = z[:, None], x[:, None], new[:, None]
    k_xz = k(x, z)
    smooth = k_xz @ np.linalg.solve(k(z) + 1e-10 * np.eye(len(z)), k_xz.T)
    towards = k(x, new)[:, 0]
    variance = 1.0 - towards @ np.linalg.solve(smooth + noise[0] * np.eye(len(x)), towards)
    if not variance < 0:
        return f"the variance is {variance:.3g}. Put the new place among data which the basis cannot represent."


@checker("cs-8-order")
def order(answer):
    line = as_array(answer, (100,))
    if not np.array_equal(np.sort(line), np.arange(100)):
        return "an order holds each of the numbers 0 to 99 once."
    toy = datasets.snelson_like(seed=0, N=100)
    kernel = SquaredExponential(variance=0.7, lengthscales=0.6)
    target, _ = exact.regression(kernel, toy.X, toy.y, noise=0.06).predict_f(toy.X)
    fit = online.infer(kernel, toy.X, toy.y, Gaussian(0.06), budget=6, novelty=0.01, order=line.astype(int))
    distance = np.sqrt(np.mean((fit.predict_f(toy.X)[0] - target) ** 2))
    if not distance < 0.1:
        return f"its distance is {distance:.2f}, and 0.1 is asked for. Whoever comes first has time to become important."
