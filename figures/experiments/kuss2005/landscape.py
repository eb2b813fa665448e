"""Evidence and test loss over lengthscale and amplitude, by EP and by Laplace's method, with the truth beside them.

The picture of kuss2005, on the Wisconsin tumours instead of ionosphere: 100 training rows, all thirty inputs, one split. The true
evidence comes from annealed importance sampling that starts at EP's posterior.

Rules that were fixed before the first row:

* All 132 settings of the grid are sampled, none is chosen.
* A setting counts as known if the standard error of its log evidence is below 0.05 nats.
* The largest error of a method is taken over the settings that are known.

With `results = runner.results("kuss_landscape")` call `errors(results)` for these, `best(results)` for the settings that each
method prefers, and `draw(fig, results)` with `describe(results)` for the picture.
"""

from functools import cache

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from scipy.special import log_ndtr

from figures.drawing import style
from figures.experiments import runner
from figures.experiments.book.sampling_truth import Base, anneal
from pepcore import datasets, exact
from pepcore.gaussian import cholesky_inverse, log_determinant, safe_cholesky
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit

READS = ("breast_cancer_wdbc",)
TRAIN = 100
CHAINS, TEMPERATURES = 300, 600
KNOWN = 0.05        # nats, the largest standard error of an evidence that is called known
LOG_LENGTHSCALES = tuple(float(value) for value in np.linspace(0, 5, 11))
LOG_AMPLITUDES = tuple(float(value) for value in np.linspace(-0.5, 5, 12))
OUTPUTS = ("ep", "laplace", "truth", "standard_error", "ep_loss", "laplace_loss", "converged")
LEVELS = (40, 30, 22, 16, 11, 7, 4, 2, 1, 0.3)      # nats below the best evidence of EP
GREENS = ListedColormap(matplotlib.colormaps["viridis"](np.linspace(0, 0.7, 256)))      # its yellow would not be seen
LOSSES = (0.12, 0.13, 0.15, 0.18, 0.23, 0.3, 0.4, 0.6)


def grid():
    """All settings of the two logarithms."""
    return [{"log_lengthscale": length, "log_amplitude": amplitude}
            for amplitude in LOG_AMPLITUDES for length in LOG_LENGTHSCALES]


@cache
def tumours():
    """Training X (100, 30) and labels, test X (469, 30) and labels; malignant is +1; standardised on the training rows."""
    data = datasets.load("breast_cancer_wdbc")
    order = np.random.default_rng(0).permutation(len(data.y))
    train, test = order[:TRAIN], order[TRAIN:]
    labels = np.where(data.y == np.unique(data.y)[0], 1.0, -1.0)
    X, X_test = datasets.standardise(data.X[train], data.X[test])
    return X, labels[train], X_test, labels[test]


def laplace(K, y, max_steps=100):
    """Laplace's method for probit labels: a Gaussian at the mode of the posterior with the curvature found there.

    Newton's method, rasmussen2006 algorithm 3.1.

    Returns
    -------
    dict with log_evidence; gamma = K⁻¹f and R = (K + W⁻¹)⁻¹ (N, N), with which it predicts as EP does; change, of the last step
    """
    f = np.zeros(len(y))
    for _ in range(max_steps):
        _, slope, curvature = Probit().derivatives(y, f)
        root = np.sqrt(-curvature)
        L, _ = safe_cholesky(np.eye(len(y)) + root[:, None] * K * root)
        R = root[:, None] * cholesky_inverse(L) * root
        pull = slope - curvature * f
        gamma = pull - R @ (K @ pull)
        f, before = K @ gamma, f
        change = np.abs(f - before).max()
        if change < 1e-9:
            break
    log_evidence = log_ndtr(y * f).sum() - 0.5 * gamma @ f - 0.5 * log_determinant(L)
    return {"log_evidence": log_evidence, "gamma": gamma, "R": R, "change": change}


def compute(log_lengthscale, log_amplitude):
    """Log evidence by EP, by Laplace's method and by sampling; the test losses in bits."""
    X, y, X_test, y_test = tumours()
    kernel = SquaredExponential(np.exp(2 * log_amplitude), np.exp(log_lengthscale))
    K, K_test = kernel(X), kernel(X, X_test)
    ep, rival = exact.infer(kernel, X, y, Probit(), tolerance=1e-8, max_sweeps=1000), laplace(K, y)
    mean = K_test.T @ rival["gamma"]
    variance = kernel.variance - np.sum(K_test * (rival["R"] @ K_test), axis=0)
    start = Base.build(kernel, X, ep.sites)
    log_weights, _ = anneal(start.log_ratio(lambda f: log_ndtr(y * f).sum(axis=1)), start.root, CHAINS, TEMPERATURES,
                            np.random.default_rng(8))
    weights = np.exp(log_weights - log_weights.max())
    return {"ep": ep.log_evidence, "laplace": rival["log_evidence"],
            "truth": start.log_normaliser + np.log(weights.mean()) + log_weights.max(),
            "standard_error": weights.std(ddof=1) / weights.mean() / np.sqrt(CHAINS),
            "ep_loss": -ep.log_density(X_test, y_test).mean() / np.log(2),
            "laplace_loss": -Probit().log_predictive(y_test, mean, variance).mean() / np.log(2),
            "converged": bool(ep.converged and rival["change"] < 1e-5)}


def errors(results):
    """Largest error of each method over the known settings: Series with ep, laplace (nats), known and settings (counts)."""
    known = results[results["standard_error"] < KNOWN]
    apart = known[["ep", "laplace"]].sub(known["truth"], axis=0).abs().max()
    return pd.concat([apart, pd.Series({"known": len(known), "settings": len(results)})])


def best(results):
    """The settings of the largest evidence and of the smallest loss of either method, as rows of `results`."""
    return {"EP: evidence": results.loc[results["ep"].idxmax()], "EP: loss": results.loc[results["ep_loss"].idxmin()],
            "Laplace: evidence": results.loc[results["laplace"].idxmax()],
            "Laplace: loss": results.loc[results["laplace_loss"].idxmin()]}


def largest_error(method):
    """The largest error of a method's log evidence, in nats, over the settings at which sampling knows it to 0.05 nats."""
    return float(errors(runner.results("kuss_landscape"))[method])


def loss_at_the_peak():
    """Test loss of EP where its evidence is largest, as a multiple of its smallest test loss on the grid."""
    chosen = best(runner.results("kuss_landscape"))
    return float(chosen["EP: evidence"]["ep_loss"] / chosen["EP: loss"]["ep_loss"])


def draw(fig, results):
    """Contours of EP's evidence, Laplace's evidence and EP's test loss, with a star at the best setting of each."""
    chosen = best(results)
    top = results["ep"].max()
    nats = [top - level for level in LEVELS]
    panels = (("ep", "EP: evidence", nats, LEVELS), ("laplace", "Laplace: evidence", nats, LEVELS),
              ("ep_loss", "EP: loss", LOSSES, LOSSES))
    for ax, (name, title, levels, marks) in zip(fig.subplots(1, 3, sharey=True), panels):
        cells = results.pivot(index="log_amplitude", columns="log_lengthscale", values=name)
        lines = ax.contour(cells.columns, cells.index, cells, levels=levels, cmap=GREENS, linewidths=1.6)
        written = {level: f"−{mark:g}" if name != "ep_loss" else f"{mark:g}" for level, mark in zip(levels, marks)}
        ax.clabel(lines, levels=levels[1::2], fmt=written, colors=style.INK)
        ax.plot(chosen[title]["log_lengthscale"], chosen[title]["log_amplitude"], "*", color=style.colours["ep"], ms=15,
                mec=style.colours["ink"], clip_on=False, zorder=5)
        ax.set(xticks=[0, 2, 4], ylim=(-0.5, 5.3))
        style.label(ax, x="log lengthscale", title=title)
    fig.axes[0].set_ylabel("log amplitude")


FIGURES = {"landscape": (draw, (7, 3.3))}
