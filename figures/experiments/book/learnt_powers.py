"""What the powers learn from real labels, and what each of them does with what another has learnt.

Fifty of the Wisconsin tumours, a site for every label, no pseudo-inputs. Each power maximises its own estimate of the log
evidence over the signal variance and one lengthscale. With what it learnt, test labels are predicted by that power, by α = 0 and
by α = 1.

Rules that were fixed before the first row: twenty random splits; the eleven powers of the book's sliders; a search of at most
60 steps of L-BFGS from the same start; the signal variance stays below exp(8), since some evidences rise for ever.

With `results = runner.results("learnt_powers")` call `summary(results)`, `difference(results, ...)` and `draw(fig, results)`.
"""

from functools import cache

import numpy as np
from scipy.optimize import minimize

from figures.drawing import style
from pepcore import datasets, exact
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit

READS = ("breast_cancer_wdbc",)
SPLITS, TRAIN = 20, 50
POWERS = tuple(i / 10 for i in range(11))
LIMIT = 8.0         # of the log signal variance
START = (2.0, 2.0)  # log signal variance, log lengthscale
OUTPUTS = ("log_variance", "log_lengthscale", "log_evidence", "nll", "test_error", "nll_by_0", "nll_by_1", "converged")


def grid():
    """All powers of the first split, then of the second, and so on."""
    return [{"split": split, "alpha": alpha} for split in range(SPLITS) for alpha in POWERS]


def error_rates(row):
    """The output that is a rate of wrong labels."""
    return ("test_error",)


@cache
def load(split):
    """Training X (50, 30) and labels, test X (519, 30) and labels; malignant is +1."""
    data = datasets.load("breast_cancer_wdbc")
    order = np.random.default_rng(split).permutation(len(data.y))
    labels = np.where(data.y == np.unique(data.y)[0], 1.0, -1.0)[order]
    X, X_test = datasets.standardise(data.X[order[:TRAIN]], data.X[order[TRAIN:]])
    return X, labels[:TRAIN], X_test, labels[TRAIN:]


def compute(split, alpha):
    """Learn at one power; predict the test labels with that power and with both ends."""
    X, y, X_test, y_test = load(split)

    def fit(logs, power=alpha, tolerance=1e-8):
        kernel = SquaredExponential(*np.exp(logs))
        return exact.infer(kernel, X, y, Probit(), alpha=power, tolerance=tolerance, max_sweeps=1000)

    def objective(logs):
        now = fit(logs)
        slope = np.array([now.gradient["variance"], np.sum(now.gradient["lengthscales"])]) * np.exp(logs)
        return -now.log_evidence, -slope

    search = minimize(objective, START, jac=True, method="L-BFGS-B", bounds=[(-3, LIMIT), (-1, 5)],
                      options={"maxiter": 60, "ftol": 1e-10, "gtol": 1e-5})
    own = fit(search.x)
    nll = {power: -fit(search.x, power).log_density(X_test, y_test).mean() for power in (0.0, 1.0)}
    wrong = y_test * own.predict_f(X_test)[0] < 0
    return {"log_variance": search.x[0], "log_lengthscale": search.x[1], "log_evidence": own.log_evidence,
            "nll": -own.log_density(X_test, y_test).mean(), "test_error": wrong.mean(), "nll_by_0": nll[0.0],
            "nll_by_1": nll[1.0], "converged": bool(search.success)}


def by_power(results, name):
    """One column of the results as a table (splits, powers)."""
    return results.pivot(index="split", columns="alpha", values=name)


def summary(results):
    """Means over the splits, and how often the variance ends at its limit; one row per power."""
    grouped = results.groupby("alpha")
    means = grouped[["log_evidence", "nll", "test_error", "nll_by_0", "nll_by_1"]].mean()
    return means.assign(at_limit=grouped["log_variance"].agg(lambda values: int((values > LIMIT - 1e-6).sum())))


def difference(results, first, second):
    """Mean, standard error and number of splits above zero of `first` minus `second`, each a (column, power)."""
    (name, power), (other, rival) = first, second
    apart = by_power(results, name)[power] - by_power(results, other)[rival]
    return apart.mean(), apart.std(ddof=1) / np.sqrt(len(apart)), int((apart > 0).sum())


def draw(fig, results):
    """Evidence, test loss and test error of every split and their mean, each less the value at α = 1."""
    panels = (("log_evidence", "log evidence"), ("nll", "test loss (nats)"), ("test_error", "test error"))
    for ax, (name, title) in zip(fig.subplots(1, 3), panels):
        cells = by_power(results, name)
        relative = cells.sub(cells[1.0], axis=0)
        ax.plot(relative.columns, relative.T, color=style.colours["data"], lw=1, alpha=0.45)
        ax.scatter(relative.columns, relative.mean(), color=style.alpha_colour(relative.columns), s=50, zorder=3)
        ax.set(xticks=[0, 0.5, 1])
        style.label(ax, x="α", title=title)
    fig.axes[0].set_ylabel("value at α less that at 1")


FIGURES = {"learnt_powers": (draw, (7, 3.4))}
