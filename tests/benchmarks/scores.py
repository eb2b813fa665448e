"""How good predictions are: NumPy alone, the same for every package."""

import numpy as np


def regression_scores(y, mean, deviation):
    """Root mean square error and mean log density of y (S,) under normal predictions (S,)."""
    residual = (y - mean) / deviation
    density = -0.5 * (residual**2 + np.log(2 * np.pi)) - np.log(deviation)
    return [float(np.sqrt(np.mean((y - mean) ** 2))), float(np.mean(density))]


def class_scores(y, probabilities):
    """Share of wrong labels and mean log density of labels y (S,) under probabilities (S, C)."""
    chosen = probabilities[np.arange(len(y)), y]
    return [float(np.mean(probabilities.argmax(axis=1) != y)), float(np.mean(np.log(chosen)))]
