"""Checks at the door of multi-class inference: whether kernels, pseudo-inputs, noise and labels fit together."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.kernels.base import check_kernel
from pepcore.multiclass.sites_tied import TiedSites
from pepcore.validation import as_real, check_all_positive, check_alpha, check_count, check_finite, check_inputs

EPSILON = 1e-3  # how often villacampa2017 replaces a label by any of the C at random


def check_model(
    kernels: Any, Z: Any, noise: ArrayLike, classes: int | None, y: Array | None, columns: int | None
) -> tuple[tuple, tuple, Array, int]:
    """Return kernels and Z as tuples of 1 or C, noise (C,), and C.

    `kernels`, Z (M, D) and `noise` > 0 are one for all classes, or C each. The labels y (N,) give C where nothing else
    does; they and the number D of columns are None if not known yet.

    Raises ValueError for what is no kernel, fewer than two classes, a number of kernels, arrays Z or noises other than
    1 or C, or what `check_inputs` finds.
    """
    if isinstance(Z, str):
        raise ValueError(f"Z = {Z!r} must be an array (M, D), or C of them; training.choose_pseudo_inputs(X, M) makes one")
    if isinstance(kernels, list | tuple):
        kernels = tuple(check_kernel(kernel, f"kernels[{c}]") for c, kernel in enumerate(kernels))
    else:
        kernels = (check_kernel(kernels, "kernels"),)
    shared = (not isinstance(Z, list | tuple) and np.ndim(Z) <= 2) or _is_table(Z)
    Z = (Z,) if shared else tuple(Z)
    names = ["Z"] if shared else [f"Z[{c}]" for c in range(len(Z))]
    if columns is None and Z:
        columns = check_inputs(Z[0], names[0]).shape[1]
    Z = tuple(check_inputs(points, name, columns, copy=True) for points, name in zip(Z, names))
    noise = np.atleast_1d(check_all_positive(noise, "noise"))
    sizes = {"kernels": len(kernels), "Z": len(Z), "noise": len(noise)}
    C = _number_of_classes(classes, sizes, y)
    if noise.ndim > 1 or any(size not in (1, C) for size in sizes.values()):
        raise ValueError(
            f"there are {C} classes, but "
            + ", ".join(f"{size} in {name}" for name, size in sizes.items())
            + "; give one for all classes, or one for each"
        )
    return kernels, Z, np.broadcast_to(noise, (C,)).copy(), C


def check_labels(y: Array, C: int) -> np.ndarray:
    """Labels y (N,) as int, or ValueError if they are not whole numbers in 0 ... C − 1."""
    wrong = (y < 0) | (y >= C) | (y != np.floor(y))
    if wrong.any():
        hint = "labels that count from 1 become right with y - 1" if y.min() >= 1 else "number the classes from 0"
        raise ValueError(f"y holds {y[wrong][0]:g}, expected whole numbers 0 ... {C - 1}, the labels of {C} classes; "
                         f"{hint}")
    return y.astype(int)


def check_power(alpha: float | None, approximation: str) -> float:
    """The power of an approximation, its usual one if alpha is None; ValueError for an unknown approximation or power."""
    if approximation not in ("ep", "sep", "gfitc", "vi"):
        raise ValueError(f"approximation = {approximation!r} is unknown; choose 'ep', 'sep', 'gfitc' or 'vi'")
    power = float(check_alpha(alpha if alpha is not None else float(approximation != "vi")))
    if approximation == "vi" and power != 0:
        raise ValueError(f'approximation = "vi" is alpha = 0, got {power}; for other powers of the robust factors take '
                         '"gfitc"')
    return power


def check_epsilon(epsilon: float | None, approximation: str, alpha: float, C: int) -> float:
    """The probability of a wrong label, 0 for approximations that have none.

    ValueError outside [0, 1), where it has no place, and if it is 0 with alpha = 0.
    """
    if approximation in ("ep", "sep"):
        if epsilon is not None:
            raise ValueError(f"epsilon is for 'gfitc' and 'vi'; the factors of {approximation!r} have none")
        return 0.0
    value = as_real(epsilon if epsilon is not None else EPSILON * (approximation == "vi") * (C - 1) / C, "epsilon")
    if value.ndim or not 0 <= value < 1:
        raise ValueError(f"epsilon = {epsilon} must be one number in [0, 1), the probability of a wrong label")
    check_expected_logarithm(alpha, value)
    return float(value)


def check_expected_logarithm(alpha: float, epsilon: float | Array) -> None:
    """ValueError for alpha = 0 with epsilon = 0."""
    if alpha == epsilon == 0:
        raise ValueError("alpha = 0 needs epsilon > 0: a factor that can be 0 has no expected logarithm; give 0.001")


def check_tied_sites(sites: Any, like: TiedSites, approximation: str) -> TiedSites:
    """A copy of TiedSites to start from; ValueError if they are of another kind or shape than `like`, or not finite."""
    shapes = lambda parts: [[np.shape(part) for part in group] for group in parts]
    found = [shapes(parts) for parts in sites] if isinstance(sites, TiedSites) else type(sites).__name__
    if found != [shapes(parts) for parts in like]:
        raise ValueError(f"sites for {approximation!r} must be TiedSites with precisions and shifts of the shapes "
                         f"{[shapes(p) for p in like]}, such as those of 'sep', or of learning on batches, with the "
                         f"same Z and groups; got {found}")
    check = lambda part, name: check_finite(as_real(part, name), name).copy()
    names = ("sites.precisions", "sites.shifts")
    return TiedSites(*([[check(part, name) for part in group] for group in parts] for name, parts in zip(names, sites)))


def _is_table(Z: Any) -> bool:
    """Whether a list is one (M, D) table of numbers."""
    return isinstance(Z, list | tuple) and len(Z) > 0 and np.ndim(Z[0]) == 1


def _number_of_classes(classes: int | None, sizes: dict, y: Array | None) -> int:
    if classes is not None:
        C = check_count(classes, "classes")
    elif max(sizes.values()) > 1:
        C = max(sizes.values())
    elif y is not None:
        C = int(y.max()) + 1 if y.max() >= 0 else 0
    else:
        raise ValueError("give classes, the number of classes: neither kernels nor Z nor noise tell it")
    if C < 2:
        raise ValueError(f"there must be at least 2 classes, got {C}; labels count from 0, and classes gives their "
                         "number")
    return C
