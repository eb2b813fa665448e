"""How hard is it to find the best mean? Hessians of the loss in four bases, for a Gaussian likelihood.

The covariance has its own terms in the loss, so that the mean can be looked at alone: its loss is a quadratic, and its
Hessian, in the coordinates that a basis chooses, says how long gradient steps may be and how many it takes.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, solve_triangular

from figures.drawing import style

BASES = ("decoupled", "hybrid", "orthogonal")
COLOURS = dict(zip((*BASES, "natural"), (style.CYCLE[1], style.CYCLE[3], style.CYCLE[0], style.CYCLE[2])))


class Parts(NamedTuple):
    """What the Hessians are made of."""

    L: np.ndarray  # (M, M), K_β = L Lᵀ
    A: np.ndarray  # (M, N), features of the data
    A_gamma: np.ndarray  # (M, G), features of gamma
    R: np.ndarray  # (G, G), K_γ − A_γᵀA_γ
    B: np.ndarray  # (G, N), k_γ(x_n) − A_γᵀa(x_n)
    noise: float


def parts(kernel, beta, gamma, X, noise, jitter=1e-6):
    """`Parts` for points beta (M, D) and gamma (G, D), data X (N, D) and the noise variance."""
    L = np.linalg.cholesky(kernel(beta) + jitter * np.diag(kernel.diagonal(beta)))
    A, A_gamma = (solve_triangular(L, kernel(beta, points), lower=True) for points in (X, gamma))
    return Parts(L, A, A_gamma, kernel(gamma) - A_gamma.T @ A_gamma, kernel(gamma, X) - A_gamma.T @ A, noise)


def hessian(p, likelihood=True):
    """Of the loss of the mean in the coordinates (m, g), (M + G, M + G); without the likelihood it is the prior's part."""
    M, G = len(p.A), len(p.B)
    prior = np.block([[np.eye(M), np.zeros((M, G))], [np.zeros((G, M)), p.R]])
    rows = np.vstack([p.A, p.B])
    return prior + (rows @ rows.T / p.noise if likelihood else 0.0)


def change_of_coordinates(p, basis):
    """T (M + G, M + G) with (m, g) = T (parameters of the basis)."""
    M, G = len(p.A), len(p.B)
    zero, one = np.zeros((G, M)), np.eye(G)
    if basis == "orthogonal-weights":  # a_β, a_γ: m = Lᵀa_β
        return np.block([[p.L.T, np.zeros((M, G))], [zero, one]])
    if basis == "orthogonal":  # m_β, a_γ: m = L⁻¹m_β
        return np.block([[solve_triangular(p.L, np.eye(M), lower=True), np.zeros((M, G))], [zero, one]])
    if basis == "hybrid":  # m_β, a_γ: w = L⁻¹m_β and m = w + A_γa_γ
        return np.block([[solve_triangular(p.L, np.eye(M), lower=True), p.A_gamma], [zero, one]])
    return np.block([[p.L.T, p.A_gamma], [zero, one]])  # weights of k_β and k_γ


def in_basis(p, basis, likelihood=True):
    """The Hessian in the parameters of a basis; "natural" is that in the metric of natural steps: 1 is ideal."""
    H = hessian(p, likelihood)
    if basis == "natural":
        M = len(p.A)
        metric = np.zeros_like(H)
        metric[:M, :M], metric[M:, M:] = H[:M, :M], p.R  # V⁻¹ at its optimum, and R
        C = np.linalg.cholesky(metric)
        return solve_triangular(C, solve_triangular(C, H, lower=True).T, lower=True)
    T = change_of_coordinates(p, basis)
    return T.T @ H @ T


def rescaled(H):
    """H with its diagonal scaled to one: what the best step for each coordinate makes of it."""
    d = 1 / np.sqrt(np.diag(H))
    return d[:, None] * H * d


def correlation(p, basis="orthogonal", likelihood=True):
    """The largest canonical correlation of the two blocks of parameters: 0 if they can be optimised apart, at most 1."""
    M = len(p.A)
    H = in_basis(p, basis, likelihood)
    C = [np.linalg.cholesky(block) for block in (H[:M, :M], H[M:, M:])]
    crossed = solve_triangular(C[0], solve_triangular(C[1], H[:M, M:].T, lower=True).T, lower=True)
    return float(np.linalg.svd(crossed, compute_uv=False).max())


def descent(H, gap, steps):
    """The loss above its minimum after so many gradient steps of the best constant length, for an error `gap` at first."""
    values, vectors = eigh(H)
    share = vectors.T @ gap
    factor = 1 - 2 * values / (values[0] + values[-1])
    return np.array([0.5 * np.sum(values * (share * factor**t) ** 2) for t in steps])


def longest_step(p):
    """2/λ_max: natural steps in g longer than this diverge, the coupled part being solved after each."""
    inner = p.A.T @ p.A + p.noise * np.eye(p.A.shape[1])
    H = p.R + p.B @ np.linalg.solve(inner, p.B.T)
    return 2 / float(eigh(H, p.R, eigvals_only=True)[-1])
