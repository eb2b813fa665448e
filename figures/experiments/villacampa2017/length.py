"""What if training had been shorter? The runs of `villacampa_whole` with M = 5 %, stopped after fewer iterations.

Asked when the tables had been compared: do our means differ from the paper's as they would if its 250 iterations had gone
less far than ours?
"""

import numpy as np
import pandas as pd

from figures.experiments.villacampa2017 import cells, tables
from figures.experiments.villacampa2017.tables import DATA

PERCENT, METHODS, LENGTHS, SPLITS = 5, ("ep", "sep", "vi"), (15, 30, 60), range(5)
OUTPUTS = ("nll", "error_rate")


def grid():
    """Split by split."""
    return [{"data": data, "split": split, "method": method, "iterations": iterations}
            for split in SPLITS for data in DATA for method in METHODS for iterations in LENGTHS]


def compute(data, split, method, iterations):
    """One run, see `tables.compute`."""
    found = tables.compute(data, split, PERCENT, method, iterations=iterations)
    return {name: found[name] for name in OUTPUTS}


def nearness(short, whole):
    """How near the paper's tables our means with M = 5 % are, by length of training, over the same splits.

    Parameters
    ----------
    short, whole : data frames, the results of this study and of `villacampa_whole`

    Returns
    -------
    data frame, index (iterations, metric): per cent of the cells within two combined standard errors ("near"), and the
    median over cells of the factor between the two means ("factor")
    """
    whole = whole[(whole["percent"] == PERCENT) & whole["method"].isin(METHODS) & whole["split"].isin(SPLITS)]
    runs = pd.concat([short.assign(percent=PERCENT), whole.assign(iterations=tables.ITERATIONS)])
    found = {}
    for iterations, part in runs.groupby("iterations"):
        for metric in OUTPUTS:
            both = cells.compared(metric, part)
            factor = np.exp(np.abs(np.log(both["mean"] / both["mean_theirs"])))
            near = 100 * (both["apart"].abs() <= cells.NEAR).mean()
            found[iterations, metric] = {"near": near, "factor": factor.median()}
    return pd.DataFrame(found).T.rename_axis(["iterations", "metric"])
