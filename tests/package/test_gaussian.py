import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from pepcore import gaussian


def random_covariance(rng, size):
    root = rng.normal(size=(size, size + 2))
    return root @ root.T / size


def test_products_and_inverses_from_triangular_factors():
    L = np.linalg.cholesky(random_covariance(np.random.default_rng(3), 7))
    before = L.copy()
    np.testing.assert_allclose(gaussian.gram_lower(L), L.T @ L, rtol=1e-12)
    np.testing.assert_allclose(gaussian.cholesky_inverse(L) @ L @ L.T, np.eye(7), atol=1e-9)
    np.testing.assert_array_equal(L, before)


def test_kl_divergence_equals_the_average_log_ratio_of_samples():
    rng = np.random.default_rng(1)
    q = (np.array([0.3, -0.2]), random_covariance(rng, 2) + np.eye(2))
    p = (np.array([-0.1, 0.5]), random_covariance(rng, 2) + np.eye(2))
    draws = rng.multivariate_normal(*q, size=200_000)
    ratio = multivariate_normal(*q).logpdf(draws) - multivariate_normal(*p).logpdf(draws)
    standard_error = ratio.std() / np.sqrt(len(ratio))
    assert abs(gaussian.kl_divergence(*q, *p) - ratio.mean()) < 5 * standard_error
    assert gaussian.kl_divergence(*q, *q) == pytest.approx(0.0, abs=1e-12)


def test_safe_cholesky_adds_no_more_jitter_than_needed_and_says_how_much():
    K = np.ones((3, 3))  # rank one
    before = K.copy()
    L, jitter = gaussian.safe_cholesky(K, scale=2.0, jitter=1e-12)
    np.testing.assert_allclose(L @ L.T, K + 2.0 * jitter * np.eye(3), atol=1e-14)
    assert 1e-12 <= jitter <= 1e-9
    np.testing.assert_array_equal(K, before)


def test_safe_cholesky_never_adds_more_than_its_limit():
    with pytest.raises(gaussian.NotPositiveDefiniteError, match="even with a jitter of 1e-02"):
        gaussian.safe_cholesky(np.diag([1.0, 1.0, -0.02]), jitter=5e-3)


def test_safe_cholesky_names_matrix_size_and_condition_when_it_gives_up():
    with pytest.raises(gaussian.NotPositiveDefiniteError, match=r"K_uu \(2 x 2, condition number 3\.0e\+00\)"):
        gaussian.safe_cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]), name="K_uu")


def test_the_condition_number_is_computed_only_for_those_who_read_it(monkeypatch):
    asked = []
    monkeypatch.setattr(np.linalg, "cond", lambda matrix: asked.append(matrix) or 7.0)
    with pytest.raises(gaussian.NotPositiveDefiniteError) as caught:
        gaussian.safe_cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert not asked
    again = pickle.loads(pickle.dumps(caught.value))
    assert "condition number 7.0e+00" in str(again) and len(asked) == 1


def test_safe_cholesky_refuses_nan():
    with pytest.raises(gaussian.NotPositiveDefiniteError, match="NaN"):
        gaussian.safe_cholesky(np.full((2, 2), np.nan))


@given(seed=st.integers(0, 10**6), size=st.integers(1, 8), transposed=st.booleans())
def test_triangular_helpers_agree_with_dense_algebra(seed, size, transposed):
    rng = np.random.default_rng(seed)
    L = np.asfortranarray(np.tril(rng.normal(size=(size, size))) + 6 * np.eye(size))
    B = rng.normal(size=(size, 4))
    T = L.T if transposed else L
    np.testing.assert_allclose(T @ gaussian.solve_lower(L, B.copy(), transposed), B, atol=1e-9)
    np.testing.assert_allclose(T @ gaussian.solve_lower(L, B[:, 0], transposed), B[:, 0], atol=1e-9)
    np.testing.assert_allclose(gaussian.multiply_lower(L, np.array(B, order="F"), transposed), T @ B, atol=1e-9)
    np.testing.assert_allclose(gaussian.inverse_lower(L) @ L, np.eye(size), atol=1e-9)
    assert gaussian.log_determinant(L) == pytest.approx(np.linalg.slogdet(L @ L.T)[1])


def test_safe_cholesky_takes_whole_numbers():
    L, jitter = gaussian.safe_cholesky(np.array([[4, 2], [2, 2]]))
    np.testing.assert_array_equal(L, [[2.0, 0.0], [1.0, 1.0]])
    assert jitter == 0


@pytest.mark.parametrize("singular", ["q", "p"])
def test_a_divergence_between_singular_gaussians_is_refused(singular):
    """With a jitter it would be that of other Gaussians: 1e-12 here, as if the two were the same."""
    flat, round_ = 1e-16 * np.ones((2, 2)), np.eye(2)
    covariances = (flat, round_) if singular == "q" else (round_, flat)
    with pytest.raises(gaussian.NotPositiveDefiniteError, match=f"covariance of {singular}"):
        gaussian.kl_divergence(np.zeros(2), covariances[0], np.zeros(2), covariances[1])


def test_a_divergence_between_small_covariances_is_right():
    covariance = 1e-16 * np.ones((2, 2)) + 1e-22 * np.eye(2)
    found = gaussian.kl_divergence(np.zeros(2), covariance, np.zeros(2), 2 * covariance)
    assert found == pytest.approx(0.5 * (1 - 2 + 2 * np.log(2)), rel=1e-6)


def test_a_triangular_matrix_without_an_inverse_is_refused():
    with pytest.raises(gaussian.NotPositiveDefiniteError, match="row 1"):
        gaussian.inverse_lower(np.array([[1.0, 0.0], [2.0, 0.0]]))


def test_a_product_is_not_written_into_an_array_that_is_read_only():
    B = np.asfortranarray(np.ones((2, 3)))
    B.setflags(write=False)
    for product in (lambda: gaussian.multiply_lower(np.asfortranarray(2 * np.eye(2)), B),
                    lambda: gaussian.add_outer(B, np.ones(2), np.ones(3))):
        with pytest.raises(ValueError, match="read-only"):
            product()
    assert (B == 1).all()
