"""One dial, four small real data sets: what the power does to noise, evidence and prediction with four pseudo-inputs.

The sets come with scikit-learn, so that everybody can repeat this study. Each run learns on a random half of the rows
and predicts the other half. The first page of the book draws from it.

The page opens with `PICTURE`, chosen because no two of its rows are equal and no value is repeated at an end of its
range. A pseudo-input that sits on repeated rows lets the noise fall to its lower bound at alpha = 1, and then the log
evidence says little more than which jitter was used. `spread_over_settings` measures that.
"""

from functools import cache

import numpy as np
from sklearn import datasets as bundled

from figures.drawing import style
from pepcore import datasets, metrics, training

ALPHAS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
SPLITS = range(20)
M = 4
JITTERS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
OUTPUTS = ("nll", "rmse", "noise_sd", "log_evidence", "largest_error_in_sds", "evaluations", "converged")

# name: scikit-learn's loader, column of the input, its scale, column of the target
SOURCES = {
    "outlines": (bundled.load_breast_cancer, 25, np.log, 5),    # compactness of the three worst nuclei, and of all
    "nuclei": (bundled.load_breast_cancer, 27, np.asarray, 26),     # concave points and concavity; 13 rows are (0, 0)
    "iris": (bundled.load_iris, 2, np.asarray, 3),              # length and width of a petal, in whole millimetres
    "wine": (bundled.load_wine, 9, np.asarray, 0),              # colour intensity and alcohol
    "diabetes": (lambda: bundled.load_diabetes(scaled=False), 8, np.asarray, 9),    # log triglycerides and blood sugar
}
SETS = BUNDLED = ("outlines", "wine", "diabetes", "iris")         # what this study runs
PROBLEMS = ("nuclei", "iris", "wine", "diabetes")       # what `choose_alpha` runs
PICTURE = "outlines"
LABELS = ("irregularity, worst nuclei (log)", "irregularity, average")
FRAME = {"xlim": (-3.7, 3.0), "ylim": (-2.9, 5.2)}


def grid():
    """All runs, split by split."""
    return [{"data": data, "split": split, "alpha": alpha} for split in SPLITS for data in SETS for alpha in ALPHAS]


def compute(data, split, alpha):
    """Learn on one half of the rows, predict the other; losses in units of the target's spread in the first half."""
    X, y, X_test, y_test = halves(*raw(data), split)
    model = learn(X, y, alpha)
    mean, variance = model.predict_y(X_test)
    return {"nll": metrics.nll(y_test, mean, variance), "rmse": metrics.rmse(y_test, mean),
            "noise_sd": np.sqrt(model.noise), "log_evidence": model.log_evidence,
            "largest_error_in_sds": np.max(np.abs(y_test - mean) / np.sqrt(variance)),
            "evaluations": model.evaluations, "converged": model.converged}


def halves(x, y, split):
    """A random half of the rows, X (n, 1) and y (n,), and the other half, all in units of the first."""
    order = np.random.default_rng(split).permutation(len(y))
    half, rest = order[:len(y) // 2], order[len(y) // 2:]
    X, X_test = datasets.standardise(x[half, None], x[rest, None])
    y, y_test = datasets.standardise(y[half], y[rest])
    return X, y, X_test, y_test


def learn(X, y, alpha, seed=0, jitter=1e-6):
    """Kernel, noise and M pseudo-inputs learnt at one power, the best of three starts."""
    return training.fit(None, X, y, M=M, alpha=alpha, restarts=3, seed=seed, jitter=jitter)


def spread_over_settings(data, alpha, seeds=range(4), jitters=JITTERS):
    """How far the log evidence moves with what should not matter: (over starts, over jitters), largest minus smallest."""
    X, y = standardised(data)
    return tuple(np.ptp([learn(X, y, alpha, **{setting: value}).log_evidence for value in values])
                 for setting, values in (("seed", seeds), ("jitter", jitters)))


def repeated_rows(data):
    """How many rows have both numbers in common with an earlier row."""
    x, y = raw(data)
    return len(x) - len(np.unique(np.column_stack([x, y]), axis=0))


def learnt_beside_the_worst(data, split, alpha=1.0):
    """Of the rows learnt with the same input as the worst prediction: how many there are, and how many different targets."""
    X, y, X_test, y_test = halves(*raw(data), split)
    mean, variance = learn(X, y, alpha).predict_y(X_test)
    worst = X_test[np.argmax(np.abs(y_test - mean) / np.sqrt(variance))]
    beside = y[np.isclose(X[:, 0], worst)]
    return len(beside), len(np.unique(beside))


@cache
def raw(data):
    """Input (N,) and target (N,), before they are standardised."""
    loader, column, scale, target = SOURCES[data]
    table = loader().data
    return scale(table[:, column]), table[:, target]


def standardised(data):
    """Input (N, 1) and target (N,) with mean 0 and standard deviation 1."""
    x, y = ((column - column.mean()) / column.std() for column in raw(data))
    return x[:, None], y


def band_ends(model, X):
    """Standard deviation of a new observation where 2 % and 98 % of the inputs lie to the left."""
    _, variance = model.predict_y(np.percentile(X, [2, 98])[:, None])
    return np.sqrt(variance)


def draw_fit(ax, model, X, y):
    """The data, the prediction with two standard deviations, and the pseudo-inputs, in standard deviations of the data."""
    xs = np.linspace(*FRAME["xlim"], 200)
    mean, variance = model.predict_y(xs[:, None])
    ax.plot(X[:, 0], y, linestyle="none", marker="o", markersize=2.6, color=style.colours["data"], alpha=0.55,
            markeredgewidth=0)
    style.band(ax, xs, mean, variance, style.alpha_colour(model.alpha))
    ax.set(**FRAME)
    style.pseudo_inputs(ax, model.Z)
    style.label(ax, *LABELS)


def draw_dial(fig, models, exact_log_evidence, alpha):
    """One frame of the slider: the fit at `alpha` beside what was learnt at every power.

    Parameters
    ----------
    models : dict of alpha -> Model
    exact_log_evidence : float, of the full Gaussian process
    """
    left, right = fig.subfigures(1, 2, width_ratios=(1.75, 1))
    ax = left.add_subplot()
    draw_fit(ax, models[alpha], *standardised(PICTURE))
    ax.set_title(style.alpha_label(alpha), color=style.alpha_colour(alpha), fontweight="bold")
    noise = {power: np.sqrt(model.noise) for power, model in models.items()}
    evidence = {power: model.log_evidence for power, model in models.items()}
    upper, lower = right.subplots(2, 1, sharex=True)
    for panel, values, title in ((upper, noise, "noise σ learnt"), (lower, evidence, "log evidence")):
        panel.plot(list(values), list(values.values()), color=style.colours["prior"], linewidth=2.5)
        panel.plot(alpha, values[alpha], marker="o", markersize=10, color=style.alpha_colour(alpha), clip_on=False)
        style.label(panel, title=title)
        panel.set(xlim=(-0.04, 1.04), xticks=(0, 0.5, 1))
    upper.set_ylim(0, 1.15 * max(noise.values()))
    lower.axhline(exact_log_evidence, color=style.colours["exact"], linestyle="--", linewidth=1.6)
    lower.annotate("full process", (1, exact_log_evidence), xytext=(0, -3), textcoords="offset points", ha="right",
                   va="top", color=style.colours["exact"])
    span = max(evidence.values()) - exact_log_evidence
    lower.set(xlabel="α", ylim=(exact_log_evidence - 0.35 * span, max(evidence.values()) + 0.15 * span))


def describe(models, alpha):
    """The frame of `draw_dial` in words and numbers."""
    X, _ = standardised(PICTURE)
    model = models[alpha]
    low, high = band_ends(model, X)
    left, right = FRAME["xlim"]
    inside = np.sum((model.Z >= left) & (model.Z <= right))
    return (f"{style.alpha_label(alpha)}: {LABELS[1]} against {LABELS[0]} for {len(X)} tumours, with the prediction and its "
            f"band of two standard deviations, which is {2 * low:.1f} up and down at the left and {2 * high:.1f} at the "
            f"right. Noise learnt: {np.sqrt(model.noise):.2f} standard deviations of the target. Log evidence "
            f"{model.log_evidence:.0f}. Of the {M} pseudo-inputs {inside} lie within the frame, {np.sum(model.Z < left)} to "
            f"the left of it and {np.sum(model.Z > right)} to the right.")
