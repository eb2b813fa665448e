"""Steps uphill along a gradient: Adam, and an adaptive step with a rate for each coordinate."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pepcore.gaussian import Array

LONGEST = 0.1  # the longest part of an adaptive step: 10 % of a positive parameter, a tenth of an input's spread
NOTHING = 1e-8  # nats; at the prior every class is as likely whatever the parameters, and the gradient is 0 but for rounding


class Adam:
    """Adam for maximisation, with the usual averages over 10 and 1000 steps.

    Parameters
    ----------
    start : (P,)
    rate : float, or a callable from the number of steps taken to the rate of the next
    """

    def __init__(self, start: Array, rate: float | Callable) -> None:
        self.point, self.rate, self.steps = start, rate, 0
        self.mean, self.square = np.zeros_like(start), np.zeros_like(start)

    def ascend(self, gradient: Array) -> Array:
        """The point after one step; a gradient that is not finite leaves it where it was."""
        rate = self.rate(self.steps) if callable(self.rate) else self.rate
        if np.all(np.isfinite(gradient)):
            self.steps += 1
            # written over in place: many pseudo-inputs in many dimensions make these vectors long
            self.mean *= 0.9
            self.mean += 0.1 * gradient
            self.square *= 0.999
            self.square += 0.001 * gradient**2
            move = np.sqrt(self.square)
            move *= 1 / np.sqrt(1 - 0.999**self.steps)
            move += 1e-8
            np.divide(self.mean, move, out=move)
            move *= rate / (1 - 0.9**self.steps)
            self.point = self.point + move
        return self.point


class Adaptive:
    """Gradient ascent with a rate for each coordinate: 2 % more while its sign stays, half when it changes.

    The paper does not say where the rates start; here such that the first step's longest part is `rate`.

    Source: villacampa2017 appendix G.
    """

    def __init__(self, start: Array, rate: float) -> None:
        self.point, self.rate = start, rate
        self.rates: Any = None
        self.sign: Any = None

    def ascend(self, gradient: Array) -> Array:
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
