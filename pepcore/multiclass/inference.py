"""Multi-class inference at fixed hyper-parameters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.kernels.base import Kernel
from pepcore.multiclass import sites_each, sites_tied
from pepcore.multiclass.checks import check_epsilon, check_labels, check_model, check_power, check_tied_sites
from pepcore.multiclass.factors import Joint, Pairwise, factors_of
from pepcore.multiclass.likelihood import RobustMax
from pepcore.multiclass.maps import ClassMaps
from pepcore.multiclass.sites_tied import TiedSites
from pepcore.posterior import Posterior, Posteriors
from pepcore.results import Fit, LeftOut, latent_left_out
from pepcore.sites import Sites, check_sites
from pepcore.sweeps import Mixing, run_sweeps
from pepcore.threads import one_blas_thread
from pepcore.validation import check_inputs, check_jitter, check_targets, refuse_mask


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MulticlassFit(Fit):
    """A `Fit` of C latent functions; `posterior` is `Posteriors`, of the latent functions without noise.

    Attributes
    ----------
    likelihood : RobustMax, with the noise (C,) and epsilon
    sites : Sites, (2, C − 1, N) for "ep" and (C, N) for "gfitc" and "vi"; TiedSites for "sep"
    gradient : "kernels" and "Z" as these were given (one dict or array if shared, else a list of C), "noise"
        (C,). Exact at convergence for all but "sep", see `pepcore.multiclass.sites_tied.gradient_of`.
    """

    approximation: str  #: "ep", "sep", "gfitc" or "vi"

    @property
    def noise(self) -> Array:
        return self.likelihood.noise

    @property
    def epsilon(self) -> float:
        return self.likelihood.epsilon

    @property
    def jitter(self) -> float:
        return max(part.basis.jitter for part in self.posterior.parts)

    def _left_out(self, X: Array, y: Any) -> LeftOut:
        """All sites of a datum are taken out of every class, those of its factors with each rival together; :eq:`loo-classes`."""
        factors = factors_of(self.approximation, y, len(self.posterior), self.epsilon)
        tau, nu = factors.scatter(self.sites.tau), factors.scatter(self.sites.nu)
        parts = [latent_left_out(part, Sites(tau[c], nu[c]), X) for c, part in enumerate(self.posterior.parts)]
        mean, variance = (np.stack(values, axis=1) for values in zip(*parts, strict=True))
        return LeftOut(mean, variance, self.likelihood.log_predictive(y, mean, variance))


@one_blas_thread
def infer(
    kernels: Kernel | Sequence[Kernel], Z: ArrayLike, X: ArrayLike, y: ArrayLike, *,
    approximation: str = "ep", alpha: float | None = None, noise: ArrayLike = 0.1, epsilon: float | None = None,
    classes: int | None = None, sites: Sites | TiedSites | None = None, groups: ArrayLike | None = None,
    step: float = 1.0, tolerance: float = 1e-8, max_sweeps: int = 200, jitter: float = 1e-6, stream: bool = False,
    callback: Callable | None = None,
) -> MulticlassFit:
    """Posterior over the latent functions of all classes, at fixed hyper-parameters.

    Parameters
    ----------
    kernels : kernel that all classes share, or C of them
    Z : (M, D) pseudo-inputs that all classes share, or C such arrays; the numbers M may differ
    X : (N, D)
    y : (N,) labels 0 ... C − 1
    approximation : "ep", "sep", "gfitc" or "vi", see the table of `pepcore.multiclass`
    alpha : float, in [0, 1]; the power: 1 is EP, 0 variational inference on the same factors; None for 1, or 0 for "vi"
    noise : float or (C,), variance of the noise on each latent function, > 0
    epsilon : float in [0, 1)
        For "gfitc" and "vi": the probability of a wrong label; None for 0 and for that of villacampa2017, 0.001 (C − 1)/C.
    classes : int, C; None for the number of kernels or arrays Z, or else the largest label + 1
    sites : Sites or TiedSites to start from, as a fit of the same approximation holds them; None starts from the prior
    groups : (N,) or (C − 1, N) int; for "sep": which data, or which factors, share their sites, 0 ... G − 1; None ties
        them all. It takes G times as long, and is there to show what tying does.
    step : float, longest damped step, in (0, 1]
    tolerance, max_sweeps, jitter, stream, callback : as in `pepcore.power_ep.infer`

    Returns a MulticlassFit; if it is not converged, `converged` is False and a RuntimeWarning says so.

    Raises
    ------
    ValueError for wrong shapes, NaN, labels that are not 0 ... C − 1, a power outside [0, 1], a noise that is not
        positive, an unknown approximation, options that it does not have, or alpha = 0 for factors that can be 0,
        options of the sweeps that `pepcore.sweeps` refuses, a jitter outside [0, 1e-2], or sites of another kind or
        shape.
    ImproperCavityError if the sites given to start from leave no proper cavity

    Source: villacampa2017 sections 2.2, 2.3 and 3; :eq:`mc-model`, :eq:`mc-posterior`, :eq:`mc-gradient`.
    """
    X, y = check_inputs(X, "X", copy=True), check_targets(y, len(X))
    kernels, Z, noise, C = check_model(kernels, Z, noise, classes, y, X.shape[1])
    y = check_labels(y, C)
    alpha = check_power(alpha, approximation)
    epsilon, jitter = check_epsilon(epsilon, approximation, alpha, C), check_jitter(jitter)
    if groups is not None and approximation != "sep":
        raise ValueError(f'groups are for approximation = "sep"; got them with {approximation!r}')
    maps = ClassMaps.build(kernels, Z, C, X, jitter, stream)
    factors = factors_of(approximation, y, C, epsilon)
    if approximation == "sep":
        masks = group_masks(groups, factors)
        evaluate: Callable = partial(sites_tied.evaluate, maps, factors, noise, alpha, masks)
        start: Any = TiedSites.flat(maps, len(masks))
        start = start if sites is None else check_tied_sites(sites, start, approximation)
    else:
        evaluate = partial(sites_each.evaluate, maps, factors, noise, alpha)
        start = Sites(np.zeros(factors.shape), np.zeros(factors.shape))
        start = start if sites is None else check_sites(sites, factors.shape, f"sites for {approximation!r}")
    mixing = Mixing()
    options: dict[str, Any] = {"step": step, "tolerance": tolerance, "max_sweeps": max_sweeps, "callback": callback}
    state, ending = run_sweeps(evaluate, mixing, start, **options, next_step=mixing.next_step)
    posterior = Posteriors(tuple(Posterior(maps.of(c).basis, *state.posteriors[c][:2]) for c in range(C)))
    if approximation == "sep":
        gradient = partial(sites_tied.gradient_of, maps, factors, state)
    else:
        gradient = partial(sites_each.gradient_of, maps, factors, alpha, state)
    found = state.log_evidence, posterior, RobustMax(C, epsilon, noise), alpha, state.sites, gradient
    return MulticlassFit(*found, **ending, approximation=approximation)


def group_masks(groups: ArrayLike | None, factors: Pairwise | Joint) -> list:
    """For each group an array that is 1 for its factors' sites and 0 elsewhere; [1.0] if there is one group for all."""
    if groups is None:
        return [1.0]
    refuse_mask(groups, "groups")
    groups, (_, K, N) = np.asarray(groups), factors.shape
    if groups.dtype.kind not in "iu" or groups.shape not in ((N,), (K, N)) or groups.min() < 0:
        raise ValueError(f"groups must hold whole numbers from 0 upwards in shape {(N,)}, one for each datum, or "
                         f"{(K, N)}, one for each factor; got {groups.dtype} in shape {groups.shape}")
    return [np.broadcast_to(groups == g, factors.shape).astype(float) for g in np.unique(groups)]
