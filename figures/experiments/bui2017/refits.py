"""How exactly does a run come out again? Fits repeated with targets that differ by one part in 10¹².

Another processor rounds differently. An optimiser that is stopped after so many evaluations magnifies that: after five
evaluations by little, after hundreds by so much that the digits of a single run mean nothing. How many digits do is
measured here and gives the tolerance to which the committed rows of the studies are tested to come out again.
"""

import numpy as np

from figures.experiments.bui2017 import fig3, uci_regression

PERTURBATION = 1e-12
SHORT, LONG = 5, 500        # evaluations
SHARE = 0.95
# What this share of the long runs keeps to, rounded up: the SMSE by a fraction of itself, the SMLL in nats. EP, whose
# noise vanishes, is the reason that it is so much; half of all runs keep to a fiftieth of it or less.
TOLERANCE = {"smse": 0.04, "smll": 0.009}
OUTPUTS = ("smse", "smll", "change_of_smse", "change_of_smll")


def grid():
    """Runs of the two studies of regression, small and middling M, the ends and the middle of the powers."""
    sets = [("uci_regression", data) for data in uci_regression.SMALL] + [("bui_fig3", str(seed)) for seed in range(3)]
    return [{"study": study, "data": data, "M": M, "alpha": alpha, "evaluations": evaluations}
            for evaluations in (SHORT, LONG) for study, data in sets for M in (5, 20, 50) for alpha in (0.0, 0.5, 1.0)]


def compute(study, data, M, alpha, evaluations):
    """One fit and its repetition: the losses, and by how much they change (the SMSE by a fraction of itself)."""
    before, after = (fit(study, data, M, alpha, evaluations, perturbation) for perturbation in (0.0, PERTURBATION))
    return {"smse": before["smse"], "smll": before["smll"], "change_of_smse": abs(after["smse"] / before["smse"] - 1),
            "change_of_smll": abs(after["smll"] - before["smll"])}


def fit(study, data, M, alpha, evaluations, perturbation=0.0):
    """The outputs of one run of the study."""
    settings = {"M": M, "alpha": alpha, "max_evaluations": evaluations, "perturbation": perturbation}
    if study == "uci_regression":
        return uci_regression.compute(data=data, split=0, **settings)
    return fig3.compute(data=int(data), method="sparse", **settings)


def tolerance(results, metric, share=SHARE):
    """The change that this share of the long runs does not exceed."""
    long = results[results["evaluations"] == LONG]
    return float(np.quantile(long[f"change_of_{metric}"], share))


def changed_winners(results, margin, metric, first, second, repetitions=1000):
    """In how many per cent of the comparisons of `uci_regression` another rounding would change the winner.

    Both losses are moved, up or down by chance, by a change drawn from the three long refits (M = 5, 20, 50 of one split) of
    the same data set and power; larger M probably change by more.

    Parameters
    ----------
    margin : Series with the index levels data, split, M, as `uci_regression.margins` returns for `first` and `second`
    """
    rng, changed = np.random.default_rng(0), []
    long = results[(results["evaluations"] == LONG) & (results["study"] == "uci_regression")]
    for data, part in margin.groupby(level="data"):
        moved = np.tile(part.to_numpy(), (repetitions, 1))
        for alpha in (first, second):
            changes = long.loc[(long["data"] == data) & (long["alpha"] == alpha), f"change_of_{metric}"].to_numpy()
            moved += rng.choice([-1, 1], moved.shape) * rng.choice(changes, moved.shape)
        changed.append(((moved > 0) != (part.to_numpy() > 0)).mean(axis=0))
    return 100 * float(np.mean(np.concatenate(changed)))
