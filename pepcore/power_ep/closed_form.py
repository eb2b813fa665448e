"""Sparse regression by Power EP: one formula from VFE (alpha = 0) through Power EP to FITC (alpha = 1).

With Gaussian noise every site is right after one sweep, and the fixed point is Bayesian linear regression on the
features A in which datum n has the noise d_n = alpha_n h_n + noise. With blocks the residual variances h become
matrices D_b. Independent noise of equal variance looks the same in every rotated basis, so a block is point-wise again
in the eigenbasis of its D_b, and the same few lines serve both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from pepcore.features import (
    KEPT_ELEMENTS,
    Features,
    accumulate,
    add_up,
    feature_map,
    grouped,
    pull_back,
    row_blocks,
    through_data,
    through_pseudo_points,
)
from pepcore.gaussian import (
    Array,
    add_gram,
    add_outer,
    cholesky_inverse,
    cholesky_solve,
    log1p_ratio,
    log_determinant,
    multiply_lower,
    safe_cholesky,
    solve_lower,
)
from pepcore.kernels.base import Kernel
from pepcore.likelihoods import Gaussian
from pepcore.posterior import Posterior
from pepcore.results import Fit, refuse_gradient
from pepcore.sites import Sites
from pepcore.threads import one_blas_thread
from pepcore.validation import (
    check_alpha,
    check_blocks,
    check_inputs,
    check_jitter,
    check_kernel,
    check_positive,
    check_targets,
)

SUBTRACTED = 1e4  # mean of y²/d up to which the subtraction in the evidence loses too few digits to matter


@one_blas_thread
def regression(
    kernel: Kernel, Z: ArrayLike, X: ArrayLike, y: ArrayLike, *,
    noise: float = 0.1, alpha: float | ArrayLike = 0.5, blocks: ArrayLike | list | None = None, jitter: float = 1e-6,
    stream: bool | None = None,
) -> Fit:
    """Sparse GP regression by Power EP, in closed form, for any power in [0, 1].

    alpha = 0 is VFE and alpha = 1 is FITC (with blocks, PITC); in between lies Power EP.

    Parameters
    ----------
    Z, X, y : (M, D) pseudo-inputs, (N, D) inputs, (N,) targets
        X may be a memory map of float64, as `numpy.load(path, mmap_mode="r")` makes it. It is read block by block, once for
        the evidence and once for the gradient, and not copied: it must stay as it is while the fit is in use.
    noise : noise variance, > 0, in units of y²
    alpha : float, or (N,) a private power per datum, or with `blocks` one per block
    blocks : None, a list of index arrays that partition range(N), or (N,) integer labels
        Data whose residuals stay correlated; time grows with the cube of a block's size.
    jitter : added to the diagonal of K_uu, relative to the kernel's variance; it grows tenfold after each failure
    stream : recompute the features where they are needed instead of storing them: memory O(M² + N), besides a copy of
        X, instead of O(NM). None streams as soon as they would take more than 16 MiB. Not with blocks.

    Returns
    -------
    Fit

    Raises
    ------
    ValueError for wrong shapes, NaN, a power outside [0, 1], a noise that is not positive, a jitter outside [0, 1e-2],
        blocks that are not a partition
    NotPositiveDefiniteError if K_uu cannot be factorised even with a jitter of 1e-2

    Source: bui2017 sections 3.6 and 3.7, with the sign of the last term of the structured evidence corrected;
    :eq:`sr-sites`, :eq:`sr-posterior`, :eq:`sr-collapsed`, :eq:`sr-evidence`, :eq:`sr-gradient`, :eq:`sr-private`,
    :eq:`sr-blocks`, :eq:`sr-rotation`.
    """
    check_kernel(kernel, others=("Z", "noise"))
    X = check_inputs(X, "X", copy=True)
    Z = check_inputs(Z, "Z", columns=X.shape[1], copy=True)
    y = check_targets(y, len(X))
    noise, jitter = check_positive(noise, "noise"), check_jitter(jitter)
    if blocks is None:
        alpha = check_alpha(alpha, size=len(X))
        features = feature_map(kernel, Z, X, jitter, len(X) * len(Z) > KEPT_ELEMENTS if stream is None else stream)
        powers = np.broadcast_to(alpha, len(X))
        solution = solve_regression(features.load, features.rows(), y, noise, powers)
        sites = Sites(solution.tau, y * solution.tau)
        gradient = partial(pointwise_gradient, features, solution, sites.nu, noise, powers)
    else:
        if stream:
            raise ValueError("stream=True keeps no features, but blocks need them all at once; leave out one of them.")
        parts = check_blocks(blocks, len(X))
        alpha = check_alpha(alpha, size=len(parts))
        features = feature_map(kernel, Z, X, jitter)
        rotated = _rotate(features, y, np.broadcast_to(alpha, len(parts)), parts)
        solution = solve_regression(rotated.load, row_blocks(len(y), len(Z)), rotated.y, noise, rotated.alpha)
        sites = None
        gradient = partial(_block_gradient, features, rotated, solution, noise)
    posterior = Posterior(features.basis, solution.mean, solution.precision_cholesky)
    return Fit(solution.log_evidence, posterior, Gaussian(noise), alpha, sites, gradient)


@one_blas_thread
def add_data(fit: Fit, X: ArrayLike, y: ArrayLike) -> Fit:
    """The fit after more data, in O(N M² + M³): exactly that of `regression` on old and new data together.

    Kernel, pseudo-inputs, noise and power stay as they are. The old posterior takes the place of the prior.

    Parameters
    ----------
    fit : Fit with Gaussian noise and one power for all data, from `regression` or `add_data`, or from `infer` if it converged
    X, y : (N, D) new inputs, (N,) new targets

    Returns a Fit without sites or gradient, since it keeps no data.
    Raises ValueError for another likelihood, private powers, inference that has not converged, wrong shapes or NaN.
    Source: :eq:`sr-collapsed`, :eq:`sr-evidence`.
    """
    sparse = type(fit) is Fit and isinstance(fit.posterior, Posterior)
    if not sparse or not isinstance(fit.likelihood, Gaussian) or np.ndim(fit.alpha):
        raise ValueError("add_data needs a Fit of power_ep.regression, with Gaussian noise and one power for all data "
                         f"(of a Model, its fit), got {type(fit).__name__} with {getattr(fit, 'likelihood', None)}; fit all anew")
    if not fit.converged:
        raise ValueError(f"add_data needs a fit that has converged, but this one has {fit.message}; fit all data anew, with "
                         "power_ep.regression, which needs no sweeps")
    old, noise, alpha = fit.posterior, fit.likelihood.noise, fit.alpha
    X = check_inputs(X, "X", columns=old.basis.Z.shape[1])
    y = check_targets(y, len(X))
    A, h = old.basis.features(X)
    d = alpha * h + noise
    precision = old.precision_cholesky @ old.precision_cholesky.T
    shift = precision @ old.mean + A @ (y / d)
    C, _ = safe_cholesky(precision + (A / d) @ A.T, name="V⁻¹ + A diag(1/d) A'")
    mean = cholesky_solve(C, shift)
    moved = old.precision_cholesky.T @ (mean - old.mean)
    quadratic = ((y - mean @ A) ** 2 / d).sum() + moved @ moved
    determinants = np.log(2 * np.pi * d).sum() + log_determinant(C) - log_determinant(old.precision_cholesky)
    log_evidence = fit.log_evidence - 0.5 * (determinants + quadratic) - penalty(h, noise, alpha)
    no_gradient = partial(refuse_gradient, "add_data keeps no gradient; call power_ep.regression on all data for it")
    return Fit(float(log_evidence), Posterior(old.basis, mean, C), fit.likelihood, alpha, None, no_gradient)


# --- point-wise -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Solution:
    """The posterior of the weights, the log evidence, and what the gradient needs of the sums over the data."""
    log_evidence: float
    mean: Array  # m (M,)
    precision_cholesky: Array  # C (M, M), C Cᵀ = I + gram
    gram: Array  # (M, M), A diag(1/d) Aᵀ, d = alpha h + noise, of which only the lower triangle is filled
    tau: Array  # (N,), 1/d


def solve_regression(load: Callable, rows: list[slice], y: Array, noise: float, alpha: Array) -> Solution:
    """Posterior and evidence; `load` turns each of the `rows` into A[:, rows] and h[rows]; source: :eq:`sr-collapsed`."""
    tau = np.empty(len(y))

    def sums(group):
        gram, shift, log_normal, quadratic = None, 0.0, 0.0, 0.0
        for part in group:
            A, h = load(part)
            power, y_part = alpha[part], y[part]
            d = power * h + noise
            tau[part] = 1 / d
            gram = np.zeros((len(A), len(A)), order="F") if gram is None else gram
            add_gram(gram, A / np.sqrt(d))
            shift = shift + A @ (y_part / d)
            log_normal -= 0.5 * np.log(2 * np.pi * d).sum() + penalty(h, noise, power)
            quadratic += y_part @ (y_part / d)
        return gram, shift, log_normal, quadratic

    gram, shift, log_normal, quadratic = add_up(sums, grouped(rows))
    C, _ = safe_cholesky(gram + np.eye(len(shift)), name="I + A diag(1/d) A'")
    mean = cholesky_solve(C, shift)

    # yᵀ(AᵀA + diag d)⁻¹y, by a subtraction if that keeps enough digits, else as a minimum over v
    if quadratic < SUBTRACTED * len(y):
        quadratic -= shift @ mean
    else:
        squares = add_up(lambda part: ((y[part] - mean @ load(part)[0]) ** 2 @ tau[part],), rows)
        quadratic = squares[0] + mean @ mean
    log_evidence = log_normal - 0.5 * (log_determinant(C) + quadratic)
    return Solution(float(log_evidence), mean, C, gram, tau)


def penalty(h: Array, noise: float, alpha: float | Array) -> float:
    """Σ (1 − α)/(2α) log(1 + α h/noise), which is Σ h/(2 noise) at α = 0; source: :eq:`sr-evidence`."""
    return ((1 - alpha) * log1p_ratio(alpha * h / noise) * h).sum() / (2 * noise)


def noise_derivative(fit: Array, h: Array, tau: Array, noise: float, alpha: float | Array) -> float:
    """dF/dnoise from dF/dd = ½ (fit − 1/d): the noise enters d = 1/tau and the penalty; source: :eq:`sr-gradient`."""
    return 0.5 * float((fit - tau + (1 - alpha) * h * tau / noise).sum())


@one_blas_thread
def pointwise_gradient(features: Features, solution: Solution, nu: Array, noise: float, alpha: Array) -> dict:
    """Gradient of the evidence, in one more pass over the data, from the sites 1/d and nu = y/d.

    With v = (y − Aᵀm)/d, s = diag AᵀVA and fit = v² + s/d²:

        dF/dd = ½ (fit − 1/d),   dF/dh = α dF/dd − (1 − α)/(2d) = ½ (α fit − 1/d),
        dA = m vᵀ − V A/d                             at fixed h,
        dA − 2 A diag(dF/dh) = m vᵀ − V A/d + A diag(1/d − α fit)     with h = k − |a|².

    A vᵀ, the sum of the data's weighted residuals, is m, the stationary point of Σ r²/d + |m|². With gram = A diag(1/d) Aᵀ
    and V gram = V (V⁻¹ − I) = I − V, the product that K_uu needs has a closed form but for one weighted gram matrix:

        Σ dA Aᵀ = m mᵀ − (I − V) + gram − A diag(α fit) Aᵀ.

    Where all α are 0, d is the noise, dA = m vᵀ + (I − V) A/d, and Σ s/d² = tr(I − V)/noise.

    Source: :eq:`sr-gradient`, :eq:`sr-identities`.
    """
    basis, mean, V = features.basis, solution.mean, cholesky_inverse(solution.precision_cholesky)
    explained = np.eye(len(mean)) - V
    to_K_uf, gamma = explained @ basis.L_inverse / noise, basis.L_inverse.T @ mean
    dnoise = {-1: 0.0 if alpha.any() else 0.5 * np.trace(explained) / noise}  # other keys: a block's first row

    def derivatives(rows, A, h, T):
        tau, power = solution.tau[rows], alpha[rows]
        v = nu[rows] - mean @ A * tau
        dA = (A.T @ V).T  # V A, in Fortran order
        fit = v**2 + np.einsum("nm,nm->n", A.T, dA.T) * tau**2
        dnoise[rows.start] = noise_derivative(fit, h, tau, noise, power)
        add_gram(T, A * np.sqrt(power * fit))
        dA *= -tau
        dA += A * (tau - power * fit)
        add_outer(dA, mean, v)
        multiply_lower(basis.L_inverse, dA, transposed=True)
        return dA, 0.5 * (power * fit - tau)

    def derivatives_at_zero(rows, A, h, T):
        tau = solution.tau[rows]
        v = nu[rows] - mean @ A * tau
        dnoise[rows.start] = noise_derivative(v**2, h, tau, noise, 0.0)
        dK_uf = (A.T @ to_K_uf).T
        add_outer(dK_uf, gamma, v)
        return dK_uf, -0.5 * tau

    gradient, gram_h = through_data(features, derivatives if alpha.any() else derivatives_at_zero)
    T = np.outer(mean, mean) - explained + solution.gram - gram_h
    return through_pseudo_points(features, gradient, T) | {"noise": sum(dnoise[start] for start in sorted(dnoise))}


# --- blocks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rotated:
    """The data with each block in the eigenbasis of its residual covariance, blocks one after the other."""

    A: Array  # (M, N)
    h: Array  # (N,), the eigenvalues of the D_b
    y: Array  # (N,)
    alpha: Array  # (N,)
    parts: list  # per block: (indices into the data, slice into the rotated data, eigenvectors U_b)

    def load(self, rows):
        return self.A[:, rows], self.h[rows]


def _rotate(features: Features, y: Array, alpha: Array, blocks: list[Array]) -> _Rotated:
    """D_b = K_bb − A_bᵀA_b = U diag(λ) Uᵀ; then A_b U, λ and Uᵀy are a point-wise model; source: :eq:`sr-rotation`."""
    kernel, X, A = features.basis.kernel, features.X, features.A
    rotated_A, h, rotated_y, parts = np.empty_like(A), np.empty(len(y)), np.empty(len(y)), []
    start = 0
    for index in blocks:
        rows = slice(start, start + len(index))
        start = rows.stop
        A_b = A[:, index]
        eigenvalues, U = eigh(kernel(X[index]) - A_b.T @ A_b)
        rotated_A[:, rows] = A_b @ U
        h[rows] = np.maximum(eigenvalues, 0.0)  # a Schur complement: negative only by rounding
        rotated_y[rows] = U.T @ y[index]
        parts.append((index, rows, U))
    return _Rotated(rotated_A, h, rotated_y, np.repeat(alpha, [len(index) for index in blocks]), parts)


@one_blas_thread
def _block_gradient(features: Features, rotated: _Rotated, solution: Solution, noise: float) -> dict:
    """As `pointwise_gradient`, with a matrix dF/dD_b for each block in place of dF/dh."""
    kernel, X = features.basis.kernel, features.X
    dA, fit = np.empty_like(features.A), np.empty(len(X))
    dkernel: dict = {}
    for index, rows, U in rotated.parts:
        A_b, d, alpha = rotated.A[:, rows], 1 / solution.tau[rows], rotated.alpha[rows]
        v = (rotated.y[rows] - solution.mean @ A_b) / d
        white = solve_lower(solution.precision_cholesky, np.array(A_b / d, order="F"))
        dF_dSigma = 0.5 * (np.outer(v, v) - np.diag(1 / d) + white.T @ white)
        fit[rows] = v**2 + np.einsum("mn,mn->n", white, white)
        dD = U @ (alpha * dF_dSigma - np.diag((1 - alpha) / (2 * d))) @ U.T
        VA = solve_lower(solution.precision_cholesky, white, transposed=True)
        dA[:, index] = (np.outer(solution.mean, v) - VA) @ U.T - 2 * features.A[:, index] @ dD
        accumulate(dkernel, kernel.vjp(X[index], X[index], dD)[0])

    gradient = pull_back(features, dA, np.zeros(len(X)))  # h enters through D_b, already counted in dA
    accumulate(gradient, dkernel)
    return gradient | {"noise": noise_derivative(fit, rotated.h, solution.tau, noise, rotated.alpha)}
