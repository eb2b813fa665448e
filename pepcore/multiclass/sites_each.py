"""EP and Power EP on the factors of multi-class classification, with a site for every factor and class.

The update is the one of `pepcore.sites`, for all sites in parallel; `factors` says which sites there are. Every class
has its own posterior q(v_c) = N(m_c, V_c), with V_c⁻¹ = I + A_c diag(τ_c) A_cᵀ.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pepcore.gaussian import Array, log1p_ratio, log_determinant
from pepcore.multiclass.factors import Joint, Pairwise, Tilted
from pepcore.multiclass.maps import ClassMaps, solve_posteriors
from pepcore.normal_equations import along, natural_parameters
from pepcore.sites import Sites, cavity, move, target


class State(NamedTuple):
    """Everything that follows from the sites; arrays have the layout of the sites, (2, C − 1, N) or (C, N)."""

    sites: Sites
    posteriors: list  # of C ClassPosterior
    mean: Array  # μ of aᵀv
    variance: Array  # s
    cavity_mean: Array  # μ\
    kept: Array  # c = 1 − α τ s
    tilted: Tilted
    log_evidence: float
    target: Sites
    move: Array


def evaluate(maps: ClassMaps, factors: Pairwise | Joint, noise: Array, alpha: float, sites: Sites) -> State:
    """Posteriors, evidence and targets for given sites of all data: State."""
    precisions, shifts = maps.natural_parameters(factors.scatter(sites.tau), factors.scatter(sites.nu))
    posteriors = solve_posteriors(precisions, shifts, concave=sites.tau.min() >= 0)
    return local_moments(maps, factors, noise, alpha, sites, posteriors)


def local_moments(
    maps: ClassMaps, factors: Pairwise | Joint, noise: Array, alpha: float, sites: Sites, posteriors: list, *,
    weight: float = 1.0,
) -> State:
    """State of the data in `maps` under given posteriors; in the evidence each datum counts `weight` times.

    The evidence is Σ_c (−½ log|V_c⁻¹| − ½ m_cᵀm_c) + Σ l + Σ_sites (−log(c)/(2α) + ½ α (ν − τμ)² s\\), as for one
    latent function: every site costs the same, whichever class it is in.

    Source: villacampa2017 eq. (9), bui2017 eq. (126); :eq:`mc-site`, :eq:`mc-evidence`.
    """
    mu, s, h = map(factors.gather, maps.marginals(posteriors))
    cavity_mean, reduced = cavity(mu, s, sites, alpha)
    tilted = factors.tilted(cavity_mean, h + reduced, noise, alpha)
    goal = target(cavity_mean, reduced, tilted.d1, tilted.d2, alpha)

    removed, gamma = sites.tau * s, sites.nu - sites.tau * mu
    local = (0.5 * removed * log1p_ratio(-alpha * removed) + 0.5 * alpha * gamma**2 * reduced).sum() + tilted.l.sum()
    log_evidence = sum(-0.5 * log_determinant(C) - 0.5 * mean @ mean for mean, C, _ in posteriors) + weight * local
    kept = 1 - alpha * removed
    change = move(sites, goal, mu, s)
    return State(sites, posteriors, mu, s, cavity_mean, kept, tilted, float(log_evidence), goal, change)


def gradient_of(maps: ClassMaps, factors: Pairwise | Joint, alpha: float, state: State) -> dict:
    """The gradient at a fixed point, as in `pepcore.power_ep.iterative.gradient_of`, with the sum over each class's sites.

    Before convergence it is the "inner approximate" gradient: it ignores how the sites would still move.

    Source: villacampa2017 eq. (10), in coordinates whose prior does not depend on any parameter; :eq:`mc-gradient`.
    """
    tilted, sites, gather_sum = state.tilted, state.sites, factors.scatter
    curvature = tilted.d2 + alpha * tilted.d1**2
    weight_mean = gather_sum(tilted.d1)
    weight_Va = gather_sum(tilted.d1 * alpha * (sites.tau * state.cavity_mean - sites.nu) + curvature / state.kept)
    weight_h = 0.5 * gather_sum(curvature)
    slopes = [along(q.mean, q.inverse, weight_mean[c], weight_Va[c]) for c, q in enumerate(state.posteriors)]
    return maps.pull_back(slopes, weight_h) | {"noise": gather_sum(tilted.dnoise).sum(axis=1)}


def exact_gradient_of(maps: ClassMaps, factors: Pairwise | Joint, alpha: float, state: State) -> dict:
    """The gradient of the evidence with the sites τ, ν held still, exact also where they have not converged.

    With e = ∂/∂μ and k = ∂/∂s of what the factors and the cost of their sites add up to, both 0 at the fixed point:
    ∂F/∂a = e m + 2k V a + ν (m + V A e) − τ (V + m mᵀ + V A e mᵀ + m (A e)ᵀ V + 2 V A diag(k) Aᵀ V) a.
    It costs one more pass over the features than `gradient_of`.

    Source: villacampa2017 section 2.3, "EP-inner-exact"; at the fixed point it is :eq:`mc-gradient`.
    """
    tilted, sites, kept = state.tilted, state.sites, state.kept
    pull = sites.tau * state.cavity_mean - sites.nu
    curvature = tilted.d2 + alpha * tilted.d1**2
    in_mean = tilted.d1 / kept + pull
    in_variance = (
        0.5 * curvature / kept**2 + tilted.d1 * alpha * pull / kept + 0.5 * sites.tau / kept + 0.5 * alpha * pull**2
    )
    e, k, tau, nu = map(factors.scatter, (in_mean, in_variance, sites.tau, sites.nu))
    weight_h = 0.5 * factors.scatter(curvature)

    def slope(c: int) -> Callable:
        mean, _, half = state.posteriors[c]
        moments, u = natural_parameters(maps.of(c), Sites(k[c], e[c]))
        V = half.T @ half
        Vu = V @ u
        second = np.outer(Vu, mean)
        G = -(V + np.outer(mean, mean) + second + second.T + 2 * V @ moments @ V)

        def derivative(rows: Any, A: Array) -> Array:
            VA = V @ A
            dA = np.outer(mean, e[c, rows]) + 2 * VA * k[c, rows] + np.outer(mean + Vu, nu[c, rows])
            return np.asfortranarray(dA + (G @ A) * tau[c, rows])

        return derivative

    slopes = [slope(c) for c in range(maps.C)]
    return maps.pull_back(slopes, weight_h) | {"noise": factors.scatter(tilted.dnoise).sum(axis=1)}
