"""UCI classification with at most 200 evaluations: what a smaller budget gives for bui2017 figures 6, 7 and 24 to 30.

Every run learns hyper-parameters and pseudo-inputs by L-BFGS on the converged Power EP evidence, from the same start for
every power, on one of the standard 90:10 splits, with inputs standardised on the training rows. (The paper interleaves
a few steps of inference with steps of Adam on noisy gradients.) Each evaluation starts from the sites of the one before.
The set australian is run twice: with its true label, and with the input A1 as the label, whose counts the paper prints.
"""

import warnings
from functools import partial

import numpy as np

from figures.drawing import style
from figures.experiments import significance
from figures.experiments.bui2017.uci_regression import table
from pepcore import datasets, metrics, power_ep, training
from pepcore.likelihoods import Probit

DATA = ("crabs", "sonar", "ionosphere", "pima", "breast_cancer", "australian", "australian_a1label")
ALPHAS = (0.0, 0.05, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)
SIZES = (10, 50, 100)
SPLITS = range(20)
MAX_EVALUATIONS = 200
# Of inference within each evaluation. Learnt with 1e-6, three runs had the same losses to two digits at twice the time.
TOLERANCE, MAX_SWEEPS = 1e-4, 200
OUTPUTS = ("error_rate", "nll", "log_evidence", "variance", "evaluations", "converged", "unconverged_inference")
METRICS = {"error_rate": "test error", "nll": "NLL"}
PAIRS = ((0.5, 0.0), (1.0, 0.0), (0.5, 1.0))
NAMES = {0.0: "VFE", 0.5: "α = 0.5", 1.0: "EP"}
SETS, A1 = DATA[:-1], DATA[-1]


def grid():
    """All runs, split by split."""
    return [{"data": data, "split": split, "M": M, "alpha": alpha}
            for split in SPLITS for data in DATA for M in SIZES for alpha in ALPHAS]


def compute(data, split, M, alpha, max_evaluations=MAX_EVALUATIONS, perturbation=0.0):
    """One run: learn on the training part, measure on the test part.

    `perturbation` changes the unit of each input by that fraction, at random, to see what becomes of rounding errors. What
    was equal stays equal: the start is chosen among the distinct rows in order, and must remain the same.
    """
    X, y, X_test, y_test = standardised(data, split)
    unit = 1 + perturbation * np.random.default_rng(0).standard_normal(X.shape[1])
    X, X_test = X * unit, X_test * unit
    infer = partial(power_ep.infer, tolerance=TOLERANCE, max_sweeps=MAX_SWEEPS)
    with warnings.catch_warnings(record=True) as unconverged:
        warnings.simplefilter("always", RuntimeWarning)         # counted, not shown
        model = training.fit(None, X, y, M=M, alpha=alpha, infer=infer, likelihood=Probit(),
                             max_evaluations=max_evaluations, seed=split)
    probability = model.predict_y(X_test)
    return {"error_rate": metrics.error_rate(y_test, probability), "nll": metrics.nll_binary(y_test, probability),
            "log_evidence": model.log_evidence, "variance": model.kernel.variance, "evaluations": model.evaluations,
            "converged": model.converged, "unconverged_inference": len(unconverged)}


def standardised(data, split):
    """Training X (N, D), y (N,) and test X, y of one split; inputs in units of the training rows' mean and spread."""
    dataset = datasets.load(data)
    train, test = (np.sort(part) for part in datasets.splits(dataset)[split])
    X, X_test = datasets.standardise(dataset.X[train], dataset.X[test])
    return X, dataset.y[train], X_test, dataset.y[test]


def six_sets(results, label="true"):
    """The rows of the paper's six sets; with label "A1" australian is the task with that label."""
    if label == "A1":
        return results[results["data"] != "australian"].replace({"data": {A1: "australian"}})
    return results[results["data"] != A1]


def share(wide, first, second):
    """How often `first` has the smaller loss, in per cent of the rows that are not tied, with its interval over splits.

    None where all rows are tied. The sets have as many rows each, but not as many untied ones: a row is a vote.
    """
    return of_shares(wide, [(first, second)], lambda shares: shares[0]) if (wide[first] != wide[second]).any() else None


def of_shares(wide, pairs, statistic):
    """A function of the shares of several pairs (pairs, ...), with its interval over splits; without untied rows one is 50 %."""
    votes = [rows.groupby(level=["data", "split"]).sum()
             for first, second in pairs for rows in (wide[first] < wide[second], wide[first] != wide[second])]

    def of_votes(*means):
        won, untied = np.array(means[::2]), np.array(means[1::2])
        return statistic(np.divide(100 * won, untied, out=np.full_like(won, 50.0), where=untied > 0))

    return significance.of_means(votes, of_votes)


def draw_pairs(fig, results, highlight=None):
    """Every run of one power against the same run of another (bui2017 figure 6); below the line the vertical axis wins.

    The inset is the histogram of the differences, horizontal minus vertical, with the number of each sign: at its right
    the vertical axis wins. With the name of a set as `highlight` all others turn grey, and the insets count that set.
    """
    axes = fig.subplots(2, 3)
    for row, (metric, title) in zip(axes, METRICS.items()):
        wide = table(results, metric)
        low, high = wide.min().min(), wide.max().max()
        jitter = np.random.default_rng(0).uniform(-0.008, 0.008, (2, len(wide))) if metric == "error_rate" else (0, 0)
        margin = 0.04 * (high - low)
        for ax, (upper, lower) in zip(row, PAIRS):
            ax.plot([low, high], [low, high], color=style.colours["grid"], lw=1.5)
            for data, colour in zip(SETS, style.CYCLE):
                here = wide.index.get_level_values("data") == data
                grey = highlight not in (None, data)
                ax.plot((wide[lower] + jitter[0])[here], (wide[upper] + jitter[1])[here], ".", ms=5, label=data.replace("_", " "),
                        color=style.colours["grid"] if grey else colour, zorder=1 if grey else 2)
            counted = wide if highlight is None else wide.xs(highlight, level="data")
            _histogram(ax.inset_axes((0.1, 0.6, 0.42, 0.36)), counted[lower] - counted[upper])
            ax.set(xlim=(low - margin, high + margin), ylim=(low - margin, high + margin))
            style.label(ax, x=f"{title}, {NAMES[lower]}", y=NAMES[upper])
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, markerscale=2,
               handletextpad=0.1)


def _histogram(ax, difference):
    """Of x minus y, without the ties, and how many fall on each side of zero."""
    difference = difference[difference != 0]
    reach = np.abs(difference).quantile(0.95) if len(difference) else 1.0
    ax.hist(difference.clip(-reach, reach), bins=np.linspace(-reach, reach, 14), color=style.colours["data"])
    ax.axvline(0, color=style.INK, lw=0.8)
    for x, count, side in ((0.46, (difference < 0).sum(), "right"), (0.54, (difference > 0).sum(), "left")):
        ax.text(x, 1.02, str(count), ha=side, va="bottom", transform=ax.transAxes)
    ax.set(xlim=(-reach, reach), xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(False)


def draw_ranks(fig, results):
    """Above: who beats whom; below: average ranks (bui2017 figure 7).

    A circle is red where the row's power has the smaller loss more often than the column's, blue where less often; the
    larger, the more often; filled where the 95 % interval over splits excludes 50 %. Ties are left out.
    """
    axes = fig.subplots(2, 2, height_ratios=(3, 2))
    powers = [f"{alpha:g}" for alpha in ALPHAS]
    places = np.arange(len(ALPHAS))
    for column, (metric, title) in zip(axes.T, METRICS.items()):
        wide = table(results, metric)
        for i, one in enumerate(ALPHAS):
            for j, other in enumerate(ALPHAS):
                found = share(wide, one, other)
                if found is None:
                    continue
                value, low, high = found
                colour = style.colours["ep"] if value > 50 else style.colours["vfe"]
                column[0].scatter(j, i, s=10 + 5 * abs(value - 50), linewidth=1.2, edgecolor=colour,
                                  facecolor=colour if low > 50 or high < 50 else style.CARD)
        column[0].set(xticks=places, yticks=places, xlim=(-0.6, 7.6), ylim=(7.6, -0.6))
        column[0].set_xticklabels(powers, rotation=90)
        column[0].set_yticklabels(powers)
        style.label(column[0], y="this α", x="against this α", title=title)
        rank = significance.average_ranks(wide)
        for place, alpha in zip(places, ALPHAS):
            value, low, high = rank[alpha]
            column[1].bar(place, value, color=style.alpha_colour(alpha))
            column[1].plot([place, place], [low, high], color=style.INK, lw=1.5)
        column[1].set(xticks=places, ylim=(1, 8))
        column[1].set_xticklabels(powers, rotation=90)
        style.label(column[1], x="power α", y="average rank")


def draw_sets(fig, results):
    """Set by set, how often one power of each pair wins, with 95 % intervals over splits (bui2017 figures 24 to 26)."""
    for ax, (metric, title) in zip(fig.subplots(1, 2, sharey=True), METRICS.items()):
        ax.axvline(50, color=style.INK, lw=0.8)
        for place, data in enumerate(SETS):
            wide = table(results[results["data"] == data], metric)
            for offset, pair, colour in zip((-0.25, 0.0, 0.25), PAIRS, style.CYCLE):
                if found := share(wide, *pair):
                    ax.plot([found.low, found.high], [place + offset] * 2, color=colour, lw=1.5)
                    ax.plot(found.value, place + offset, "o", color=colour, ms=6, zorder=3)
        for pair, colour in zip(PAIRS, style.CYCLE):
            ax.plot([], [], "o-", color=colour, label=f"{NAMES[pair[0]]} against {NAMES[pair[1]]}")
        ax.set(xlim=(-3, 103), ylim=(len(SETS) - 0.5, -0.5))
        ax.set_yticks(range(len(SETS)), [data.replace("_", "\n") for data in SETS])
        style.label(ax, x="runs won, %", title=title)
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)


def draw_curves(fig, results, metric):
    """The mean over splits against M, one panel per data set, one line per power (bui2017 figures 28 and 30)."""
    present = [data for data in DATA if data in set(results["data"])]
    axes = fig.subplots(-(-len(present) // 3), 3, squeeze=False)
    for ax in axes.flat[len(present):]:
        ax.remove()
    for ax, data in zip(axes.flat, present):
        mean = results[results["data"] == data].groupby(["alpha", "M"])[metric].mean().unstack()
        for alpha, values in mean.iterrows():
            ax.plot(values.index, values, color=style.alpha_colour(alpha), marker=".", lw=1.5)
        _over_sizes(ax)
        style.label(ax, x="M", title=data.replace("_", " "))
    for ax in axes[:, 0]:
        ax.set_ylabel(METRICS[metric])
    style.alpha_colourbar(fig, fig.axes, aspect=40, fraction=0.04)


def draw_traces(fig, results, alpha, data):
    """One set: every split at one power, thin, and their mean; beside it the means at all powers (figures 27 and 29)."""
    part = results[results["data"] == data]
    axes = fig.subplots(2, 2, sharey="row")
    for (left, right), (metric, title) in zip(axes, METRICS.items()):
        wide = table(part, metric)
        colour = style.alpha_colour(alpha)
        for _, trace in wide[alpha].groupby(level="split"):
            left.plot(SIZES, trace, color=colour, lw=0.8, alpha=0.6)
        mean = wide.groupby(level="M").mean()
        for other in mean:
            right.plot(SIZES, mean[other], color=style.alpha_colour(other), lw=3.5 if other == alpha else 1)
        left.plot(SIZES, mean[alpha], color=colour, lw=3.5)
        left.set_ylabel(title)
        for ax in (left, right):
            _over_sizes(ax)
    style.label(axes[0, 0], title=f"every split, α = {alpha:g}")
    style.label(axes[0, 1], title="mean, all powers")
    for ax in axes[1]:
        ax.set_xlabel("M")


def _over_sizes(ax):
    ax.set_xticks(SIZES, [str(M) for M in SIZES])


FIGURES = {"fig6": (lambda fig, results: draw_pairs(fig, six_sets(results)), (7, 5.6)),
           "fig7": (lambda fig, results: draw_ranks(fig, six_sets(results)), (7, 6)),
           "fig24": (lambda fig, results: draw_sets(fig, six_sets(results)), (7, 5)),
           "fig28": (lambda fig, results: draw_curves(fig, six_sets(results), "error_rate"), (7, 5.4)),
           "fig30": (lambda fig, results: draw_curves(fig, six_sets(results), "nll"), (7, 5.4))}
