"""What the studies of decoupled bases share: data, kernel and starting points (salimbeni2018 appendix F), eight ways to learn.

Inputs (and real targets) are standardised on the training rows of one of the standard 90:10 splits. The kernel is a Matérn-5/2
of lengthscale 0.1 √D plus a squared exponential of lengthscale √D, one for all inputs as in the program of the paper's authors;
beta are the centres of k-means, gamma random training rows.
"""

from typing import NamedTuple

import numpy as np

from figures.experiments.salimbeni2018 import waves
from pepcore import Gaussian, Matern52, Probit, SquaredExponential, datasets
from pepcore.multiclass import RobustMax
from pepcore.training.starts import choose_pseudo_inputs

TRAINED = 0.9  # of the rows; the registry's share for waveform and satellite is that of another paper
BASES = {  # name -> (basis, natural gradients); the six of salimbeni2018 section 4, and two in weights
    "Coupled": ("coupled", False),
    "CoupledNat": ("coupled", True),
    "Orth": ("orthogonal", False),
    "OrthNat": ("orthogonal", True),
    "Hybrid": ("hybrid", False),
    "Decoupled": ("decoupled", False),
    "OrthWeights": ("orthogonal-weights", False),  # the parameters that the paper prints; its authors' program has the others
    "OrthNatWeights": ("orthogonal-weights", True),
}


class Problem(NamedTuple):
    """Training and test rows, a kernel and a likelihood to start from."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    kernel: object
    likelihood: object

    def points(self, M, G, seed):
        """beta (M, D) and gamma (G, D)."""
        rows = np.random.default_rng(seed).permutation(len(self.X))[:G]
        return choose_pseudo_inputs(self.X, M, "kmeans", seed=seed), self.X[rows]

    def losses(self, posterior, likelihood):
        """Mean absolute error and root mean square error, or the rate of wrong labels twice; log-likelihood of a test row."""
        mean, variance = posterior.predict(self.X_test)
        log_p = likelihood.log_predictive(self.y_test, mean, variance)
        if isinstance(likelihood, Gaussian):
            residual = self.y_test - mean
            return float(np.abs(residual).mean()), float(np.sqrt((residual**2).mean())), float(log_p.mean())
        wrong = float(((mean.argmax(axis=1) if mean.ndim > 1 else np.sign(mean)) != self.y_test).mean())
        return wrong, wrong, float(log_p.mean())


def problem(data, split, rows=None, ard=False, numbered=False):
    """The `Problem` of a data set, or of one draw of `waves`, of at most `rows` training rows.

    `ard`: each input has lengthscales of its own to learn. `numbered`: a row's number in the data set is its first input.
    """
    dataset = waves.draw() if data == waves.NAME else datasets.load(data)
    inputs = np.column_stack([np.arange(len(dataset.X)), dataset.X]) if numbered else dataset.X
    order = np.concatenate(datasets.splits(dataset)[split])
    train, test = (np.sort(part) for part in np.split(order, [round(TRAINED * len(order))]))
    if rows is not None and len(train) > rows:
        train = np.sort(np.random.default_rng(split).permutation(train)[:rows])
    X, X_test = datasets.standardise(inputs[train], inputs[test])
    y, y_test = dataset.y[train], dataset.y[test]
    if dataset.task == "binary":
        y, y_test = (np.where(part == y.max(), 1.0, -1.0) for part in (y, y_test))
        likelihood = Probit()
    elif dataset.task == "multiclass":
        y, y_test = y.astype(int), y_test.astype(int)
        likelihood = RobustMax(len(np.unique(dataset.y)))
    else:
        y, y_test = datasets.standardise(y, y_test)
        likelihood = Gaussian(0.1)
    variance, D = 1.0 if dataset.task == "regression" else 5.0, X.shape[1]
    shape = D if ard else ()
    kernel = Matern52(variance, np.full(shape, 0.1 * np.sqrt(D))) + SquaredExponential(variance, np.full(shape, np.sqrt(D)))
    return Problem(X, y, X_test, y_test, kernel, likelihood)


def options_of(name, beta, gamma):
    """Keywords of `decoupled.infer` for one of `BASES`."""
    basis, natural = BASES[name]
    points = {"coupled": None, "decoupled": np.vstack([gamma, beta])}.get(basis, gamma)
    return {"beta": beta, "gamma": points, "basis": basis, "natural": natural}
