"""The waves of Breiman et al. 1984, drawn by their rule with inputs of noise beside them: salimbeni2018's waveform-noise.

The public set of that name is one draw of 5000 rows by the same rule; another draw differs from it by chance alone.
"""

import numpy as np

from pepcore.datasets import Dataset

NAME, ROWS, NOISE, SEED = "waveform-noise", 5000, 19, 0
PLACES = np.arange(1, 22)
TRIANGLES = np.maximum(6 - np.abs(PLACES - np.array([[11], [15], [7]])), 0)      # three, each of 11 places and height 6
PAIRS = np.array([[1, 2], [0, 2], [0, 1]])      # the triangles of each class, in the order of the public set


def draw(rows=ROWS, noise=NOISE, seed=SEED):
    """A data set of three classes: mixtures of two triangles in random shares, and `noise` inputs more that say nothing.

    Every input, the last ones too, has independent noise of variance 1.

    Returns
    -------
    Dataset with X (rows, 21 + noise)
    """
    rng = np.random.default_rng(seed)
    y, share = rng.integers(len(PAIRS), size=rows), rng.uniform(size=(rows, 1))
    first, second = (TRIANGLES[part] for part in PAIRS[y].T)
    waves = share * first + (1 - share) * second
    X = np.pad(waves, ((0, 0), (0, noise))) + rng.standard_normal((rows, len(PLACES) + noise))
    return Dataset(NAME, X, y.astype(float), "multiclass")
