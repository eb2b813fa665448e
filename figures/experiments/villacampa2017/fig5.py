"""MNIST, ten classes: error and negative log-likelihood against time for stochastic EP, EP and VI (villacampa2017 figure 5).

Kernel, pseudo-inputs, noises and sites are learnt together on mini-batches of 200 images with M = 200 pseudo-inputs, either
one set that all classes share, or one for each class, as in the paper. Each row is one curve. VI goes on from the sums that
stochastic EP has after 100 batches: from the prior it gives up classes.
"""

import time

import numpy as np

from figures.drawing import style
from figures.experiments.mnist import (
    BATCH,
    CHECKPOINTS,
    EPOCHS,
    KMEANS_ROWS,
    RATE,
    centres,
    curve,
    digits,
    start_kernel,
)
from figures.experiments.villacampa2017.tables import probabilities
from pepcore import metrics
from pepcore.multiclass.minibatch import fit_minibatch

M = 200
RUNS = (("sep", "shared"), ("sep", "own"), ("vi", "shared"), ("vi", "own"), ("ep", "shared"), ("ep", "own"))
MEASURED = ("error_rate", "nll", "seconds")
READS = ("mnist",)
OUTPUTS = tuple(f"{name}_{number}" for name in MEASURED for number in CHECKPOINTS)
NAMES = {"sep": "stochastic EP", "ep": "EP", "vi": "VI"}
SHORT = NAMES | {"sep": "SEP"}
HEAD_START = 100    # batches of stochastic EP before VI
KINDS = {"shared": ":", "own": "-"}
PAPER = {"error_rate": 2.08, "nll": 0.0725}
PANELS = {"error_rate": (100, "test error, %", (2, 3, 5, 10)), "nll": (1, "test NLL", (0.07, 0.1, 0.2, 0.5, 1))}
COLOURS = {"sep": style.CYCLE[3], "ep": style.colours["ep"], "vi": style.colours["vfe"]}


def grid():
    """What the paper's claim is about first."""
    return [{"method": method, "pseudo_inputs": kind} for method, kind in RUNS]


def compute(method, pseudo_inputs, rows=None, size=M, epochs=EPOCHS, checkpoints=CHECKPOINTS, rate=RATE):
    """One curve; the seconds are processor time, that of VI's head start too, without what is measured on the way."""
    X, y, X_test, y_test = digits()
    X, y = X[:rows], y[:rows]
    kernel = start_kernel(X)
    few = slice(KMEANS_ROWS)
    if pseudo_inputs == "shared":
        Z = centres(X[few], size)
    else:
        # each function must know where its class begins: half of its places lie on the class, half on the others
        Z = [np.vstack([centres(X[few][y[few] == c], size // 2), centres(X[few][y[few] != c], size - size // 2)])
             for c in range(10)]
        kernel = [kernel] * 10
    result, clock = {}, {"spent": 0.0}

    def look(record):
        clock["spent"] += time.process_time() - clock["since"]
        number = record["step"]
        if number in checkpoints:
            p = probabilities(record.result(), X_test)
            result.update({f"error_rate_{number}": float(np.mean(p.argmax(axis=1) != y_test)),
                           f"nll_{number}": metrics.nll_classes(y_test, p), f"seconds_{number}": clock["spent"]})
        clock["since"] = time.process_time()

    clock["since"] = time.process_time()
    settings = {"classes": 10, "rate": rate, "spread": np.full(X.shape[1], X.std())}
    start = {"kernels": kernel, "Z": Z}
    if method == "vi":
        rows = np.random.default_rng(1).permutation(len(X))[:HEAD_START * BATCH]
        first = fit_minibatch(**start, data=[(X[part], y[part]) for part in np.array_split(rows, HEAD_START)],
                              size=len(X), **settings)
        start = {"kernels": first.kernels, "Z": first.Z, "noise": first.noise, "sites": first.fit.sites}
    fit_minibatch(**start, data=(X, y), approximation=method, batch=BATCH, epochs=epochs, callback=look, **settings)
    return result


def draw(fig, results, longer=(), checkpoints=()):
    """Error and negative log-likelihood on the test images against processor seconds, one line per method and kind of places.

    `longer`: rows of `vil_fig5_long`, with its checkpoints.
    """
    lines = [(row, CHECKPOINTS, KINDS[row["pseudo_inputs"]], f"{SHORT[row['method']]}, {row['pseudo_inputs']} places")
             for row in results.to_dict("records")]
    lines += [(row, checkpoints, (0, (6, 1)), f"{SHORT[row['method']]}, own places, long run") for row in longer]
    for ax, (metric, paper) in zip(fig.subplots(1, 2), PAPER.items()):
        scale, title, ticks = PANELS[metric]
        for row, numbers, dashes, label in lines:
            seconds, values = curve(row, metric, numbers)
            ax.plot(seconds, scale * values, color=COLOURS[row["method"]], ls=dashes, marker=".", lw=1.5, label=label)
        ax.axhline(paper, color=style.colours["truth"], lw=1, label="the paper's SEP in the end")
        ax.set(xscale="log", yscale="log")
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        style.label(ax, x="processor seconds", title=title)
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, handlelength=2.5)


FIGURES = {"fig5": (draw, (7, 4.2))}
