"""The studies bui_fig3 and uci_regression: their committed rows still come out, and their summaries are right."""

import numpy as np
import pandas as pd
import pytest

from figures import bui_fig3, runner, uci_regression
from pepcore import datasets

# An optimiser that is stopped after so many evaluations magnifies rounding: other processors give slightly other rows.
SAME = 0.03


def rows_like(results, inputs):
    return results.loc[(results[list(inputs)] == pd.Series(inputs)).all(axis=1)]


@pytest.mark.parametrize(("data", "M", "alpha"), [(0, 5, 0.5), (1, 10, 0.0), (2, 5, 1.0)])
def test_rows_of_the_toy_study_come_out_again(data, M, alpha):
    inputs = {"data": data, "method": "sparse", "M": M, "alpha": alpha}
    (committed,) = rows_like(runner.results("bui_fig3"), inputs).to_dict("records")
    again = bui_fig3.compute(**inputs)
    assert again["smse"] == pytest.approx(committed["smse"], rel=SAME)
    assert again["nlml"] == pytest.approx(committed["nlml"], rel=SAME)


@pytest.mark.parametrize(("data", "split", "M", "alpha"), [("boston", 0, 5, 0.5), ("concrete", 3, 5, 0.0)])
def test_rows_of_the_uci_study_come_out_again(data, split, M, alpha):
    inputs = {"data": data, "split": split, "M": M, "alpha": alpha}
    (committed,) = rows_like(runner.results("uci_regression"), inputs).to_dict("records")
    try:
        again = uci_regression.compute(**inputs)
    except datasets.DataNotFoundError as problem:
        pytest.skip(f"needs the data: {problem}")
    assert again["smse"] == pytest.approx(committed["smse"], rel=SAME)
    assert again["log_evidence"] == pytest.approx(committed["log_evidence"], rel=SAME)


@pytest.mark.parametrize("study", ["bui_fig3", "uci_regression"])
def test_committed_rows_are_runs_of_the_grid_without_failures(study):
    study = runner.load(study)
    runs = {runner.key(inputs) for inputs in study.runs()}
    rows = [tuple(row[name] for name in study.inputs) for row in runner.read_rows(study)]
    assert len(rows) == len(set(rows)) and set(rows) <= runs
    results = runner.results(study.id)
    assert len(results) == len(rows)
    assert np.isfinite(results[["smse", "smll", "noise"]].to_numpy()).all()


@pytest.mark.parametrize("study", ["bui_fig3", "uci_regression"])
def test_a_grid_with_gaps_says_why(study):
    study = runner.load(study)
    assert (len(runner.read_rows(study)) < len(study.runs())) == hasattr(study.module, "UNFINISHED")


@pytest.fixture
def four_runs():
    """Power 0.5 beats 0 in three of four runs; the fifth run lacks a power and must not count."""
    losses = {(0, 0.0): 2.0, (0, 0.5): 1.0, (1, 0.0): 2.0, (1, 0.5): 1.0, (2, 0.0): 2.0, (2, 0.5): 1.0,
              (3, 0.0): 1.0, (3, 0.5): 2.0, (4, 0.0): 1.0}
    return pd.DataFrame([{"data": "a", "split": split, "M": 5, "alpha": alpha, "smse": loss}
                         for (split, alpha), loss in losses.items()])


def test_wins_and_ranks(four_runs):
    assert uci_regression.wins(four_runs, "smse", 0.5, 0.0) == 75
    assert uci_regression.wins(four_runs, "smse", 0.0, 0.5) == 25
    assert uci_regression.ranks(four_runs, "smse").to_dict() == {0.0: 1.75, 0.5: 1.25}


def test_curves_are_means_over_data_sets():
    rows = [{"data": data, "method": method, "M": 5, "alpha": 0.0, "nlml": value}
            for data, method, value in [(0, "sparse", 1.0), (1, "sparse", 3.0), (0, "full", 5.0), (1, "full", 6.0)]]
    results = pd.DataFrame(rows)
    assert bui_fig3.curves(results, "nlml").loc[5, 0.0] == 2.0
    assert bui_fig3.full_gp(results, "nlml") == 5.5
