"""What all kernels share."""

import numpy as np


def shared(derivative, parameter):
    """The derivative (D,) in the shape of its parameter, (D,), or the sum over all inputs if they share one, () or (1,)."""
    if np.ndim(parameter) == 0:
        return float(derivative.sum())
    return derivative if len(parameter) > 1 else derivative.sum(keepdims=True)


def vjp_of_first(kernel, X, X2, dK):
    """gradient, dX from the kernel's `value_and_vjp`, with the roles of X and X2 exchanged for a dK in Fortran order."""
    if dK.flags.f_contiguous:
        gradient, _, dX = kernel.value_and_vjp(X2, X)[1](dK.T, first=False, second=True)
    else:
        gradient, dX, _ = kernel.value_and_vjp(X, X2)[1](dK)
    return gradient, dX
