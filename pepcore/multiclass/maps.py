"""One feature map for each of C classes, or one that all share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import blas

from pepcore.features import Features, feature_map, pull_back_blocks
from pepcore.gaussian import Array, inverse_lower, multiply_lower
from pepcore.normal_equations import lower_sums, solve_posterior
from pepcore.sites import Sites


@dataclass(frozen=True, eq=False)
class ClassMaps:
    """Features of the same inputs for every class."""

    kernels: tuple  #: kernels, 1 (shared) or C
    Z: tuple  #: (M, D) arrays, 1 (shared) or C
    C: int  #: the number of classes
    features: tuple  #: Features, 1 if both kernel and Z are shared, else C

    @classmethod
    def build(cls, kernels: tuple, Z: tuple, C: int, X: Array, jitter: float, stream: bool = False) -> Self:
        """Feature maps of X (N, D); see `pepcore.features.feature_map`."""
        pairs = (
            [(kernels[0], Z[0])]
            if len(kernels) == len(Z) == 1
            else [(kernels[c % len(kernels)], Z[c % len(Z)]) for c in range(C)]
        )
        return cls(kernels, Z, C, tuple(feature_map(kernel, points, X, jitter, stream) for kernel, points in pairs))

    def of(self, c: int) -> Features:
        """The Features of class c."""
        return self.features[c % len(self.features)]

    def natural_parameters(self, tau: Array, nu: Array) -> tuple[list, list]:
        """What sites (C, N) add to each class: precisions (M, M), lower triangles, and shifts (M,); source: :eq:`mc-sums`."""
        pairs = [lower_sums(self.of(c), Sites(tau[c], nu[c])) for c in range(self.C)]
        return [precision for precision, _ in pairs], [shift for _, shift in pairs]

    def marginals(self, posteriors: list) -> tuple[Array, Array, Array]:
        """μ, s and h, each (C, N): mean and variance of aᵀv under every class's posterior, and the residual variance."""
        mu, s, h = (np.empty((self.C, len(self.of(0).X))) for _ in range(3))
        for c, (mean, _, inverse) in enumerate(posteriors):
            for rows, A, h_rows in self.of(c).blocks():
                white = multiply_lower(inverse, np.array(A, order="F"))
                mu[c, rows], s[c, rows], h[c, rows] = mean @ A, np.einsum("mn,mn->n", white, white), h_rows
        return mu, s, h

    def pull_back(self, derivatives: Callable) -> dict:
        """Derivatives in the features of each class, turned into those in kernels and Z.

        Parameters
        ----------
        derivatives : callable (c, rows, A (M, B), h (B,)) -> dA (M, B) a fresh array in Fortran order, dh (B,)

        Returns dict: "kernels" and "Z", a dict and an array (M, D) where they are shared, lists of C of them elsewhere.
        """
        if len(self.features) == 1:

            def together(rows: Any, A: Array, h: Array) -> tuple[Array, Array]:
                dA, dh = derivatives(0, rows, A, h)
                for c in range(1, self.C):
                    more = derivatives(c, rows, A, h)
                    dA += more[0]
                    dh = dh + more[1]
                return dA, dh

            parts = [pull_back_blocks(self.features[0], together)]
        else:
            parts = [pull_back_blocks(self.of(c), lambda *block, c=c: derivatives(c, *block)) for c in range(self.C)]
        dZ = [part.pop("Z") for part in parts]
        return {"kernels": _total(parts) if len(self.kernels) == 1 else parts, "Z": sum(dZ) if len(self.Z) == 1 else dZ}


class ClassPosterior(NamedTuple):
    """q(v) = N(m, V) of one class."""

    mean: Array  # (M,), m
    precision_cholesky: Array  # (M, M), C Cᵀ = V⁻¹
    inverse: Array  # (M, M), C⁻¹


def solve_posteriors(precisions: list, shifts: list, concave: bool) -> list[ClassPosterior]:
    """A ClassPosterior for every class, by `pepcore.normal_equations.solve_posterior`; source: :eq:`mc-posterior`."""
    pairs = [solve_posterior(precision, shift, concave) for precision, shift in zip(precisions, shifts, strict=True)]
    return [ClassPosterior(mean, C, inverse_lower(C)) for mean, C in pairs]


def along(posterior: ClassPosterior, weight_mean: Array, weight_Va: Array) -> Callable:
    """callable (rows, A) -> m weight_meanᵀ + V A diag(weight_Va), a fresh (M, B) array; the weights are (N,)."""
    mean, _, C_inverse = posterior

    def derivative(rows: Any, A: Array) -> Array:
        white = multiply_lower(C_inverse, np.array(A, order="F"))
        white *= weight_Va[rows]
        dA = multiply_lower(C_inverse, white, transposed=True)
        return blas.dger(1.0, mean, weight_mean[rows], a=dA, overwrite_a=1)

    return derivative


def _total(parts: list) -> dict:
    return {key: sum(part[key] for part in parts) for key in parts[0]}
