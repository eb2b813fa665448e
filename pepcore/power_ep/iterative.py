"""Sparse Power EP for any likelihood: the one update, iterated on the features (A, h).

q(v) = N(m, V) with V⁻¹ = I + A diag(τ) Aᵀ. A sweep costs two passes over A, O(NM²), and keeps nothing larger than A.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pepcore.features import Features, feature_map, pull_back_blocks
from pepcore.gaussian import Array, cholesky_solve, inverse_lower, log1p_ratio, log_determinant
from pepcore.kernels.base import Kernel
from pepcore.likelihoods.scalar import Likelihood
from pepcore.normal_equations import along, posterior_of, project
from pepcore.posterior import Posterior
from pepcore.results import Fit
from pepcore.sites import Sites, cavity, check_sites, move, parallel, rank_one_update, target
from pepcore.sweeps import run_sweeps
from pepcore.threads import one_blas_thread
from pepcore.validation import (
    check_alpha,
    check_inputs,
    check_jitter,
    check_kernel,
    check_likelihood,
    check_sweeps,
    check_targets,
)


@one_blas_thread
def infer(
    kernel: Kernel, Z: ArrayLike, X: ArrayLike, y: ArrayLike, likelihood: Likelihood, *,
    alpha: ArrayLike = 0.5, schedule: str = "parallel", sites: Sites | None = None, step: float = 1.0,
    tolerance: float = 1e-8, max_sweeps: int = 200, jitter: float = 1e-6, stream: bool = False,
    callback: Callable | None = None,
) -> Fit:
    """Sparse Power EP for any likelihood and any power in [0, 1].

    alpha = 1 is EP; alpha = 0 is variational inference by natural gradients, and log_evidence is then a lower bound.
    Convergence is never certain, but usual for likelihoods that are log-concave in f.

    Parameters
    ----------
    Z, X, y : (M, D) pseudo-inputs, (N, D) inputs, (N,) targets; for Probit, labels -1 and +1
    likelihood : an object as in `pepcore.likelihoods`, for example Probit()
    alpha : float, or (N,) for a private power per datum
    schedule : "parallel", "alternating" or "sequential"
        "parallel" updates all sites from one posterior. "alternating" does the same and then updates their means again:
        at least a third fewer sweeps, and less time where moments are cheap (closed form) or M is large. "sequential"
        renews the posterior after every site, which is slower and more patient. All have the same fixed points.
    sites : Sites to start from, for example those of a fit at nearby hyper-parameters; None starts from the prior
    step : longest damped step, in (0, 1]; it is shortened where needed, see `pepcore.sweeps`
    tolerance : converged when no site moves by more (max over data of |τ* − τ| s and |γ* − γ| √s, γ = ν − τμ, s the variance of
        aᵀv), and the evidence has moved by no more in the last sweep (relative to its size, if that is above 1)
    jitter : added to the diagonal of K_uu, relative to the kernel's variance; it grows tenfold after each failure
    stream : recompute the features in each sweep instead of storing them: memory O(M² + N), besides a copy of X,
        instead of O(NM)
    callback : called before the first sweep and after each, with the dict that enters the history

    Returns a Fit; if it is not converged, `converged` is False and a RuntimeWarning says so.

    Raises
    ------
    ValueError for wrong shapes, NaN, a power outside [0, 1], targets the likelihood does not accept, an unknown schedule,
        a step, tolerance or max_sweeps out of range, a jitter outside [0, 1e-2], sites for other data
    ImproperCavityError if the sites given to start from leave no proper cavity
    NotPositiveDefiniteError if K_uu cannot be factorised even with a jitter of 1e-2

    Source: bui2017 sections 3.3 and 3.5, appendices D to G; :eq:`sc-moment`, :eq:`sc-posterior`, :eq:`pep-step`,
    :eq:`sc-tidy`, :eq:`sc-gradient`, :eq:`sc-mean-step`.
    """
    check_likelihood(likelihood)
    check_kernel(kernel, others=("Z", *likelihood.parameters))
    X = check_inputs(X, "X", copy=True)
    Z = check_inputs(Z, "Z", columns=X.shape[1], copy=True)
    y = likelihood.validate(check_targets(y, len(X), copy=True))
    alpha, jitter = check_alpha(alpha, size=len(X)), check_jitter(jitter)
    options = check_sweeps(step, tolerance, max_sweeps)
    if schedule not in tuple(SCHEDULES):
        raise ValueError(f"schedule = {schedule!r} is unknown; choose 'parallel', 'alternating' or 'sequential'")
    features = feature_map(kernel, Z, X, jitter, stream)
    start = _marginals(features, Sites.flat(len(X)) if sites is None else check_sites(sites, (len(X),)))
    evaluate = partial(_evaluate, y, likelihood, alpha)
    propose = partial(SCHEDULES[schedule], features, y, likelihood, alpha)
    state, ending = run_sweeps(evaluate, propose, start, **options, callback=callback)
    posterior = Posterior(features.basis, state.mean, state.precision_cholesky)
    gradient = partial(gradient_of, features, y, likelihood, alpha, state)
    return Fit(state.log_evidence, posterior, likelihood, alpha, state.sites, gradient, **ending)


class State(NamedTuple):
    """Everything that follows from the sites."""

    sites: Sites
    mean: Array  # (M,), m
    precision_cholesky: Array  # (M, M), C Cᵀ = V⁻¹
    cavity_mean: Array  # (N,), μ\ of aᵀv and of f
    cavity_variance: Array  # (N,), h + s\, of f
    kept: Array  # (N,), c = 1 − α τ s
    d1: Array  # (N,), derivatives of l_α in the cavity mean
    d2: Array  # (N,)
    log_evidence: float
    target: Sites
    move: Array  # (2, N), from the sites to the target


class Marginals(NamedTuple):
    """The posterior of v given the sites, and its marginals at the data."""

    sites: Sites
    mean: Array  # (M,), m
    precision_cholesky: Array  # (M, M), C
    mu: Array  # (N,), mean of aᵀv
    s: Array  # (N,), its variance
    h: Array  # (N,)


def local_moments(
    features: Features, y: Array, likelihood: Likelihood, alpha: float | Array, sites: Sites, *,
    mean: Array, C: Array, weight: float = 1.0,
) -> State:
    """State of the data in `features` from the posterior N(mean, (C Cᵀ)⁻¹) of v; each datum counts `weight` times."""
    marginals = Marginals(sites, mean, C, *project(features, mean, inverse_lower(C)))
    return _evaluate(y, likelihood, alpha, marginals, weight)


def _marginals(features: Features, sites: Sites) -> Marginals:
    mean, C = posterior_of(features, sites)
    return Marginals(sites, mean, C, *project(features, mean, inverse_lower(C)))


def _evaluate(
    y: Array, likelihood: Likelihood, alpha: float | Array, marginals: Marginals, weight: float = 1.0
) -> State:
    """Cavities, moments, targets and evidence.

    The evidence is −½ log|V⁻¹| − ½ mᵀm + Σ (l − log(c)/(2α) + ½ α γ² s\\) with γ = ν − τμ: the energy of
    :eq:`sc-energy` without the terms that would cancel in it, as bᵀm = mᵀm + Σ τμ².

    Source: :eq:`sc-tidy`, :eq:`sc-moment`.
    """
    sites, mean, C, mu, s, h = marginals
    cavity_mean, reduced = cavity(mu, s, sites, alpha)
    cavity_variance = h + reduced
    l, d1, d2 = likelihood.log_moment(y, cavity_mean, cavity_variance, alpha)
    goal = target(cavity_mean, reduced, d1, d2, alpha, likelihood.shrinkage(d2, reduced, alpha, h))

    removed, gamma = sites.tau * s, sites.nu - sites.tau * mu
    local = l + 0.5 * removed * log1p_ratio(-alpha * removed) + 0.5 * alpha * gamma**2 * reduced
    log_evidence = float(-0.5 * log_determinant(C) - 0.5 * mean @ mean + weight * local.sum())
    kept = 1 - alpha * removed
    return State(sites, mean, C, cavity_mean, cavity_variance, kept, d1, d2, log_evidence, goal, move(sites, goal, mu, s))


def _parallel(
    features: Features, y: Array, likelihood: Likelihood, alpha: float | Array, state: State, step: float
) -> Marginals:
    return _marginals(features, parallel(state, step))


def _alternating(
    features: Features, y: Array, likelihood: Likelihood, alpha: float | Array, state: State, step: float
) -> Marginals:
    """Move all sites, then their means once more with the precisions, and so V, held fixed: O(NM) and the moments.

    Where τ should grow too, the mean would overshoot by the factor by which s should shrink; it is divided out.

    Source: :eq:`sc-mean-step`.
    """
    marginals = _parallel(features, y, likelihood, alpha, state, step)
    tau, nu = marginals.sites.tau, marginals.sites.nu
    cavity_mean, reduced = cavity(marginals.mu, marginals.s, marginals.sites, alpha)
    _, d1, d2 = likelihood.log_moment(y, cavity_mean, marginals.h + reduced, alpha)
    goal = tau * cavity_mean + d1 / (1 - alpha * tau * marginals.s)
    shrinkage = likelihood.shrinkage(d2, reduced, alpha, marginals.h)
    growth = np.maximum(target(cavity_mean, reduced, d1, d2, alpha, shrinkage).tau - tau, 0.0)
    sites = Sites(tau, nu + step * (goal - nu) / (1 + growth * marginals.s))

    C, parts = marginals.precision_cholesky, [A @ sites.nu[rows] for rows, A, _ in features.blocks()]
    mean = cholesky_solve(C, np.sum(parts, axis=0))
    mu = np.concatenate([mean @ A for _, A, _ in features.blocks()])
    return marginals._replace(sites=sites, mean=mean, mu=mu)


def _sequential(
    features: Features, y: Array, likelihood: Likelihood, alpha: float | Array, state: State, step: float
) -> Marginals:
    """Move one site after the other, each from the posterior that the last one left (rank-one changes of V).

    Source: :eq:`ep-posterior`.
    """
    tau, nu, alphas = state.sites.tau.copy(), state.sites.nu.copy(), np.broadcast_to(alpha, len(y))
    C_inverse = inverse_lower(state.precision_cholesky)
    mean, V = state.mean.copy(), np.asfortranarray(C_inverse.T @ C_inverse)
    for rows, A, h in features.blocks():
        for n, a, residual in zip(range(rows.start, rows.stop), A.T, h, strict=True):
            one = slice(n, n + 1)
            site, Va, mu = Sites(tau[one], nu[one]), V @ a, mean @ a
            s = a @ Va
            cavity_mean, reduced = cavity(mu, s, site, alphas[one])
            _, d1, d2 = likelihood.log_moment(y[one], cavity_mean, residual + reduced, alphas[one])
            shrinkage = likelihood.shrinkage(d2, reduced, alphas[one], residual)
            moved = site.toward(target(cavity_mean, reduced, d1, d2, alphas[one], shrinkage), step)
            dtau, dnu = (moved.tau - site.tau)[0], (moved.nu - site.nu)[0]
            tau[one], nu[one] = moved.tau, moved.nu

            rank_one_update(mean, V, Va, mu, s, tau=dtau, nu=dnu)
    return _marginals(features, Sites(tau, nu))


SCHEDULES = {"parallel": _parallel, "alternating": _alternating, "sequential": _sequential}


@one_blas_thread
def gradient_of(features: Features, y: Array, likelihood: Likelihood, alpha: float | Array, state: State) -> dict:
    """∂F/∂a = l' m\\ + (l'' + α l'²) V\\a and ∂F/∂h = ½ (l'' + α l'²), pulled back to kernel and Z.

    m\\ = m + α (τ μ\\ − ν) V a and V\\a = V a/c; l' and l'' are the derivatives of l_α. Derivatives through sites cancel at
    the fixed point, and the prior of v does not depend on any parameter. For the likelihood's own, ∂F/∂θ = Σ ∂l_α/∂θ.

    Source: :eq:`sc-gradient`, :eq:`sc-tied`.
    """
    sites, curvature = state.sites, state.d2 + alpha * state.d1**2
    along_Va = state.d1 * alpha * (sites.tau * state.cavity_mean - sites.nu) + curvature / state.kept
    slope = along(state.mean, inverse_lower(state.precision_cholesky), state.d1, along_Va)
    own = likelihood.parameter_gradient(y, state.cavity_mean, state.cavity_variance, alpha)
    gradient = pull_back_blocks(features, lambda rows, A, h: (slope(rows, A), 0.5 * curvature[rows]))
    return gradient | {key: float(value.sum()) for key, value in own.items()}
