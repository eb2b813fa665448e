"""Our numbers for the claims of villacampa2017; `claims.toml` says which claim is measured by which function."""

from functools import cache

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

from figures.experiments import mnist, runner, significance
from figures.experiments.villacampa2017 import fig1, fig3, fig4, fig5, fig5_long

MANY = 0.01     # of a method's pseudo-inputs

@cache
def _splits():
    """For each split of the study of Vehicle a dict of update -> row."""
    results = runner.results("vil_fig1")
    return [{row["update"]: row for row in part.to_dict("records")} for _, part in results.groupby("split")]


def vehicle_spread():
    """Largest difference between the final log evidences of the three updates, in % of their median; worst of the splits."""
    final = np.array([[row["final_evidence"] for row in rows.values()] for rows in _splits()])
    return float(100 * (np.ptp(final, axis=1) / np.abs(np.median(final, axis=1))).max())


def vehicle_speed():
    """How many times sooner inner updates reach the lowest of the three last log evidences, less 2 %; median of the splits."""
    ratios = [times["outer"] / times["inner"] for times in map(fig1.times_to_level, _splits())]
    return significance.bootstrap(pd.DataFrame(ratios), lambda rows: np.median(rows, axis=(-2, -1)))


def vehicle_gradients():
    """Final log evidences of inner updates with either gradient: largest difference in % of their size over the splits."""
    pairs = np.array([[rows["inner"]["final_evidence"], rows["inner-exact"]["final_evidence"]] for rows in _splits()])
    return float(100 * (np.abs(np.diff(pairs, axis=1))[:, 0] / np.abs(pairs).mean(axis=1)).max())


def vehicle_approximate(bound=2.0):
    """How many of two hold: both gradients end within `bound` %; the approximate one takes less time on every split."""
    last = f"seconds_{fig1.ITERATIONS}"
    faster = all(rows["inner"][last] < rows["inner-exact"][last] for rows in _splits())
    return int(vehicle_gradients() <= bound) + int(faster)


def satellite_head_starts(metric="nll"):
    """How many times later the sooner of GFITC and VI is where SEP is, within 5 % of its last loss: split by M."""
    return pd.Series(fig4.head_start(runner.results("vil_fig4"), metric)).unstack(level=0)


def satellite_head_start(M, metric="nll"):
    """The median of `satellite_head_starts` over the splits."""
    return float(satellite_head_starts(metric)[M].median())


def satellite_sizes_first(metric="nll"):
    """At how many of the three M SEP is sooner than GFITC and VI in the median, see `satellite_head_starts`."""
    return significance.bootstrap(satellite_head_starts(metric), lambda rows: (np.nanmedian(rows, axis=-2) > 1).sum(axis=-1))


def satellite_stays_low(metric, method="vi"):
    """At how many of the three M the mean loss of a method ends at most 5 % above the lowest that it has reached."""
    runs = runner.results("vil_fig4").query("method == @method")
    losses = runs.pivot(index="split", columns="M", values=[f"{metric}_{number}" for number in fig4.CHECKPOINTS])

    def count(rows):
        mean = rows.mean(axis=-2)
        curves = mean.reshape(*mean.shape[:-1], len(fig4.CHECKPOINTS), -1)
        return (curves[..., -1, :] <= 1.05 * curves.min(axis=-2)).sum(axis=-1)

    return significance.bootstrap(losses.reset_index(drop=True), count)


def satellite_apart():
    """In how many per cent of VI's curves log E[p] falls after its best while E[log p] climbs, on the test data.

    The interval is that of other splits; the curves of one split, at the three M, share its data.
    """
    runs, last = runner.results("vil_fig4").query("method == 'vi'"), fig4.CHECKPOINTS[-1]
    found = {}
    for row in runs.to_dict("records"):
        best = min(fig4.CHECKPOINTS, key=lambda number: row[f"nll_{number}"])
        apart = row[f"nll_{last}"] > row[f"nll_{best}"] and row[f"expected_{last}"] > row[f"expected_{best}"]
        found.setdefault(row["split"], []).append(apart)
    return significance.exact_percentage(sum(map(np.mean, found.values())), len(found))


def touching(M=fig3.JUDGED, bound=0.02):
    """For each method, and for the start, how many pseudo-inputs have another of their class within `bound`: all draws.

    A pair that has come together is pruned: the other one of the two adds nothing. A median of distances does not see it.
    """
    runs = _plane(M)
    found = {method: sum(_touching(fig3.read_places(text), bound) for text in part["places"])
             for method, part in runs.groupby("method")}
    return found | {"start": sum(_touching(fig3.problem(seed).start(M), bound) for seed in sorted(set(runs["seed"])))}


def _touching(Z, bound):
    distances = [cdist(points, points) + np.diag(np.full(len(points), np.inf)) for points in Z]
    return int(sum((square.min(axis=1) <= bound).sum() for square in distances))


def places_overlap(M=fig3.JUDGED):
    """How many of EP, SEP and GFITC put pseudo-inputs on top of each other, and one more if VI does not.

    A method does if more than one in a hundred of its pseudo-inputs touch another, and more than twice as many as at the start.
    """
    found, draws = touching(M), _plane(M)["seed"].nunique()
    few = max(2 * found["start"], MANY * fig3.CLASSES * M * draws)
    return sum(found[method] > few for method in ("ep", "sep", "gfitc")) + (found["vi"] <= few)


def sizes_ahead():
    """At how many sizes EP, SEP and GFITC all have a smaller test error than VI, on the draw that has all sizes."""
    results = runner.results("vil_fig3")
    error = results[results["seed"] == 0].pivot(index="M", columns="method", values="error_rate")
    return float((error[["ep", "sep", "gfitc"]].max(axis=1) < error["vi"]).sum())


def places_at_boundaries(M=fig3.JUDGED, other="ep"):
    """VI's mean distance of pseudo-inputs to the true boundaries over another method's, mean over the draws."""
    distance = _plane(M).pivot(index="seed", columns="method", values="boundary_distance")
    return significance.student(distance["vi"] / distance[other])


def _plane(M):
    results = runner.results("vil_fig3")
    return results[results["M"] == M]


def mnist_at_the_end(metric, epochs=20):
    """SEP's test error in % or NLL after 20 or 60 epochs on MNIST, with pseudo-inputs of its own for each class."""
    row, checkpoints = {
        20: (_digits("sep", "own"), mnist.CHECKPOINTS),
        60: (runner.results("vil_fig5_long").iloc[0], fig5_long.CHECKPOINTS),
    }[epochs]
    return float(fig5.PANELS[metric][0] * row[f"{metric}_{checkpoints[-1]}"])


def mnist_vi(error=2.3, nll=0.085):
    """How many of two bounds VI meets on MNIST after 20 epochs, error in % and NLL, with pseudo-inputs of each class's own."""
    row, last = _digits("vi", "own"), mnist.CHECKPOINTS[-1]
    return int(100 * row[f"error_rate_{last}"] <= error) + int(row[f"nll_{last}"] <= nll)


def mnist_apart():
    """The worst over the best of SEP, EP and VI after 20 epochs, with pseudo-inputs of each class's own: the larger ratio of two.

    One is that of the test errors on MNIST, the other that of the test NLL.
    """
    rows, last = [_digits(method, "own") for method in fig5.NAMES], mnist.CHECKPOINTS[-1]
    losses = [[row[f"{metric}_{last}"] for row in rows] for metric in fig5.PANELS]
    return float(max(max(each) / min(each) for each in losses))


def mnist_sooner(unit="seconds", method="sep"):
    """In how many of NLL and error a method is sooner than VI on MNIST, with both kinds of pseudo-inputs; unit: or "steps"."""
    return sum(all(mnist_ratio(metric, kind, unit, method) > 1 for kind in fig5.KINDS) for metric in fig5.PANELS)


def mnist_ratio(metric, kind, unit="seconds", method="sep", within=1.05):
    """VI's time or steps over the method's to come within 5 % of the worse of their last values on MNIST."""
    curves = [mnist.curve(_digits(name, kind), metric) for name in ("vi", method)]
    level = within * max(values[-1] for _, values in curves)
    if unit == "steps":     # VI starts from a hundred batches of SEP
        curves = [(np.array(fig5.CHECKPOINTS) + fig5.HEAD_START * first, values) for first, (_, values) in zip((1, 0), curves)]
    vi, other = (fig1.time_to(spent, -values, -level) for spent, values in curves)
    return float(vi / other)


def _digits(method, kind):
    runs = runner.results("vil_fig5")
    return runs[(runs["method"] == method) & (runs["pseudo_inputs"] == kind)].iloc[0]


def growth_with_rows(column):
    """How many times as much a hundred times as many rows take: of peak memory, or of seconds of learning for each batch."""
    runs = runner.results("vil_rows").set_index("rows").sort_index()
    values = runs[column] / (runs.index if column == "learning_seconds" else 1)
    return float(values.iloc[-1] / values.iloc[0])
