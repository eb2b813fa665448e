"""How the hyper-parameters of many classes move: one vector of coordinates, an adaptive step, and L-BFGS."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize

from pepcore.training.coordinates import Coordinates, open_box

LONGEST = 0.1  # the longest part of an adaptive step: 10 % of a positive parameter, a tenth of an input's spread
NOTHING = 1e-8  # nats; at the prior every class is as likely whatever the parameters, and the gradient is 0 but for rounding


@dataclass(frozen=True, eq=False)
class Parameters:
    """To and from one vector for a dict "kernels" (tuple), "Z" (tuple), "noise" (C,); see `pepcore.training.coordinates`."""

    learn: tuple
    spread: np.ndarray

    def _parts(self, values):
        """(coordinates, value as these want it) for each piece of the vector."""
        parts = []
        for name, single in (("kernels", "kernel"), ("Z", "Z")):
            if name in self.learn:
                parts += [(Coordinates((single,), self.spread), {single: value}) for value in values[name]]
        if "noise" in self.learn:
            parts.append((Coordinates(("noise",), self.spread), {"noise": values["noise"]}))
        return parts

    def pack(self, values):
        """The vector (P,) of `values`."""
        return np.concatenate([coordinates.pack(value) for coordinates, value in self._parts(values)])

    def unpack(self, point, values):
        """A dict like `values` with what the vector says."""
        new, position = {name: [] for name in self.learn}, 0
        for coordinates, old in self._parts(values):
            size = len(coordinates.pack(old))
            found = coordinates.unpack(point[position : position + size], old)
            position += size
            for name, value in found.items():
                new["kernels" if name == "kernel" else name].append(value)
        joined = {name: np.asarray(found[0]) if name == "noise" else tuple(found) for name, found in new.items()}
        return values | joined

    def pack_gradient(self, values, gradient):
        """The gradient in natural units, as `MulticlassFit` has it, in the vector's coordinates."""
        as_list = lambda parts: parts if isinstance(parts, list) else [parts]
        pieces = []
        if "kernels" in self.learn:
            pieces += as_list(gradient["kernels"])
        if "Z" in self.learn:
            pieces += [{"Z": part} for part in as_list(gradient["Z"])]
        if "noise" in self.learn:
            pieces.append({"noise": gradient["noise"]})
        pairs = zip(self._parts(values), pieces, strict=True)
        return np.concatenate([coordinates.pack_gradient(value, piece) for (coordinates, value), piece in pairs])

    def bounds(self, values):
        """(low, high) for each coordinate, None where there is no bound."""
        return [bound for coordinates, value in self._parts(values) for bound in coordinates.bounds(value)]


class Adaptive:
    """Gradient ascent with a rate for each coordinate: 2 % more while its sign stays, half when it changes.

    The paper does not say where the rates start; here such that the first step's longest part is `rate`.

    Source: villacampa2017 appendix G.
    """

    def __init__(self, start, rate):
        self.point, self.rate, self.rates, self.sign = start, rate, None, None

    def ascend(self, gradient):
        """The point after one step; a gradient that is not finite, or nothing but rounding, leaves it where it was."""
        largest = np.abs(gradient).max()
        if not (np.isfinite(largest) and largest > NOTHING):
            return self.point
        sign = np.sign(gradient)
        if self.rates is None:
            self.rates = self.rate / np.maximum(np.abs(gradient), 1e-3 * largest)
        else:
            self.rates = self.rates * np.where(sign == self.sign, 1.02, 0.5)
        self.sign = sign
        # a gradient may grow a thousandfold from one iteration to the next
        self.point = self.point + np.clip(self.rates * gradient, -LONGEST, LONGEST)
        return self.point


def climb(objective, parameters, values, climber, iterations, callback, result):
    """Values after so many steps of Adam or `Adaptive`, those before the last step, and why it ended.

    `objective(values)` gives value and gradient. It has been evaluated at the values before the last step, but not after it.
    """
    message, before = f"{iterations} iterations", values
    try:
        for iteration in range(iterations):
            try:
                _, gradient = objective(values)
            except LinAlgError as problem:
                message = f"stopped after {iteration} iterations, the last of which is taken back: {problem}"
                values = before
                break
            point = climber.ascend(parameters.pack_gradient(values, gradient))
            before, values = values, parameters.unpack(point, values)
            objective.history[-1].show(callback, partial(result, values), values)
    except KeyboardInterrupt:
        message = "interrupted; what was learnt so far is kept"
    return values, before, message


def lbfgs(objective, parameters, values, iterations, callback, result):
    """The best values that L-BFGS found, and why it ended; `objective(values)` gives value and gradient."""
    best = {"value": -np.inf, "values": values}

    def negative(point):
        now = parameters.unpack(point, values)
        try:
            value, gradient = objective(now)
        except LinAlgError:
            return 1e30, np.zeros_like(point)  # a wall: the line search steps back
        gradient = parameters.pack_gradient(now, gradient)
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            return 1e30, np.zeros_like(point)
        if value > best["value"]:
            best.update(value=value, values=now)
            objective.history[-1].show(callback, partial(result, now), now)
        return -value, -gradient

    try:
        result = minimize(
            negative,
            parameters.pack(values),
            jac=True,
            method="L-BFGS-B",
            bounds=open_box(parameters.bounds(values)),
            options={"maxiter": iterations, "maxfun": 2 * iterations},
        )
        message = str(result.message)
    except KeyboardInterrupt:
        message = "interrupted; the best point so far is kept"
    return best["values"], message
