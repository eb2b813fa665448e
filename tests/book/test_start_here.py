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


@pytest.mark.parametrize(("data", "split", "alpha"), [("nuclei", 0, 0.0), ("nuclei", 3, 0.75), ("wine", 1, 0.5),
                                                      ("diabetes", 2, 0.0), ("iris", 4, 0.25)])
def test_a_sample_of_rows_comes_out_again(results, data, split, alpha):
    """To three digits: where an optimiser stops differs a little between machines."""
    row = results[(results["data"] == data) & (results["split"] == split) & (results["alpha"] == alpha)].iloc[0]
    again = start_here.compute(data, split, alpha)
    for name in ("nll", "rmse", "noise_sd", "log_evidence"):
        assert again[name] == pytest.approx(row[name], rel=1e-3, abs=1e-3)


def test_no_power_is_best_everywhere(results):
    loss = results.pivot_table(index="data", columns="alpha", values="nll")
    assert loss.loc["nuclei"].idxmin() == 1.0
    assert loss.loc["wine"].idxmax() == loss.loc["iris"].idxmax() == 1.0
    assert loss.loc["iris", 1.0] > 100 > 1 > loss.loc["iris", 0.9]
    evidence = results[results["data"] == "iris"].groupby("alpha")["log_evidence"].mean()
    assert evidence.idxmax() == 1.0
    furthest = loss.sub(loss.min(axis=1), axis=0).max()
    assert furthest.idxmin() not in (0.0, 1.0)


def test_picture_and_words_agree():
    X, y = start_here.standardised("iris")
    models = {alpha: start_here.learn(X, y, alpha) for alpha in (0.0, 1.0)}
    words = start_here.describe(models, 0.0, "iris")
    assert f"Noise learnt: {np.sqrt(models[0.0].noise):.2f} standard deviations" in words
    assert f"Log evidence {models[0.0].fit.log_evidence:.0f}." in words
    fig = Figure(layout="constrained")
    start_here.draw_dial(fig, models, models[0.0].fit.log_evidence, 1.0, "iris")
    fit, noise, evidence = (ax for part in fig.subfigs for ax in part.axes)
    xs, mean, _ = start_here.curve(models[1.0], "iris")
    assert any(np.array_equal(line.get_ydata(), mean) for line in fit.lines)
    assert noise.lines[1].get_ydata() == pytest.approx(np.sqrt(models[1.0].noise))
    assert evidence.lines[1].get_ydata() == pytest.approx(models[1.0].fit.log_evidence)
    assert xs[0] < X.min() * start_here.raw("iris")[0].std() + start_here.raw("iris")[0].mean()
