"""The engines write cavity, target and evidence in forms that do not cancel: each equals what `pepcore.sites` teaches."""

import numpy as np
import pytest

from pepcore import exact
from pepcore.features import feature_map
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Poisson, Probit
from pepcore.multiclass import sites_each, sites_tied
from pepcore.multiclass.factors import Joint, Pairwise
from pepcore.multiclass.maps import ClassMaps
from pepcore.multiclass.sites_tied import TiedSites
from pepcore.online import fixed_basis, sequential
from pepcore.power_ep import iterative
from pepcore.sites import Sites, cavity, move, site_energy, target

N, M, C = 12, 5, 3
ALPHAS = [0.0, 0.3, 1.0]
SEEDS = range(3)
KERNEL = SquaredExponential(1.5, 0.8)


def close(actual, expected):
    """Equal to 1e-10 of the largest element."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10 * max(1.0, np.abs(expected).max()))


def same_sites(actual, expected):
    close(actual.tau, expected.tau)
    close(actual.nu, expected.nu)


def inputs(seed):
    rng = np.random.default_rng(seed)
    return rng, rng.uniform(-2, 2, (N, 2)), rng.uniform(-2, 2, (M, 2))


def some_sites(rng, shape=(N,)):
    """Precise enough to matter, and not so precise that the taught forms lose digits."""
    return Sites(rng.uniform(0.05, 0.8, shape), rng.normal(size=shape))


def targets_of(likelihood, rng):
    return rng.choice([-1.0, 1.0], N) if isinstance(likelihood, Probit) else rng.poisson(2.0, N).astype(float)


def solved(A, tau, nu):
    """m, V and G(posterior) − G(prior) for the sites, as written on the page."""
    precision = np.eye(len(A)) + (A * tau) @ A.T
    V, b = np.linalg.inv(precision), A @ nu
    return V @ b, V, 0.5 * b @ V @ b - 0.5 * np.linalg.slogdet(precision)[1]


def taught(A, h, y, likelihood, sites, alpha):
    """Cavities of f, target, move and evidence by the functions of `pepcore.sites` alone."""
    m, V, gained = solved(A, sites.tau, sites.nu)
    mu, s = A.T @ m, np.einsum("mn,mk,kn->n", A, V, A)
    mean, reduced = cavity(mu, s, sites, alpha)
    l, d1, d2 = likelihood.log_moment(y, mean, h + reduced, alpha)
    goal = target(mean, reduced, d1, d2, alpha)
    return mean, h + reduced, goal, move(sites, goal, mu, s), gained + (l + site_energy(mu, s, sites, alpha)).sum()


def check(state, expected):
    mean, variance, goal, moved, log_evidence = expected
    close(state.cavity_mean, mean)
    close(state.cavity_variance, variance)
    same_sites(state.target, goal)
    close(state.move, moved)
    close(state.log_evidence, log_evidence)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("likelihood", [Probit(), Poisson()], ids=repr)
def test_exact_inference_has_the_taught_cavities_and_evidence(likelihood, alpha, seed):
    rng, X, _ = inputs(seed)
    y, sites, K = targets_of(likelihood, rng), some_sites(rng), KERNEL(X)
    root = np.linalg.cholesky(K).T  # f = rootᵀv
    check(exact._evaluate(K, y, likelihood, alpha, sites), taught(root, np.zeros(N), y, likelihood, sites, alpha))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("likelihood", [Probit(), Poisson()], ids=repr)
def test_sparse_inference_has_the_taught_cavities_and_evidence(likelihood, alpha, seed):
    rng, X, Z = inputs(seed)
    y, sites, features = targets_of(likelihood, rng), some_sites(rng), feature_map(KERNEL, Z, X)
    state = iterative._evaluate(y, likelihood, alpha, iterative._marginals(features, sites))
    check(state, taught(features.A, features.h, y, likelihood, sites, alpha))
    close(state.kept, 1 - alpha * sites.tau * np.einsum("mn,mk,kn->n", features.A, solved(features.A, *vars(sites).values())[1],
                                                        features.A))


def many_classes(kind, seed):
    rng, X, Z = inputs(seed)
    y = np.append(np.arange(C), rng.integers(C, size=N - C))
    factors = Pairwise(y, C) if kind == "pairwise" else Joint(y, C, 0.01)
    maps = ClassMaps.build((KERNEL,), tuple(Z + 0.1 * c for c in range(C)), C, X, 1e-6)
    return rng, maps, factors, rng.uniform(0.1, 0.5, C), some_sites(rng, factors.shape)


def taught_classes(maps, factors, noise, alpha, sites):
    """Cavities of aᵀv, target, move and evidence of many classes by the functions of `pepcore.sites` alone."""
    tau, nu = factors.scatter(sites.tau), factors.scatter(sites.nu)
    mu, s, h, gained = np.empty((C, N)), np.empty((C, N)), np.empty((C, N)), 0.0
    for c in range(C):
        A, h[c] = maps.of(c).A, maps.of(c).h
        m, V, more = solved(A, tau[c], nu[c])
        mu[c], s[c], gained = A.T @ m, np.einsum("mn,mk,kn->n", A, V, A), gained + more
    mu, s, h = map(factors.gather, (mu, s, h))
    mean, reduced = cavity(mu, s, sites, alpha)
    tilted = factors.tilted(mean, h + reduced, noise, alpha)
    goal = target(mean, reduced, tilted.d1, tilted.d2, alpha)
    return mean, goal, move(sites, goal, mu, s), gained + tilted.l.sum() + site_energy(mu, s, sites, alpha).sum()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kind", ["pairwise", "joint"])
def test_a_site_for_every_factor_and_class(kind, alpha, seed):
    _, maps, factors, noise, sites = many_classes(kind, seed)
    state = sites_each.evaluate(maps, factors, noise, alpha, sites)
    mean, goal, moved, log_evidence = taught_classes(maps, factors, noise, alpha, sites)
    close(state.cavity_mean, mean)
    same_sites(state.target, goal)
    close(state.move, moved)
    close(state.log_evidence, log_evidence)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_tied_sites_with_a_group_for_every_factor(alpha, seed):
    """Then the summed natural parameters of a group are those of one site in two classes."""
    _, maps, factors, noise, sites = many_classes("pairwise", seed)
    masks = [np.broadcast_to(np.arange((C - 1) * N).reshape(C - 1, N) == g, factors.shape) * 1.0 for g in range((C - 1) * N)]

    def tied(values):
        pairs = [maps.natural_parameters(factors.scatter(mask * values.tau), factors.scatter(mask * values.nu)) for mask in masks]
        return TiedSites([pair[0] for pair in pairs], [pair[1] for pair in pairs])

    state = sites_tied.evaluate(maps, factors, noise, alpha, masks, tied(sites))
    _, goal, _, log_evidence = taught_classes(maps, factors, noise, alpha, sites)
    close(state.log_evidence, log_evidence)
    for actual, expected in zip(state.target, tied(goal), strict=True):
        for group, other in zip(actual, expected, strict=True):
            for part, right in zip(group, other, strict=True):
                close(part, right)


def energy_from(mean, variance, site):
    """`site_energy` at alpha = 1 of the posterior that a site makes of the cavity N(mean, variance)."""
    after = variance / (1 + site.tau * variance)
    return site_energy(after * (mean / variance + site.nu), after, site, 1.0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rho", [0.0, 0.4, 1.0])
def test_one_datum_online(rho, seed):
    rng = np.random.default_rng(seed)
    mean, spread, novelty = rng.normal(), rng.uniform(0.2, 2), rng.uniform(0.1, 1)
    kept = rho * novelty
    l, d1, d2 = (float(part[0]) for part in Probit().log_moment(np.ones(1), np.array([mean]), np.array([spread + novelty]), 1.0))
    tau, nu, log_height = sequential._site(l, d1, d2, mean, spread, kept, 1 + d2 * (spread + kept))
    site = target(mean, spread + kept, d1, d2, 1.0)
    close(tau, site.tau)
    close(nu, site.nu)
    close(log_height, l + energy_from(mean, spread + kept, site) - 0.5 * tau * kept)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rho", [0.0, 0.4, 1.0])
def test_sites_on_a_fixed_basis_have_the_taught_targets_and_evidence(rho, seed):
    rng, X, Z = inputs(seed)
    y, sites, features = targets_of(Probit(), rng), some_sites(rng), feature_map(KERNEL, Z, X)
    A, h = features.A, features.h
    state = fixed_basis._evaluate(A, h, y, Probit(), rho, sites)
    m, V, gained = solved(A, sites.tau, sites.nu)
    mu, s = A.T @ m, np.einsum("mn,mk,kn->n", A, V, A)
    mean, reduced = cavity(mu, s, sites, 1.0)
    l, d1, d2 = Probit().log_moment(y, mean, reduced + h, 1.0)
    goal = target(mean, reduced + rho * h, d1, d2, 1.0)
    same_sites(state.target, goal)
    close(state.move, move(sites, goal, mu, s))
    heights = l + energy_from(mean, reduced + rho * h, sites) - 0.5 * rho * sites.tau * h
    close(state.log_evidence, gained + heights.sum())
    if rho == 0:
        close(state.log_evidence, taught(A, h, y, Probit(), sites, 1.0)[-1])
