"""The data that the same model is fitted to in every package: NumPy alone, so that every environment can import it."""

import numpy as np

rng = np.random.default_rng(0)
X = rng.uniform(0, 3, (200, 2))
f = np.sin(3 * X[:, 0]) + np.cos(2 * X[:, 1])
y = f + 0.3 * rng.standard_normal(200)
labels = np.where(y > 0.5, 1.0, -1.0)
classes = np.digitize(y, [0.0, 1.0])  # 0, 1, 2
Z = np.array([[a, b] for a in (0.3, 1.1, 1.9, 2.7) for b in (0.3, 1.1, 1.9, 2.7)])
Z_mean = np.array([[a, b] for a in (0.7, 1.5, 2.3) for b in (0.7, 1.5, 2.3)])  # the second basis of the decoupled model
Xs = np.array([[0.5, 0.5], [1.5, 1.0], [2.5, 2.0]])
ys = np.array([1.4, -0.8, 0.1])
