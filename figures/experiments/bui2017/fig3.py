"""Toy regression: the study of bui2017 figures 3 and 11 to 13.

Each data set is drawn from a GP with an ARD squared exponential kernel in five dimensions; 500 points are for training,
500 for testing. Sparse GPs learn hyper-parameters, noise and pseudo-inputs from the training half; the full GP (method
"full") learns hyper-parameters and noise.
"""

from functools import cache

import numpy as np

from figures import FOLDER
from figures.drawing import style
from pepcore import exact, metrics, power_ep, training
from pepcore.datasets import generators

OUTPUTS = ("smse", "smll", "nlml", "noise", "evaluations", "converged")
SETS = range(30)
SIZES = (5, 10, 20, 50, 100, 200, 500)
ALPHAS = (0.0, 0.05, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)
MAX_EVALUATIONS = 500
TRAIN = 500
METRICS = {"nlml": "NLML", "smse": "SMSE", "smll": "SMLL"}
TARGETS = FOLDER / "results" / "bui_fig3_targets.npy"


def grid():
    """All runs, data set by data set; the full GP is entered as M = N at alpha = 0."""
    for data in SETS:
        yield {"data": data, "method": "full", "M": TRAIN, "alpha": 0.0}
        for M in SIZES:
            for alpha in ALPHAS:
                yield {"data": data, "method": "sparse", "M": M, "alpha": alpha}


def learn(data, method, M, alpha, max_evaluations=MAX_EVALUATIONS, perturbation=0.0):
    """Model, training half (X, y) and test half (X, y) of one run; `perturbation` as in `uci_regression.compute`."""
    X, y = generators.toy_ard_gp(seed=data).X, targets()[data]
    X, y, X_test, y_test = X[:TRAIN], y[:TRAIN], X[TRAIN:], y[TRAIN:]
    y = y * (1 + perturbation * np.random.default_rng(0).standard_normal(len(y)))
    infer = exact.regression if method == "full" else power_ep.regression
    start = X if M == TRAIN else "kmeans"
    model = training.fit(None, X, y, M=M, alpha=alpha, Z=start, infer=infer, max_evaluations=max_evaluations, seed=data)
    return model, (X, y), (X_test, y_test)


def compute(data, method, M, alpha, **options):
    """One run: learn on the training half, measure on the other; options as in `learn`."""
    model, (_, y), (X_test, y_test) = learn(data, method, M, alpha, **options)
    mean, variance = model.predict_y(X_test)
    return {"smse": metrics.smse(y_test, mean, y), "smll": metrics.smll(y_test, mean, variance, y),
            "nlml": -model.log_evidence, "noise": model.noise, "evaluations": model.evaluations,
            "converged": model.converged}


@cache
def targets():
    """The targets (30, 1000) of all data sets, as they were drawn for the committed runs.

    The function values are drawn through the Cholesky factor of a nearly singular matrix, which magnifies rounding:
    the generator's targets differ by up to 4e-7 from one processor to another. Stored, they are the same everywhere.
    """
    return np.load(TARGETS)


def curves(results, metric):
    """The mean over data sets, one row per M, one column per power."""
    sparse = results[results["method"] == "sparse"]
    return sparse.pivot_table(index="M", columns="alpha", values=metric, aggfunc="mean")


def full_gp(results, metric):
    """The full GP's mean over data sets."""
    return float(results.loc[results["method"] == "full", metric].mean())


def draw(fig, results):
    """Evidence, error and log loss against M, one line per power, the full GP dashed (bui2017 figure 3)."""
    for ax, (metric, title) in zip(fig.subplots(1, 3), METRICS.items()):
        for alpha, values in curves(results, metric).items():
            ax.plot(values.index, values, color=style.alpha_colour(alpha), marker=".", lw=1.5)
        ax.axhline(full_gp(results, metric), color=style.colours["exact"], ls="--", lw=1.5)
        ax.set(xscale="log")
        ax.set_xticks([5, 50, 500], ["5", "50", "500"])
        ax.minorticks_off()
        style.label(ax, x="M", title=title)
    style.alpha_colourbar(fig, fig.axes)


def draw_traces(fig, results, alpha):
    """One thin line per data set and their mean, at one power (bui2017 figures 11 to 13); the full GP's mean dashed."""
    sparse = results[results["method"] == "sparse"]
    for ax, (metric, title) in zip(fig.subplots(1, 3), METRICS.items()):
        traces = sparse[sparse["alpha"] == alpha].pivot(index="M", columns="data", values=metric)
        ax.plot(traces.index, traces, color=style.alpha_colour(alpha), lw=0.8, alpha=0.6)
        ax.plot(traces.index, traces.mean(axis=1), color=style.alpha_colour(alpha), lw=3)
        ax.axhline(full_gp(results, metric), color=style.colours["exact"], ls="--", lw=1.5)
        low, high = sparse[metric].min(), sparse[metric].max()
        ax.set(xscale="log", ylim=(low - 0.03 * (high - low), high + 0.03 * (high - low)))
        ax.set_xticks([5, 50, 500], ["5", "50", "500"])
        ax.minorticks_off()
        style.label(ax, x="M", title=title)


FIGURES = {"fig3": (draw, (7, 3.1))}
