"""The energy of sparse Power EP written out at any sites, and the variational bound for any Gaussian: referees for chapters.

Nothing is at a fixed point here and nothing is shared with `pepcore`'s energy: sites are full matrices, the bound takes its
expectations by the trapezoidal rule. Chapter "Sparse classification with Power EP" compares its short formulas with these.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr

from figures.experiments.bui2017.block_ep import log_normaliser
from pepcore.likelihoods import Probit


def with_functions_held(A, h, y, alpha, Lambda, b):
    """Log evidence of a probit classifier whose sites exp(b_nᵀv − ½ vᵀΛ_n v) stay the same functions of v.

    Parameters
    ----------
    A : (M, N);  h, y : (N,);  alpha : float in (0, 1]
    Lambda : (N, M, M);  b : (N, M)

    Source: bui2017 eq. (21); chapter "Sparse classification with Power EP", eq. (sc-energy).
    """
    precision, shift = np.eye(len(A)) + Lambda.sum(axis=0), b.sum(axis=0)
    value = log_normaliser(precision, shift)
    for a, h_n, y_n, Lambda_n, b_n in zip(A.T, h, y, Lambda, b):
        less, left = precision - alpha * Lambda_n, shift - alpha * b_n
        mean, variance = a @ np.linalg.solve(less, left), a @ np.linalg.solve(less, a)
        value += Probit().log_moment(y_n, mean, variance + h_n, alpha)[0]
        value += (log_normaliser(less, left) - log_normaliser(precision, shift)) / alpha
    return value


def with_numbers_held(A, h, y, alpha, tau, nu):
    """The same for sites given by their numbers τ_n, ν_n, which turn with a_n."""
    return with_functions_held(A, h, y, alpha, *full_sites(A, tau, nu))


def full_sites(A, tau, nu):
    """Λ_n = τ_n a_n a_nᵀ (N, M, M) and b_n = ν_n a_n (N, M)."""
    return tau[:, None, None] * A.T[:, :, None] * A.T[:, None, :], (A * nu).T


def best_bound(A, h, y):
    """The largest variational bound over all Gaussians q(v), by L-BFGS on a mean and a Cholesky factor."""
    M = len(A)
    start = np.concatenate([np.zeros(M), np.eye(M)[np.tril_indices(M)]])
    options = {"maxiter": 5000, "maxfun": 10**5, "ftol": 1e-15, "gtol": 1e-8}
    return -minimize(_negative_bound, start, args=(A, h, y), jac=True, method="L-BFGS-B", options=options).fun


def _negative_bound(point, A, h, y):
    """Minus the bound and its gradient."""
    M = len(A)
    root = np.zeros((M, M))
    root[np.tril_indices(M)] = point[M:]
    mean, spread = A.T @ point[:M], np.sqrt(h + ((root.T @ A) ** 2).sum(axis=0))
    nodes = np.linspace(-8, 8, 81)
    weights = np.exp(-0.5 * nodes**2) / np.exp(-0.5 * nodes**2).sum()
    f = mean[:, None] + spread[:, None] * nodes
    log_p = log_ndtr(y[:, None] * f)
    slope = y[:, None] * np.exp(-0.5 * f**2 - 0.5 * np.log(2 * np.pi) - log_p)
    by_mean, by_spread = slope @ weights, (slope * nodes) @ weights
    by_root = A @ ((by_spread / spread)[:, None] * (A.T @ root)) + np.diag(1 / np.diag(root)) - root
    kl = 0.5 * ((root**2).sum() + point[:M] @ point[:M] - M) - np.log(np.abs(np.diag(root))).sum()
    gradient = np.concatenate([A @ by_mean - point[:M], by_root[np.tril_indices(M)]])
    return kl - (log_p @ weights).sum(), -gradient
