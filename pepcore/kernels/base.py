"""The base class of kernels, sums of kernels, and checks of inputs. A kernel needs the methods, not the base class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.validation import as_real, check_finite, check_kernel


class Kernel(ABC):
    """A covariance function k(x, x').

    A subclass has `parameters`, `_with`, `__call__`, `diagonal`, `value_and_vjp` and `diagonal_vjp`; without one of them
    Python refuses to make an object of it. Kernels are equal if they have the same type and equal parameters.
    """

    @property
    @abstractmethod
    def parameters(self) -> dict:
        """dict name -> float or array, in natural units.

        The gradient of a fit has the same keys, and beside them "Z", "noise" and those of the likelihood: no kernel may use
        these names.
        """

    def with_parameters(self, parameters: dict) -> Any:
        """The same kernel with other values; `parameters` may hold some of the keys of `self.parameters`."""
        unknown = set(parameters) - set(self.parameters)
        if unknown:
            raise ValueError(f"unknown kernel parameters {sorted(unknown)}; this kernel has {sorted(self.parameters)}.")
        return self._with(parameters)

    @abstractmethod
    def _with(self, parameters: dict) -> Kernel:
        """As `with_parameters`, for checked names."""

    @abstractmethod
    def __call__(self, X: ArrayLike, X2: ArrayLike | None = None) -> Array:
        """K(X, X2) (N, N2) for X (N, D) and X2 (N2, D), a new array that the caller may write over; X2 = X if left out.

        ValueError for other shapes, NaN or text.
        """

    @abstractmethod
    def diagonal(self, X: Array) -> Array:
        """k(x, x) for each row of X (N, D), as (N,)."""

    @abstractmethod
    def value_and_vjp(self, X: Array, X2: Array | None = None) -> tuple[Array, Any]:
        """K(X, X2) (N, N2), and a function that takes derivatives back through it without evaluating it again.

        X is (N, D), and X2 (N2, D), or None for X.

        Returns
        -------
        K : (N, N2), to be left as it is until the function has been called
        vjp : callable (dK (N, N2), first=True, second=False) -> derivatives of Σ dK ∘ K
            A dict over the parameters, each in its own shape, then dX (N, D) if `first`, else None, and
            dX2 (N2, D) if `second`, else None. It is fastest for a dK in C order.

        Source: :eq:`gp-vjp`.
        """

    def vjp(self, X: Array, X2: Array, dK: Array) -> tuple[dict, Array]:
        """Derivative of Σ dK ∘ K(X, X2), dK (N, N2): a dict over the parameters, and dX (N, D) for the first argument.

        For a symmetric dK and X2 = X the derivative through both arguments is 2 dX.

        Source: :eq:`gp-vjp`.
        """
        if dK.flags.f_contiguous:  # the roles of X and X2 exchanged
            gradient, _, dX = self.value_and_vjp(X2, X)[1](dK.T, first=False, second=True)
        else:
            gradient, dX, _ = self.value_and_vjp(X, X2)[1](dK)
        return gradient, dX

    @abstractmethod
    def diagonal_vjp(self, X: Array, dk: Array) -> dict:
        """Derivative of Σ dk ∘ diagonal(X) with respect to the parameters, for dk (N,)."""

    def __add__(self, other: Any) -> Sum:
        """The sum of two kernels, flat if one is a sum itself; Python's `sum` adds up many."""
        parts = [kernel.parts if isinstance(kernel, Sum) else (kernel,) for kernel in (self, other)]
        return Sum(parts[0] + parts[1])

    def __radd__(self, other: Any) -> Any:
        """`sum` begins with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def _key(self) -> tuple:
        """What distinguishes kernels of one type."""
        return tuple((name, np.shape(value), np.asarray(value).tobytes()) for name, value in self.parameters.items())

    def __setstate__(self, state: dict) -> None:
        """The arrays of a copy are as read-only as those of the original."""
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self.__dict__.update(state)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def __repr__(self) -> str:
        with np.printoptions(precision=4, threshold=6, edgeitems=2):
            shown = {name: str(value) if np.ndim(value) else f"{value:.4g}" for name, value in self.parameters.items()}
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in shown.items())})"


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Kernel):
    """Sum of kernels, written `k1 + k2`. Parameter keys carry the position: "0.variance", "1.lengthscales", ..."""

    parts: tuple

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise ValueError("a sum of kernels has no parts; give at least one kernel")
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


class _SumVjp(NamedTuple):
    """The derivatives through each of the parts, one beside the other."""

    parts: tuple

    def __call__(self, dK: Array, first: bool = True, second: bool = False) -> tuple[dict, Array | None, Array | None]:
        gradients, dX, dX2 = zip(*(part(dK, first, second) for part in self.parts), strict=True)
        return _prefixed(gradients), sum(dX) if first else None, sum(dX2) if second else None


def _prefixed(gradients: Iterable[dict]) -> dict:
    return {f"{i}.{key}": value for i, gradient in enumerate(gradients) for key, value in gradient.items()}


def check_points(X: ArrayLike, X2: ArrayLike | None = None) -> tuple[Array, Array]:
    """X (N, D) and X2 (N2, D), which is X if None, as float64; ValueError for what is not numbers, or not finite.

    The kernel itself checks the shapes.
    """
    points = check_finite(as_real(X, "X"), "X")
    return points, points if X2 is None or X2 is X else check_finite(as_real(X2, "X2"), "X2")
