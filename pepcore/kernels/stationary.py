"""Stationary kernels, k(x, x') = variance * g(r²) with r² = Σ_d (x_d − x'_d)² / lengthscale_d²."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.kernels.base import Kernel, check_points
from pepcore.validation import as_real

FAR = 1e3  # a distance from the centre beyond which the product has fewer than ten right digits after the point
FARTHEST = 1e150  # a difference: its square and a sum of such squares do not overflow, and no kernel reaches so far


@dataclass(frozen=True, eq=False, repr=False)
class _Stationary(Kernel):
    """variance * g(r²), as a function of t = _scale · r²; a subclass turns t, which it may write over, into values."""

    _scale: ClassVar[float]
    _value: ClassVar[Callable]
    _value_and_slope: ClassVar[Callable]

    variance: float = 1.0
    lengthscales: float | Array = 1.0

    def __post_init__(self) -> None:
        variance = as_real(self.variance, "variance")
        if variance.ndim or not (np.isfinite(variance) and variance > 0):
            raise ValueError(f"variance must be one positive finite number, got {self.variance!r}.")
        lengthscales = as_real(self.lengthscales, "lengthscales").copy()
        if lengthscales.ndim > 1 or not np.all(np.isfinite(lengthscales) & (lengthscales > 0)):
            raise ValueError("lengthscales must be positive and finite: one number shared by all inputs, or one per "
                             f"input in a 1-D array; got {self.lengthscales!r}.")
        lengthscales.setflags(write=False)
        object.__setattr__(self, "variance", float(variance))
        object.__setattr__(self, "lengthscales", lengthscales if lengthscales.ndim else float(lengthscales))

    @property
    def parameters(self) -> dict:
        """dict: "variance" (float), in units of y², and "lengthscales" (D,) or float, in units of the inputs."""
        return {"variance": self.variance, "lengthscales": self.lengthscales}

    def _with(self, parameters: dict) -> Kernel:
        return replace(self, **parameters)

    def __call__(self, X: ArrayLike, X2: ArrayLike | None = None) -> Array:
        return self._value(squared_distances(*self._scaled(*check_points(X, X2)), self._scale))

    def diagonal(self, X: Array) -> Array:
        return np.full(len(X), self.variance)

    def value_and_vjp(self, X: Array, X2: Array | None = None) -> tuple[Array, Any]:
        left, right = self._scaled(X, X2)
        K, slope, factor = self._value_and_slope(squared_distances(left, right, self._scale))
        return K, _StationaryVjp(self, left, right, K, slope, factor)

    def diagonal_vjp(self, X: Array, dk: Array) -> dict:
        return {"variance": float(np.sum(dk)), "lengthscales": np.zeros_like(self.lengthscales)[()]}

    def _scaled(self, X: Array, X2: Array | None) -> tuple[Array, Array]:
        """Both inputs in units of the lengthscales, shifted alike: k is unchanged and rounding errors are smaller."""
        X2 = X if X2 is None else X2
        if X.ndim != 2 or X2.ndim != 2:
            raise ValueError(f"a kernel takes inputs of shape (N, D), one row per point; got shapes {X.shape} and "
                             f"{X2.shape}. For points x on a line give x[:, None].")
        if X.shape[1] != X2.shape[1] or np.size(self.lengthscales) not in (1, X.shape[1]):
            raise ValueError(f"inputs have {X.shape[1]} and {X2.shape[1]} columns and the kernel "
                             f"{np.size(self.lengthscales)} lengthscales; all three must agree (a single lengthscale "
                             "is shared by all columns).")
        centre = X2.mean(axis=0)
        left = (X - centre) / self.lengthscales
        return left, left if X2 is X else (X2 - centre) / self.lengthscales


class _StationaryVjp(NamedTuple):
    """What the derivatives through K(X, X2) need: dK/dr² = factor * slope."""

    kernel: _Stationary
    left: Array  # (N, D), X in units of the lengthscales
    right: Array  # (N2, D)
    K: Array  # (N, N2)
    slope: Array  # (N, N2), may be K
    factor: float

    def __call__(self, dK: Array, first: bool = True, second: bool = False) -> tuple[dict, Array | None, Array | None]:
        kernel, left, right, K, slope, factor = self
        weight = dK * slope  # but for the factor, dF/dr²
        rows, columns = weight @ np.ones(len(right)), np.ones(len(left)) @ weight  # BLAS adds up faster than sum
        mixed: Any = weight @ right if first or not second else None
        mixed2: Any = weight.T @ left if second else None
        if _far(left).any() or _far(right).any():
            stretch = np.array([np.vdot(weight, _squares(l, r)) for l, r in zip(left.T, right.T, strict=True)])
        else:  # Σ w_ij (l_id − r_jd)² (D,) without an (N, N2, D) array
            cross = np.einsum("nd,nd->d", left, mixed) if mixed2 is None else np.einsum("nd,nd->d", right, mixed2)
            stretch = rows @ left**2 + columns @ right**2 - 2 * cross
        dlengthscales = -2 * factor * stretch / kernel.lengthscales
        gradient = {
            "variance": float((rows.sum() if slope is K else np.einsum("nm,nm->", dK, K)) / kernel.variance),
            "lengthscales": shared(dlengthscales, kernel.lengthscales),
        }
        unit = 2 * factor / kernel.lengthscales
        dX = unit * (rows[:, None] * left - mixed) if first else None
        dX2 = unit * (columns[:, None] * right - mixed2) if second else None
        return gradient, dX, dX2


class SquaredExponential(_Stationary):
    """k(x, x') = variance · exp(−r²/2),  r² = Σ_d (x_d − x'_d)² / lengthscale_d².

    `variance` is in units of y²; `lengthscales`, (D,) one per input, or a float shared by all, in units of the inputs.

    Source: rasmussen2006 eq. (5.1); :eq:`gp-se`, :eq:`gp-vjp`.
    """

    _scale = -0.5

    def _value(self, t: Array) -> Array:
        np.exp(t, out=t)
        t *= self.variance
        return t

    def _value_and_slope(self, t: Array) -> tuple[Array, Array, float]:
        K = self._value(t)
        return K, K, -0.5


class Matern52(_Stationary):
    """k(x, x') = variance · (1 + √5 r + 5r²/3) exp(−√5 r),  r² = Σ_d (x_d − x'_d)² / lengthscale_d².

    `variance` and `lengthscales` are as in `SquaredExponential`.

    Source: rasmussen2006 eq. (4.17); :eq:`gp-matern`, :eq:`gp-vjp`.
    """

    _scale = 5.0

    def _value(self, t: Array) -> Array:
        for rows in _few_rows(t):
            self._fill(t[rows], np.sqrt(t[rows]))
        return t

    def _value_and_slope(self, t: Array) -> tuple[Array, Array, float]:
        s = np.sqrt(t)
        for rows in _few_rows(t):
            self._fill(t[rows], s[rows])
        return t, s, -5 / 6

    def _fill(self, t: Array, s: Array) -> None:
        """Write K over t = s², and (1 + s) exp(−s) · variance over s."""
        decay = np.negative(s)
        np.exp(decay, out=decay)
        decay *= self.variance
        s += 1
        t *= 1 / 3
        t += s
        t *= decay
        s *= decay


def _few_rows(t: Array) -> list[slice]:
    """Slices over the rows of t (N, N2) that are small enough for temporary arrays to stay in the nearest cache."""
    step = max(1, 2**13 // max(t.shape[1], 1))
    return [slice(start, start + step) for start in range(0, len(t), step)]


def shared(derivative: Array, parameter: Any) -> float | Array:
    """The derivative (D,) in the shape of its parameter, (D,), or the sum over all inputs if they share one, () or (1,)."""
    if np.ndim(parameter) == 0:
        return float(derivative.sum())
    return derivative if len(parameter) > 1 else derivative.sum(keepdims=True)


# --- squared distances ------------------------------------------------------------------------------------------------
#
# One matrix product gives them all, |l|² + |r|² − 2 l·r. That is wrong by some 1e-16 |l|²: too much where inputs are
# thousands of lengthscales apart, as time stamps may be. There the differences are taken one input dimension at a time.


def squared_distances(left: Array, right: Array, scale: float) -> Array:
    """scale · |l_i − r_j|² (N, N2) of left (N, D) and right (N2, D), in units of the lengthscales.

    Each row of `left` is treated by itself, so that a prediction does not depend on the other rows.
    """
    if _far(right).any():
        return _by_differences(left, right, scale)
    if not _far(left).any():
        return _by_product(left, right, scale)
    t, far = np.empty((len(left), len(right))), _far(left)
    t[far], t[~far] = _by_differences(left[far], right, scale), _by_product(left[~far], right, scale)
    return t


def _by_differences(left: Array, right: Array, scale: float) -> Any:
    return scale * sum(_squares(l, r) for l, r in zip(left.T, right.T, strict=True))


def _by_product(left: Array, right: Array, scale: float) -> Array:
    D = left.shape[1]
    # scale · [−2l, |l|², 1] · [r, 1, |r|²]
    extended_left, extended_right = np.empty((len(left), D + 2)), np.empty((len(right), D + 2))
    np.multiply(left, -2 * scale, out=extended_left[:, :D])
    np.multiply(np.einsum("nd,nd->n", left, left), scale, out=extended_left[:, D])
    extended_left[:, D + 1] = scale
    extended_right[:, :D] = right
    extended_right[:, D] = 1
    np.einsum("nd,nd->n", right, right, out=extended_right[:, D + 1])
    t = extended_left @ extended_right.T
    if scale > 0:  # the caller takes roots, and rounding can leave t below 0; an exponential is not affected
        np.maximum(t, 0.0, out=t)
    if left is right:
        np.fill_diagonal(t, 0.0)
    return t


def _far(points: Array) -> Any:
    return np.einsum("nd,nd->n", points, points) > FAR**2


def _squares(l: Array, r: Array) -> Array:
    """(l_i − r_j)² (N, N2) of one dimension."""
    difference = np.subtract.outer(l, r)
    np.clip(difference, -FARTHEST, FARTHEST, out=difference)
    difference *= difference
    return difference
