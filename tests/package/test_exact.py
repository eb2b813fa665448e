"""Exact regression and full Power EP against formulas written another way, integration, bounds and reference values."""

import warnings

import numpy as np
import pytest
from conftest import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import central_differences
from scipy.integrate import dblquad
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr
from scipy.stats import multivariate_normal

from pepcore import exact
from pepcore.kernels import Matern52, SquaredExponential
from pepcore.likelihoods import Gaussian, Poisson, Probit
from pepcore.sites import Sites, cavity, site_energy, target

KERNELS = {
    "se": SquaredExponential(1.3, [0.8, 1.2]),
    "matern": Matern52(0.9, [1.1, 0.7]),
    "sum": SquaredExponential(0.7, 1.5) + Matern52(0.5, [0.9, 1.4]),
}
ALPHAS = [0.0, 1e-6, 0.3, 0.5, 1.0]


def regression_problem(seed=0, N=30):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    return X, np.sin(2 * X.sum(axis=1)) + 0.3 * rng.normal(size=N), rng.normal(size=(7, 2))


def labelled_problem(seed=0, N=25):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=N) > 0, 1.0, -1.0), rng.normal(size=(7, 2))


def textbook(kernel, X, y, noise, Xs):
    """GPML eqs (2.25), (2.26) and (2.30) with plain inverses."""
    K_y = kernel(X) + noise * np.eye(len(X))
    mean = kernel(Xs, X) @ np.linalg.solve(K_y, y)
    covariance = kernel(Xs) - kernel(Xs, X) @ np.linalg.solve(K_y, kernel(X, Xs))
    log_evidence = -0.5 * (y @ np.linalg.solve(K_y, y) + np.linalg.slogdet(K_y)[1] + len(y) * np.log(2 * np.pi))
    return log_evidence, mean, covariance


def numerical_gradient(evidence, kernel, step=1e-5):
    """Central differences in the logarithm of each kernel parameter, as derivatives in natural units."""
    along = lambda key: lambda logarithm: evidence(kernel.with_parameters({key: np.exp(logarithm)}))
    return {key: central_differences(along(key), np.log(value), step) / value for key, value in kernel.parameters.items()}


def assert_gradients_agree(found, expected, rtol=1e-6):
    scale = max(np.max(np.abs(value)) for value in expected.values())
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=rtol, atol=rtol * scale, err_msg=key)


# --- regression -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_regression_is_the_textbook(kernel):
    X, y, Xs = regression_problem()
    fit = exact.regression(kernel, X, y, noise=0.1)
    log_evidence, mean, covariance = textbook(kernel, X, y, 0.1, Xs)
    assert fit.log_evidence == pytest.approx(log_evidence, rel=1e-12)
    found_mean, found_variance = fit.predict_f(Xs)
    np.testing.assert_allclose(found_mean, mean, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found_variance, np.diag(covariance), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(fit.posterior.predict_full(Xs)[1], covariance, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(fit.predict_y(Xs)[1], np.diag(covariance) + 0.1, rtol=1e-9)
    assert fit.converged


def test_regression_is_linear_regression_on_narrow_bumps():
    """The kernel as the sum :eq:`gp-bumps`, and the posterior :eq:`gp-weight-space` of the weights of its bumps."""
    X, Xs = np.linspace(0, 6, 25)[:, None], np.linspace(-0.5, 6.5, 9)[:, None]
    y, noise, variance, lengthscale, spacing = np.sin(X[:, 0]), 0.1, 1.4, 0.9, 0.3
    centres = np.arange(-6, 12, spacing)[:, None]
    height = np.sqrt(variance * spacing / (lengthscale * np.sqrt(np.pi / 2)))
    bumps = lambda x: height * np.exp(-(((x.T - centres) / lengthscale) ** 2))
    kernel, Psi = SquaredExponential(variance, lengthscale), bumps(X)
    np.testing.assert_allclose(bumps(Xs).T @ Psi, kernel(Xs, X), atol=1e-12)
    V = np.linalg.inv(np.eye(len(centres)) + Psi @ Psi.T / noise)
    mean, covariance = exact.regression(kernel, X, y, noise=noise).predict_f(Xs)
    np.testing.assert_allclose(bumps(Xs).T @ (V @ Psi @ y / noise), mean, atol=1e-9)
    np.testing.assert_allclose(np.sum(bumps(Xs) * (V @ bumps(Xs)), axis=0), covariance, atol=1e-9)


def test_the_evidence_forecasts_the_data_one_by_one():
    """The chain rule :eq:`gp-chain`: each datum predicted from those before it."""
    X, y, _ = regression_problem()
    kernel = KERNELS["se"]
    first = Gaussian(0.1).log_predictive(y[:1], np.zeros(1), kernel.diagonal(X[:1]))[0]
    later = [exact.regression(kernel, X[:n], y[:n], noise=0.1).log_density(X[n : n + 1], y[n : n + 1])[0]
             for n in range(1, len(y))]
    assert exact.regression(kernel, X, y, noise=0.1).log_evidence == pytest.approx(first + sum(later), rel=1e-8)


def test_regression_predicts_without_a_trace_of_the_jitter():
    """Close inputs make K singular to rounding, and a jitter a million times larger changes no prediction."""
    X, y = np.linspace(0, 1, 40)[:, None], np.sin(np.linspace(0, 6, 40))
    kernel, Xs = SquaredExponential(2.0, 1.0), np.linspace(-0.5, 1.5, 9)[:, None]
    _, mean, covariance = textbook(kernel, X, y, 0.01, Xs)
    for jitter in (1e-11, 1e-10, 1e-5):
        fit = exact.regression(kernel, X, y, noise=0.01, jitter=jitter)
        found_mean, found_variance = fit.predict_f(Xs)
        np.testing.assert_allclose(found_mean, mean, rtol=1e-8)
        np.testing.assert_allclose(found_variance, np.diag(covariance), rtol=1e-7, atol=1e-9)


@given(
    seed=st.integers(0, 10**6), name=st.sampled_from(sorted(KERNELS)), noise=st.floats(-3, 0.5).map(lambda e: 10.0**e)
)
@settings(max_examples=60)
def test_regression_gradient(seed, name, noise):
    X, y, _ = regression_problem(seed, N=12)
    kernel = KERNELS[name]
    found = exact.regression(kernel, X, y, noise=noise).gradient
    expected = numerical_gradient(lambda k: exact.regression(k, X, y, noise=noise).log_evidence, kernel)
    h = 1e-5 * noise
    ends = [exact.regression(kernel, X, y, noise=noise + s * h).log_evidence for s in (1, -1)]
    expected["noise"] = (ends[0] - ends[1]) / (2 * h)
    assert set(found) == set(expected)
    # the evidence is summed from terms of the size of yᵀy/noise; the difference quotient keeps that much less of them
    rounding = 1e-16 * (y @ y / noise + 10) / 1e-5
    for key, value in expected.items():
        unit = noise if key == "noise" else kernel.parameters[key]
        np.testing.assert_allclose(found[key] * unit, value * unit, rtol=1e-6, atol=1e-7 + 10 * rounding, err_msg=key)


# --- inference --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_gaussian_likelihood_is_regression_after_one_sweep(alpha, schedule):
    X, y, Xs = regression_problem()
    kernel = KERNELS["se"]
    expected = exact.regression(kernel, X, y, noise=0.2)
    fit = exact.infer(kernel, X, y, Gaussian(0.2), alpha=alpha, schedule=schedule)
    assert fit.converged
    assert fit.sweeps == 1
    assert fit.log_evidence == pytest.approx(expected.log_evidence, rel=1e-10)
    np.testing.assert_allclose(fit.predict_f(Xs), expected.predict_f(Xs), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fit.sites.tau, 1 / 0.2, rtol=1e-9)
    np.testing.assert_allclose(fit.sites.nu, y / 0.2, rtol=1e-8, atol=1e-8)
    for key, value in fit.gradient.items():
        np.testing.assert_allclose(value, expected.gradient[key], rtol=1e-8)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_sequential_and_parallel_have_the_same_fixed_point(alpha):
    X, y, Xs = labelled_problem()
    fits = [
        exact.infer(KERNELS["matern"], X, y, Probit(), alpha=alpha, schedule=schedule, step=step, tolerance=1e-11)
        for schedule, step in (("parallel", 1.0), ("sequential", 1.0), ("parallel", 0.6), ("sequential", 0.7))
    ]
    for fit in fits:
        assert fit.converged
        assert fit.log_evidence == pytest.approx(fits[0].log_evidence, rel=1e-11)
        np.testing.assert_allclose(fit.sites.tau, fits[0].sites.tau, rtol=1e-8)
        np.testing.assert_allclose(fit.predict_f(Xs), fits[0].predict_f(Xs), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_order_of_data_does_not_matter(alpha, schedule):
    X, y, Xs = labelled_problem()
    order = np.random.default_rng(7).permutation(len(y))
    fit = exact.infer(KERNELS["se"], X, y, Probit(), alpha=alpha, schedule=schedule, tolerance=1e-11)
    shuffled = exact.infer(KERNELS["se"], X[order], y[order], Probit(), alpha=alpha, schedule=schedule, tolerance=1e-11)
    assert shuffled.log_evidence == pytest.approx(fit.log_evidence, rel=1e-11)
    np.testing.assert_allclose(shuffled.sites.nu, fit.sites.nu[order], rtol=1e-8)
    np.testing.assert_allclose(shuffled.predict_f(Xs), fit.predict_f(Xs), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.5, 1.0])
def test_gradient_against_differences_of_converged_evidences(alpha, name):
    X, y, _ = labelled_problem(seed=3, N=15)
    evidence = lambda k: exact.infer(k, X, y, Probit(), alpha=alpha, tolerance=1e-12).log_evidence
    found = exact.infer(KERNELS[name], X, y, Probit(), alpha=alpha, tolerance=1e-12).gradient
    assert_gradients_agree(found, numerical_gradient(evidence, KERNELS[name], step=1e-4), rtol=1e-6)


def test_gradient_with_private_powers():
    X, y, _ = labelled_problem(seed=4, N=15)
    alpha = np.linspace(0, 1, 15)
    evidence = lambda k: exact.infer(k, X, y, Probit(), alpha=alpha, tolerance=1e-12).log_evidence
    found = exact.infer(KERNELS["se"], X, y, Probit(), alpha=alpha, tolerance=1e-12).gradient
    assert_gradients_agree(found, numerical_gradient(evidence, KERNELS["se"], step=1e-4))


def test_private_powers_that_are_equal_are_one_power():
    X, y, _ = labelled_problem()
    one = exact.infer(KERNELS["se"], X, y, Probit(), alpha=0.4)
    many = exact.infer(KERNELS["se"], X, y, Probit(), alpha=np.full(len(y), 0.4))
    assert many.log_evidence == pytest.approx(one.log_evidence, rel=1e-13)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_evidence_is_the_sum_of_log_normalisers(alpha):
    """G(q) − G(p) + Σ (l + site_energy) with plain inverses, at sites that are no fixed point.

    The heights are those of :eq:`pep-height`, at power 1 :eq:`ep-height`, where the sum is :eq:`ep-evidence-natural`.
    """
    X, y, _ = labelled_problem()
    kernel = KERNELS["se"]
    with pytest.warns(RuntimeWarning):
        fit = exact.infer(kernel, X, y, Probit(), alpha=alpha, step=0.7, max_sweeps=2)
    expected = sum_of_log_normalisers(kernel(X) + 1e-13 * np.eye(len(y)), y, fit.sites, alpha)
    assert fit.log_evidence == pytest.approx(expected, rel=1e-7)


def sum_of_log_normalisers(K, y, sites, alpha):
    covariance = np.linalg.inv(np.linalg.inv(K) + np.diag(sites.tau))
    mean, variance = covariance @ sites.nu, np.diag(covariance)
    l, _, _ = Probit().log_moment(y, *cavity(mean, variance, sites, alpha), alpha)
    log_normalisers = 0.5 * (np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(K)[1] + sites.nu @ mean)
    return log_normalisers + (l + site_energy(mean, variance, sites, alpha)).sum()


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_the_evidence_is_flat_in_the_sites_at_a_fixed_point_and_nowhere_else(alpha):
    """The slope :eq:`pep-flat` along the site of each datum, by differences of the evidence.

    A tilted distribution has the moments of q with its own site moved by alpha times the way to the target.
    """
    X, y, _ = labelled_problem(N=6)
    K = KERNELS["se"](X) + 0.1 * np.eye(6)

    def expectations(tau, nu):
        covariance = np.linalg.inv(np.linalg.inv(K) + np.diag(tau))
        mean = covariance @ nu
        return np.array([mean, -0.5 * (mean**2 + np.diag(covariance))]), mean, np.diag(covariance)

    def goal_of(sites):
        omega, mean, variance = expectations(sites.tau, sites.nu)
        cavities = cavity(mean, variance, sites, alpha)
        _, d1, d2 = Probit().log_moment(y, *cavities, alpha)
        return omega, target(*cavities, d1, d2, alpha)

    def largest_slope(sites):
        omega, goal = goal_of(sites)
        moved = [alpha * (goal.tau - sites.tau), alpha * (goal.nu - sites.nu)]
        tilted = [expectations(sites.tau + e * moved[0], sites.nu + e * moved[1])[0] - omega for e in np.eye(6)]
        expected = np.sum(tilted, axis=0) / alpha - np.array([tilted[j][:, j] for j in range(6)]).T
        numeric = np.empty((2, 6))
        for i, j in np.ndindex(2, 6):
            ends = []
            for step in (1e-5, -1e-5):
                there = Sites(sites.tau.copy(), sites.nu.copy())
                (there.nu, there.tau)[i][j] += step
                ends.append(sum_of_log_normalisers(K, y, there, alpha))
            numeric[i, j] = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(numeric, expected, atol=1e-8)
        return np.abs(expected).max()

    sites = Sites(np.full(6, 0.2), 0.3 * y)
    assert largest_slope(sites) > 1e-2
    for _ in range(200):
        sites = sites.toward(goal_of(sites)[1], 0.5)
    assert largest_slope(sites) < 1e-10


@pytest.mark.parametrize("alpha", [0.3, 0.8])
def test_the_evidence_rises_with_alpha_by_the_divergence_of_the_tilted_distributions(alpha):
    """The slope :eq:`pep-slope`, by differences of converged evidences and by sums over a grid."""
    X, y, _ = labelled_problem(seed=5, N=12)
    fits = [exact.infer(KERNELS["se"], X, y, Probit(), alpha=a, tolerance=1e-12) for a in (alpha - 1e-4, alpha, alpha + 1e-4)]
    mean, variance = fits[1].predict_f(X)
    z = np.linspace(-12, 12, 4001)
    f = mean[:, None] + np.sqrt(variance)[:, None] * z
    tau, nu = fits[1].sites.tau[:, None], fits[1].sites.nu[:, None]
    q = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    tilted = q * np.exp(alpha * (log_ndtr(y[:, None] * f) - nu * f + 0.5 * tau * f**2))
    tilted /= tilted.sum(axis=1, keepdims=True)
    expected = np.sum(tilted * np.log(tilted / q)) / alpha**2
    assert expected > 0.001
    assert (fits[2].log_evidence - fits[0].log_evidence) / 2e-4 == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("noise", [1e-4, 1e-8, 1e-12, 1e-15])
def test_sharp_sites_cost_no_digits(noise, alpha):
    """With nearly noise-free data the terms of the evidence are of the size y²/noise, and they must cancel on paper."""
    X, y, _ = regression_problem()
    kernel = SquaredExponential(1.0, 0.3)
    regression, fit = exact.regression(kernel, X, y, noise=noise), exact.infer(kernel, X, y, Gaussian(noise), alpha=alpha)
    assert fit.converged
    assert fit.sweeps <= 3
    assert fit.log_evidence == pytest.approx(regression.log_evidence, rel=1e-12)
    if alpha == 1:
        assert fit.gradient["noise"] == pytest.approx(regression.gradient["noise"], rel=1e-10)


def direct_bound(kernel, X, y):
    """max over all Gaussians q(f) of E_q[log p(y|f)] − KL(q ‖ p), by L-BFGS over mean and Cholesky factor in f = L v."""
    N = len(y)
    L = np.linalg.cholesky(kernel(X) + 1e-12 * np.eye(N))
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    lower = np.tril_indices(N)

    def negative_bound(parameters):
        m, C = parameters[:N], np.zeros((N, N))
        C[lower] = parameters[N:]
        LC = L @ C
        sd = np.sqrt((LC**2).sum(axis=1))
        f = (L @ m)[:, None] + sd[:, None] * nodes
        log_p = log_ndtr(y[:, None] * f)
        slope = y[:, None] * np.exp(-0.5 * f**2 - log_p) / np.sqrt(2 * np.pi)
        diagonal = np.diag(C)
        value = (log_p @ weights).sum() - 0.5 * ((C**2).sum() + m @ m - N - 2 * np.log(np.abs(diagonal)).sum())
        dm = L.T @ (slope @ weights) - m
        dsd = (slope * nodes) @ weights
        dC = L.T @ ((dsd / sd)[:, None] * LC) - C + np.diag(1 / diagonal)
        return -value, -np.concatenate([dm, dC[lower]])

    start = np.concatenate([np.zeros(N), np.eye(N)[lower]])
    return -minimize(negative_bound, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-15}).fun


def test_alpha_zero_is_the_best_variational_bound():
    X, y, _ = labelled_problem(seed=5, N=12)
    found = exact.infer(KERNELS["se"], X, y, Probit(), alpha=0.0, tolerance=1e-10).log_evidence
    assert found == pytest.approx(direct_bound(KERNELS["se"], X, y), rel=1e-8)


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.95])
@pytest.mark.parametrize("y", [[1.0, 1.0], [1.0, -1.0]])
def test_two_data_against_the_integral(y, correlation):
    """EP is close to the integral, the bound below it, and the power lies in between.

    The integral is that of the density and, by :eq:`pep-orthant`, a probability.
    """
    y = np.array(y)
    kernel = SquaredExponential(4.0, 1.0)
    X = np.array([[0.0], [np.sqrt(-2 * np.log(correlation)) if correlation else 50.0]])
    P = np.linalg.inv(kernel(X))
    norm = np.sqrt(np.linalg.det(P)) / (2 * np.pi)

    def joint(b, a):
        f = np.array([a, b])
        return norm * np.exp(-0.5 * f @ P @ f) * np.prod(ndtr(y * f))

    truth = np.log(dblquad(joint, -16, 16, -16, 16, epsabs=1e-9)[0])
    signed = np.outer(y, y) * (kernel(X) + np.eye(2))
    assert truth == pytest.approx(multivariate_normal(np.zeros(2), signed).logcdf(np.zeros(2)), abs=1e-6)
    evidences = [exact.infer(kernel, X, y, Probit(), alpha=a).log_evidence for a in (0.0, 0.5, 1.0)]
    assert evidences[0] < truth
    assert evidences[0] < evidences[1] < evidences[2]
    assert evidences[2] == pytest.approx(truth, abs=1e-7 if correlation == 0 else 0.02)


def test_bound_is_below_ep_and_rises_sweep_by_sweep():
    X, y, _ = labelled_problem(seed=6)
    fit = exact.infer(KERNELS["se"], X, y, Probit(), alpha=0.0, step=0.5)
    bounds = [sweep["log_evidence"] for sweep in fit.history]
    assert np.all(np.diff(bounds) > -1e-10)
    assert fit.log_evidence < exact.infer(KERNELS["se"], X, y, Probit(), alpha=1.0).log_evidence


def test_damping_sets_in_by_itself():
    """Confident labels and a large variance make the undamped parallel update overshoot."""
    X, y, _ = labelled_problem(seed=1, N=40)
    kernel = SquaredExponential(100.0, 1.0)
    fit = exact.infer(kernel, X, y, Probit(), alpha=0.5, max_sweeps=300)
    assert fit.converged
    assert min(sweep["step"] for sweep in fit.history) < 1
    slow = exact.infer(kernel, X, y, Probit(), alpha=0.5, step=0.2, max_sweeps=1000)
    assert fit.log_evidence == pytest.approx(slow.log_evidence, rel=1e-8)


def test_what_has_not_converged_says_so():
    X, y, _ = labelled_problem()
    with pytest.warns(RuntimeWarning, match="not converged after 2 sweeps"):
        fit = exact.infer(KERNELS["se"], X, y, Probit(), max_sweeps=2)
    assert not fit.converged
    assert fit.sweeps == 2
    assert len(fit.history) == 3
    assert np.isfinite([fit.log_evidence, *np.ravel(fit.predict_f(X))]).all()


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("variance", [1e-6, 1e-2, 1e3])
def test_extreme_variances_give_numbers(variance, alpha):
    X, y, Xs = labelled_problem()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        fit = exact.infer(SquaredExponential(variance, 1.0), X, y, Probit(), alpha=alpha, max_sweeps=100)
    assert np.isfinite(fit.log_evidence)
    assert np.all((fit.predict_y(Xs) > 0) & (fit.predict_y(Xs) < 1))
    if variance < 1e-5:
        assert fit.log_evidence == pytest.approx(len(y) * np.log(0.5), rel=1e-4)


# --- what the caller gets wrong, and hard but legal input -------------------------------------------------------------


@pytest.mark.parametrize(("options", "message"), [
    ({"alpha": 1.5}, r"alpha = 1\.5 is outside \[0, 1\]"),
    ({"alpha": np.ones(3)}, r"alpha has shape \(3,\)"),
    ({"schedule": "random"}, "schedule = 'random' is unknown; choose 'parallel'"),
    ({"step": 1.2}, r"step = 1\.2 must be in \(0, 1\]"),
])
def test_bad_options_are_named(options, message):
    X, y, _ = labelled_problem()
    with pytest.raises(ValueError, match=message):
        exact.infer(KERNELS["se"], X, y, Probit(), **options)


def test_labels_that_count_from_zero_are_told_how_to_change():
    X, y, _ = labelled_problem()
    with pytest.raises(ValueError, match=r"2 \* y - 1"):
        exact.infer(KERNELS["se"], X, (y > 0).astype(int), Probit())


def test_noise_that_is_not_positive_is_named():
    X, y, _ = regression_problem()
    with pytest.raises(ValueError, match=r"noise = 0\.0 must be positive"):
        exact.regression(KERNELS["se"], X, y, noise=0.0)


def test_two_readings_of_each_datum_are_one_with_half_the_noise():
    X, y, Xs = regression_problem()
    twice = exact.regression(KERNELS["se"], np.vstack([X, X]), np.concatenate([y, y]), noise=0.2)
    once = exact.regression(KERNELS["se"], X, y, noise=0.1)
    np.testing.assert_allclose(twice.predict_f(Xs), once.predict_f(Xs), rtol=1e-7, atol=1e-9)


def test_with_hardly_any_noise_the_data_are_interpolated():
    X, y, _ = regression_problem()
    mean, variance = exact.regression(SquaredExponential(1.0, 0.3), X, y, noise=1e-12).predict_f(X)
    np.testing.assert_allclose(mean, y, atol=1e-4)
    assert np.all(variance >= 0)


def test_labels_of_one_class_make_it_the_likelier_one_everywhere():
    X, _, Xs = regression_problem()
    same = exact.infer(KERNELS["se"], X, np.ones(len(X)), Probit())
    assert np.all(same.predict_y(Xs) > 0.5)


def test_the_evidence_of_one_label_is_a_half():
    X, _, _ = regression_problem()
    single = exact.infer(KERNELS["se"], X[:1], np.array([1.0]), Probit())
    assert single.log_evidence == pytest.approx(np.log(0.5), rel=1e-12)


def test_nothing_of_the_callers_is_changed():
    X, y, Xs = labelled_problem()
    for array in (X, y, Xs):
        array.setflags(write=False)
    exact.regression(KERNELS["sum"], X, y).predict_f(Xs)
    for schedule in ("parallel", "sequential"):
        fit = exact.infer(KERNELS["sum"], X, y, Probit(), alpha=0.5, schedule=schedule)
        assert set(fit.gradient) == set(KERNELS["sum"].parameters)


# --- values that existing packages give -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["small", "mid"])
def test_reference_full_regression(size):
    values = reference(f"gpy_regression_{size}.npz")
    kernel = SquaredExponential(float(values["s2"]), values["ls"])
    # the package that made them adds 1e-8 to the noise
    fit = exact.regression(kernel, values["X"], values["y"].ravel(), noise=float(values["noise"]) + 1e-8)
    mean, variance = fit.predict_f(values["Xs"])
    assert fit.log_evidence == pytest.approx(float(values["fullgp__lml"]), rel=1e-10)
    np.testing.assert_allclose(mean, values["fullgp__mean"].ravel(), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(variance, values["fullgp__var_f"].ravel(), rtol=1e-9)


@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
def test_reference_full_ep(schedule):
    values = reference("classification_small.npz")
    kernel = SquaredExponential(float(values["s2"]), values["ls"])
    given = lambda name: values[f"gpy_ep_full_eta1.0__{name}"].squeeze()
    fit = exact.infer(kernel, values["X"], values["y_pm1"].ravel(), Probit(), alpha=1.0, schedule=schedule, tolerance=1e-11)
    mean, variance = fit.predict_f(values["Xs"])
    assert fit.log_evidence == pytest.approx(float(given("lml")), rel=1e-10)
    np.testing.assert_allclose(mean, given("mean_f"), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(variance, given("var_f"), rtol=1e-6)
    np.testing.assert_allclose(fit.predict_y(values["Xs"]), given("p1"), rtol=1e-6)
    np.testing.assert_allclose(fit.gradient["variance"], given("ds2"), rtol=1e-6)
    np.testing.assert_allclose(fit.gradient["lengthscales"], given("dls"), rtol=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 0.5, 0.2])
def test_reference_full_power_ep(alpha):
    values = reference("classification_small.npz")
    kernel = SquaredExponential(float(values["s2"]), values["ls"])
    X, y = values["X"], values["y_pm1"].ravel()
    fit = exact.infer(kernel, X, y, Probit(), alpha=alpha, tolerance=1e-11)
    mean, variance = fit.predict_f(X)
    given = lambda name: values[f"quad_fullpep_{alpha}__{name}"]
    assert fit.log_evidence == pytest.approx(float(given("lml")), rel=1e-10)
    np.testing.assert_allclose(mean, given("mean_train").ravel(), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(variance, given("var_train").ravel(), rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_gradient_in_the_noise_against_differences_of_converged_evidences(alpha):
    X, y, _ = labelled_problem(seed=5, N=15)
    fit = lambda noise: exact.infer(KERNELS["se"], X, y, Gaussian(noise), alpha=alpha, tolerance=1e-12)
    slope = (fit(0.3 + 1e-5).log_evidence - fit(0.3 - 1e-5).log_evidence) / 2e-5
    assert fit(0.3).gradient["noise"] == pytest.approx(slope, rel=1e-6)


def test_private_powers_lead_to_one_fixed_point_in_either_order():
    X, y, Xs = labelled_problem()
    alpha = np.linspace(0, 1, len(y))
    options = {"alpha": alpha, "tolerance": 1e-11}
    one, other = (exact.infer(KERNELS["se"], X, y, Probit(), schedule=way, **options) for way in ("parallel", "sequential"))
    assert one.converged and other.converged
    assert other.log_evidence == pytest.approx(one.log_evidence, rel=1e-11)
    np.testing.assert_allclose(other.sites.tau, one.sites.tau, rtol=1e-8)
    np.testing.assert_allclose(other.predict_f(Xs), one.predict_f(Xs), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_inference_on_large_counts_converges_in_a_few_sweeps(alpha):
    """f is far from 0, its prior mean, and known to a thousandth: rounding in the sites must not count as movement."""
    X = np.linspace(0, 20, 12)[:, None]
    y = np.random.default_rng(0).poisson(1e4 * np.exp(np.sin(X[:, 0]))).astype(float)
    fit = exact.infer(SquaredExponential(200.0, [0.5]), X, y, Poisson(), alpha=alpha)
    assert fit.converged and fit.sweeps <= 6
