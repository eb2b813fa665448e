"""The studies of csato2002: their committed rows still come out, they are complete, and their summaries are right."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from figures.experiments import runner
from figures.experiments.csato2002 import fitc, nystrom, order, problems, sweeps
from figures.experiments.csato2002 import size as csa_size
from pepcore import datasets

STUDIES = {"csa_fitc": fitc, "csa_nystrom": nystrom, "csa_order": order, "csa_size": csa_size,
           "csa_sweeps": sweeps}

# The kernel is learnt by an optimiser that is stopped, which magnifies rounding: other processors give slightly others.
SAME = 0.03


def again(study, inputs):
    return STUDIES[study].compute(**inputs)


@pytest.mark.parametrize(("study", "inputs", "outputs"), [
    ("csa_fitc", {"data": "boston", "split": 0, "rho": 0.5}, ("loss", "nll", "log_evidence")),
    ("csa_fitc", {"data": "pima", "split": 1, "rho": 1.0}, ("nll", "nll_pep", "log_evidence")),
    ("csa_nystrom", {"data": "concrete", "split": 2, "M": 100}, ("residual", "smse_nystrom", "smse_sparse_ep", "smse_fitc")),
    ("csa_order", {"data": "pima", "mode": "fixed", "order": 3}, ("difference_online", "nll_online", "nll_ep")),
    ("csa_order", {"data": "energy", "mode": "budget", "order": 3}, ("nll_online", "nll_ep")),
    ("csa_size", {"data": "energy", "split": 1, "limit": "budget", "value": 20.0}, ("error_online", "nll_ep_same", "nll_exact")),
    ("csa_sweeps", {"data": "energy", "split": 1, "budget": 20}, ("error_1", "error_8", "nll_8")),
])
def test_rows_come_out_again(study, inputs, outputs):
    results = runner.results(study)
    (committed,) = results.loc[(results[list(inputs)] == pd.Series(inputs)).all(axis=1)].to_dict("records")
    found = again(study, inputs)
    for name in outputs:
        assert found[name] == pytest.approx(committed[name], rel=SAME), name


@pytest.mark.parametrize("study", STUDIES)
def test_the_committed_grid_is_complete_and_finite(study):
    results = runner.results(study)
    assert len(results) == len(runner.load(study).runs())
    assert np.isfinite(results[list(STUDIES[study].OUTPUTS)].astype(float).to_numpy()).all()


def test_three_regression_and_three_classification_sets_over_twenty_orders():
    results = runner.results("csa_order")
    kinds = [datasets.registry[data].task for data in results["data"].unique()]
    assert sorted(kinds) == ["binary"] * 3 + ["regression"] * 3
    assert results.groupby(["data", "mode"])["order"].nunique().min() >= 20


@pytest.mark.parametrize("study", STUDIES)
def test_figures_draw_something(study):
    for draw, size in STUDIES[study].FIGURES.values():
        fig = plt.figure(figsize=size)
        draw(fig, runner.results(study))
        assert any(len(ax.lines) for ax in fig.axes)
        plt.close(fig)


def test_difference_of_two_posteriors_is_in_standard_deviations():
    class Flat:
        def __init__(self, mean, variance):
            self.mean, self.variance = mean, variance

        def predict(self, X):
            return np.full(len(X), self.mean), np.full(len(X), self.variance)

    assert order.difference(Flat(1.0, 3.0), Flat(5.0, 5.0), np.zeros((4, 1))) == pytest.approx(2.0)


def test_spread_is_the_median_over_orders():
    rows = [{"data": "pima", "mode": "all", "order": k, "difference_online": k, "difference_ep": 0.1 * k} for k in range(3)]
    rows += [{"data": "pima", "mode": "budget", "order": 0, "difference_online": 9, "difference_ep": 9}]
    assert order.spread(pd.DataFrame(rows), "all").loc["pima"].to_list() == pytest.approx([1.0, 0.1])


def test_steady_counts_relative_errors_and_absolute_log_losses():
    table = pd.DataFrame({f"{metric}_{sweep}": [0.2, 0.2] for metric in ("error", "nll") for sweep in range(1, 9)})
    table["error_2"] = [0.2035, 0.2045]
    table["nll_2"] = [0.215, 0.225]
    assert sweeps.steady(table, "error", 2) == 50
    assert sweeps.steady(table, "nll", 2) == 50
    assert sweeps.steady(table, "nll", 3) == 100


def test_better_mean_leaves_out_runs_with_all_data_as_basis():
    table = pd.DataFrame({"M": [5, 50, nystrom.ROWS], "smse_nystrom": [2.0, 0.5, 0.5], "smse_sparse_ep": [1.0, 1.0, 1.0]})
    assert nystrom.better_mean(table) == 50


def test_problems_share_their_kernel_between_sizes():
    small, large = (problems.problem("energy", 0, rows) for rows in (50, 100))
    assert small.kernel is large.kernel
    np.testing.assert_array_equal(small.X, large.X[:50])
