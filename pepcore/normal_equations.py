"""What sites add up to, the posterior that follows, and what is left of it without the site of one datum.

q(v) = N(m, V) with V⁻¹ = I + A diag(τ) Aᵀ and V⁻¹m = A ν.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

from pepcore.features import Features, add_up, grouped, in_order
from pepcore.gaussian import (
    Array,
    add_gram,
    add_outer,
    cholesky_solve,
    inverse_lower,
    multiply_lower,
    safe_cholesky,
    solve_lower,
)
from pepcore.sites import ImproperCavityError, Sites

SHARP = 0.1  # part of its variance that a datum's direction keeps; below it, a difference from 1 loses digits
SAME = 1e-6  # relative: the sums over other data differ by more


def posterior_of(features: Features, sites: Sites) -> tuple[Array, Array]:
    """m (M,) and the factor C (M, M) of V⁻¹ = I + A diag(τ) Aᵀ = C Cᵀ; source: :eq:`gp-posterior`, :eq:`sc-posterior`."""
    return solve_posterior(*lower_sums(features, sites), concave=sites.tau.min() >= 0)


def natural_parameters(features: Features, sites: Sites) -> tuple[Array, Array]:
    """Σ τ a aᵀ (M, M) and Σ ν a (M,): what the sites add to the prior's natural parameters I and 0."""
    precision, shift = lower_sums(features, sites)
    return precision + np.tril(precision, -1).T, shift


def lower_sums(features: Features, sites: Sites) -> tuple[Array, Array]:
    """Sum τ a aᵀ (M, M), its lower triangle alone, and ν a (M,) over the data: what `solve_posterior` reads."""
    M = len(features.basis.Z)

    def sums(group: list) -> tuple:
        precision, shift = np.zeros((M, M), order="F"), np.zeros(M)
        for rows in group:
            A, _ = features.load(rows)
            tau = sites.tau[rows]
            for sign, found in ((1.0, tau.max() > 0), (-1.0, tau.min() < 0)):
                if found:
                    add_gram(precision, A * np.sqrt(np.maximum(sign * tau, 0.0)), sign)
            shift += A @ sites.nu[rows]
        return precision, shift

    return add_up(sums, grouped(features.rows()))


def solve_posterior(precision: Array, shift: Array, concave: bool) -> tuple[Array, Array]:
    """m (M,) and the Cholesky factor C (M, M) of I + precision, of which only the lower triangle is read.

    If `concave`, precision is a sum of non-negative terms and a failure can only be rounding, which a jitter mends;
    otherwise it means that there is no posterior, and ImproperCavityError is raised.
    """
    precision = np.array(precision, order="F")
    precision.flat[:: len(shift) + 1] += 1
    if concave:
        C, _ = safe_cholesky(precision, name="I + A diag(tau) A'")
    else:
        C, failed = lapack.dpotrf(precision, lower=1, clean=1)
        if failed:
            raise ImproperCavityError("sites of negative precision leave no proper posterior: I + A diag(tau) A' is not "
                                      "positive definite; start from other sites (None for the prior), or take a smaller "
                                      "step or a log-concave likelihood")
    return cholesky_solve(C, shift), C


def project(features: Features, mean: Array, C_inverse: Array, out: Array | None = None) -> Array:
    """μ, s and h, (3, N), written to `out` if given: posterior mean and variance of aᵀv from m (M,) and C⁻¹ (M, M)."""
    mu, s, h = found = np.empty((3, len(features.X))) if out is None else out

    def fill(rows: slice) -> None:
        A, h[rows] = features.load(rows)
        white = multiply_lower(C_inverse, np.array(A, order="F"))
        mu[rows], s[rows] = mean @ A, np.einsum("nm,nm->n", white.T, white.T)

    list(in_order(fill, features.rows()))
    return found


def along(mean: Array, C_inverse: Array, weight_mean: Array, weight_Va: Array) -> Callable:
    """Make the function (rows, A) -> m weight_meanᵀ + V A diag(weight_Va), a fresh (M, B) array; the weights are (N,)."""

    def derivative(rows: Any, A: Array) -> Array:
        dA = multiply_lower(C_inverse, np.array(A, order="F"))
        dA *= weight_Va[rows]
        return add_outer(multiply_lower(C_inverse, dA, transposed=True), mean, weight_mean[rows])

    return derivative


def without_own_site(features: Features, sites: Sites, mean: Array, C: Array) -> tuple[Array, Array]:
    """Marginals of aᵀv under the posterior without the whole site of each datum in turn: mean (N,) and variance (N,).

    s\\ = s/c and μ\\ = μ − (ν − τμ) s\\ with c = 1 − τs. Where c is small these differences lose digits. Such data are few,
    since Σ τs <= M; their sites are multiplied into the posterior of all others anew. With the mean μ₀ and the covariance
    K of their aᵀv there, B = I + √τ K √τ gives c = (B⁻¹)_nn and ν − τμ = √τ B⁻¹(ν/√τ − √τ μ₀) without these differences.

    `features` are those of the N data that made the posterior, with mean (M,) and C (M, M) as `posterior_of` returns them.

    Raises ValueError if the sites do not make this posterior on these features; ImproperCavityError if all sites but one
    leave no proper posterior, which needs sites of negative precision.
    Source: :eq:`loo-cavity`, :eq:`loo-sharp`.
    """
    mu, s, _ = project(features, mean, inverse_lower(C))
    shift, size = np.zeros(len(mean)), 0.0
    for rows, A, _ in features.blocks():
        shift += A @ sites.nu[rows]
        size += np.abs(sites.nu[rows]) @ np.sqrt(np.einsum("mn,mn->n", A, A))
    if np.linalg.norm(C @ (C.T @ mean) - shift) > SAME * size:
        raise ValueError("X must be the inputs of the fit, in the same order: its sites do not make its posterior on these rows")
    kept, pull = 1 - sites.tau * s, sites.nu - sites.tau * mu
    sharp = np.flatnonzero(kept < SHARP)
    if len(sharp) and sites.tau.min() >= 0:
        kept[sharp], pull[sharp], s[sharp], mu[sharp] = _among_the_others(features, sites, sharp)
    check_left_out(kept)
    return mu - pull * s / kept, s / kept


def _among_the_others(features: Features, sites: Sites, sharp: np.ndarray) -> tuple[Array, Array, Array, Array]:
    """c, ν − τμ, s and μ of the data `sharp` (S,), (S,) each, from the posterior of all others."""
    tau, nu = sites.tau[sharp], sites.nu[sharp]
    others = Sites(sites.tau.copy(), sites.nu.copy())
    others.tau[sharp] = others.nu[sharp] = 0.0
    mean, C = posterior_of(features, others)
    A, _ = features.basis.features(features.X[sharp])
    before, white, root = mean @ A, solve_lower(C, A), np.sqrt(tau)
    K = white.T @ white
    L, _ = safe_cholesky(np.eye(len(tau)) + root[:, None] * K * root, name="I + √τ K √τ")
    L_inverse = inverse_lower(L)
    kept = np.einsum("ij,ij->j", L_inverse, L_inverse)
    pull = root * (L_inverse.T @ (L_inverse @ (nu / root - root * before)))
    return kept, pull, (1 - kept) / tau, before + K @ pull


def check_left_out(kept: Array) -> None:
    """Raise ImproperCavityError, which names the data, where c = 1 − τs (N,) leaves no posterior without the datum's site."""
    wrong = np.flatnonzero(~(kept > 0))
    if len(wrong):
        shown = ", ".join(map(str, wrong[:5])) + (", ..." if len(wrong) > 5 else "")
        raise ImproperCavityError("without the whole site of one datum the others leave no proper posterior, for "
                                  f"{len(wrong)} of {len(kept)} data: {shown}; infer with alpha = 1, whose own "
                                  "cavities these are, or with a log-concave likelihood, or measure on data held out")
