"""The base class of kernels, and checks at the public door. A kernel need not derive from it, only have its methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.validation import as_real, check_finite, check_part


class Kernel:
    """A covariance function k(x, x').

    A subclass has `parameters`, `_with`, `__call__`, `diagonal`, `value_and_vjp` and `diagonal_vjp`. Kernels are equal
    if they are of one kind and have equal parameters.
    """

    @property
    def parameters(self) -> dict:
        """dict name -> float or array, in natural units."""
        raise NotImplementedError

    def with_parameters(self, parameters: dict) -> Any:
        """The same kernel with other values; `parameters` may hold some of the keys of `self.parameters`."""
        unknown = set(parameters) - set(self.parameters)
        if unknown:
            raise ValueError(f"unknown kernel parameters {sorted(unknown)}; this kernel has {sorted(self.parameters)}.")
        return self._with(parameters)

    def _with(self, parameters: dict) -> Kernel:
        raise NotImplementedError

    def __call__(self, X: ArrayLike, X2: ArrayLike | None = None) -> Array:
        """K(X, X2) (N, N2) for X (N, D) and X2 (N2, D); X2 = X if left out. ValueError for other shapes, NaN or text."""
        raise NotImplementedError

    def diagonal(self, X: Array) -> Array:
        """k(x, x) for each row of X (N, D), as (N,)."""
        raise NotImplementedError

    def value_and_vjp(self, X: Array, X2: Array | None = None) -> tuple[Array, Any]:
        """K(X, X2) (N, N2), and a function that takes derivatives back through it without evaluating it again.

        Parameters
        ----------
        X : (N, D)
        X2 : (N2, D), or None for X

        Returns
        -------
        K : (N, N2), to be left as it is until the function has been called
        vjp : callable (dK (N, N2), first=True, second=False) -> derivatives of Σ dK ∘ K
            A dict over the parameters, each in the shape that it has, then dX (N, D) if `first`, else None, and
            dX2 (N2, D) if `second`, else None. It is fastest for a dK in C order.

        Source: :eq:`gp-vjp`.
        """
        raise NotImplementedError

    def vjp(self, X: Array, X2: Array, dK: Array) -> tuple[dict, Array]:
        """Derivative of Σ dK ∘ K(X, X2): a dict over the parameters, and dX (N, D) for the first argument.

        For a symmetric dK and X2 = X the derivative through both arguments is 2 dX.

        Parameters
        ----------
        X, X2, dK : (N, D), (N2, D), (N, N2)

        Source: :eq:`gp-vjp`.
        """
        if dK.flags.f_contiguous:  # the roles of X and X2 exchanged
            gradient, _, dX = self.value_and_vjp(X2, X)[1](dK.T, first=False, second=True)
        else:
            gradient, dX, _ = self.value_and_vjp(X, X2)[1](dK)
        return gradient, dX

    def diagonal_vjp(self, X: Array, dk: Array) -> dict:
        """Derivative of Σ dk ∘ diagonal(X) with respect to the parameters, for dk (N,)."""
        raise NotImplementedError

    def _key(self) -> tuple:
        """What distinguishes kernels of one kind."""
        return tuple((name, np.shape(value), np.asarray(value).tobytes()) for name, value in self.parameters.items())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def __repr__(self) -> str:
        with np.printoptions(precision=4, threshold=6, edgeitems=2):
            shown = {name: str(value) if np.ndim(value) else f"{value:.4g}" for name, value in self.parameters.items()}
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in shown.items())})"


def shared(derivative: Array, parameter: Any) -> float | Array:
    """The derivative (D,) in the shape of its parameter, (D,), or the sum over all inputs if they share one, () or (1,)."""
    if np.ndim(parameter) == 0:
        return float(derivative.sum())
    return derivative if len(parameter) > 1 else derivative.sum(keepdims=True)


def check_kernel(kernel: Kernel, name: str = "kernel") -> Kernel:
    """Return the kernel; ValueError for what cannot be called or has no `diagonal`, and for a class, not an instance.

    Only gradients need its `value_and_vjp`.
    """
    fits = callable(kernel) and hasattr(kernel, "diagonal")
    expected = "a kernel, an object that can be called and has the method diagonal"
    return check_part(kernel, fits, name, expected, "SquaredExponential(variance=1.0, lengthscales=1.0)")


def check_points(X: ArrayLike, X2: ArrayLike | None = None) -> tuple[Array, Array]:
    """X (N, D) and X2 (N2, D), which is X if None, as float64; ValueError for what is not numbers, or not finite.

    The kernel itself looks at the shapes.
    """
    points = check_finite(as_real(X, "X"), "X")
    return points, points if X2 is None or X2 is X else check_finite(as_real(X2, "X2"), "X2")


def check_plain(kernel: Kernel, method: str) -> None:
    """Raise ValueError if `kernel` has pseudo-points that are no values of f, which `method` (str, a plural) cannot use."""
    if hasattr(check_kernel(kernel), "uf"):
        raise ValueError(f"{method} take points of f itself; give a plain kernel, not one for other pseudo-points")
