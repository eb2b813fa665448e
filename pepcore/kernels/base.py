"""What all kernels share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array


class Kernel:
    """A covariance function k(x, x').

    A subclass has `parameters`, `_with`, `__call__`, `diagonal`, `value_and_vjp` and `diagonal_vjp`. Kernels are equal if
    they are of one kind and have equal parameters.
    """

    @property
    def parameters(self) -> dict:
        """dict name -> float or array, in natural units."""
        raise NotImplementedError

    def with_parameters(self, parameters: dict) -> Kernel:
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
        X : (N, D)
        X2 : (N2, D)
        dK : (N, N2)

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
        """What tells kernels of one kind apart."""
        return tuple((name, np.shape(value), np.asarray(value).tobytes()) for name, value in self.parameters.items())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def __repr__(self) -> str:
        with np.printoptions(precision=4, threshold=6, edgeitems=2):
            shown = {name: str(value) if np.ndim(value) else f"{value:.4g}" for name, value in self.parameters.items()}
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in shown.items())})"


def shared(derivative: Array, parameter: float | Array) -> float | Array:
    """The derivative (D,) in the shape of its parameter, (D,), or the sum over all inputs if they share one, () or (1,)."""
    if np.ndim(parameter) == 0:
        return float(derivative.sum())
    return derivative if len(parameter) > 1 else derivative.sum(keepdims=True)
