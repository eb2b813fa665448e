"""What the chapter on α in classification says in words, beside the outputs of its cells: computed from the results."""

import pytest
from prose import prose

from figures.experiments import runner, significance
from figures.experiments.bui2017 import classification_claims as measured
from figures.experiments.bui2017 import fig31, uci_classification

SAID = prose("which-alpha-classification")
LARGE = 100     # an amplitude that makes probabilities 0 and 1


@pytest.fixture(scope="module")
def six():
    return measured.results()


@pytest.fixture(scope="module")
def shorter():
    """The six sets with 200 evaluations, and the rows of the longer study beside them."""
    short = uci_classification.six_sets(runner.results("uci_classification"))
    return short.merge(measured.results(), on=["data", "split", "M", "alpha"], suffixes=("_short", ""))


def test_two_of_six_intervals_exclude_even():
    shares = {(metric, pair): measured.wins(metric, *pair)
              for metric in uci_classification.METRICS for pair in uci_classification.PAIRS}
    apart = {key for key, share in shares.items() if not share.low <= 50 <= share.high}
    assert apart == {("error_rate", (0.5, 0.0)), ("nll", (0.5, 1.0))}
    assert round(shares["nll", (0.5, 0.0)].low) == 50 and "(That against VFE in NLL begins at 50 %.)" in SAID
    assert "Two of the six intervals exclude 50 %, both in favour of $\\alpha = 0.5$: against VFE in error," in SAID


def test_half_is_clearly_ahead_of_vfe_on_one_set():
    clear = {metric: {name for name, wide in measured.by_set(metric) if measured.beats_clearly(wide, 0.5, 0.0)}
             for metric in uci_classification.METRICS}
    assert set(clear) == {"error_rate", "nll"} and all(sets == {"sonar"} for sets in clear.values())
    assert "the differences on these sets are small: only on sonar does the interval for 0.5's wins lie above 50 %." in SAID


def test_how_close_the_dots_lie():
    losses = measured.losses("nll")
    apart = [((losses[1.0] - losses[other]).abs() > 0.05).mean() for other in (0.0, 0.5)]
    assert all(0.25 < share < 0.3 for share in apart)
    assert "in NLL more than a quarter of the pairs with EP are over 0.05 nats apart." in SAID


def test_the_smallest_difference_that_would_be_significant():
    tests = measured.paired_tests().query("metric == 'error_rate'").set_index(["first", "second"])
    noticed = {pair: 100 * tests.loc[[pair], "noticed"] for pair in ((0.5, 0.0), (0.5, 1.0))}
    vfe, ep = ([f"{part.min():.1f}", f"{part.max():.1f}"] for part in noticed.values())
    assert f"had to be {vfe[0]} to {vfe[1]} percentage points of error, depending on the set, and one between 0.5 and EP " in SAID
    assert f"0.5 and EP {ep[0]} to {ep[1]}. We found at most {100 * tests['difference'].abs().max():.1f}." in SAID
    assert (measured.paired_tests().groupby(["metric", "first", "second"])["corrected"].transform(significance.holm) > 0.05).all()


def test_ties_and_the_error_of_half():
    losses = measured.losses("error_rate")
    ties = [100 * (losses[first] == losses[second]).mean() for first, second in uci_classification.PAIRS]
    by_set = 100 * (losses[0.0] - losses[0.5]).groupby(level="data").mean()
    assert f"Of the pairs {min(ties):.0f} to {max(ties):.0f} % are ties;" in SAID
    assert by_set["sonar"] / by_set.sum() > 0.5
    assert f"Over all pairs its error is {by_set.mean():.1f} percentage points lower, most of it on sonar." in SAID


def test_what_ep_gains_and_loses():
    losses = measured.losses("nll")
    gain = (losses[0.0] - losses[1.0]).groupby(level="data").mean().sort_values()
    assert [f"{abs(value):.2f}" for value in gain.iloc[[0, 1, -2, -1]]] == ["0.03", "0.02", "0.02", "0.03"]
    assert "compared with VFE it gains 0.02 and 0.03 nats on two sets and loses as much on two others" in SAID


def test_what_more_evaluations_change(shorter):
    converged = shorter[["converged_short", "converged"]].astype(bool).mean()
    assert round(1 / converged["converged_short"]) == 8 and 0.55 < converged["converged"] < 0.65
    assert "With 200 evaluations one search in eight converges, with 1000 three in five do." in SAID
    other = shorter["error_rate_short"] != shorter["error_rate"]
    assert round(1 / other.mean()) == 12 and 0.2 < other[shorter["alpha"] == 1.0].mean() < 0.25
    assert "One run in twelve has a different test error then, and at $\\alpha = 1$ more than one in five." in SAID
    mean = shorter.groupby("alpha")[["error_rate_short", "error_rate", "nll_short", "nll"]].mean()
    assert 100 * (mean["error_rate"] - mean["error_rate_short"]).abs().max() < 0.11
    assert (mean["nll"] - mean["nll_short"]).abs().max() < 0.002
    assert "no mean error moves by more than 0.11 percentage points, and no mean NLL by more than 0.002 nats." in SAID


def test_which_amplitudes_run_away(six):
    large = six["variance"] > LARGE**2
    below = six["alpha"] < 1
    assert six.loc[large & below, "data"].nunique() == 2 and large[~below].mean() > 0.9
    assert "Below $\\alpha = 1$ amplitudes above 100 occur on two sets only; at $\\alpha = 1$ they occur in nearly all" in SAID
    often = large.groupby(six["alpha"]).sum()
    assert often[0.5] <= often[0.0] and "its amplitude exceeded 100 no more often than VFE's" in SAID


def test_the_evidence_is_highest_for_ep_in_every_run(six):
    evidence = six.pivot(index=["data", "split", "M"], columns="alpha", values="log_evidence")
    assert (evidence.idxmax(axis=1) == 1.0).all() and "it is highest for EP in every run, however badly EP predicts." in SAID


def test_who_is_ahead_on_mnist():
    runs, last = runner.results("bui_fig31"), fig31.CHECKPOINTS[-1]
    wide = {name: runs.pivot(index=["M", "seed"], columns="alpha", values=f"{name}_{last}")
            for name in ("error_rate", "log_likelihood")}
    lowest = wide["error_rate"].idxmin(axis=1).value_counts()
    assert lowest.to_dict() == {0.5: 4, 1.0: 2} and (wide["log_likelihood"].idxmax(axis=1) == 1.0).all()
    assert "has the lowest error in four of six pairs of $M$ and seed, and $\\alpha = 1$ in the other two." in SAID
    assert "In log-likelihood $\\alpha = 1$ is the best in all six." in SAID
    below = 100 * (wide["error_rate"][0.0] - wide["error_rate"].min(axis=1))
    assert 0.15 < below.mean() < 0.25 and "The lowest is about a fifth of a percentage point below that of VFE." in SAID


def test_by_how_many_claims_the_other_label_is_ahead():
    reproduced = {(label, intervals): sum(verdict == "reproduced" for _, verdict in measured.verdicts(label, intervals).values())
                  for label in ("true", "A1") for intervals in (True, False)}
    count = len(measured.verdicts())
    assert count == 15 and reproduced["A1", True] - reproduced["true", True] == 2
    assert reproduced["A1", False] - reproduced["true", False] == 3
    assert "A1 is ahead, by two claims of fifteen, or by three if the number alone decides." in SAID
