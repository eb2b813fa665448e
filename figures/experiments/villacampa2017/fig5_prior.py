"""MNIST, ten classes: what VI makes of it from the prior, without the head start that `vil_fig5` gives it.

Pseudo-inputs that all classes share, five epochs, three lengths of the natural-gradient step, five seeds; the step 0 stands for
the default, 1/t until every image had its turn and a batch's share of them afterwards. Where the code or the processor changes,
other digits may be lost.
"""

import numpy as np

from figures.experiments.mnist import BATCH, KMEANS_ROWS, RATE, centres, digits, start_kernel
from figures.experiments.villacampa2017 import fig5
from figures.experiments.villacampa2017.tables import probabilities
from pepcore import metrics
from pepcore.multiclass.minibatch import fit_minibatch

STEPS, SEEDS, EPOCHS = (0.0, 0.03, 0.01), range(5), 5
READS = fig5.READS
OUTPUTS = ("error_rate", "nll", "given_up")


def grid():
    """One run for each seed and length of the step."""
    return [{"step": step, "seed": seed} for seed in SEEDS for step in STEPS]


def compute(step, seed, rows=None, size=fig5.M, epochs=EPOCHS):
    """Test error and NLL in the end, and how many digits the model never names; the seed is that of places and batches."""
    X, y, X_test, y_test = digits()
    X, y = X[:rows], y[:rows]
    places = centres(X[:KMEANS_ROWS], size, seed)
    model = fit_minibatch(start_kernel(X), places, (X, y), approximation="vi", classes=10, batch=BATCH, epochs=epochs,
                          rate=RATE, step=step or None, spread=np.full(X.shape[1], X.std()), seed=seed)
    p = probabilities(model, X_test)
    named = p.argmax(axis=1)
    return {"error_rate": float(np.mean(named != y_test)), "nll": metrics.nll_classes(y_test, p),
            "given_up": 10 - len(np.unique(named))}
