import numpy as np
import pytest

from pepcore import exact, power_ep
from pepcore.kernels import Matern52, SquaredExponential

KERNEL = SquaredExponential(1.2, [0.8, 1.3]) + Matern52(0.4, 1.0)


@pytest.fixture
def posterior():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = np.sin(X.sum(axis=1)) + 0.2 * rng.normal(size=30)
    return power_ep.regression(KERNEL, rng.normal(size=(6, 2)), X, y, alpha=0.5, jitter=1e-8).posterior


@pytest.fixture
def Xs():
    return np.random.default_rng(1).normal(size=(5, 2))


def test_variance_is_the_diagonal_of_the_full_covariance(posterior, Xs):
    mean, variance = posterior.predict(Xs)
    full_mean, covariance = posterior.predict_full(Xs)
    np.testing.assert_allclose(full_mean, mean, rtol=1e-12)
    np.testing.assert_allclose(np.diag(covariance), variance, rtol=1e-10)


def test_samples_have_the_predicted_mean_and_covariance(posterior, Xs):
    mean, covariance = posterior.predict_full(Xs)
    draws = posterior.sample(Xs, 100_000, np.random.default_rng(2))
    standard_error = np.sqrt(np.diag(covariance) / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * standard_error)
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.abs((np.cov(draws.T) - covariance) / scale).max() < 5 * np.sqrt(2 / len(draws))


def test_log_density_is_the_joint_gaussian_of_the_predictions(posterior, Xs):
    from scipy.stats import multivariate_normal

    fs = np.random.default_rng(3).normal(size=(4, 5))
    expected = multivariate_normal(*posterior.predict_full(Xs)).logpdf(fs)
    np.testing.assert_allclose(posterior.log_density(Xs, fs), expected, rtol=1e-7)
    assert posterior.log_density(Xs, fs[0]) == pytest.approx(expected[0], rel=1e-7)


def test_log_density_refuses_values_of_another_length(posterior, Xs):
    with pytest.raises(ValueError, match="5 values per row"):
        posterior.log_density(Xs, np.zeros(4))


def test_log_density_refuses_text(posterior, Xs):
    with pytest.raises(ValueError, match="fs must be an array of real numbers"):
        posterior.log_density(Xs, ["0"] * 5)


def test_bui_and_csato_parameters_predict_the_same(posterior, Xs):
    mean, variance = posterior.predict(Xs)
    cross = KERNEL(Xs, posterior.basis.Z)
    gamma, beta = posterior.bui()
    np.testing.assert_allclose(cross @ gamma, mean, rtol=1e-8)
    np.testing.assert_allclose(KERNEL.diagonal(Xs) - np.einsum("sm,mk,sk->s", cross, beta, cross), variance, rtol=1e-6)
    alpha, C = posterior.csato()
    np.testing.assert_allclose(cross @ alpha, mean, rtol=1e-8)
    np.testing.assert_allclose(KERNEL.diagonal(Xs) + np.einsum("sm,mk,sk->s", cross, C, cross), variance, rtol=1e-6)


def test_hensman_parameters_are_the_moments_at_the_pseudo_inputs(posterior, Xs):
    mean_u, S = posterior.hensman()
    Z = posterior.basis.Z
    K_uu = KERNEL(Z) + 1e-8 * KERNEL.diagonal(Z).mean() * np.eye(len(Z))
    projection = np.linalg.solve(K_uu, KERNEL(Z, Xs))
    mean, variance = posterior.predict(Xs)
    np.testing.assert_allclose(projection.T @ mean_u, mean, rtol=1e-8)
    expected = KERNEL.diagonal(Xs) - np.einsum("ms,mk,ks->s", projection, K_uu - S, projection)
    np.testing.assert_allclose(expected, variance, rtol=1e-8)


def test_conversions_hand_out_copies(posterior, Xs):
    before = posterior.predict(Xs)[0]
    posterior.whitened()[0][:] = 0.0
    np.testing.assert_array_equal(posterior.predict(Xs)[0], before)


def test_wrong_number_of_columns_is_named(posterior):
    with pytest.raises(ValueError, match="Xs has 3 column"):
        posterior.predict(np.zeros((2, 3)))


@pytest.mark.parametrize("noise", [1e-14, 1e-16, 1e-30])
def test_a_posterior_that_almost_no_noise_leaves_has_samples_and_densities(noise):
    X = np.random.default_rng(0).uniform(-2, 2, (20, 1))
    y = np.sin(2 * X[:, 0])
    posterior = exact.regression(SquaredExponential(1.0, 0.1), X, y, noise=noise, jitter=0.0).posterior
    for rows in [*(slice(n, n + k) for k in (1, 2, 3) for n in range(20 - k)), slice(20)]:
        _, covariance = posterior.predict_full(X[rows])
        assert (np.diag(covariance) >= 0).all()  # rounding leaves it on either side
        draws = posterior.sample(X[rows], 3, np.random.default_rng(0))
        np.testing.assert_allclose(draws, np.tile(y[rows], (3, 1)), atol=1e-5)
        assert np.isfinite(posterior.log_density(X[rows], draws)).all()


def test_samples_take_a_seed_for_a_generator(posterior, Xs):
    expected = posterior.sample(Xs, 2, np.random.default_rng(7))
    np.testing.assert_array_equal(posterior.sample(Xs, 2, 7), expected)
    assert posterior.sample(Xs, 2, None).shape == (2, 5)
    old = posterior.sample(Xs, 2, np.random.RandomState(7))
    np.testing.assert_array_equal(old, posterior.sample(Xs, 2, np.random.RandomState(7)))


@pytest.mark.parametrize(
    ("size", "rng", "message"), [(2, "seed", "rng = 'seed' must be a numpy Generator"), (2.5, 0, "size = 2.5 must be a whole")]
)
def test_samples_refuse_what_is_no_seed_and_no_number(posterior, Xs, size, rng, message):
    with pytest.raises(ValueError, match=message):
        posterior.sample(Xs, size, rng)


def test_log_density_refuses_values_that_are_not_finite(posterior, Xs):
    with pytest.raises(ValueError, match=r"fs holds 1 value\(s\) that are NaN"):
        posterior.log_density(Xs, [0, 1, 2, 3, np.nan])


def test_many_rows_are_predicted_in_blocks(posterior, Xs, monkeypatch):
    together = posterior.predict(np.repeat(Xs, 40, axis=0))
    monkeypatch.setattr("pepcore.posterior.KEPT_ELEMENTS", 64 * len(posterior.mean))
    for whole, apart in zip(together, posterior.predict(np.repeat(Xs, 40, axis=0)), strict=True):
        np.testing.assert_allclose(apart, whole, rtol=1e-12)


def test_a_kernel_is_given_arrays(Xs):
    class Squares(SquaredExponential):
        def diagonal(self, X):
            return self.variance + 0 * (X**2).sum(axis=1)

    fit = power_ep.regression(Squares(), Xs, Xs, Xs[:, 0])
    assert fit.posterior.sample(Xs.tolist(), 2, 0).shape == (2, 5)
    assert np.isfinite(fit.posterior.log_density(Xs.tolist(), Xs[:, 0]))


def test_the_gradient_cannot_be_changed_through_the_posterior():
    X = np.linspace(0, 1, 20)[:, None]
    fit = power_ep.regression(SquaredExponential(), X[::4], X, np.sin(X[:, 0]))
    for values in (fit.posterior.mean, fit.posterior.precision_cholesky):
        with pytest.raises(ValueError, match="read-only"):
            values[:] = 0
