"""The study of the first page: a sample of its rows comes out again, and what the page says stands in them."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from figures.experiments import runner
from figures.experiments.book import start_here


@pytest.fixture(scope="module")
def results():
    return runner.results("start_here")


def test_all_runs_are_there(results):
    assert len(results) == len(start_here.grid())
    assert results["converged"].all()


@pytest.mark.parametrize(("data", "split", "alpha"), [("outlines", 0, 0.0), ("outlines", 3, 1.0), ("wine", 1, 0.5),
                                                      ("diabetes", 2, 0.0), ("iris", 4, 0.25)])
def test_a_sample_of_rows_comes_out_again(results, data, split, alpha):
    """To three digits: where an optimiser stops differs a little between machines."""
    row = results[(results["data"] == data) & (results["split"] == split) & (results["alpha"] == alpha)].iloc[0]
    again = start_here.compute(data, split, alpha)
    for name in ("nll", "rmse", "noise_sd", "log_evidence"):
        assert again[name] == pytest.approx(row[name], rel=1e-3, abs=1e-3)


def test_the_picture_has_no_repeated_rows_and_nothing_piled_up_at_an_end():
    assert start_here.repeated_rows(start_here.PICTURE) == 0
    for column in start_here.raw(start_here.PICTURE):
        assert np.sum(column == column.min()) == np.sum(column == column.max()) == 1
    assert start_here.repeated_rows("nuclei") >= 12


def test_the_picture_does_not_depend_on_starts_or_jitter():
    """With repeated rows it does: there the jitter decides what alpha = 1 takes for the evidence."""
    over_starts, over_jitters = start_here.spread_over_settings("outlines", 1.0, range(2), (1e-4, 1e-8))
    assert over_starts < 3
    assert over_jitters < 1
    assert start_here.spread_over_settings("nuclei", 1.0, (0,), (1e-4, 1e-8))[1] > 20


def test_no_power_is_best_everywhere(results):
    loss = results.pivot_table(index="data", columns="alpha", values="nll")
    assert loss.loc["outlines"].idxmin() == 1.0
    assert loss.loc["wine"].idxmax() == loss.loc["iris"].idxmax() == 1.0
    assert loss.loc["iris", 1.0] > 100 > 1 > loss.loc["iris", 0.9]
    evidence = results[results["data"] == "iris"].groupby("alpha")["log_evidence"].mean()
    assert evidence.idxmax() == 1.0
    furthest = loss.sub(loss.min(axis=1), axis=0).max()
    assert furthest.idxmin() not in (0.0, 1.0)


def test_the_tumours_are_predicted_better_at_one_in_every_half(results):
    tumours = results[results["data"] == "outlines"]
    loss = tumours.pivot(index="split", columns="alpha", values="nll")
    assert (loss[1.0] < loss[0.0]).all()
    error = tumours.groupby("alpha")["rmse"].mean()
    assert np.ptp(error) < 0.01


def test_picture_and_words_agree():
    X, y = start_here.standardised(start_here.PICTURE)
    models = {alpha: start_here.learn(X, y, alpha) for alpha in (0.0, 1.0)}
    words = start_here.describe(models, 0.0)
    assert f"Noise learnt: {np.sqrt(models[0.0].noise):.2f} standard deviations" in words
    assert f"Log evidence {models[0.0].log_evidence:.0f}." in words
    fig = Figure(layout="constrained")
    start_here.draw_dial(fig, models, models[0.0].log_evidence, 1.0)
    fit, noise, evidence = (ax for part in fig.subfigs for ax in part.axes)
    xs = np.linspace(*start_here.FRAME["xlim"], 200)
    mean, _ = models[1.0].predict_y(xs[:, None])
    assert any(np.array_equal(line.get_ydata(), mean) for line in fit.lines)
    assert noise.lines[1].get_ydata() == pytest.approx(np.sqrt(models[1.0].noise))
    assert evidence.lines[1].get_ydata() == pytest.approx(models[1.0].log_evidence)
    left, right = start_here.FRAME["xlim"]
    inside = np.sum((models[1.0].Z >= left) & (models[1.0].Z <= right))
    assert f"Of the 4 pseudo-inputs {inside} lie within" in start_here.describe(models, 1.0)
    outside = sum(int(text.get_text().strip("◀▶ ")) for text in fit.texts if set("◀▶") & set(text.get_text()))
    assert inside + outside == 4


def test_every_row_of_the_picture_lies_within_its_frame():
    X, y = start_here.standardised(start_here.PICTURE)
    for values, (low, high) in ((X, start_here.FRAME["xlim"]), (y, start_here.FRAME["ylim"])):
        assert low < values.min() < values.max() < high


def test_the_band_of_the_first_picture_opens_after_the_power_that_the_page_names():
    """The widths at its two ends: as at 0 up to 0.35, and soon after a fan."""
    X, y = start_here.standardised(start_here.PICTURE)
    left, right = np.array([start_here.band_ends(start_here.learn(X, y, alpha), X) for alpha in (0.0, 0.35, 0.45)]).T
    opening = right / left
    assert opening[1] == pytest.approx(opening[0], rel=0.05) and opening[2] > 1.1 * opening[0]
