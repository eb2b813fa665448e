"""MNIST, odd against even digits: error and log-likelihood against time (bui2017 figures 31 and 32).

Kernel, pseudo-inputs and sites are learnt together on mini-batches: in each step the sites of a batch move once, then Adam
moves the rest. The paper prints two pictures and no settings; those below are ours. Its figure 31 has M = 100, 32 has 200.
"""

import time

import numpy as np

from figures.drawing import style
from figures.experiments import mnist
from figures.experiments.mnist import BATCH, CHECKPOINTS, EPOCHS, KMEANS_ROWS, RATE, curve
from pepcore import metrics, training
from pepcore.likelihoods import Probit

SIZES = (100, 200)
ALPHAS = (0.5, 0.0, 1.0, 0.2)
SEEDS = (0, 1, 2)        # of k-means, which places the pseudo-inputs, and of the order of the images
MEASURED = ("error_rate", "log_likelihood", "seconds")
INFERRED = "inferred"    # what follows after inference on all data, in place of a number of steps
READS = ("mnist",)
OUTPUTS = (*(f"{name}_{number}" for name in MEASURED for number in CHECKPOINTS), f"error_rate_{INFERRED}",
           f"log_likelihood_{INFERRED}", "inference_converged")


def grid():
    """Seed by seed, the smaller M first."""
    return [{"M": M, "alpha": alpha, "seed": seed} for seed in SEEDS for M in SIZES for alpha in ALPHAS]


def digits():
    """As `mnist.digits` with y in {-1, +1}: odd digits are +1."""
    X, y, X_test, y_test = mnist.digits()
    return X, np.where(y % 2 == 1, 1.0, -1.0), X_test, np.where(y_test % 2 == 1, 1.0, -1.0)


def compute(M, alpha, seed, rows=None, epochs=EPOCHS, checkpoints=CHECKPOINTS):
    """One curve, and what inference on all data makes of the values learnt.

    The seconds are processor time and leave out what is measured on the way, and that inference.
    """
    X, y, X_test, y_test = digits()
    X, y = X[:rows], y[:rows]
    kernel, Z = mnist.start_kernel(X), mnist.centres(X[:KMEANS_ROWS], M, seed)
    result, clock = {}, {"spent": 0.0}

    def measure(fit, number):
        probability = fit.predict_y(X_test)
        result.update({f"error_rate_{number}": metrics.error_rate(y_test, probability),
                       f"log_likelihood_{number}": -metrics.nll_binary(y_test, probability)})

    def look(record):
        clock["spent"] += time.process_time() - clock["since"]
        number = record["step"]
        if number in checkpoints:
            measure(record.result(), number)
            result[f"seconds_{number}"] = clock["spent"]
        clock["since"] = time.process_time()

    clock["since"] = time.process_time()
    model = training.fit_minibatch(kernel, X, y, Probit(), Z=Z, alpha=alpha, batch=BATCH, epochs=epochs, rate=RATE, seed=seed,
                                   callback=look)
    measure(model, INFERRED)
    return result | {"inference_converged": model.converged}


def draw(fig, results, M):
    """Error and log-likelihood on the test images against processor seconds: a thin line per seed, and their mean."""
    part = results[results["M"] == M].sort_values("alpha")
    means = part.groupby("alpha", as_index=False).mean(numeric_only=True)
    titles = {"error_rate": "test error, %", "log_likelihood": "test log-likelihood"}
    for ax, (metric, title) in zip(fig.subplots(1, 2), titles.items()):
        for rows, look in ((part, {"lw": 0.6}), (means, {"lw": 1.8, "marker": "."})):
            for row in rows.to_dict("records"):
                seconds, values = curve(row, metric)
                ax.plot(seconds, 100 * values if metric == "error_rate" else values, **look,
                        color=style.alpha_colour(row["alpha"]),
                        label=style.alpha_label(row["alpha"]) if rows is means else None)
        ax.set(xscale="log")
        if metric == "error_rate":
            ax.set(yscale="log")
            ax.set_yticks([2, 3, 5, 10, 20, 40], ["2", "3", "5", "10", "20", "40"])
            ax.minorticks_off()
        style.label(ax, x="processor seconds", title=f"{title}, $M = {M}$")
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, handlelength=1.2,
               columnspacing=1.0)


FIGURES = {"fig31": (lambda fig, results: draw(fig, results, 100), (7, 3.6)),
           "fig32": (lambda fig, results: draw(fig, results, 200), (7, 3.6))}
