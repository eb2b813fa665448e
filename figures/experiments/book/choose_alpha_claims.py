"""Which way of choosing the power is worth its cost? Regret, comparison with one half, cost and optimism.

Rules for the verdicts, which were fixed before the first row of the study `choose_alpha`:

* A way of choosing sees the six rows of one (data, split, M) and names one power: a constant does not look; `evidence` takes
  the highest log evidence; `leave-one-out`, `held out` and `cross-validation` take the lowest of their estimates of the mean
  negative log density; `leave-one-out up to 0.9` does so without alpha = 1. Its loss is the test loss of the full fit at that
  power. The controls have the loss of their own fit, at the middle M only.
* There are three losses: the negative log density in nats on all eighteen sets, the squared error on the twelve of real
  targets, by its logarithm in per cent, and the error rate on the six of labels, in percentage points. Where an estimate of
  the squared error or the error rate itself chooses (`by="point"`) this is reported beside, and decides no verdict.
* The regret is the loss above that of the best power in hindsight for the same (data, split, M). A set has one vote: the mean
  over the splits for each M, then over M. Standard errors are over sets, intervals 95 % of Student's t.
* The comparison is the loss minus that of the constant 0.5. If its whole interval lies within `MARGINS` the verdict is
  "no difference that matters"; else if it lies below zero "better", above zero "worse", and otherwise "inconclusive". With
  controls in place of 0.5, at the middle M, the same words are used.
* On a set a way of choosing wins or loses against 0.5 if its mean loss differs by more than a fifth of the margin, else it ties.
* The cost is in fits: seconds of the processor over the mean of the six full fits of the same (data, split, M), then one vote
  for each set. The full fit that is used in the end counts; estimates that need refits do not need the other full fits.
* The optimism of an estimate is the estimate minus the test loss, at one power, in nats: below zero it promises too much.
* (data, split, M) without all six powers are left out, and counted by `incomplete`.
"""

import numpy as np
import pandas as pd
from scipy import stats

from figures.drawing import style
from figures.experiments import significance
from figures.experiments.book import choose_alpha

KEY = ["data", "split", "M"]
HALF = f"always {choose_alpha.HALF:g}"
CONSTANTS = {f"always {alpha:g}": alpha for alpha in (0.0, 0.5, 0.75, 0.9, 1.0)}
ESTIMATES = {"leave-one-out": "loo", "held out": "held_out", "cross-validation": "cv"}
CONTROLS = choose_alpha.SEARCHES[1:]
CAUTIOUS, LARGEST = "leave-one-out up to 0.9", 0.9
STRATEGIES = (*CONSTANTS, "evidence", "leave-one-out", CAUTIOUS, "held out", "cross-validation")
# differences that nobody need care about: nats, per cent, percentage points
MARGINS = {"log density": 0.01, "squared error": 2.0, "error rate": 0.25}
UNITS = {"log density": "nats", "squared error": "%", "error rate": "points"}


def wide(results, column):
    """One row per (data, split, M) with all powers, one column per power."""
    one = results[results["search"] == choose_alpha.SEARCHES[0]]
    return one.pivot(index=KEY, columns="alpha", values=column).reindex(columns=choose_alpha.ALPHAS)


def incomplete(results):
    """The (data, split, M) of which powers are missing."""
    return wide(results, "nll").isna().any(axis=1).pipe(lambda missing: list(missing.index[missing]))


def choices(results, by="nll"):
    """The power that every way of choosing names: one row per (data, split, M), one column per way.

    Parameters
    ----------
    by : "nll" or "point", the estimated loss that is looked at
    """
    complete = wide(results, "nll").notna().all(axis=1)
    table = lambda column: wide(results, column)[complete]
    chosen = pd.DataFrame(CONSTANTS, index=complete.index[complete])
    chosen["evidence"] = table("log_evidence").idxmax(axis=1)
    for name, estimate in ESTIMATES.items():
        chosen[name] = table(f"{estimate}_{by}").idxmin(axis=1)
    cautious = table(f"loo_{by}")
    chosen[CAUTIOUS] = cautious[[alpha for alpha in cautious if alpha <= LARGEST]].idxmin(axis=1)
    return chosen[list(STRATEGIES)]


def _in_units(results, metric):
    """The rows on which a loss is defined, with the column "loss" in its units."""
    labels = results["data"].isin(choose_alpha.BINARY)
    if metric == "log density":
        return results.assign(loss=results["nll"])
    if metric == "squared error":
        return results[~labels].assign(loss=lambda rows: 100 * np.log(rows["point"]))
    return results[labels].assign(loss=lambda rows: 100 * rows["point"])


def losses(results, metric, by="nll"):
    """The test loss after each way of choosing, and of the controls (NaN but for the middle M): rows (data, split, M)."""
    results = _in_units(results, metric)
    table, chosen = wide(results, "loss"), choices(results, by)
    found = chosen.apply(lambda column: _at(table, column))
    for control in CONTROLS:
        found[control] = results[results["search"] == control].set_index(KEY)["loss"]
    return found


def _at(table, chosen):
    """The value of each row of `table` in the column that `chosen` names."""
    return pd.Series([table.at[row, alpha] for row, alpha in chosen.items()], index=chosen.index)


def regret(results, metric, by="nll"):
    """`losses` minus the loss of the best power in hindsight; that of a control may be below zero."""
    return losses(results, metric, by).sub(wide(_in_units(results, metric), "loss").min(axis=1), axis=0).dropna(how="all")


def by_set(values):
    """One row per set: the mean over splits for each M, then over M."""
    return values.groupby(level=["data", "M"]).mean().groupby(level="data").mean()


def mean_over_sets(values):
    """Mean over sets, standard error and the ends of the 95 % interval: columns mean, se, low, high; rows as columns given."""
    sets = by_set(values)
    counts, mean = sets.count(), sets.mean()
    error = sets.std(ddof=1) / np.sqrt(counts)
    reach = stats.t.ppf(0.975, counts - 1) * error
    return pd.DataFrame({"mean": mean, "se": error, "low": mean - reach, "high": mean + reach})


def verdict(low, high, margin):
    """See the rules."""
    if -margin <= low and high <= margin:
        return "no difference that matters"
    if high < 0:
        return "better"
    return "worse" if low > 0 else "inconclusive"


def against(results, metric, reference=HALF, by="nll"):
    """Every way of choosing against `reference`: mean, se, low, high, verdict, and sets with wins, ties and losses.

    With a control as `reference` the middle M alone counts.
    """
    found = losses(results, metric, by)
    margins = found.sub(found[reference], axis=0)[found[reference].notna()].drop(columns=reference)
    table, sets, least = mean_over_sets(margins), by_set(margins), MARGINS[metric] / 5
    table["verdict"] = [verdict(row.low, row.high, MARGINS[metric]) for row in table.itertuples()]
    table["wins"], table["losses"] = (sets < -least).sum(), (sets > least).sum()
    table["ties"] = sets.count() - table["wins"] - table["losses"]
    return table


def corrected(results, metric):
    """The p-values of `against`, by t-tests over sets, after Holm's correction for all ways of choosing and controls."""
    compared = against(results, metric)
    sets = compared[["wins", "ties", "losses"]].sum(axis=1)
    p = 2 * stats.t.sf(compared["mean"].abs() / compared["se"], sets - 1)
    return pd.Series(significance.holm(p), index=compared.index)


def costs(results):
    """Cost of every way of choosing and of the controls in full fits: rows (data, split, M)."""
    chosen = choices(results)
    seconds = {name: wide(results, f"{name}_seconds").loc[chosen.index] for name in ("fit", "loo", "held_out", "cv")}
    every = seconds["fit"].sum(axis=1)
    found = pd.DataFrame({name: _at(seconds["fit"], chosen[name]) for name in STRATEGIES})
    found["evidence"] = every
    found["leave-one-out"] = every + seconds["loo"].sum(axis=1)
    few = [alpha for alpha in choose_alpha.ALPHAS if alpha <= LARGEST]
    found[CAUTIOUS] = seconds["fit"][few].sum(axis=1) + seconds["loo"][few].sum(axis=1)
    for name in ("held out", "cross-validation"):
        found[name] += seconds[ESTIMATES[name]].sum(axis=1)
    for control in CONTROLS:
        found[control] = results[results["search"] == control].set_index(KEY)["fit_seconds"]
    return found.div(every / len(choose_alpha.ALPHAS), axis=0)


def summary(results, metric, by="nll"):
    """One row per way of choosing: regret and its standard error, the comparison with one half, and the cost in fits."""
    mean = mean_over_sets(regret(results, metric, by))[["mean", "se"]].rename(columns={"mean": "regret"})
    compared = against(results, metric, by=by).rename(columns={"mean": "against half", "se": "se against half"})
    return mean.join(compared).join(by_set(costs(results)).mean().rename("fits"))


def printed(compared, decimals=3):
    """The columns of `against` or `summary` as a narrow table: the interval in one column, and the sets in another."""
    ends = compared[["low", "high"]].map(lambda end: f"{end:z.{decimals}f}".replace("-", "\N{MINUS SIGN}"))
    counts = compared[["wins", "ties", "losses"]].map(lambda count: f"{count:.0f}")
    known = compared["verdict"].notna()
    verdicts = compared[["verdict"]].where(known, None)     # the first column: a phone shows three
    shown = pd.DataFrame({"95 % interval": ends["low"] + " to " + ends["high"],
                          "won, tied, lost": counts.agg(", ".join, axis=1)}).where(known, None)
    first, last = (["regret", "se"], ["fits"]) if "regret" in compared else (["mean"], [])
    return verdicts.join(compared[first]).join(shown).join(compared[last])


def frequencies(results, by="nll"):
    """How often each way names each power, in per cent of (data, split, M): rows ways, columns powers."""
    chosen = choices(results, by)
    shares = {name: chosen[name].value_counts(normalize=True) for name in chosen}
    return 100 * pd.DataFrame(shares).T.reindex(columns=choose_alpha.ALPHAS).fillna(0.0)


def optimism(results, estimate="loo"):
    """The estimate minus the test loss in nats, at every power, :eq:`wd-optimism`: rows (data, split, M).

    `estimate` is loo, held_out, cv or train.
    """
    return (wide(results, f"{estimate}_nll") - wide(results, "nll")).dropna()


def draw_optimism(left, right, results):
    """Estimate minus test loss against the power: leave-one-out on every set; the medians over sets of all estimates."""
    sets = by_set(optimism(results))
    left.plot(sets.columns, sets.T, color=style.colours["prior"], lw=1)
    left.plot(sets.columns, sets.median(), color=style.CYCLE[1], marker="o", ms=4, label="leave-one-out")
    names = {"train": "training rows"} | {estimate: name for name, estimate in ESTIMATES.items()}
    for (estimate, name), colour in zip(names.items(), style.CYCLE, strict=False):
        right.plot(sets.columns, by_set(optimism(results, estimate)).median(), color=colour, marker="o", ms=4, label=name)
    left.set_yscale("symlog", linthresh=1, linscale=2)
    left.set(yticks=(-100, -10, -1, 0), yticklabels=("−100", "−10", "−1", "0"))
    style.label(left, x="power α", y="optimism (nats)", title="leave-one-out, every set")
    style.label(right, x="power α", title="medians over sets")
    for ax in (left, right):
        ax.axhline(0, color=style.INK, lw=0.8)


def draw_regret(ax, results, metric="log density"):
    """Regret of every way of choosing: each set, the mean and its 95 % interval over sets, the smallest mean at the top."""
    regrets = regret(results, metric)
    found, sets = mean_over_sets(regrets).sort_values("mean"), by_set(regrets)
    places = np.arange(len(found))
    for place, name in enumerate(found.index):
        ax.plot(sets[name], np.full(len(sets), place), "o", color=style.colours["data"], ms=4, alpha=0.5)
    ax.hlines(places, found["low"], found["high"], color=style.INK, lw=1.5)
    ax.plot(found["mean"], places, "D", color=style.CYCLE[0])
    ax.set_yticks(places, found.index)
    ax.invert_yaxis()
    ax.set_xscale("symlog", linthresh=0.1, linscale=1.5)
    ax.set(xlim=(-0.3, 200), xticks=(0, 0.1, 1, 10, 100), xticklabels=("0", "0.1", "1", "10", "100"))
    style.label(ax, x=f"regret in {metric} ({UNITS[metric]})")
