"""Does type-II maximum likelihood overfit? The full GP with true and with learnt hyper-parameters, bui2017 figs 8 to 10.

Each data set is drawn from a GP with an ARD squared exponential kernel in five dimensions, one half for training and
one for testing. The full GP predicts once with the hyper-parameters that made the data, once with those that maximise
the evidence of the training half.
"""

import numpy as np

from figures.drawing import style
from pepcore import exact, metrics, training
from pepcore.datasets import generators

SETS = range(30)
SIZES = (500, 1000)
OUTPUTS = tuple(f"{name}_{hyper}" for hyper in ("true", "learnt")
                for name in ("nlml", "smse", "smll", "smse_train", "smll_train")) + ("evaluations", "converged")
METRICS = {"nlml": "NLML", "smse": "SMSE", "smll": "SMLL"}


def grid():
    """All data sets of the smaller size, then those of the larger one."""
    for N in SIZES:
        for data in SETS:
            yield {"data": data, "N": N}


def compute(data, N):
    """One data set: N points for training, N for testing."""
    toy = generators.toy_ard_gp(seed=data, N=2 * N)
    X, y, X_test, y_test = toy.X[:N], toy.y[:N], toy.X[N:], toy.y[N:]
    model = training.fit(None, X, y, infer=exact.regression)
    truth = exact.regression(toy.truth["kernel"], X, y, noise=toy.truth["noise"])
    result = {"evaluations": model.evaluations, "converged": model.converged}
    for hyper, fit in (("true", truth), ("learnt", model)):
        result[f"nlml_{hyper}"] = -fit.log_evidence
        for part, inputs, targets in (("", X_test, y_test), ("_train", X, y)):
            mean, variance = fit.predict_y(inputs)
            result[f"smse{part}_{hyper}"] = metrics.smse(targets, mean, y)
            result[f"smll{part}_{hyper}"] = metrics.smll(targets, mean, variance, y)
    return result


def draw_true_against_learnt(fig, results):
    """One dot per data set, learnt hyper-parameters against true ones (bui2017 figure 8)."""
    for ax, (metric, title) in zip(fig.subplots(1, 3), METRICS.items()):
        _diagonal(ax, results[f"{metric}_true"], results[f"{metric}_learnt"])
        style.label(ax, x="true", title=title)
    fig.axes[0].set_ylabel("learnt")


def draw_train_against_test(fig, results):
    """One dot per data set, error on the test half against error on the training half (bui2017 figures 9 and 10)."""
    for ax, metric in zip(fig.subplots(1, 2), ("smse", "smll")):
        _diagonal(ax, results[f"{metric}_train_learnt"], results[f"{metric}_learnt"])
        style.label(ax, x="training half", title=METRICS[metric])
    fig.axes[0].set_ylabel("test half")


def _diagonal(ax, x, y):
    low, high = np.min([x, y]), np.max([x, y])
    margin = 0.05 * (high - low)
    limits = (low - margin, high + margin)
    ax.plot(limits, limits, color=style.colours["grid"], lw=1.5)
    ax.plot(x, y, "o", ms=5, color=style.colours["exact"], alpha=0.8, markeredgewidth=0)
    ax.set(xlim=limits, ylim=limits)
    ax.locator_params(nbins=3)


def _of_size(drawer, N):
    return lambda fig, results: drawer(fig, results[results["N"] == N])


FIGURES = {"fig8": (_of_size(draw_true_against_learnt, 500), (7, 2.9)),
           "fig9": (_of_size(draw_train_against_test, 500), (7, 3.2)),
           "fig10": (_of_size(draw_train_against_test, 1000), (7, 3.2))}
