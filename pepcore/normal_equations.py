"""What sites add up to, and the posterior that follows: sums over blocks of data, and their solution.

q(v) = N(m, V) with V⁻¹ = I + A diag(τ) Aᵀ and V⁻¹m = A ν.
"""

import numpy as np
from scipy.linalg import blas, lapack

from pepcore.features import Features
from pepcore.gaussian import Array, safe_cholesky, solve_lower, symmetric
from pepcore.sites import ImproperCavityError, Sites


def posterior_of(features: Features, sites: Sites) -> tuple[Array, Array]:
    """m (M,) and the factor C (M, M) of V⁻¹ = I + A diag(τ) Aᵀ = C Cᵀ; source: :eq:`gp-posterior`, :eq:`sc-posterior`."""
    return solve_posterior(*lower_sums(features, sites), concave=sites.tau.min() >= 0)


def natural_parameters(features: Features, sites: Sites) -> tuple[Array, Array]:
    """Σ τ a aᵀ (M, M) and Σ ν a (M,): what the sites add to the prior's natural parameters I and 0."""
    precision, shift = lower_sums(features, sites)
    return symmetric(precision), shift


def lower_sums(features: Features, sites: Sites) -> tuple[Array, Array]:
    """`natural_parameters` with the lower triangle of the matrix alone, which is all that a factorisation reads."""
    M = len(features.basis.Z)
    precision, shift = np.zeros((M, M), order="F"), np.zeros(M)
    for rows, A, _ in features.blocks():
        tau = sites.tau[rows]
        if tau.max() > 0:
            precision = blas.dsyrk(
                1.0, A * np.sqrt(np.maximum(tau, 0.0)), beta=1.0, c=precision, lower=1, overwrite_c=1
            )
        if tau.min() < 0:
            precision = blas.dsyrk(
                -1.0, A * np.sqrt(np.maximum(-tau, 0.0)), beta=1.0, c=precision, lower=1, overwrite_c=1
            )
        shift += A @ sites.nu[rows]
    return precision, shift


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
            raise ImproperCavityError("sites of negative precision leave no proper posterior")
    return solve_lower(C, solve_lower(C, shift), transposed=True), C
