import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepcore import features
from pepcore.features import Basis, feature_map, pull_back
from pepcore.kernels import Matern52, SquaredExponential

KERNEL = SquaredExponential(1.3, [0.7, 1.1]) + Matern52(0.6, 0.9)


def test_features_give_back_the_nystrom_covariance_and_the_residual():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(20, 2)), rng.normal(size=(5, 2))
    A, h = Basis.build(KERNEL, Z, jitter=0.0).features(X)
    Q = KERNEL(X, Z) @ np.linalg.solve(KERNEL(Z), KERNEL(Z, X))
    np.testing.assert_allclose(A.T @ A, Q, atol=1e-11)
    np.testing.assert_allclose(h, np.diag(KERNEL(X) - Q), atol=1e-11)
    assert h.min() > 0


@given(seed=st.integers(0, 10**6), M=st.integers(1, 10))
def test_no_pseudo_inputs_do_better_than_eigenvectors(seed, M):
    """The bound :eq:`gp-nystrom` on the residual variance."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(20, 2)), rng.normal(size=(M, 2))
    _, h = Basis.build(KERNEL, Z, jitter=1e-10).features(X)
    smallest = np.linalg.eigvalsh(KERNEL(X))[: 20 - M]
    assert h.sum() >= smallest.sum()


def test_two_pseudo_inputs_that_touch_hold_a_slope():
    """The limit :eq:`gp-touching`, which is approached in proportion to the distance."""
    x, variance, lengthscale = np.linspace(-4, 4, 41), 1.7, 0.8
    slope = np.sqrt(variance) * x / lengthscale * np.exp(-0.5 * (x / lengthscale) ** 2)
    errors = []
    for distance in (1e-3, 1e-4):
        Z = np.array([[0.0], [distance]])
        A, _ = Basis.build(SquaredExponential(variance, lengthscale), Z, jitter=0.0).features(x[:, None])
        errors.append(np.abs(A[1] - slope).max())
    assert errors[0] < 2e-3
    assert errors[1] == pytest.approx(errors[0] / 10, rel=0.01)


def test_residual_vanishes_at_the_pseudo_inputs():
    Z = np.random.default_rng(0).normal(size=(5, 2))
    _, h = Basis.build(KERNEL, Z, jitter=1e-12).features(Z)
    assert h.max() < 1e-10


@pytest.mark.parametrize("kernel", KERNEL.parts, ids=["se", "matern"])
def test_rounding_leaves_no_negative_residual_at_the_pseudo_inputs(kernel):
    Z = np.random.default_rng(0).normal(size=(20, 2))
    _, h = Basis.build(kernel, Z, jitter=0.0).features(Z)
    assert h.min() >= 0


@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 1000])
def test_row_blocks_cover_every_row_once(n_rows):
    joined = np.concatenate([np.arange(n_rows)[rows] for rows in features.row_blocks(n_rows, 2000)])
    np.testing.assert_array_equal(joined, np.arange(n_rows))


@given(seed=st.integers(0, 10**6))
def test_pull_back_is_the_transpose_of_the_derivative(seed):
    """For any dA, dh, symmetric or not: <dA, A'> + <dh, h'> along a random direction of kernel and Z."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(7, 2)), 2 * rng.normal(size=(4, 2))
    dA, dh = rng.normal(size=(4, 7)), rng.normal(size=7)
    gradient = pull_back(feature_map(KERNEL, Z, X, jitter=1e-4), dA, dh)
    direction = {key: rng.normal(size=np.shape(value)) for key, value in gradient.items()}

    def value(t):
        kernel = KERNEL.with_parameters({k: v + t * direction[k] for k, v in KERNEL.parameters.items()})
        A, h = Basis.build(kernel, Z + t * direction["Z"], jitter=1e-4).features(X)
        return (dA * A).sum() + (dh * h).sum()

    step = 1e-4
    numeric = (8 * (value(step) - value(-step)) - (value(2 * step) - value(-2 * step))) / (12 * step)
    exact = sum(np.sum(gradient[key] * direction[key]) for key in gradient)
    scale = sum(np.abs(gradient[key] * direction[key]).sum() for key in gradient)
    assert abs(numeric - exact) < 1e-7 * scale


def test_streaming_yields_the_same_blocks_as_stored_features(monkeypatch):
    monkeypatch.setattr(features, "BLOCK_ELEMENTS", 64 * 4)
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(200, 2)), rng.normal(size=(4, 2))
    stored = list(feature_map(KERNEL, Z, X).blocks())
    streamed = list(feature_map(KERNEL, Z, X, stream=True).blocks())
    assert len(stored) == len(streamed) == 4
    for (rows, A, h), (rows_again, A_again, h_again) in zip(stored, streamed, strict=True):
        assert rows == rows_again
        np.testing.assert_allclose(A, A_again, atol=1e-13)
        np.testing.assert_allclose(h, h_again, atol=1e-13)


def test_derivatives_kept_or_computed_anew_are_the_same(monkeypatch):
    monkeypatch.setattr(features, "BLOCK_ELEMENTS", 64 * 4)
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(200, 2)), rng.normal(size=(4, 2))
    dA, dh = rng.normal(size=(4, 200)), rng.normal(size=200)
    kept = feature_map(KERNEL, Z, X)
    assert len(kept.vjps) == 4
    monkeypatch.setattr(features, "KEPT_ELEMENTS", 0)
    anew = feature_map(KERNEL, Z, X)
    assert anew.vjps is None
    np.testing.assert_array_equal(kept.A, anew.A)
    np.testing.assert_array_equal(kept.h, anew.h)
    expected = pull_back(anew, dA, dh)
    for other in (kept, feature_map(KERNEL, Z, X, stream=True)):
        gradient = pull_back(other, dA, dh)
        for key in expected:
            np.testing.assert_allclose(gradient[key], expected[key], rtol=1e-12)


def test_jitter_grows_for_duplicate_pseudo_inputs_and_is_reported():
    Z = np.zeros((3, 2))
    basis = Basis.build(SquaredExponential(1.0, 1.0), Z, jitter=0.0)
    assert 0 < basis.jitter < 1e-8


def test_pull_back_refuses_derivatives_of_another_shape():
    found = feature_map(KERNEL, np.zeros((1, 2)), np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"dA must have shape \(1, 3\)"):
        pull_back(found, np.zeros((3, 1)), np.zeros(3))


def test_residual_variance_grows_with_the_square_of_the_distance_from_a_point_and_the_fourth_power_from_a_pair():
    """:eq:`gp-touching`: a pair holds the value and the slope, s (1 − e^{−r²}) and s (1 − e^{−r²}(1 + r²))."""
    kernel, r = SquaredExponential(2.0, 1.5), np.array([0.05, 0.3, 1.0])
    X, gap = 1.5 * r[:, None], 1e-3
    alone = feature_map(kernel, np.zeros((1, 1)), X, jitter=0.0).h
    pair = feature_map(kernel, np.array([[-gap], [gap]]), X, jitter=0.0).h
    np.testing.assert_allclose(alone, 2 * (1 - np.exp(-r**2)), rtol=1e-9)
    np.testing.assert_allclose(pair, 2 * (1 - np.exp(-r**2) * (1 + r**2)), rtol=1e-3)
    assert alone[0] == pytest.approx(2 * r[0] ** 2, rel=0.01) and pair[0] == pytest.approx(r[0] ** 4, rel=0.01)
