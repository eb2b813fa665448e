"""Where the batches of learning come from: arrays in memory or mapped from a file, or whatever an iterable gives."""

from collections.abc import Iterator

import numpy as np

from pepcore.validation import as_real, check_count, check_targets


class InMemory:
    """Random batches of arrays, which may be mapped from a file: only the rows of a batch are read.

    Parameters
    ----------
    data : (X, y), (N, D) and (N,); ValueError for other shapes, and for labels that are no numbers
    batch : int, the number of rows in a batch
    seed : int, for their order
    """

    def __init__(self, data, batch, seed):
        if len(data) != 2:
            raise ValueError(f"data is a tuple of {len(data)}, expected (X, y); give a list if these are batches")
        X, y = data
        self.X = X if hasattr(X, "dtype") else as_real(X, "X")  # an array stays as it is, and where it is
        if self.X.ndim != 2 or 0 in self.X.shape:
            raise ValueError(f"X has shape {self.X.shape}, expected (N, D) with N >= 1 and D >= 1")
        (self.size, self.columns), self.labels = self.X.shape, check_targets(y, len(self.X))
        self.batch, self.random = check_count(batch, "batch"), np.random.default_rng(seed)

    def epoch(self):
        """Yield (rows, X, y) for every batch of one pass."""
        order = self.random.permutation(self.size)
        for rows in np.array_split(order, -(-self.size // self.batch)):
            rows = np.sort(rows)  # a file is read forwards
            yield rows, self.X[rows], self.labels[rows]


class Streamed:
    """Batches as an iterable gives them.

    Parameters
    ----------
    data : iterable of (X, y)
    size : int, the number N of all data
    epochs : int, how often it will be gone through; ValueError if an iterator would be used up before
    """

    def __init__(self, data, size, epochs):
        if not np.iterable(data):
            raise ValueError(f"data = {data!r} must be a tuple (X, y), or an iterable of such tuples")
        if size is None:
            raise ValueError("blocks from an iterator need size = N, the number of all data; arrays need a tuple (X, y)")
        if epochs > 1 and isinstance(data, Iterator):
            raise ValueError(
                f"data is an iterator, which gives its batches once, but epochs = {epochs}; give a list or an object with "
                "__iter__, or epochs=1"
            )
        self.data, self.size, self.columns, self.labels = data, check_count(size, "size"), None, None

    def epoch(self):
        """Yield (None, X, y) for every batch of one pass; ValueError if there are none, or more rows in one than N."""
        number = 0
        for number, (X, y) in enumerate(self.data, start=1):
            if len(X) > self.size:
                raise ValueError(
                    f"batch {number} has {len(X)} rows, more than size = {self.size}; size is the number of all data"
                )
            yield None, X, y
        if number == 0:
            raise ValueError("data gave no batches, so there is nothing to learn from; is it an iterator that was used up?")
