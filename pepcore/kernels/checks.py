"""Checks at the public door of kernels and their inputs. A kernel needs no common ancestor: what can do its work is one."""

from pepcore.validation import as_real, check_finite, check_part


def check_kernel(kernel, name="kernel"):
    """The kernel itself; ValueError for what cannot be called or has no `diagonal`, and for a class in place of its instance.

    Only gradients need its `value_and_vjp`.
    """
    fits = callable(kernel) and hasattr(kernel, "diagonal")
    expected = "a kernel, an object that can be called and has the method diagonal"
    return check_part(kernel, fits, name, expected, "SquaredExponential(variance=1.0, lengthscales=1.0)")


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


def check_plain(kernel, method):
    """Raise ValueError if `kernel` has pseudo-points that are no values of f, which `method` (str, a plural) cannot use."""
    if hasattr(check_kernel(kernel), "uf"):
        raise ValueError(f"{method} take points of f itself; give a plain kernel, not one for other pseudo-points")
