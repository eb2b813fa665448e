"""Our numbers for the claims of csato2002, chapter 4, and of bui2017 about it.

Each function measures one kind of claim; `claims.toml` says which claim is measured by which, and with what arguments.
"""

from functools import cache

import numpy as np

from figures.experiments import runner, significance
from figures.experiments.csato2002 import nystrom, order, problems, sweeps
from pepcore import Gaussian, Matern52, Probit
from pepcore.online import projection
from pepcore.online.process import Process
from pepcore.online.sequential import DirectedSites, Learner


@cache
def results(study_id):
    """The committed results, read once."""
    return runner.results(study_id)


def _by_split(study_id):
    return results(study_id).set_index(["data", "split"])


def _per_cent(holds):
    """Of the runs of all splits, which come in equal numbers, those for which something holds, with an interval."""
    return significance.of_means([100.0 * holds.groupby(level=["data", "split"]).mean()])


def parametrisations(trials=20, N=15, budget=6):
    """The largest difference between (α, C) and the same from (a, Λ, P), and back, after random visits and removals."""
    differences = []
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        kernel, X = Matern52(1.5, 0.9), rng.normal(size=(N, 2))
        y = np.where(X[:, 0] + 0.5 * rng.normal(size=N) > 0, 1.0, -1.0)
        sites = DirectedSites(N, budget + 1)
        learner = Learner(Process(kernel, 2, budget + 1), Probit() if seed % 2 else Gaussian(0.2), budget, 1e-3, sites=sites)
        for _ in range(4):
            learner.sweep(X, y, rng.integers(N, size=N))
            learner.drop(int(rng.choice(learner.process.used)))
        process = learner.process.compact()
        P, K = sites.A @ learner.process.W[:, learner.process.used], kernel(process.Z)
        there = projection.natural_parameters(K, sites.tau, sites.nu, P)
        back = projection.site_parameters(K, process.alpha, process.C)
        pairs = [*zip(there, (process.alpha, process.C)), *zip(back, (P.T @ (sites.tau[:, None] * P), P.T @ sites.nu))]
        differences += [np.abs(one - other).max() for one, other in pairs]
    return float(max(differences))


def order_left_by_ep():
    """How far two orders of the data are apart after EP, over the same after one sweep; median, classification sets."""
    part = order.spread(results("csa_order"), "all").loc[list(problems.CLASSIFICATION)]
    return float((part["ep"] / part["online"]).median())


def order_after_one_sweep():
    """How far two orders are apart after one sweep, in standard deviations; the least of the classification sets' medians."""
    return float(order.spread(results("csa_order"), "all").loc[list(problems.CLASSIFICATION), "online"].min())


def steady_after(sweep, metric):
    """In how many per cent of the runs the metric is within two per cent (error) or 0.02 nats (NLL) of its last value."""
    runs = _by_split("csa_sweeps")
    return _per_cent(sweeps.is_steady(runs, metric, sweep))


def nystrom_negative():
    """Test rows with a negative Nyström variance, in per cent, over all runs with at most 50 basis vectors."""
    runs = _by_split("csa_nystrom")
    return significance.of_means([runs.loc[runs["M"] <= 50, "negative"].groupby(level=["data", "split"]).mean()])


def lowest_sparse_variance():
    """The least variance of sparse EP on any test row of any run, in units of the prior variance."""
    return float(results("csa_nystrom")["lowest_sparse_ep"].min())


def nystrom_better():
    """In how many per cent of the runs, of those with fewer basis vectors than data, Nyström has the smaller error."""
    return _per_cent(nystrom.is_better(_by_split("csa_nystrom")))


def regression_distance(rho):
    """Projection at ρ against Power EP at alpha = 1 − ρ in regression: the largest distance of means and deviations."""
    runs = results("csa_fitc")
    part = runs[runs["data"].isin(problems.REGRESSION) & (runs["rho"] == rho)]
    return float(part[["mean_distance", "log_sd_distance"]].max().max())


def sparse_ep_beats_one_sweep(metric):
    """In how many per cent of the runs with a budget sparse EP has the smaller loss than one sweep, with an interval."""
    runs = results("csa_size")
    wide = runs[runs["limit"] == "budget"].set_index(["data", "split", "M"])
    columns = {f"{metric}_sparse_ep": "sparse_ep", f"{metric}_online": "online"}
    return significance.win_percentage(wide[list(columns)].rename(columns=columns), "sparse_ep", "online")
