"""Drawings of the study chapter on regression that go beyond the figures of `uci_regression`.

Each takes an empty figure and the rows of the study; what it shows is computed there or in `significance`.
"""

from itertools import combinations

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm

from figures.drawing import style
from figures.experiments import significance
from figures.experiments.bui2017.uci_regression import (
    ALPHAS,
    DATA,
    METRICS,
    NAMES,
    PAIRS,
    log_axis,
    regret,
    table,
    tests,
)

UNITS = {"smse": "SMSE, % above the best", "smll": "SMLL, nats above the best"}
COLOURS = dict(zip(DATA, [*style.CYCLE, style.INK]))
CLOSE = {"smse": 1.0, "smll": 0.01}     # up to here the axis of the regret is linear, beyond it logarithmic
DUEL = LinearSegmentedColormap.from_list("duel", [style.colours["vfe"], style.CARD, style.colours["ep"]])


def present(results):
    """The data sets of the table, in the usual order."""
    return [data for data in DATA if data in set(results["data"])]


def draw_regret(fig, results, M):
    """What each power loses against the best one, a line per data set and their mean in black, for one M."""
    for ax, metric in zip(fig.subplots(1, 2), METRICS):
        everywhere = regret(results, metric)
        here = everywhere.xs(M, level="M")
        for data in present(results):       # some sets have fewer sizes
            losses = here.loc[data] if data in here.index else np.full(len(here.columns), np.nan)
            ax.plot(here.columns, losses, color=COLOURS[data], marker=".", lw=1.2, label=data)
        ax.plot(here.columns, here.mean(), color=style.INK, lw=3, label="mean")
        ax.set_yscale("symlog", linthresh=CLOSE[metric])
        ax.set(ylim=(-0.2 * CLOSE[metric], 1.3 * everywhere.max().max()), xticks=(0, 0.5, 1))
        style.label(ax, x="power α", title=UNITS[metric], grid=True)
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, handlelength=1.2)


def duels(results, metric):
    """The share of runs in which the row's power beats the column's, in per cent, with intervals: three (8, 8) arrays."""
    wide = table(results, metric)
    cells = [[significance.win_percentage(wide, row, column) for column in wide] for row in wide]
    return np.moveaxis(np.array(cells), -1, 0)


def draw_duels(fig, won):
    """Each power against each other one (bui2017 figure 5A): colour and number say how often the row wins.

    Parameters
    ----------
    won : dict of metric -> what `duels` returns; in bold where the interval over splits does not contain 50 %
    """
    for ax, (metric, (value, low, high)) in zip(fig.subplots(2, 1), won.items()):
        ax.imshow(value, cmap=DUEL, norm=TwoSlopeNorm(50, 0, 100), aspect="auto")
        for (row, column), share in np.ndenumerate(value):
            if row != column:
                certain = low[row, column] > 50 or high[row, column] < 50
                ax.text(column, row, f"{share:.0f}", ha="center", va="center",
                        fontweight="bold" if certain else "normal")
        ticks = [f"{alpha:g}" for alpha in ALPHAS]
        ax.set_xticks(range(8), ticks)
        ax.set_yticks(range(8), ticks)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        style.label(ax, y="wins of ...", title=METRICS[metric])
    ax.set_xlabel("... against")


def draw_tests(fig, results):
    """Where is a difference more than chance? One square per (data, M), three pairs, two metrics.

    Colour: the sign of the mean margin. Full: p < 5 % after Holm's correction; pale: p < 5 % without; a dot: neither.
    """
    sets = present(results)
    for row, metric in zip(fig.subplots(2, 3, sharex=True, sharey=True), METRICS):
        for ax, (first, second) in zip(row, PAIRS):
            found = tests(results, metric, first, second)
            sizes = sorted(set(found.index.get_level_values("M")))
            for (data, M), cell in found.iterrows():
                colour = style.colours["ep" if cell["margin"] > 0 else "vfe"]
                size, strength = (19, 1) if cell["holm"] < 0.05 else (19, 0.35) if cell["p"] < 0.05 else (4, 1)
                ax.plot(sizes.index(M), sets.index(data), "s" if size > 4 else ".", ms=0.75 * size, color=colour,
                        alpha=strength, markeredgewidth=0)
            ax.set(xlim=(-0.6, len(sizes) - 0.4), ylim=(len(sets) - 0.4, -0.6))
            ax.set_xticks(range(len(sizes)), sizes, rotation=90)
            ax.set_yticks(range(len(sets)), sets)
            ax.set_title(f"{NAMES[first]} − {NAMES[second]}")
        row[0].set_ylabel(METRICS[metric])
    for ax in row:
        style.label(ax, x="M")


def draw_traces(fig, results, data, metric):
    """One thin line per split and the bold mean at four powers, and the means of all powers (bui2017 figures 17 to 22)."""
    here = results[results["data"] == data]
    if metric == "nlml":
        here = here.assign(nlml=-here["log_evidence"])
    traces = here.pivot(index="M", columns=["alpha", "split"], values=metric)
    axes = fig.subplots(1, 5, sharey=True, width_ratios=(1, 1, 1, 1, 1.5))
    for ax, alpha in zip(axes, (0.0, 0.5, 0.8, 1.0)):
        ax.plot(traces.index, traces[alpha], color=style.alpha_colour(alpha), lw=0.6, alpha=0.6)
        ax.plot(traces.index, traces[alpha].mean(axis=1), color=style.alpha_colour(alpha), lw=3)
        style.label(ax, title=f"α = {alpha:g}")
    for alpha in ALPHAS:
        axes[-1].plot(traces.index, traces[alpha].mean(axis=1), color=style.alpha_colour(alpha), marker=".", lw=1.5)
    style.label(axes[-1], title="means")
    for ax in axes:
        ax.set(xscale="log")
        ax.set_xticks([5, traces.index.max()], ["5", f"{traces.index.max()}"])
        if metric == "smse":
            log_axis(ax, traces.min().min(), traces.max().max())
        ax.minorticks_off()
    axes[0].set_ylabel(f"{ {**METRICS, 'nlml': 'NLML'}[metric]}, {data}")
    fig.supxlabel("M")


def trimmed(results, metric, share):
    """The mean loss of every power when this share of its worst runs is left out: Series over powers."""
    wide = table(results, metric)
    kept = len(wide) - round(share * len(wide))
    return wide.apply(lambda losses: losses.sort_values().iloc[:kept].mean())


def draw_trimmed(fig, results, share, shares):
    """The mean SMLL of every power without its worst runs; the axis is that of all `shares`."""
    ax = fig.subplots()
    values = trimmed(results, "smll", share)
    all_values = np.concatenate([trimmed(results, "smll", other) for other in shares])
    best = values.idxmin()
    ax.plot(range(8), values, color=style.colours["prior"], lw=1.5, zorder=1)
    ax.scatter(range(8), values, s=90, color=style.alpha_colour(values.index.to_numpy()), zorder=2)
    ax.plot(values.index.get_loc(best), values.min() - 0.03, "v", color=style.INK, ms=9)
    ax.set_xticks(range(8), [f"{alpha:g}" for alpha in values.index])
    ax.set_ylim(all_values.min() - 0.08, all_values.max() + 0.05)
    ax.invert_yaxis()
    style.label(ax, x="power α", y="mean SMLL", title=f"worst {100 * share:.2f} % of the runs left out: best is α = {best:g}",
                grid=True)


def ranks_of_sets(results, metric):
    """The average rank of every power by the mean losses of the data sets, one rank for each set: Series over powers."""
    return table(results, metric).groupby(level="data").mean().rank(axis=1).mean()


def told_apart(ranks, count):
    """The pairs of powers whose average ranks Nemenyi's test would tell apart with so many data sets."""
    distance = significance.critical_difference(len(ranks), count)
    return [(a, b) for a, b in combinations(ranks.index, 2) if abs(ranks[a] - ranks[b]) > distance]


def draw_nemenyi(fig, results, count):
    """The ranks of the powers, and the critical distance that so many data sets give, as a band from the best one.

    A power is filled where it lies outside the band, that is, where it can be told apart from the best.
    """
    distance = significance.critical_difference(len(ALPHAS), count)
    for ax, (metric, title) in zip(fig.subplots(2, 1, sharex=True), METRICS.items()):
        ranks = ranks_of_sets(results, metric)
        ax.axvspan(ranks.min(), ranks.min() + distance, color=style.colours["grid"], alpha=0.6, lw=0)
        for place, (alpha, rank) in enumerate(ranks.sort_values().items()):
            colour = style.alpha_colour(alpha)
            ax.plot(rank, place, "o", ms=9, color=colour, markerfacecolor=colour if rank > ranks.min() + distance else style.CARD)
            ax.text(rank + 0.12, place, f"{alpha:g}", va="center")
        ax.set(xlim=(1, 8.4), ylim=(7.7, -0.7), yticks=[])
        pairs = len(told_apart(ranks, count))
        style.label(ax, title=f"{title}, {count} sets: {pairs} of 28 pairs told apart")
    style.label(ax, x="average rank")
