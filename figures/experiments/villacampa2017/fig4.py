"""Satellite: test losses against training time for SEP, GFITC and VI (villacampa2017 figures 4, 6 and 7).

Every method trains on the same 20 % of the rows from the same start, as in `villacampa_whole`, 250 iterations. At checkpoints
along the way the model is taken as if training had stopped there; for SEP, whose sites have not converged then, the clock
includes the inference that finishes it. Beside the losses stands what VI
maximises on the training data in place of log E[p], the mean of E[log p], on the test data and with its robust-max likelihood.
"""

import time
import warnings

import numpy as np

from figures.drawing import style
from figures.experiments.villacampa2017 import tables
from figures.experiments.villacampa2017.fig1 import time_to
from figures.experiments.villacampa2017.tables import ITERATIONS, MAX_SWEEPS, TOLERANCE, UPDATES, probabilities
from pepcore import metrics, multiclass
from pepcore.multiclass import learning
from pepcore.multiclass.bound import Bound

DATA = "satellite"
SIZES = (4, 20, 100)
METHODS = ("sep", "vi", "gfitc")
SPLITS = range(20)
CLASSES, JITTER = 6, 1e-6
EPSILON = 1e-3 * (CLASSES - 1) / CLASSES  # of a wrong label; the paper replaces one in a thousand by any of the classes
CHECKPOINTS = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 250)  # updates, for L-BFGS points better than all before
MEASURED = ("nll", "error_rate", "expected", "seconds")
READS = (DATA,)
OUTPUTS = tuple(f"{name}_{number}" for name in MEASURED for number in CHECKPOINTS)
NAMES = {"sep": "SEP", "gfitc": "GFITC", "vi": "VI"}
COLOURS = {"sep": style.CYCLE[3], "gfitc": style.CYCLE[2], "vi": style.colours["vfe"]}
TITLES = {"nll": "test NLL", "error_rate": "test error, %"}
TICKS = {"nll": ((0.3, 0.4, 0.6, 1, 2), ("0.3", "0.4", "0.6", "1", "2")),
         "error_rate": ((10, 15, 20, 40, 80), ("10", "15", "20", "40", "80"))}


def grid():
    """Split by split."""
    return [{"split": split, "M": M, "method": method} for split in SPLITS for M in SIZES for method in METHODS]


def compute(split, M, method, iterations=ITERATIONS):
    """One curve; a run that ends before the last checkpoint keeps its last values."""
    X, y, X_test, y_test = tables.standardised(DATA, split)
    trail, start = [], time.process_time()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "EP has not converged")
        learning.fit(
            None, X, y, M=M, approximation=method, classes=CLASSES, Z="subset", iterations=iterations, seed=split, jitter=JITTER,
            epsilon=EPSILON if method == "vi" else None, tolerance=TOLERANCE, max_sweeps=MAX_SWEEPS,
            callback=lambda record: trail.append((time.process_time() - start, record.parameters)), **UPDATES[method])
        result, measured = {}, {}
        for number in CHECKPOINTS:
            place = min(number, len(trail)) - 1
            if place not in measured:
                seconds, values = trail[place]
                start = time.process_time()
                fit = _fit(method, values, X, y)
                if method == "sep":
                    seconds += time.process_time() - start
                measured[place] = losses(fit, X_test, y_test) | {"seconds": float(f"{seconds:.3g}")}
            result |= {f"{name}_{number}": measured[place][name] for name in MEASURED}
    return result


def _fit(method, values, X, y):
    """What training would have returned had it stopped at `values`."""
    if method == "vi":
        return Bound(X, y, CLASSES, EPSILON, JITTER).finish(values)
    return multiclass.infer(values["kernels"], values["Z"], X, y, approximation=method, noise=values["noise"],
                            classes=CLASSES, tolerance=TOLERANCE, max_sweeps=MAX_SWEEPS, jitter=JITTER)


def losses(fit, X, y):
    """NLL, error, and the mean of E[log p] where p is 1 − ε for the largest function and ε/(C − 1) for the others."""
    p = probabilities(fit, X)
    wrong = fit.epsilon / (CLASSES - 1)
    largest = (p[np.arange(len(y)), y] - wrong) / (1 - fit.epsilon - wrong)
    expected = largest * np.log(1 - EPSILON) + (1 - largest) * np.log(EPSILON / (CLASSES - 1))
    return {"nll": metrics.nll_classes(y, p), "error_rate": float(np.mean(p.argmax(axis=1) != y)),
            "expected": float(expected.mean())}


def curve(row, metric):
    """Processor seconds and the loss at each checkpoint, of one row of the results."""
    return tuple(np.array([row[f"{name}_{number}"] for number in CHECKPOINTS]) for name in ("seconds", metric))


def seconds_to(row, level, metric="nll"):
    """Processor seconds until the loss is first at or below `level`."""
    seconds, loss = curve(row, metric)
    return time_to(seconds, -loss, -level)


def head_start(results, metric="nll"):
    """How many times later the sooner of GFITC and VI is where SEP is, within 5 % of its last loss: dict (M, split) -> ratio.

    Only for the splits on which all three have been run.
    """
    times = {}
    for (M, split), part in results.groupby(["M", "split"]):
        rows = {row["method"]: row for row in part.to_dict("records")}
        if len(rows) == len(METHODS):
            level = 1.05 * rows["sep"][f"{metric}_{CHECKPOINTS[-1]}"]
            seconds = {method: seconds_to(row, level, metric) for method, row in rows.items()}
            times[M, split] = min(seconds["gfitc"], seconds["vi"]) / seconds["sep"]
    return times


def mean_curve(part, metric):
    """Mean over splits of seconds and loss at each checkpoint."""
    return tuple(np.mean(values, axis=0) for values in zip(*(curve(row, metric) for row in part.to_dict("records"))))


def draw_losses(fig, results):
    """NLL above, error below, against processor seconds, for each M; means over the splits."""
    for axes, (metric, title) in zip(fig.subplots(2, len(SIZES), sharex="col", sharey="row"), TITLES.items()):
        for ax, M in zip(axes, SIZES):
            for method in METHODS:
                part = results[(results["M"] == M) & (results["method"] == method)]
                seconds, loss = mean_curve(part, metric)
                ax.plot(seconds, 100 * loss if metric == "error_rate" else loss, marker=".", lw=1.5,
                        color=COLOURS[method], label=NAMES[method])
            ax.set(xscale="log", yscale="log")
            ax.set_yticks(*TICKS[metric])
            ax.minorticks_off()
            style.label(ax, title=f"$M = {M}$", x="processor seconds" if metric == "error_rate" else "")
        axes[0].set_ylabel(title)
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)


def draw_gap(fig, results, M=100):
    """log E[p] and E[log p] on the test data against processor seconds; between them lies the gap."""
    ax = fig.subplots()
    for method in ("vi", "sep"):
        part = results[(results["M"] == M) & (results["method"] == method)]
        seconds, nll = mean_curve(part, "nll")
        _, expected = mean_curve(part, "expected")
        ax.plot(seconds, -nll, color=COLOURS[method], lw=1.6, marker=".", label=rf"{NAMES[method]}, $\log\,\mathrm{{E}}[p]$")
        ax.plot(seconds, expected, color=COLOURS[method], lw=1.6, ls="--", label=rf"{NAMES[method]}, $\mathrm{{E}}[\log\,p]$")
    ax.set(xscale="log", ylim=(-2.4, 0.0))                      # VI starts at −7
    style.label(ax, x="processor seconds", title=f"mean over the test data, nats, $M = {M}$")
    fig.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=2)


FIGURES = {"losses": (draw_losses, (7, 5.2)), "gap": (draw_gap, (7, 4))}
