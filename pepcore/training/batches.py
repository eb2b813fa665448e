"""Sources of batches: arrays in memory or mapped from a file, or any iterable of pairs (X, y)."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.training.starts import spread_of
from pepcore.validation import (
    as_generator,
    as_real,
    check_all_positive,
    check_count,
    check_inputs,
    check_targets,
    constant,
)

SAMPLE = 2000  # rows to estimate the spread from


class InMemory:
    """Random batches of arrays, which may be mapped from a file: only the rows of a batch are read.

    `data` is (X, y), (N, D) and (N,); ValueError for other shapes, and for labels that are not numbers. `batch` is the
    number of rows in a batch, `seed` sets their order.
    """

    def __init__(self, data: tuple, batch: int, seed: int | np.random.Generator) -> None:
        if len(data) != 2:
            raise ValueError(f"data is a tuple of {len(data)}, expected (X, y); give a list if these are batches")
        X, y = data
        # an array is neither converted nor moved
        self.X = X if hasattr(X, "dtype") and not hasattr(X, "toarray") else as_real(X, "X")
        if self.X.ndim != 2 or 0 in self.X.shape:
            raise ValueError(f"X has shape {self.X.shape}, expected (N, D) with N >= 1 and D >= 1")
        (self.size, self.columns), self.labels = self.X.shape, check_targets(y, len(self.X))
        self.batch, self.random = check_count(batch, "batch"), as_generator(seed, "seed")

    def epoch(self) -> Iterator[tuple]:
        """Yield (rows, X, y) for every batch of one pass."""
        order = self.random.permutation(self.size)
        for rows in np.array_split(order, -(-self.size // self.batch)):
            rows = np.sort(rows)  # a file is read forwards
            yield rows, self.X[rows], self.labels[rows]

    def sample(self) -> Array:
        """X at rows spread evenly over the data."""
        return self.X[:: -(-self.size // SAMPLE)]


class Streamed:
    """Batches from an iterable of pairs (X, y).

    `size` is N, the total number of data; ValueError for an iterator used up before the last of `epochs`.
    """

    def __init__(self, data: Iterable, size: int | None, epochs: int) -> None:
        if not np.iterable(data):
            raise ValueError(f"data = {data!r} must be a tuple (X, y), or an iterable of such tuples")
        if size is None:
            raise ValueError("batches from an iterator need size = N, the total number of data; arrays need a tuple (X, y)")
        if epochs > 1 and isinstance(data, Iterator):
            raise ValueError(f"data is an iterator, which gives its batches once, but epochs = {epochs}; give a list "
                             "or an object with __iter__, or epochs=1")
        self.data, self.size, self.columns, self.labels = data, check_count(size, "size"), None, None

    def epoch(self) -> Iterator[tuple]:
        """Yield (None, X, y) for each batch of a pass; ValueError for none, or one that is not a pair or has over N rows."""
        number = 0
        for number, batch in enumerate(self.data, start=1):
            X, y = _pair(batch, number)
            if X.ndim and len(X) > self.size:
                raise ValueError(f"batch {number} has {len(X)} rows, more than size = {self.size}; size is the total "
                                 "number of data")
            yield None, X, y
        if number == 0:
            raise ValueError("data gave no batches, so there is nothing to learn from; is it an iterator that was used up?")

    def sample(self) -> Array:
        """X of the first batch, which `epoch` still yields; no rows if there is none."""
        batches = iter(self.data)
        first = list(islice(batches, 1))
        if isinstance(self.data, Iterator):
            self.data = chain(first, batches)
        return _pair(first[0], 1)[0] if first else np.zeros((0, 0))


def units_of(Z: tuple, batches: InMemory | Streamed, given: ArrayLike | None) -> Array:
    """The unit (D,) of each column of Z, a tuple of (M, D) arrays: the spread `given`, which must be positive.

    If that is None: the spread of all pseudo-inputs or, in a column where they are equal, of the inputs.
    """
    points = np.concatenate(Z)
    if given is not None:
        return check_all_positive(check_targets(given, points.shape[1], "spread", each="column of Z"), "spread")
    spread, alike = spread_of(points), constant(points)
    if alike.any() and len(X := batches.sample()):
        return np.where(alike, spread_of(check_inputs(X, "X", columns=points.shape[1])), spread)
    return spread


def _pair(batch: Any, number: int) -> tuple[Array, Any]:
    if not (isinstance(batch, tuple | list) and len(batch) == 2):
        raise ValueError(f"batch {number} of data is of type {type(batch).__name__}, expected a pair (X, y); arrays "
                         "that hold all data are given as a tuple (X, y)")
    X, y = batch
    return as_real(X, "X"), y
