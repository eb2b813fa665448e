"""Our numbers for the claims of bui2017 on regression, computed from the committed results.

Each function measures one kind of claim; `claims.toml` says which claim is measured by which, and with what arguments.
"""

from functools import cache

import numpy as np

from figures.experiments import runner, significance
from figures.experiments.bui2017 import counts, fig3, gap, uci_regression
from pepcore.datasets.catalogue import registry

STUDY = "uci_whole"
VFE, EP = 0.0, 1.0
ADVICE = {"smse": 0.5, "smll": EP}      # of the paper, for each loss
INTERMEDIATE = (20, 50, 100, 200)       # sizes M of the toy study that are neither tiny nor all the data
MOVED = 0.05                            # nats from the full GP's evidence that tell a search which has left Z = X

# bui2017 table 1: rows for training and for testing
TABLE_1 = {"boston": (455, 51), "concrete": (927, 103), "energy": (691, 77), "kin8nm": (7373, 819), "naval": (10741, 1193),
           "yacht": (277, 31), "power": (8611, 957), "wine_red": (1439, 160)}


@cache
def results(study_id):
    """The committed results, read once."""
    return runner.results(study_id)


def _columns(table):
    return [table[name] for name in table]


# The toy study: bui_fig3 ----------------------------------------------------------------------------------------------

def toy_powers_that_reach_the_full_gp(metric, M, within):
    """Number of the eight powers whose mean loss with M pseudo-inputs is within a distance of the full GP's."""
    toy = results("bui_fig3").set_index("data")
    sparse = toy[(toy["method"] == "sparse") & (toy["M"] == M)].pivot(columns="alpha", values=metric)
    apart = sparse.sub(toy.loc[toy["method"] == "full", metric], axis=0)
    return significance.of_means(_columns(apart), lambda *means: (np.abs(means) <= within).sum(axis=0))


def toy_overestimation(alpha):
    """The log evidence above the full GP's, in nats: one row per data set, one column per M."""
    toy = results("bui_fig3")
    exact = toy[toy["method"] == "full"].set_index("data")["nlml"]
    sparse = toy[(toy["method"] == "sparse") & (toy["alpha"] == alpha)].pivot(index="data", columns="M", values="nlml")
    return sparse.rsub(exact, axis=0)


def toy_largest_overestimation(alpha):
    """The most that the mean log evidence lies above the full GP's at an intermediate M, in nats, with its interval."""
    return significance.of_means(_columns(toy_overestimation(alpha)[list(INTERMEDIATE)]), lambda *means: np.max(means, axis=0))


def toy_overestimation_at_the_end(alpha):
    """The over-estimation at M = N as a share of the largest one at an intermediate M, in per cent, with its interval.

    Of the data sets on which the search at M = N has left its start; on the others no sparse method has been fitted.
    """
    over = toy_overestimation(alpha)
    left = over[over[fig3.TRAIN].abs() > MOVED]
    return significance.of_means(_columns(left[[*INTERMEDIATE, fig3.TRAIN]]),
                                 lambda *means: 100 * means[-1] / np.max(means[:-1], axis=0))


def toy_sets_overestimated(alpha, M):
    """Share of the data sets whose log evidence lies above the full GP's, in per cent, with its exact interval."""
    above = toy_overestimation(alpha)[M] > 0
    return significance.exact_percentage(int(above.sum()), len(above))


def toy_best_power(metric):
    """The power whose loss is smallest in the mean over data sets and M, with its interval."""
    toy = results("bui_fig3")
    losses = toy[toy["method"] == "sparse"].pivot_table(index="data", columns="alpha", values=metric, aggfunc="mean")
    return significance.of_means(_columns(losses), lambda *means: counts.at_smallest(losses.columns, means))


# Learning hyper-parameters of the full GP: bui_fig8 ---------------------------------------------------------------------

def full_gp(N):
    """The rows of the study for N training points."""
    table = results("bui_fig8")
    return table[table["N"] == N]


def learnt_over_true_smse():
    """How much larger the SMSE is with learnt than with true hyper-parameters, in per cent, mean over data sets."""
    table = full_gp(500)
    return significance.of_means([table["smse_learnt"] / table["smse_true"]], lambda mean: 100 * (mean - 1))


def learnt_minus_true_smll():
    """How much larger the SMLL is with learnt than with true hyper-parameters, mean over data sets, in nats."""
    table = full_gp(500)
    return significance.of_means([table["smll_learnt"] - table["smll_true"]])


def evidence_gain_of_learning():
    """Log evidence with learnt minus that with true hyper-parameters, mean over data sets, in nats."""
    table = full_gp(500)
    return significance.of_means([table["nlml_true"] - table["nlml_learnt"]])


def _smse_over_training(N, hyper):
    table = full_gp(N)
    return table[f"smse_{hyper}"] / table[f"smse_train_{hyper}"]


def smse_over_training(N):
    """SMSE on the test half over that on the training half, mean over data sets."""
    return significance.of_means([_smse_over_training(N, "learnt")])


def smse_over_training_against_true(N):
    """`smse_over_training` with learnt hyper-parameters over the same with true ones, which cannot overfit."""
    return significance.of_means([_smse_over_training(N, hyper) for hyper in ("learnt", "true")], np.divide)


def smll_above_training(N):
    """SMLL on the test half minus that on the training half, mean over data sets, in nats."""
    table = full_gp(N)
    return significance.of_means([table["smll_learnt"] - table["smll_train_learnt"]])


# Errors on both halves with EP and 0.8: bui_gap ------------------------------------------------------------------------

def sparse_smse_over_training():
    """SMSE on the test half over that on the training half, mean over powers, sizes and data sets."""
    return significance.of_means([gap.ratios(results("bui_gap"))])


def sparse_smll_above_training():
    """SMLL on the test half minus that on the training half, mean over powers, sizes and data sets, in nats."""
    return significance.of_means([gap.differences(results("bui_gap"))])


# Real data: uci_whole ---------------------------------------------------------------------------------------------------

@cache
def losses(metric):
    """One row per (data, split, M), one column per power."""
    return uci_regression.table(results(STUDY), metric)


def wins(metric, first, second):
    """How often power `first` has the smaller loss, in per cent of the runs of a set, mean over sets, with its interval."""
    return significance.win_percentage(losses(metric), first, second)


def powers_beaten(metric, alpha, leave_out=()):
    """Number of other powers, but for those left out, against which `alpha` wins more than half of all runs."""
    return _majorities(metric, [(alpha, other) for other in uci_regression.ALPHAS if other != alpha and other not in leave_out])


def steps_up(metric):
    """Number of the seven neighbours in the list of powers of which the larger power wins more than half of all runs."""
    powers = uci_regression.ALPHAS
    return _majorities(metric, zip(powers[1:], powers))


def _majorities(metric, pairs):
    """Of how many pairs the first power wins more than half of all runs."""
    won = [significance.percentages_won(losses(metric), *pair) for pair in pairs]
    return significance.of_means(won, lambda *means: (np.array(means) > 50).sum(axis=0))


def losses_in_which_the_advice_ranks_best():
    """In how many of the two losses the power that is advised has the best average rank: 0.5 in SMSE, EP in SMLL."""
    return counts.losses_whose_best_power(lambda metric, best: best == ADVICE[metric], _both_losses())


def losses_won_by_an_intermediate_power():
    """In how many of the two losses the best average rank is neither VFE's nor EP's."""
    return counts.losses_whose_best_power(lambda metric, best: (best != VFE) & (best != EP), _both_losses())


def _both_losses():
    return {metric: losses(metric) for metric in uci_regression.METRICS}


def best_rank(metric):
    """The power with the best average rank, with its interval over splits."""
    return counts.best_rank(losses(metric))


def extremes_among_worst(metric):
    """How many of the two powers with the worst average ranks are 0 and 1."""
    return counts.among_places(losses(metric), (VFE, EP), slice(-2, None))


def rank_behind_the_best(metric, alpha):
    """By how much the average rank of `alpha` is worse than the best, with its interval over splits."""
    place = uci_regression.ALPHAS.index(alpha)
    return significance.of_means(counts.rank_columns(losses(metric)), lambda *means: means[place] - np.min(means, axis=0))


def sets_won(metric, first, second, by=0.0):
    """On how many of the eight data sets `first` has the smaller loss in the mean over splits and M, see `counts.sets_won`."""
    return counts.sets_won(losses(metric), first, second, by)


def win_over_loss(metric, first, second, summary="median"):
    """The median, mean or largest ("max") margin by which `first` wins over that by which it loses, in the metric's units."""
    margin = losses(metric)[second] - losses(metric)[first]
    return float(margin[margin > 0].agg(summary) / -margin[margin < 0].agg("min" if summary == "max" else summary))


def summaries_that_favour(metric, first, second):
    """By how many of median, mean and largest margin the wins of `first` over `second` are larger than its losses."""
    return float(sum(win_over_loss(metric, first, second, summary) > 1 for summary in ("median", "mean", "max")))


def largest_loss_over_largest_win(metric, first, second):
    """The largest margin by which `first` loses over the largest by which it wins."""
    return 1 / win_over_loss(metric, first, second, "max")


def curves_that_fall_with_M(metric):
    """Share of the curves of mean loss against M, one per data set and power, that fall (negative rank correlation)."""
    return counts.curves_that_fall_with_M(losses(metric))


def regression_sets_of_the_same_size():
    """Number of the eight data sets that have as many training and test rows here as in the paper's table 1."""
    ours = {name: round(registry[name].train_fraction * registry[name].N) for name in TABLE_1}
    return float(sum((ours[name], registry[name].N - ours[name]) == printed for name, printed in TABLE_1.items()))
