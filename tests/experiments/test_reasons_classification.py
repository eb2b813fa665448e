"""The numbers that `why` gives in the claims of bui2017 on classification, beside those that the ledger measures."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import spearmanr

from figures.experiments import claims, runner, significance
from figures.experiments.bui2017 import classification_claims, fig23, fig31, uci_classification

LEDGER = claims.ledger()
WHY = {claim.id: claim.why for claim in LEDGER}
INTERVAL = {claim.id: claim.interval for claim in LEDGER}


def test_the_shares_and_ties_of_half():
    against_vfe, against_ep = (classification_claims.wins("error_rate", 0.5, other).value for other in (0.0, 1.0))
    assert f"wins {against_vfe:.0f} % against VFE and {against_ep:.0f} % against EP" in WHY["bui-fig6-error-half"]
    wide = classification_claims.losses("error_rate")
    ties = {other: 100 * (wide[0.5] == wide[other]).mean() for other in (0.0, 1.0)}
    assert (f"Of the pairs with EP {ties[1.0]:.0f} % are ties, and {ties[0.0]:.0f} % of those with VFE"
            in WHY["bui-fig6-error-half"])


def test_the_smaller_share_of_half_may_be_even():
    low, high = INTERVAL["bui-fig6-error-half"]
    assert low < 45 < 50 < high
    assert "The interval of the smaller share holds 50 % and begins below 45," in WHY["bui-fig6-error-half"]


def test_the_share_of_vfe_may_be_even():
    value, low, high = classification_claims.wins("error_rate", 0.0, 1.0)
    assert (f"The share is {value:.0f} %, and its interval, {low:.0f} to {high:.0f} %, holds 50 %." in WHY["bui-fig6-error-vfe"]
            and low < 50 < high)


def test_the_share_of_ep_on_breast_cancer():
    untied = dict(iter(classification_claims.by_set("error_rate")))["breast_cancer"]
    won = uci_classification.share(untied, 1.0, 0.0)
    assert f"EP wins {won.value:.0f} % of the runs" in WHY["bui-fig25-error-ep"] and won.low < 50


def test_the_sets_on_which_half_wins_most_runs_against_ep():
    won = {name: (wide[0.5] < wide[1.0]) for name, wide in classification_claims.by_set("nll")}
    assert sum(part.mean() > 0.5 for part in won.values()) == 5
    sonar = won["sonar"].sum(), (~won["sonar"]).sum()
    assert f"better on five of six (on sonar by {sonar[0]} runs to {sonar[1]}), as there" in WHY["bui-fig26-nll"]


def test_the_pairs_of_powers_that_the_error_tells_apart():
    wide = classification_claims.losses("error_rate")
    shares = {pair: uci_classification.share(wide, *pair) for pair in combinations(uci_classification.ALPHAS, 2)}
    apart = [pair for pair, share in shares.items() if not share.low <= 50 <= share.high]
    assert apart == [(0.0, 0.5), (0.05, 0.5), (0.2, 0.5), (0.4, 0.5)] and all(shares[pair].value < 50 for pair in apart)
    assert (f"Of the {len(shares)} pairs four have an interval without 50 %: 0.5 is ahead of 0, 0.05, 0.2 and 0.4."
            in WHY["bui-fig7-error"])


def test_half_is_clearly_better_than_vfe_on_sonar_alone():
    clear = {name: [classification_claims.beats_clearly(part, *pair) for pair in ((0.5, 0.0), (0.0, 0.5))]
             for name, part in classification_claims.by_set("nll")}
    assert [name for name, (half, _) in clear.items() if half] == ["sonar"] and not any(vfe for _, vfe in clear.values())


def in_order(ranks):
    """The powers, the best average rank first."""
    return sorted(ranks, key=lambda alpha: ranks[alpha].value)


def test_the_order_of_ranks_in_log_loss():
    rank = classification_claims.ranks("nll")
    order = in_order(rank)
    assert order[:3] == [0.8, 0.5, 0.4] and order[-2] == 0.0
    assert np.ptp([estimate.value for estimate in rank.values()]) < 1
    apart = significance.critical_difference(len(rank), 6)
    assert (f"The three best are 0.8, 0.5 and 0.4; VFE is last but one. But all ranks lie within one of each other, and with six "
            f"sets two must be {apart:.1f} apart to differ.") in WHY["bui-fig7-nll-best"]


def test_the_duels_that_large_powers_lose():
    others = [alpha for alpha in uci_classification.ALPHAS if alpha not in (0.8, 1.0)]
    lost = {alpha: sum(classification_claims.wins("nll", alpha, other).value < 50 for other in others) for alpha in (0.8, 1.0)}
    assert lost == {0.8: 0, 1.0: 6} and INTERVAL["bui-fig7-nll-worst"] == [4, 10]
    assert WHY["bui-fig7-nll-worst"].startswith("EP loses against each of the six, 0.8 against none of them.")
    assert "With other splits they lose 4 to 10." in WHY["bui-fig7-nll-worst"]


def test_the_two_powers_that_are_first_in_rank():
    error, nll = (classification_claims.ranks(metric) for metric in ("error_rate", "nll"))
    first, second = (in_order(ranks)[:2] for ranks in (error, nll))
    assert first == [0.5, 0.8] and second == [0.8, 0.5]
    assert (f"In error 0.5 is first, {error[0.8].value - error[0.5].value:.2f} of a rank ahead of 0.8; "
            f"in negative log-likelihood 0.8 is, {nll[0.5].value - nll[0.8].value:.2f} of a rank ahead of 0.5;"
            in WHY["bui-fig7-advice"])


@pytest.mark.parametrize(("name", "metric"), [("bui-fig28-M", "error_rate"), ("bui-fig30-M", "nll")])
def test_the_curves_that_fall_with_M(name, metric):
    runs = classification_claims.results()
    converged = runs[runs["data"] != "sonar"].groupby("M")["converged"].mean()
    fall, rise = curves_with_M(classification_claims.mean_curves(metric).drop("sonar"))
    assert f"{fall} of 40 curves fall and {rise} rise." in WHY[name]
    assert f"{100 * converged[10]:.0f} % converged at M = 10, {100 * converged[100]:.0f} % at 100." in WHY[name]


def test_the_share_of_curves_that_may_fall():
    low, high = INTERVAL["bui-fig30-M"]
    assert f"With other splits {low:.0f} to {high:.0f} % of the curves fall." in WHY["bui-fig30-M"]


def test_on_how_many_sets_the_errors_are_close_already():
    curves = classification_claims.mean_curves("error_rate").xs(10, level="M")
    assert (np.ptp(curves, axis=1) < 0.01).sum() == 4
    assert "within one label in a hundred of each other at M = 10 already on four of the sets" in WHY["bui-fig28-closer"]
    assert INTERVAL["bui-fig28-closer"] == [2, 5] and "With other splits it is two to five sets." in WHY["bui-fig28-closer"]


def curves_with_M(curves):
    """How many of the curves of `mean_curves` fall with M, and how many rise."""
    size = curves.index.get_level_values("M")
    signs = [np.sign(spearmanr(size[curves.index.get_level_values("data") == data], curve).statistic)
             for data, part in curves.groupby(level="data") for _, curve in part.items() if np.ptp(curve) > 0]
    return signs.count(-1), signs.count(1)


def test_the_ends_of_two_intervals():
    apart = classification_claims.farthest_from_even("nll", 0.0, [0.5, 1.0])
    assert f"from {apart.low:.0f} to {apart.high:.0f} points" in WHY["bui-fig6-nll-others"]
    _, low, high = classification_claims.wins("nll", 0.5, 1.0)
    assert f"it begins at {low:.0f} %" in WHY["bui-fig6-nll-half"] and high < 65
    assert f"it ends at {high:.1f} %, just below the paper's 65 %" in WHY["bui-fig6-nll-half"]


@pytest.mark.parametrize(("name", "M", "words"), [
    ("bui-fig31", 100, "{:.2f} to {:.2f} times as much in three seeds"),
    ("bui-fig32", 200, "{:.2f} to {:.2f} times as much as it")])
def test_the_time_of_ep_over_that_of_variational_inference(name, M, words):
    seconds = classification_claims.mnist_by_seed(M, f"seconds_{fig31.CHECKPOINTS[-1]}")
    ratio = seconds[1.0] / seconds[0.0]
    assert words.format(ratio.min(), ratio.max()) in WHY[name]


def test_how_many_pseudo_inputs_leave_the_hull_of_the_data():
    outside = fig23.distances(runner.results("bui_fig23"))["outside"]
    assert 0.35 <= outside[1.0] < 0.45
    assert "They go farther out than the data; four in ten leave the data's hull." in WHY["bui-fig23-spread"]


def test_the_interval_of_the_spread_begins_just_below_two():
    low, _ = INTERVAL["bui-fig23-spread"]
    assert 1.95 < low < 2 and WHY["bui-fig23-spread"].startswith("Inconclusive by a hair: the interval begins just below 2.")
