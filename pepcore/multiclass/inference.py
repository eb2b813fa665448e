"""Multi-class inference at fixed hyper-parameters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.kernels.base import Kernel
from pepcore.multiclass import sites_each, sites_tied
from pepcore.multiclass.factors import Joint, Pairwise, RobustMax, check_labels, check_wrong, factors_of
from pepcore.multiclass.maps import ClassMaps
from pepcore.multiclass.sites_tied import TiedSites, check_tied_sites
from pepcore.posterior import Posterior, Posteriors
from pepcore.results import Fit, LeftOut, latent_left_out
from pepcore.sites import Sites, check_sites
from pepcore.sweeps import Mixing, run_sweeps
from pepcore.threads import one_blas_thread
from pepcore.validation import (
    check_all_positive,
    check_alpha,
    check_count,
    check_inputs,
    check_jitter,
    check_kernel,
    check_sweeps,
    check_targets,
    refuse_mask,
)

OTHERS = ("Z", "noise")  # in the gradient, beside the parameters of the kernels
EPSILON = 1e-3  # how often villacampa2017 replaces a label by a random one of the C


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MulticlassFit(Fit):
    """A `Fit` of C latent functions; `posterior` is `Posteriors`, of the latent functions without noise.

    Attributes
    ----------
    likelihood : RobustMax, with the noise (C,) and epsilon
    sites : Sites, (2, C − 1, N) for "ep" and (C, N) for "gfitc" and "vi"; TiedSites for "sep", and for "vi" after
        `fit_minibatch`; None after `fit` with update = "joint"
    gradient : "kernels" and "Z" as these were given (one dict or array if shared, else a list of C), "noise" (C,)
        Exact at convergence for all but "sep", see `pepcore.multiclass.sites_tied.gradient_of`.
    """

    approximation: str  #: "ep", "sep", "gfitc" or "vi"

    @cached_property
    def gradient(self) -> dict:
        with one_blas_thread:
            return self._gradient()

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


class Method(NamedTuple):
    """What an approximation is made of: its factors, its kind of sites, and its settings.

    `values` are a dict of "kernels" and "Z", tuples of 1 or C, and "noise" (C,), as `check_model` returns them.
    """

    approximation: str
    alpha: float
    epsilon: float  # 0 for "ep" and "sep"
    C: int
    jitter: float

    @classmethod
    def checked(cls, approximation: str, alpha: float | None, epsilon: float | None, C: int, jitter: float) -> Self:
        """Check the settings of `infer`, and fill in the defaults of the approximation."""
        alpha = check_power(alpha, approximation)
        if approximation not in ("ep", "sep"):
            usual = EPSILON * (approximation == "vi") * (C - 1) / C
            epsilon = check_wrong(epsilon if epsilon is not None else usual, alpha)
        elif epsilon is not None:
            raise ValueError(f"epsilon is for 'gfitc' and 'vi'; the factors of {approximation!r} have none")
        return cls(approximation, alpha, epsilon or 0.0, C, check_jitter(jitter))

    @property
    def tied(self) -> bool:
        return self.approximation == "sep"

    def maps(self, values: dict, X: Array, stream: bool = False) -> ClassMaps:
        """The features of X (N, D) for every class."""
        return ClassMaps.build(values["kernels"], values["Z"], self.C, X, self.jitter, stream)

    def factors(self, y: np.ndarray) -> Pairwise | Joint:
        """The factors of labels y (N,)."""
        return factors_of(self.approximation, y, self.C, self.epsilon)

    def flat(self, maps: ClassMaps, factors: Pairwise | Joint, groups: int = 1) -> Any:
        """Sites that carry no information, so that the posterior is the prior."""
        if self.tied:
            return TiedSites.flat(maps, groups)
        return Sites(np.zeros(factors.shape), np.zeros(factors.shape))

    def evaluate(
        self, maps: ClassMaps, factors: Pairwise | Joint, noise: Array, sites: Any, masks: list | None = None
    ) -> Any:
        """The state that follows from the sites; `masks` as `group_masks` makes them."""
        if self.tied:
            return sites_tied.evaluate(maps, factors, noise, self.alpha, masks or [1.0], sites)
        return sites_each.evaluate(maps, factors, noise, self.alpha, sites)

    def gradient(self, maps: ClassMaps, factors: Pairwise | Joint, state: Any, exact: bool = False) -> dict:
        """The gradient as if the sites had converged, or with `exact`, and always for "sep", with the sites held still."""
        if self.tied:
            return sites_tied.gradient_of(maps, factors, state)
        gradient_of = sites_each.exact_gradient_of if exact else sites_each.gradient_of
        return gradient_of(maps, factors, self.alpha, state)

    def converge(
        self, maps: ClassMaps, factors: Pairwise | Joint, noise: Array, start: Any, masks: list | None = None, *,
        step: float = 1.0, **options: Any,
    ) -> MulticlassFit:
        """Sweep from the sites `start`; the options are those of `pepcore.sweeps.run_sweeps`."""
        mixing, evaluate = Mixing(), partial(self.evaluate, maps, factors, noise, masks=masks)
        state, ending = run_sweeps(mixing.guarded(evaluate), mixing, start, step=step, **options, next_step=mixing.next_step)
        gradient = partial(self.gradient, maps, factors, state)
        return self.result(maps, state.posteriors, state.log_evidence, noise, state.sites, gradient, **ending)

    def result(
        self, maps: ClassMaps, posteriors: list, log_evidence: float, noise: Array, sites: Any, gradient: Callable,
        **ending: Any,
    ) -> MulticlassFit:
        """The result with these `posteriors`, for each class (m, C, ...) with C Cᵀ = V⁻¹; `ending` is how it ended."""
        parts = tuple(Posterior(maps.of(c).basis, *posteriors[c][:2]) for c in range(self.C))
        found = log_evidence, Posteriors(parts), RobustMax(self.C, self.epsilon, noise), self.alpha, sites, gradient
        return MulticlassFit(*found, **ending, approximation=self.approximation)


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
        The probability of a wrong label; None is 0 for "gfitc", and 0.001 (C − 1)/C for "vi", as in villacampa2017.
    classes : int, C; None for the number of kernels or arrays Z, or else the largest label + 1
        (labels that count from 1 then leave class 0 without data)
    sites : Sites or TiedSites to start from, as a fit of the same approximation holds them; None starts from the prior
    groups : (N,) or (C − 1, N) int; for "sep": which data, or which factors, share their sites, 0 ... G − 1; None ties
        them all. G groups take G times as long; they are there to show what tying does.
    step : float, longest damped step, in (0, 1]
    tolerance, max_sweeps, jitter, stream, callback : as in `pepcore.power_ep.infer`

    Returns a MulticlassFit; if it is not converged, `converged` is False and a RuntimeWarning says so.

    Raises
    ------
    ValueError for wrong shapes, NaN, labels that are not 0 ... C − 1, settings out of range, options that the
        approximation does not have, alpha = 0 for factors that can be 0, or sites of another kind or shape
    ImproperCavityError if the sites given to start from leave no proper cavity
    NotPositiveDefiniteError if K_uu cannot be factorised even with a jitter of 1e-2
    LinAlgError if latent means lie more than 1e8 standard deviations apart ("gfitc" and "vi")

    Source: villacampa2017 sections 2.2, 2.3 and 3; :eq:`mc-model`, :eq:`mc-posterior`, :eq:`mc-gradient`.
    """
    X, y = check_inputs(X, "X", copy=True), check_targets(y, len(X))
    values, labels, C = check_model(kernels, Z, noise, classes, y, X.shape[1])
    method = Method.checked(approximation, alpha, epsilon, C, jitter)
    if groups is not None and approximation != "sep":
        raise ValueError(f'groups are for approximation = "sep"; got them with {approximation!r}')
    options = check_sweeps(step, tolerance, max_sweeps)
    maps, factors = method.maps(values, X, stream), method.factors(labels)
    masks = group_masks(groups, factors)
    start = method.flat(maps, factors, len(masks))
    if sites is not None and method.tied:
        start = check_tied_sites(sites, start, approximation)
    elif sites is not None:
        start = check_sites(sites, factors.shape, f"sites for {approximation!r}")
    return method.converge(maps, factors, values["noise"], start, masks, **options, callback=callback)


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


def check_model(
    kernels: Any, Z: Any, noise: ArrayLike, classes: int | None, y: Array | None, columns: int | None
) -> tuple[dict, Any, int]:
    """Check whether kernels, pseudo-inputs, noise and labels fit together; the arguments are those of `infer`.

    The labels y (N,) and the number D of columns are None if not known yet. Returns a dict of "kernels" and "Z", tuples
    of 1 or C, and "noise" (C,); then y as int, and C.
    """
    if isinstance(Z, str):
        raise ValueError(f"Z = {Z!r} must be an array (M, D), or C of them; training.choose_pseudo_inputs(X, M) makes one")
    if isinstance(kernels, list | tuple):
        kernels = tuple(check_kernel(kernel, f"kernels[{c}]", OTHERS) for c, kernel in enumerate(kernels))
    else:
        kernels = (check_kernel(kernels, "kernels", OTHERS),)
    listed = isinstance(Z, list | tuple)
    shared = len(Z) > 0 and np.ndim(Z[0]) == 1 if listed else np.ndim(Z) <= 2  # a list may be one table of numbers
    Z = (Z,) if shared else tuple(Z)
    names = ["Z"] if shared else [f"Z[{c}]" for c in range(len(Z))]
    if columns is None and Z:
        columns = check_inputs(Z[0], names[0]).shape[1]
    Z = tuple(check_inputs(points, name, columns, copy=True) for points, name in zip(Z, names))
    noise = np.atleast_1d(check_all_positive(noise, "noise"))
    sizes = {"kernels": len(kernels), "Z": len(Z), "noise": len(noise)}
    C = _number_of_classes(classes, sizes, y)
    if noise.ndim > 1 or any(size not in (1, C) for size in sizes.values()):
        got = ", ".join(f"{size} in {name}" for name, size in sizes.items())
        raise ValueError(f"there are {C} classes, but {got}; give one for all classes, or one for each")
    values = {"kernels": kernels, "Z": Z, "noise": np.broadcast_to(noise, (C,)).copy()}
    return values, y if y is None else check_labels(y, C), C


def check_power(alpha: float | None, approximation: str) -> float:
    """The power of an approximation, its usual one if alpha is None; ValueError for an unknown approximation or power."""
    if approximation not in ("ep", "sep", "gfitc", "vi"):
        raise ValueError(f"approximation = {approximation!r} is unknown; choose 'ep', 'sep', 'gfitc' or 'vi'")
    power = float(check_alpha(alpha if alpha is not None else float(approximation != "vi")))
    if approximation == "vi" and power != 0:
        raise ValueError(f'approximation = "vi" is alpha = 0, got {power}; for other powers of the robust factors take '
                         '"gfitc"')
    return power


def _number_of_classes(classes: int | None, sizes: dict, y: Array | None) -> int:
    if classes is not None:
        C = check_count(classes, "classes")
    elif max(sizes.values()) > 1:
        C = max(sizes.values())
    elif y is not None:
        C = int(y.max()) + 1 if y.max() >= 0 else 0
        if C > len(y):
            raise ValueError(f"the largest of the {len(y)} labels is {C - 1}, so there would be more classes than labels; count "
                             "the labels from 0, as numpy.unique(y, return_inverse=True)[1] does, or give classes")
    else:
        raise ValueError("give classes, the number of classes: kernels, Z and noise do not determine it")
    if C < 2:
        raise ValueError(f"there must be at least 2 classes, got {C}; labels count from 0, and classes gives their "
                         "number")
    return C
