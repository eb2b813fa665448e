"""Sparse regression by Power EP: one formula from VFE (alpha = 0) through Power EP to FITC (alpha = 1).

With Gaussian noise every site is right after one sweep, and the fixed point is Bayesian linear regression on the
features A in which datum n has the noise d_n = alpha_n h_n + noise. With blocks the residual variances h become
matrices D_b. Independent noise of equal variance looks the same in every rotated basis, so a block is point-wise again
in the eigenbasis of its D_b, and the same few lines serve both.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import blas, eigh

from pepcore.features import feature_map, pull_back, pull_back_blocks, row_blocks
from pepcore.gaussian import inverse_lower, log1p_ratio, log_determinant, multiply_lower, safe_cholesky, solve_lower
from pepcore.kernels.base import check_kernel
from pepcore.likelihoods import Gaussian
from pepcore.posterior import Posterior
from pepcore.results import Fit
from pepcore.sites import Sites
from pepcore.threads import one_blas_thread
from pepcore.validation import (
    as_real,
    check_alpha,
    check_inputs,
    check_jitter,
    check_positive,
    check_targets,
    refuse_mask,
)


@one_blas_thread
def regression(kernel, Z, X, y, *, noise=0.1, alpha=0.5, blocks=None, jitter=1e-6, stream=False):
    """Sparse GP regression by Power EP, in closed form, for any power in [0, 1].

    alpha = 0 is VFE and alpha = 1 is FITC, with blocks PITC; in between lies Power EP.

    Parameters
    ----------
    kernel : kernel
    Z : (M, D) pseudo-inputs
    X : (N, D) inputs
    y : (N,) targets
    noise : float
        Noise variance, > 0.
    alpha : float, or (N,) a private power per datum, or with `blocks` one per block
    blocks : None, a list of index arrays that partition range(N), or (N,) integer labels
        Data whose residuals stay correlated; time grows with the cube of a block's size.
    jitter : float
        Added to the diagonal of K_uu, relative to the kernel's variance; tenfold after a failed factorisation.
    stream : bool
        Recompute the features where they are needed in place of storing them: memory O(M² + N), beside a copy of X, in
        place of O(NM) for about half as much time again. Not with blocks.

    Returns
    -------
    Fit

    Raises
    ------
    ValueError
        For wrong shapes, NaN, a power outside [0, 1], a noise that is not positive, a jitter outside [0, 1e-2],
        blocks that are no partition.
    NotPositiveDefiniteError
        If K_uu cannot be factorised even with a jitter of 1e-2.

    Source: bui2017 sections 3.4 and 3.7, with the sign of the last term of the structured evidence corrected;
    :eq:`sr-posterior`, :eq:`sr-collapsed`, :eq:`sr-evidence`, :eq:`sr-gradient`, :eq:`sr-private`,
    :eq:`sr-blocks`, :eq:`sr-rotation`.
    """
    check_kernel(kernel)
    X = check_inputs(X, "X", copy=True)
    Z = check_inputs(Z, "Z", columns=X.shape[1], copy=True)
    y = check_targets(y, len(X))
    noise, jitter = check_positive(noise, "noise"), check_jitter(jitter)
    if blocks is None:
        alpha = check_alpha(alpha, size=len(X))
        features = feature_map(kernel, Z, X, jitter, stream)
        solution = _solve(features.blocks, y, noise, alpha)
        sites = Sites(1 / solution.d, y / solution.d)
        gradient = partial(_pointwise_gradient, features, solution, noise, alpha)
    else:
        if stream:
            raise ValueError("stream=True keeps no features, but blocks need them all at once; leave out one of them.")
        blocks = _check_blocks(blocks, len(X))
        alpha = check_alpha(alpha, size=len(blocks))
        features = feature_map(kernel, Z, X, jitter)
        rotated = _rotate(features, y, np.broadcast_to(alpha, len(blocks)), blocks)
        solution = _solve(rotated.blocks, rotated.y, noise, rotated.alpha)
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
    fit : Fit with Gaussian noise and one power for all data, of `regression` or `add_data`
    X : (N, D) new inputs
    y : (N,) new targets

    Returns
    -------
    Fit without sites and gradient, since it keeps no data

    Raises
    ------
    ValueError
        For another likelihood, private powers, wrong shapes or NaN.

    Source: :eq:`sr-collapsed`, :eq:`sr-evidence`.
    """
    if not isinstance(fit.likelihood, Gaussian) or np.ndim(fit.alpha):
        raise ValueError("add_data needs a fit with Gaussian noise and one power for all data; fit all data anew instead")
    old, noise, alpha = fit.posterior, fit.likelihood.noise, fit.alpha
    X = check_inputs(X, "X", columns=old.basis.Z.shape[1])
    y = check_targets(y, len(X))
    A, h = old.basis.features(X)
    d = alpha * h + noise
    precision = old.precision_cholesky @ old.precision_cholesky.T
    shift = precision @ old.mean + A @ (y / d)
    C, _ = safe_cholesky(precision + (A / d) @ A.T, name="V⁻¹ + A diag(1/d) A'")
    mean = solve_lower(C, solve_lower(C, shift), transposed=True)
    moved = old.precision_cholesky.T @ (mean - old.mean)
    quadratic = ((y - mean @ A) ** 2 / d).sum() + moved @ moved
    determinants = np.log(2 * np.pi * d).sum() + log_determinant(C) - log_determinant(old.precision_cholesky)
    log_evidence = fit.log_evidence - 0.5 * (determinants + quadratic) - _penalty(h, noise, alpha)
    return Fit(float(log_evidence), Posterior(old.basis, mean, C), fit.likelihood, alpha, None, _no_gradient)


def _no_gradient() -> dict:
    raise NotImplementedError("add_data keeps no gradient; call power_ep.regression on all data for it")


# --- the linear model on (A, h) ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Solution:
    log_evidence: float
    mean: np.ndarray  # m (M,)
    precision_cholesky: np.ndarray  # C (M, M), C Cᵀ = I + A diag(1/d) Aᵀ
    h: np.ndarray  # (N,)
    d: np.ndarray  # (N,), alpha h + noise
    residual: np.ndarray  # (N,), y - Aᵀm


def _solve(blocks, y, noise, alpha):
    """Posterior and evidence from `blocks()`, which yields (rows, A[:, rows], h[rows]); source: :eq:`sr-collapsed`."""
    N = len(y)
    h, d = np.empty(N), np.empty(N)
    precision, shift = None, 0.0
    for rows, A, h_rows in blocks():
        h[rows] = h_rows
        d[rows] = alpha[rows] * h_rows + noise if np.ndim(alpha) else alpha * h_rows + noise
        if precision is None:
            precision = np.eye(len(A), order="F")
        scaled = A / np.sqrt(d[rows])
        precision = blas.dsyrk(1.0, scaled, beta=1.0, c=precision, lower=1, overwrite_c=1)
        shift = shift + A @ (y[rows] / d[rows])
    precision += np.tril(precision, -1).T  # dsyrk fills the lower triangle

    C, _ = safe_cholesky(precision, name="I + A diag(1/d) A'")
    mean = solve_lower(C, solve_lower(C, shift), transposed=True)
    residual = np.empty(N)
    for rows, A, _ in blocks():
        residual[rows] = y[rows] - mean @ A

    # yᵀ(AᵀA + diag d)⁻¹y as a minimum over v: no cancellation, however small the noise
    quadratic = (residual**2 / d).sum() + mean @ mean
    log_normal = -0.5 * (N * np.log(2 * np.pi) + np.log(d).sum() + log_determinant(C) + quadratic)
    return _Solution(float(log_normal - _penalty(h, noise, alpha)), mean, C, h, d, residual)


def _penalty(h, noise, alpha):
    """Σ (1 − α)/(2α) log(1 + α h/noise), which is Σ h/(2 noise) at α = 0; source: :eq:`sr-evidence`."""
    return ((1 - alpha) * log1p_ratio(alpha * h / noise) * h).sum() / (2 * noise)


def _residual_derivative(total, d, alpha):
    """dF/dh from dF/dd: h enters the noise d with weight α and the penalty by itself; source: :eq:`sr-gradient`."""
    return alpha * total - (1 - alpha) / (2 * d)


def _noise_derivative(total, solution, noise, alpha):
    """dF/dnoise from dF/dd (N,): the noise enters d and the penalty; source: :eq:`sr-gradient`."""
    return float((total + (1 - alpha) * solution.h / (2 * noise * solution.d)).sum())


@one_blas_thread
def _pointwise_gradient(features, solution, noise, alpha):
    """Gradient of the evidence: dF/dA = m vᵀ − V A/d and dF/dd = ½(v² − 1/d + s/d²), v = residual/d, s = diag AᵀVA."""
    mean, C_inverse, d = solution.mean, inverse_lower(solution.precision_cholesky), solution.d
    v = solution.residual / d
    dF_dd = np.empty(len(d))

    def derivatives(rows, A, h):
        white = multiply_lower(C_inverse, np.array(A, order="F"))
        s = np.einsum("mn,mn->n", white, white)
        dF_dd[rows] = 0.5 * (v[rows] ** 2 - 1 / d[rows] + s / d[rows] ** 2)
        white /= -d[rows]
        minus_VA_d = multiply_lower(C_inverse, white, transposed=True)
        dA = blas.dger(1.0, mean, v[rows], a=minus_VA_d, overwrite_a=1)  # + m vᵀ
        return dA, _residual_derivative(dF_dd[rows], d[rows], alpha[rows] if np.ndim(alpha) else alpha)

    gradient = pull_back_blocks(features, derivatives)
    gradient["noise"] = _noise_derivative(dF_dd, solution, noise, alpha)
    return gradient


# --- blocks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rotated:
    """The data with each block in the eigenbasis of its residual covariance, blocks one after the other."""

    A: np.ndarray  # (M, N)
    h: np.ndarray  # (N,), the eigenvalues of the D_b
    y: np.ndarray  # (N,)
    alpha: np.ndarray  # (N,)
    parts: list  # per block: (indices into the data, slice into the rotated data, eigenvectors U_b)

    def blocks(self):
        for rows in row_blocks(len(self.y), len(self.A)):
            yield rows, self.A[:, rows], self.h[rows]


def _rotate(features, y, alpha, blocks):
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
    sizes = [len(index) for index in blocks]
    return _Rotated(rotated_A, h, rotated_y, np.repeat(alpha, sizes), parts)


@one_blas_thread
def _block_gradient(features, rotated, solution, noise):
    """As `_pointwise_gradient`, with a matrix dF/dD_b for each block in place of dF/dh."""
    kernel, X = features.basis.kernel, features.X
    dA = np.empty_like(features.A)
    dF_dd = np.empty(len(X))
    dkernel = {key: np.zeros_like(value, dtype=float) for key, value in kernel.parameters.items()}
    for index, rows, U in rotated.parts:
        A_b, d, alpha = rotated.A[:, rows], solution.d[rows], rotated.alpha[rows]
        v = solution.residual[rows] / d
        white = solve_lower(solution.precision_cholesky, np.array(A_b / d, order="F"))
        dF_dSigma = 0.5 * (np.outer(v, v) - np.diag(1 / d) + white.T @ white)
        dF_dd[rows] = np.diag(dF_dSigma)
        dD = U @ (alpha * dF_dSigma - np.diag((1 - alpha) / (2 * d))) @ U.T
        VA = solve_lower(solution.precision_cholesky, white, transposed=True)
        dA[:, index] = (np.outer(solution.mean, v) - VA) @ U.T - 2 * features.A[:, index] @ dD
        for key, value in kernel.vjp(X[index], X[index], dD)[0].items():
            dkernel[key] = dkernel[key] + value

    gradient = pull_back(features, dA, np.zeros(len(X)))  # h enters through D_b, already counted in dA
    for key, value in dkernel.items():
        gradient[key] = gradient[key] + value
    gradient["noise"] = _noise_derivative(dF_dd, solution, noise, rotated.alpha)
    return gradient


def _check_blocks(blocks, size):
    """`blocks` as a list of index arrays that together hold each of range(size) once."""
    refuse_mask(blocks, "blocks")
    labels = np.asarray(blocks) if isinstance(blocks, np.ndarray) else None
    if labels is not None and labels.shape == (size,) and np.issubdtype(labels.dtype, np.integer):
        return [np.flatnonzero(labels == label) for label in np.unique(labels)]
    parts = blocks if np.iterable(blocks) else []
    # not integers yet: their fractions would be cut off, and every block seem right
    indices = [as_real(block, f"blocks[{number}]").ravel() for number, block in enumerate(parts)]
    joined = np.concatenate(indices or [[]])
    if len(joined) != size or not np.array_equal(np.sort(joined), np.arange(size)) or not all(map(len, indices)):
        raise ValueError(
            f"blocks must be {size} integer labels in an array, or a list of non-empty index arrays that hold each of "
            f"0 ... {size - 1} exactly once; got {type(blocks).__name__} of length {np.size(joined)} after joining."
        )
    return [index.astype(np.intp) for index in indices]
