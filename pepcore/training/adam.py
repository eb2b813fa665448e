"""Adam, the step on mini-batches."""

import numpy as np


class Adam:
    """Adam, for going uphill, with the usual averages over 10 and 1000 steps."""

    def __init__(self, start, rate):
        self.point, self.rate, self.steps = start, rate, 0
        self.mean, self.square = np.zeros_like(start), np.zeros_like(start)

    def ascend(self, gradient):
        """The point after one step; a gradient that is not finite leaves it where it was."""
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
            move *= self.rate / (1 - 0.9**self.steps)
            self.point = self.point + move
        return self.point
