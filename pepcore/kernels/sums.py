"""Sums of kernels."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.kernels.base import Kernel, check_kernel


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Kernel):
    """Sum of kernels, written `k1 + k2`. Parameter keys carry the position: "0.variance", "1.lengthscales", ..."""

    parts: tuple

    def __post_init__(self) -> None:
        if any(hasattr(check_kernel(part, "part of a sum of kernels"), "uf") for part in self.parts):
            raise ValueError("a kernel with pseudo-points of its own cannot be part of a sum, which has one set of "
                             "pseudo-points; add plain kernels, or use that kernel alone")

    @property
    def parameters(self) -> dict:
        """dict over all parts, keys "position.name"."""
        return {f"{i}.{key}": value for i, part in enumerate(self.parts) for key, value in part.parameters.items()}

    def _with(self, parameters: dict) -> Kernel:
        own: list[dict] = [{} for _ in self.parts]
        for key, value in parameters.items():
            position, name = key.split(".", 1)
            own[int(position)][name] = value
        return Sum(tuple(part.with_parameters(values) for part, values in zip(self.parts, own, strict=True)))

    def __call__(self, X: ArrayLike, X2: ArrayLike | None = None) -> Array:
        K = self.parts[0](X, X2)
        for part in self.parts[1:]:
            K += part(X, X2)
        return K

    def diagonal(self, X: Array) -> Array:
        return sum(part.diagonal(X) for part in self.parts)

    def value_and_vjp(self, X: Array, X2: Array | None = None) -> tuple[Array, Any]:
        values, vjps = zip(*(part.value_and_vjp(X, X2) for part in self.parts), strict=True)
        return sum(values), _SumVjp(vjps)

    def diagonal_vjp(self, X: Array, dk: Array) -> dict:
        return _prefixed(part.diagonal_vjp(X, dk) for part in self.parts)

    def _key(self) -> tuple:
        return self.parts

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    def __add__(self, other: Kernel) -> "Sum":
        return Sum(self.parts + (other.parts if isinstance(other, Sum) else (other,)))


class _SumVjp(NamedTuple):
    """The derivatives through each of the parts, one beside the other."""

    parts: tuple

    def __call__(self, dK: Array, first: bool = True, second: bool = False) -> tuple[dict, Array | None, Array | None]:
        gradients, dX, dX2 = zip(*(part(dK, first, second) for part in self.parts), strict=True)
        return _prefixed(gradients), sum(dX) if first else None, sum(dX2) if second else None


def _prefixed(gradients: Iterable[dict]) -> dict:
    return {f"{i}.{key}": value for i, gradient in enumerate(gradients) for key, value in gradient.items()}
