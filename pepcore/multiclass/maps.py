"""One feature map for each of C classes, or one that all share."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from pepcore.features import Features, add_up, feature_map, in_order, pull_back_blocks
from pepcore.gaussian import Array, inverse_lower
from pepcore.normal_equations import lower_sums, project, solve_posterior
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

    def at(self, X: Array) -> Self:
        """The features of other inputs; only for streamed maps."""
        return replace(self, features=tuple(replace(features, X=X) for features in self.features))

    def of(self, c: int) -> Features:
        """The Features of class c."""
        return self.features[c % len(self.features)]

    def _effort(self) -> float:
        """Multiplications in A Aᵀ, for one class."""
        return len(self.of(0).X) * len(self.of(0).basis.Z) ** 2

    def natural_parameters(self, tau: Array, nu: Array) -> tuple[list, list]:
        """What sites (C, N) add to each class: precisions (M, M), lower triangles, and shifts (M,); source: :eq:`mc-sums`."""
        pairs = list(in_order(lambda c: lower_sums(self.of(c), Sites(tau[c], nu[c])), range(self.C), self._effort()))
        return [precision for precision, _ in pairs], [shift for _, shift in pairs]

    def marginals(self, posteriors: list) -> Array:
        """μ, s and h, (3, C, N): mean and variance of aᵀv under every class's posterior, and the residual variance."""
        found = np.empty((3, self.C, len(self.of(0).X)))
        fill = lambda c: project(self.of(c), posteriors[c].mean, posteriors[c].inverse, out=found[:, c])
        list(in_order(fill, range(self.C), self._effort()))
        return found

    def pull_back(self, slopes: list, dh: Array) -> dict:
        """Derivatives of kernels and Z: a dict and an array (M, D) where they are shared, lists of C of them elsewhere.

        `slopes` are C callables (rows, A (M, B)) -> dA (M, B), a fresh array in Fortran order; dh is (C, N).
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
    """Combine functions (rows, A) -> (M, B) into one that returns their sum."""
    return lambda rows, A: add_up(lambda slope: (slope(rows, A),), slopes, A.size * len(A))[0]


class ClassPosterior(NamedTuple):
    """q(v) = N(m, V) of one class."""

    mean: Array  # (M,), m
    precision_cholesky: Array  # (M, M), C Cᵀ = V⁻¹
    inverse: Array  # (M, M), C⁻¹


def solve_posteriors(precisions: list, shifts: list, concave: bool) -> list[ClassPosterior]:
    """A ClassPosterior for every class, by `pepcore.normal_equations.solve_posterior`; source: :eq:`mc-posterior`."""

    def solve(pair: tuple) -> ClassPosterior:
        mean, C = solve_posterior(pair[0], pair[1], concave)
        return ClassPosterior(mean, C, inverse_lower(C))

    return list(in_order(solve, list(zip(precisions, shifts, strict=True)), effort=len(shifts[0]) ** 3))
