"""Sparse EP on a fixed basis, where a number ρ leads from csato2002 to Power EP; and the Nyström method.

On a fixed basis csato2002's sparse EP is the update of `pepcore.sites` with another denominator: the site is computed
with the variance s\\ + ρh of f(x_n), in place of s\\, and then projected on the basis. ρ = 1 is csato2002 (in
regression the posterior of DTC and VFE, and VFE's bound), ρ = 0 is Power EP with alpha = 1 (in regression FITC). The
order of the data does not matter, so all sites may move at once, in a fraction of the time of `online.infer`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pepcore.features import Basis
from pepcore.gaussian import Array, cholesky_solve, log_determinant, safe_cholesky, solve_lower
from pepcore.kernels.base import Kernel
from pepcore.likelihoods.scalar import Likelihood
from pepcore.online.sequential import NO_GRADIENT, site_log_mass
from pepcore.posterior import Posterior
from pepcore.results import Fit
from pepcore.sites import ImproperCavityError, Sites, cavity, move, parallel, target
from pepcore.sweeps import run_sweeps
from pepcore.threads import one_blas_thread
from pepcore.validation import (
    check_fraction,
    check_inputs,
    check_jitter,
    check_kernel,
    check_likelihood,
    check_positive,
    check_sweeps,
    check_targets,
)


@dataclass(frozen=True, eq=False, repr=False)
class FixedBasisFit(Fit):
    """A `Fit` whose sites are those of csato2002; `alpha` is 1 whatever rho is, and other data cannot be added to it."""


@one_blas_thread
def infer(
    kernel: Kernel, Z: ArrayLike, X: ArrayLike, y: ArrayLike, likelihood: Likelihood, *,
    rho: float = 1.0, step: float = 1.0, tolerance: float = 1e-8, max_sweeps: int = 200, jitter: float = 1e-6,
    callback: Callable | None = None,
) -> FixedBasisFit:
    """Sparse EP on the basis Z with the sites of csato2002 (rho = 1), of Power EP (rho = 0), or in between.

    Parameters
    ----------
    Z, X, y : (M, D) basis vectors, (N, D) inputs, (N,) targets; for Probit, labels -1 and +1
    likelihood : an object as in `pepcore.likelihoods`, log-concave
    rho : float, in [0, 1]; part of the residual variance h that belongs to the process when a site is computed
    step, tolerance, max_sweeps, jitter, callback : as in `power_ep.infer`

    Returns a FixedBasisFit, without a gradient. Its `log_evidence` counts what the projections lose, ½ τ ρ h for each datum.
    Raises ValueError for wrong shapes, NaN, labels the likelihood does not accept, a rho outside [0, 1], a step,
    tolerance or max_sweeps out of range, a jitter outside [0, 1e-2]; NotPositiveDefiniteError if no jitter up to 1e-2 helps.
    Source: csato2002 sections 4.4 and 4.5; :eq:`cs-rho`, :eq:`cs-fine`.
    """
    check_kernel(kernel)
    check_likelihood(likelihood)
    X = check_inputs(X)
    Z = check_inputs(Z, "Z", columns=X.shape[1], copy=True)
    y = likelihood.validate(check_targets(y, len(X)))
    options = check_sweeps(step, tolerance, max_sweeps)
    basis = Basis.build(kernel, Z, check_jitter(jitter))
    A, h = basis.features(X, solve=True)  # h may be added to the noise alone, so errors in h count if that is small
    evaluate = partial(_evaluate, A, h, y, likelihood, check_fraction(rho, "rho"))
    state, ending = run_sweeps(evaluate, parallel, Sites.flat(len(X)), **options, callback=callback)
    posterior = Posterior(basis, state.mean, state.precision_cholesky)
    return FixedBasisFit(state.log_evidence, posterior, likelihood, 1.0, state.sites, NO_GRADIENT, **ending)


class _State(NamedTuple):
    """Everything that follows from the sites."""

    sites: Sites
    mean: Array  # (M,), m
    precision_cholesky: Array  # (M, M), R Rᵀ = V⁻¹
    log_evidence: float
    target: Sites
    move: Array  # (2, N), from the sites to the target


def _evaluate(A: Array, h: Array, y: Array, likelihood: Likelihood, rho: float, sites: Sites) -> _State:
    """Posterior, evidence and targets for given sites; source: csato2002 eqs (109) to (114), projected by (126)."""
    if not np.all(sites.tau >= 0):
        raise ImproperCavityError("a site has a negative precision: the likelihood is not log-concave there")
    R, _ = safe_cholesky(np.eye(len(A)) + (A * sites.tau) @ A.T, name="I + A diag(tau) A'")
    mean = cholesky_solve(R, A @ sites.nu)
    white = solve_lower(R, np.array(A, order="F"))
    mu, s = mean @ A, np.einsum("mn,mn->n", white, white)
    cavity_mean, cavity_variance = cavity(mu, s, sites, 1.0)
    l, d1, d2 = likelihood.log_moment(y, cavity_mean, cavity_variance + h, 1.0)
    matched = cavity_variance + rho * h
    goal = target(cavity_mean, matched, d1, d2, 1.0, likelihood.shrinkage(d2, matched, 1.0, (1 - rho) * h))

    log_heights = l - site_log_mass(sites.tau, sites.nu, cavity_mean, matched) - 0.5 * rho * sites.tau * h
    m_precision_m = ((R.T @ mean) ** 2).sum()
    log_evidence = log_heights.sum() + 0.5 * (m_precision_m - log_determinant(R))
    return _State(sites, mean, R, float(log_evidence), goal, move(sites, goal, mu, s))


@one_blas_thread
def nystrom(
    kernel: Kernel, Z: ArrayLike, X: ArrayLike, y: ArrayLike, Xs: ArrayLike, *, noise: float = 0.1, jitter: float = 1e-6
) -> tuple[Array, Array]:
    """Regression with K replaced by its Nyström approximation AᵀA, and nothing else: for comparison only.

    The covariances of Xs with X stay exact, so the whole is no Gaussian process: a variance may come out negative.
    Arguments as in `power_ep.regression`, with basis vectors Z (M, D); Xs is (S, D).

    Returns mean kᵀ(σ²I + AᵀA)⁻¹y (S,) and variance k(x, x) − kᵀ(σ²I + AᵀA)⁻¹k (S,) with k = k(X, x).
    Raises ValueError for wrong shapes, NaN, a noise that is not positive, a jitter outside [0, 1e-2];
    NotPositiveDefiniteError if no jitter up to 1e-2 helps.
    Source: csato2002 eqs (133) and (134); :eq:`cs-nystrom`.
    """
    check_kernel(kernel)
    X = check_inputs(X)
    Z = check_inputs(Z, "Z", columns=X.shape[1])
    Xs = check_inputs(Xs, "Xs", columns=X.shape[1])
    y = check_targets(y, len(X))
    noise = check_positive(noise, "noise")
    A, _ = Basis.build(kernel, Z, check_jitter(jitter)).features(X)
    R, _ = safe_cholesky(noise * np.eye(len(A)) + A @ A.T, name="noise I + A A'")
    k = kernel(X, Xs)
    white_y, white_k = (solve_lower(R, np.array(A @ b, order="F")) for b in (y, k))
    mean = (k.T @ y - white_k.T @ white_y) / noise  # (σ²I + AᵀA)⁻¹ = (I − Aᵀ(σ²I + AAᵀ)⁻¹A)/σ²
    variance = kernel.diagonal(Xs) - (np.einsum("ns,ns->s", k, k) - np.einsum("ms,ms->s", white_k, white_k)) / noise
    return mean, variance
