"""MNIST, ten classes: error and negative log-likelihood against time for stochastic EP, EP and VI (villacampa2017 figure 5).

Kernel, pseudo-inputs, noises and sites are learnt together on mini-batches of 200 images with M = 200 pseudo-inputs, either
one set that all classes share, or one for each class, as in the paper. Each row is one curve.
"""

import time

import numpy as np

from figures import style
from figures.mnist import BATCH, CHECKPOINTS, EPOCHS, KMEANS_ROWS, RATE, centres, curve, digits, start_kernel
from figures.villacampa_tables import probabilities
from pepcore import metrics
from pepcore.multiclass_minibatch import fit_minibatch

M = 200
RUNS = (("sep", "shared"), ("sep", "own"), ("vi", "shared"), ("vi", "own"), ("ep", "shared"))
MEASURED = ("error_rate", "nll", "seconds")
OUTPUTS = tuple(f"{name}_{number}" for name in MEASURED for number in CHECKPOINTS)
UNFINISHED = "a run takes from four minutes to half an hour of one core; the rest follows"
NAMES = {"sep": "stochastic EP", "ep": "EP", "vi": "VI"}
COLOURS = {"sep": style.CYCLE[3], "ep": style.colours["ep"], "vi": style.colours["vfe"]}


def grid():
    """What the paper's claim is about first."""
    return [{"method": method, "pseudo_inputs": kind} for method, kind in RUNS]


def prepare():
    """Stop at once when the data are missing."""
    digits()


def compute(method, pseudo_inputs, rows=None, size=M, epochs=EPOCHS, checkpoints=CHECKPOINTS, rate=RATE):
    """One curve; the seconds are processor time and leave out what is measured on the way."""
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
    result, clock = {}, {"spent": 0.0, "steps": 0}

    def look(learner):
        clock["spent"] += time.process_time() - clock["since"]
        clock["steps"] += 1
        if clock["steps"] in checkpoints:
            p = probabilities(learner.fit(), X_test)
            number = clock["steps"]
            result.update({f"error_rate_{number}": float(np.mean(p.argmax(axis=1) != y_test)),
                           f"nll_{number}": metrics.nll_classes(y_test, p), f"seconds_{number}": clock["spent"]})
        clock["since"] = time.process_time()

    clock["since"] = time.process_time()
    spread = np.full(X.shape[1], X.std())
    fit_minibatch(kernel, Z, (X, y), method=method, classes=10, batch=BATCH, epochs=epochs, rate=rate, spread=spread,
                  callback=look)
    return result


def draw(fig, results, pseudo_inputs="shared"):
    """Error and negative log-likelihood on the test images against processor seconds, one line per method."""
    part = results[results["pseudo_inputs"] == pseudo_inputs]
    titles = {"error_rate": "test error, %", "nll": "test NLL"}
    for ax, (metric, title) in zip(fig.subplots(1, 2), titles.items()):
        for row in part.to_dict("records"):
            _, seconds, values = curve(row, metric)
            ax.plot(seconds, 100 * values if metric == "error_rate" else values, color=COLOURS[row["method"]], marker=".",
                    lw=1.5, label=NAMES[row["method"]])
        ax.set(xscale="log", yscale="log")
        ticks = (2, 3, 5, 10, 20, 40) if metric == "error_rate" else (0.07, 0.1, 0.2, 0.5, 1, 2)
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        style.label(ax, x="processor seconds", title=title)
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, handlelength=1.2)


FIGURES = {"shared": (draw, (7, 3.6)), "own": (lambda fig, results: draw(fig, results, "own"), (7, 3.6))}
