"""Power EP with a site for every block of data, run the long way: the referee between two signs of bui2017 section 3.7.

Nothing here knows a closed form. Each visit deletes a fraction of a block's site, multiplies by the same fraction of the
block's likelihood, and subtracts natural parameters; the evidence is put together from log-normalisers.
"""

import numpy as np


def block_power_ep(A, H, y, noise, blocks, alphas, sweeps):
    """Iterate sites exp(bᵀv − ½ vᵀΛv), one per block, with the paper's step ε = α.

    Parameters
    ----------
    A : (M, N)              features
    H : (N, N)              residual covariance
    y : (N,)
    noise : float
    blocks : list of index arrays
    alphas : one power in (0, 1] per block
    sweeps : int

    Returns
    -------
    log evidence, largest change of a Λ in the last sweep

    Source: bui2017 section 3.7; chapter "Sparse regression: one family", eq. (sr-blocks).
    """
    M = len(A)
    Lambda, b = np.zeros((len(blocks), M, M)), np.zeros((len(blocks), M))
    for _ in range(sweeps):
        before = Lambda.copy()
        for k, (block, alpha) in enumerate(zip(blocks, alphas)):
            precision, shift = np.eye(M) + Lambda.sum(axis=0) - alpha * Lambda[k], b.sum(axis=0) - alpha * b[k]
            mean, V, _ = tilted(A[:, block], H[np.ix_(block, block)], y[block], noise, alpha, precision, shift)
            new = np.linalg.inv(V)
            new = (new + new.T) / 2
            Lambda[k] = (1 - alpha) * Lambda[k] + new - precision
            b[k] = (1 - alpha) * b[k] + new @ mean - shift
    precision, shift = np.eye(M) + Lambda.sum(axis=0), b.sum(axis=0)
    log_evidence = log_normaliser(precision, shift)
    for k, (block, alpha) in enumerate(zip(blocks, alphas)):
        less, left = precision - alpha * Lambda[k], shift - alpha * b[k]
        log_mass = tilted(A[:, block], H[np.ix_(block, block)], y[block], noise, alpha, less, left)[2]
        log_evidence += (log_mass + log_normaliser(less, left) - log_normaliser(precision, shift)) / alpha
    return log_evidence, np.abs(Lambda - before).max()


def log_normaliser(precision, shift):
    """Of exp(shiftᵀv − ½ vᵀ precision v), relative to that of the prior N(0, I)."""
    return 0.5 * (shift @ np.linalg.solve(precision, shift) - np.linalg.slogdet(precision)[1])


def tilted(A, H, y, noise, alpha, precision, shift):
    """Mean, covariance and log mass of the cavity times E_e[N(y; Aᵀv + e, noise I)^α], for one block."""
    V, n = np.linalg.inv(precision), len(y)
    S = A.T @ V @ A + H + noise / alpha * np.eye(n)
    residual = y - A.T @ V @ shift
    gain = V @ A @ np.linalg.inv(S)
    constant = np.log(2 * np.pi * noise / alpha) - alpha * np.log(2 * np.pi * noise)
    quadratic = residual @ np.linalg.solve(S, residual)
    log_density = -0.5 * (n * np.log(2 * np.pi) + np.linalg.slogdet(S)[1] + quadratic)
    return V @ shift + gain @ residual, V - gain @ A.T @ V, 0.5 * n * constant + log_density
