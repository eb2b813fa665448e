"""Nyström regression against sparse EP on the same basis: negative variances, and whose mean is better (section 4.5).

The basis is the first M training rows of the split. Sparse EP on it is in closed form the posterior of DTC; FITC and the
full Gaussian process stand beside it.
"""

import numpy as np

from figures.drawing import style
from figures.experiments.csato2002 import problems
from pepcore import exact, metrics, power_ep
from pepcore.online import fixed_basis

__all__ = ["FIGURES", "OUTPUTS", "better_mean", "compute", "curves", "draw", "draw_residual", "grid"]

SPLITS, SIZES = range(10), (5, 10, 20, 50, 100, 200, 400)
ROWS = 400
METHODS = ("nystrom", "sparse_ep", "fitc", "exact")
OUTPUTS = ("residual", "negative", "lowest", "lowest_sparse_ep", *(f"smse_{method}" for method in METHODS))
NAMES = {"nystrom": "Nyström", "sparse_ep": "sparse EP (DTC)", "fitc": "FITC", "exact": "full GP"}
COLOURS = {"nystrom": style.CYCLE[3], "sparse_ep": style.colours["vfe"], "fitc": style.colours["ep"],
           "exact": style.colours["exact"]}


def grid():
    """All runs, split by split."""
    return [{"data": data, "split": split, "M": M} for split in SPLITS for data in problems.REGRESSION for M in SIZES]


def compute(data, split, M):
    """One basis: `negative` counts test rows whose Nyström variance of f is below zero, in per cent.

    `residual` is the mean of h over the training rows, in units of the noise; `lowest` variances are in units of k(x, x).
    """
    problem = problems.problem(data, split, ROWS)
    kernel, noise, X, y, X_test = problem.kernel, problem.likelihood.noise, problem.X, problem.y, problem.X_test
    mean, variance = fixed_basis.nystrom(kernel, X[:M], X, y, X_test, noise=noise)
    sparse = fixed_basis.infer(kernel, X[:M], X, y, problem.likelihood)
    fits = {"sparse_ep": sparse, "fitc": power_ep.regression(kernel, X[:M], X, y, noise=noise, alpha=1.0),
            "exact": exact.regression(kernel, X, y, noise=noise)}
    smse = {f"smse_{name}": metrics.smse(problem.y_test, fit.predict_f(X_test)[0], y) for name, fit in fits.items()}
    _, h = sparse.posterior.basis.features(X)
    return {"residual": float(h.mean() / noise), "negative": 100 * float(np.mean(variance < 0)),
            "lowest": float(variance.min() / kernel.variance),
            "lowest_sparse_ep": float(sparse.predict_f(X_test)[1].min() / kernel.variance),
            "smse_nystrom": metrics.smse(problem.y_test, mean, y), **smse}


def better_mean(results):
    """Percentage of runs with fewer basis vectors than data in which the Nyström mean has the smaller error."""
    return 100 * float(is_better(results).mean())


def is_better(results):
    """One bool for each run with fewer basis vectors than data: whether the Nyström mean has the smaller error."""
    sparse = results[results["M"] < ROWS]
    return sparse["smse_nystrom"] < sparse["smse_sparse_ep"]


def curves(results, column):
    """Mean over the splits, one row per M, one column per data set."""
    return results.pivot_table(index="M", columns="data", values=column, aggfunc="mean")[list(problems.REGRESSION)]


def draw_residual(fig, results):
    """Every run: how much larger the Nyström error is, against what the basis leaves of the variance over the noise."""
    ax = fig.subplots()
    ax.axhline(1, color=style.colours["grid"], lw=1.5)
    for data, colour in zip(problems.REGRESSION, style.CYCLE):
        part = results[(results["data"] == data) & (results["M"] < ROWS)]
        ax.plot(part["residual"], part["smse_nystrom"] / part["smse_sparse_ep"], ".", color=colour, label=data)
    ax.set(xscale="log", yscale="log")
    style.label(ax, x="mean residual variance h / noise", y="SMSE, Nyström / sparse EP")
    ax.legend()


def draw(fig, results):
    """Above, the error of four methods; below, how many test rows have a negative Nyström variance."""
    above, below = fig.subplots(2, len(problems.REGRESSION), sharex=True)
    for top, bottom, data in zip(above, below, problems.REGRESSION):
        for method in METHODS:
            values = curves(results, f"smse_{method}")[data]
            top.plot(values.index, values, color=COLOURS[method], lw=1.5, ls="--" if method == "exact" else "-",
                     label=NAMES[method])
        negative = curves(results, "negative")[data]
        bottom.plot(negative.index, negative, color=COLOURS["nystrom"], marker=".", lw=1.5)
        top.set(xscale="log", yscale="log", title=data)
        bottom.set(ylim=(-5, 105))
        bottom.set_xticks([5, 50, 400], ["5", "50", "400"])
        bottom.minorticks_off()
        style.label(bottom, x="M")
    above[0].set_ylabel("SMSE")
    below[0].set_ylabel("variance < 0, %")
    fig.legend(*above[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, handlelength=1.2)


FIGURES = {"csa_nystrom": (draw, (7.0, 4.6)), "csa_nystrom_residual": (draw_residual, (7.0, 3.4))}
