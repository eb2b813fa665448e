"""Tables 3 to 6 of salimbeni2018 beside our own runs: who is best on how many of the sets that both have."""

from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd

from figures import FOLDER
from figures.drawing import style
from figures.experiments import runner, significance
from figures.experiments.salimbeni2018.fig2 import LOOKS
from figures.experiments.salimbeni2018.tables import BINARY, MANY, METHODS, REGRESSION

PUBLISHED = FOLDER / "published"
FILES = {
    ("regression", "error"): "salimbeni2018_table4_test_error.csv",
    ("regression", "log_likelihood"): "salimbeni2018_table3_test_loglik.csv",
    ("classification", "error"): "salimbeni2018_table5_accuracy.csv",
    ("classification", "log_likelihood"): "salimbeni2018_table6_test_loglik.csv",
}
SETS = {"regression": REGRESSION, "classification": (*BINARY, *MANY)}
LARGER = tuple(method for method in METHODS if not method.endswith("_300"))  # those of tables 5 and 6
COMPARED = {"regression": tuple(METHODS), "classification": LARGER}
OUR_SETS = {"statlog-landsat": "satellite", "statlog-shuttle": "shuttle"}
OUR_METHODS = {"Coupled": "Coupled_400", "CoupledNat": "CoupledNat_400"}
NAMES = {"Coupled_300": "Coupled, 300", "CoupledNat_300": "CoupledNat, 300"}
TIMES = (1, 1.5, 2, 3, 5, 10, 20)  # ticks
SAME_BETA = {"Orth": "Coupled_300", "OrthNat": "CoupledNat_300"}
NATURAL = {"OrthNat": "Orth", "CoupledNat_400": "Coupled_400", "CoupledNat_300": "Coupled_300"}
WITH_GAMMA = {"Hybrid": "Coupled_300", "Decoupled": "Coupled_300"}      # the bases of others, and what they add γ to


@cache
def published(task, metric):
    """The paper's cells, a data frame of set by method; accuracies as rates of error.

    Two columns of table 4 stand under each other's name, which its own means and table 1 show: erratum sal-6.
    """
    table = pd.read_csv(PUBLISHED / FILES[task, metric]).dropna(subset="N").set_index("dataset").rename(index=OUR_SETS)
    if (task, metric) == ("regression", "error"):
        table = table.rename(columns={"Hybrid": "Decoupled", "Decoupled": "Hybrid"})
    if task == "classification":
        table = table.rename(columns=OUR_METHODS)
    cells = table[list(COMPARED[task])].astype(float)
    return 1 - cells / 100 if (task, metric) == ("classification", "error") else cells


def ours(task, metric, results=None):
    """The same of our runs, for the sets of which every method has been run; `metric` may be "mae" too, "error" is the rmse."""
    results = runner.results("salimbeni_tables") if results is None else results
    column = "rmse" if metric == "error" else metric
    cells = results.groupby(["data", "method"])[column].mean().unstack("method")
    return cells.reindex(index=list(SETS[task]), columns=list(COMPARED[task])).dropna()


def ranks(cells, metric):
    """Average rank (methods,) over the sets, 1 is the best and ties share."""
    return cells.rank(axis=1, ascending=metric != "log_likelihood").mean()


def leaders(found):
    """The methods with the best of the average ranks `found` (methods,), more than one where they share it."""
    return list(found.index[np.isclose(found, found.min())])


def _of_ranks(cells, metric, statistic):
    """A function of a dict of method -> average rank over the sets, with its interval for other sets."""
    places = cells.rank(axis=1, ascending=metric != "log_likelihood")
    return significance.of_means([places[method] for method in places], lambda *means: statistic(dict(zip(places, means))))


def _as_good(found, method):
    """How many of the other methods have a value as small as that of `method`, or smaller."""
    return sum(np.less_equal(value, found[method]) * 1 for other, value in found.items() if other != method)


def best(task, metric, method="OrthNat"):
    """How many of the other methods have an average rank as small as that of `method`, or smaller: 0 if it is the best."""
    return _of_ranks(ours(task, metric), metric, lambda found: _as_good(found, method))


def worst(task, metric, method="Decoupled"):
    """How many of the other methods have an average rank as large as that of `method`, or larger: 0 if it is the worst."""
    return _of_ranks(ours(task, metric), metric,
                     lambda found: _as_good({name: np.negative(rank) for name, rank in found.items()}, method))


def behind_at_equal_time(task):
    """The error of OrthNat less that of CoupledNat with 400 points, which takes as long: mean over the sets.

    The interval is Student's, since the sets are few.
    """
    cells = ours(task, "error")
    return significance.student(cells["OrthNat"] - cells["CoupledNat_400"])


def behind_in_median(task, method="Orth"):
    """How many of the other methods have a median error over the sets as small as that of `method`, or smaller."""
    cells = ours(task, "error")

    def count(rows):
        return _as_good(dict(zip(cells, np.moveaxis(np.median(rows, axis=-2), -1, 0))), method)

    return significance.bootstrap(cells, count)


def no_worse(metric="error", cells=None):
    """Share of the pairs, over the regression sets, in which the orthogonal basis is no worse than the coupled one of 300."""
    cells = ours("regression", metric) if cells is None else cells
    found = _ahead(SAME_BETA, cells, np.greater_equal if metric == "log_likelihood" else np.less_equal)
    return significance.Estimate(*(percentage / 100 for percentage in found))


def natural_ahead(task, cells=None):
    """Per cent of the pairs, over the sets, in which natural steps give the smaller error in the same basis."""
    return _ahead(NATURAL, ours(task, "error") if cells is None else cells)


def gamma_ahead(cells=None):
    """Per cent of the pairs, over the regression sets, in which Hybrid or Decoupled has a smaller error than its β alone."""
    return _ahead(WITH_GAMMA, ours("regression", "error") if cells is None else cells)


def _ahead(pairs, cells, better=np.less):
    """Per cent of the pairs; the interval is that of other sets, on each of which all pairs share the data."""
    won = [better(cells[one], cells[other]) for one, other in pairs.items() if one in cells]
    return significance.exact_percentage(np.mean(won, axis=0).sum(), len(cells))


def natural_in_rank(task, cells=None):
    """For how many of the two bases, orthogonal and coupled with 400, natural steps have the smaller average rank."""
    def count(found):
        return sum(np.less(found[one], found[NATURAL[one]]) * 1 for one in ("OrthNat", "CoupledNat_400"))

    return _of_ranks(ours(task, "error") if cells is None else cells, "error", count)


def better_in_summary():
    """Of twelve comparisons with the coupled basis of the same beta, how many the orthogonal basis wins.

    They are of error and of log-likelihood, each by mean, median and average rank over the regression sets, for Orth and OrthNat.
    """
    losses = [ours("regression", "error"), -ours("regression", "log_likelihood")]
    tables = [table for loss in losses for table in (loss, loss.rank(axis=1))]

    def count(rows):
        won = 0
        for place, part in enumerate(np.split(rows, len(tables), axis=-1)):
            for summary in (np.mean, np.median) if place % 2 == 0 else (np.mean,):
                found = dict(zip(COMPARED["regression"], np.moveaxis(summary(part, axis=-2), -1, 0)))
                won = won + sum(np.less(found[one], found[other]) * 1 for one, other in SAME_BETA.items())
        return won

    return significance.bootstrap(pd.concat(tables, axis=1), count)


def exchanged(one, other):
    """How many pairs of methods stand in another order in `one` (methods,) than in `other`; a tie is no order."""
    pairs = combinations(one.index, 2)
    return sum(bool((one[first] - one[second]) * (other[first] - other[second]) < 0) for first, second in pairs)


def excess(cells, metric):
    """How far each cell is from the best of its set: times its error, or nats below its log-likelihood."""
    if metric == "log_likelihood":
        return cells.rsub(cells.max(axis=1), axis=0)
    return cells.div(cells.min(axis=1), axis=0)


def draw(fig, task, metric="error", results=None):
    """For each set (row) how many times the best error each method has; hollow: the coupled basis with 300 points."""
    cells = ours(task, metric, results)
    sources = {"ours": cells, "the paper's": published(task, metric).loc[cells.index]}
    axes = fig.subplots(1, 2, sharex=True, sharey=True)
    for ax, (title, cells) in zip(axes, sources.items()):
        places = np.arange(len(cells))[::-1]
        lanes = np.linspace(0.32, -0.32, cells.shape[1])  # so that methods of equal error do not hide each other
        for lane, (method, values) in zip(lanes, excess(cells, metric).items()):
            name = METHODS[method][0]
            colour = LOOKS[name]["color"]
            ax.plot(values, places + lane, "D" if name.endswith("Nat") else "o", ms=5, color=colour,
                    label=NAMES.get(method, name), mfc=style.CARD if method.endswith("_300") else colour)
        ax.set_yticks(places, cells.index)
        ax.hlines(places[:-1] - 0.5, 0, 1, transform=ax.get_yaxis_transform(), color=style.colours["grid"], lw=1)
        ax.grid(False, axis="y")
        if metric == "error":
            ax.set_xscale("log")
            ticks = [times for times in TIMES if times <= max(excess(part, metric).max(axis=None) for part in sources.values())]
            ax.set_xticks(ticks, map("{:g}".format, ticks))
            ax.minorticks_off()
        style.label(ax, title=title, x="error over the best" if metric == "error" else "nats below the best")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, handletextpad=0.2)
