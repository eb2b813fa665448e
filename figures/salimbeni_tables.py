"""Do orthogonally decoupled bases predict better? salimbeni2018 tables 1 to 6, on the sets at hand.

Everything is learnt on mini-batches of 1024 rows with 64 sampled columns: q, kernel, noise and points, by Adam with rate
0.001 and natural steps of 0.005. |beta| = 300 and |gamma| = 700; the coupled basis once with 300 and once with 400 points.
"""

from figures.salimbeni_problems import options_of, problem
from pepcore import datasets, decoupled

REGRESSION = ("kin40k", "elevators", "pol", "protein", "keggdirected", "keggundirected", "bike")
BINARY = ("ringnorm", "twonorm", "magic")
METHODS = {"Coupled_300": ("Coupled", 300), "CoupledNat_300": ("CoupledNat", 300), "Coupled_400": ("Coupled", 400),
           "CoupledNat_400": ("CoupledNat", 400), "OrthNat": ("OrthNat", 300), "Orth": ("Orth", 300),
           "Hybrid": ("Hybrid", 300), "Decoupled": ("Decoupled", 300)}
GAMMA, BATCH, COLUMNS, STEPS = 700, 1024, 64, 10_000
OUTPUTS = ("mae", "rmse", "log_likelihood", "bound", "noise")
UNFINISHED = "a run takes ten to fifteen minutes of one core"


def grid():
    """All methods on all sets, set by set."""
    return [{"data": data, "method": method, "split": 0} for data in (*REGRESSION, *BINARY) for method in METHODS]


def prepare():
    """Stop at once when a data set is missing."""
    for data in (*REGRESSION, *BINARY):
        datasets.load(data)


def compute(data, method, split, steps=STEPS):
    """One run; for labels, `mae` and `rmse` are both the rate of wrong ones, and `noise` is 0."""
    name, M = METHODS[method]
    task = problem(data, split)
    beta, gamma = task.points(M, GAMMA, seed=split)
    learn = ("kernel", "beta", "gamma", "likelihood")
    fit = decoupled.infer(task.kernel, X=task.X, y=task.y, likelihood=task.likelihood, steps=steps, batch=BATCH,
                          columns=COLUMNS, optimise=learn, seed=split, **options_of(name, beta, gamma))
    mae, rmse, log_likelihood = task.losses(fit.posterior, fit.likelihood)
    noise = fit.likelihood.parameters.get("noise", 0.0)
    return {"mae": mae, "rmse": rmse, "log_likelihood": log_likelihood, "bound": fit.log_evidence, "noise": noise}
