"""Checks at the public door of what is no plain array: kernels and their inputs, likelihoods and sites.

Kernels and likelihoods need no common ancestor: whatever has what inference cannot do without is taken.
"""

from pepcore.sites import Sites
from pepcore.validation import as_real, check_finite


def check_kernel(kernel, name="kernel"):
    """The kernel itself; ValueError for what cannot be called or has no `diagonal`, and for a class in place of its instance.

    Only gradients need its `value_and_vjp`.
    """
    fits = callable(kernel) and hasattr(kernel, "diagonal")
    expected = "a kernel, an object that can be called and has the method diagonal"
    return _check_part(kernel, fits, name, expected, "SquaredExponential(variance=1.0, lengthscales=1.0)")


def check_points(X, X2=None):
    """X and X2 of a kernel that is called directly, as float64; X2 = X if left out.

    Parameters
    ----------
    X : (N, D) array_like
    X2 : (N2, D) array_like, or None

    Raises
    ------
    ValueError                  not numbers, or not finite; the kernel itself looks at the shapes
    """
    points = check_finite(as_real(X, "X"), "X")
    return points, points if X2 is None or X2 is X else check_finite(as_real(X2, "X2"), "X2")


def check_likelihood(likelihood):
    """The likelihood itself; ValueError for anything without `log_moment`, and for a class in place of its instance."""
    expected = "a likelihood, an object with the method log_moment"
    return _check_part(likelihood, hasattr(likelihood, "log_moment"), "likelihood", expected, "Probit() or Gaussian(0.1)")


def check_plain(kernel, method):
    """Raise ValueError if `kernel` has pseudo-points that are no values of f, which `method` (str, a plural) cannot use."""
    if hasattr(check_kernel(kernel), "uf"):
        raise ValueError(f"{method} take points of f itself; give a plain kernel, not one for other pseudo-points")


def check_sites(sites, shape, name="sites"):
    """Check Sites to start from; returns a copy, or ValueError for another kind or shape, or values that are not finite."""
    expected = f"{name} must be Sites of shape {shape}, the last axis one for each row of X, as a fit of this kind holds them"
    if not isinstance(sites, Sites):
        raise ValueError(f"{expected}; got {type(sites).__name__}")
    tau, nu = (as_real(value, f"{name}.{key}").copy() for key, value in vars(sites).items())
    if tau.shape != shape or nu.shape != shape:
        raise ValueError(f"{expected}; got Sites of shapes {tau.shape} and {nu.shape}")
    return Sites(check_finite(tau, "sites.tau"), check_finite(nu, "sites.nu"))


def _check_part(part, fits, name, expected, example):
    if isinstance(part, type):
        raise ValueError(f"{name} is the class {part.__name__}, expected an object made of it; give {part.__name__}(...)")
    if not fits:
        got = repr(part) if part is None or isinstance(part, str | int | float) else f"of type {type(part).__name__}"
        raise ValueError(f"{name} is {got}, expected {expected}; give {example}")
    return part
