"""Which sparse GP is Csató's? One fixed basis, ρ from Power EP's moment matching (0) to his projection (1).

The basis is 20 training rows of the split, out of up to 400. Each run compares the fit at one ρ with Power EP at
alpha = 1 − ρ on the same basis: in regression the posteriors are one and the same, ρ = 0 is FITC and ρ = 1 is VFE.
"""

import numpy as np

from figures.drawing import style
from figures.experiments.csato2002 import problems
from pepcore import power_ep
from pepcore.online import fixed_basis

__all__ = ["FIGURES", "OUTPUTS", "compute", "curves", "draw", "grid"]

SPLITS, RHOS = range(10), (0.0, 0.25, 0.5, 0.75, 1.0)
ROWS, M = 400, 20
OUTPUTS = ("loss", "nll", "loss_pep", "nll_pep", "log_evidence", "log_evidence_pep", "mean_distance", "log_sd_distance",
           "sweeps")


def grid():
    """All runs, split by split."""
    return [{"data": data, "split": split, "rho": rho} for split in SPLITS for data in problems.DATA for rho in RHOS]


def compute(data, split, rho):
    """The fit at ρ beside Power EP at 1 − ρ; distances are root mean squares over the test rows.

    `loss` is the SMSE or the error rate, `mean_distance` is in standard deviations of Power EP's f, `log_sd_distance` is
    that of the logarithms of the standard deviations.
    """
    problem = problems.problem(data, split, ROWS)
    kernel, likelihood, X, y = problem.kernel, problem.likelihood, problem.X, problem.y
    fit = fixed_basis.infer(kernel, X[:M], X, y, likelihood, rho=rho)
    pep = power_ep.infer(kernel, X[:M], X, y, likelihood, alpha=1 - rho)
    (mean, variance), (pep_mean, pep_variance) = fit.predict_f(problem.X_test), pep.predict_f(problem.X_test)
    (error, nll), (pep_error, pep_nll) = problem.loss(fit.posterior), problem.loss(pep.posterior)
    return {"loss": error, "nll": nll, "loss_pep": pep_error, "nll_pep": pep_nll, "log_evidence": fit.log_evidence,
            "log_evidence_pep": pep.log_evidence, "mean_distance": _rms((mean - pep_mean) / np.sqrt(pep_variance)),
            "log_sd_distance": _rms(0.5 * np.log(variance / pep_variance)), "sweeps": fit.sweeps}


def _rms(values):
    return float(np.sqrt(np.mean(values**2)))


def curves(results, column):
    """Mean over the splits, one row per ρ, one column per data set."""
    return results.pivot_table(index="rho", columns="data", values=column, aggfunc="mean")[list(problems.DATA)]


def draw(fig, results):
    """Classification: test NLL along ρ, and that of Power EP along alpha = 1 − ρ, one panel per data set."""
    nll, pep = curves(results, "nll"), curves(results, "nll_pep")
    for ax, data in zip(fig.subplots(1, len(problems.CLASSIFICATION)), problems.CLASSIFICATION):
        ax.plot(nll.index, nll[data], color=style.colours["highlight"], marker=".", label="projection, ρ")
        ax.plot(pep.index, pep[data], color=style.colours["data"], ls="--", marker=".", label="Power EP, α = 1 − ρ")
        ax.set_xticks([0, 0.5, 1], ["0", "½", "1"])
        ax.locator_params(axis="y", nbins=4)
        style.label(ax, x="ρ", title=data)
    fig.axes[0].set_ylabel("NLL, nats")
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)


FIGURES = {"csa_fitc": (draw, (7.0, 3.2))}
