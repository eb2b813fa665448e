"""Do the rows of the studies of regression come out again on another processor? A random sample of them, computed again.

Run on the processor that made the tables, this says little: the same instructions round the same way. The committed rows
were computed with the BLAS kernels and the NumPy loops of a processor without AVX-512, with OPENBLAS_CORETYPE=Haswell and
NPY_DISABLE_CPU_FEATURES="AVX512_ICL AVX512_SPR X86_V4" in the environment; nearly all rows of the tables were made with
AVX-512.
"""

from functools import cache

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_info

from figures.experiments import runner
from figures.experiments.bui2017 import fig3, refits, uci_regression, uci_whole

SAMPLE = {"uci_regression": 60, "bui_fig3": 40, "uci_whole": 60}
BUDGETS = {"uci_regression": refits.MIDDLE, "bui_fig3": refits.MIDDLE, "uci_whole": refits.LONG}
LARGEST = 20        # M of the runs that are sampled: they take about a second
OUTPUTS = ("change_of_smse", "change_of_smll", "blas")


def grid():
    """Runs drawn at random from part of the three grids, data sets of the toy study as numbers."""
    rng = np.random.default_rng(0)
    for study, module in (("uci_regression", uci_regression), ("bui_fig3", fig3), ("uci_whole", uci_whole)):
        runs = [run for run in module.grid() if run["M"] <= LARGEST and drawn(study, run)]
        for place in np.sort(rng.choice(len(runs), SAMPLE[study], replace=False)):
            run = runs[place]
            yield {"study": study, "data": str(run["data"]), "split": run.get("split", 0), "M": run["M"], "alpha": run["alpha"]}


def drawn(study, run):
    """Whether the run was in the tables when the sample was drawn."""
    if study == "bui_fig3":
        return run["method"] == "sparse" and run["data"] in range(6)
    return run["data"] in uci_regression.SMALL and run["split"] in range(16)


def compute(study, data, split, M, alpha):
    """One run again: how far its losses are from the committed ones (the SMSE by a fraction of itself)."""
    if study == "bui_fig3":
        again, inputs = fig3.compute, {"data": int(data), "method": "sparse", "M": M, "alpha": alpha}
    else:
        module = uci_whole if study == "uci_whole" else uci_regression
        again, inputs = module.compute, {"data": data, "split": split, "M": M, "alpha": alpha}
    (before,) = table(study).loc[[tuple(inputs.values())]].to_dict("records")
    after = again(**inputs)
    return {"change_of_smse": abs(after["smse"] / before["smse"] - 1), "change_of_smll": abs(after["smll"] - before["smll"]),
            "blas": next(library["architecture"] for library in threadpool_info() if library["user_api"] == "blas")}


@cache
def table(study):
    """The committed results, by their inputs."""
    return runner.results(study).set_index(list(runner.load(study).inputs)).sort_index()


def within(results):
    """Which rows came out again within the tolerance of `refits` for their study's budget: Series of bool."""
    kept = [all(row[f"change_of_{metric}"] <= bound for metric, bound in refits.TOLERANCE[BUDGETS[row["study"]]].items())
            for row in results.to_dict("records")]
    return pd.Series(kept, results.index)
