"""How exactly does a run come out again? Fits repeated with targets that differ by one part in 10¹².

Another processor rounds differently. An optimiser that is stopped after so many evaluations magnifies that: after five
evaluations by little, after hundreds by so much that the digits of a single run mean nothing. How many digits do is
measured here and gives the tolerance to which the committed rows of the studies are tested to come out again.
"""

import numpy as np

from figures.experiments.bui2017 import fig3, uci_regression, uci_whole

PERTURBATION = 1e-12
# evaluations: five, the budget of `uci_regression` and `bui_fig3`, and that of the small sets of `uci_whole`
SHORT, MIDDLE, LONG = 5, uci_regression.MAX_EVALUATIONS, uci_whole.MAX_EVALUATIONS["small"]
SHARE = 0.95
# What this share of the runs with a budget keeps to, rounded up: the SMSE by a fraction of itself, the SMLL in nats. EP,
# whose noise vanishes, is the reason that it is so much; half of all runs keep to a fiftieth of it or less.
TOLERANCE = {MIDDLE: {"smse": 0.04, "smll": 0.009}, LONG: {"smse": 0.03, "smll": 0.0105}}
OUTPUTS = ("smse", "smll", "change_of_smse", "change_of_smll")


def grid():
    """Runs of the studies of regression, small and middling M, the ends and the middle of the powers."""
    real, toy = uci_regression.SMALL, [str(seed) for seed in range(3)]
    budgets = [(SHORT, "uci_regression", real), (SHORT, "bui_fig3", toy), (MIDDLE, "uci_regression", real),
               (MIDDLE, "bui_fig3", toy), (LONG, "uci_whole", real)]
    return [{"study": study, "data": data, "M": M, "alpha": alpha, "evaluations": evaluations}
            for evaluations, study, sets in budgets for data in sets for M in (5, 20, 50) for alpha in (0.0, 0.5, 1.0)]


def compute(study, data, M, alpha, evaluations):
    """One fit and its repetition: the losses, and by how much they change (the SMSE by a fraction of itself)."""
    before, after = (fit(study, data, M, alpha, evaluations, perturbation) for perturbation in (0.0, PERTURBATION))
    return {"smse": before["smse"], "smll": before["smll"], "change_of_smse": abs(after["smse"] / before["smse"] - 1),
            "change_of_smll": abs(after["smll"] - before["smll"])}


def fit(study, data, M, alpha, evaluations, perturbation=0.0):
    """The outputs of one run of the study."""
    settings = {"M": M, "alpha": alpha, "max_evaluations": evaluations, "perturbation": perturbation}
    if study == "bui_fig3":
        return fig3.compute(data=int(data), method="sparse", **settings)
    return uci_regression.compute(data=data, split=0, **settings)


def tolerance(results, metric, evaluations, share=SHARE):
    """The change that this share of the runs with this budget does not exceed."""
    runs = results[results["evaluations"] == evaluations]
    return float(np.quantile(runs[f"change_of_{metric}"], share))


def changed_winners(results, margin, metric, first, second, repetitions=1000):
    """In how many per cent of the comparisons of `uci_whole` another rounding would change the winner.

    Both losses are moved, up or down by chance, by a change drawn from the three long refits (M = 5, 20, 50 of one split) of
    the same data set and power; larger M probably change by more.

    Parameters
    ----------
    margin : Series with the index levels data, split, M, as `uci_regression.margins` returns for `first` and `second`
    """
    rng, changed = np.random.default_rng(0), []
    long = results[results["evaluations"] == LONG]
    for data, part in margin.groupby(level="data"):
        moved = np.tile(part.to_numpy(), (repetitions, 1))
        for alpha in (first, second):
            changes = long.loc[(long["data"] == data) & (long["alpha"] == alpha), f"change_of_{metric}"].to_numpy()
            moved += rng.choice([-1, 1], moved.shape) * rng.choice(changes, moved.shape)
        changed.append(((moved > 0) != (part.to_numpy() > 0)).mean(axis=0))
    return 100 * float(np.mean(np.concatenate(changed)))
