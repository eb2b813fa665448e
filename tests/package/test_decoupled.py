"""Decoupled bases: processes, bounds, gradients and natural steps against dense algebra, differences and other methods."""

import pickle
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from problems import central_differences, peak
from scipy.optimize import minimize
from scipy.stats import norm

from pepcore import Blurred, decoupled, gaussian, power_ep
from pepcore.decoupled import DecoupledPosterior
from pepcore.decoupled import bases as decoupled_bases
from pepcore.decoupled import bound as decoupled_bound
from pepcore.decoupled import inference as decoupled_inference
from pepcore.decoupled.bases import Bases, Process, StoredRows, marginals
from pepcore.decoupled.bound import bound, kl_divergence
from pepcore.decoupled.inference import check_end
from pepcore.decoupled.natural import (
    coupled_step,
    diagonal_direction,
    exact_direction,
    from_expectation,
    from_natural,
    log_partition,
    optimum,
    ramp,
    to_expectation,
    to_natural,
)
from pepcore.decoupled.parametrisations import PARAMETRISATIONS, Decoupled, Hybrid, Orthogonal, OrthogonalWeights
from pepcore.gaussian import NotPositiveDefiniteError
from pepcore.kernels import Matern52, SquaredExponential
from pepcore.likelihoods import Gaussian, Likelihood, Logit, Poisson, Probit, StudentT
from pepcore.sweeps import halving
from pepcore.training.coordinates import packed, unpacked
from tests.conftest import reference

KINDS = [Hybrid, Orthogonal, OrthogonalWeights, Decoupled]
NOISE, GAMMA, BETA = 0.2, 9, 6
KERNEL = SquaredExponential(1.3, [0.8, 1.2]) + Matern52(0.5, [0.7, 0.6])


def problem(likelihood=None, N=40):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (N, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=N)
    if isinstance(likelihood, Probit | Logit):
        y = np.where(y > 0, 1.0, -1.0)
    beta, gamma = rng.uniform(-2, 2, (BETA, 2)), rng.uniform(-2, 2, (GAMMA, 2))
    if isinstance(likelihood, Poisson):
        y = rng.poisson(np.exp(y)).astype(float)
    return X, y, beta, gamma


def bases_of(gamma=GAMMA, jitter=1e-10):
    _, _, beta, points = problem()
    return Bases.build(KERNEL, beta, points[:gamma], jitter)


def somewhere(kind, bases, seed=1, size=0.3):
    """Random parameters near those of the prior."""
    rng = np.random.default_rng(seed)
    fields = {}
    for name, value in vars(kind.prior(bases)).items():
        moved = value + size * rng.normal(size=value.shape)
        fields[name] = np.asfortranarray(np.tril(moved)) if value.ndim == 2 else moved
    return kind(**fields)


differences = partial(central_differences, step=1e-5)


def symmetric(array):
    """A matrix moved element by element must stay symmetric; a vector is left alone."""
    return 0.5 * (array + array.T) if array.ndim == 2 else array


def close(one, other, tolerance):
    return np.abs(np.subtract(one, other)).max() <= tolerance * max(1.0, np.abs(other).max())


def dense_moments(parameters, bases, Xs):
    """Mean and covariance at Xs by the formulas of the paper (corrected), with plain inverses."""
    kernel, beta, gamma = bases.kernel, bases.beta, bases.gamma
    K_beta = bases.L @ bases.L.T
    inverse = np.linalg.inv(K_beta)
    k_b, k_g, K_bg = kernel(Xs, beta), kernel(Xs, gamma), kernel(beta, gamma)
    if isinstance(parameters, Decoupled):
        B = parameters.B_root @ parameters.B_root.T
        A = -inverse + np.linalg.inv(K_beta @ B @ K_beta + K_beta)  # below eq. (8)
        return k_g @ parameters.a_gamma, kernel(Xs) + k_b @ A @ k_b.T
    S = parameters.S_root @ parameters.S_root.T
    covariance = kernel(Xs) + k_b @ inverse @ (S - K_beta) @ inverse @ k_b.T
    if isinstance(parameters, Hybrid):
        return k_g @ parameters.a_gamma + k_b @ inverse @ parameters.m_beta, covariance
    a_beta = parameters.a_beta if isinstance(parameters, OrthogonalWeights) else inverse @ parameters.m_beta
    return (k_g - k_b @ inverse @ K_bg) @ parameters.a_gamma + k_b @ a_beta, covariance


# --- the process ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_mean_and_covariance_are_those_of_the_formulas(kind):
    bases = bases_of()
    parameters = somewhere(kind, bases)
    Xs = np.random.default_rng(5).uniform(-3, 3, (7, 2))
    mean, covariance = dense_moments(parameters, bases, Xs)
    posterior = DecoupledPosterior(bases, parameters.process(bases))
    for found, expected in zip(posterior.predict_full(Xs), (mean, covariance), strict=True):
        assert close(found, expected, 1e-10)
    for found, expected in zip(posterior.predict(Xs), (mean, np.diag(covariance)), strict=True):
        assert close(found, expected, 1e-10)


def test_no_variance_is_negative_where_the_process_is_known():
    """At its pseudo-inputs, with V = 0 and no jitter, only rounding is left."""
    beta = np.random.default_rng(0).uniform(-3, 3, (12, 2))
    bases = Bases.build(KERNEL, beta, np.empty((0, 2)), jitter=0.0)
    process = Process(np.zeros(12), np.empty(0), np.zeros((12, 12)))
    variances = np.diag(DecoupledPosterior(bases, process).predict_full(beta)[1])
    assert np.all(variances >= 0) and np.all(variances < 1e-10)


def test_the_orthogonal_process_conditions_the_prior_on_two_sets_of_points():
    """Appendix D: q(f_γ|f_β) keeps the prior's covariance and its dependence on f_β, and shifts its mean, :eq:`og-shift`."""
    bases = bases_of()
    parameters = somewhere(Orthogonal, bases)
    joint_mean, joint_covariance, prior = joint_of(bases, parameters)
    Xs = np.random.default_rng(5).uniform(-3, 3, (7, 2))
    k = KERNEL(Xs, np.vstack([bases.gamma, bases.beta]))
    W = k @ np.linalg.inv(prior)
    covariance = KERNEL(Xs) + W @ (joint_covariance - prior) @ W.T
    found = DecoupledPosterior(bases, parameters.process(bases)).predict_full(Xs)
    assert close(found[0], W @ joint_mean, 1e-7)
    assert close(found[1], covariance, 1e-7)


def joint_of(bases, parameters):
    """Mean and covariance of q(f_γ, f_β), and the prior's covariance."""
    K_beta, K_bg, K_gamma = bases.L @ bases.L.T, KERNEL(bases.beta, bases.gamma), KERNEL(bases.gamma)
    P = K_bg.T @ np.linalg.inv(K_beta)
    m, S = parameters.m_beta, parameters.S_root @ parameters.S_root.T
    mean = np.concatenate([(K_gamma - P @ K_bg) @ parameters.a_gamma + P @ m, m])
    covariance = np.block([[K_gamma + P @ (S - K_beta) @ P.T, P @ S], [S @ P.T, S]])
    return mean, covariance, np.block([[K_gamma, K_bg.T], [K_bg, K_beta]])


def test_the_divergence_is_that_of_the_function_values_at_both_bases():
    bases = bases_of()
    parameters = somewhere(Orthogonal, bases)
    mean, covariance, prior = joint_of(bases, parameters)
    truth = gaussian.kl_divergence(mean, covariance, np.zeros(len(mean)), prior)
    assert kl_divergence(bases, parameters.process(bases)) == pytest.approx(truth, rel=1e-7)


def test_three_parametrisations_describe_the_same_processes():
    bases = bases_of()
    process = somewhere(Orthogonal, bases).process(bases)
    again = Hybrid.from_process(bases, process).process(bases)
    weights = OrthogonalWeights.from_process(bases, again).process(bases)
    back = Orthogonal.from_process(bases, weights).process(bases)
    for other in (again, weights, back):
        assert all(close(getattr(other, name), getattr(process, name), 1e-12) for name in ("w", "g", "root"))


# --- the bound and its gradient ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", [Gaussian(NOISE), Probit(), Logit(), Poisson(), StudentT(4.0, 0.3)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_agree_with_central_differences(kind, likelihood):
    check_gradients(kind, likelihood, columns=None)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_agree_with_central_differences_where_columns_are_sampled(kind):
    check_gradients(kind, Gaussian(NOISE), columns=np.array([1, 4, 7]))


@pytest.mark.parametrize("kind", [Hybrid, Orthogonal, OrthogonalWeights])
def test_gradients_of_the_coupled_basis_agree_with_central_differences(kind):
    check_gradients(kind, Probit(), columns=None, gamma=0)


def check_gradients(kind, likelihood, columns, gamma=GAMMA):
    X, y, beta, points = problem(likelihood, N=12)
    points, weight = points[:gamma], 1.7
    bases = Bases.build(KERNEL, beta, points)
    parameters = somewhere(kind, bases)

    def value(kernel=KERNEL, beta=beta, gamma=points, parameters=parameters, likelihood=likelihood):
        return bound(Bases.build(kernel, beta, gamma), parameters, X, y, likelihood, weight=weight, columns=columns).value

    gradient = bound(bases, parameters, X, y, likelihood, weight=weight, columns=columns, hyper=True).gradient
    expected = {
        name: differences(lambda new, name=name: value(parameters=replace(parameters, **{name: new})), old)
        for name, old in vars(parameters).items()
    }
    expected = {name: np.tril(slope) if slope.ndim == 2 else slope for name, slope in expected.items()}
    for name, old in KERNEL.parameters.items():
        expected[name] = differences(lambda new, name=name: value(KERNEL.with_parameters({name: new})), old)
    for name, old in likelihood.parameters.items():
        change = lambda new, name=name: likelihood.with_parameters({name: float(new)})
        expected[name] = differences(lambda new, change=change: value(likelihood=change(new)), old)
    expected["beta"] = differences(lambda new: value(beta=new), beta)
    expected["gamma"] = differences(lambda new: value(gamma=new), points)
    assert set(gradient) == set(expected)
    for name, slope in expected.items():
        if slope.size:
            assert close(gradient[name], slope, 1e-6), name


def test_sampling_columns_has_no_bias():
    """The average over all subsets of three columns is the divergence itself, and so for its derivative."""
    bases = bases_of()
    process = somewhere(Orthogonal, bases).process(bases)
    subsets = [np.array(chosen) for chosen in combinations(range(GAMMA), 3)]
    estimates = [kl_divergence(bases, process, chosen) for chosen in subsets]
    assert np.std(estimates) > 0.1
    assert np.mean(estimates) == pytest.approx(kl_divergence(bases, process), rel=1e-12)
    products = [bases.gamma_product(process.g, chosen) for chosen in subsets]
    assert close(np.mean(products, axis=0), bases.gamma_product(process.g), 1e-12)


def test_randomly_drawn_columns_have_no_bias():
    """Five standard errors of the mean of 2000 draws: a right estimate fails once in 1.7 million seeds."""
    bases, rng = bases_of(), np.random.default_rng(3)
    process = somewhere(Orthogonal, bases).process(bases)
    draws = [kl_divergence(bases, process, rng.choice(GAMMA, 3, replace=False)) for _ in range(2000)]
    error = np.std(draws) / np.sqrt(len(draws))
    assert abs(np.mean(draws) - kl_divergence(bases, process)) < 5 * error
    biased = [kl_divergence(bases, process, rng.integers(0, GAMMA - 1, 3)) for _ in range(2000)]  # one is never drawn
    assert abs(np.mean(biased) - kl_divergence(bases, process)) > 5 * error


def test_mini_batches_have_no_bias():
    X, y, _, _ = problem()
    bases = bases_of()
    parameters = somewhere(Orthogonal, bases)
    whole = bound(bases, parameters, X, y, Gaussian(NOISE))
    parts = [
        bound(bases, parameters, X[rows], y[rows], Gaussian(NOISE), weight=4.0) for rows in np.split(np.arange(40), 4)
    ]
    assert np.mean([part.value for part in parts]) == pytest.approx(whole.value, rel=1e-12)
    for name, slope in whole.gradient.items():
        assert close(np.mean([part.gradient[name] for part in parts], axis=0), slope, 1e-12)


def test_function_values_are_linear_in_the_orthogonal_parameters():
    """The draw :eq:`og-draw` has the moments of the process, and on a chord it is the mixture of those at the ends."""
    X, *_ = problem()
    bases = bases_of()
    A = np.linalg.solve(bases.L, KERNEL(bases.beta, X))
    R = KERNEL(bases.gamma, X) - bases.cross.T @ np.linalg.solve(bases.L.T, A)
    h = KERNEL.diagonal(X) - (A**2).sum(axis=0)

    def draw(q, xi, zeta):
        m, root = (np.linalg.solve(bases.L, part) for part in (q.m_beta, q.S_root))
        return A.T @ (m + root @ xi) + R.T @ q.a_gamma + np.sqrt(h) * zeta

    ends = [somewhere(Orthogonal, bases, seed) for seed in (1, 2)]
    mean, variance = marginals(bases, ends[0].process(bases), X)
    centre = draw(ends[0], np.zeros(BETA), 0.0)
    spread = [draw(ends[0], xi, zeta) - centre for xi, zeta in [*((e, 0.0) for e in np.eye(BETA)), (np.zeros(BETA), 1.0)]]
    assert close(centre, mean, 1e-10)
    assert close(np.sum(np.square(spread), axis=0), variance, 1e-10)
    noise = np.random.default_rng(3).normal(size=BETA), 0.7
    assert close(draw(between_of(*ends, 0.3), *noise), 0.7 * draw(ends[0], *noise) + 0.3 * draw(ends[1], *noise), 1e-12)


@pytest.mark.parametrize("likelihood", [Gaussian(NOISE), Probit(), Logit(), Poisson()], ids=str)
def test_the_loss_of_the_orthogonal_basis_is_strictly_convex(likelihood):
    X, y, _, _ = problem(likelihood)
    bases = bases_of()
    loss = lambda parameters: -bound(bases, parameters, X, y, likelihood).value
    rng = np.random.default_rng(2)
    for _ in range(10):
        ends = []
        for size in rng.uniform(0.1, 2.0, 2):
            end = somewhere(Orthogonal, bases, seed=rng, size=size)
            end.S_root[np.diag_indices(BETA)] = np.abs(np.diag(end.S_root)) + 0.01  # the domain, which is convex
            ends.append(end)
        for t in (0.2, 0.5, 0.8):
            between = between_of(*ends, t)
            chord = (1 - t) * loss(ends[0]) + t * loss(ends[1])
            assert loss(between) < chord - 1e-9 * abs(chord)


def between_of(one, other, t):
    return type(one)(**{name: (1 - t) * value + t * getattr(other, name) for name, value in vars(one).items()})


def test_the_loss_of_the_decoupled_basis_is_not_convex():
    """Along a ray B_root = t R with a positive diagonal the loss bends downwards."""
    X, y, _, _ = problem()
    bases = bases_of()
    start = Decoupled.prior(bases)
    loss = lambda t: -bound(bases, replace(start, B_root=t * np.eye(BETA, order="F")), X, y, Gaussian(NOISE)).value
    assert loss(50.0) > 0.5 * (loss(10.0) + loss(90.0)) + 1.0


# --- three parametrisations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0, GAMMA])
def test_conversions_come_back(gamma):
    bases = bases_of(gamma)
    model = somewhere(Orthogonal, bases)
    for again in (from_natural(to_natural(model)), from_expectation(bases, to_expectation(bases, model))):
        assert close(again.m_beta, model.m_beta, 1e-10)
        assert close(again.S_root @ again.S_root.T, model.S_root @ model.S_root.T, 1e-10)
        assert not gamma or close(again.a_gamma, model.a_gamma, 1e-10)
        assert np.all(np.diag(again.S_root) > 0)


def test_expectation_parameters_are_the_gradient_of_the_log_partition_function():
    bases = bases_of()
    natural = to_natural(somewhere(Orthogonal, bases))
    expectation = to_expectation(bases, from_natural(natural))
    for name, truth in zip(natural._fields, expectation, strict=True):
        value = lambda new, name=name: log_partition(bases, natural._replace(**{name: symmetric(new)}))
        assert close(differences(value, getattr(natural, name)), truth, 1e-6), name


def test_natural_parameters_of_the_hybrid_basis():
    """Eq. (19): S⁻¹(K_βa_β + K_βγa_γ), with m_β = K_βa_β in the parametrisation of eq. (11)."""
    bases = bases_of()
    hybrid = somewhere(Hybrid, bases)
    natural = to_natural(Orthogonal.from_process(bases, hybrid.process(bases)))
    S = hybrid.S_root @ hybrid.S_root.T
    assert close(natural.j_beta, np.linalg.solve(S, hybrid.m_beta + bases.cross @ hybrid.a_gamma), 1e-9)
    assert close(natural.Theta, 0.5 * np.linalg.inv(S), 1e-9)


# --- natural steps ----------------------------------------------------------------------------------------------------


def moved(bases, parameters, X, y, likelihood, step):
    now = bound(bases, parameters, X, y, likelihood)
    return type(parameters).from_process(bases, coupled_step(bases, now.process, now.data, step))


@pytest.mark.parametrize("likelihood", [Gaussian(NOISE), Probit()], ids=str)
def test_a_natural_step_follows_the_gradient_in_the_expectation_parameters(likelihood):
    """η ← η + ε ∂ELBO/∂θ, eq. (15), the derivative by differences of the bound as a function of θ.

    Why it may: :eq:`pep-natural`.
    """
    X, y, _, _ = problem(likelihood)
    bases, step = bases_of(), 0.3
    model = somewhere(Orthogonal, bases)
    natural, expectation = to_natural(model), to_expectation(bases, model)

    def value(name, new):
        moved_there = from_expectation(bases, expectation._replace(**{name: symmetric(new)}))
        return bound(bases, moved_there, X, y, likelihood).value

    slopes = [
        differences(lambda new, name=name: value(name, new), getattr(expectation, name)) for name in expectation._fields
    ]
    after = to_natural(moved(bases, model, X, y, likelihood, step))
    assert close(after.j_beta, natural.j_beta + step * slopes[1], 1e-5)
    assert close(after.Theta, natural.Theta + step * slopes[2], 1e-5)
    direction = exact_direction(bases, bound(bases, model, X, y, likelihood).gradient["a_gamma"])
    assert close(direction, slopes[0], 1e-5)


def test_a_natural_step_is_that_of_the_paper():
    """Eqs (16a), (16b), (16c) and (17) from derivatives of the loss in (a_γ, a_β, S)."""
    X, y, _, _ = problem(Probit())
    bases, step = bases_of(), 0.2
    model = somewhere(Orthogonal, bases)
    natural, m_beta = to_natural(model), model.m_beta
    S, K_beta = model.S_root @ model.S_root.T, bases.L @ bases.L.T
    weights = OrthogonalWeights.from_process(bases, model.process(bases))
    gradient = bound(bases, weights, X, y, Probit()).gradient

    def value_of(S):
        root = np.asfortranarray(np.linalg.cholesky(0.5 * (S + S.T)))
        return bound(bases, replace(model, S_root=root), X, y, Probit()).value

    dS = differences(value_of, S)
    after = to_natural(moved(bases, model, X, y, Probit(), step))
    assert close(
        after.j_beta, natural.j_beta + step * (np.linalg.solve(K_beta, gradient["a_beta"]) - 2 * dS @ m_beta), 1e-6
    )
    assert close(after.Theta, natural.Theta - step * dS, 1e-6)
    residual = KERNEL(bases.gamma) - bases.cross.T @ np.linalg.solve(K_beta, bases.cross)
    assert close(exact_direction(bases, gradient["a_gamma"]), np.linalg.solve(residual, gradient["a_gamma"]), 1e-8)
    diagonal = gradient["a_gamma"] / (np.diag(residual) + 1e-6 * 1.8)
    assert close(diagonal_direction(bases, gradient["a_gamma"]), diagonal, 1e-8)


@pytest.mark.parametrize("kind", [Hybrid, Orthogonal])
@pytest.mark.parametrize("seed", range(3))
def test_one_step_from_anywhere_solves_a_gaussian_likelihood_in_the_coupled_basis(kind, seed):
    X, y, beta, _ = problem()
    bases = bases_of(gamma=0)
    best = power_ep.regression(KERNEL, beta, X, y, noise=NOISE, alpha=0.0, jitter=1e-10)
    after = moved(bases, somewhere(kind, bases, seed, size=3.0), X, y, Gaussian(NOISE), 1.0)
    assert bound(bases, after, X, y, Gaussian(NOISE)).value == pytest.approx(best.log_evidence, abs=1e-8)


@pytest.mark.parametrize("kind", [Hybrid, Orthogonal])
def test_one_step_from_anywhere_solves_the_coupled_part_given_gamma(kind):
    X, y, _, _ = problem()
    bases = bases_of()
    best = optimum(bases, X, y, NOISE)
    # gamma at its optimum: in the hybrid basis it is the same number of weights
    start = replace(somewhere(kind, bases, size=3.0), a_gamma=best.a_gamma)
    after = moved(bases, start, X, y, Gaussian(NOISE), 1.0)
    highest = bound(bases, best, X, y, Gaussian(NOISE)).value
    assert bound(bases, after, X, y, Gaussian(NOISE)).value == pytest.approx(highest, abs=1e-8)


def test_steps_of_hybrid_and_orthogonal_lead_to_the_same_process():
    """Natural gradients do not see the parametrisation, appendix C.3: a_γ held still, the coupled part moves alike."""
    X, y, _, _ = problem(Probit())
    bases = bases_of()
    orthogonal = somewhere(Orthogonal, bases)
    hybrid = Hybrid.from_process(bases, orthogonal.process(bases))
    one, other = (moved(bases, start, X, y, Probit(), 0.3).process(bases) for start in (orthogonal, hybrid))
    assert all(close(getattr(one, name), getattr(other, name), 1e-10) for name in ("w", "g", "root"))


@pytest.mark.parametrize("likelihood", [Gaussian(NOISE), Probit(), Poisson()], ids=str)
def test_a_coupled_natural_step_is_the_site_update_at_power_zero(likelihood):
    """Two damped sweeps of `power_ep.infer` at α = 0 and two natural steps of the same length, from the prior."""
    X, y, beta, _ = problem(likelihood)
    bases, step = bases_of(gamma=0), 0.3
    parameters, sites = Orthogonal.prior(bases), None
    for _ in range(2):
        with pytest.warns(RuntimeWarning):  # one sweep does not converge
            fit = power_ep.infer(
                KERNEL, beta, X, y, likelihood, alpha=0.0, sites=sites, step=step, max_sweeps=1, jitter=1e-10
            )
        taken = fit.history[-1]["step"]  # shorter than asked for where the bound would have fallen
        parameters, sites = moved(bases, parameters, X, y, likelihood, taken), fit.sites
        mean, V = fit.posterior.whitened()
        process = parameters.process(bases)
        assert close(process.w, mean, 1e-10)
        assert close(process.V, V, 1e-10)
        assert bound(bases, parameters, X, y, likelihood).value == pytest.approx(fit.log_evidence, rel=1e-10)


def test_a_step_that_leaves_no_proper_posterior_says_so():
    X, y, _, _ = problem()
    y[0] = 2000.0
    bases = bases_of(gamma=0)
    likelihood = StudentT(1.0, 1e-3)
    with pytest.raises(NotPositiveDefiniteError, match="smaller step"):
        moved(bases, Orthogonal.prior(bases), X, np.full(40, 2.0), likelihood, 1.0)


# --- other software ---------------------------------------------------------------------------------------------------


class SquashedProbit(Likelihood):
    """GPflow's Bernoulli: P = 0.001 + 0.998 Φ(y f), expectations with 20 Gauss-Hermite nodes."""

    def log_moment(self, y, mean, variance, alpha):
        nodes, weights = np.polynomial.hermite_e.hermegauss(20)
        weights = weights[:, None] / np.sqrt(2 * np.pi)
        spread = np.sqrt(variance)
        f = mean + spread * nodes[:, None]
        p = 0.001 + 0.998 * norm.cdf(y * f)
        slope = 0.998 * y * norm.pdf(f) / p
        # GPflow differentiates the rule itself, so twice its slope in the variance stands for d2
        d2 = (weights * slope * nodes[:, None]).sum(axis=0) / spread
        return (weights * np.log(p)).sum(axis=0), (weights * slope).sum(axis=0), d2


def gpflow(setting):
    data = reference("gpflow_svgp.npz")
    kernel = SquaredExponential(float(data["s2"]), data["ls"])
    bases = Bases.build(kernel, data["Z"], np.zeros((0, 2)), jitter=1e-6 / float(data["s2"]))
    q_mu, q_root = data[f"bernoulli_{setting}__q_mu"][:, 0], np.asfortranarray(data[f"bernoulli_{setting}__q_sqrt"][0])
    parameters = {"white": lambda: Hybrid.from_process(bases, Process(q_mu, np.zeros(0), q_root)),
                  "unwhite": lambda: Hybrid(np.zeros(0), q_mu, q_root)}[setting]()
    y = 2.0 * data["y_bin"][:, 0] - 1.0
    return (
        {key.split("__")[1]: data[key] for key in data if key.startswith(f"bernoulli_{setting}")},
        bases,
        parameters,
        data,
        y,
    )


@pytest.mark.parametrize("setting", ["white", "unwhite"])
@pytest.mark.parametrize("kind", [Hybrid, Orthogonal])
def test_without_gamma_bound_and_predictions_are_those_of_gpflow(setting, kind):
    truth, bases, parameters, data, y = gpflow(setting)
    parameters = kind.from_process(bases, parameters.process(bases))
    found = bound(bases, parameters, data["X"], y, SquashedProbit())
    assert found.value == pytest.approx(float(truth["elbo"]), rel=1e-8)
    assert kl_divergence(bases, found.process) == pytest.approx(float(truth["kl"]), rel=1e-8)
    mean, variance = marginals(bases, found.process, data["Xs"])
    assert close(mean, truth["mean_f"][:, 0], 1e-8)
    assert close(variance, truth["var_f"][:, 0], 1e-8)


@pytest.mark.parametrize("setting", ["white", "unwhite"])
@pytest.mark.parametrize("step", ["0.1", "1.0"])
def test_without_gamma_a_natural_step_is_that_of_gpflow(setting, step):
    truth, bases, parameters, data, y = gpflow(setting)
    after = moved(bases, parameters, data["X"], y, SquashedProbit(), float(step))
    process = after.process(bases)
    mean, root = (process.w, process.root) if setting == "white" else (after.m_beta, after.S_root)
    assert close(mean, truth[f"natgrad{step}_q_mu"][:, 0], 1e-6)
    assert close(root @ root.T, truth[f"natgrad{step}_q_sqrt"][0] @ truth[f"natgrad{step}_q_sqrt"][0].T, 1e-6)
    value = bound(bases, after, data["X"], y, SquashedProbit()).value
    assert value == pytest.approx(float(truth[f"natgrad{step}_elbo"]), rel=1e-6)


# --- the optimum ------------------------------------------------------------------------------------------------------


def test_the_optimum_is_stationary_and_no_move_improves_it():
    X, y, _, _ = problem()
    bases = bases_of()
    best = optimum(bases, X, y, NOISE)
    here = bound(bases, best, X, y, Gaussian(NOISE))
    assert all(close(slope, np.zeros_like(slope), 1e-8) for slope in here.gradient.values())
    for seed in range(5):
        away = somewhere(Orthogonal, bases, seed, 0.5)
        near = between_of(best, away, 0.01)
        assert bound(bases, near, X, y, Gaussian(NOISE)).value < here.value


def test_the_optimum_has_the_mean_of_all_points_and_the_covariance_of_beta():
    X, y, beta, gamma = problem()
    bases, Xs = bases_of(), np.random.default_rng(5).uniform(-3, 3, (20, 2))
    mean, variance = marginals(bases, optimum(bases, X, y, NOISE).process(bases), Xs)
    both = power_ep.regression(KERNEL, np.vstack([beta, gamma]), X, y, noise=NOISE, alpha=0.0, jitter=1e-10)
    small = power_ep.regression(KERNEL, beta, X, y, noise=NOISE, alpha=0.0, jitter=1e-10)
    assert close(mean, both.predict_f(Xs)[0], 1e-7)
    assert close(variance, small.predict_f(Xs)[1], 1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_all_decoupled_bases_have_the_same_optimum(kind):
    """Found by L-BFGS from the prior in the basis' own parameters; the decoupled mean stands on gamma and beta."""
    X, y, beta, gamma = problem()
    bases = bases_of()
    highest = bound(bases, optimum(bases, X, y, NOISE), X, y, Gaussian(NOISE)).value
    if kind is Decoupled:
        bases = Bases.build(KERNEL, beta, np.vstack([gamma, beta]), jitter=1e-10)
    start = kind.prior(bases)
    size = {name: packed(value).size for name, value in vars(start).items()}

    def parameters_of(point):
        parts = np.split(point, np.cumsum(list(size.values()))[:-1])
        return kind(**{name: unpacked(part, getattr(start, name)) for name, part in zip(size, parts, strict=True)})

    def loss(point):
        now = bound(bases, parameters_of(point), X, y, Gaussian(NOISE))
        return -now.value, -np.concatenate([packed(now.gradient[name]) for name in size])

    first = np.concatenate([packed(value) for value in vars(start).values()])
    options = {"maxiter": 5000, "maxfun": 5000, "ftol": 1e-16, "gtol": 1e-9}
    found = minimize(loss, first, jac=True, method="L-BFGS-B", options=options)
    assert -found.fun == pytest.approx(highest, abs=2e-8)


# --- infer ------------------------------------------------------------------------------------------------------------


def run(basis="orthogonal", likelihood=None, **options):
    likelihood = likelihood or Gaussian(NOISE)
    X, y, beta, gamma = problem(likelihood)
    gamma = None if basis == "coupled" else gamma
    return decoupled.infer(KERNEL, beta, gamma, X, y, likelihood, basis=basis, **{"jitter": 1e-10, "steps": 200} | options)


def best_value():
    X, y, _, _ = problem()
    return bound(bases_of(), optimum(bases_of(), X, y, NOISE), X, y, Gaussian(NOISE)).value


@pytest.mark.parametrize(("rule", "step"), [("exact", 0.03), ("diagonal", 0.01), ("adam", 0.1)])
def test_every_rule_for_gamma_reaches_the_optimum(rule, step):
    fit = run(gamma_rule=rule, step=step, steps=2000, rate=0.02)
    assert fit.log_evidence == pytest.approx(best_value(), abs=1e-3)
    assert fit.trace()[0] < fit.trace()[-1] <= best_value() + 1e-9


@pytest.mark.parametrize("rule", ["exact", "diagonal"])
def test_steps_along_gamma_that_are_too_long_are_reported(rule):
    with pytest.raises(decoupled.DivergenceError, match="shorter"):
        run(gamma_rule=rule, step=1.0, steps=5000)


@pytest.mark.parametrize("rule", ["exact", "diagonal"])
def test_a_bound_that_ends_far_below_where_it_began_is_no_result(rule):
    with pytest.raises(decoupled.DivergenceError, match=r"far below that after \d+ steps and -.* shorter `step`") as caught:
        run(gamma_rule=rule, step=1.0, steps=30)
    travelled = pickle.loads(pickle.dumps(caught.value))
    assert len(travelled.history) == 30 and travelled.history[-1] < travelled.history[0] and "shorter" in str(travelled)


def test_a_callback_may_look_at_a_bound_that_has_fallen_far():
    seen = []
    with pytest.raises(decoupled.DivergenceError):
        run(gamma_rule="exact", step=1.0, steps=30, callback=lambda record: seen.append(record.result().log_evidence))
    assert len(seen) == 30 and seen[-1] < 1e6 * seen[0] < 0


@pytest.mark.filterwarnings("ignore:the bound was")
def test_a_bound_that_has_fallen_may_return():
    check_end([-50.0, -1e20, -1e9, -60.0], -55.0, 40)  # a step of Adam that was too long for exp(f) of a Poisson rate
    check_end([0.1, -2e5], -3e5, 40)  # the first steps from an optimum
    check_end([], -100.0, 40)
    with pytest.raises(decoupled.DivergenceError, match="after 2 steps"):
        check_end([-50.0, -1e7, -1e9], -1e11, 40)
    with pytest.raises(decoupled.DivergenceError, match="after 1 steps and nan in the end"):
        check_end([-50.0], np.nan, 40)


@pytest.mark.parametrize("basis", list(PARAMETRISATIONS))
def test_learning_on_mini_batches_improves_every_basis(basis):
    options = {"natural": basis != "decoupled", "batch": 10, "columns": 4, "rate": 0.02, "step": 0.1}
    before = run(basis, **options, steps=1)
    fixed = run(basis, **options)
    learnt = run(basis, **options, optimise=("kernel", "beta", "gamma", "likelihood"))
    assert before.log_evidence < fixed.log_evidence < learnt.log_evidence
    assert len(learnt.history) == 200
    assert learnt.likelihood.noise != NOISE
    mean, variance = learnt.predict_y(problem()[0])
    assert np.all(variance > learnt.likelihood.noise)
    assert np.mean((mean - problem()[1]) ** 2) < 0.3


def test_the_units_of_the_inputs_do_not_matter():
    X, y, beta, gamma = problem()

    def learnt(scales):
        points = beta * scales, gamma * scales, X * scales
        return decoupled.infer(SquaredExponential(1.0, scales), *points, y, Gaussian(NOISE), steps=5, rate=0.05,
                               optimise=("beta", "gamma", "kernel")).bases

    scales = np.array([1e-3, 1e3])
    plain, scaled = learnt(np.ones(2)), learnt(scales)
    assert np.abs(plain.beta - beta).max() > 0.1
    np.testing.assert_allclose(scaled.beta / scales, plain.beta, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(scaled.gamma / scales, plain.gamma, rtol=1e-6, atol=1e-9)


def test_what_is_not_learnt_stays():
    _, _, beta, gamma = problem()
    fit = run(optimise=("beta",), steps=5, rate=0.1)
    assert np.array_equal(fit.bases.gamma, gamma) or close(fit.bases.gamma, gamma, 1e-15)
    assert np.abs(fit.bases.beta - beta).max() > 0.01
    assert fit.bases.kernel.parameters.keys() == KERNEL.parameters.keys()
    assert all(np.array_equal(value, KERNEL.parameters[name]) for name, value in fit.bases.kernel.parameters.items())


def test_the_gradient_of_a_fit_is_that_of_the_bound():
    fit, (X, y, _, _) = run(steps=3), problem()
    again = bound(fit.bases, fit.parameters, X, y, fit.likelihood, hyper=True)
    assert fit.log_evidence == again.value
    assert all(np.array_equal(fit.gradient[name], slope) for name, slope in again.gradient.items())


@pytest.mark.parametrize("rows", [None, np.array([70, 3, 149, 3, 64, 128])], ids=["all", "some"])
def test_stored_features_change_nothing(rows, monkeypatch):
    """In blocks of 64 rows; derivatives in the kernel do not use what is stored, so they are not asked for."""
    monkeypatch.setattr("pepcore.features.BLOCK_ELEMENTS", 1)
    monkeypatch.setattr("pepcore.decoupled.bound.BLOCK_ELEMENTS", 1)
    X, y, _, _ = problem(N=150)
    bases = bases_of()
    parameters, everything = somewhere(Orthogonal, bases), StoredRows(bases, X)
    stored = everything if rows is None else lambda block: everything(rows[block])
    X, y = (X, y) if rows is None else (X[rows], y[rows])
    computed, found = (bound(bases, parameters, X, y, Gaussian(NOISE), stored=s) for s in (None, stored))
    assert found.value == pytest.approx(computed.value, rel=1e-12)
    assert all(close(found.gradient[name], slope, 1e-12) for name, slope in computed.gradient.items())
    assert close(found.data.curvature, computed.data.curvature, 1e-12)


def test_the_state_before_each_step_can_be_looked_at():
    values, (X, y, _, _) = {}, problem()

    def look(number, q):
        data = Gaussian(NOISE).log_moment(y, *q.predict(X), 0.0)[0].sum()
        values[number] = data - kl_divergence(q.bases, q.process)

    look(0, run(steps=0).posterior)
    fit = run(steps=6, callback=lambda record: look(record["step"], record.result().posterior))
    assert np.allclose([values[number] for number in range(7)], [*fit.trace(), fit.log_evidence], rtol=1e-12)


def test_a_fit_goes_on_where_another_ended():
    whole, half = run(steps=20, step=0.03, gamma_rule="exact"), run(steps=10, step=0.03, gamma_rule="exact")
    again = run(steps=10, step=0.03, gamma_rule="exact", start=half.parameters)
    assert again.log_evidence == pytest.approx(whole.log_evidence, rel=1e-12)


def test_an_interruption_keeps_what_was_learnt():
    def stop(record):
        if record["step"] == 3:
            raise KeyboardInterrupt

    fit = run(callback=stop)
    assert len(fit.history) == 3
    assert "interrupted" in fit.message


def test_a_likelihood_that_is_not_log_concave_is_survived():
    fit = run("coupled", StudentT(2.0, 0.05), step=1.0, steps=150)
    assert np.isfinite(fit.log_evidence)
    assert fit.log_evidence > fit.trace()[0]


@pytest.mark.filterwarnings("ignore:the bound was")
def test_a_natural_step_that_leaves_no_proper_posterior_is_halved(monkeypatch):
    monkeypatch.setattr(decoupled_inference, "ramp", lambda number, last: last)
    X, _, beta, _ = problem()
    y, likelihood, bases = np.full(40, 2.0), StudentT(1.0, 1e-3), bases_of(gamma=0)
    fit = decoupled.infer(KERNEL, beta, None, X, y, likelihood, basis="coupled", steps=1, step=1.0, jitter=1e-10)
    now = bound(bases, Hybrid.prior(bases), X, y, likelihood)
    expected, length, _ = halving(lambda length: coupled_step(bases, now.process, now.data, length), 1.0)
    assert length < 1
    np.testing.assert_allclose(fit.posterior.process.w, expected.w, rtol=1e-8)
    np.testing.assert_allclose(fit.posterior.process.V, expected.V, rtol=1e-8)


class Convex(Likelihood):
    """Nothing bounds it: log p = 5 f²."""

    def log_moment(self, y, mean, variance, alpha):
        return 5 * (mean**2 + variance), 10 * mean, np.full(np.shape(mean), 10.0)

    def derivatives(self, y, f):
        return 5 * f**2, 10 * f, np.full(np.shape(f), 10.0)

    def predict(self, mean, variance):
        return mean, variance


def test_natural_steps_end_with_an_error_where_no_length_leaves_a_proper_posterior():
    with pytest.raises(NotPositiveDefiniteError, match="even a natural step of length"):
        run("coupled", Convex(), steps=2000, step=1.0)


def test_the_ramp_is_a_straight_line():
    assert ramp(0) == 1e-5
    assert ramp(50) == pytest.approx((1e-5 + 0.005) / 2)
    assert ramp(100) == ramp(5000) == 0.005


class Watched:
    """A kernel that remembers the largest square block it was asked for."""

    def __init__(self, kernel):
        self.kernel, self.shapes = kernel, []

    def __call__(self, X, X2=None):
        self.shapes.append((len(X), len(X if X2 is None else X2)))
        return self.kernel(X, X2)

    def value_and_vjp(self, X, X2=None):
        self.shapes.append((len(X), len(X if X2 is None else X2)))
        return self.kernel.value_and_vjp(X, X2)

    def __getattr__(self, name):
        return getattr(self.kernel, name)


@pytest.mark.parametrize("kind", [Hybrid, Orthogonal, OrthogonalWeights])
def test_a_natural_step_can_do_without_the_derivatives_in_the_root(kind):
    X, y, beta, gamma = problem()
    bases = Bases.build(KERNEL, beta, gamma)
    both = [
        bound(bases, somewhere(kind, bases), X, y, Gaussian(NOISE), hyper=True, roots=roots) for roots in (True, False)
    ]
    whole, part = (now.gradient for now in both)
    assert set(whole) - set(part) == {"S_root"}
    for name, value in part.items():
        np.testing.assert_array_equal(value, whole[name])


def test_no_step_makes_the_covariance_of_all_of_gamma_if_columns_are_sampled():
    X, y, beta, gamma = problem()
    kernel = Watched(KERNEL)
    bases = Bases.build(kernel, beta, gamma)
    for kind in (Hybrid, Orthogonal):
        now = bound(bases, somewhere(kind, bases), X, y, Gaussian(NOISE), columns=np.arange(3), hyper=True)
        diagonal_direction(bases, now.gradient["a_gamma"])
        coupled_step(bases, now.process, now.data, 0.1)
    assert (GAMMA, 3) in kernel.shapes
    assert (GAMMA, GAMMA) not in kernel.shapes
    assert not {"gamma_covariance", "residual_covariance", "residual_root"} & set(vars(bases))


def test_a_run_with_sampled_columns_stays_small_to_its_end():
    rng = np.random.default_rng(0)
    X, gamma = rng.normal(size=(60, 2)), rng.normal(size=(3000, 2))
    options = {"steps": 2, "batch": 20, "columns": 20}
    work = lambda: decoupled.infer(SquaredExponential(1.0, 1.0), X[:10], gamma, X, X[:, 0], Gaussian(0.1), **options)
    assert peak(work) < 0.5 * 8 * len(gamma) ** 2  # half of one (G, G) matrix


def test_rows_that_are_too_many_to_keep_give_the_same_model(monkeypatch):
    kept = run(steps=10, optimise=(), batch=20)
    monkeypatch.setattr(decoupled_inference, "STREAM_ELEMENTS", 0)
    assert run(steps=10, optimise=(), batch=20).log_evidence == pytest.approx(kept.log_evidence, rel=1e-12)


@pytest.mark.parametrize(("limit", "kept"), [(40 * (BETA + GAMMA), 1), (40 * (BETA + GAMMA) - 1, 0)])
def test_no_more_numbers_of_rows_are_kept_than_the_limit(limit, kept, monkeypatch):
    made = []
    monkeypatch.setattr(decoupled_inference, "StoredRows", lambda *given: made.append(StoredRows(*given)) or made[-1])
    monkeypatch.setattr(decoupled_inference, "STREAM_ELEMENTS", limit)
    run(steps=1, optimise=())
    assert len(made) == kept


@pytest.mark.parametrize("kind", [Hybrid, Orthogonal])
def test_the_norm_of_many_points_is_the_same_from_blocks(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X, y, beta, _ = problem()
    bases = Bases.build(KERNEL, beta, rng.normal(size=(130, X.shape[1])))
    kept = bound(bases, somewhere(kind, bases), X, y, Gaussian(NOISE), hyper=True)
    monkeypatch.setattr(decoupled_bases, "KEPT", 10)
    for module in (decoupled_bases, decoupled_bound):
        monkeypatch.setattr(module, "row_blocks", lambda rows, _, __=None: [slice(0, rows // 3), slice(rows // 3, rows)])
    blocks = bound(bases, somewhere(kind, bases), X, y, Gaussian(NOISE), hyper=True)
    assert blocks.value == pytest.approx(kept.value, rel=1e-12)
    for name, value in kept.gradient.items():
        np.testing.assert_allclose(blocks.gradient[name], value, rtol=1e-9, atol=1e-9)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"basis": "dual"}, "'coupled', 'hybrid', 'orthogonal', 'orthogonal-weights', 'decoupled'"),
        ({"basis": "coupled"}, "has no gamma"),
        ({"gamma": None, "basis": "decoupled", "natural": False}, "needs gamma"),
        ({"basis": "decoupled"}, "no natural parameters"),
        ({"basis": "hybrid", "gamma_rule": "exact"}, 'basis="hybrid" give gamma_rule="adam"'),
        ({"natural": False, "gamma_rule": "exact"}, 'natural=False .* give gamma_rule="adam"'),
        ({"gamma_rule": "newton"}, "'adam', 'diagonal', 'exact'"),
        ({"step": 0.0}, "positive"),
        ({"step": 1.5}, r"in \(0, 1\]"),
        ({"rate": -1.0}, "positive"),
        ({"steps": -1}, "at least 0"),
        ({"batch": 2.5}, "whole number"),
        ({"columns": 0}, "at least 1"),
        ({"optimise": ("kernel", "noise")}, "'kernel', 'beta', 'gamma', 'likelihood'"),
        ({"optimise": "kernel"}, "tuple"),
        ({"beta": np.zeros((3, 1))}, "beta has 1 column"),
        ({"gamma": np.full((3, 2), np.nan)}, "gamma holds 6"),
        ({"y": np.zeros(3)}, "y has shape"),
        ({"likelihood": Probit()}, "labels"),
        ({"start": "prior"}, "start is a str"),
        ({"start": Orthogonal(np.zeros(2), np.zeros(BETA), np.eye(BETA))}, "start.a_gamma has shape"),
        ({"start": Orthogonal(np.zeros(GAMMA), np.zeros(BETA), np.tri(BETA).T)}, "start.S_root has numbers above its diagonal"),
        ({"start": Orthogonal(np.zeros(GAMMA), np.zeros(BETA), np.zeros((BETA, BETA)))}, "S_root has a zero on its diagonal"),
        ({"basis": ["orthogonal"]}, "'coupled', 'hybrid', 'orthogonal'"),
    ],
)
def test_bad_input_says_what_to_do(change, message):
    X, y, beta, gamma = problem()
    arguments = {"beta": beta, "gamma": gamma, "X": X, "y": y, "likelihood": Gaussian(NOISE)} | change
    with pytest.raises(ValueError, match=message):
        decoupled.infer(KERNEL, **arguments)


@pytest.mark.parametrize("natural", [True, False])
def test_a_start_may_be_made_of_lists(natural):
    start = somewhere(Orthogonal, bases_of())
    lists = Orthogonal(*(value.tolist() for value in vars(start).values()))
    first, second = (run(natural=natural, steps=1, start=one).log_evidence for one in (start, lists))
    assert first == second


def test_a_kernel_for_other_pseudo_points_is_refused():
    X, y, beta, gamma = problem()
    blurred = Blurred(SquaredExponential(1.0, [1.0, 1.0]), 0.1)
    with pytest.raises(ValueError, match="points of f itself"):
        decoupled.infer(blurred, beta, gamma, X, y, Gaussian(NOISE))


def test_parameters_that_belong_to_no_process_are_refused():
    bases = bases_of()
    model = somewhere(Orthogonal, bases)
    with pytest.raises(NotPositiveDefiniteError, match="Theta"):
        from_natural(to_natural(model)._replace(Theta=-np.eye(BETA)))
    with pytest.raises(NotPositiveDefiniteError, match="Theta"):  # by so little that a jitter would hide it
        log_partition(bases, to_natural(model)._replace(Theta=np.diag([1.0] * (BETA - 1) + [-1e-9])))
    with pytest.raises(NotPositiveDefiniteError, match="expectation parameters"):
        from_expectation(bases, to_expectation(bases, model)._replace(Lambda=np.zeros((BETA, BETA))))


def test_no_array_of_the_caller_is_written_to():
    X, y, beta, gamma = problem()
    arrays = [X, y, beta, gamma]
    for array in arrays:
        array.setflags(write=False)
    before = [array.copy() for array in arrays]
    start = somewhere(Orthogonal, bases_of())
    for array in vars(start).values():
        array.setflags(write=False)
    decoupled.infer(KERNEL, beta, gamma, X, y, Gaussian(NOISE), steps=3, batch=10, columns=3, start=start,
                    optimise=("kernel", "beta", "gamma", "likelihood"))
    assert all(np.array_equal(one, other) for one, other in zip(arrays, before, strict=True))


@pytest.mark.parametrize("likelihood", [Gaussian(NOISE), Probit()], ids=str)
def test_blocks_of_rows_change_nothing(likelihood, monkeypatch):
    X, y, _, _ = problem(likelihood, N=150)
    bases = bases_of()
    parameters = somewhere(Orthogonal, bases)
    whole = bound(bases, parameters, X, y, likelihood, weight=1.7, hyper=True)
    moments = marginals(bases, whole.process, X)
    monkeypatch.setattr("pepcore.features.BLOCK_ELEMENTS", 1)  # 64 rows, the fewest
    monkeypatch.setattr("pepcore.decoupled.bound.BLOCK_ELEMENTS", 1)
    for hyper in (False, True):
        blocked = bound(bases, parameters, X, y, likelihood, weight=1.7, hyper=hyper)
        assert blocked.value == pytest.approx(whole.value, rel=1e-12)
        assert all(close(slope, whole.gradient[name], 1e-10) for name, slope in blocked.gradient.items())
        assert close(blocked.data.curvature, whole.data.curvature, 1e-12)
    assert close(marginals(bases, whole.process, X), moments, 1e-12)


@pytest.mark.filterwarnings("ignore:the bound was")
@pytest.mark.parametrize("likelihood", [Gaussian(NOISE), Probit()], ids=str)
def test_steps_on_batches_are_those_of_their_rows(likelihood):
    """By hand, on the rows that the seed draws: each counts four times; without a Gaussian likelihood steps begin short."""
    X, y, _, _ = problem(likelihood)
    bases, rng = bases_of(), np.random.default_rng(4)
    parameters = Orthogonal.prior(bases)
    fit = run(likelihood=likelihood, steps=3, step=0.5, gamma_rule="exact", batch=10, seed=4)
    for number in range(3):
        rows = rng.choice(40, 10, replace=False)
        now = bound(bases, parameters, X[rows], y[rows], likelihood, weight=4.0)
        assert fit.history[number]["log_evidence"] == pytest.approx(now.value, rel=1e-9)
        length = 0.5 if isinstance(likelihood, Gaussian) else ramp(number, 0.5)
        after = Orthogonal.from_process(bases, coupled_step(bases, now.process, now.data, length))
        along = exact_direction(bases, now.gradient["a_gamma"])
        parameters = replace(after, a_gamma=after.a_gamma + length * along)
    assert close(fit.parameters.m_beta, parameters.m_beta, 1e-8)
    assert close(fit.parameters.a_gamma, parameters.a_gamma, 1e-8)


def test_a_natural_step_of_the_hybrid_basis_follows_its_own_gradient():
    """With a_γ held still the natural parameters of f(beta) move along the derivatives in the hybrid's m_β and S."""
    X, y, _, _ = problem(Probit())
    bases, step = bases_of(), 0.3
    hybrid = somewhere(Hybrid, bases)

    def value(S):
        root = np.asfortranarray(np.linalg.cholesky(symmetric(S)))
        return bound(bases, replace(hybrid, S_root=root), X, y, Probit()).value

    covariance = lambda q: q.S_root @ q.S_root.T
    mean = lambda q: q.m_beta + bases.cross @ q.a_gamma  # of f(beta)
    dS, dm = differences(value, covariance(hybrid)), bound(bases, hybrid, X, y, Probit()).gradient["m_beta"]
    after = moved(bases, hybrid, X, y, Probit(), step)
    assert np.array_equal(after.a_gamma, hybrid.a_gamma)
    assert close(np.linalg.inv(covariance(after)), np.linalg.inv(covariance(hybrid)) - 2 * step * dS, 1e-5)
    shifts = [np.linalg.solve(covariance(q), mean(q)) for q in (hybrid, after)]
    assert close(shifts[1], shifts[0] + step * (dm - 2 * dS @ mean(hybrid)), 1e-5)


def test_a_rate_that_throws_the_kernel_far_away_is_named_as_the_fault():
    X = np.random.default_rng(0).normal(size=(60, 1))
    with pytest.raises(decoupled.DivergenceError, match="too long"):
        decoupled.infer(
            SquaredExponential(), X[:5], X[5:9], X, np.sign(X[:, 0]), Probit(), rate=1e3, steps=20, optimise=("kernel",)
        )


def test_an_end_below_the_beginning_is_told():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (150, 1))
    y = 1.5 * np.sin(2 * X[:, 0]) + 0.2 * rng.standard_t(4, 150)
    kernel, beta, likelihood = SquaredExponential(1.0, [0.5]), np.linspace(0, 6, 12)[:, None], StudentT(4.0, 0.2)
    with pytest.warns(RuntimeWarning, match=r"the bound was -[\d.]+ at first and is -[\d.]+ in the end: the steps are too long"):
        decoupled.infer(kernel, beta, X[:20], X, y, likelihood, step=0.1, gamma_rule="diagonal", steps=300)
