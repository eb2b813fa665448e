"""How fast does each basis learn? Bound, error and likelihood against iterations and seconds (salimbeni2018 figure 2a, b).

Kernel, noise and points stay as they start, so that all decoupled bases have one optimum; for regression it is computed in
closed form. As in the paper |beta| = |gamma| = 500, a step sees 1024 rows and 64 columns, and there are 20 000 of them. The
bound is that of all rows, not the estimate of a batch.
"""

import time

import numpy as np

from figures import style
from figures.salimbeni_problems import BASES, options_of, problem
from pepcore import Gaussian, datasets, decoupled
from pepcore.decoupled_bases import Bases
from pepcore.decoupled_bound import data_terms, kl_divergence
from pepcore.decoupled_natural import optimum

DATA = ("kin40k", "ringnorm")
POINTS, BATCH, COLUMNS = 500, 1024, 64
CHECKPOINTS = (0, *(int(first * 10**power) for power in (1, 2, 3) for first in (1, 1.5, 2, 3, 5, 7)), 10_000, 15_000, 20_000)
MEASURED = ("bound", "error", "log_likelihood", "seconds")
OUTPUTS = (*(f"{name}_{number}" for name in MEASURED for number in CHECKPOINTS), "bound_optimum", "log_likelihood_optimum")
UNFINISHED = "a run takes ten to twenty minutes of one core"


def grid():
    """Every basis on both sets."""
    return [{"data": data, "basis": basis} for data in DATA for basis in BASES]


def prepare():
    """Stop at once when a data set is missing."""
    for data in DATA:
        datasets.load(data)


def compute(data, basis, points=POINTS, rows=None, checkpoints=CHECKPOINTS):
    """One curve; the seconds are processor time and leave out what is measured on the way."""
    task = problem(data, 0, rows)
    beta, gamma = task.points(points, points, seed=0)
    result, clock = {}, {"spent": 0.0}

    def look(number, posterior):
        clock["spent"] += time.process_time() - clock["since"]
        if number in checkpoints:
            result.update({f"{name}_{number}": value for name, value in _measured(task, posterior()).items()})
            result[f"seconds_{number}"] = clock["spent"]
        clock["since"] = time.process_time()

    clock["since"] = time.process_time()
    steps = max(checkpoints) + 1  # `look` comes before a step
    fit = decoupled.infer(task.kernel, X=task.X, y=task.y, likelihood=task.likelihood, steps=steps, batch=BATCH,
                          columns=COLUMNS, at_step=look, **options_of(basis, beta, gamma))
    if len(fit.history) < steps:
        raise KeyboardInterrupt  # somebody has pressed Ctrl-C: half a curve is no result
    best = {"bound_optimum": np.nan, "log_likelihood_optimum": np.nan}
    if isinstance(task.likelihood, Gaussian):
        bases = Bases.build(task.kernel, beta, gamma if BASES[basis][0] != "coupled" else gamma[:0])
        process = optimum(bases, task.X, task.y, task.likelihood.noise).process(bases)
        found = _measured(task, decoupled.DecoupledPosterior(bases, process))
        best = {f"{name}_optimum": found[name] for name in ("bound", "log_likelihood")}
    return result | best


def _measured(task, posterior):
    bases, process = posterior
    fitted, _, _ = data_terms(bases, (process,), task.X, task.y, task.likelihood)
    _, error, log_likelihood = task.losses(posterior, task.likelihood)
    return {"bound": fitted - kl_divergence(bases, process), "error": error, "log_likelihood": log_likelihood}


def draw(fig, results, metric="bound", against="iterations"):
    """One panel per data set, one line per basis; dashed is the optimum."""
    for ax, data in zip(fig.subplots(1, 2), DATA):
        part = results[results["data"] == data].set_index("basis")
        for name, colour in zip(BASES, style.CYCLE):
            if name not in part.index:
                continue
            y = [part.loc[name, f"{metric}_{number}"] for number in CHECKPOINTS[1:]]
            x = CHECKPOINTS[1:] if against == "iterations" else [part.loc[name, f"seconds_{n}"] for n in CHECKPOINTS[1:]]
            ax.plot(x, y, color=colour, marker=".", lw=1.5, label=name)
        if metric in ("bound", "log_likelihood") and part[f"{metric}_optimum"].notna().any():
            ax.axhline(part[f"{metric}_optimum"].max(), color=style.INK, ls="--", lw=1)
        ax.set(xscale="log")
        style.label(ax, x=against, y=metric.replace("_", " "), title=data)
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)


FIGURES = {"salimbeni_fig2": (draw, (7.0, 3.4)),
           "salimbeni_fig2_seconds": (lambda fig, results: draw(fig, results, against="seconds"), (7.0, 3.4))}
