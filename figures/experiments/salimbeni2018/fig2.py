"""How fast does each basis learn? Bound, error and likelihood against iterations and seconds (salimbeni2018 figure 2a, b).

Kernel, noise and points stay as they start, so that all decoupled bases have one optimum; for regression it is computed in
closed form. As in the paper |beta| = |gamma| = 500 and there are 20 000 steps. Unlike its figure, which has full batches, a step
sees 1024 rows and 64 columns, as in its appendix F, and kin40k stands in for 3droad. The bound is that of all rows.
"""

import time
from functools import partial

import numpy as np

from figures.drawing import style
from figures.experiments import runner
from figures.experiments.salimbeni2018.problems import BASES, options_of, problem
from pepcore import Gaussian, decoupled
from pepcore.decoupled.bases import Bases
from pepcore.decoupled.bound import data_terms, kl_divergence
from pepcore.decoupled.natural import optimum

DATA = ("kin40k", "ringnorm")
POINTS, BATCH, COLUMNS = 500, 1024, 64
CHECKPOINTS = (0, *(int(first * 10**power) for power in (1, 2, 3) for first in (1, 1.5, 2, 3, 5, 7)), 10_000, 15_000, 20_000)
MEASURED = ("bound", "error", "log_likelihood", "seconds")
OUTPUTS = (*(f"{name}_{number}" for name in MEASURED for number in CHECKPOINTS), "bound_optimum", "log_likelihood_optimum")
PANELS = {"bound": ("bound, 1000 nats", 1e-3), "log_likelihood": ("log-likelihood", 1), "error": ("test error", 1)}
LOOKS = {basis: {"color": colour, "ls": "--" if BASES[basis][1] else "-", "lw": 1.6}
         for basis, colour in zip([basis for basis in BASES if basis != "OrthNatWeights"], style.CYCLE)}
ARRIVED = 0.01  # of the gap between the prior and the best bound
TICKS = (0.01, 0.1, 1, 10, 100)
LONGER = (10_000, 20_000, 25_000, 30_000)  # checkpoints of the longer curves
LOWEST = 1e-9  # share of the gap that still has a logarithm


def grid():
    """Every basis on both sets; natural steps are the same in all coordinates, so that OrthNatWeights would be OrthNat."""
    return [{"data": data, "basis": basis} for data in DATA for basis in LOOKS]


def compute(data, basis, points=POINTS, rows=None, checkpoints=CHECKPOINTS):
    """One curve; the seconds are processor time, 0 at the start, and leave out what is measured on the way."""
    task = problem(data, 0, rows)
    beta, gamma = task.points(points, points, seed=0)
    learn = partial(decoupled.infer, task.kernel, X=task.X, y=task.y, likelihood=task.likelihood, batch=BATCH,
                    columns=COLUMNS, **options_of(basis, beta, gamma))
    result, clock = {}, {"spent": 0.0}

    def write(number, posterior):
        result.update({f"{name}_{number}": value for name, value in _measured(task, posterior).items()})
        result[f"seconds_{number}"] = clock["spent"]

    def look(record):
        clock["spent"] += time.process_time() - clock["since"]
        if record["step"] in checkpoints:
            write(record["step"], record.result().posterior)
        clock["since"] = time.process_time()

    write(0, learn(steps=0).posterior)
    clock["since"] = time.process_time()
    fit = learn(steps=max(checkpoints), callback=look)
    if len(fit.history) < max(checkpoints):
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


def shares(results):
    """{(data, basis): (21,)}, the share of the gap between prior and best bound that is left at the later `CHECKPOINTS`.

    The best bound is the optimum in closed form; without one, the highest that a basis with the same optimum has reached.
    """
    rows = results.set_index(["data", "basis"])
    bounds = rows[[f"bound_{number}" for number in CHECKPOINTS]]
    families = rows.index.map(lambda run: f"{run[0]}, coupled {BASES[run[1]][0] == 'coupled'}")
    best = rows["bound_optimum"].fillna(bounds.max(axis=1).groupby(families).transform("max"))
    left = bounds.rsub(best, axis=0).div(best - bounds["bound_0"], axis=0)
    return {run: values.to_numpy()[1:] for run, values in left.iterrows()}


def arrival(share, level=ARRIVED, numbers=CHECKPOINTS[1:]):
    """The iteration at which `share` is first at `level`, between `numbers` on a line of logarithms; inf if never."""
    below = np.flatnonzero(share <= level)
    if not len(below):
        return np.inf
    after, before = below[0], max(below[0] - 1, 0)
    heights = np.log(np.maximum(share[[after, before]], LOWEST))
    return float(np.exp(np.interp(np.log(level), heights, np.log([numbers[after], numbers[before]]))))


def longer(basis):
    """The share of the gap that is left on kin40k at the iterations `LONGER`, (4,), from the study of longer curves."""
    row = runner.results("salimbeni_fig2_long").set_index("basis").loc[basis]
    left = row["bound_optimum"] - row[[f"bound_{number}" for number in LONGER]].to_numpy(dtype=float)
    return left / (row["bound_optimum"] - row["bound_0"])


def head_start():
    """How many times later Orth and Coupled arrive than OrthNat and CoupledNat: the least over both sets.

    Who has not arrived in the end counts as if it did then, which for Orth on kin40k is the end of the longer run; 0 if natural
    gradients have not arrived.
    """
    times = {run: arrival(share) for run, share in shares(runner.results("salimbeni_fig2")).items()}
    ends = dict.fromkeys(times, CHECKPOINTS[-1])
    times["kin40k", "Orth"], ends["kin40k", "Orth"] = arrival(longer("Orth"), numbers=LONGER), LONGER[-1]
    pairs = [(data, basis) for data in DATA for basis in ("Coupled", "Orth")]
    return float(min(min(times[run], ends[run]) / times[run[0], f"{run[1]}Nat"] for run in pairs))


def decoupled_gap(data="kin40k"):
    """Per cent of the gap between prior and optimum that is left to Decoupled on a set in the end."""
    return float(100 * shares(runner.results("salimbeni_fig2"))[data, "Decoupled"][-1])


def sets_where_decoupled_is_late():
    """On how many of the two sets more than one per cent of the gap is left to Decoupled in the end."""
    return float(sum(decoupled_gap(data) > 100 * ARRIVED for data in DATA))


def draw(fig, results):
    """Bound, test log-likelihood and test error against iterations; dotted lines are the optima, coupled and decoupled."""
    runs = results.set_index(["data", "basis"])
    for column, data in zip(fig.subplots(len(PANELS), len(DATA), sharex=True).T, DATA):
        for ax, (metric, (title, scale)) in zip(column, PANELS.items()):
            for basis, look in LOOKS.items():
                row = runs.loc[data, basis]
                ax.plot(CHECKPOINTS[1:], [scale * row[f"{metric}_{number}"] for number in CHECKPOINTS[1:]], label=basis, **look)
                if f"{metric}_optimum" in row and basis in ("Coupled", "Orth"):
                    ax.axhline(scale * row[f"{metric}_optimum"], color=look["color"], ls=":", lw=1)
            ax.set(xscale="log")
            style.label(ax, y=title if data == DATA[0] else None)
        style.label(column[0], title=data)
        style.label(column[-1], x="iterations")
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)


def draw_gaps(fig, results):
    """The share of the gap that is left, against iterations and seconds; a line at one per cent."""
    runs, left = results.set_index(["data", "basis"]), shares(results)
    for column, data in zip(fig.subplots(2, len(DATA), sharey=True).T, DATA):
        for ax, against in zip(column, ("iterations", "processor seconds")):
            for basis, look in LOOKS.items():
                row = runs.loc[data, basis]
                x = [row[f"seconds_{number}"] for number in CHECKPOINTS[1:]] if against != "iterations" else CHECKPOINTS[1:]
                ax.plot(x, 100 * left[data, basis], label=basis, **look)
            ax.axhline(100 * ARRIVED, color=style.INK, lw=0.8, ls=":")
            ax.set(xscale="log", yscale="log", ylim=(0.01, 120))
            ax.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
            style.label(ax, x=against, y="gap left, %" if data == DATA[0] else None)
        style.label(column[0], title=data)
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)


FIGURES = {"salimbeni_fig2": (draw, (7.0, 7.0)), "salimbeni_fig2_gaps": (draw_gaps, (7.0, 6.0))}
