"""Eight data sets of several classes: EP, stochastic EP, exact factors and VI (villacampa2017 tables 2 and 3).

Every run learns kernels, pseudo-inputs and noises of all classes, from the same start for every method, on one split of the
data, with inputs standardised on the training rows; 250 iterations. EP and SEP move sites and parameters together, with the
adaptive step of the paper's appendix; GFITC waits for inference before each step of L-BFGS, and VI optimises posterior and
parameters together with L-BFGS, as in the paper. Of vowel the first six
classes are used, of waveform 1000 rows, 300 of them for training.
"""

import time
import warnings

import numpy as np

from pepcore import datasets, metrics
from pepcore.multiclass import learning

DATA = ("glass", "new_thyroid", "wine", "svmguide2", "vowel", "waveform", "vehicle", "satellite")
PERCENT = (5, 10, 20)
METHODS = ("gfitc", "ep", "sep", "vi")
SPLITS = range(20)
ITERATIONS = 250
# Of inference within each L-BFGS evaluation.
TOLERANCE, MAX_SWEEPS = 1e-3, 50
UPDATES = {"gfitc": {"update": "outer", "optimiser": "lbfgs"}, "ep": {"update": "inner", "optimiser": "adaptive"},
           "sep": {"update": "inner", "optimiser": "adaptive"}, "vi": {"update": "joint", "optimiser": "lbfgs"}}
OUTPUTS = ("nll", "error_rate", "log_evidence", "training_seconds", "evaluations", "converged", "unconverged_inference")


def grid():
    """All runs, split by split, so that an interrupted grid has whole ones."""
    return [{"data": data, "split": split, "percent": percent, "method": method}
            for split in SPLITS for data in DATA for percent in PERCENT for method in METHODS]


def compute(data, split, percent, method, iterations=ITERATIONS):
    """One run: learn on the training part, measure on the test part."""
    X, y, X_test, y_test = standardised(data, split)
    M = max(3, round(percent / 100 * len(X)))
    settings = UPDATES[method]
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        model = learning.fit(None, X, y, M=M, approximation=method, Z="subset", iterations=iterations, seed=split,
                             tolerance=TOLERANCE, max_sweeps=MAX_SWEEPS, **settings)
    seconds = time.process_time() - start
    p = probabilities(model, X_test)
    return {"nll": metrics.nll_classes(y_test, p), "error_rate": float(np.mean(p.argmax(axis=1) != y_test)),
            "log_evidence": model.log_evidence, "training_seconds": float(f"{seconds:.3g}"),
            "evaluations": model.evaluations, "converged": model.converged,
            "unconverged_inference": sum("not converged" in str(warning.message) for warning in caught)}


def probabilities(model, X):
    """Of the classes at X, (S, C), without the error of the quadrature in their sums, and none of them 0."""
    p = model.predict_y(X)
    return np.maximum(p / p.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def standardised(data, split):
    """Training X (N, D), y (N,) and test X, y of one split, inputs in units of the training rows' mean and spread."""
    X, y = rows_of(data, split)
    order = np.random.RandomState(split).permutation(len(X))
    count = round({"satellite": 0.2, "waveform": 0.3}.get(data, 0.9) * len(X))
    train, test = np.sort(order[:count]), np.sort(order[count:])
    X_train, X_test = datasets.standardise(X[train], X[test])
    return X_train, y[train], X_test, y[test]


def rows_of(data, split):
    """The rows that the paper uses: six classes of vowel, 1000 rows of waveform."""
    dataset = datasets.load(data)
    X, y = dataset.X, dataset.y.astype(int)
    if data == "vowel":
        return X[y < 6], y[y < 6]
    if data == "waveform":
        kept = np.random.RandomState(1000 + split).permutation(len(X))[:1000]
        return X[kept], y[kept]
    return X, y
