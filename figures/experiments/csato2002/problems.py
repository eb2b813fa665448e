"""The problems of the studies of csato2002: three regression and three classification sets, and how well one predicts.

The thesis learns no hyper-parameters. Here each split has one kernel, squared exponential with one lengthscale for all
inputs, and in regression a noise, that maximise the evidence of the full Gaussian process on at most 200 training rows:
no sparse method is favoured. Inputs, and in regression targets, are standardised on the training rows.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from pepcore import Gaussian, Probit, SquaredExponential, datasets, exact, metrics, training

REGRESSION = ("boston", "concrete", "energy")
CLASSIFICATION = ("ionosphere", "pima", "australian")
DATA = REGRESSION + CLASSIFICATION
TUNING_ROWS, TUNING_EVALUATIONS = 200, 60


class Problem(NamedTuple):
    """Training and test rows of one split, with the model at its hyper-parameters."""

    kernel: SquaredExponential
    likelihood: Gaussian | Probit
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def loss(self, posterior):
        """Error and negative log likelihood on the test rows: SMSE and nats, or error rate and nats."""
        mean, variance = posterior.predict(self.X_test)
        if isinstance(self.likelihood, Probit):
            p = self.likelihood.predict(mean, variance)
            return metrics.error_rate(self.y_test, p), metrics.nll_binary(self.y_test, p)
        return (metrics.smse(self.y_test, mean, self.y),
                metrics.nll(self.y_test, *self.likelihood.predict(mean, variance)))


def error_rates(row):
    """Those outputs of a study's row that are rates of wrong labels; for real targets the same columns hold the SMSE."""
    return [name for name in row if name.startswith("error_")] if row["data"] in CLASSIFICATION else []


def problem(data, split, rows):
    """The split's first `rows` training rows in the order of the split, which is random, and all its test rows."""
    whole = _whole(data, split)
    return whole._replace(X=whole.X[:rows], y=whole.y[:rows])


@cache
def _whole(data, split):
    dataset = datasets.load(data)
    train, test = datasets.splits(dataset)[split]
    X, X_test = datasets.standardise(dataset.X[train], dataset.X[test])
    y, y_test = dataset.y[train], dataset.y[test]
    start = SquaredExponential(1.0, np.sqrt(X.shape[1]))
    options = {"max_evaluations": TUNING_EVALUATIONS, "tolerance": 1e-6}
    if data in REGRESSION:
        y, y_test = datasets.standardise(y, y_test)
        model = training.fit(start, X[:TUNING_ROWS], y[:TUNING_ROWS], infer=exact.regression, **options)
        likelihood = Gaussian(model.noise)
    else:
        likelihood = Probit()
        model = training.fit(start, X[:TUNING_ROWS], y[:TUNING_ROWS], infer=exact.infer, likelihood=likelihood, **options)
    return Problem(model.kernel, likelihood, X, y, X_test, y_test)
