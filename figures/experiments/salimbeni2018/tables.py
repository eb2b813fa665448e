"""Do orthogonally decoupled bases predict better? salimbeni2018 tables 1 to 6, on the sets at hand.

The orthogonal basis is held in function values, and all inputs share a lengthscale, as in its authors' program; the first set
has two runs more, in the weights that the paper prints, to see what they do. Everything is learnt on mini-batches of 1024 rows
with 64 sampled columns: q, kernel, noise and points, by Adam with rate 0.001 and natural steps of 0.005, in 10 000 steps, half
of the paper's. |beta| = 300 and |gamma| = 700; the coupled basis has 400 points, in regression once 300 too. Sets of many classes
have the robust-max likelihood. Five of them have 20 minutes of processor time a run, which end most runs before their last step:
the column `steps` says where.
"""

import math
import time

from figures.experiments.salimbeni2018 import waves
from figures.experiments.salimbeni2018.problems import options_of, problem
from pepcore import decoupled

REGRESSION = ("kin40k", "pol", "elevators", "protein", "keggdirected", "keggundirected", "bike")
BINARY = ("ringnorm", "twonorm", "magic", "adult")
CLOCKED = ("waveform", "satellite", "pendigits", "shuttle", "letter")
MANY = (*CLOCKED, waves.NAME)
SETS = (*REGRESSION, *BINARY, *MANY)
METHODS = {"Coupled_300": ("Coupled", 300), "CoupledNat_300": ("CoupledNat", 300), "Coupled_400": ("Coupled", 400),
           "CoupledNat_400": ("CoupledNat", 400), "OrthNat": ("OrthNat", 300), "Orth": ("Orth", 300),
           "Hybrid": ("Hybrid", 300), "Decoupled": ("Decoupled", 300)}
IN_WEIGHTS = {"OrthWeights": ("OrthWeights", 300), "OrthNatWeights": ("OrthNatWeights", 300)}  # on the first set only
GAMMA, BATCH, COLUMNS, STEPS = 700, 1024, 64, 10_000
MINUTES = 20  # of processor time for learning, for the sets in CLOCKED
OUTPUTS = ("mae", "rmse", "log_likelihood", "bound", "noise", "steps")


def grid():
    """Set by set all methods, in classification those of the paper's table 5, without the smaller coupled basis."""
    first = [{"data": SETS[0], "method": method, "split": 0} for method in IN_WEIGHTS]
    return first + [{"data": data, "method": method, "split": 0} for data in SETS for method in METHODS
                    if data in REGRESSION or not method.endswith("_300")]


def error_rates(row):
    """Those outputs of a row that are rates of wrong labels."""
    return () if row["data"] in REGRESSION else ("mae", "rmse")


def again(row):
    """What more `compute` needs to end where the clock ended the run of this row, on a processor of any speed."""
    return {"steps": int(row["steps"]), "minutes": math.inf}


def compute(data, method, split, steps=STEPS, minutes=MINUTES):
    """One run, of at most `minutes` of learning if the set is one of `CLOCKED`.

    For labels, `mae` and `rmse` are both the rate of wrong ones, and `noise` is 0.
    """
    return run(problem(data, split), *(METHODS | IN_WEIGHTS)[method], split, steps,
               minutes if data in CLOCKED else math.inf)


def run(task, name, M, split, steps=STEPS, minutes=math.inf):
    """The same for any `problem` and any of `problems.BASES`, with M points beta."""
    beta, gamma = task.points(M, GAMMA, seed=split)
    learn, end = ("kernel", "beta", "gamma", "likelihood"), time.process_time() + 60 * minutes
    out_of_time = []

    def stop_in_time(record):
        if time.process_time() > end:
            out_of_time.append(record["step"])
            raise KeyboardInterrupt  # which `infer` takes for the wish to stop here

    fit = decoupled.infer(task.kernel, X=task.X, y=task.y, likelihood=task.likelihood, steps=steps, batch=BATCH,
                          columns=COLUMNS, optimise=learn, seed=split, callback=stop_in_time, **options_of(name, beta, gamma))
    if len(fit.history) < steps and not out_of_time:
        raise KeyboardInterrupt  # somebody has pressed Ctrl-C: half a run is no result
    mae, rmse, log_likelihood = task.losses(fit.posterior, fit.likelihood)
    noise = fit.likelihood.parameters.get("noise", 0.0)
    return {"mae": mae, "rmse": rmse, "log_likelihood": log_likelihood, "bound": fit.log_evidence, "noise": noise,
            "steps": len(fit.history)}
