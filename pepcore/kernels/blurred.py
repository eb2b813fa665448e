"""Inter-domain pseudo-points: averages of f around Z in place of its values there.

Everything after the feature map is as before, so a kernel with its own `uf` and `uu` is all that is needed.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array, NotPositiveDefiniteError
from pepcore.kernels.base import Kernel, check_points
from pepcore.kernels.stationary import SquaredExponential, shared
from pepcore.validation import as_real, check_kernel


@dataclass(frozen=True, eq=False, repr=False)
class Blurred(Kernel):
    """A squared exponential whose pseudo-points are local averages: u(z) = ∫ f(x) N(x; z, diag(widths²)) dx.

    f is the same process as without the blur; a pseudo-point sees it out of focus. At zero width u(z) = f(z). `kernel` is
    that of f; `widths` >= 0, (D,) one per input, or a float shared by all, are in units of the inputs.

    Source: bui2017 section 3.7; lazaro2009; :eq:`sc-blurred`.
    """

    kernel: SquaredExponential
    widths: float | Array

    def __post_init__(self) -> None:
        if not isinstance(check_kernel(self.kernel), SquaredExponential):
            raise ValueError(f"kernel must be a SquaredExponential, whose blur has a closed form; got {self.kernel!r}.")
        widths = as_real(self.widths, "widths").copy()
        if widths.ndim > 1 or not np.all(np.isfinite(widths) & (widths >= 0)):
            raise ValueError("widths must be finite and at least 0: one number shared by all inputs, or one per input "
                             f"in a 1-D array; got {self.widths!r}.")
        widths.setflags(write=False)
        object.__setattr__(self, "widths", widths if widths.ndim else float(widths))

    @property
    def parameters(self) -> dict:
        """dict: those of the kernel, and "widths" (D,) or float, in units of the inputs."""
        return self.kernel.parameters | {"widths": self.widths}

    def _with(self, parameters: dict) -> Kernel:
        own = {key: value for key, value in parameters.items() if key != "widths"}
        return Blurred(self.kernel.with_parameters(own), parameters.get("widths", self.widths))

    def __call__(self, X: ArrayLike, X2: ArrayLike | None = None) -> Array:
        return self.kernel(X, X2)

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diagonal(X)

    def value_and_vjp(self, X: Array, X2: Array | None = None) -> tuple[Array, Any]:
        return _Blur(self, 0).value_and_vjp(X, X2)

    def diagonal_vjp(self, X: Array, dk: Array) -> dict:
        return self.kernel.diagonal_vjp(X, dk) | {"widths": np.zeros_like(self.widths)[()]}

    @property
    def ff(self) -> Kernel:
        """Covariance of f(x) with f(x'): no blur."""
        return self.kernel

    @property
    def uf(self) -> Kernel:
        """Covariance of f(x) with u(z): one blur."""
        return _Blur(self, 1)

    @property
    def uu(self) -> Kernel:
        """Covariance of u(z) with u(z'): two blurs."""
        return _Blur(self, 2)


@dataclass(frozen=True, eq=False, repr=False)
class _Blur(Kernel):
    """Covariance after `times` blurs: a squared exponential again, of lengthscales λ² = lengthscales² + times · widths²
    and variance · Π_d lengthscale_d/λ_d.
    """

    blurred: Blurred
    times: int

    @property
    def parameters(self) -> dict:
        """Those of the blurred kernel, which derivatives refer to."""
        return self.blurred.parameters

    def _with(self, parameters: dict) -> Kernel:
        return _Blur(self.blurred.with_parameters(parameters), self.times)

    def _key(self) -> tuple:
        return self.blurred, self.times

    def __call__(self, X: ArrayLike, X2: ArrayLike | None = None) -> Array:
        X, X2 = check_points(X, X2)
        return self._widened(X)(X, X2)

    def diagonal(self, X: Array) -> Array:
        X, _ = check_points(X)
        return self._widened(X).diagonal(X)

    def value_and_vjp(self, X: Array, X2: Array | None = None) -> tuple[Array, Any]:
        K, vjp = self._widened(X).value_and_vjp(X, X2)
        return K, _BlurVjp(self, X, vjp)

    def diagonal_vjp(self, X: Array, dk: Array) -> dict:
        return self._pull_back(X, self._widened(X).diagonal_vjp(X, dk))

    def _widened(self, X: Array) -> SquaredExponential:
        lengthscales, widths = self._scales(X)
        wide = np.sqrt(lengthscales**2 + self.times * widths**2)
        variance = float(self.blurred.kernel.variance * np.prod(lengthscales / wide))
        if not variance > 0:
            raise NotPositiveDefiniteError(f"averages with these widths over {len(wide)} inputs have no prior variance left in "
                                           "floating point; give smaller widths or longer lengthscales")
        return SquaredExponential(variance, wide)

    def _scales(self, X: Array) -> tuple[Array, ...]:
        """lengthscales and widths, (D,) each."""
        columns = X.shape[-1:]  # for points without columns the widened kernel gives a better error
        try:
            return tuple(np.broadcast_to(a, columns) for a in (self.blurred.kernel.lengthscales, self.blurred.widths))
        except ValueError:
            raise ValueError(
                f"inputs have {columns[0]} columns, the kernel {np.size(self.blurred.kernel.lengthscales)} lengthscales "
                f"and {np.size(self.blurred.widths)} widths; each must be one number or one per column."
            ) from None

    def _pull_back(self, X: Array, gradient: dict) -> dict:
        """The chain rule from the variance and lengthscales of `_widened` to those of f and the widths."""
        lengthscales, widths = self._scales(X)
        wide = self._widened(X)
        dvariance, dwide = gradient["variance"], gradient["lengthscales"]
        dlog = dvariance * wide.variance
        dlengthscales = (
            dlog * (1 / lengthscales - lengthscales / wide.lengthscales**2) + dwide * lengthscales / wide.lengthscales
        )
        dwidths = self.times * widths / wide.lengthscales * (dwide - dlog / wide.lengthscales)
        own = self.blurred.kernel
        return {
            "variance": dvariance * wide.variance / own.variance,
            "lengthscales": shared(dlengthscales, own.lengthscales),
            "widths": shared(dwidths, self.blurred.widths),
        }


class _BlurVjp(NamedTuple):
    """Derivatives through a `_Blur`, from those through its widened kernel."""

    blur: _Blur
    X: Array
    widened: Any

    def __call__(self, dK: Array, first: bool = True, second: bool = False) -> tuple[dict, Array | None, Array | None]:
        gradient, dX, dX2 = self.widened(dK, first, second)
        return self.blur._pull_back(self.X, gradient), dX, dX2
