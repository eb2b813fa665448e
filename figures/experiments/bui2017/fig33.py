"""With M = N and Z = X, is sparse EP standard EP? The study of bui2017 figure 33, on ionosphere.

The log evidence of 200 training labels and the log loss on 151 others over a grid of log lengthscale and log amplitude, as in
Kuss & Rasmussen 2005. The first 200 rows are for training and the rest for testing, the division of Sigillito et al. 1989, who
gave the data. Inputs are standardised on the training rows. Every cell is computed by sparse Power EP and by EP with a
site for each function value.

With `results = runner.results("bui_fig33")` call `differences(results)` for the claim's numbers, `best(results, alpha)` for the
cells that the evidence and the test loss prefer, and `draw(fig, results, alpha)` with `describe(results, alpha)` as its text
for a slider over ALPHAS.
"""

import warnings
from functools import cache, partial

import numpy as np
import pandas as pd
from matplotlib.colors import BoundaryNorm

from figures.drawing import style
from figures.experiments import runner
from pepcore import datasets, exact, metrics, power_ep
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit

ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
LOG_LENGTHSCALES = tuple(float(value) for value in np.arange(0, 5.1, 0.5))
LOG_AMPLITUDES = tuple(float(value) for value in np.arange(-1, 5.1, 0.5))
TRAIN = 200
JITTER = 1e-10      # relative; exact.infer has none in its evidence
MAX_SWEEPS = 1000   # at α = 0 a large amplitude takes hundreds
READS = ("ionosphere",)
OUTPUTS = ("log_evidence", "nll", "standard_log_evidence", "standard_nll", "p_apart", "sweeps", "converged")

PANELS = {"log_evidence": ("log evidence, 200 labels", (-140, -120, -110, -100, -95, -90, -85, -80), "cividis"),
          "nll": ("loss on 151 others (nats)", (0.12, 0.14, 0.16, 0.2, 0.3, 0.4, 0.5, 0.6), "cividis_r")}


def grid():
    """All cells at alpha = 1, then at the other powers."""
    return [{"alpha": alpha, "log_lengthscale": log_lengthscale, "log_amplitude": log_amplitude}
            for alpha in sorted(ALPHAS, reverse=True)
            for log_lengthscale in LOG_LENGTHSCALES for log_amplitude in LOG_AMPLITUDES]


@cache
def load():
    """Training X (200, 34), y and test X (151, 34), y."""
    data = datasets.load("ionosphere")
    X, X_test = datasets.standardise(data.X[:TRAIN], data.X[TRAIN:])
    return X, data.y[:TRAIN], X_test, data.y[TRAIN:]


def compute(alpha, log_lengthscale, log_amplitude):
    """One cell, by sparse Power EP with the pseudo-inputs at the data and by Power EP on the function values."""
    X, y, X_test, y_test = load()
    kernel = SquaredExponential(np.exp(2 * log_amplitude), np.exp(log_lengthscale))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)     # what did not converge says so in its row
        sparse = power_ep.infer(kernel, X, X, y, Probit(), alpha=alpha, jitter=JITTER, max_sweeps=MAX_SWEEPS)
        standard = exact.infer(kernel, X, y, Probit(), alpha=alpha, max_sweeps=MAX_SWEEPS)
    p, p_standard = sparse.predict_y(X_test), standard.predict_y(X_test)
    return {"log_evidence": sparse.log_evidence, "nll": metrics.nll_binary(y_test, p),
            "standard_log_evidence": standard.log_evidence, "standard_nll": metrics.nll_binary(y_test, p_standard),
            "p_apart": np.abs(p - p_standard).max(), "sweeps": sparse.sweeps,
            "converged": sparse.converged and standard.converged}


def differences(results):
    """Largest difference between the two methods over the converged cells, one row per power.

    Returns
    -------
    DataFrame indexed by alpha with log_evidence (nats), nll (nats per label), p, and cells, the number that converged
    """
    done = results[results["converged"]]
    apart = pd.DataFrame({"log_evidence": (done["log_evidence"] - done["standard_log_evidence"]).abs(),
                          "nll": (done["nll"] - done["standard_nll"]).abs(), "p": done["p_apart"]})
    return apart.groupby(done["alpha"]).max().assign(cells=done.groupby("alpha").size())


def largest_difference():
    """The largest difference between sparse EP and standard EP over the grid at α = 1, in log evidence or in test loss."""
    return float(differences(runner.results("bui_fig33")).loc[1.0, ["log_evidence", "nll"]].max())


def table(results, alpha, name):
    """`name` over the grid: one row per log amplitude, one column per log lengthscale, NaN where it did not converge."""
    cells = results[results["alpha"] == alpha]
    cells = cells.assign(**{name: cells[name].where(cells["converged"])})
    return cells.pivot(index="log_amplitude", columns="log_lengthscale", values=name)


def best(results, alpha):
    """The converged cells with the largest evidence and with the smallest test loss, as two rows of `results`."""
    cells = results[(results["alpha"] == alpha) & results["converged"]]
    return cells.loc[cells["log_evidence"].idxmax()], cells.loc[cells["nll"].idxmin()]


def draw(fig, results, alpha):
    """Log evidence and test loss over the grid, their best cells marked (bui2017 figure 33)."""
    by_evidence, by_loss = best(results, alpha)
    for ax, (name, (title, levels, colours)) in zip(fig.subplots(1, 2, sharey=True), PANELS.items()):
        cells = table(results, alpha, name)
        # the levels crowd where the best cells are, and the colours go with the levels
        filled = ax.contourf(cells.columns, cells.index, cells, levels=levels, extend="both", cmap=colours,
                             norm=BoundaryNorm(levels, 256, extend="both"))
        fig.colorbar(filled, ax=ax, orientation="horizontal", ticks=levels[::2], spacing="uniform")
        ax.plot(by_evidence["log_lengthscale"], by_evidence["log_amplitude"], "o", ms=10, mew=2.5, mfc="none",
                color=style.colours["ep"], label="largest evidence")
        ax.plot(by_loss["log_lengthscale"], by_loss["log_amplitude"], "x", ms=9, mew=2.5, color=style.colours["ep"],
                label="smallest loss")
        ax.set(xlim=(LOG_LENGTHSCALES[0], LOG_LENGTHSCALES[-1]), ylim=(LOG_AMPLITUDES[0], LOG_AMPLITUDES[-1]))
        style.label(ax, x="log lengthscale", title=title)
    fig.axes[0].set_ylabel("log amplitude")
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)


def describe(results, alpha):
    """The frame in words and numbers."""
    by_evidence, by_loss = best(results, alpha)
    return (f"α = {alpha:.2f}. The evidence is largest at log lengthscale {by_evidence['log_lengthscale']:g} and log amplitude "
            f"{by_evidence['log_amplitude']:g}: {by_evidence['log_evidence']:.1f}, with a test loss of "
            f"{by_evidence['nll']:.3f}. The smallest test loss, {by_loss['nll']:.3f}, is at {by_loss['log_lengthscale']:g} and "
            f"{by_loss['log_amplitude']:g}.")


FIGURES = {"fig33": (partial(draw, alpha=1.0), (7, 4.4))}
