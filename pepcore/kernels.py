"""Kernels: values, diagonals, and their transposed derivatives (vector-Jacobian products).

A kernel is any object with `parameters`, `with_parameters`, `__call__`, `diagonal`, `vjp` and `diagonal_vjp`.
The two below are stationary, k(x, x') = variance * g(r²) with r² = Σ_d (x_d − x'_d)² / lengthscale_d².

Pseudo-points need not be values of f. Where they are something else, the kernel has two more kernels as attributes:
`uf(X, Z)`, the covariance of f(x) with the pseudo-point at z, and `uu(Z)`, of the pseudo-points among each other.
"""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class _Stationary:
    """variance * g(r²); a subclass gives `_value(r2)` = g and `_value_and_slope(r2)` = g, dg/dr². Both may reuse r2."""

    variance: float = 1.0
    lengthscales: float | np.ndarray = 1.0

    def __post_init__(self):
        variance = np.asarray(self.variance, dtype=float)
        if variance.ndim or not (np.isfinite(variance) and variance > 0):
            raise ValueError(f"variance must be one positive finite number, got {self.variance!r}.")
        lengthscales = np.array(self.lengthscales, dtype=float)
        if lengthscales.ndim > 1 or not np.all(np.isfinite(lengthscales) & (lengthscales > 0)):
            raise ValueError(
                "lengthscales must be positive and finite: one number shared by all inputs, or one per input in a "
                f"1-D array; got {self.lengthscales!r}."
            )
        lengthscales.setflags(write=False)
        object.__setattr__(self, "variance", float(variance))
        object.__setattr__(self, "lengthscales", lengthscales if lengthscales.ndim else float(lengthscales))

    @property
    def parameters(self):
        """dict: "variance" (float), in units of y², and "lengthscales" (D,) or float, in units of the inputs."""
        return {"variance": self.variance, "lengthscales": self.lengthscales}

    def with_parameters(self, parameters):
        """The same kernel with other values; `parameters` may hold some of the keys of `self.parameters`."""
        unknown = set(parameters) - set(self.parameters)
        if unknown:
            raise ValueError(f"unknown kernel parameters {sorted(unknown)}; this kernel has {sorted(self.parameters)}.")
        return replace(self, **parameters)

    def __call__(self, X, X2=None):
        """K(X, X2) (N, N2) for X (N, D) and X2 (N2, D); X2 = X if left out."""
        left, right = self._scaled(X, X2)
        g = self._value(_square_distances(left, right, same=X2 is None))
        g *= self.variance
        return g

    def diagonal(self, X):
        """k(x, x) for each row of X (N, D), as (N,)."""
        return np.full(len(X), self.variance)

    def vjp(self, X, X2, dK):
        """Derivative of Σ dK ∘ K(X, X2): a dict over the parameters, and dX (N, D) for the first argument.

        For a symmetric dK and X2 = X the derivative through both arguments is 2 dX.

        Parameters
        ----------
        X : (N, D)
        X2 : (N2, D)
        dK : (N, N2)

        Returns
        -------
        dict with "variance" () and "lengthscales" (D,) or ();  dX (N, D)

        Source: :eq:`gp-vjp`.
        """
        left, right = self._scaled(X, X2)
        # r² in the memory order of dK, so that the products below run along both
        if dK.flags.f_contiguous:
            g, weight = self._value_and_slope(_square_distances(right, left, same=False).T)
        else:
            g, weight = self._value_and_slope(_square_distances(left, right, same=False))
        dvariance = np.einsum("nm,nm->", dK, g)
        weight *= dK  # from here on dF/dr²
        weight *= self.variance

        rows, columns, mixed = weight.sum(axis=1), weight.sum(axis=0), weight @ right
        # Σ w_ij (l_i − r_j)², per input dimension, without an (N, N2, D) array
        stretch = rows @ left**2 + columns @ right**2 - 2 * (left * mixed).sum(axis=0)
        dlengthscales = -2 * stretch / self.lengthscales
        if np.ndim(self.lengthscales) == 0:
            dlengthscales = float(dlengthscales.sum())
        dX = 2 * (rows[:, None] * left - mixed) / self.lengthscales
        return {"variance": float(dvariance), "lengthscales": dlengthscales}, dX

    def diagonal_vjp(self, X, dk):
        """Derivative of Σ dk ∘ diagonal(X) with respect to the parameters, for dk (N,)."""
        return {"variance": float(np.sum(dk)), "lengthscales": np.zeros_like(self.lengthscales)[()]}

    def __add__(self, other):
        return Sum((self,)) + other

    def _scaled(self, X, X2):
        """Both inputs in units of the lengthscales and shifted alike, which k cannot see but rounding can."""
        X2 = X if X2 is None else X2
        if X.shape[1] != X2.shape[1] or np.size(self.lengthscales) not in (1, X.shape[1]):
            raise ValueError(
                f"inputs have {X.shape[1]} and {X2.shape[1]} columns and the kernel {np.size(self.lengthscales)} "
                "lengthscales; all three must agree (a single lengthscale is shared by all columns)."
            )
        centre = X2.mean(axis=0)
        left = (X - centre) / self.lengthscales
        return left, left if X2 is X else (X2 - centre) / self.lengthscales


class SquaredExponential(_Stationary):
    """k(x, x') = variance · exp(−r²/2),  r² = Σ_d (x_d − x'_d)² / lengthscale_d².

    Parameters
    ----------
    variance : float, in units of y²
    lengthscales : (D,) one per input, or a float shared by all

    Source: rasmussen2006 eq. (5.1); :eq:`gp-se`.
    """

    @staticmethod
    def _value(r2):
        r2 *= -0.5
        return np.exp(r2, out=r2)

    def _value_and_slope(self, r2):
        g = self._value(r2)
        return g, -0.5 * g


class Matern52(_Stationary):
    """k(x, x') = variance · (1 + √5 r + 5r²/3) exp(−√5 r),  r² = Σ_d (x_d − x'_d)² / lengthscale_d².

    Parameters
    ----------
    variance : float, in units of y²
    lengthscales : (D,) one per input, or a float shared by all

    Source: rasmussen2006 eq. (4.17); :eq:`gp-matern`.
    """

    @staticmethod
    def _value(r2):
        s = np.sqrt(5.0 * r2)
        return (1 + s + s**2 / 3) * np.exp(-s)

    @staticmethod
    def _value_and_slope(r2):
        s = np.sqrt(5.0 * r2)
        decay = np.exp(-s)
        return (1 + s + s**2 / 3) * decay, (-5 / 6) * (1 + s) * decay


@dataclass(frozen=True, eq=False)
class Sum:
    """Sum of kernels, written `k1 + k2`. Parameter keys carry the position: "0.variance", "1.lengthscales", ..."""

    parts: tuple

    @property
    def parameters(self):
        """dict over all parts, keys "position.name"."""
        return {f"{i}.{key}": value for i, part in enumerate(self.parts) for key, value in part.parameters.items()}

    def with_parameters(self, parameters):
        """The same sum with other values; `parameters` may hold some of the keys of `self.parameters`."""
        unknown = set(parameters) - set(self.parameters)
        if unknown:
            raise ValueError(f"unknown kernel parameters {sorted(unknown)}; this kernel has {sorted(self.parameters)}.")
        own = [{} for _ in self.parts]
        for key, value in parameters.items():
            position, name = key.split(".", 1)
            own[int(position)][name] = value
        return Sum(tuple(part.with_parameters(values) for part, values in zip(self.parts, own, strict=True)))

    def __call__(self, X, X2=None):
        """K(X, X2) (N, N2); X2 = X if left out."""
        return sum(part(X, X2) for part in self.parts)

    def diagonal(self, X):
        """k(x, x) for each row of X (N, D), as (N,)."""
        return sum(part.diagonal(X) for part in self.parts)

    def vjp(self, X, X2, dK):
        """As the `vjp` of the parts; the parameters' derivatives stand side by side, those of X add up."""
        results = [part.vjp(X, X2, dK) for part in self.parts]
        return _prefixed(gradient for gradient, _ in results), sum(dX for _, dX in results)

    def diagonal_vjp(self, X, dk):
        """As the `diagonal_vjp` of the parts, side by side."""
        return _prefixed(part.diagonal_vjp(X, dk) for part in self.parts)

    def __add__(self, other):
        return Sum(self.parts + (other.parts if isinstance(other, Sum) else (other,)))


def _prefixed(gradients):
    return {f"{i}.{key}": value for i, gradient in enumerate(gradients) for key, value in gradient.items()}


def _square_distances(left, right, same):
    """|l_i − r_j|² (N, N2) by one matrix product: [−2l, |l|², 1] · [r, 1, |r|²]."""
    one = np.ones((len(left), 1))
    extended_left = np.hstack([-2 * left, (left**2).sum(axis=1, keepdims=True), one])
    extended_right = np.hstack([right, np.ones((len(right), 1)), (right**2).sum(axis=1, keepdims=True)])
    r2 = extended_left @ extended_right.T
    np.maximum(r2, 0.0, out=r2)  # rounding can leave -1e-16
    if same:
        np.fill_diagonal(r2, 0.0)
    return r2
