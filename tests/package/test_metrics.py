"""The metrics against scipy, against closed forms, and with input they must refuse."""

import numpy as np
import pytest
from scipy import stats

from pepcore import metrics


@pytest.fixture
def predictions():
    rng = np.random.default_rng(0)
    y_train, y = rng.normal(3, 2, 40), rng.normal(3, 2, 25)
    return y, y + rng.normal(0, 0.5, 25), rng.uniform(0.1, 2, 25), y_train


def test_gaussian_losses_equal_scipy(predictions):
    y, mean, variance, y_train = predictions
    assert metrics.nll(y, mean, variance) == pytest.approx(
        -stats.norm(mean, np.sqrt(variance)).logpdf(y).mean(), rel=1e-13
    )
    assert metrics.rmse(y, mean) == pytest.approx(np.linalg.norm(y - mean) / 5, rel=1e-13)
    trivial = stats.norm(y_train.mean(), y_train.std())
    gain = (stats.norm(mean, np.sqrt(variance)).logpdf(y) - trivial.logpdf(y)).mean()
    assert metrics.smll(y, mean, variance, y_train) == pytest.approx(-gain, rel=1e-12)


def test_the_trivial_predictor_scores_one_and_zero(predictions):
    y, _, _, y_train = predictions
    mean, variance = np.full(25, y_train.mean()), np.full(25, y_train.var())
    assert metrics.smse(y, mean, y_train) == pytest.approx(1, rel=1e-14)
    assert metrics.smll(y, mean, variance, y_train) == pytest.approx(0, abs=1e-14)


def test_standardised_metrics_ignore_the_units_of_y(predictions):
    y, mean, variance, y_train = predictions
    scaled = [7 * y + 2, 7 * mean + 2, 49 * variance, 7 * y_train + 2]
    assert metrics.smll(*scaled) == pytest.approx(metrics.smll(y, mean, variance, y_train), rel=1e-12)
    assert metrics.smse(scaled[0], scaled[1], scaled[3]) == pytest.approx(metrics.smse(y, mean, y_train), rel=1e-12)


def test_a_good_predictor_has_negative_smll_and_an_overconfident_one_positive(predictions):
    y, mean, _, y_train = predictions
    assert metrics.smll(y, mean, np.full(25, 0.25), y_train) < -0.8
    assert metrics.smll(y, mean, np.full(25, 1e-3), y_train) > 10


def test_smse_is_rasmussen_williams_up_to_the_shift_of_the_mean(predictions):
    y, mean, _, y_train = predictions
    by_test_variance = metrics.rmse(y, mean) ** 2 / y.var()
    factor = y.var() / (y.var() + (y.mean() - y_train.mean()) ** 2)
    assert metrics.smse(y, mean, y_train) == pytest.approx(by_test_variance * factor, rel=1e-12)


def test_binary_metrics_by_hand():
    y, p = np.array([1, -1, 1, -1.0]), np.array([0.9, 0.8, 0.5, 0.1])
    assert metrics.error_rate(y, p) == (0 + 1 + 0.5 + 0) / 4
    assert metrics.nll_binary(y, p) == pytest.approx(-np.log([0.9, 0.2, 0.5, 0.9]).mean(), rel=1e-14)


def test_certain_and_wrong_is_infinite_and_certain_and_right_is_zero():
    assert metrics.nll_binary([1.0], [0.0]) == np.inf
    assert metrics.nll_binary([-1.0], [0.0]) == 0
    assert metrics.nll_classes([1], [[1.0, 0.0]]) == np.inf


def test_class_metrics_equal_the_binary_ones_with_two_classes():
    rng = np.random.default_rng(1)
    p, y = rng.uniform(size=50), rng.choice([-1, 1], 50)
    classes, table = (y + 1) // 2, np.column_stack([1 - p, p])
    assert metrics.nll_classes(classes, table) == pytest.approx(metrics.nll_binary(y, p), rel=1e-13)
    assert metrics.error_rate(classes, table) == metrics.error_rate(y, p)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.rmse([1.0, 2], [1.0]), "mean has shape .* one number per element of y"),
        (lambda: metrics.rmse([], []), "at least one element"),
        (lambda: metrics.rmse([np.nan], [1.0]), "NaN"),
        (lambda: metrics.nll([1.0], [1.0], [0.0]), "variance .* must be positive"),
        (lambda: metrics.nll([1.0], [1.0], [[1.0]]), "variance has shape .* element of y; give variance.ravel"),
        (lambda: metrics.smll([1.0], [1.0], [1.0], [2.0, 2.0]), "one value only"),
        (lambda: metrics.smse([2.0], [1.0], [1.0, 3.0]), "0/0"),
        (lambda: metrics.smse([0.1] * 3, [0.2, 0.1, 0.1], [0.1] * 3), "0/0"),  # their mean is 0.10000000000000002
        (lambda: metrics.nll_binary([0, 1], [0.2, 0.3]), "2 \\* y - 1"),
        (lambda: metrics.nll_binary([1, -1], [0.2]), "element of y"),
        (lambda: metrics.nll_binary([1, -1], [0.2, 1.3]), "probabilities in"),
        (lambda: metrics.nll_binary([1, -1], [0.2, -0.3]), "probabilities in"),
        (lambda: metrics.nll_classes([0, 1], [[0.5, 0.501], [0.1, 0.9]]), "sum to one"),
        (lambda: metrics.error_rate([1, 2], [[0.5, 0.5], [0.1, 0.9]]), "classes 0 ... 1"),
        (lambda: metrics.nll_classes([0, 1], [[0.5, 0.4], [0.1, 0.9]]), "sum to one"),
        (lambda: metrics.nll_classes([0, 1], [0.5, 0.4]), "expected \\(2, C\\)"),
    ],
)
def test_refuses_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_arrays_are_not_written_to(predictions):
    arrays = [np.array(a) for a in predictions]
    for a in arrays:
        a.setflags(write=False)
    y, mean, variance, y_train = arrays
    metrics.smll(y, mean, variance, y_train)
    metrics.smse(y, mean, y_train)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, predictions))


def test_a_message_about_many_numbers_shows_the_first_wrong_one():
    variance = np.ones(100_000)
    variance[3] = 0.0
    with pytest.raises(ValueError, match=r"variance\[3\] = 0\.0 must be positive") as caught:
        metrics.nll(np.zeros(100_000), np.zeros(100_000), variance)
    assert len(str(caught.value)) < 200
