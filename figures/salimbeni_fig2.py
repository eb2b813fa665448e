"""How fast does each basis learn? Bound, error and likelihood against iterations and seconds (salimbeni2018 figure 2a, b).

Kernel, noise and points stay as they start, and every step sees all rows, so that all decoupled bases have one optimum; for
regression it is computed in closed form. As in the paper |beta| = |gamma| = 500; regression keeps 10 000 training rows.
"""

import time

import numpy as np

from figures import style
from figures.salimbeni_problems import BASES, options_of, problem
from pepcore import Gaussian, datasets, decoupled
from pepcore.decoupled_bases import Bases
from pepcore.decoupled_bound import bound
from pepcore.decoupled_natural import optimum

DATA = ("kin40k", "ringnorm")
POINTS, ROWS = 500, 10_000
CHECKPOINTS = (0, 10, 30, 100, 300, 1000, 3000, 10_000, 20_000)
MEASURED = ("bound", "error", "log_likelihood", "seconds")
OUTPUTS = (*(f"{name}_{number}" for name in MEASURED for number in CHECKPOINTS), "bound_optimum", "log_likelihood_optimum")
UNFINISHED = "a run takes one to two hours of one core"


def grid():
    """Every basis on both sets."""
    return [{"data": data, "basis": basis} for data in DATA for basis in BASES]


def prepare():
    """Stop at once when a data set is missing."""
    for data in DATA:
        datasets.load(data)


def compute(data, basis, points=POINTS, rows=ROWS, checkpoints=CHECKPOINTS):
    """One curve; the seconds are processor time and leave out what is measured on the way."""
    task = problem(data, 0, rows)
    beta, gamma = task.points(points, points, seed=0)
    result, clock = {}, {"spent": 0.0}

    def look(number, posterior):
        spent = time.process_time() - clock["since"]
        clock["spent"] += spent
        if number in checkpoints:
            _, error, log_likelihood = task.losses(posterior(), task.likelihood)
            result.update({f"error_{number}": error, f"log_likelihood_{number}": log_likelihood,
                           f"seconds_{number}": clock["spent"]})
        clock["since"] = time.process_time()

    clock["since"] = time.process_time()
    fit = decoupled.infer(task.kernel, X=task.X, y=task.y, likelihood=task.likelihood, steps=max(checkpoints) + 1,
                          at_step=look, **options_of(basis, beta, gamma))
    for number in checkpoints:
        result[f"bound_{number}"] = fit.history[number]
    best = {"bound_optimum": np.nan, "log_likelihood_optimum": np.nan}
    if isinstance(task.likelihood, Gaussian):
        bases = Bases.build(task.kernel, beta, gamma if basis not in ("Coupled", "CoupledNat") else gamma[:0])
        parameters = optimum(bases, task.X, task.y, task.likelihood.noise)
        best["bound_optimum"] = bound(bases, parameters, task.X, task.y, task.likelihood).value
        posterior = decoupled.DecoupledPosterior(bases, parameters.process(bases))
        best["log_likelihood_optimum"] = task.losses(posterior, task.likelihood)[2]
    return result | best


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
