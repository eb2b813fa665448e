"""What an exercise of the chapter on features and its checker share: few pseudo-inputs for the diabetes patients."""

import numpy as np

from pepcore import datasets
from pepcore.kernels import SquaredExponential


def nystrom_problem():
    """Kernel and standardised inputs (442, 10)."""
    X = datasets.load("diabetes").X
    return SquaredExponential(1.0, np.sqrt(10.0)), datasets.standardise(X, X)[0]
