"""How far does learning go, and what do the losses say meanwhile? L-BFGS beside the optimiser of the paper, on two sets.

The paper moves the sites of a mini-batch once, then the parameters, by Adam with its default rate, and does not say how
often. `uci_classification` waits for inference, climbs by L-BFGS, and stops after 200 evaluations. Here both go on, and the
test losses are measured on the way: of Adam after so many steps, of L-BFGS at the best of so many evaluations.
"""

import warnings
from functools import partial

import numpy as np

from figures.drawing import style
from figures.experiments.bui2017 import uci_classification
from figures.experiments.bui2017.uci_classification import MAX_SWEEPS, SPLITS, TOLERANCE
from pepcore import metrics, power_ep, training
from pepcore.likelihoods import Probit

DATA, M = ("pima", "ionosphere"), 50
NAMES = {"adam": "Adam", "lbfgs": "L-BFGS"}
ALPHAS = (0.0, 0.5, 1.0)
RATE, BATCH = 1e-3, 100
CHECKPOINTS = (50, 100, 200, 500, 1000, 3000)      # steps of Adam, or evaluations
MAX_EVALUATIONS = 1000      # of L-BFGS, which keeps its last values then
MEASURED = ("error_rate", "nll", "amplitude")
OUTPUTS = tuple(f"{name}_{number}" for name in MEASURED for number in CHECKPOINTS)


def grid():
    """Split by split."""
    return [{"data": data, "optimiser": optimiser, "alpha": alpha, "split": split}
            for split in SPLITS for data in DATA for optimiser in NAMES for alpha in ALPHAS]


def compute(data, optimiser, alpha, split):
    """Losses on the test part, and the square root of the kernel's variance, at the checkpoints."""
    X, y, X_test, y_test = uci_classification.standardised(data, split)
    found = {}

    def look(number, fit):
        probability = fit.predict_y(X_test)
        found.update({f"error_rate_{number}": metrics.error_rate(y_test, probability),
                      f"nll_{number}": metrics.nll_binary(y_test, probability),
                      f"amplitude_{number}": float(np.sqrt(fit.posterior.basis.kernel.variance))})

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "EP has not converged")
        (_adam if optimiser == "adam" else _lbfgs)(X, y, alpha, split, look)
    return found


def _adam(X, y, alpha, seed, look):
    """`look(number, fit)` after so many steps."""
    def seen(record):
        if record["step"] in CHECKPOINTS:
            look(record["step"], record.result())

    steps_an_epoch = -(-len(X) // BATCH)
    training.fit_minibatch(None, X, y, Probit(), M=M, alpha=alpha, batch=BATCH, epochs=-(-CHECKPOINTS[-1] // steps_an_epoch),
                           rate=RATE, max_sweeps=0, seed=seed, callback=seen)


def _lbfgs(X, y, alpha, seed, look):
    """`look(number, fit)` at the best of so many evaluations; a search that has ended before keeps its values."""
    best, ahead = [None], list(CHECKPOINTS)

    def seen(record):
        while ahead and record["evaluation"] > ahead[0]:
            look(ahead.pop(0), best[0])
        if best[0] is None or record["log_evidence"] > best[0].log_evidence:
            best[0] = record.result()

    infer = partial(power_ep.infer, tolerance=TOLERANCE, max_sweeps=MAX_SWEEPS)
    training.fit(None, X, y, M=M, alpha=alpha, infer=infer, likelihood=Probit(), max_evaluations=MAX_EVALUATIONS, seed=seed,
                 callback=seen)
    for number in ahead:
        look(number, best[0])


def means(results, name):
    """The mean over the splits of one of `MEASURED`: a DataFrame with index (data, optimiser, alpha), columns the checkpoints."""
    columns = {f"{name}_{number}": number for number in CHECKPOINTS}
    return results.groupby(["data", "optimiser", "alpha"])[list(columns)].mean().rename(columns=columns)


def draw(fig, results):
    """Mean test error and NLL against steps of Adam or evaluations of L-BFGS, a row for each data set."""
    axes = fig.subplots(len(DATA), 2, sharex=True)
    for column, (name, title, unit) in enumerate((("error_rate", "test error, %", 100), ("nll", "test NLL", 1))):
        curves = unit * means(results, name)
        for row, data in enumerate(DATA):
            ax = axes[row, column]
            for optimiser, look in (("adam", "-"), ("lbfgs", "--")):
                for alpha in ALPHAS:
                    numbers = [number for number in CHECKPOINTS if optimiser == "adam" or number <= MAX_EVALUATIONS]
                    ax.plot(numbers, curves.loc[(data, optimiser, alpha), numbers], look, lw=1.5, marker=".",
                            color=style.alpha_colour(alpha), label=f"{style.alpha_label(alpha)}, {NAMES[optimiser]}")
            ax.set(xscale="log")
            style.label(ax, x="steps or evaluations" if row else "", title=f"{data}: {title}")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)


FIGURES = {"learning": (draw, (7, 5.6))}
