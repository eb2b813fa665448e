"""What the study of many classes says in words, beside the outputs of its cells: computed from the results."""

import numpy as np
import pytest
from conftest import ROOT
from prose import prose

from figures.experiments import runner, verification
from figures.experiments.villacampa2017 import cells, claims, fig4, fig5, fig5_long, length

SAID = prose("study-many-classes")
NOTEBOOK = (ROOT / "chapters/study-many-classes.ipynb").read_text(encoding="utf-8")       # its sliders' captions, too
OTHERS = ["ep", "sep", "gfitc"]


@pytest.fixture(scope="module")
def nll():
    """Our mean log losses: (M in %, data) by method."""
    return cells.ours("nll")["mean"].unstack("method")


@pytest.fixture(scope="module")
def whole():
    return runner.results("villacampa_whole")


@pytest.fixture(scope="module")
def satellite():
    return runner.results("vil_fig4")


# The tables -----------------------------------------------------------------------------------------------------------

def test_on_how_many_sets_the_three_are_nearer_than_in_the_paper(nll):
    def distance(means):
        apart = np.ptp(means[OTHERS], axis=1)
        return apart.groupby(level="data").mean()

    theirs = cells.published("nll")["mean"].unstack("method").loc[nll.index]
    farther = set(nll.index.levels[1][(distance(nll) > distance(theirs)).to_numpy()])
    assert farther == {"vehicle", "wine"} and "On six of the eight sets (not on Vehicle and Wine) the three are nearer" in SAID


def test_how_many_times_their_log_loss_vi_has(nll):
    by_set = nll.groupby(level="data").mean()
    times = by_set["vi"] / by_set[OTHERS].max(axis=1)
    assert set(times.index[times > 2]) == {"glass", "waveform", "satellite", "vehicle"} and times["glass"] > 3
    assert "VI has more than twice their log loss on Waveform, Satellite and Vehicle, and more than three times on Glass." in SAID
    assert "on four of the eight its log loss is over twice theirs." in SAID


def test_what_tying_costs_on_vowel(whole, nll):
    assert (nll.xs("vowel", level="data")["sep"] > nll.xs("vowel", level="data")["ep"]).all()
    wide = whole[(whole["data"] == "vowel") & (whole["percent"] == 5)].pivot(index="split", columns="method", values="nll")
    difference = wide["sep"] - wide["ep"]
    assert (f"{wide['sep'].mean():.2f} against {wide['ep'].mean():.2f} at 5 %, which is seven paired standard errors" in SAID
            and round(difference.mean() / difference.sem()) == 7)


def test_the_three_differ_by_less_than_two_standard_errors_over_the_sets(nll):
    largest = 0.0
    for metric in ("nll", "error_rate"):
        means = cells.ours(metric)["mean"].unstack("method").groupby(level="data").mean()
        for first, second in (("ep", "gfitc"), ("sep", "ep")):      # the pairs that the text compares
            difference = means[first] - means[second]
            largest = max(largest, abs(difference.mean() / difference.sem()))
    assert 1 < largest < 1.5 and "the signed differences are within one and a half standard errors of zero." in SAID


def test_how_long_sep_takes_beside_ep(whole):
    times = cells.times()
    longer = 100 * (times["sep"] / times["ep"] - 1)
    assert f"Here SEP takes {longer.min():.0f} to {longer.max():.0f} % longer than EP." in SAID
    seconds = whole.groupby(["percent", "data", "method"])["training_seconds"].mean().unstack("method")
    apart = seconds["sep"] - seconds["ep"]
    assert apart.groupby(level="percent").mean().max() < 2 and round(apart[20, "satellite"]) == 11
    assert "EP and SEP are at most two seconds apart; on Satellite at $M = 20$ % it is eleven." in SAID


def test_where_shorter_training_is_nearer_to_the_paper():
    found = length.nearness(runner.results("vil_length"), runner.results("villacampa_whole"))
    by_length = found["factor"].groupby(level="iterations").mean()
    assert set(by_length.nsmallest(2).index) == {30, 60}
    assert "Our means are nearest to the paper's after 30 to 60 iterations." in SAID


def test_what_more_iterations_do_to_sep(whole):
    short = runner.results("vil_length").query("method == 'sep'").groupby(["data", "iterations"])["nll"].mean().unstack()
    same = whole[(whole["percent"] == length.PERCENT) & (whole["method"] == "sep") & whole["split"].isin(length.SPLITS)]
    last, theirs = same.groupby("data")["nll"].mean(), cells.published("nll")["mean"].xs((5, "sep"), level=("percent", "method"))
    assert short.loc["satellite"].max() < theirs["satellite"] and last["satellite"] < theirs["satellite"]
    assert "SEP on Satellite, whose log loss stays below the paper's however long we train." in SAID
    assert short.loc["waveform"].max() < last["waveform"] and "On Waveform it rises with training" in SAID
    over_all = cells.ours("nll").loc[(5, "wine", "sep"), "mean"]
    assert short.loc["wine"].is_monotonic_decreasing and last["wine"] < min(short.loc["wine"].min(), theirs["wine"]) < over_all
    assert theirs["wine"] < over_all and "lowers SEP's log loss on these five splits to below the paper's, yet over all" in SAID


def test_which_losses_rise_from_sixty_iterations_on(whole):
    short = runner.results("vil_length").query("iterations == 60").set_index(["data", "method", "split"])["nll"]
    long = whole[whole["percent"] == length.PERCENT].set_index(["data", "method", "split"])["nll"]
    change = (long - short).dropna().groupby(level=["data", "method"])
    mean, clear = change.mean(), (change.mean() / change.sem()).abs() > 2
    assert (mean["vowel"] < 0).all()
    on_two = [(data, method) for data in ("satellite", "waveform") for method in ("vi", "ep")]
    others = [("wine", "vi"), ("new_thyroid", "vi")]
    assert (mean[on_two + others] > 0).all() and clear[on_two].all() and not clear[others].any()
    assert ("the losses on Vowel fall from iteration 60 on, and the others rise, beyond two standard errors on Satellite and "
            "Waveform.") in SAID


def test_how_the_ratio_of_times_moves_with_the_size(whole):
    seconds = whole.groupby(["data", "percent", "method"])["training_seconds"].mean().unstack("method")
    ratio = (seconds["gfitc"] / seconds["sep"]).unstack()
    (first, last), (low, high) = (ratio.loc[name, [5, 20]].round() for name in ("satellite", "wine"))
    assert f"on Satellite from {first:g} to {last:g}. On Wine it rises, from {low:g} to {high:g}." in SAID


# Satellite and MNIST --------------------------------------------------------------------------------------------------

def test_sep_and_gfitc_after_five_seconds(satellite):
    def at(method, seconds):
        runs = satellite.query("method == @method and M == 100").to_dict("records")
        return np.mean([np.interp(seconds, *fig4.curve(row, "nll")) for row in runs])

    assert abs(at("sep", 5) - at("gfitc", 5)) < 0.01
    assert "After five seconds the two are within a hundredth of a nat." in SAID


def test_the_clock_of_sep_begins_a_little_after_one_second(satellite):
    first = satellite.query("method == 'sep' and M == 100")[f"seconds_{fig4.CHECKPOINTS[0]}"].mean()
    assert 1.0 < first < 1.5 and "our clock gives SEP its first point a little later" in SAID


def test_how_much_sooner_sep_is_with_few_pseudo_inputs(satellite):
    ratios = fig4.head_start(satellite)
    for M in (4, 20):
        assert np.mean([ratio for (size, _), ratio in ratios.items() if size == M]) > 2
    assert "With M = 4 and 20 SEP reaches a low loss in less than half of GFITC's time;" in NOTEBOOK


def test_gfitcs_price_with_few_pseudo_inputs(satellite):
    last = fig4.CHECKPOINTS[-1]
    mean = satellite[satellite["M"] == 4].groupby("method")[[f"nll_{last}", f"seconds_{last}"]].mean()
    apart, times = (mean.loc["sep", f"nll_{last}"] - mean.loc["gfitc", f"nll_{last}"],
                    mean.loc["gfitc", f"seconds_{last}"] / mean.loc["sep", f"seconds_{last}"])
    assert 0 < apart < 0.01 and 18.5 < times < 20
    assert "its log loss ends within a hundredth of a nat of SEP's, after training nearly twenty times as long." in SAID


def test_when_the_log_loss_of_vi_is_lowest(satellite):
    for _, part in satellite.query("method == 'vi'").groupby("M"):
        seconds, losses = fig4.mean_curve(part, "nll")
        assert seconds[losses.argmin()] < 10 and losses[-1] > losses.min()
    assert "VI's log loss is lowest within the first ten seconds, and then rises as training goes on;" in SAID


def test_how_far_the_log_losses_rise_above_their_lowest_values(satellite):
    def rise(method, M):
        runs = satellite.query("method == @method and M == @M").to_dict("records")
        losses = np.array([fig4.curve(row, "nll")[1] for row in runs])
        risen = losses[:, -1] - losses[:, losses.mean(axis=0).argmin()]
        return risen.mean(), risen.std(ddof=1) / np.sqrt(len(risen))

    for M in (20, 100):
        for method in ("gfitc", "sep"):
            mean, error = rise(method, M)
            assert mean > 2 * error
    assert "with $M$ = 20 and 100 those of GFITC and SEP rise too." in SAID
    assert "and with $M$ = 20 and 100 that of GFITC and SEP too." in SAID
    words = {case: "{:.3f} ± {:.3f}".format(*rise(*case)) for case in (("gfitc", 100), ("sep", 100), ("vi", 100), ("vi", 20))}
    assert (f"With $M = 100$ their mean log losses end {words['gfitc', 100]} and {words['sep', 100]} nats above the lowest "
            f"values (paired standard errors), VI's {words['vi', 100]}. "
            f"VI's clear rise is that with $M = 20$, {words['vi', 20]}.") in SAID


def test_the_two_averages_part_in_the_runs_of_the_other_methods_too(satellite):
    last = fig4.CHECKPOINTS[-1]
    for row in satellite.query("method != 'vi' and M == 100").to_dict("records"):
        best = min(fig4.CHECKPOINTS, key=lambda number: row[f"nll_{number}"])
        assert row[f"nll_{last}"] > row[f"nll_{best}"] and row[f"expected_{last}"] > row[f"expected_{best}"]
    assert "The same holds for SEP, and for GFITC, which is not drawn." in SAID


def test_how_much_sooner_sep_is_near_its_final_log_loss(satellite):
    for M in (4, 20):
        assert 2.25 < claims.satellite_head_start(M) < 2.75
        seconds, losses = fig4.mean_curve(satellite.query("M == @M and method == 'sep'"), "nll")
        assert seconds[np.flatnonzero(losses <= 1.05 * losses[-1])[0]] < 1
    assert "SEP is near its final loss within a second, and GFITC needs about two and a half times as long." in SAID
    assert "it comes within 5 % of its final loss about two and a half times sooner than GFITC" in SAID


@pytest.fixture
def seconds():
    """Those of the last step on MNIST, by method and kind of places."""
    return runner.results("vil_fig5").set_index(["method", "pseudo_inputs"])[f"seconds_{fig5.CHECKPOINTS[-1]}"]


def test_how_much_faster_shared_places_are(seconds):
    times = seconds.xs("own", level=1) / seconds.xs("shared", level=1)
    assert (times.idxmin(), times.idxmax()) == ("ep", "sep")
    assert f"with which a run is {times.min():.1f} (EP) to {times.max():.1f} (SEP) times as fast." in SAID


def test_how_much_longer_a_step_of_ep_takes(seconds):
    times = seconds["ep"] / seconds["sep"]
    assert f"So a step takes {times.min():.1f} to {times.max():.1f} times as long as one of SEP." in SAID


def test_seps_error_had_stopped_falling_after_twenty_epochs():
    row = runner.results("vil_fig5").set_index(["method", "pseudo_inputs"]).loc[("sep", "own")]
    assert row["error_rate_6000"] > row["error_rate_5000"] and row["nll_6000"] < row["nll_5000"] < row["nll_4000"]
    assert "It was larger, while the NLL still fell, so we made a run of 60 epochs." in SAID


def test_which_run_on_mnist_leads_after_so_many_seconds():
    def leader(budget):
        losses = {}
        for row in runner.results("vil_fig5").to_dict("records"):
            seconds, nll = fig5.curve(row, "nll")
            losses[row["method"], row["pseudo_inputs"]] = min(nll[seconds <= budget], default=np.inf)
        first, second = sorted(losses, key=losses.get)[:2]
        return first, second, losses[second] - losses[first]

    assert leader(10)[0] == leader(30)[0] == leader(60)[0] == ("sep", "shared")
    assert "Shared places are better in the first minute, own places in the end." in SAID
    assert leader(100)[:2] == (("sep", "own"), ("sep", "shared")) and leader(100)[2] < 0.002
    assert "SEP with shared places leads at 10 and 30, and at 100 SEP with own places is just ahead of it." in NOTEBOOK


def test_when_vi_and_ep_meet_sep_on_mnist():
    """With places of each class's own."""
    rows = {row["method"]: row for row in runner.results("vil_fig5").query("pseudo_inputs == 'own'").to_dict("records")}

    def apart(method, metric, seconds):
        ours, seps = (np.interp(np.log(seconds), np.log(times), losses)
                      for times, losses in (fig5.curve(rows[name], metric) for name in (method, "sep")))
        return ours - seps

    assert apart("vi", "error_rate", 90) > 0 and (apart("vi", "error_rate", np.linspace(120, 700)) < 0).all()
    assert "in error VI with own places is below SEP with own places from about two minutes on." in SAID
    assert apart("ep", "nll", 40) > 0.01 and (abs(apart("ep", "nll", np.linspace(120, 700))) < 0.004).all()
    assert "EP's begin to the right of SEP's; those with own places meet SEP's after two minutes." in SAID


def test_what_vi_loses_from_the_prior():
    runs = runner.results("vil_fig5_prior")
    lost = runs["given_up"] > 0
    assert set(lost.groupby(runs["step"]).sum()) == {3, 4} and set(runs.groupby("step").size()) == {5}
    assert runs["given_up"].max() == 7 and list(runs.query("step == 0 and seed == 0")["given_up"]) == [1]
    low, high = (100 * runs.loc[~lost, "error_rate"].agg(["min", "max"])).round(1)
    assert ("From the prior no rule is safe: with each of the three, VI loses digits with three or four of the five seeds, "
            "once seven of the ten. "
            f"Where it loses none, its error is between {low:g} and {high:g} %.") in SAID


def test_the_runs_from_the_prior_came_out_again():
    again = verification.kept()["vil_fig5_prior"]
    assert again["rows"] == again["equal"] == again["same_code"] == again["same_machine"] == 5
    assert "(The same code, run again on the same kind of processor, gave the same digits.)" in SAID


def test_who_has_the_lowest_log_loss_on_mnist():
    last = runner.results("vil_fig5").set_index(["method", "pseudo_inputs"])[f"nll_{fig5.CHECKPOINTS[-1]}"]
    assert last.idxmin() == ("vi", "own") and "On MNIST VI, started from SEP, ended with the lowest log loss;" in SAID


def test_the_long_run_begins_as_the_shorter_one_and_by_a_slower_clock():
    short = runner.results("vil_fig5").set_index(["method", "pseudo_inputs"]).loc[("sep", "own")]
    long, last = runner.results("vil_fig5_long").iloc[0], fig5.CHECKPOINTS[-1]
    shared = [f"{metric}_{step}" for metric in fig5.PANELS for step in {*fig5.CHECKPOINTS} & {*fig5_long.CHECKPOINTS}]
    assert len(shared) == 14 and (long[shared] == short[shared]).all()
    slower = 100 * (long[f"seconds_{last}"] / short[f"seconds_{last}"] - 1)
    assert last == 6000 and f"Its clock shows {slower:.0f} % more for these steps, since other work ran" in SAID
    assert round(long["seconds_12000"] / 60) == 37 and "The long run of SEP drops visibly after thirty-seven minutes" in SAID
