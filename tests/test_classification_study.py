"""The study uci_classification: what a run returns, and what it learns from."""

import numpy as np
import pytest

from figures import runner, uci_classification
from pepcore import datasets


@pytest.fixture(autouse=True)
def data():
    try:
        uci_classification.prepare()
    except datasets.DataNotFoundError as problem:
        pytest.skip(f"needs the data: {problem}")


def test_a_run_beats_the_larger_class():
    run = runner.Run("figures.uci_classification")({"data": "pima", "split": 0, "M": 10, "alpha": 0.0})
    assert run["error_rate"] < 0.3 and run["nll"] < 0.5      # a third of the rows is of the smaller class
    assert run["unconverged_inference"] == 0
    assert set(run) == set(runner.load("uci_classification").columns)


def test_inputs_are_standardised_on_the_training_rows_and_labels_are_left_alone():
    X, y, X_test, y_test = uci_classification.standardised("sonar", 3)
    assert len(X) == len(y) == 187 and len(X_test) == len(y_test) == 21
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1)
    assert np.abs(X_test.mean(axis=0)).max() > 0.01
    assert set(y) == set(y_test) == {-1.0, 1.0}


def test_the_two_labels_of_australian_are_two_tasks():
    _, true, *_ = uci_classification.standardised("australian", 0)
    _, a1, *_ = uci_classification.standardised("australian_a1label", 0)
    assert (true == a1).mean() < 0.9
