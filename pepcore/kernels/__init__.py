"""Kernels: values, diagonals, and their transposed derivatives (vector-Jacobian products).

A kernel is any object with `parameters`, `with_parameters`, `__call__`, `diagonal`, `value_and_vjp`, `vjp` and
`diagonal_vjp`.

Pseudo-points need not be values of f. Where they are something else, the kernel has two more kernels as attributes:
`uf(X, Z)`, the covariance of f(x) with the pseudo-point at z, and `uu(Z)`, that of the pseudo-points with each other; and
`ff`, the plain kernel of f, for methods that have no pseudo-points.
"""

from pepcore.kernels.base import Kernel, Sum
from pepcore.kernels.blurred import Blurred
from pepcore.kernels.stationary import Matern52, SquaredExponential

__all__ = ["Blurred", "Kernel", "Matern52", "SquaredExponential", "Sum"]
