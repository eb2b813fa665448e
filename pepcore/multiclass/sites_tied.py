"""Stochastic EP: only the product of all sites is kept, O(C M²) numbers, and every factor's site is its geometric mean.

Group g holds for each class the sum (Λ_gc, b_gc) of the natural parameters of n_gc sites. A cavity leaves a fraction
α/n_gc of it out, the moments are those of EP, and the sum moves towards what the new sites would add up to. With one
factor in every group this is EP; with one group it is stochastic EP, except that the paper divides by the number of all
factors instead of a class's sites; at α = 0 the groups do not matter.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from pepcore.gaussian import Array, log1p_ratio, log_determinant, multiply_lower, symmetric
from pepcore.multiclass.factors import Joint, Pairwise
from pepcore.multiclass.maps import ClassMaps, ClassPosterior, added, solve_posteriors
from pepcore.normal_equations import along, solve_posterior
from pepcore.sites import target
from pepcore.validation import as_real, check_finite


class TiedSites(NamedTuple):
    """Summed natural parameters: for every group a list over classes."""

    precisions: list  # [g][c] -> (M, M), the lower triangle
    shifts: list  # [g][c] -> (M,)

    @classmethod
    def flat(cls, maps: ClassMaps, groups: int = 1) -> Self:
        """Sites that carry no information, so that the posterior is the prior."""
        sizes = [len(maps.of(c).basis.Z) for c in range(maps.C)]
        zeros = lambda shape: [[np.zeros(shape(M)) for M in sizes] for _ in range(groups)]
        return cls(zeros(lambda M: (M, M)), zeros(lambda M: (M,)))

    def toward(self, goal: "TiedSites", step: float) -> "TiedSites":
        """The damped step (1 − step) · old + step · new."""
        return self.combine([self, goal], [1 - step, step])

    @classmethod
    def combine(cls, points: list, weights: list) -> Self:
        """Σ w · sites, for lists of TiedSites and of numbers."""

        def add(arrays: Any) -> Array:
            result = weights[0] * arrays[0]
            for weight, array in zip(weights[1:], arrays[1:], strict=True):
                result += weight * array
            return result

        def total(parts: list) -> list:
            groups = zip(*parts, strict=True)
            return [[add(arrays) for arrays in zip(*classes, strict=True)] for classes in groups]

        return cls(total([p.precisions for p in points]), total([p.shifts for p in points]))

    def total(self) -> tuple[list, list]:
        """Precisions and shifts of each class, summed over the groups."""
        if len(self.precisions) == 1:
            return self.precisions[0], self.shifts[0]
        precisions, shifts = ([sum(column) for column in zip(*parts, strict=True)] for parts in self)
        return precisions, shifts


class GroupMoments(NamedTuple):
    """Cavities and moments of the factors of one group."""

    cavities: list  # of C ClassPosterior
    counts: Array  # (C,), how many of the group's sites each class has
    l: float  # Σ l_α
    d1: Array  # in the layout of the sites, 0 for factors of other groups
    curvature: Array
    dnoise: Array


@dataclass(frozen=True, eq=False)
class TiedState:
    """What follows from the tied sites; what a step on a batch does not need is computed when it is asked for."""

    sites: TiedSites
    groups: list  # of GroupMoments
    target: TiedSites
    alpha: float

    @cached_property
    def posteriors(self) -> list:
        """A list of C ClassPosterior."""
        if self.alpha == 0:
            return self.groups[0].cavities
        return solve_posteriors(*self.sites.total(), concave=False)

    @cached_property
    def log_evidence(self) -> float:
        """Σ_c (G(q) − G(prior)) + Σ l + Σ_gc n_gc (G(cavity) − G(q))/α, G the log-normaliser of a Gaussian."""
        total = sum(_log_normaliser(posterior) for posterior in self.posteriors)
        for group, *own in zip(self.groups, self.sites.precisions, self.sites.shifts, strict=True):
            total += group.l + _cost(self.posteriors, own, group.counts, self.alpha)
        return float(total)

    @cached_property
    def move(self) -> Array:
        """From the sites to their target, relative to the posterior's precision: one long vector."""
        parts = []
        now, goal = self.sites.total(), self.target.total()
        for c, (_, _, inverse) in enumerate(self.posteriors):
            precision = symmetric(goal[0][c] - now[0][c])
            parts += [(inverse @ precision @ inverse.T).ravel(), inverse @ (goal[1][c] - now[1][c])]
        return np.concatenate(parts)


def evaluate(
    maps: ClassMaps, factors: Pairwise | Joint, noise: Array, alpha: float, masks: list, sites: TiedSites, *,
    weight: float = 1.0,
) -> TiedState:
    """Moments, target and evidence for given tied sites.

    `maps` holds the features of the data, or of a batch in which each datum stands for `weight` of them. `masks` has
    for each group an array that broadcasts to `factors.shape`, 1 for the factors of the group and 0 elsewhere. noise : (C,).

    Source: villacampa2017 section 2.3.1 and eq. (12); :eq:`mc-tied-cavity`, :eq:`mc-sep`.
    """
    total, groups, goals = sites.total(), [], []
    for mask, *own in zip(masks, sites.precisions, sites.shifts, strict=True):
        counts = weight * factors.scatter(np.broadcast_to(mask, factors.shape) * np.ones(factors.shape)).sum(axis=1)
        fractions = alpha / np.maximum(counts, 1.0)
        left = [
            [whole - fraction * part for whole, part, fraction in zip(wholes, parts, fractions, strict=True)]
            for wholes, parts in zip(total, own, strict=True)
        ]
        cavities = solve_posteriors(left[0], left[1], concave=False)
        mean, reduced, h = map(factors.gather, maps.marginals(cavities))
        tilted = factors.tilted(mean, h + reduced, noise, alpha)
        goal = target(mean, reduced, tilted.d1, tilted.d2, alpha)
        tau, nu = factors.scatter(mask * goal.tau), factors.scatter(mask * goal.nu)
        goals.append(maps.natural_parameters(weight * tau, weight * nu))
        slopes = (mask * part for part in (tilted.d1, tilted.d2 + alpha * tilted.d1**2, tilted.dnoise))
        per_factor = mask[0] if np.ndim(mask) > tilted.l.ndim else mask  # the sites of a factor lie in the same group
        groups.append(GroupMoments(cavities, counts, weight * (per_factor * tilted.l).sum(), *slopes))
    precisions, shifts = zip(*goals, strict=True)
    return TiedState(sites, groups, TiedSites(list(precisions), list(shifts)), alpha)


def gradient_of(maps: ClassMaps, factors: Pairwise | Joint, state: TiedState, weight: float = 1.0) -> dict:
    """The gradient of the evidence with the tied sites held still.

    At α = 0, and with one factor in a group, it is exact at convergence; else it lacks a part that shrinks as
    groups have more factors, since the mean of natural parameters is not the one that makes the evidence
    stationary.

    Source: villacampa2017 eqs (10) and (12).
    """
    summed = [(g.cavities, weight * factors.scatter(g.d1), weight * factors.scatter(g.curvature)) for g in state.groups]
    slope = lambda q, d1, curvature: along(q.mean, q.inverse, d1, curvature)
    slopes = [added([slope(*(part[c] for part in group)) for group in summed]) for c in range(maps.C)]
    dh: Any = 0.5 * sum(curvature for _, _, curvature in summed)
    dnoise = weight * sum(factors.scatter(group.dnoise).sum(axis=1) for group in state.groups)
    return maps.pull_back(slopes, dh) | {"noise": dnoise}


def _log_normaliser(posterior: ClassPosterior) -> float:
    """G(q) − G(prior) for one class: −½ log|V⁻¹| + ½ mᵀV⁻¹m."""
    mean, C, _ = posterior
    white = C.T @ mean
    return float(-0.5 * log_determinant(C) + 0.5 * white @ white)


def _cost(posteriors: list, own: list, counts: Array, alpha: float) -> float:
    """Σ_c n_c (G(cavity) − G(q))/α, the cost of the group's sites; at α = 0 it is minus the expected log sites.

    With δ = α/n, q = N(m, V), V⁻¹ = C Cᵀ, S = C⁻¹ Λ C⁻ᵀ and w = C⁻¹(b − Λm), where only the log is divided by δ, each
    is −log|I − δS|/(2δ) + ½ δ wᵀ(I − δS)⁻¹w + ½ mᵀΛm − bᵀm. In I − δS = L Lᵀ the digits of δS are lost on the diagonal
    only, and L_jj² = 1 − δp_j with p_j = S_jj + Σ_k<j L_jk²/δ.
    """
    cost: Any = 0.0
    for (mean, _, inverse), n, lower, shift in zip(posteriors, counts, *own, strict=True):
        precision, delta = symmetric(lower), alpha / max(n, 1.0)
        pulled = precision @ mean
        S = multiply_lower(inverse, np.array(multiply_lower(inverse, np.asfortranarray(precision)).T, order="F"))
        w = inverse @ (shift - pulled)
        solved, L = solve_posterior(-delta * S, w, concave=False)
        np.fill_diagonal(L, 0.0)
        pivots = np.diag(S) + np.einsum("jk,jk->j", L, L) / max(delta, np.finfo(float).tiny)
        cost += 0.5 * (pivots @ log1p_ratio(-delta * pivots) + delta * w @ solved + pulled @ mean) - shift @ mean
    return cost


def check_tied_sites(sites: Any, like: TiedSites, approximation: str) -> TiedSites:
    """A copy of TiedSites to start from; ValueError if they are of another kind or shape than `like`, or not finite."""
    shapes = lambda parts: [[np.shape(part) for part in group] for group in parts]
    found = [shapes(parts) for parts in sites] if isinstance(sites, TiedSites) else type(sites).__name__
    if found != [shapes(parts) for parts in like]:
        raise ValueError(f"sites for {approximation!r} must be TiedSites with precisions and shifts of the shapes "
                         f"{[shapes(p) for p in like]}, such as those of 'sep', or of learning on batches, with the "
                         f"same Z and groups; got {found}")
    check = lambda part, name: check_finite(as_real(part, name), name).copy()
    names = ("sites.precisions", "sites.shifts")
    return TiedSites(*([[check(part, name) for part in group] for group in parts] for name, parts in zip(names, sites)))
