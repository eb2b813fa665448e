"""Tables 2 and 3 of villacampa2017, cell by cell, beside our own runs: who is near whom, and how long it took."""

from functools import cache

import numpy as np
import pandas as pd

from figures import FOLDER
from figures.drawing import style
from figures.experiments import runner, significance
from figures.experiments.villacampa2017.tables import METHODS, PERCENT

PUBLISHED = FOLDER / "published"
FILES = {"nll": "villacampa2017_table2_test_nll.csv", "error_rate": "villacampa2017_table3_test_error.csv"}
PANELS = {"nll": ("test NLL", 1, (0.05, 0.1, 0.2, 0.5, 1, 2)), "error_rate": ("test error, %", 100, (1, 2, 5, 10, 20, 40))}
NAMES = {"gfitc": "GFITC", "ep": "EP", "sep": "SEP", "vi": "VI"}
COLOURS = {"gfitc": style.CYCLE[2], "ep": style.colours["ep"], "sep": style.CYCLE[3], "vi": style.colours["vfe"]}
ROUNDING = 0.01 / np.sqrt(12)  # standard deviation of what the tables' last digit leaves out of a mean
NEAR = 2.0  # combined standard errors within which two means agree
TIMES = "avg._time"
SPEED = (1.5, 4.5)  # GFITC's time over SEP's: twice as wide as the paper's "between 2 and 3"


@cache
def published(metric):
    """Mean and standard error of the paper's cells: columns "mean" and "sem", index (percent, data, method)."""
    table = pd.read_csv(PUBLISHED / FILES[metric])
    table["data"] = table["dataset"].str.lower().str.replace("-", "_").str.replace(" ", "_")
    table["method"] = table["method"].str.lower()
    table = table.rename(columns={"M_percent": "percent", "stderr": "sem"})
    return table.set_index(["percent", "data", "method"])[["mean", "sem"]].sort_index()


def ours(metric, results=None):
    """The same of our runs, over the splits."""
    results = runner.results("villacampa_whole") if results is None else results
    return results.groupby(["percent", "data", "method"])[metric].agg(["mean", "sem"])


def compared(metric, results=None):
    """One row for each of the 96 cells: mean and sem, theirs and ours, and the difference in combined standard errors."""
    both = ours(metric, results).join(published(metric).add_suffix("_theirs"), how="inner")
    combined = np.sqrt(both["sem"]**2 + both["sem_theirs"]**2 + ROUNDING**2)
    both["apart"] = (both["mean"] - both["mean_theirs"]) / combined
    return both


def near(metric):
    """Per cent of the cells in which our mean and the paper's differ by no more than two combined standard errors.

    Those of both means, and what is left out where theirs are printed to two digits. The interval is that of other sets: the
    cells of one set, at all M and by all methods, share its splits.
    """
    agree = compared(metric)["apart"].abs() <= NEAR
    return significance.of_means([100.0 * agree.groupby(level="data").mean()])


def gaps(first, second, metric, means=None):
    """For each set the mean over M of the absolute difference between two methods' means, ours unless others are given."""
    means = (ours(metric)["mean"] if means is None else means).unstack("method")
    return (means[first] - means[second]).abs().groupby(level="data").mean()


def gap_in_percent(first, second):
    """The mean over the sets of the `gaps` in test error, in per cent, with Student's interval for other sets, cut off at 0."""
    value, low, high = significance.student(100 * gaps(first, second, "error_rate"))
    return significance.Estimate(value, max(low, 0.0), high)


def similar(first, second, nats, percent):
    """How many of two bounds on the mean of the `gaps` are met, in NLL and in error, with the interval for other sets."""
    both = pd.concat([gaps(first, second, "nll"), 100 * gaps(first, second, "error_rate")], axis=1)
    return significance.bootstrap(both, lambda rows: (rows.mean(axis=-2) <= [nats, percent]).sum(axis=-1))


def far_behind(data, paired=False):
    """For how many of the three M VI's mean NLL on a set is above each other method's by two standard errors.

    Those of both combined, as if their splits were others; `paired`: of the differences on the splits that they share.
    """
    runs, count = runner.results("villacampa_whole"), 0
    for percent in PERCENT:
        wide = runs[(runs["data"] == data) & (runs["percent"] == percent)].pivot(index="split", columns="method", values="nll")
        others = wide.drop(columns="vi")
        behind = others.rsub(wide["vi"], axis=0)
        error = behind.sem() if paired else np.hypot(wide["vi"].sem(), others.sem())
        count += bool((behind.mean() >= NEAR * error).all())
    return count


def times(results=None):
    """Mean training time in seconds over all sets, a data frame of M (in %) by method: each set counts once."""
    return ours("training_seconds", results)["mean"].groupby(["percent", "method"]).mean().unstack("method")


def published_times():
    """The paper's, likewise."""
    return published("nll")["mean"].xs(TIMES, level="data").unstack("method")


def _of_times(statistic):
    """A function of the mean times (M, ...) of a dict of methods, with its interval over splits."""
    runs = runner.results("villacampa_whole").pivot(index=["data", "split"], columns=["method", "percent"],
                                                    values="training_seconds").sort_index(axis=1)
    methods, sizes = runs.columns.get_level_values("method").unique(), runs.columns.get_level_values("percent").nunique()

    def of_sets(*sets):
        mean = np.moveaxis(np.mean([rows.mean(axis=-2) for rows in sets], axis=0), -1, 0)
        return statistic(dict(zip(methods, mean.reshape(len(methods), sizes, *mean.shape[1:]))))

    return significance.bootstrap(runs, of_sets)


def speed():
    """GFITC's mean training time over SEP's, at the M where it is furthest from the middle of what would count."""
    middle = np.sqrt(SPEED[0] * SPEED[1])

    def furthest(times):
        ratios = times["gfitc"] / times["sep"]
        place = np.abs(np.log(ratios / middle)).argmax(axis=0)
        return np.take_along_axis(ratios, place[np.newaxis], axis=0)[0]

    return _of_times(furthest)


def least_lead(first, second):
    """The mean training time of `second` over that of `first`, at the M where this is least."""
    return _of_times(lambda times: (times[second] / times[first]).min(axis=0))


def fastest(method):
    """For how many of the three M a method has the least mean training time of the four."""
    return _of_times(lambda times: (times[method] == np.min(list(times.values()), axis=0)).sum(axis=0))


def draw(fig, results=None):
    """Our mean against the paper's for each cell of both tables, with two standard errors each way; hollow: they disagree."""
    for ax, (metric, (title, scale, ticks)) in zip(fig.subplots(1, 2), PANELS.items()):
        cells = compared(metric, results)
        for method in METHODS:
            part = cells.xs(method, level="method")
            x, y = scale * part["mean_theirs"], scale * part["mean"]
            ax.errorbar(x, y, xerr=NEAR * scale * part["sem_theirs"], yerr=NEAR * scale * part["sem"], fmt="none",
                        color=COLOURS[method], lw=0.6, alpha=0.5)
            agree = part["apart"].abs() <= NEAR
            ax.plot(x[agree], y[agree], "o", ms=4.5, color=COLOURS[method], label=NAMES[method])
            ax.plot(x[~agree], y[~agree], "o", ms=4.5, color=COLOURS[method], mfc=style.CARD)
        means = scale * cells[["mean", "mean_theirs"]]
        line = 0.8 * means.min().min(), 1.2 * means.max().max()
        ax.plot(line, line, color=style.colours["truth"], lw=1)
        ax.set(xscale="log", yscale="log", xlim=line, ylim=line)
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        style.label(ax, title=title, x="the paper's mean", y="our mean")
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
