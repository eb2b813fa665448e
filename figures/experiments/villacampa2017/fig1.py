"""Vehicle: the log evidence against training time when EP waits, and when it does not (villacampa2017 figure 1).

M = N/5 pseudo-inputs for each class, 250 updates of all hyper-parameters with the adaptive step of the paper's appendix:
after EP has converged ("outer"), or with one sweep before each update and the gradient as if it had converged ("inner"), or
with the exact gradient at the sites as they are ("inner-exact").
"""

import time
import warnings

import numpy as np
import pandas as pd

from figures.drawing import style
from figures.experiments.villacampa2017 import tables
from pepcore import metrics
from pepcore.multiclass import learning

UPDATES = ("inner", "inner-exact", "outer")
SPLITS = range(20)
ITERATIONS = 250
CHECKPOINTS = (1, 2, 5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 250)
TOLERANCE, MAX_SWEEPS = 1e-3, 100
READS = ("vehicle",)
OUTPUTS = ("final_evidence", "nll", "error_rate",
           *(f"{name}_{number}" for name in ("evidence", "seconds") for number in CHECKPOINTS))
NAMES = {"outer": "outer", "inner": "inner, approximate gradient", "inner-exact": "inner, exact gradient"}


def grid():
    """Split by split, the short runs first."""
    return [{"split": split, "update": update} for split in SPLITS for update in UPDATES]


def compute(split, update, iterations=ITERATIONS, percent=20, perturbation=0.0, start=None):
    """One curve; processor seconds from the start of the training.

    `start` is the seed that chooses the first pseudo-inputs, by default `split`. `perturbation` changes the unit of each
    input by that fraction, at random; what was equal stays equal, for the start is chosen among the distinct rows in order.
    """
    X, y, X_test, y_test = tables.standardised("vehicle", split)
    unit = 1 + perturbation * np.random.default_rng(0).standard_normal(X.shape[1])
    X, X_test = X * unit, X_test * unit
    marks, began = [], time.process_time()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "EP has not converged")
        model = learning.fit(
            None, X, y, M=round(percent / 100 * len(X)), approximation="ep", Z="subset", update=update, optimiser="adaptive",
            iterations=iterations, tolerance=TOLERANCE, max_sweeps=MAX_SWEEPS,
            seed=split if start is None else start, callback=lambda _: marks.append(time.process_time() - began))
    p = tables.probabilities(model, X_test)
    result = {"final_evidence": model.log_evidence, "nll": metrics.nll_classes(y_test, p),
              "error_rate": float(np.mean(p.argmax(axis=1) != y_test))}
    for number in CHECKPOINTS:
        if number <= iterations:
            result |= {f"evidence_{number}": model.history[number - 1]["log_evidence"],
                       f"seconds_{number}": float(f"{marks[number - 1]:.3g}")}
    return result


def curve(row):
    """Seconds and log evidence at the checkpoints, of one row of the results."""
    return tuple(np.array([row[f"{name}_{number}"] for number in CHECKPOINTS]) for name in ("seconds", "evidence"))


def seconds_to(row, level):
    """Processor seconds until the log evidence is first at or above `level`."""
    return time_to(*curve(row), level)


def time_to(seconds, values, level):
    """When `values` are first at or above `level`, between two checkpoints on a line; inf if never."""
    above = np.flatnonzero(values >= level)
    if not len(above):
        return np.inf
    k = above[0]
    if k == 0:
        return seconds[0]
    share = (level - values[k - 1]) / (values[k] - values[k - 1])
    return seconds[k - 1] + share * (seconds[k] - seconds[k - 1])


def times_to_level(rows):
    """Processor seconds of each update until its log evidence is at the lowest of their last values, less 2 % of it.

    rows : dict of update -> row of the results, of one split
    """
    last = min(row[f"evidence_{ITERATIONS}"] for row in rows.values())
    return {update: seconds_to(row, last - 0.02 * abs(last)) for update, row in rows.items()}


def summary(results):
    """How far each update ends below the best of the three, when it is where all three come, and whether it still rises.

    Returns
    -------
    DataFrame with index (split, update) and columns behind (% of the best), time (times that of inner updates until
    `times_to_level`), rise (% in the last fifty updates)
    """
    rows = results.set_index(["split", "update"])
    ends = rows["final_evidence"].unstack()
    best = ends.max(axis=1)
    parts = {split: {row["update"]: row for row in part.to_dict("records")} for split, part in results.groupby("split")}
    times = pd.DataFrame({split: times_to_level(part) for split, part in parts.items()}).T
    times = times.rename_axis(index="split", columns="update")
    late, last = rows["evidence_200"], rows[f"evidence_{ITERATIONS}"]
    return pd.DataFrame({"behind": (100 * ends.rsub(best, axis=0).div(best.abs(), axis=0)).stack(),
                         "time": times.div(times["inner"], axis=0).stack(),
                         "rise": 100 * (last - late) / late.abs()})


def draw(fig, results, split=0):
    """Log evidence against processor seconds: the whole curves, and their ends."""
    whole, end = fig.subplots(1, 2)
    rows = results[results["split"] == split].to_dict("records")
    colours = dict(zip(UPDATES, (style.CYCLE[0], style.CYCLE[1], style.CYCLE[3])))
    for ax in (whole, end):
        for row in rows:
            ax.plot(*curve(row), marker=".", lw=1.5, color=colours[row["update"]], label=NAMES[row["update"]])
        ax.set(xscale="log")
    low = np.median([curve(row)[1][-1] for row in results.to_dict("records")])
    best = max(curve(row)[1][-1] for row in rows)
    whole.set_ylim(3 * low, 0)
    end.set(xlim=(1, None), ylim=(1.2 * best, 0.97 * best))
    style.label(whole, x="processor seconds", title="log evidence")
    style.label(end, x="processor seconds", title="its end")
    fig.legend(*whole.get_legend_handles_labels(), loc="outside upper center", ncols=2)


FIGURES = {"fig1": (draw, (7, 3.6))}
