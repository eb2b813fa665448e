"""The coordinates that an optimiser sees: logarithms of what is positive, Z in units of each input's spread."""

from dataclasses import dataclass

import numpy as np

LOG_RANGE = np.log(1e9)  # positive parameters stay within a factor 1e9 of where they start
LOG_LIMIT = 300.0  # and what is free to leave that between e^-300 and e^300: exp must not overflow, nor give 0


def open_box(bounds):
    """`bounds`, the last without its upper end if every coordinate has two.

    In a box that is closed on all sides the first step of L-BFGS-B is the whole gradient, which from a bad start leads into
    a corner, where nothing depends on anything any more; else it has at most unit length.
    """
    if all(high is not None for _, high in bounds):
        low, _ = bounds[-1]
        return [*bounds[:-1], (low, None)]
    return bounds


@dataclass(frozen=True, eq=False)
class Coordinates:
    """To and from one vector for a dict of values "kernel", "likelihood", "noise", "Z".

    Parameters
    ----------
    learn : names of those values that are in the vector; the others stay as they are
    spread : (D,), the unit of each column of Z
    """

    learn: tuple
    spread: np.ndarray

    def pack(self, values):
        """The vector (P,) of `values`."""
        parts = [np.log(np.ravel(value)) for value in self._positive(values).values()]
        if "Z" in self.learn:
            parts.append((values["Z"] / self.spread).ravel())
        if not parts:
            raise ValueError(
                f"nothing is left to learn: of {list(values)} optimise names {list(self.learn)}, which have no parameters; "
                "name more of them, or call the inference itself"
            )
        return np.concatenate(parts)

    def unpack(self, point, values):
        """A dict like `values` with what the vector `point` (P,) says."""
        new, position = {}, 0
        for key, old in self._positive(values).items():
            size = np.size(old)
            numbers = np.exp(np.clip(point[position : position + size], -LOG_LIMIT, LOG_LIMIT))
            new[key] = numbers if np.ndim(old) else float(numbers[0])
            position += size
        values = dict(values)
        for owner in ("kernel", "likelihood"):
            if owner in self.learn:
                own = {key: new[owner, key] for key in values[owner].parameters}
                values[owner] = values[owner].with_parameters(own)
        if "noise" in self.learn:
            values["noise"] = new["noise", "noise"]
        if "Z" in self.learn:
            values["Z"] = point[position:].reshape(values["Z"].shape) * self.spread
        return values

    def pack_gradient(self, values, gradient):
        """The chain rule from natural units: d/d log p = p d/dp, d/d(Z/spread) = spread d/dZ."""
        parts = [np.ravel(gradient[key] * value) for (_, key), value in self._positive(values).items()]
        if "Z" in self.learn:
            parts.append((gradient["Z"] * self.spread).ravel())
        return np.concatenate(parts)

    def bounds(self, values):
        """For each coordinate (low, high), None where there is no bound."""
        point = self.pack(values)
        free = values["Z"].size if "Z" in self.learn else 0
        return [(p - LOG_RANGE, p + LOG_RANGE) for p in point[: len(point) - free]] + free * [(None, None)]

    def _positive(self, values):
        """dict (owner, name) -> positive number or array, in the order of the vector."""
        found = {}
        for owner in ("kernel", "likelihood"):
            if owner in self.learn:
                found |= {(owner, key): value for key, value in values[owner].parameters.items()}
        if "noise" in self.learn:
            found["noise", "noise"] = values["noise"]
        zero = [name for (_, name), value in found.items() if not np.all(np.asarray(value) > 0)]
        if zero:
            raise ValueError(f"{zero} cannot be learnt from a start at 0: start at a small positive value.")
        return found
