"""Sparse online GPs and sparse EP: against dense ADF, exact inference, closed forms and direct optimisation."""

import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import peak
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from pepcore import exact, online, power_ep
from pepcore.features import Basis
from pepcore.gaussian import kl_divergence
from pepcore.kernels import Matern52, SquaredExponential
from pepcore.likelihoods import Gaussian, Probit, StudentT
from pepcore.online import fixed_basis, projection
from pepcore.online.process import Process
from pepcore.online.sequential import DirectedSites, Learner
from pepcore.sites import ImproperCavityError

KERNEL = Matern52(1.5, [1.0, 0.8])
XS = np.random.default_rng(99).normal(size=(9, 2))
PROBIT, GAUSSIAN = Probit(), Gaussian(0.2)
each_likelihood = pytest.mark.parametrize("likelihood", [GAUSSIAN, PROBIT], ids=["gaussian", "probit"])


def problem(likelihood=GAUSSIAN, seed=0, N=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    f = np.sin(2 * X[:, 0]) + X[:, 1] + 0.4 * rng.normal(size=N)
    return X, np.where(f > 0, 1.0, -1.0) if isinstance(likelihood, Probit) else f


def same_prediction(one, other, atol):
    np.testing.assert_allclose(one.predict_f(XS), other.predict_f(XS), rtol=0, atol=atol)


# --- all data are basis vectors: nothing is projected -----------------------------------------------------------------


def dense_adf(X, y, likelihood):
    """Assumed-density filtering on f(X) itself: mean, covariance and Σ log p(y_n | earlier ones)."""
    mean, covariance, foretold = np.zeros(len(X)), KERNEL(X), 0.0
    for n in range(len(X)):
        m, s = mean[n], covariance[n, n]
        l, d1, d2 = (d[0] for d in likelihood.log_moment(y[[n]], np.array([m]), np.array([s]), 1.0))
        mean_tilted, variance_tilted = m + d1 * s, s + d2 * s**2
        tau = 1 / variance_tilted - 1 / s
        nu = mean_tilted / variance_tilted - m / s
        column = covariance[:, n]
        mean = mean + column * (nu - tau * m) / (1 + tau * s)
        covariance = covariance - np.outer(column, column) * tau / (1 + tau * s)
        foretold += l
    return mean, covariance, foretold


@each_likelihood
def test_one_sweep_is_assumed_density_filtering(likelihood):
    X, y = problem(likelihood)
    mean, covariance, foretold = dense_adf(X, y, likelihood)
    fit = online.infer(KERNEL, X, y, likelihood, novelty=1e-10)
    found_mean, found_variance = fit.predict_f(X)
    np.testing.assert_allclose(found_mean, mean, atol=1e-8)
    np.testing.assert_allclose(found_variance, np.diag(covariance), atol=1e-8)
    assert fit.history[0]["log_predictive"] == pytest.approx(foretold, abs=1e-8)
    assert fit.log_evidence == pytest.approx(foretold, abs=1e-8)


@each_likelihood
def test_updates_and_removal_are_those_of_the_thesis_in_its_own_parameters(likelihood):
    """csato2002 eqs (57), (77) and (79), and the sparse update with η = 1/(1 + γr)."""
    X, y = problem(likelihood, N=12)
    before = online.update(online.start(KERNEL, likelihood), X[:10], y[:10])
    K, k, own = KERNEL(X[:10]), KERNEL(X[:10], X[10:11])[:, 0], KERNEL.variance
    m, variance = k @ before.alpha, own + k @ before.C @ k
    _, q, r = (d[0] for d in likelihood.log_moment(y[10:11], np.array([m]), np.array([variance]), 1.0))

    s = np.append(before.C @ k, 1.0)
    alpha, C = np.append(before.alpha, 0.0) + q * s, np.pad(before.C, (0, 1)) + r * np.outer(s, s)
    taken_in = online.update(before, X[10:11], y[10:11])
    np.testing.assert_allclose(taken_in.alpha, alpha, atol=1e-10)
    np.testing.assert_allclose(taken_in.C, C, atol=1e-10)

    reach = np.linalg.solve(K, k)
    novelty, s = own - k @ reach, before.C @ k + reach
    eta = 1 / (1 + novelty * r)
    projected = online.update(replace(before, novelty=0.999), X[10:11], y[10:11])
    np.testing.assert_allclose(projected.alpha, before.alpha + q * eta * s, atol=1e-10)
    np.testing.assert_allclose(projected.C, before.C + r * eta * np.outer(s, s), atol=1e-10)

    Q, i, rest = np.linalg.inv(K), 4, np.arange(10) != 4
    both = (Q + before.C)[:, i]
    C = before.C + np.outer(Q[:, i], Q[:, i]) / Q[i, i] - np.outer(both, both) / both[i]
    pruned = online.prune(before, i)
    np.testing.assert_allclose(pruned.alpha, (before.alpha - both * before.alpha[i] / both[i])[rest], atol=1e-10)
    np.testing.assert_allclose(pruned.C, C[np.ix_(rest, rest)], atol=1e-10)


@each_likelihood
def test_a_stream_in_blocks_is_one_sweep(likelihood):
    X, y = problem(likelihood)
    fit = online.infer(KERNEL, X, y, likelihood, budget=11)
    state = online.start(KERNEL, likelihood, budget=11)
    for rows in np.array_split(np.arange(40), [1, 3, 20]):
        state = online.update(state, X[rows], y[rows])
    same_prediction(state, fit, 1e-10)
    assert state.log_evidence == pytest.approx(fit.log_evidence, abs=1e-9)
    assert state.log_predictive == pytest.approx(fit.history[0]["log_predictive"], abs=1e-9)
    np.testing.assert_array_equal(np.sort(state.basis), np.sort(fit.basis))


@each_likelihood
def test_ep_at_convergence_is_exact_ep(likelihood):
    X, y = problem(likelihood)
    dense = exact.infer(KERNEL, X, y, likelihood, tolerance=1e-11)
    fit = online.infer(KERNEL, X, y, likelihood, novelty=1e-10, max_sweeps=60, tolerance=1e-11)
    assert fit.converged and fit.history[-1]["change"] <= 1e-11 < fit.history[-2]["change"]
    assert fit.log_evidence == pytest.approx(dense.log_evidence, abs=1e-8)
    same_prediction(fit, dense, 1e-8)
    np.testing.assert_allclose(fit.sites.tau, dense.sites.tau, atol=1e-8)
    np.testing.assert_allclose(fit.sites.nu, dense.sites.nu, atol=1e-8)


def test_one_sweep_of_regression_is_the_exact_gp():
    X, y = problem()
    dense = exact.regression(KERNEL, X, y, noise=0.2)
    fit = online.infer(KERNEL, X, y, GAUSSIAN, novelty=1e-10)
    assert fit.log_evidence == pytest.approx(dense.log_evidence, abs=1e-8)
    same_prediction(fit, dense, 1e-8)


def test_the_order_of_the_data_is_forgotten_by_ep_and_not_by_one_sweep():
    X, y = problem(PROBIT)
    order = np.random.default_rng(0).permutation(40)
    options = {"novelty": 1e-10, "tolerance": 1e-11}
    once, once_other = (online.infer(KERNEL, X, y, PROBIT, order=o, **options) for o in (None, order))
    ep, ep_other = (online.infer(KERNEL, X, y, PROBIT, max_sweeps=60, order=o, **options) for o in (None, order))
    assert np.abs(once.predict_f(XS)[0] - once_other.predict_f(XS)[0]).max() > 1e-2
    same_prediction(ep, ep_other, 1e-9)


def test_repeated_data_do_not_make_the_basis_singular():
    X, y = problem()
    twice, y_twice = np.vstack([X, X]), np.concatenate([y, y])
    dense = exact.regression(KERNEL, twice, y_twice, noise=0.2)
    fit = online.infer(KERNEL, twice, y_twice, GAUSSIAN, novelty=1e-10)
    assert len(fit.basis) == 40
    same_prediction(fit, dense, 1e-8)


# --- a fixed basis: which sparse GP is it? ----------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
def test_the_posterior_of_regression_is_power_ep_with_alpha_one_minus_rho(rho):
    X, y = problem()
    closed = power_ep.regression(KERNEL, XS, X, y, noise=0.2, alpha=1 - rho)
    fit = fixed_basis.infer(KERNEL, XS, X, y, GAUSSIAN, rho=rho)
    same_prediction(fit, closed, 1e-10)
    assert fit.sweeps == 1
    A, h = closed.posterior.basis.features(X)
    noise = 0.2 + (1 - rho) * h
    log_normal = multivariate_normal(cov=A.T @ A + np.diag(noise)).logpdf(y)
    assert fit.log_evidence == pytest.approx(log_normal - 0.5 * (rho * h / noise).sum(), abs=1e-9)
    if rho in (0, 1):  # FITC's evidence and VFE's bound; in between Power EP counts the loss differently
        assert fit.log_evidence == pytest.approx(closed.log_evidence, abs=1e-9)


def test_probit_at_rho_zero_is_power_ep_with_alpha_one():
    X, y = problem(PROBIT)
    pep = power_ep.infer(KERNEL, XS, X, y, PROBIT, alpha=1.0, tolerance=1e-11)
    fit = fixed_basis.infer(KERNEL, XS, X, y, PROBIT, rho=0.0, tolerance=1e-11)
    same_prediction(fit, pep, 1e-9)
    assert fit.log_evidence == pytest.approx(pep.log_evidence, abs=1e-9)


def test_probit_at_rho_one_is_not_variational_inference():
    X, y = problem(PROBIT)
    vfe = power_ep.infer(KERNEL, XS, X, y, PROBIT, alpha=0.0)
    fit = fixed_basis.infer(KERNEL, XS, X, y, PROBIT, rho=1.0)
    assert np.abs(fit.predict_f(XS)[0] - vfe.predict_f(XS)[0]).max() > 1e-3


@each_likelihood
@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
def test_one_site_at_a_time_and_all_at_once_have_the_same_fixed_point(likelihood, rho):
    X, y = problem(likelihood)
    together = fixed_basis.infer(KERNEL, XS, X, y, likelihood, rho=rho, tolerance=1e-11, jitter=0.0)
    in_turn = online.infer(KERNEL, X, y, likelihood, Z=XS, rho=rho, max_sweeps=60, tolerance=1e-10)
    same_prediction(together, in_turn, 1e-8)
    assert in_turn.log_evidence == pytest.approx(together.log_evidence, abs=1e-8)


def test_a_budget_whose_basis_has_settled_is_the_fixed_basis():
    X, y = problem(PROBIT)
    fit = online.infer(KERNEL, X, y, PROBIT, budget=8, max_sweeps=60, moving_sweeps=2, tolerance=1e-10)
    fixed = fixed_basis.infer(KERNEL, X[fit.basis], X, y, PROBIT, tolerance=1e-11, jitter=0.0)
    assert fit.converged
    same_prediction(fit, fixed, 1e-8)


def test_nystrom_is_the_dense_formula_and_may_have_negative_variances():
    X, y = problem()
    A, _ = Basis.build(KERNEL, XS).features(X)
    k, inverse = KERNEL(X, XS), np.linalg.inv(0.01 * np.eye(40) + A.T @ A)
    mean, variance = fixed_basis.nystrom(KERNEL, XS, X, y, XS, noise=0.01)
    np.testing.assert_allclose(mean, k.T @ inverse @ y, atol=1e-9)
    np.testing.assert_allclose(variance, KERNEL.diagonal(XS) - np.diag(k.T @ inverse @ k), atol=1e-9)
    _, away = fixed_basis.nystrom(KERNEL, XS[:2], X, y, X, noise=0.01)
    assert away.min() < -1


def test_nystrom_with_all_data_is_the_exact_gp():
    X, y = problem()
    dense = exact.regression(KERNEL, X, y, noise=0.2)
    mean, variance = fixed_basis.nystrom(KERNEL, X, X, y, XS, noise=0.2, jitter=1e-12)
    np.testing.assert_allclose((mean, variance), dense.predict_f(XS), atol=1e-8)


# --- additions, prunings, re-additions --------------------------------------------------------------------------------


def process_and_sites(seed, budget, likelihood):
    """Random visits to data in random order, with prunings that are forced now and then: a process and its sites."""
    rng = np.random.default_rng(seed)
    X, y = problem(likelihood, seed, N=12)
    sites = DirectedSites(12, budget + 1)
    learner = Learner(Process(KERNEL, 2, budget + 1), likelihood, budget, 1e-3, sites=sites)
    for _ in range(4):
        learner.sweep(X, y, rng.integers(12, size=8))
        used = learner.process.used
        if len(used) > 2:
            learner.drop(int(rng.choice(used)))
    return learner.process, sites


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), budget=st.integers(2, 8), likelihood=st.sampled_from([GAUSSIAN, PROBIT]))
def test_both_parametrisations_stay_the_same_process(seed, budget, likelihood):
    process, sites = process_and_sites(seed, budget, likelihood)
    used = process.used
    square = np.ix_(used, used)
    W, K, P = process.W[square], KERNEL(process.Z[used]), sites.A @ process.W[:, used]
    np.testing.assert_allclose(W @ K @ W.T, np.eye(len(K)), atol=1e-8)
    alpha, C = projection.natural_parameters(K, sites.tau, sites.nu, P)  # eqs (121) and (130)
    np.testing.assert_allclose(process.alpha[used], alpha, atol=1e-8)
    np.testing.assert_allclose(process.C[square], C, atol=1e-8)
    precision, shift = projection.site_parameters(K, process.alpha[used], process.C[square])  # eq. (122)
    np.testing.assert_allclose(precision, P.T @ (sites.tau[:, None] * P), atol=1e-8)  # eq. (126)
    np.testing.assert_allclose(shift, P.T @ sites.nu, atol=1e-8)  # eq. (128)
    np.testing.assert_allclose(W.T @ process.precision[square] @ W, precision, atol=1e-8)
    np.testing.assert_allclose(process.shift[used] @ W, shift, atol=1e-8)
    np.testing.assert_allclose(
        process.V[square] @ (np.eye(len(K)) + process.precision[square]), np.eye(len(K)), atol=1e-8
    )
    assert process.log_height == pytest.approx(sites.log_heights.sum(), abs=1e-8)
    compact = process.compact()
    maintained = compact.scores()
    compact.refresh()
    np.testing.assert_allclose(maintained, compact.scores(), atol=1e-8)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), budget=st.integers(2, 8))
def test_free_slots_hold_nothing(seed, budget):
    process, sites = process_and_sites(seed, budget, PROBIT)
    free = np.setdiff1d(np.arange(process.slots), process.used)
    assert not any(np.any(getattr(process, name)[free]) for name in (*Process.MATRICES, *Process.VECTORS))
    assert not np.any(sites.A[:, free])


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_conversions_go_there_and_back(seed):
    rng = np.random.default_rng(seed)
    X, y = problem(PROBIT, seed, N=15)
    fit = online.infer(KERNEL, X, y, PROBIT, budget=6, order=rng.permutation(15))
    alpha, C = fit.posterior.csato()
    np.testing.assert_allclose(fit.state.alpha, alpha, atol=1e-9)
    np.testing.assert_allclose(fit.state.C, C, atol=1e-9)


def test_without_projection_the_conversion_finds_every_site():
    X, y = problem(PROBIT, N=20)
    fit = online.infer(KERNEL, X, y, PROBIT, novelty=1e-10)
    precision, shift = projection.site_parameters(KERNEL(X), fit.state.alpha, fit.state.C)
    np.testing.assert_allclose(precision, np.diag(fit.sites.tau), atol=1e-8)
    np.testing.assert_allclose(shift, fit.sites.nu, atol=1e-8)


def test_a_basis_vector_that_comes_back_is_exact_for_its_own_datum_only():
    X, y = problem(GAUSSIAN, N=12)
    sites = DirectedSites(12, 32)
    learner = Learner(Process(KERNEL, 2, 32), GAUSSIAN, None, 1e-9, sites=sites)
    learner.sweep(X, y, np.arange(12))
    for slot in (3, 7):
        learner.drop(slot)
    learner.sweep(X, y, [3])  # datum 3 becomes a basis vector again, datum 7 does not
    process = learner.process
    assert len(process.used) == 11
    without = np.flatnonzero((process.rows >= 0) & (process.rows != 3))
    back = int(np.flatnonzero(process.rows == 3)[0])
    P = sites.A @ process.W
    assert P[3, back] == pytest.approx(1) and np.abs(P[3, without]).max() < 1e-9
    reach = np.linalg.solve(KERNEL(process.Z[without]), KERNEL(process.Z[without], X[[7]]))[:, 0]
    np.testing.assert_allclose(P[7, without], reach, atol=1e-9)  # still seen from the basis without 3
    assert abs(P[7, back]) < 1e-9
    now = np.linalg.solve(KERNEL(process.Z[process.used]), KERNEL(process.Z[process.used], X[[7]]))[:, 0]
    assert np.abs(P[7, process.used] - now).max() > 1e-3  # the fixed-basis direction is another one


# --- what a projection loses ------------------------------------------------------------------------------------------


def full_and_pruned(i=2):
    X, y = problem(PROBIT, seed=3, N=7)
    state = online.infer(KERNEL, X, y, PROBIT, novelty=1e-10).state
    return state, online.prune(state, i)


def moments_at(posterior, Z):
    return posterior.predict_full(Z)


def test_scores_are_the_divergences_of_the_pruned_processes():
    state, _ = full_and_pruned()
    full = moments_at(state.posterior, state.Z)
    for i, score in enumerate(online.scores(state)):
        pruned = moments_at(online.prune(state, i).posterior, state.Z)
        assert score == pytest.approx(kl_divergence(*pruned, *full), abs=1e-8)


def test_pruning_conditions_on_a_coefficient_of_zero():
    """The distribution :eq:`cs-coefficients` of c = K⁻¹f(Z), given that its element i is zero; the prior's is K_RR⁻¹."""
    i = 2
    state, pruned = full_and_pruned(i)
    mean, covariance = moments_at(state.posterior, state.Z)
    J, rest = np.linalg.inv(KERNEL(state.Z)), np.arange(len(state.Z)) != i
    c, C = J @ mean, J @ covariance @ J
    np.testing.assert_allclose(c, state.alpha, atol=1e-7)
    np.testing.assert_allclose(C - J, state.C, atol=1e-7)
    np.testing.assert_allclose(c[rest] - C[rest, i] * c[i] / C[i, i], pruned.alpha, atol=1e-7)
    given_zero = C[np.ix_(rest, rest)] - np.outer(C[rest, i], C[rest, i]) / C[i, i]
    np.testing.assert_allclose(given_zero - np.linalg.inv(KERNEL(state.Z[rest])), pruned.C, atol=1e-7)


def test_pruning_costs_the_evidence_its_score():
    state, pruned = full_and_pruned()
    assert state.log_evidence - pruned.log_evidence == pytest.approx(online.scores(state)[2], abs=1e-9)


def best_on_reduced_basis(state, pruned, divergence):
    """The least divergence that BFGS finds over all N(m, R Rᵀ) of f at the reduced basis, the rest at its prior."""
    Z, rest = state.Z, pruned.Z
    M = len(rest)
    reach = np.linalg.solve(KERNEL(rest), KERNEL(rest, Z)).T
    residual = KERNEL(Z) - reach @ KERNEL(rest) @ reach.T
    lower = np.tril_indices(M)

    def objective(point):
        root = np.zeros((M, M))
        root[lower] = point[M:]
        return divergence(reach @ point[:M], reach @ root @ root.T @ reach.T + residual + 1e-12 * np.eye(len(Z)))

    start = np.concatenate([np.zeros(M), np.linalg.cholesky(KERNEL(rest))[lower]])
    return minimize(objective, start, method="BFGS", options={"gtol": 1e-8, "maxiter": 3000}), objective


def test_no_posterior_on_the_reduced_basis_is_nearer_in_the_divergence_that_is_minimised():
    state, pruned = full_and_pruned()
    full = moments_at(state.posterior, state.Z)
    best, _ = best_on_reduced_basis(state, pruned, lambda *q: kl_divergence(*q, *full))
    score = online.scores(state)[2]
    assert best.fun >= score - 1e-7
    assert best.fun == pytest.approx(score, abs=1e-5)
    np.testing.assert_allclose(best.x[:6], moments_at(pruned.posterior, pruned.Z)[0], atol=1e-3)


def test_the_other_divergence_keeps_the_marginal_of_the_basis_and_pruning_does_not():
    state, pruned = full_and_pruned()
    full = moments_at(state.posterior, state.Z)
    best, objective = best_on_reduced_basis(state, pruned, lambda *q: kl_divergence(*full, *q))
    marginal_mean, marginal_covariance = moments_at(state.posterior, pruned.Z)
    np.testing.assert_allclose(best.x[:6], marginal_mean, atol=1e-4)
    marginal = np.concatenate([marginal_mean, np.linalg.cholesky(marginal_covariance)[np.tril_indices(6)]])
    assert best.fun >= objective(marginal) - 1e-7
    assert np.abs(moments_at(pruned.posterior, pruned.Z)[0] - marginal_mean).max() > 1e-3


@pytest.mark.parametrize("scale", [1e4, 1e-4])
def test_novelty_is_a_share_of_the_prior_variance(scale):
    X, y = problem()
    larger = KERNEL.with_parameters({"variance": scale * KERNEL.variance})
    plain = online.infer(KERNEL, X, y, GAUSSIAN, novelty=0.1).basis
    scaled = online.infer(larger, X, np.sqrt(scale) * y, Gaussian(0.2 * scale), novelty=0.1).basis
    assert 2 < len(plain) < 40
    np.testing.assert_array_equal(scaled, plain)


@each_likelihood
def test_evidence_with_a_budget_stays_below_that_without(likelihood):
    X, y = problem(likelihood)
    full = online.infer(KERNEL, X, y, likelihood, max_sweeps=60)
    small, larger = (online.infer(KERNEL, X, y, likelihood, budget=b, max_sweeps=60, moving_sweeps=1) for b in (5, 15))
    assert small.log_evidence < larger.log_evidence < full.log_evidence


# --- streams ----------------------------------------------------------------------------------------------------------


def test_memory_of_a_stream_does_not_grow_and_precision_is_not_lost():
    kernel = SquaredExponential(1.0, 0.7)
    rng = np.random.default_rng(0)

    def block():
        X = rng.uniform(-2, 2, size=(500, 1))
        return X, np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=500)

    state = online.update(online.start(kernel, Gaussian(0.09), budget=15), *block())
    sizes = []
    tracemalloc.start()
    try:
        for _ in range(8):
            state = online.update(state, *block())
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[-1] < sizes[0] + 20_000
    assert state.seen == 4500
    _, C = state.posterior.csato()  # from Λ̂ and b; state.C has seen thousands of rank-one changes
    scale = np.abs(C).max()
    np.testing.assert_allclose(state.C / scale, C / scale, atol=1e-8)
    x = np.linspace(-1.8, 1.8, 30)[:, None]
    assert np.abs(state.predict_f(x)[0] - np.sin(3 * x[:, 0])).max() < 0.1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("noise", "novelty", "atol"), [(1e-6, 1e-10, 1e-6), (1e-3, 1e-10, 1e-6), (1.0, 1e-9, 1e-6)])
def test_nearly_dependent_basis_vectors_and_little_noise_lose_no_digits(noise, novelty, atol):
    kernel, rng = SquaredExponential(1.0, 2.0), np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(600, 1))
    y = np.sin(2 * X[:, 0]) + np.sqrt(noise) * rng.normal(size=600)
    state = online.update(online.start(kernel, Gaussian(noise), novelty=novelty), X, y)
    dense = exact.regression(kernel, X, y, noise=noise)
    x = np.linspace(-2.9, 2.9, 20)[:, None]
    assert len(state.basis) < 20  # the kernel's matrix of all data has no more eigenvalues above rounding
    np.testing.assert_allclose(state.predict_f(x)[0], dense.predict_f(x)[0], atol=atol)
    assert (state.predict_f(x)[1] > 0).all()


def test_an_update_leaves_the_earlier_state_as_it_was():
    X, y = problem()
    before = online.update(online.start(KERNEL, GAUSSIAN, budget=6), X[:20], y[:20])
    mean, _ = before.predict_f(XS)
    online.update(before, X[20:], y[20:])
    online.prune(before, 0)
    np.testing.assert_array_equal(before.predict_f(XS)[0], mean)
    assert before.seen == 20


def test_a_fit_can_go_on_with_new_data():
    X, y = problem(PROBIT)
    fit = online.infer(KERNEL, X[:30], y[:30], PROBIT, budget=10, max_sweeps=40, moving_sweeps=1)
    state = online.update(fit.state, X[30:], y[30:])
    assert state.seen == 40 and state.basis.max() < 40


def test_the_first_datum_after_a_fit_adds_its_density_under_the_fit():
    X, y = problem(PROBIT)
    fit = online.infer(KERNEL, X[:30], y[:30], PROBIT, budget=10, max_sweeps=40, moving_sweeps=1)
    added = online.update(fit.state, X[30:31], y[30:31]).log_predictive - fit.state.log_predictive
    assert added == pytest.approx(fit.log_density(X[30:31], y[30:31])[0], rel=1e-10)


def test_a_state_says_how_many_data_it_has_seen_and_never_that_it_has_converged():
    X, y = problem()
    state = online.update(online.start(KERNEL, GAUSSIAN), X, y)
    assert state.converged is False and state.message == "40 data seen"


@pytest.mark.parametrize("rho", [0.0, 1.0])
def test_a_fit_on_given_pseudo_inputs_goes_on_with_them_and_its_rho(rho):
    X, y = problem()
    options = {"Z": X[:6], "rho": rho}
    part = online.infer(KERNEL, X[:30], y[:30], GAUSSIAN, **options)
    state = online.update(part.state, X[30:] + 7.0, y[30:])
    assert len(state.basis) == 6
    shifted = np.concatenate([X[:30], X[30:] + 7.0])
    same_prediction(state, online.infer(KERNEL, shifted, y, GAUSSIAN, **options), atol=1e-10)


def test_a_state_of_sparse_ep_remembers_the_forecast_of_its_last_sweep():
    X, y = problem(PROBIT)
    fit = online.infer(KERNEL, X, y, PROBIT, budget=8, max_sweeps=20, moving_sweeps=1)
    assert fit.sweeps > 2
    assert fit.state.log_predictive == fit.history[-1]["log_predictive"] < 0


def test_a_state_without_data_is_shown_as_one():
    assert repr(online.start(KERNEL, PROBIT)) == "State(no data yet, Probit())"


def test_memory_of_sparse_ep_grows_with_rows_times_budget():
    once, more = (peak(partial(online.infer, KERNEL, *problem(GAUSSIAN, N=N), GAUSSIAN, budget=10, novelty=1e-3))
                  for N in (300, 1300))
    assert more - once < 4 * 1000 * 11 * 8  # four arrays (N, M + 1) of floats


# --- the door ---------------------------------------------------------------------------------------------------------


def test_too_few_sweeps_are_told_truly():
    X, y = problem(PROBIT)
    with pytest.warns(RuntimeWarning, match="not converged after 2 sweeps"):
        fit = online.infer(KERNEL, X, y, PROBIT, max_sweeps=2)
    assert not fit.converged and fit.sweeps == 2 == len(fit.history)


def test_a_site_that_leaves_no_proper_posterior_is_an_error():
    process = Process.fixed(KERNEL, XS)
    a = np.eye(9)[0]
    with pytest.raises(ImproperCavityError, match="leaves no proper posterior"):
        process.multiply(a, -2.0, 0.0, process.V @ a, a @ process.mean, a @ process.V @ a)


def test_there_is_no_gradient_and_the_error_says_what_to_do():
    X, y = problem()
    fit = online.infer(KERNEL, X, y, GAUSSIAN)
    with pytest.raises(NotImplementedError, match=r"training\.fit"):
        _ = fit.gradient


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget = 0 must be a whole number"),
        ({"budget": 2.5}, "budget = 2.5"),
        ({"novelty": 0.0}, "novelty = 0.0 must be positive"),
        ({"novelty": 1.5}, "novelty = 1.5 must be below 1"),
        ({"max_sweeps": 0}, "max_sweeps = 0"),
        ({"moving_sweeps": -1}, "moving_sweeps = -1"),
        ({"rho": 1.2}, r"rho = 1.2 must be in \[0, 1\]"),
        ({"order": [0, 1]}, "order must hold each of 0 ... 39 once"),
        ({"order": [0] * 40}, "order must hold each of 0 ... 39 once"),
        ({"tolerance": -1}, "tolerance = -1.0 must be positive"),
        ({"Z": np.zeros((3, 5))}, "Z has 5 column"),
        ({"Z": XS, "budget": 5}, "budget = 5 is for basis vectors that are chosen"),
    ],
)
def test_bad_options_are_refused(options, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        online.infer(KERNEL, X, y, GAUSSIAN, **options)


def test_the_callers_arrays_are_left_alone():
    X, y = problem()
    order, Z = np.random.default_rng(0).permutation(40), XS.copy()
    for array in (X, y, order, Z):
        array.flags.writeable = False  # NumPy raises at the first attempt
    online.infer(KERNEL, X, y, GAUSSIAN, budget=5, max_sweeps=2, moving_sweeps=1, order=order)
    online.infer(KERNEL, X, y, GAUSSIAN, Z=Z)
    online.update(online.start(KERNEL, GAUSSIAN, budget=5), X, y)
    fixed_basis.infer(KERNEL, Z, X, y, GAUSSIAN)
    fixed_basis.nystrom(KERNEL, Z, X, y, Z)


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda X, y, state: online.infer(KERNEL, X, y, PROBIT), r"labels -1 and \+1"),
    (lambda X, y, state: online.update(state, X, np.full(40, np.nan)), "NaN"),
    (lambda X, y, state: online.update(state, np.zeros((2, 3)), np.zeros(2)), "3 column"),
    (lambda X, y, state: online.update(state, X, y[:5]), "one number per row"),
    (lambda X, y, state: online.start(KERNEL, GAUSSIAN).predict_f(X), "seen no data"),
    (lambda X, y, state: online.prune(state, 40), "i = 40"),
    (lambda X, y, state: online.prune(state, 1.5), r"i = 1\.5 must be a whole number"),
    (lambda X, y, state: fixed_basis.infer(KERNEL, XS, X, y, GAUSSIAN, rho=2), "rho = 2"),
    (lambda X, y, state: fixed_basis.nystrom(KERNEL, XS, X, y, XS, noise=0), "noise"),
    (lambda X, y, state: fixed_basis.nystrom(KERNEL, XS, X, y, XS, noise=np.full(40, 0.1)), "expected one number"),
])
def test_bad_data_are_refused(wrong, message):
    X, y = problem()
    state = online.update(online.start(KERNEL, GAUSSIAN), X, y)
    with pytest.raises(ValueError, match=message):
        wrong(X, y, state)


def test_the_only_basis_vector_cannot_be_pruned():
    X, y = problem()
    state = online.update(online.start(KERNEL, GAUSSIAN), X[:1], y[:1])
    with pytest.raises(ValueError, match=r"i = 0 must number one of at least two .* this state has M = 1"):
        online.prune(state, 0)


def test_a_fixed_basis_refuses_sites_of_negative_precision_and_says_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    y = np.sin(2 * X[:, 0]) + np.where(np.arange(40) % 5, 0.0, 8.0)
    with pytest.warns(RuntimeWarning, match="negative precision: the likelihood is not log-concave there"):
        fit = fixed_basis.infer(SquaredExponential(), X[:10], X, y, StudentT(3.0, 0.1))
    assert not fit.converged and fit.sweeps == 0


def test_what_came_and_went_adds_up_to_the_basis():
    """A basis vector that goes at the visit at which it came counts as neither."""
    X, y = problem(PROBIT)
    with pytest.warns(RuntimeWarning, match="not converged after 3 sweeps"):
        fit = online.infer(KERNEL, X, y, PROBIT, budget=8, max_sweeps=3)
    came, went = (np.array([sweep[name] for sweep in fit.history]) for name in ("included", "removed"))
    assert came.sum() - went.sum() == len(fit.basis) == 8
    assert came[0] - went[0] == 8 and np.array_equal(came[1:], went[1:])
    bases, state = [], online.start(KERNEL, PROBIT, budget=8)
    for n in range(40):  # one sweep, datum by datum
        state = online.update(state, X[n : n + 1], y[n : n + 1])
        bases.append(set(state.basis))
    changes = [(len(after - before), len(before - after)) for before, after in zip([set(), *bases], bases, strict=False)]
    assert (came[0], went[0]) == tuple(np.sum(changes, axis=0))
    assert 0 < came[0] < 40


def test_while_basis_vectors_come_and_go_nothing_has_converged():
    X, y = problem(PROBIT)
    options = {"budget": 8, "tolerance": 1e3}  # no move of a site is as long
    with pytest.warns(RuntimeWarning, match="basis vectors came"):
        moving = online.infer(KERNEL, X, y, PROBIT, max_sweeps=4, **options)
    assert not moving.converged and moving.sweeps == 4
    resting = online.infer(KERNEL, X, y, PROBIT, max_sweeps=4, moving_sweeps=1, **options)
    assert resting.converged and resting.sweeps == 2


def test_a_state_predicts_labels_and_observations():
    X, y = problem(PROBIT)
    state = online.update(online.start(KERNEL, PROBIT), X, y)
    np.testing.assert_array_equal(state.predict_y(XS), PROBIT.predict(*state.predict_f(XS)))
    X, y = problem()
    state = online.update(online.start(KERNEL, GAUSSIAN), X, y)
    np.testing.assert_array_equal(state.predict_y(XS)[1], state.predict_f(XS)[1] + 0.2)


def test_given_pseudo_inputs_are_no_data_and_sites_lie_in_the_order_of_the_data():
    X, y = problem(PROBIT)
    order = np.random.default_rng(0).permutation(40)
    options = {"Z": XS, "max_sweeps": 60, "tolerance": 1e-10}
    one, other = (online.infer(KERNEL, X, y, PROBIT, order=o, **options) for o in (None, order))
    assert (one.basis == -1).all()
    np.testing.assert_allclose(other.sites.tau, one.sites.tau, atol=1e-7)
    np.testing.assert_allclose(other.sites.nu, one.sites.nu, atol=1e-7)
    np.testing.assert_allclose(other.projection, one.projection, atol=1e-7)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("noise", [1e-8, 1e-10, 1e-12])
def test_sites_as_sharp_as_little_noise_makes_them_can_be_divided_out(noise):
    """The second sweep takes out of the posterior sites that hold all but 1e-10 of it; Gaussian sites stay as they are."""
    X, y = problem(N=20)
    kernel = SquaredExponential(1.0, 0.3)
    fit = online.infer(kernel, X, y, Gaussian(noise), max_sweeps=5)
    dense = exact.regression(kernel, X, y, noise=noise)
    assert fit.converged
    np.testing.assert_allclose(fit.sites.tau, 1 / noise, rtol=1e-12)
    assert fit.log_evidence == pytest.approx(dense.log_evidence, rel=1e-15 / noise + 1e-9)
    np.testing.assert_allclose(fit.predict_f(XS)[0], dense.predict_f(XS)[0], atol=1e-15 / noise + 1e-9)


@pytest.mark.filterwarnings("ignore:sparse EP has not converged")  # nothing does beside so little noise
def test_a_site_of_which_rounding_leaves_nothing_is_kept_out_of_a_new_product():
    """The part of the variance that a site leaves, 1 − τ s, may be 0 here: dividing the site out would be an error."""
    X, y = problem(N=20)
    fit = online.infer(SquaredExponential(1.0, 0.1), X, y, Gaussian(2e-16), max_sweeps=5)
    np.testing.assert_allclose(fit.sites.tau, 1 / 2e-16, rtol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("noise", [1e-6, 1e-8, 1e-10])
def test_gaussian_sites_on_a_fixed_basis_are_exact_however_small_the_noise(noise, rho):
    """The noise that a site sees is :eq:`cs-noise`."""
    X, y = problem(N=20)
    kernel = SquaredExponential(1.0, 0.3)
    fit = fixed_basis.infer(kernel, X[:10], X, y, Gaussian(noise), rho=rho, jitter=0.0)
    _, h = Basis.build(kernel, X[:10], 0.0).features(X, solve=True)
    assert fit.sweeps <= 5
    np.testing.assert_allclose(fit.sites.tau, 1 / (noise + (1 - rho) * h), rtol=1e-12)
    np.testing.assert_allclose(fit.sites.nu, y / (noise + (1 - rho) * h), rtol=1e-6)


def test_a_large_budget_costs_no_memory_until_it_is_used():
    X = np.random.default_rng(0).normal(size=(5, 2))
    update = lambda: online.update(online.start(KERNEL, Gaussian(0.1), budget=10**6, novelty=1e-3), X, X[:, 0])
    assert peak(update) < 2e6 and len(update().basis) <= 5


@pytest.mark.parametrize("budget", [1, 5, 31, 32, 33, 40])
def test_a_process_that_grows_to_its_budget_is_the_one_that_had_all_its_room(budget, monkeypatch):
    from pepcore.online import process
    X, y = np.linspace(-8, 8, 120)[:, None], np.sin(np.arange(120.0))
    settings = {"budget": budget, "novelty": 1e-4, "max_sweeps": 1}
    grown = online.infer(SquaredExponential(1.0, 0.3), X, y, Gaussian(0.1), **settings)
    monkeypatch.setattr(process, "FIRST_SLOTS", 128)
    at_once = online.infer(SquaredExponential(1.0, 0.3), X, y, Gaussian(0.1), **settings)
    assert grown.log_evidence == at_once.log_evidence and len(grown.basis) == budget
    np.testing.assert_array_equal(grown.basis, at_once.basis)


def test_what_a_state_shows_of_its_process_is_a_copy():
    X = np.random.default_rng(0).normal(size=(5, 2))
    state = online.update(online.start(KERNEL, Gaussian(0.1), novelty=1e-3), X, X[:, 0])
    before = state.predict_f(X)
    state.Z[:] = 99.0
    state.basis[:] = -7
    np.testing.assert_array_equal(state.predict_f(X), before)
