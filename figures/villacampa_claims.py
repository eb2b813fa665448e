"""Our numbers for the claims of villacampa2017; `claims.toml` says which claim is measured by which function."""

from functools import cache

import numpy as np

from figures import runner, vil_fig1


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
