"""The one update: its parts against Gaussian algebra done another way, and its limit at alpha = 0."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepcore.gaussian import log1p_ratio, log_ratio
from pepcore.likelihoods import Gaussian, Probit
from pepcore.sites import ImproperCavityError, Sites, cavity, move, rank_one_update, site_energy, target
from pepcore.sweeps import PATIENT_STEP, damped_step


def posterior(prior_variance, prior_mean, sites):
    """Marginals of a prior that is independent over data, times the sites."""
    precision = 1 / prior_variance + sites.tau
    return (prior_mean / prior_variance + sites.nu) / precision, 1 / precision


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    sites = Sites(rng.uniform(0, 2, 20), rng.normal(size=20))
    return rng.uniform(0.5, 3, 20), rng.normal(size=20), sites


def test_cavity_takes_out_what_was_multiplied_in(problem):
    """The cavity of :eq:`pep-fraction`, at powers 1, 1/2 and 0."""
    prior_variance, prior_mean, sites = problem
    mean, variance = posterior(prior_variance, prior_mean, sites)
    np.testing.assert_allclose(cavity(mean, variance, sites, 1.0), [prior_mean, prior_variance], rtol=1e-12)
    half = Sites(0.5 * sites.tau, 0.5 * sites.nu)
    np.testing.assert_allclose(
        cavity(mean, variance, sites, 0.5), posterior(prior_variance, prior_mean, half), rtol=1e-12
    )
    np.testing.assert_array_equal(cavity(mean, variance, sites, 0.0), [mean, variance])


def test_improper_cavity_is_reported():
    mean, variance, sites = np.zeros(3), np.ones(3), Sites(np.array([0.5, 2.5, 0.1]), np.zeros(3))
    with pytest.raises(ImproperCavityError, match=r"1 of 3 cavities.*datum 1"):
        cavity(mean, variance, sites, 0.5)
    cavity(mean, variance, sites, 0.3)
    with pytest.raises(ImproperCavityError):
        cavity(mean, variance, Sites(np.array([0.0, np.nan, 0.0]), np.zeros(3)), 0.5)


def test_improper_cavities_of_many_classes_name_the_datum():
    tau = np.zeros((2, 3, 5))
    tau[1, 2, 4] = 2.0
    with pytest.raises(ImproperCavityError, match=r"1 of 30 cavities.*datum 4"):
        cavity(np.zeros(tau.shape), np.ones(tau.shape), Sites(tau, tau), alpha=1.0)


@pytest.mark.parametrize("alpha", [0.0, 1e-9, 0.3, 1.0])
def test_target_matches_the_tilted_moments(alpha):
    """cavity · target^α has the mean and variance of cavity · p^α, which the derivatives of α l give.

    At power 1 this is :eq:`ep-moments`.
    """
    rng = np.random.default_rng(1)
    m, v, y = rng.normal(size=15), rng.uniform(0.2, 5, 15), rng.choice([-1.0, 1.0], 15)
    _, d1, d2 = Probit().log_moment(y, m, v, alpha)
    new = target(m, v, d1, d2, alpha)
    mean, variance = posterior(v, m, Sites(alpha * new.tau, alpha * new.nu))
    np.testing.assert_allclose(mean, m + alpha * v * d1, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(variance, v + alpha * v**2 * d2, rtol=1e-11)


def test_target_of_a_gaussian_is_the_likelihood_itself():
    m, v, y = np.array([0.3, -2.0]), np.array([1.0, 4.0]), np.array([1.0, 0.5])
    for alpha in (0.0, 0.4, 1.0):
        _, d1, d2 = Gaussian(0.2).log_moment(y, m, v, alpha)
        new = target(m, v, d1, d2, alpha)
        np.testing.assert_allclose(new.tau, 1 / 0.2, rtol=1e-12)
        np.testing.assert_allclose(new.nu, y / 0.2, rtol=1e-12)


def test_target_at_zero_is_the_natural_gradient():
    """τ* = −E_q[∂² log p] and ν* = E_q[∂ log p] + τ* μ, by plain quadrature."""
    x, w = np.polynomial.hermite_e.hermegauss(60)
    m, v, y = np.array([0.4, -1.0, 2.0]), np.array([0.5, 1.0, 0.2]), np.array([1.0, 1.0, -1.0])
    _, g, bend = Probit().derivatives(y[:, None], m[:, None] + np.sqrt(v)[:, None] * x)
    mean_g, mean_bend = g @ w / w.sum(), bend @ w / w.sum()
    _, d1, d2 = Probit().log_moment(y, m, v, 0.0)
    new = target(m, v, d1, d2, 0.0)
    np.testing.assert_allclose(new.tau, -mean_bend, rtol=1e-8)
    np.testing.assert_allclose(new.nu, mean_g - mean_bend * m, rtol=1e-8)


def log_normaliser(mean, variance):
    """The log-integral :eq:`ep-normaliser`."""
    return 0.5 * np.log(2 * np.pi * variance) + 0.5 * mean**2 / variance


@pytest.mark.parametrize("alpha", [1e-3, 0.4, 1.0])
def test_site_energy_is_a_difference_of_log_normalisers(problem, alpha):
    prior_variance, prior_mean, sites = problem
    mean, variance = posterior(prior_variance, prior_mean, sites)
    expected = (log_normaliser(*cavity(mean, variance, sites, alpha)) - log_normaliser(mean, variance)) / alpha
    np.testing.assert_allclose(site_energy(mean, variance, sites, alpha), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_what_a_datum_adds_is_the_mean_power_of_likelihood_over_site(alpha):
    """The second form of the energy, :eq:`pep-energy-ratio`, by a sum over a grid."""
    rng = np.random.default_rng(4)
    mean, variance, y = rng.normal(size=5), rng.uniform(0.3, 1, 5), rng.choice([-1.0, 1.0], 5)
    sites = Sites(rng.uniform(0, 0.9, 5), rng.normal(size=5))
    l, _, _ = Probit().log_moment(y, *cavity(mean, variance, sites, alpha), alpha)
    z, step = np.linspace(-40, 40, 20_001, retstep=True)
    f = mean[:, None] + np.sqrt(variance)[:, None] * z
    log_ratio = Probit().log_density(y[:, None], f) - sites.nu[:, None] * f + 0.5 * sites.tau[:, None] * f**2
    q = step * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    expected = np.log(np.exp(alpha * log_ratio) @ q) / alpha if alpha else log_ratio @ q
    np.testing.assert_allclose(l + site_energy(mean, variance, sites, alpha), expected, rtol=1e-9, atol=1e-9)


def test_site_energy_at_zero(problem):
    """Minus the posterior's expectation of the log site, and the limit is reached smoothly."""
    prior_variance, prior_mean, sites = problem
    mean, variance = posterior(prior_variance, prior_mean, sites)
    expected = 0.5 * sites.tau * (variance + mean**2) - sites.nu * mean
    np.testing.assert_allclose(site_energy(mean, variance, sites, 0.0), expected, rtol=1e-14)
    np.testing.assert_allclose(site_energy(mean, variance, sites, 1e-13), expected, rtol=1e-11)
    np.testing.assert_allclose(site_energy(mean, variance, sites, np.full(20, 1e-13)), expected, rtol=1e-11)


def test_damped_step():
    start, goal = Sites(np.array([1.0, 2.0]), np.array([0.0, 4.0])), Sites(np.array([3.0, 2.0]), np.array([1.0, 0.0]))
    moved = start.toward(goal, 0.25)
    np.testing.assert_array_equal(moved.tau, [1.5, 2.0])
    np.testing.assert_array_equal(moved.nu, [0.25, 3.0])
    np.testing.assert_array_equal(start.tau, [1.0, 2.0])
    np.testing.assert_array_equal(start.toward(goal, 1.0).tau, goal.tau)
    np.testing.assert_array_equal(Sites.flat(2).nu, [0.0, 0.0])


def test_log1p_ratio_loses_no_digits_near_zero():
    x = np.array([-0.9, -1e-3, -1e-300, 0.0, 1e-17, 1e-9, 0.5, 1e6])
    np.testing.assert_allclose(log1p_ratio(x[[0, 1, 6, 7]]), np.log1p(x[[0, 1, 6, 7]]) / x[[0, 1, 6, 7]], rtol=1e-15)
    np.testing.assert_allclose(log1p_ratio(x[2:5]), 1.0, rtol=1e-15)
    assert log1p_ratio(1e-9) == pytest.approx(1 - 5e-10, rel=1e-15)


def test_a_move_depends_neither_on_the_units_of_f_nor_on_its_origin():
    rng = np.random.default_rng(2)
    sites, goal = (Sites(rng.uniform(0, 2, 20), rng.normal(size=20)) for _ in range(2))
    mu, s = rng.normal(size=20), rng.uniform(0.1, 3, 20)
    way = move(sites, goal, mu, s)
    slope = lambda sites: sites.nu - sites.tau * mu
    np.testing.assert_allclose(way, [(goal.tau - sites.tau) * s, (slope(goal) - slope(sites)) * np.sqrt(s)], rtol=1e-12)
    other = lambda sites: Sites(sites.tau / 7**2, sites.nu / 7)  # f in units a seventh as large
    np.testing.assert_allclose(move(other(sites), other(goal), 7 * mu, 7**2 * s), way, rtol=1e-12)
    shifted = lambda sites: Sites(sites.tau, sites.nu + 100 * sites.tau)  # f + 100
    np.testing.assert_allclose(move(shifted(sites), shifted(goal), mu + 100, s), way, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("change", "before", "turned", "step", "largest", "expected"), [
    (1.1, 1.0, False, 0.8, 1.0, 0.4),  # further off: half
    (1.1, 1.0, True, 0.06, 1.0, PATIENT_STEP),  # but not below the patient step
    (1.1, 1.0, False, 0.01, 1.0, 0.01),  # nor longer than it was
    (0.9, 1.0, False, 0.5, 1.0, 0.55),  # nearer: a tenth longer
    (0.9, 1.0, False, 0.99, 1.0, 1.0),  # up to the longest
    (0.4, 1.0, True, 0.5, 1.0, 0.55),  # a turn that leaves less than half does no harm
    (0.8, 1.0, True, 0.9, 1.0, 1.1 * 0.9 / 1.8),  # another is one for a shorter step
])
def test_the_next_step(change, before, turned, step, largest, expected):
    assert damped_step(change, before, turned, step, largest) == pytest.approx(expected, rel=1e-12)


def test_log_ratio_loses_no_digits_where_hardly_anything_is_kept():
    removed = np.array([0.0, 1e-300, 1e-9, 0.3, 0.5, 0.7])
    np.testing.assert_allclose(log_ratio(1 - removed, removed), log1p_ratio(-removed), rtol=1e-15)
    kept = np.array([1e-9, 1e-20, 1e-300])  # 1 − removed is 0 or nearly
    np.testing.assert_allclose(log_ratio(kept, 1 - kept), -np.log(kept), rtol=2e-9)


@given(seed=st.integers(0, 10**6), size=st.integers(1, 6), tau=st.floats(0.0, 20.0), nu=st.floats(-5, 5))
def test_rank_one_update_equals_adding_natural_parameters(seed, size, tau, nu):
    rng = np.random.default_rng(seed)
    mean, root, a = rng.normal(size=size), rng.normal(size=(size, size + 2)), rng.normal(size=size)
    V = np.asfortranarray(root @ root.T / size + 0.1 * np.eye(size))
    precision = np.linalg.inv(V) + tau * np.outer(a, a)
    expected = np.linalg.solve(precision, np.linalg.solve(V, mean) + nu * a), np.linalg.inv(precision)
    rank_one_update(mean, V, V @ a, a @ mean, a @ V @ a, tau=tau, nu=nu)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(V, expected[1], rtol=1e-6, atol=1e-7)


def test_rank_one_update_refuses_to_leave_an_improper_gaussian():
    with pytest.raises(ImproperCavityError, match="no proper posterior"):
        rank_one_update(np.zeros(2), np.eye(2, order="F"), np.ones(2), 0.0, 2.0, tau=-0.6, nu=0.0)
