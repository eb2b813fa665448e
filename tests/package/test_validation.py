"""The public door: right input passes unchanged, wrong input is named and the error says how to mend it."""

import numpy as np
import pytest

from pepcore.validation import (
    as_real,
    check_all_positive,
    check_alpha,
    check_count,
    check_finite,
    check_inputs,
    check_names,
    check_not_negative,
    check_positive,
    check_step,
    check_targets,
)


def test_right_input_passes_without_a_copy():
    X, y = np.ones((3, 2)), np.arange(3.0)
    assert check_inputs(X) is X
    assert check_targets(y, 3) is y
    assert check_inputs([[1, 2], [3, 4]]).dtype == float
    assert check_targets([1, 0, 1], 3).dtype == float
    assert check_inputs(X, columns=2) is X


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_inputs(np.ones(4)), r"X has shape \(4,\).*X\[:, None\]"),
        (lambda: check_inputs(np.ones((2, 2, 2)), "Z"), r"Z has shape \(2, 2, 2\), expected \(N, D\)"),
        (lambda: check_inputs(np.ones((0, 2))), "N >= 1"),
        (lambda: check_inputs(np.ones((3, 2)), columns=3), r"X has 2 column\(s\), expected 3"),
        (lambda: check_inputs([[1.0, 2.0], [np.nan, np.inf]]), r"2 value\(s\).*index \(1, 0\)"),
        (lambda: check_inputs([[1, 2], [3]]), "array of real numbers"),
        (lambda: check_inputs([["a", "b"]]), "array of real numbers"),
        (lambda: check_inputs(np.ones((2, 2)) * 1j), "complex"),
        (lambda: check_targets(np.ones((3, 1)), 3), r"give y\.ravel\(\)"),
        (lambda: check_targets(np.ones(2), 3), r"y has shape \(2,\), expected \(3,\)"),
        (lambda: check_targets([0.0, np.inf], 2), "infinite"),
        (lambda: check_alpha(1.5), r"alpha = 1\.5 is outside \[0, 1\]"),
        (lambda: check_alpha(np.nan), "alpha = nan"),
        (lambda: check_alpha([0.2, -0.1], 2), r"alpha = -0\.1 is outside"),
        (lambda: check_alpha([0.2, 0.1]), "expected a scalar"),
        (lambda: check_alpha([0.2, 0.1], 3), r"a scalar or shape \(3,\)"),
        (lambda: check_positive(0.0, "noise"), r"noise = 0\.0 must be positive"),
        (lambda: check_all_positive([1.0, -2.0], "lengthscales"), r"lengthscales = \[1\.0, -2\.0\]"),
        (lambda: check_positive(np.inf, "noise"), "noise = inf"),
        (lambda: check_positive(None, "noise"), "noise"),
        (lambda: check_positive("small", "noise"), "noise must be one real number"),
        (lambda: check_positive([0.1], "noise"), r"noise has shape \(1,\), expected one number"),
        (lambda: check_step(1.5), r"step = 1\.5 must be in \(0, 1\]"),
        (lambda: check_not_negative(-1, "rate", "0 holds still"), r"rate = -1\.0 must be at least 0; 0 holds still"),
        (lambda: check_count(-1, "max_sweeps", least=0), "max_sweeps = -1 must be a whole number, at least 0"),
        (lambda: check_count("ten", "batch"), "batch must be a whole number"),
        (lambda: check_names("noise", ("Z", "noise")), r"optimise = 'noise' must be a tuple.*such as \('noise',\)"),
        (lambda: check_names(None, ("Z", "noise")), "optimise = None must be a tuple of names out of 'Z', 'noise'"),
        (lambda: check_names(["Z", "z"], ("Z", "noise")), r"out of 'Z', 'noise'; got \['z'\]"),
        (lambda: check_finite(np.array(np.nan), "x"), "x = nan"),
        (lambda: as_real("abc", "y"), "y must be an array of real numbers"),
    ],
)
def test_wrong_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_scalars_come_back_as_floats():
    assert check_alpha(1) == 1.0
    assert isinstance(check_alpha(np.float32(0.5)), float)
    np.testing.assert_array_equal(check_alpha([0, 0.5, 1], 3), [0.0, 0.5, 1.0])
    assert isinstance(check_positive(np.array(2), "noise"), float)


@pytest.mark.parametrize("value", [3, 3.0, np.int64(3), np.uint8(3), np.float32(3), np.array(3)])
def test_whole_numbers_of_every_kind_come_back_as_int(value):
    assert type(check_count(value, "M")) is int
    assert check_count(value, "M") == 3
    assert check_count(value - value, "M", least=0) == 0
