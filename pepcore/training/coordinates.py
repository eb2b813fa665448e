"""The coordinates that an optimiser sees: logarithms of positive parameters, points in units of each input's spread."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pepcore.gaussian import Array

LOG_RANGE = np.log(1e9)  # positive parameters stay within a factor 1e9 of where they start
LOG_LIMIT = 300.0  # and those that may leave it stay within e^±300, so that exp neither overflows nor gives 0
POSITIVE = ("kernel", "kernels", "likelihood", "noise")
POINTS = ("Z", "beta", "gamma")
TUPLES = (list, tuple)


def open_box(bounds: list) -> list:
    """Return `bounds`, without the upper end of the last one if every coordinate has two.

    In a box that is closed on all sides the first step of L-BFGS-B is the whole gradient, which from a bad start leads
    into a corner, where the evidence is flat; otherwise the step has at most unit length.
    """
    if all(high is not None for _, high in bounds):
        low, _ = bounds[-1]
        return [*bounds[:-1], (low, None)]
    return bounds


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Pack a dict of values into one vector, and back; the order is that of the dict.

    A value is an object with `parameters` (such as a kernel), an array, or a tuple of values (one for each class). Those
    named in `POSITIVE` are in the vector as logarithms, those in `POINTS` in units of `spread`; the rest are unchanged:
    vectors, and lower triangles of matrices.

    Parameters
    ----------
    learn : names of those values that are in the vector; the others stay as they are
    spread : (D,), the unit of each column of points
    """

    learn: tuple
    spread: Array

    def pack(self, values: dict) -> Array:
        """The vector (P,) of `values`; ValueError if nothing is to be learnt, or if a logarithm is infinite or huge."""
        parts = [self._numbers(name, value) for name, value in self._leaves(values)]
        if not parts:
            raise ValueError(f"nothing is left to learn: of {list(values)} optimise names {list(self.learn)}, which "
                             "have no parameters; name more of them, or call the inference itself")
        far = [key for name in self._learnt(values) if name in POSITIVE for key, part in _named(name, values[name])
               if np.any(np.abs(np.log(part)) > LOG_LIMIT)]
        if far:
            raise ValueError(f"{far} cannot be learnt from a start below e^-{LOG_LIMIT:.0f} or above e^{LOG_LIMIT:.0f}: give "
                             "the data in other units")
        return np.concatenate(parts)

    def unpack(self, point: Array, values: dict) -> dict:
        """A dict like `values`, with the numbers of the vector `point` (P,) put in."""
        sizes = [np.size(old) if name in (*POSITIVE, *POINTS) else len(packed(old)) for name, old in self._leaves(values)]
        pieces = iter(np.split(point, np.cumsum(sizes)[:-1]))
        learnt = {name: self._renewed(name, values[name], pieces) for name in self._learnt(values)}
        return values | learnt

    def pack_gradient(self, values: dict, gradient: dict, weight: float = 1.0) -> Array:
        """`weight` times the gradient, by the chain rule from natural units: d/d log p = p d/dp, d/d(Z/spread) = spread d/dZ.

        `gradient` has the names of the values, or, for a kernel or a likelihood, those of its parameters.
        """
        parts = []
        for name in self._learnt(values):
            slopes = _arrays(values[name], gradient.get(name, gradient))
            for value, slope in zip(_arrays(values[name], values[name]), slopes, strict=True):
                parts.append(self._slope(name, value, weight * slope))
        return np.concatenate(parts)

    def bounds(self, values: dict) -> list:
        """For each coordinate (low, high), None where there is no bound."""
        found = []
        for name, value in self._leaves(values):
            point = self._numbers(name, value)
            found += [(p - LOG_RANGE, p + LOG_RANGE) if name in POSITIVE else (None, None) for p in point]
        return found

    def _numbers(self, name: str, value: Any) -> Array:
        if name in POSITIVE:
            return np.log(np.ravel(value))
        return (value / self.spread).ravel() if name in POINTS else packed(value)

    def _slope(self, name: str, value: Any, slope: Any) -> Array:
        if name in POSITIVE:
            return np.ravel(slope * value)
        return (slope * self.spread).ravel() if name in POINTS else packed(slope)

    def _renewed(self, name: str, old: Any, pieces: Iterator) -> Any:
        """A value like `old`, from the next pieces of a vector."""
        if isinstance(old, tuple):
            return tuple([self._renewed(name, part, pieces) for part in old])
        if hasattr(old, "parameters"):
            return old.with_parameters({key: self._renewed(name, part, pieces) for key, part in old.parameters.items()})
        numbers = next(pieces)
        if name in POSITIVE:
            numbers = np.exp(np.clip(numbers, -LOG_LIMIT, LOG_LIMIT))
            return numbers if np.ndim(old) else float(numbers[0])
        return numbers.reshape(old.shape) * self.spread if name in POINTS else unpacked(numbers, old)

    def _learnt(self, values: dict) -> list:
        return [name for name in values if name in self.learn]

    def _leaves(self, values: dict) -> list:
        """(name, number or array) in the order of the vector; ValueError for a logarithm of 0."""
        names = self._learnt(values)
        zero = [key for name in names if name in POSITIVE for key, part in _named(name, values[name]) if not np.all(part > 0)]
        if zero:
            raise ValueError(f"{zero} cannot be learnt from a start at 0: start at a small positive value.")
        return [(name, part) for name in names for part in _arrays(values[name], values[name])]


def _arrays(like: Any, value: Any) -> list:
    """The numbers and arrays in `value`, formed like `like`, or with dicts and lists in place of its parts.

    A value that all classes share has no list around it, as in the gradient of a kernel and Z that they share.
    """
    if isinstance(like, tuple):
        parts = value if isinstance(value, TUPLES) else [value]
        return [array for own, part in zip(like, parts, strict=True) for array in _arrays(own, part)]
    if hasattr(like, "parameters"):
        found = value if isinstance(value, dict) else value.parameters
        return [found[key] for key in like.parameters]
    return [value]


def _named(name: str, value: Any) -> Iterator:
    """(name, array) of every parameter in a value."""
    if isinstance(value, tuple):
        for part in value:
            yield from _named(name, part)
    else:
        yield from (value.parameters if hasattr(value, "parameters") else {name: np.asarray(value)}).items()


def packed(value: Array) -> Array:
    """A vector, or the lower triangle of a matrix as one."""
    return value if value.ndim == 1 else value[_lower_triangle(len(value))]


def unpacked(numbers: Array, like: Array) -> Array:
    """The inverse of `packed`, for an array of the shape of `like`."""
    if like.ndim == 1:
        return numbers.copy()
    matrix = np.zeros_like(like)
    matrix[_lower_triangle(len(matrix))] = numbers
    return matrix


@lru_cache(maxsize=4)
def _lower_triangle(size: int) -> Array:
    return np.tri(size, dtype=bool)
