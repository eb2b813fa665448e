"""One feature map for each of C classes, or one that all share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from pepcore.features import Features, add_up, feature_map, in_order, pull_back_blocks
from pepcore.gaussian import Array, add_outer, inverse_lower, multiply_triangular
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
        different = range(max(len(kernels), len(Z)))
        pairs = [(kernels[c % len(kernels)], Z[c % len(Z)]) for c in different]
        return cls(kernels, Z, C, tuple(feature_map(kernel, points, X, jitter, stream) for kernel, points in pairs))

    def of(self, c: int) -> Features:
        """The Features of class c."""
        return self.features[c % len(self.features)]

    def natural_parameters(self, tau: Array, nu: Array) -> tuple[list, list]:
        """What sites (C, N) add to each class: precisions (M, M), lower triangles, and shifts (M,); source: :eq:`mc-sums`."""
        pairs = list(in_order(lambda c: lower_sums(self.of(c), Sites(tau[c], nu[c])), range(self.C)))
        return [precision for precision, _ in pairs], [shift for _, shift in pairs]

    def marginals(self, posteriors: list) -> tuple[Array, Array, Array]:
        """μ, s and h, each (C, N): mean and variance of aᵀv under every class's posterior, and the residual variance."""
        mu, s, h = (np.empty((self.C, len(self.of(0).X))) for _ in range(3))

        def fill(c: int) -> None:
            for rows, A, h[c, rows] in self.of(c).blocks():
                white = multiply_triangular(posteriors[c].inverse, np.array(A, order="F"))
                mu[c, rows], s[c, rows] = posteriors[c].mean @ A, np.einsum("nm,nm->n", white.T, white.T)

        list(in_order(fill, range(self.C)))
        return mu, s, h

    def pull_back(self, slopes: list, dh: Array) -> dict:
        """Derivatives in the features of each class, turned into those in kernels and Z.

        Parameters
        ----------
        slopes : of C callables (rows, A (M, B)) -> dA (M, B), a fresh array in Fortran order
        dh : (C, N)

        Returns dict: "kernels" and "Z", a dict and an array (M, D) where they are shared, lists of C of them elsewhere.
        """
        if len(self.features) == 1:
            slopes, dh = [added(slopes)], np.stack([sum(dh)])
        parts = [
            pull_back_blocks(features, lambda rows, A, h, slope=slope, own=own: (slope(rows, A), own[rows]))
            for features, slope, own in zip(self.features, slopes, dh, strict=True)
        ]
        dZ = [part.pop("Z") for part in parts]
        kernels = {key: sum(part[key] for part in parts) for key in parts[0]} if len(self.kernels) == 1 else parts
        return {"kernels": kernels, "Z": sum(dZ) if len(self.Z) == 1 else dZ}


def added(slopes: list) -> Callable:
    """callable (rows, A) -> the sum of what these callables return."""

    def total(rows: Any, A: Array) -> Array:
        return add_up(lambda slope: (slope(rows, A),), slopes)[0]

    return total


class ClassPosterior(NamedTuple):
    """q(v) = N(m, V) of one class."""

    mean: Array  # (M,), m
    precision_cholesky: Array  # (M, M), C Cᵀ = V⁻¹
    inverse: Array  # (M, M), C⁻¹


def solve_posteriors(precisions: list, shifts: list, concave: bool) -> list[ClassPosterior]:
    """A ClassPosterior for every class, by `pepcore.normal_equations.solve_posterior`; source: :eq:`mc-posterior`."""


    def solve(pair: tuple) -> ClassPosterior:
        mean, C = solve_posterior(*pair, concave)
        return ClassPosterior(mean, C, inverse_lower(C))

    return list(in_order(solve, list(zip(precisions, shifts, strict=True))))


def along(posterior: ClassPosterior, weight_mean: Array, weight_Va: Array) -> Callable:
    """callable (rows, A) -> m weight_meanᵀ + V A diag(weight_Va), a fresh (M, B) array; the weights are (N,)."""
    mean, _, C_inverse = posterior

    def derivative(rows: Any, A: Array) -> Array:
        dA = multiply_triangular(C_inverse, np.array(A, order="F"))
        dA *= weight_Va[rows]
        multiply_triangular(C_inverse, dA, transposed=True)
        add_outer(dA, mean, weight_mean[rows])
        return dA

    return derivative
