"""Squared distances between all pairs of inputs, which kernels take in units of their lengthscales.

One matrix product gives them all, |l|² + |r|² − 2 l·r. That is wrong by some 1e-16 |l|²: too much where inputs are
thousands of lengthscales apart, as time stamps may be. There the differences are taken one input dimension at a time.
Each row decides for itself, so that a prediction does not depend on what else is asked for.
"""

from typing import Any

import numpy as np

from pepcore.gaussian import Array

FAR = 1e3  # a coordinate beyond which the product would lose more than ten digits after the point
FARTHEST = 1e150  # a difference: its square and a sum of such squares do not overflow, and no kernel reaches so far


def squared_distances(left: Array, right: Array, scale: float) -> Array:
    """scale · |l_i − r_j|² (N, N2) of left (N, D) and right (N2, D)."""
    if _far(right):
        return _by_differences(left, right, scale)
    if not _far(left):
        return _by_product(left, right, scale)
    t, far = np.empty((len(left), len(right))), np.abs(left).max(axis=1) > FAR
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
    if scale > 0:  # the caller takes roots, and rounding can leave it below 0; an exponential sees no difference
        np.maximum(t, 0.0, out=t)
    if left is right:
        np.fill_diagonal(t, 0.0)
    return t


def weighted_squares(
    weight: Array, left: Array, right: Array, *, rows: Array, columns: Array, mixed: Any, mixed2: Any
) -> Array:
    """Σ_ij w_ij (l_id − r_jd)² for each dimension, (D,), without an (N, N2, D) array.

    `rows` (N,) and `columns` (N2,) are the sums of weight (N, N2) over its columns and its rows, `mixed` is weight @
    right (N, D), and `mixed2` weightᵀ @ left (N2, D); one of these two may be None.
    """
    if _far(left) or _far(right):
        return np.array([np.vdot(weight, _squares(l, r)) for l, r in zip(left.T, right.T, strict=True)])
    cross = np.einsum("nd,nd->d", left, mixed) if mixed2 is None else np.einsum("nd,nd->d", right, mixed2)
    return rows @ left**2 + columns @ right**2 - 2 * cross


def _far(points: Array) -> bool:
    return np.abs(points).max(initial=0.0) > FAR


def _squares(l: Array, r: Array) -> Array:
    """(l_i − r_j)² (N, N2) of one dimension."""
    difference = np.subtract.outer(l, r)
    np.clip(difference, -FARTHEST, FARTHEST, out=difference)
    difference *= difference
    return difference
