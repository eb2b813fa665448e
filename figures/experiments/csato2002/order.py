"""Does the order of the data matter? Online learning against EP, with and without a budget (csato2002 section 4.1).

Each run takes the data in a random order and in its reverse, by one sweep and by EP, and measures how far apart the two
results are on the test rows: the difference of the latent means over the standard deviation, root mean square. Modes:
"all" data become basis vectors but those that repeat another (the usual threshold of novelty leaves out a few more, other ones in
other orders); "fixed", the basis is the first 20 rows for every order; "budget", basis vectors come
and go in every sweep, as in the thesis, and at most 20 stay.
"""

import warnings

import numpy as np

from figures.drawing import style
from figures.experiments.csato2002 import problems
from figures.experiments.csato2002.problems import error_rates
from pepcore import online

__all__ = ["FIGURES", "OUTPUTS", "compute", "draw", "error_rates", "grid", "spread"]

MODES = ("all", "fixed", "budget")
ORDERS = range(20)
ROWS, M, SWEEPS, TOLERANCE = 200, 20, 20, 1e-6
NOVEL = 1e-9  # of the prior variance: what the others must leave of a datum's for it to join the basis
OUTPUTS = ("difference_online", "difference_ep", "error_online", "error_ep", "nll_online", "nll_ep", "converged")
NAMES = {"all": "all data", "fixed": "fixed basis", "budget": "budget"}


def grid():
    """All orders, so that an interrupted grid has whole ones."""
    return [{"data": data, "mode": mode, "order": order} for order in ORDERS for data in problems.DATA for mode in MODES]


def compute(data, mode, order):
    """One random order and its reverse; error and negative log likelihood are those of the first."""
    problem = problems.problem(data, 0, ROWS)
    forward = np.random.default_rng(order).permutation(len(problem.X))
    one, other = (learn(problem, mode, way) for way in (forward, forward[::-1]))
    result = {"converged": one.converged and other.converged}
    for name, sweep in (("online", 0), ("ep", -1)):
        first, second = (fit.history[sweep]["posterior"] for fit in (one, other))
        result[f"error_{name}"], result[f"nll_{name}"] = problem.loss(first)
        result[f"difference_{name}"] = difference(first, second, problem.X_test)
    return result


def learn(problem, mode, order):
    """EP in this order; its first sweep is online learning."""
    options = {"all": {"novelty": NOVEL}, "fixed": {"Z": problem.X[:M]}, "budget": {"budget": M}}[mode]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a moving basis need not come to rest; `converged` tells
        return online.infer(problem.kernel, problem.X, problem.y, problem.likelihood, order=order, max_sweeps=SWEEPS,
                            tolerance=TOLERANCE, **options)


def difference(first, second, X):
    """Root mean square over X of the difference of two posteriors' means, in standard deviations of their average."""
    (mean, variance), (other_mean, other_variance) = first.predict(X), second.predict(X)
    return float(np.sqrt(np.mean((mean - other_mean) ** 2 / (0.5 * (variance + other_variance)))))


def spread(results, mode):
    """Median over the orders of the difference, one row per data set, columns "online" and "ep"."""
    part = results[results["mode"] == mode].groupby("data", sort=False)
    return part[["difference_online", "difference_ep"]].median().set_axis(["online", "ep"], axis=1)


def draw(fig, results):
    """One dot for each pair of orders, online against EP, one panel per mode."""
    for ax, mode in zip(fig.subplots(1, len(MODES), sharex=True, sharey=True), MODES):
        ax.plot([1e-12, 10], [1e-12, 10], color=style.colours["grid"], lw=1.5)
        for data, colour in zip(problems.DATA, style.CYCLE):
            part = results[(results["mode"] == mode) & (results["data"] == data)]
            ax.plot(part["difference_online"].clip(lower=1e-12), part["difference_ep"].clip(lower=1e-12), ".", ms=5,
                    color=colour, label=data)
        ax.set(xscale="log", yscale="log", xlim=(3e-13, 10), ylim=(3e-13, 10))
        ax.set_xticks([1e-10, 1e-5, 1])
        ax.set_yticks([1e-10, 1e-5, 1])
        ax.minorticks_off()
        style.label(ax, x="after one sweep", title=NAMES[mode])
    fig.axes[0].set_ylabel("after EP")
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, markerscale=2.5,
               handletextpad=0.1)


FIGURES = {"csa_order": (draw, (7.0, 3.6))}
