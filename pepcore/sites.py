"""The update of expectation propagation: cavity, target, damped step, and what the sites add to the evidence.

Datum n is represented by a site t_n(f) ∝ exp(ν_n f − ½ τ_n f²), two scalars. Exact EP, sparse Power EP and variational
inference all repeat the same steps for every datum: take a fraction α of its site out of the posterior (the cavity),
ask the likelihood how it would move the cavity (`log_moment`), and read off the site that does the same (the target).
Written with l_α = (1/α) log E[p(y|f)^α] in place of log Z the formulas hold for every α in [0, 1], 0 included.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import blas

from pepcore.gaussian import Array, log1p_ratio
from pepcore.validation import as_real, check_finite


class ImproperCavityError(ArithmeticError):
    """No proper Gaussian is left: a cavity or a posterior would have no positive variance, or a site must not be negative."""


@dataclass(frozen=True, eq=False)
class Sites:
    """Gaussian sites t_n(f) ∝ exp(ν_n f − ½ τ_n f²), one per datum.

    Source: bui2017 eqs (64) and (77) with τ = 1/v_n and ν = g_n/v_n; :eq:`ep-factors`, :eq:`ep-site`, :eq:`pep-sites`.
    """

    tau: Array  #: (N,) precisions, in units of 1/f²
    nu: Array  #: (N,) precision-means, in units of 1/f

    @classmethod
    def flat(cls, size: int) -> Self:
        """`size` sites that carry no information: τ = ν = 0, so that the posterior is the prior."""
        return cls(np.zeros(size), np.zeros(size))

    def toward(self, target: "Sites", step: float) -> "Sites":
        """The damped step τ ← (1 − ε) τ + ε τ*, likewise for ν, with ε = `step` in (0, 1].

        At α = 0 it is a natural-gradient step of length ε on the variational bound.

        Source: :eq:`ep-damping`, :eq:`pep-step`.
        """
        return Sites((1 - step) * self.tau + step * target.tau, (1 - step) * self.nu + step * target.nu)


def cavity(mean: Array, variance: Array, sites: Sites, alpha: float | Array) -> tuple[Array, Array]:
    """Marginals of the posterior after a fraction alpha of each datum's own site is divided out.

    c = 1 − α τ s,   s\\ = s/c,   μ\\ = (μ − α ν s)/c.

    Parameters
    ----------
    mean : (..., N), μ_n, posterior means
    variance : (..., N), s_n > 0, posterior variances
    sites : Sites of N data, of the same shape
    alpha : float or (N,), in [0, 1]; at 0 the cavity is the posterior itself

    Returns mean (..., N), variance (..., N) of the cavities.
    Raises ImproperCavityError if some c_n <= 0; the caller should go back and take a smaller step.
    Source: bui2017 eqs (19) and (123); :eq:`ep-cavity`, :eq:`pep-cavity`.
    """
    kept = 1 - alpha * sites.tau * variance
    if not np.min(kept) > 0:
        worst = int(np.argmin(kept))
        datum = np.unravel_index(worst, kept.shape)[-1]  # sites of many classes have further axes before that of the data
        raise ImproperCavityError(f"{int(np.sum(~(kept > 0)))} of {kept.size} cavities have no positive variance, the "
                                  f"worst at datum {datum} (1 - alpha tau s = {kept.flat[worst]:.3g}); take a smaller "
                                  "step, a smaller alpha or a log-concave likelihood.")
    return (mean - alpha * sites.nu * variance) / kept, variance / kept


def target(
    cavity_mean: Array, cavity_variance: Array, d1: Array, d2: Array, alpha: float | Array,
    shrinkage: Array | None = None,
) -> Sites:
    """The sites that move each cavity to the moments of its tilted distribution.

    τ* = −d2/(1 + α d2 s\\),   ν* = (d1 − d2 μ\\)/(1 + α d2 s\\).

    Parameters
    ----------
    cavity_mean, cavity_variance : (N,), what `cavity` returned (without the residual variance h)
    d1, d2 : (N,), first and second derivative of l_alpha in the cavity mean
    alpha : float or (N,)
    shrinkage : (N,), 1 + α d2 s\\ if the likelihood can compute it with less cancellation

    Returns the Sites of N data.
    Source: bui2017 eqs (63) and (74); :eq:`pep-target`, :eq:`ep-tilted-moments`, :eq:`sc-rank-one`.
    """
    # the tilted variance over the cavity's; > 0, as any variance is
    shrinkage = 1 + alpha * d2 * cavity_variance if shrinkage is None else shrinkage
    return Sites(-d2 / shrinkage, (d1 - d2 * cavity_mean) / shrinkage)


def move(sites: Sites, goal: Sites, mean: Array, variance: Array) -> Array:
    """How far each site is from its goal: (2, N), (τ* − τ) s and (γ* − γ) √s with γ = ν − τμ, the slope of log t at μ.

    Neither the units of f nor its origin matter. In ν alone a rounding error of τ would count |μ|/√s times as much.
    """
    way = np.empty((2, *np.shape(variance)))
    dtau = goal.tau - sites.tau
    way[0], way[1] = dtau * variance, (goal.nu - sites.nu - dtau * mean) * np.sqrt(variance)
    return way


def parallel(state: Any, step: float) -> Sites:
    """Move all sites, each from the same posterior."""
    return state.sites.toward(state.target, step)


def rank_one_update(
    mean: Array, covariance: Array, Va: Array, along: float, spread: float, *, tau: float, nu: float
) -> None:
    """Multiply the factor exp(ν aᵀv − ½ τ (aᵀv)²) into N(mean, covariance), in place; with −τ and −ν it is divided out.

    One O(M²) step by the Sherman-Morrison identity, in place of an O(M³) inversion. It overwrites mean (M,) and
    covariance (M, M), which is in Fortran order; Va is covariance @ a, `along` aᵀmean and `spread` aᵀVa.

    Raises ImproperCavityError if the result would not be a proper Gaussian, that is 1 + τ aᵀVa <= 0.
    Source: :eq:`ep-posterior`, :eq:`ep-rank-one`.
    """
    growth = 1 + tau * spread
    if not growth > 0:
        raise ImproperCavityError(f"a site with tau = {tau:.4g} leaves no proper posterior (1 + tau s = {growth:.3g}); "
                                  "take a smaller step, or a likelihood that is log-concave")
    mean += Va * ((nu - tau * along) / growth)
    blas.dger(-tau / growth, Va, Va, a=covariance, overwrite_a=1)


def site_energy(mean: Array, variance: Array, sites: Sites, alpha: float | Array) -> Array:
    """What each site adds to the log evidence: (G(cavity) − G(posterior))/alpha, with its limit at alpha = 0.

    log evidence = G(posterior) − G(prior) + Σ_n (l_alpha,n + site_energy_n), G the log-normaliser of a Gaussian.
    It is (−½ log c + q)/α with q = ½(−2αμν + α²ν²s + ατ(μ − ανs)²/c).

    `mean` and `variance` (N,) are the posterior marginals μ_n and s_n > 0, alpha is a float or (N,); the sites have proper
    cavities.

    Returns (N,), in nats; at alpha = 0 it is ½τ(s + μ²) − νμ, minus the expectation of the log site.
    Source: bui2017 eqs (21) and (126); :eq:`pep-energy`.
    """
    tau, nu = sites.tau, sites.nu
    removed = alpha * tau * variance
    log_determinant = 0.5 * tau * variance * log1p_ratio(-removed)
    shifted = mean - alpha * nu * variance
    quadratic = -nu * mean + 0.5 * alpha * nu**2 * variance + 0.5 * tau * shifted**2 / (1 - removed)
    return log_determinant + quadratic


def check_sites(sites: Any, shape: tuple[int, ...], name: str = "sites") -> Sites:
    """Return a copy of Sites to start from; ValueError for another kind or shape, or values that are not finite."""
    expected = f"{name} must be Sites of shape {shape}, the last axis one for each row of X, as a fit of this kind holds them"
    if not isinstance(sites, Sites):
        raise ValueError(f"{expected}; got {type(sites).__name__}")
    tau, nu = (as_real(value, f"{name}.{key}").copy() for key, value in vars(sites).items())
    if tau.shape != shape or nu.shape != shape:
        raise ValueError(f"{expected}; got Sites of shapes {tau.shape} and {nu.shape}")
    return Sites(check_finite(tau, "sites.tau"), check_finite(nu, "sites.nu"))
