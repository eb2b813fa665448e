"""What does the budget cost? Error of online learning and sparse EP against basis size and novelty (section 4.6).

On up to 400 training rows of each split, hyper-parameters fixed: one sweep, and five of which three may move the basis,
with a budget of M basis vectors or with a threshold of novelty alone, which the table calls "tolerance" as the thesis does;
Power EP with alpha = 1 (FITC) and VFE on the basis that the five sweeps chose; the same two on the M centres that k-means
finds; and the full Gaussian process.
"""

import warnings

from sklearn.cluster import KMeans

from figures.drawing import style
from figures.experiments.csato2002 import problems
from figures.experiments.csato2002.problems import error_rates
from pepcore import exact, online, power_ep

__all__ = ["FIGURES", "OUTPUTS", "compute", "curves", "draw", "draw_tolerance", "error_rates", "grid"]

SPLITS = range(5)
LIMITS = [("budget", M) for M in (5, 10, 20, 50, 100)] + [("tolerance", t) for t in (0.3, 0.1, 0.01, 0.001)]
ROWS, SWEEPS, MOVING = 400, 5, 3
METHODS = ("online", "sparse_ep", "ep_same", "vfe_same", "ep_kmeans", "vfe_kmeans", "exact")
OUTPUTS = ("M", *(f"{name}_{method}" for method in METHODS for name in ("error", "nll")))
NAMES = {"online": "one sweep", "sparse_ep": "sparse EP", "ep_same": "Power EP, same basis",
         "ep_kmeans": "Power EP, k-means", "exact": "full GP"}
LINES = {"online": (style.CYCLE[5], "--"), "sparse_ep": (style.colours["vfe"], "-"), "ep_same": (style.colours["ep"], "-"),
         "ep_kmeans": (style.colours["ep"], ":"), "exact": (style.colours["exact"], "--")}


def grid():
    """All runs, split by split."""
    return [{"data": data, "split": split, "limit": limit, "value": float(value)}
            for split in SPLITS for data in problems.DATA for limit, value in LIMITS]


def compute(data, split, limit, value):
    """One basis size, all methods; M is the number of basis vectors at the end."""
    problem = problems.problem(data, split, ROWS)
    kernel, likelihood, X, y = problem.kernel, problem.likelihood, problem.X, problem.y
    limits = {"budget": int(value)} if limit == "budget" else {"novelty": value}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # five sweeps are not meant to converge
        fit = online.infer(kernel, X, y, likelihood, max_sweeps=SWEEPS, moving_sweeps=MOVING, tolerance=1e-6, **limits)
    posteriors = {"online": fit.history[0]["posterior"], "sparse_ep": fit.posterior}
    M = len(fit.basis)
    centres = KMeans(M, n_init=1, random_state=split).fit(X).cluster_centers_
    for name, Z in (("same", X[fit.basis]), ("kmeans", centres)):
        for method, alpha in (("ep", 1.0), ("vfe", 0.0)):
            posteriors[f"{method}_{name}"] = power_ep.infer(kernel, Z, X, y, likelihood, alpha=alpha, tolerance=1e-6).posterior
    posteriors["exact"] = exact.infer(kernel, X, y, likelihood, tolerance=1e-6).posterior
    result = {"M": M}
    for method, posterior in posteriors.items():
        result[f"error_{method}"], result[f"nll_{method}"] = problem.loss(posterior)
    return result


def curves(results, column, limit="budget"):
    """Mean over the splits, one row per value of the limit, one column per data set."""
    part = results[results["limit"] == limit]
    return part.pivot_table(index="value", columns="data", values=column, aggfunc="mean")[list(problems.DATA)]


def draw(fig, results, metric="nll"):
    """One panel per data set: the metric against the budget, five methods."""
    for ax, data in zip(fig.subplots(2, 3, sharex=True).flat, problems.DATA):
        for method, (colour, line) in LINES.items():
            values = curves(results, f"{metric}_{method}")[data]
            ax.plot(values.index, values, color=colour, ls=line, lw=1.6, label=NAMES[method])
        ax.set(xscale="log")
        ax.set_xticks([5, 20, 100], ["5", "20", "100"])
        ax.minorticks_off()
        ax.locator_params(axis="y", nbins=4)
        style.label(ax, title=data)
    for ax in fig.axes[3:]:
        style.label(ax, x="basis vectors M")
    for ax in fig.axes[::3]:
        style.label(ax, y="NLL, nats" if metric == "nll" else "SMSE" if ax is fig.axes[0] else "error rate")
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, handlelength=1.6)


def draw_tolerance(fig, results, metric="nll"):
    """The basis size that each threshold of novelty leads to, and what sparse EP loses by it against the full GP."""
    left, right = fig.subplots(1, 2)
    loss = curves(results, f"{metric}_sparse_ep", "tolerance") - curves(results, f"{metric}_exact", "tolerance")
    for data, colour in zip(problems.DATA, style.CYCLE):
        size = curves(results, "M", "tolerance")[data]
        left.plot(size.index, size, color=colour, marker=".", lw=1.5, label=data)
        right.plot(loss.index, loss[data], color=colour, marker=".", lw=1.5)
    for ax in (left, right):
        ax.set(xscale="log")
    style.label(left, x="tolerance", y="basis vectors")
    style.label(right, x="tolerance", y="NLL − full GP")
    fig.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3, handlelength=1.2)


FIGURES = {"csa_size": (draw, (7.0, 4.8)), "csa_size_tolerance": (draw_tolerance, (7.0, 3.4))}
