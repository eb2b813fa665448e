"""Our numbers for the claims of bui2017 on classification, computed from the committed results.

Each function measures one kind of claim; `claims.toml` says which claim is measured by which, and with what arguments.
Those of the study `uci_classification_whole` take `label`: "true", or "A1" for australian with the label whose counts the
paper prints. Where shares of error rates are counted, ties are left out, as in the paper's insets.
"""

from functools import cache

import numpy as np
import pandas as pd

from figures.experiments import claims, runner, significance
from figures.experiments.bui2017 import counts, fig31, uci_classification
from pepcore.datasets.catalogue import registry

STUDY = "uci_classification_whole"
# bui2017 table 2: rows of the two classes, in the order printed, and our name of the set
TABLE_2 = {"australian": (222, 468), "breast_cancer": (239, 443), "crabs": (100, 100), "ionosphere": (126, 224),
           "pima": (500, 267), "sonar": (111, 96)}
EVEN = 50.0
ADVICE = (0.4, 0.5)
UNTIED = 6  # runs: two-sided, all of five have a p-value of 1/16


def sets_with_the_printed_classes():
    """Number of the six data sets whose two class counts are those of the paper's table 2, in whatever order."""
    return float(sum(sorted(registry[name].classes) == sorted(printed) for name, printed in TABLE_2.items()))


# The six sets: uci_classification_whole ---------------------------------------------------------------------------------

@cache
def results(label="true"):
    """The rows of the six sets."""
    return uci_classification.six_sets(runner.results(STUDY), label)


@cache
def losses(metric, label="true"):
    """One row per (data, split, M), one column per power."""
    return uci_classification.table(results(label), metric)


def wins(metric, first, second, label="true"):
    """How often power `first` has the smaller loss, in per cent of the runs that are not tied."""
    return uci_classification.share(losses(metric, label), first, second)


def least_win(metric, alpha, others, label="true"):
    """The smallest share of runs that `alpha` wins against one of the other powers."""
    return _of_shares_against(metric, alpha, others, label, lambda shares: shares.min(axis=0))


def farthest_from_even(metric, alpha, others, label="true"):
    """By how many points the shares that `alpha` wins against the others differ from 50 % at most."""
    return _of_shares_against(metric, alpha, others, label, lambda shares: np.abs(shares - EVEN).max(axis=0))


def _of_shares_against(metric, alpha, others, label, statistic):
    return uci_classification.of_shares(losses(metric, label), [(alpha, other) for other in others], statistic)


def beats_clearly(wide, first, second):
    """Whether the whole interval of `first`'s share lies above 50 %, of six untied runs or more: with fewer no sign test can."""
    found = uci_classification.share(wide, first, second)
    return found is not None and found.low > EVEN and (wide[first] != wide[second]).sum() >= UNTIED


def clear_winners(metric, label="true"):
    """Number of powers that beat every other one, the 95 % interval of each share above 50 %."""
    powers = uci_classification.ALPHAS
    return float(sum(all(beats_clearly(losses(metric, label), one, other) for other in powers if other != one)
                     for one in powers))


@cache
def ranks(metric, label="true"):
    """The average rank of every power, with intervals over splits."""
    return significance.average_ranks(losses(metric, label))


def among_the_best(metric, alphas, label="true"):
    """How many of these powers are among as many best average ranks."""
    return counts.among_places(losses(metric, label), alphas, slice(len(alphas)))


def losses_in_which_the_advice_ranks_best(label="true"):
    """In how many of the two losses α = 0.4 or 0.5 has the best average rank."""
    return counts.losses_whose_best_power(lambda _, best: np.isin(best, ADVICE), _both_losses(label))


def losses_won_by_an_intermediate_power(label="true"):
    """In how many of the two losses the best average rank is neither VFE's nor EP's."""
    return counts.losses_whose_best_power(lambda _, best: (best != 0.0) & (best != 1.0), _both_losses(label))


def _both_losses(label):
    return {metric: losses(metric, label) for metric in uci_classification.METRICS}


def pairs_lost(metric, alphas, label="true"):
    """Of all pairings of one of these powers with one of the others, how many it loses in more than half of the runs."""
    pairs = [(alpha, other) for alpha in alphas for other in uci_classification.ALPHAS if other not in alphas]
    return uci_classification.of_shares(losses(metric, label), pairs, lambda shares: (shares < EVEN).sum(axis=0))


def by_set(metric, label="true"):
    """The losses of each set, as pairs (name, table)."""
    return losses(metric, label).groupby(level="data")


def sets_clearly_won(metric, first, second, label="true"):
    """Number of sets on which the whole 95 % interval of `first`'s share of the untied runs lies above 50 %."""
    return float(sum(beats_clearly(wide, first, second) for _, wide in by_set(metric, label)))


def sets_without_a_clear_winner(metric, first, second, label="true"):
    """Number of sets on which neither of the two wins clearly, see `sets_clearly_won`."""
    return len(by_set(metric, label)) - sum(sets_clearly_won(metric, *pair, label)
                                            for pair in ((first, second), (second, first)))


def sets_won(metric, first, second, label="true"):
    """Number of sets on which `first` has the smaller loss in the mean over splits and M."""
    return counts.sets_won(losses(metric, label), first, second)


def mean_curves(metric, label="true"):
    """The mean over splits: one row per (data, M), one column per power."""
    return losses(metric, label).groupby(level=["data", "M"]).mean().round(counts.DIGITS)


def curves_that_fall_with_M(metric, label="true"):
    """Share of the curves of mean loss against M, one per data set and power, that fall (negative rank correlation)."""
    return counts.curves_that_fall_with_M(losses(metric, label))


def sets_where_powers_come_closer(metric, label="true"):
    """Number of sets on which the mean losses of the powers span less at the largest M than at the smallest."""
    return counts.sets_where_powers_come_closer(losses(metric, label))


def paired_tests(label="true"):
    """Set by set and pair by pair: the mean difference, and the p-values of two tests over splits (means over M).

    Returns
    -------
    DataFrame with the columns metric, first, second, data, difference (negative: `first` is better), wilcoxon, corrected, and
    noticed, the smallest difference that would have a corrected p-value of 5 %
    """
    rows = []
    for metric in uci_classification.METRICS:
        for data, wide in by_set(metric, label):
            of_split = wide.groupby(level="split").mean().round(counts.DIGITS)
            fraction = 1 - registry[data].train_fraction
            for pair in uci_classification.PAIRS:
                first, second = (of_split[alpha] for alpha in pair)
                rows.append({"metric": metric, "first": pair[0], "second": pair[1], "data": data,
                             "difference": (first - second).mean(), "wilcoxon": significance.wilcoxon(first, second),
                             "corrected": significance.corrected_t_test(first, second, fraction),
                             "noticed": significance.noticed(first - second, fraction)})
    return pd.DataFrame(rows)


def verdicts(label="true", intervals=True):
    """Of the claims on the six sets that were fixed before the runs: {id: (our number, verdict)}, with this label.

    Without `intervals` the number alone decides, as it did when these rules were written.
    """
    judged = {}
    for claim in claims.ledger():
        if claim.data == STUDY and not claim.hindsight:
            result = claim.function(**claim.arguments, label=label)
            value, *interval = result if isinstance(result, tuple) else (result,)
            judged[claim.id] = value, claims.verdict(value, claim.reproduced, claim.partly, interval if intervals else ())
    return judged


# MNIST: bui_fig31 -------------------------------------------------------------------------------------------------------

def mnist(M):
    """The mean over the seeds of the study with M pseudo-inputs, by power."""
    table = runner.results("bui_fig31")
    return table[table["M"] == M].groupby("alpha").mean(numeric_only=True)


def mnist_by_seed(M, column):
    """One column of that study with M pseudo-inputs: seeds by powers."""
    table = runner.results("bui_fig31")
    return table[table["M"] == M].pivot(index="seed", columns="alpha", values=column)


def mnist_time_over_vfe(M, alpha):
    """Processor time of all steps at this power, over that at α = 0: mean over the seeds, with Student's interval."""
    seconds = mnist_by_seed(M, f"seconds_{fig31.CHECKPOINTS[-1]}")
    return significance.student(seconds[alpha] / seconds[0.0])


def mnist_powers_that_learn(M):
    """Number of powers whose last mean test error is at most half of the one at the first look, after ten steps."""
    first, last = (mnist_by_seed(M, f"error_rate_{number}") for number in (fig31.CHECKPOINTS[0], fig31.CHECKPOINTS[-1]))
    return float((last.mean() <= first.mean() / 2).sum())
