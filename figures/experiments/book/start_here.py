"""One dial, four small real data sets: what the power does to noise, evidence and prediction with four pseudo-inputs.

The sets come with scikit-learn, so that everybody can repeat this study. Each run learns on a random half of the rows
and predicts the other half. The first page of the book draws from it.
"""

from functools import cache

import numpy as np
from matplotlib.ticker import MaxNLocator
from sklearn import datasets as bundled

from figures.drawing import style
from pepcore import datasets, metrics, training

ALPHAS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
SPLITS = range(20)
M = 4
OUTPUTS = ("nll", "rmse", "noise_sd", "log_evidence", "largest_error_in_sds", "evaluations", "converged")

# name: scikit-learn's loader, column of the input, column of the target, and what the two are
PROBLEMS = {
    "nuclei": (bundled.load_breast_cancer, 27, 26, "dents in the outline", "depth of the dents"),
    "iris": (bundled.load_iris, 2, 3, "petal length (cm)", "petal width (cm)"),
    "wine": (bundled.load_wine, 9, 0, "colour intensity", "alcohol (%)"),
    "diabetes": (lambda: bundled.load_diabetes(scaled=False), 8, 9, "log triglycerides", "blood sugar (mg/dl)"),
}


def grid():
    """All runs, split by split."""
    return [{"data": data, "split": split, "alpha": alpha} for split in SPLITS for data in PROBLEMS for alpha in ALPHAS]


def compute(data, split, alpha):
    """Learn on one half of the rows, predict the other; losses in units of the target's spread in the first half."""
    x, y = raw(data)
    order = np.random.default_rng(split).permutation(len(y))
    half, rest = order[:len(y) // 2], order[len(y) // 2:]
    X, X_test = datasets.standardise(x[half, None], x[rest, None])
    y, y_test = datasets.standardise(y[half], y[rest])
    model = learn(X, y, alpha)
    mean, variance = model.predict_y(X_test)
    return {"nll": metrics.nll(y_test, mean, variance), "rmse": metrics.rmse(y_test, mean),
            "noise_sd": np.sqrt(model.noise), "log_evidence": model.log_evidence,
            "largest_error_in_sds": np.max(np.abs(y_test - mean) / np.sqrt(variance)),
            "evaluations": model.evaluations, "converged": model.converged}


def learn(X, y, alpha):
    """Kernel, noise and M pseudo-inputs learnt at one power, the best of three starts."""
    return training.fit(None, X, y, M=M, alpha=alpha, restarts=3, seed=0)


@cache
def raw(data):
    """Input (N,) and target (N,) in the units of the source."""
    loader, column, target, *_ = PROBLEMS[data]
    table = loader().data
    return table[:, column], table[:, target]


def standardised(data):
    """Input (N, 1) and target (N,) with mean 0 and standard deviation 1."""
    x, y = ((column - column.mean()) / column.std() for column in raw(data))
    return x[:, None], y


def curve(model, data, size=200):
    """Where the model predicts a new observation: xs, mean and variance (size,) in the units of the source."""
    x, y = raw(data)
    margin = 0.04 * np.ptp(x)
    xs = np.linspace(x.min() - margin, x.max() + margin, size)
    mean, variance = model.predict_y(((xs - x.mean()) / x.std())[:, None])
    return xs, y.mean() + y.std() * mean, y.var() * variance


def band_ends(model, data):
    """Standard deviation of a new observation where 2 % and 98 % of the inputs lie to the left, in the source's units."""
    x, _ = raw(data)
    xs, _, variance = curve(model, data)
    return np.sqrt(np.interp(np.percentile(x, [2, 98]), xs, variance))


def draw_fit(ax, model, data):
    """The data, the prediction with two standard deviations, and the pseudo-inputs."""
    x, y = raw(data)
    _, _, _, x_label, y_label = PROBLEMS[data]
    xs, mean, variance = curve(model, data)
    ax.plot(x, y, linestyle="none", marker="o", markersize=2.6, color=style.colours["data"], alpha=0.55,
            markeredgewidth=0)
    style.band(ax, xs, mean, variance, style.alpha_colour(model.alpha))
    Z = x.mean() + x.std() * model.Z[:, 0]
    style.pseudo_inputs(ax, Z[(Z > xs[0]) & (Z < xs[-1])])
    style.label(ax, x_label, y_label)
    ax.set(xlim=(xs[0], xs[-1]), ylim=(y.min() - 0.16 * np.ptp(y), y.max() + 0.04 * np.ptp(y)))
    ax.xaxis.set_major_locator(MaxNLocator(5))


def draw_dial(fig, models, exact_log_evidence, alpha, data="nuclei"):
    """One frame of the slider: the fit at `alpha` beside what was learnt at every power.

    Parameters
    ----------
    models : dict of alpha -> Model
    exact_log_evidence : float, of the full Gaussian process
    """
    left, right = fig.subfigures(1, 2, width_ratios=(1.75, 1))
    ax = left.add_subplot()
    draw_fit(ax, models[alpha], data)
    ax.set_title(style.alpha_label(alpha), color=style.alpha_colour(alpha), fontweight="bold")
    noise = {power: np.sqrt(model.noise) for power, model in models.items()}
    evidence = {power: model.log_evidence for power, model in models.items()}
    upper, lower = right.subplots(2, 1, sharex=True)
    for panel, values, title in ((upper, noise, "noise σ learnt"), (lower, evidence, "log evidence")):
        panel.plot(list(values), list(values.values()), color=style.GRID, linewidth=2.5)
        panel.plot(alpha, values[alpha], marker="o", markersize=10, color=style.alpha_colour(alpha), clip_on=False)
        style.label(panel, title=title)
        panel.set(xlim=(-0.04, 1.04), xticks=(0, 0.5, 1))
    upper.set_ylim(-0.04, 1.15 * max(noise.values()))
    lower.axhline(exact_log_evidence, color=style.colours["exact"], linestyle="--", linewidth=1.6)
    lower.annotate("exact", (0, exact_log_evidence), xytext=(0, 5), textcoords="offset points",
                   color=style.colours["exact"])
    span = max(evidence.values()) - exact_log_evidence
    lower.set(xlabel="α", ylim=(exact_log_evidence - 0.15 * span, max(evidence.values()) + 0.15 * span))


def describe(models, alpha, data="nuclei"):
    """The frame of `draw_dial` in words and numbers."""
    x, _ = raw(data)
    model = models[alpha]
    low, high = band_ends(model, data)
    places = x.mean() + x.std() * model.Z[:, 0]
    inside = np.sum((places > x.min()) & (places < x.max()))
    _, _, _, x_label, y_label = PROBLEMS[data]
    return (f"{style.alpha_label(alpha)}: {y_label} against {x_label} for {len(x)} tumours, with the prediction and its "
            f"band of two standard deviations, which is {2 * low:.2f} up and down at the left and {2 * high:.2f} at the "
            f"right. Noise learnt: {np.sqrt(model.noise):.2f} standard deviations of the target. Log evidence "
            f"{model.log_evidence:.0f}. {inside} of the {M} pseudo-inputs lie within the range of the data.")
