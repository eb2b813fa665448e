"""The two parametrisations of csato2002 for a Gaussian process on M basis vectors, and the maps between them.

With K (M, M) the prior covariance of f at the basis vectors and k = k_u(x), the process is written as

* (α, C), of the parametrisation lemma, :eq:`cs-lemma`: mean kᵀα and variance k(x, x) + kᵀC k;
* (Λ̂, b), of EP: the prior times exp(bᵀu − ½ uᵀΛ̂u) with Λ̂ = PᵀΛP and b = PᵀΛa. Datum n contributed the site
  exp(ν_n u_n − ½ τ_n u_n²), τ = λ and ν = λa, of the one number u_n = p_nᵀu; p_n is the row of P that expresses what
  the site knows of f(x_n) in terms of f at the basis vectors.
"""

from typing import Any

import numpy as np

from pepcore.gaussian import Array, cholesky_inverse, cholesky_solve, safe_cholesky, solve_lower


def natural_parameters(K: Array, tau: Array, nu: Array, P: Array | None = None) -> tuple[Array, Array]:
    """α (M,) and C (M, M) of the process that sites make: (I + Λ̂K)⁻¹b and −(I + Λ̂K)⁻¹Λ̂, Λ̂ = Pᵀ diag(τ) P, b = Pᵀν.

    K (M, M) is the prior covariance at the basis vectors, positive definite; tau (N,) >= 0 are the sites' precisions λ,
    nu (N,) their precision-means λa, and P (N, M) their directions, by default the identity: every datum is a basis
    vector.

    Source: csato2002 eqs (121) and (130), without the inverse of Λ, which need not exist; :eq:`cs-natural`.
    """
    P = np.eye(len(K)) if P is None else P
    L, _ = safe_cholesky(K, scale=np.diag(K).mean(), name="K")
    precision = P.T @ (P * np.asarray(tau)[:, None])
    m, R = from_precision(L.T @ precision @ L, L.T @ (P.T @ nu))
    alpha = solve_lower(L, m, transposed=True)
    half = solve_lower(L, np.array(np.eye(len(R)) - cholesky_inverse(R), order="F"), transposed=True)
    return alpha, -solve_lower(L, np.array(half.T, order="F"), transposed=True)


def site_parameters(K: Array, alpha: Array, C: Array) -> tuple[Array, Array]:
    """Λ̂ = −(I + CK)⁻¹C (M, M) and b = (I + CK)⁻¹α (M,), the inverse of `natural_parameters`.

    Without projections Λ̂ is diagonal and holds τ, and b is ν. After a projection, M(M + 1)/2 numbers do not determine
    the N sites any more.

    Source: csato2002 eq. (122); :eq:`cs-sites`.
    """
    both: Any = np.linalg.solve(np.eye(len(K)) + C @ K, np.column_stack([C, alpha]))
    return -0.5 * (both[:, :-1] + both[:, :-1].T), both[:, -1].copy()


def from_precision(precision: Array, shift: Array) -> tuple[Array, Array]:
    """m (M,) and the Cholesky factor R (M, M) of V⁻¹ = I + Λ, from Λ (M, M) and b (M,) in the coordinates v."""
    R, _ = safe_cholesky(np.eye(len(shift)) + precision, name="I + Λ")
    return cholesky_solve(R, shift), R
