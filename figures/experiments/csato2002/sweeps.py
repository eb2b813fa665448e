"""How many sweeps does sparse EP need? csato2002 section 4.6: "a steady performance ... after the second sweep".

Each run is one random order of up to 400 training rows of one split, with a budget and basis vectors that come and go in
every sweep, as in the thesis. Error and negative log likelihood on the test rows are taken after each of eight sweeps.
"""

import warnings

import numpy as np
import pandas as pd

from figures.drawing import style
from figures.experiments.csato2002 import problems
from figures.experiments.csato2002.problems import error_rates
from pepcore import online

__all__ = ["FIGURES", "OUTPUTS", "compute", "curves", "draw", "error_rates", "grid", "steady"]

SPLITS, BUDGETS = range(10), (20, 50)
ROWS, SWEEPS = 400, 8
STEADY = 0.02  # chosen before the runs: within two per cent of the value after the last sweep
OUTPUTS = (*(f"{name}_{sweep}" for name in ("error", "nll") for sweep in range(1, SWEEPS + 1)), "moved", "change")


def grid():
    """All runs, split by split."""
    return [{"data": data, "split": split, "budget": budget}
            for split in SPLITS for data in problems.DATA for budget in BUDGETS]


def compute(data, split, budget):
    """Eight sweeps; `moved` basis vectors came in the last one, in which sites changed by `change`."""
    problem = problems.problem(data, split, ROWS)
    order = np.random.default_rng(split).permutation(len(problem.X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # eight sweeps are not meant to converge
        fit = online.infer(problem.kernel, problem.X, problem.y, problem.likelihood, budget=budget, max_sweeps=SWEEPS,
                           order=order, tolerance=1e-12)
    result = {"moved": fit.history[-1]["included"], "change": fit.history[-1]["change"]}
    for sweep in range(SWEEPS):
        posterior = fit.history[min(sweep, fit.sweeps - 1)]["posterior"]  # nothing changes after convergence
        result[f"error_{sweep + 1}"], result[f"nll_{sweep + 1}"] = problem.loss(posterior)
    return result


def curves(results, metric, budget):
    """Mean over the splits, one row per data set, one column per sweep."""
    part = results[results["budget"] == budget].groupby("data", sort=False)
    mean = part[[f"{metric}_{sweep}" for sweep in range(1, SWEEPS + 1)]].mean()
    return mean.set_axis(range(1, SWEEPS + 1), axis=1)


def steady(results, metric="error", sweep=2):
    """Percentage of runs whose metric after this sweep is within `STEADY` of that after the last one.

    An error is compared relative to its last value, a negative log likelihood in nats, whose zero means nothing.
    """
    return 100 * float(is_steady(results, metric, sweep).mean())


def is_steady(results, metric, sweep):
    """One bool for each run: what `steady` counts."""
    last = results[f"{metric}_{SWEEPS}"]
    distance = (results[f"{metric}_{sweep}"] - last).abs() / (last if metric == "error" else 1.0)
    return distance <= STEADY


def table(results):
    """`steady` in per cent, one row per metric, one column per sweep."""
    sweeps = range(1, SWEEPS)
    return pd.DataFrame({sweep: [steady(results, metric, sweep) for metric in ("error", "nll")] for sweep in sweeps},
                        index=["error", "nll"])


def draw(fig, results, budget=BUDGETS[0]):
    """Error and negative log likelihood after each sweep, less their values after the last one, mean over the splits."""
    for ax, (metric, title) in zip(fig.subplots(1, 2), (("error", "SMSE or error rate"), ("nll", "NLL, nats"))):
        mean = curves(results, metric, budget)
        for (data, values), colour in zip(mean.iterrows(), style.CYCLE):
            ax.plot(values.index, values - values[SWEEPS], color=colour, marker=".", lw=1.5, label=data)
        ax.axhline(0, color=style.colours["grid"], lw=1.5, zorder=0)
        ax.set_xticks(range(1, SWEEPS + 1))
        style.label(ax, x="sweep", title=title)
    fig.axes[0].set_ylabel("less that of the last sweep")
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, handlelength=1.2)


FIGURES = {"csa_sweeps": (draw, (7.0, 3.8))}
