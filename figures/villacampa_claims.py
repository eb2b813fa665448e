"""Our numbers for the claims of villacampa2017; `claims.toml` says which claim is measured by which function."""

from functools import cache

import numpy as np

from figures import runner, vil_fig1, vil_fig4, vil_fig5, vil_fig5_long


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
    return float(np.median([times["outer"] / times["inner"] for times in map(vil_fig1.times_to_level, _splits())]))


def vehicle_approximate():
    """Final log evidences of inner updates with either gradient: largest difference in % of their size over the splits."""
    pairs = np.array([[rows["inner"]["final_evidence"], rows["inner-exact"]["final_evidence"]] for rows in _splits()])
    return float(100 * (np.abs(np.diff(pairs, axis=1))[:, 0] / np.abs(pairs).mean(axis=1)).max())


def satellite_head_start():
    """How many times later GFITC or VI is where SEP is, within 5 % of its last NLL: median of splits, less of M = 20 and 100."""
    times = vil_fig4.head_start(runner.results("vil_fig4"))
    return float(min(np.median([value for (M, _), value in times.items() if M == size]) for size in (20, 100)))


def satellite_gap():
    """With M = 100, the mean of log E[p] − E[log p] over the test data in the end: VI's over SEP's."""
    gaps = vil_fig4.gaps(runner.results("vil_fig4"), 100)
    return float(gaps["vi"] / gaps["sep"])


def mnist_at_the_end(metric):
    """SEP's test error in % or NLL after 60 epochs on MNIST, with pseudo-inputs of its own for each class, as in the paper."""
    row = runner.results("vil_fig5_long").iloc[0]
    return float(vil_fig5.PANELS[metric][0] * row[f"{metric}_{vil_fig5_long.CHECKPOINTS[-1]}"])
