"""What every method of inference returns, and what training does."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pepcore.likelihoods import Likelihood
from pepcore.posterior import Posterior
from pepcore.sites import Sites


@dataclass(frozen=True, eq=False)
class Fit:
    """Inference at fixed hyper-parameters: the evidence, its gradient, and the posterior.

    Attributes
    ----------
    log_evidence : float
        log p(y) in nats, or log Z of Power EP; at alpha = 0 the variational lower bound.
    posterior : Posterior of the latent f
    likelihood : the likelihood; Gaussian(noise) for regression
    alpha : float or array, the power as given; 1 for exact regression, where it makes no difference
    sites : Sites of the N data; None for regression with blocks, where one site couples a whole block
    converged : bool, whether the sites stopped moving; always True for regression
    sweeps : int, sweeps over the data; 1 for regression
    history : list of dict, before the first sweep and after each: "log_evidence", "change", "step"; empty for regression
    gradient : dict
        d log_evidence / d parameter in natural units: the kernel's keys, "Z" (M, D) for sparse methods, the
        likelihood's keys ("noise" of a Gaussian one). Computed at first use. After iterations it is exact at the fixed
        point; before it, what the same formula gives there, as if the sites were at rest.
    jitter : float, the relative jitter that was used
    """

    log_evidence: float
    posterior: Posterior
    likelihood: Likelihood
    alpha: float | np.ndarray
    sites: Sites | None
    _gradient: Callable = field(repr=False)
    converged: bool = True
    sweeps: int = 1
    history: list = field(default_factory=list, repr=False)

    @cached_property
    def gradient(self):
        return self._gradient()

    @property
    def jitter(self):
        return self.posterior.basis.jitter

    def predict(self, Xs, noise=False):
        """Mean (S,) and variance (S,) of the latent f at Xs (S, D); if `noise`, what the likelihood predicts of y."""
        mean, variance = self.posterior.predict(Xs)
        return self.likelihood.predict(mean, variance) if noise else (mean, variance)


@dataclass(frozen=True, eq=False)
class Model:
    """What training returns.

    Attributes
    ----------
    kernel, Z (M, D) or None, noise (float or None), alpha : what was learnt, and the power it was learnt with
    fit : the inference result at those values, with `log_evidence`, `posterior`, ...
    evaluations : int, evaluations of evidence and gradient, over all restarts
    converged : bool, True when the best start met the tolerance within its evaluations
    message : str, why the best start ended, or that training was interrupted
    history : (evaluations,) log evidence of every evaluation, in order, in nats; on mini-batches, its estimate from each
    """

    kernel: object
    Z: np.ndarray | None
    noise: float | None
    alpha: float | np.ndarray | None
    fit: object
    evaluations: int
    converged: bool
    message: str
    history: np.ndarray = field(repr=False)

    def predict(self, Xs, **options):
        """As `fit.predict`: mean (S,) and variance (S,) at Xs (S, D)."""
        return self.fit.predict(Xs, **options)
