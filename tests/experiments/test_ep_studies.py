"""The studies and games of the chapters on EP and Power EP: rows come out again, and the helpers know the truth."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.optimize import minimize_scalar
from scipy.special import ndtr
from scipy.stats import norm

from figures.experiments import runner
from figures.experiments.book import learnt_powers, liar
from figures.experiments.bui2017 import divergence_claims
from figures.experiments.kuss2005 import landscape
from pepcore.likelihoods import Probit
from pepcore.sites import Sites, cavity, target

ROWS = [("learnt_powers", {"split": 3, "alpha": 0.4}, ["log_evidence", "nll", "test_error", "nll_by_0", "nll_by_1"]),
        ("kuss_landscape", {"log_lengthscale": 2.0, "log_amplitude": 1.0}, ["ep", "laplace", "ep_loss", "laplace_loss"])]


@pytest.mark.parametrize(("study", "inputs", "columns"), ROWS)
def test_a_row_comes_out_again(study, inputs, columns):
    results = runner.results(study).set_index(list(inputs))
    row = results.loc[tuple(inputs.values())]
    again = runner.load(study).module.compute(**inputs)
    assert [again[name] for name in columns] == pytest.approx(list(row[columns]), rel=1e-5)


@pytest.mark.parametrize(("study", "inputs", "columns"), ROWS)
def test_study_is_complete_and_draws(study, inputs, columns):
    results = runner.results(study)
    assert results["converged"].all()
    assert len(results) == len(runner.load(study).runs())
    for draw, size in runner.load(study).module.FIGURES.values():
        fig = Figure(figsize=size)
        draw(fig, results)
        assert len(fig.axes) == 3


def test_laplace_finds_the_mode():
    X, y, *_ = landscape.tumours()
    K = landscape.SquaredExponential(4.0, 3.0)(X)
    fit = landscape.laplace(K, y)
    f = K @ fit["gamma"]
    slope = y * np.exp(norm.logpdf(f) - norm.logcdf(y * f))
    assert np.abs(slope - fit["gamma"]).max() < 1e-8        # gradient of log likelihood + log prior


def test_the_sampled_evidence_is_that_of_independent_labels():
    """At an enormous distance from each other, every label has probability one half."""
    start = landscape.Base.build(landscape.SquaredExponential(1.0, 1e-3), np.arange(4.0)[:, None],
                                 landscape.exact.infer(landscape.SquaredExponential(1.0, 1e-3), np.arange(4.0)[:, None],
                                                       np.ones(4), landscape.Probit()).sites)
    log_weights, _ = landscape.anneal(start.log_ratio(lambda f: landscape.log_ndtr(f).sum(axis=1)), start.root, 2000, 50,
                                      np.random.default_rng(0))
    assert start.log_normaliser + np.log(np.exp(log_weights).mean()) == pytest.approx(4 * np.log(0.5), abs=0.01)


def moments(question, answer, mean, variance):
    """log Z, d1, d2 of an answer that is a lie one time in twenty, with noise one half."""
    spread = np.sqrt(0.25 + variance)
    xi = answer * (mean - question) / spread
    Z, density = 0.05 + 0.9 * ndtr(xi), 0.9 * norm.pdf(xi)
    d1 = answer * density / spread / Z
    return np.log(Z), d1, -xi * density / spread**2 / Z - d1**2


def test_a_fixed_point_of_the_liars_game_matches_every_tilted_moment():
    x, y = liar.questions(3.0)
    ends = [end for end in liar.fixed_points(3.0, moments) if end is not None]
    assert len({(round(end[0], 2) + 0.0, round(end[1], 2)) for end in ends}) == 3
    for mean, sd, _, tau in ends:
        # the precision-mean of each site follows from the projection; the tilted moments are those of q
        left = 1 / sd**2 - tau
        f, cell = np.linspace(-150, 150, 60001, retstep=True)
        for n in range(6):
            shift = _cavity_shift(mean, sd, left[n], x[n], y[n])
            tilted = np.exp(shift * f - 0.5 * left[n] * f**2 - shift**2 / left[n] / 2)
            tilted *= 0.05 + 0.9 * ndtr(2 * y[n] * (f - x[n]))
            tilted /= tilted.sum() * cell
            assert cell * tilted @ f == pytest.approx(mean, abs=1e-4)
            assert cell * tilted @ (f - mean) ** 2 == pytest.approx(sd**2, rel=1e-4)


def _cavity_shift(mean, sd, precision, question, answer):
    """The precision-mean of the cavity whose tilted distribution has the given mean: by Newton's method."""
    shift = mean * precision
    for _ in range(50):
        m, v = shift / precision, 1 / precision
        _, d1, d2 = moments(question, answer, m, v)
        shift -= (m + v * d1 - mean) / (v * (1 + d2 * v))
    return shift


def test_no_gaussian_is_reported_as_none():
    assert liar.game(0.0, moments, lambda x, y, f: 0.05 + 0.9 * ndtr(2 * y * (f - x)))["failed"] == liar.ORDERS


def test_exchanged_hyper_parameters_are_compared_split_by_split():
    results = runner.results("learnt_powers")
    mean, error, positive = learnt_powers.difference(results, ("nll", 1.0), ("nll_by_1", 1.0))
    assert (mean, error, positive) == (0.0, 0.0, 0)


def test_the_divergence_is_not_symmetric_but_at_one_half():
    p, q = divergence_claims.gaussian(0, 1), divergence_claims.gaussian(1, 2)
    apart = {alpha: divergence_claims.divergence(alpha, p, q) - divergence_claims.divergence(alpha, q, p) for alpha in (0.3, 0.5)}
    assert abs(apart[0.3]) > 0.01 > 1e-12 > abs(apart[0.5])


def two_humps():
    return 0.6 * divergence_claims.gaussian(-1, 0.7) + 0.4 * divergence_claims.gaussian(2, 1.2)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.9])
def test_the_slope_of_the_divergence_is_a_difference_of_moments(alpha):
    """The derivative :eq:`pep-stationary` in the natural parameters of a Gaussian, by differences."""
    f, cell, p = divergence_claims.GRID, divergence_claims.CELL, two_humps()
    eta = np.array([0.3, 0.5])                         # precision-mean and precision
    q_of = lambda eta: divergence_claims.gaussian(eta[0] / eta[1], eta[1] ** -0.5)
    q, T = q_of(eta), np.array([f, -0.5 * f**2])
    centred = T - cell * (T @ q)[:, None]
    expected = -cell * centred @ (p**alpha * q ** (1 - alpha)) / alpha
    ends = [[divergence_claims.divergence(alpha, p, q_of(eta + step * e)) for step in (1e-5, -1e-5)] for e in np.eye(2)]
    assert [(up - down) / 2e-5 for up, down in ends] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.9])
def test_the_best_mass_is_the_renyi_bound(alpha):
    """Of all multiples of a Gaussian, that of mass :eq:`pep-renyi` is nearest to two humps of mass 2.5; it rises with α."""
    p, q = 2.5 * two_humps(), divergence_claims.gaussian(0.5, 1.8)
    log_mass = lambda alpha: np.log(divergence_claims.CELL * np.sum(p**alpha * q ** (1 - alpha))) / alpha
    apart = lambda log_mass: divergence_claims.divergence(alpha, p, np.exp(log_mass) * q)
    found = minimize_scalar(apart, bounds=(-3, 3), options={"xatol": 1e-9}).x
    assert found == pytest.approx(log_mass(alpha), abs=1e-6)
    assert log_mass(alpha - 0.1) < log_mass(alpha) < log_mass(1.0) == pytest.approx(np.log(2.5))


def test_the_jacobian_tells_the_longest_step():
    """Labels that all agree: the step :eq:`ep-step-bound` parts those that converge from those that do not."""
    (K, _), y, alpha = divergence_claims.classifier(100.0), np.ones(24), 1.0

    def goal(point):
        sites = Sites(point[:24], point[24:])
        Sigma = np.linalg.solve(np.eye(24) + K * sites.tau, K)
        m, v = cavity(Sigma @ sites.nu, np.diag(Sigma), sites, alpha)
        _, d1, d2 = Probit().log_moment(y, m, v, alpha)
        new = target(m, v, d1, d2, alpha)
        return np.concatenate([new.tau, new.nu])

    sites, *_ = divergence_claims.sweep(K, y, alpha, 0.3, 1e-10)
    fixed = np.concatenate([sites.tau, sites.nu])
    J = np.transpose([(goal(fixed + e) - goal(fixed - e)) / 2e-5 for e in 1e-5 * np.eye(48)])
    smallest = min(np.linalg.eigvals(J), key=lambda value: value.real)
    assert abs(smallest.imag) < 1e-6 and smallest.real < -1     # the full step fails
    longest = 2 / (1 - smallest.real)
    settled = [divergence_claims.sweep(K, y, alpha, factor * longest, max_sweeps=1000)[-1] for factor in (0.97, 1.03)]
    assert settled == [True, False]
