"""UCI regression with at most 500 evaluations: what a smaller budget gives for bui2017 figures 4, 5 and 14 to 22.

Every run learns hyper-parameters, noise and pseudo-inputs by L-BFGS from the same start for every power, on one of the
standard 90:10 splits, with inputs and targets standardised on the training rows.
"""

import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, MaxNLocator, MultipleLocator

from figures.drawing import style
from figures.experiments import significance
from pepcore import datasets, metrics, training

SMALL = ("boston", "concrete", "energy", "yacht", "wine_red")
LARGE = ("kin8nm", "naval", "power")
DATA = SMALL + LARGE
ALPHAS = (0.0, 0.05, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)
SIZES = (5, 10, 20, 50, 100, 200)
SPLITS = {"small": range(20), "large": range(5)}
MAX_EVALUATIONS = 500
TEST_FRACTION = 0.1
OUTPUTS = ("smse", "smll", "log_evidence", "noise", "jitter", "evaluations", "converged")
METRICS = {"smse": "SMSE", "smll": "SMLL"}
NAMES = {0.0: "VFE", 0.5: "α = 0.5", 1.0: "EP"}
PAIRS = [(0.5, 0.0), (1.0, 0.0), (0.5, 1.0)]       # the comparisons of bui2017 figures 4A and 14 to 16


def grid():
    """All runs: what teaches most for its time first, and split by split, so that an interrupted grid has whole ones."""
    parts = [(SMALL, SPLITS["small"], SIZES[:-1]), (LARGE, SPLITS["large"], SIZES[:-1]), (SMALL, SPLITS["small"], SIZES[-1:])]
    return [{"data": data, "split": split, "M": M, "alpha": alpha}
            for sets, splits, sizes in parts
            for split in splits for data in sets for M in sizes for alpha in ALPHAS]


def compute(data, split, M, alpha, max_evaluations=MAX_EVALUATIONS, perturbation=0.0):
    """One run: learn on the training part, measure on the test part.

    `perturbation` changes the training targets by that fraction, at random, to see what becomes of rounding errors.
    """
    X, y, X_test, y_test = standardised(data, split)
    y = y * (1 + perturbation * np.random.default_rng(0).standard_normal(len(y)))
    return score(X, y, X_test, y_test, M, alpha, max_evaluations, seed=split)


def score(X, y, X_test, y_test, M, alpha, max_evaluations, seed):
    """Learn on X (N, D), y (N,) and measure on the test part, both standardised as by `standardised`."""
    model = training.fit(None, X, y, M=M, alpha=alpha, max_evaluations=max_evaluations, seed=seed)
    mean, variance = model.predict_y(X_test)
    return {"smse": metrics.smse(y_test, mean, y), "smll": metrics.smll(y_test, mean, variance, y),
            "log_evidence": model.fit.log_evidence, "noise": model.noise, "jitter": model.fit.jitter,
            "evaluations": model.evaluations, "converged": model.converged}


def standardised(data, split):
    """Training X (N, D), y (N,) and test X, y of one split, in units of the training rows' mean and spread."""
    dataset = datasets.load(data)
    train, test = (np.sort(part) for part in datasets.splits(dataset)[split])
    X, y = dataset.X[train], dataset.y[train]
    X, X_test = datasets.standardise(X, dataset.X[test])
    y, y_test = datasets.standardise(y, dataset.y[test])
    return X, y, X_test, y_test


def table(results, metric):
    """One row per (data, split, M), one column per power; rows that lack a power are left out."""
    wide = results.pivot(index=["data", "split", "M"], columns="alpha", values=metric)
    return wide[sorted(wide.columns)].dropna()


def regret(results, metric):
    """What each power loses against the best one: rows (data, M), columns powers.

    Of the mean over splits; the SMSE in per cent of the best power's, the SMLL in nats.
    """
    mean = table(results, metric).groupby(level=["data", "M"]).mean()
    best = mean.min(axis=1)
    return 100 * (mean.div(best, axis=0) - 1) if metric == "smse" else mean.sub(best, axis=0)


def margins(results, metric, first, second):
    """By how much `first` beats `second` in each (data, split, M): log SMSE ratio, or SMLL in nats; positive is a win."""
    wide = table(results, metric)
    return np.log(wide[second] / wide[first]) if metric == "smse" else wide[second] - wide[first]


def tests(results, metric, first, second):
    """Is the mean margin of `first` over `second` more than chance, for each (data, M)?

    Returns
    -------
    DataFrame with index (data, M) and columns margin (mean over splits), p (of the corrected paired t-test) and holm
    (the same, adjusted for all rows of this table)
    """
    margin = margins(results, metric, first, second).groupby(level=["data", "M"])
    p = margin.apply(lambda part: significance.corrected_t_test(part, np.zeros(len(part)), TEST_FRACTION))
    return pd.DataFrame({"margin": margin.mean(), "p": p, "holm": significance.holm(p)})


def draw_pairs(fig, results, published=None):
    """Every run of one power against the same run of another (bui2017 figure 4A); below the line the y-axis wins.

    The inset is the histogram of `margins`, the tenth with the largest size left out.

    Parameters
    ----------
    published : dict of (metric, first, second) -> percentage, optional
        What the paper says of each pair; it stands beside our number.
    """
    axes = fig.subplots(2, 3)
    present = [data for data in DATA if data in set(results["data"])]
    for row, (metric, title) in zip(axes, METRICS.items()):
        wide = table(results, metric)
        for ax, (upper, lower) in zip(row, PAIRS):
            low, high = wide[[upper, lower]].min().min(), wide[[upper, lower]].max().max()
            ax.plot([low, high], [low, high], color=style.colours["grid"], lw=1.5)
            for data, colour in zip(present, [*style.CYCLE, style.INK]):
                part = wide[wide.index.get_level_values("data") == data]
                ax.plot(part[lower], part[upper], ".", ms=4, color=colour, label=data)
            if metric == "smse":
                ax.set(xscale="log", yscale="log")
            else:
                for axis in (ax.xaxis, ax.yaxis):
                    axis.set_major_locator(MultipleLocator(5))     # short numbers leave room for the names of the axes
            corner = (0.58, 0.06) if upper == 1.0 else (0.06, 0.64)      # where the cloud is not
            draw_margins(ax.inset_axes([*corner, 0.4, 0.3]), margins(results, metric, upper, lower))
            paper = f"\n(paper {published[metric, upper, lower]} %)" if published else " below"
            ax.set_title(f"{significance.win_percentage(wide, upper, lower).value:.0f} %{paper}")
            style.label(ax, x=f"{title}, {NAMES[lower]}")
            ax.set_ylabel(NAMES[upper], labelpad=8)
    fig.align_ylabels()
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=min(len(present), 4),
               markerscale=2.5, handletextpad=0.1)


def draw_margins(ax, margin):
    """Histogram of the margins, wins in red and losses in blue as in the original; the outer twentieths left out."""
    reach = np.quantile(np.abs(margin), 0.9)
    for side, colour in ((margin[margin > 0], style.colours["ep"]), (margin[margin <= 0], style.colours["vfe"])):
        ax.hist(side, np.linspace(-reach, reach, 21), color=colour)
    ax.axvline(0, color=style.INK, lw=0.8)
    ax.set(xticks=[], yticks=[], facecolor="none")
    ax.spines["left"].set_visible(False)


def draw_ranks(fig, results):
    """The average rank of every power with its 95 % interval over splits (bui2017 figure 4B)."""
    for ax, (metric, title) in zip(fig.subplots(1, 2, sharey=True), METRICS.items()):
        rank = pd.DataFrame(significance.average_ranks(table(results, metric)), index=["value", "low", "high"]).T
        places = np.arange(len(rank))
        ax.bar(places, rank["value"], color=style.alpha_colour(rank.index.to_numpy()))
        ax.vlines(places, rank["low"], rank["high"], color=style.INK, lw=1.5)
        ax.set_xticks(places, [f"{alpha:g}" for alpha in rank.index], rotation=90)
        style.label(ax, x="power α", title=title)
    fig.axes[0].set_ylabel("average rank (1 is best)")


def draw_curves(fig, results, metric):
    """The mean over splits against M, one panel per data set, one line per power (bui2017 figures 20 and 22)."""
    present = [data for data in DATA if data in set(results["data"])]
    columns = 3 if len(present) in (3, 5, 6) else min(len(present), 4)
    axes = fig.subplots(-(-len(present) // columns), columns, squeeze=False)
    for ax in axes.flat[len(present):]:
        ax.remove()
    for ax, data in zip(axes.flat, present):
        mean = results[results["data"] == data].groupby(["alpha", "M"])[metric].mean().unstack()
        for alpha, values in mean.iterrows():
            ax.plot(values.index, values, color=style.alpha_colour(alpha), marker=".", lw=1.5)
        ax.set(xscale="log")
        ax.set_xticks([5, 20, 100], ["5", "", "100"])
        if metric == "smse":
            log_axis(ax, mean.min().min(), mean.max().max())
        ax.minorticks_off()
        style.label(ax, x="M", title=data)
    for ax in axes[:, 0]:
        ax.set_ylabel(METRICS[metric])
    style.alpha_colourbar(fig, fig.axes, location="bottom", aspect=40)


def log_axis(ax, low, high):
    """A logarithmic y-axis with few, round labels for values from `low` to `high`."""
    ax.set(yscale="log")
    if high > 1000 * low:
        ticks = LogLocator(numticks=4)
    else:
        ticks = LogLocator(subs=(1, 3)) if high > 5 * low else MaxNLocator(3, min_n_ticks=2)
    ax.yaxis.set_major_locator(ticks)
    ax.yaxis.set_major_formatter("{x:g}")


FIGURES = {"fig4a": (draw_pairs, (7, 5)), "fig4b": (draw_ranks, (7, 3)),
           "fig20": (lambda fig, results: draw_curves(fig, results, "smse"), (7, 5.4)),
           "fig22": (lambda fig, results: draw_curves(fig, results, "smll"), (7, 5.4))}
