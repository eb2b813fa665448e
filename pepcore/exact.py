"""Gaussian processes without sparsity: regression in closed form, and Power EP with one site per datum.

All sparse methods are checked against these references: O(N³) time, O(N²) memory, N up to some thousands.
The matrix that is factorised is B = I + √τ K √τ, whose eigenvalues are at least 1 however singular K is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pepcore.features import Basis
from pepcore.gaussian import (
    Array,
    cholesky_inverse,
    cholesky_solve,
    gram_lower,
    inverse_lower,
    log_determinant,
    log_ratio,
    safe_cholesky,
    solve_lower,
)
from pepcore.kernels.base import Kernel
from pepcore.likelihoods.scalar import Gaussian, Likelihood
from pepcore.normal_equations import check_left_out
from pepcore.posterior import Posterior
from pepcore.results import Fit, LeftOut
from pepcore.sites import ImproperCavityError, Sites, cavity, move, parallel, rank_one_update, target
from pepcore.sweeps import run_sweeps
from pepcore.validation import (
    check_alpha,
    check_inputs,
    check_jitter,
    check_kernel,
    check_likelihood,
    check_positive,
    check_sweeps,
    check_targets,
)


@dataclass(frozen=True, eq=False, repr=False)
class ExactFit(Fit):
    """A `Fit` with Z = X, whose sites are functions of f at the data themselves."""

    def _left_out(self, X: Array, y: Array) -> LeftOut:
        """s\\ = s/(1 − τs) and μ\\ = μ − γs\\ with γ = ν − τμ, without the jitter of the posterior's basis; :eq:`loo-cavity`."""
        basis = self.posterior.basis
        if not np.array_equal(X, basis.Z):
            raise ValueError("X must be the inputs of the fit, in the same order")
        K, root = basis.kernel(X), np.sqrt(self.sites.tau)
        L, _ = safe_cholesky(np.eye(len(K)) + root[:, None] * K * root, name="I + √τ K √τ")
        gamma, mean, variance, left, _ = _marginals(K, self.sites, root, L)
        check_left_out(left)
        variance = variance / left
        mean = mean - gamma * variance
        return LeftOut(mean, variance, self.likelihood.log_predictive(y, mean, variance))


def regression(kernel: Kernel, X: ArrayLike, y: ArrayLike, *, noise: float = 0.1, jitter: float = 1e-10) -> Fit:
    """Exact Gaussian-process regression; returns a Fit.

    Parameters
    ----------
    X, y : (N, D) inputs, (N,) targets
    noise : noise variance, > 0, in units of y²
    jitter : added to K in the posterior's basis, relative to the kernel's variance, and subtracted from the noise, so that it
        changes predictions only if the noise is as small. Evidence and gradient have none, unless K + noise I cannot be
        factorised without it.

    Raises ValueError for wrong shapes, NaN, a noise that is not positive, a jitter outside [0, 1e-2];
    NotPositiveDefiniteError if no jitter up to 1e-2 helps.
    Source: rasmussen2006 algorithm 2.1 and eq. (5.9); :eq:`gp-evidence`, :eq:`gp-evidence-gradient`, :eq:`gp-predict`.
    """
    check_kernel(kernel, others=("noise",))
    X = check_inputs(X, copy=True)
    y = check_targets(y, len(X))
    noise, jitter = check_positive(noise, "noise"), check_jitter(jitter)
    covariance = kernel(X)
    covariance[np.diag_indices_from(covariance)] += noise
    L, _ = safe_cholesky(covariance, scale=kernel.diagonal(X).mean(), name="K + noise I")
    white = solve_lower(L, y)
    log_evidence = -0.5 * (white @ white + log_determinant(L) + len(y) * np.log(2 * np.pi))
    sites = Sites(np.full(len(y), 1 / noise), y / noise)
    posterior = _posterior(kernel, X, sites, jitter)
    gradient = partial(_regression_gradient, kernel, X, L, white)
    return ExactFit(float(log_evidence), posterior, Gaussian(noise), 1.0, sites, gradient)


def _regression_gradient(kernel: Kernel, X: Array, L: Array, white: Array) -> dict:
    """dF/dK = ½(γγᵀ − (K + noise I)⁻¹), pulled back; the derivative in the noise is its trace."""
    gamma = solve_lower(L, white, transposed=True)
    dK = 0.5 * (np.outer(gamma, gamma) - cholesky_inverse(L))
    gradient, _ = kernel.vjp(X, X, dK)
    return gradient | {"noise": float(np.trace(dK))}


def infer(
    kernel: Kernel, X: ArrayLike, y: ArrayLike, likelihood: Likelihood, *,
    alpha: ArrayLike = 1.0, schedule: str = "parallel", step: float = 1.0, tolerance: float = 1e-8,
    max_sweeps: int = 200, jitter: float = 1e-10, callback: Callable | None = None,
) -> Fit:
    """Power EP with one Gaussian site per datum, for any log-concave likelihood and any power in [0, 1].

    alpha = 1 is EP; alpha = 0 is variational inference by natural gradients, and log_evidence is then a lower bound.

    Parameters
    ----------
    X, y : (N, D) inputs, (N,) targets; for Probit, labels -1 and +1
    likelihood, alpha, step, max_sweeps, callback : as in `power_ep.infer`
    schedule : "parallel" or "sequential", as there
    tolerance : as there, with s the posterior variance of f
    jitter : as in `regression`

    A likelihood that is not log-concave may ask for a site of negative precision. That is refused here, and the fit ends
    where it was, not converged; `power_ep.infer` takes such likelihoods.

    Returns a Fit; if it is not converged, `converged` is False and a RuntimeWarning says so.
    Raises ValueError for wrong shapes, NaN, a power outside [0, 1], labels the likelihood does not accept, an unknown
    schedule, a jitter outside [0, 1e-2], or a step, tolerance or max_sweeps out of range; NotPositiveDefiniteError if no
    jitter up to 1e-2 helps.
    Source: rasmussen2006 algorithms 3.5 and 3.6, section 5.5.2 for the gradient; bui2017 section 3.3;
    :eq:`ep-posterior`, :eq:`ep-evidence`, :eq:`ep-gradient`, :eq:`pep-energy`.
    """
    check_likelihood(likelihood)
    check_kernel(kernel, others=likelihood.parameters)
    X = check_inputs(X, copy=True)
    y = likelihood.validate(check_targets(y, len(X), copy=True))
    alpha, jitter = check_alpha(alpha, size=len(X)), check_jitter(jitter)
    options = check_sweeps(step, tolerance, max_sweeps)
    if schedule not in ("parallel", "sequential"):
        raise ValueError(f"schedule = {schedule!r} is unknown; choose 'parallel' or 'sequential'")

    K = kernel(X)
    evaluate = partial(_evaluate, K, y, likelihood, alpha)
    propose = parallel if schedule == "parallel" else partial(_sequential, K, y, likelihood, alpha)
    state, ending = run_sweeps(evaluate, propose, Sites.flat(len(y)), **options, callback=callback)
    posterior = _posterior(kernel, X, state.sites, jitter)
    gradient = partial(_fixed_point_gradient, kernel, X, y, likelihood, alpha, state)
    return ExactFit(state.log_evidence, posterior, likelihood, alpha, state.sites, gradient, **ending)


class _State(NamedTuple):
    """Everything that follows from the sites."""

    sites: Sites
    L: Array  # (N, N), L Lᵀ = B = I + √τ K √τ
    half: Array  # (N, N), L⁻¹ √τ K, so that Σ = K − halfᵀ half
    gamma: Array  # (N,), γ = ν − τμ = K⁻¹μ
    mean: Array  # (N,), μ = Σν
    variance: Array  # (N,), s = diag Σ
    cavity_mean: Array  # (N,)
    cavity_variance: Array  # (N,)
    log_evidence: float
    target: Sites
    move: Array  # (2, N), from the sites to the target


def _evaluate(K: Array, y: Array, likelihood: Likelihood, alpha: float | Array, sites: Sites) -> _State:
    """Posterior, evidence and targets for given sites.

    The evidence is −½ log|B| − ½ μᵀγ + Σ (l − log(c)/(2α) + ½ α γ² s\\) with γ = ν − τμ. It equals −½ log|B| + ½ νᵀΣν +
    Σ (l + site_energy), without the terms ν²/τ that cancel there and cost all digits when sites are sharp. For the
    same reason the cavity is c = 1 − α + α (1 − τs) and μ\\ = μ − αγs\\, in place of 1 − ατs and (μ − ανs)/c.

    Source: rasmussen2006 section 3.6.3; :eq:`ep-evidence`, :eq:`pep-energy`.
    """
    if not np.all(sites.tau >= 0):
        raise ImproperCavityError("a site has a negative precision: the likelihood is not log-concave there, and "
                                  "power_ep.infer takes such likelihoods")
    root = np.sqrt(sites.tau)
    L, _ = safe_cholesky(np.eye(len(K)) + root[:, None] * K * root, name="I + √τ K √τ")
    gamma, mean, variance, left, half = _marginals(K, sites, root, L)
    kept = 1 - alpha + alpha * left
    cavity_variance = variance / kept
    cavity_mean = mean - alpha * gamma * cavity_variance
    l, d1, d2 = likelihood.log_moment(y, cavity_mean, cavity_variance, alpha)
    goal = target(cavity_mean, cavity_variance, d1, d2, alpha, likelihood.shrinkage(d2, cavity_variance, alpha))

    removed = sites.tau * variance
    local = l + 0.5 * removed * log_ratio(kept, alpha * removed) + 0.5 * alpha * gamma**2 * cavity_variance
    log_evidence = -0.5 * log_determinant(L) - 0.5 * mean @ gamma + local.sum()
    cavities = cavity_mean, cavity_variance
    return _State(sites, L, half, gamma, mean, variance, *cavities, float(log_evidence), goal, move(sites, goal, mean, variance))


def _marginals(K: Array, sites: Sites, root: Array, L: Array) -> tuple[Array, Array, Array, Array, Array]:
    """γ = ν − τμ, μ = Kγ, s = diag Σ, 1 − τs and half = L⁻¹ √τ K; each site in the form that does not cancel at its τ."""
    sharp = sites.tau * np.diag(K) > 1
    half = solve_lower(L, np.array(root[:, None] * K, order="F"))
    half_inverse = inverse_lower(L)
    vague_nu = np.where(sharp, 0.0, sites.nu)
    pull = np.where(sharp, sites.nu, 0.0) / np.where(sharp, root, 1.0) - root * (K @ vague_nu)
    gamma = vague_nu + root * (half_inverse.T @ (half_inverse @ pull))  # both halves of (I + τK)⁻¹ν
    # s = k − k√τ B⁻¹ √τk where the site is vague, and (1 − (B⁻¹)_nn)/τ where it is sharp
    left = np.einsum("mn,mn->n", half_inverse, half_inverse)
    vague_variance = np.diag(K) - np.einsum("mn,mn->n", half, half)
    variance = np.where(sharp, (1 - left) / np.where(sharp, sites.tau, 1.0), vague_variance)
    return gamma, K @ gamma, variance, left, half


def _sequential(K: Array, y: Array, likelihood: Likelihood, alpha: float | Array, state: _State, step: float) -> Sites:
    """Move one site after the other, each from the posterior that the last one left (rank-one changes of Σ).

    Source: rasmussen2006 algorithm 3.5; :eq:`ep-posterior`.
    """
    tau, nu = state.sites.tau.copy(), state.sites.nu.copy()
    mean, covariance = state.mean.copy(), np.asfortranarray(K - state.half.T @ state.half)
    alphas = np.broadcast_to(alpha, len(y))
    for n in range(len(y)):
        one = slice(n, n + 1)
        site = Sites(tau[one], nu[one])
        cavity_mean, cavity_variance = cavity(mean[one], covariance[n, one], site, alphas[one])
        _, d1, d2 = likelihood.log_moment(y[one], cavity_mean, cavity_variance, alphas[one])
        shrinkage = likelihood.shrinkage(d2, cavity_variance, alphas[one])
        moved = site.toward(target(cavity_mean, cavity_variance, d1, d2, alphas[one], shrinkage), step)
        dtau, dnu = (moved.tau - site.tau)[0], (moved.nu - site.nu)[0]
        tau[one], nu[one] = moved.tau, moved.nu

        rank_one_update(mean, covariance, covariance[:, n].copy(), mean[n], covariance[n, n], tau=dtau, nu=dnu)
    return Sites(tau, nu)


def _fixed_point_gradient(
    kernel: Kernel, X: Array, y: Array, likelihood: Likelihood, alpha: float | Array, state: _State
) -> dict:
    """dF/dK = ½(γγᵀ − β) with β = (K + τ⁻¹)⁻¹ and γ = K⁻¹μ; the derivatives through the sites cancel at the fixed point.

    For the likelihood's own parameters dF/dθ = Σ ∂l_α/∂θ.

    Source: rasmussen2006 eq. (5.27); :eq:`ep-gradient`.
    """
    root = np.sqrt(state.sites.tau)
    dK = 0.5 * (np.outer(state.gamma, state.gamma) - root[:, None] * cholesky_inverse(state.L) * root)
    gradient, _ = kernel.vjp(X, X, dK)
    own = likelihood.parameter_gradient(y, state.cavity_mean, state.cavity_variance, alpha)
    return gradient | {key: float(value.sum()) for key, value in own.items()}


def _posterior(kernel: Kernel, X: Array, sites: Sites, jitter: float) -> Posterior:
    """Posterior of these sites on the basis Z = X; source: :eq:`gp-posterior`.

    With L Lᵀ = K + δI the jitter δ is part of the noise: K + 1/τ = L Lᵀ + (1/τ − δ). The features of X are the columns
    of Lᵀ, each site has the noise 1/τ − δ, and prediction has no trace of δ.
    """
    basis = Basis.build(getattr(kernel, "ff", kernel), X, jitter)  # its points are values of f, whatever the kernel's are
    delta = basis.jitter * kernel.diagonal(X).mean()
    # a noise below 2δ cannot be told from the jitter and is left as it is
    kept = np.where(delta * sites.tau < 0.5, 1 - delta * sites.tau, 1.0)
    C, _ = safe_cholesky(np.eye(len(X)) + gram_lower(basis.L * np.sqrt(sites.tau / kept)[:, None]), name="I + Lᵀ τ L")
    mean = cholesky_solve(C, basis.L.T @ (sites.nu / kept))
    return Posterior(basis, mean, C)
