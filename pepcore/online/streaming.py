"""Online learning from a stream: a state, and the functions that change it."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.kernels.base import Kernel
from pepcore.likelihoods.scalar import Likelihood
from pepcore.online.process import Process
from pepcore.online.sequential import NO_GRADIENT, Learner
from pepcore.posterior import Posterior
from pepcore.results import Result
from pepcore.threads import one_blas_thread
from pepcore.validation import check_count, check_inputs, check_likelihood, check_plain, check_positive, check_targets


@dataclass(frozen=True, eq=False, repr=False)
class State(Result):
    """What online learning knows after some data, in O(M²) numbers for M basis vectors.

    `kernel`, `likelihood`, `budget` and `novelty` are as given to `start`.
    """

    kernel: Kernel
    likelihood: Likelihood
    budget: int | None
    novelty: float
    process: Process  #: the numbers themselves; not to be changed
    seen: int = 0  #: data so far
    log_predictive: float = 0.0  #: Σ log p(y_n | the data before n) in nats; in a state of `infer`, that of the last sweep
    rho: float = 1.0  #: as given to `infer`
    moving: bool = True  #: whether basis vectors may come and go; not if `infer` was given them as Z

    @property
    def basis(self) -> np.ndarray:
        """Numbers (M,) of the data that are basis vectors."""
        return self.process.rows.copy()

    @property
    def Z(self) -> Array:
        """Basis vectors (M, D)."""
        return self.process.Z.copy()

    @property
    def alpha(self) -> Array:
        """csato2002's coefficients α (M,), not the power: mean(x) = k_u(x)ᵀα. Source: csato2002 eq. (106)."""
        return self.process.alpha

    @property
    def C(self) -> Array:
        """C (M, M): variance(x) = k(x, x) + k_u(x)ᵀC k_u(x). Source: csato2002 eq. (106)."""
        return self.process.C

    @property
    def posterior(self) -> Posterior:
        """The Posterior of f, as the other methods return it."""
        if not len(self.basis):
            raise ValueError("this state has seen no data yet; give it some with online.update(state, X, y)")
        return self.process.posterior()

    @property
    def log_evidence(self) -> float:
        """Log of the sites' normaliser, in nats: what all data add up to, less what the projections lost.

        Without projections it is `log_predictive` after one sweep, and EP's evidence at convergence.
        """
        return self.process.log_evidence() if len(self.basis) else 0.0

    @property
    def gradient(self) -> dict:
        return NO_GRADIENT()

    @property
    def converged(self) -> bool:
        """False: a state does not test for convergence; see `OnlineFit.converged`."""
        return False

    @property
    def message(self) -> str:
        return f"{self.seen} data seen"

    @property
    def history(self) -> list:
        """A list with one dict: "seen", "log_evidence" and "log_predictive"."""
        return [{"seen": self.seen, "log_evidence": self.log_evidence, "log_predictive": self.log_predictive}]

    def __repr__(self) -> str:
        if not len(self.basis):
            return f"State(no data yet, {self.likelihood!r})"
        return super().__repr__()


def start(kernel: Kernel, likelihood: Likelihood, *, budget: int | None = None, novelty: float = 1e-6) -> State:
    """A state that has seen no data.

    Parameters
    ----------
    likelihood : an object as in `pepcore.likelihoods`, log-concave
    budget : largest number of basis vectors, M_BV; None keeps all novel data
    novelty : ε_tol: a datum becomes a basis vector if γ, its prior variance given the basis vectors, is more than this
        part of k(x, x). With less than about 1e-10 the prior covariance of the basis vectors is as good as singular.

    Raises ValueError for a budget that is no positive whole number, a novelty outside (0, 1), a kernel with other
    pseudo-points.
    Source: csato2002 section 4.6.
    """
    check_plain(kernel, "online methods")
    check_likelihood(likelihood)
    if budget is not None:
        budget = check_count(budget, "budget")
    novelty = check_positive(novelty, "novelty")
    if not novelty < 1:
        raise ValueError(f"novelty = {novelty} must be below 1; it is a part of the prior variance, such as 1e-6")
    return State(kernel, likelihood, budget, novelty, Process(kernel, 0, 0))


@one_blas_thread
def update(state: State, X: ArrayLike, y: ArrayLike) -> State:
    """Learn from more data, each looked at once; return the new state and leave the old one as it is.

    X is (B, D) and y (B,); for Probit, labels -1 and +1. The state takes O(M²) numbers however many data it has seen,
    and each datum O(M²) time.

    Raises
    ------
    ValueError for wrong shapes, NaN, or labels the likelihood does not accept
    ImproperCavityError if the likelihood is not log-concave and a site leaves no proper posterior

    Source: csato2002 sections 4.2 and 4.6; :eq:`cs-online`, :eq:`cs-eta`.
    """
    _check_state(state)
    X = check_inputs(X, columns=state.Z.shape[1] if state.seen else None)
    y = state.likelihood.validate(check_targets(y, len(X)))
    process = state.process.with_room(state.budget, X.shape[1])
    learner = Learner(process, state.likelihood, state.budget, state.novelty, state.rho)
    report = learner.sweep(X, y, range(len(X)), first=state.seen, moving=state.moving)
    log_predictive = state.log_predictive + report["log_predictive"]
    return replace(state, process=learner.process.compact(), seen=state.seen + len(X), log_predictive=log_predictive)


def prune(state: State, i: int) -> State:
    """The state without its basis vector number i: of all processes on the others, the one of least KL(pruned ‖ full).

    Raises ValueError if i is not in 0 ... M − 1, or there is only one basis vector. The state given stays as it is.
    Source: csato2002 eqs (77), (79), (126) and (128); :eq:`cs-condition`, :eq:`cs-prune`.
    """
    _check_state(state)
    M, i = len(state.basis), check_count(i, "i", least=0)
    if M < 2 or i >= M:
        raise ValueError(f"i = {i} must number one of at least two basis vectors, 0 ... M - 1; this state has M = {M}")
    process = state.process.resized(M)
    process.prune(i)
    return replace(state, process=process.resized(M - 1))


def scores(state: State) -> Array:
    """KL(pruned ‖ full) (M,) in nats that removing each basis vector would cost.

    Source: csato2002 section 4.6; :eq:`cs-score`, :eq:`cs-score-all`.
    """
    _check_state(state)
    process = state.process.compact()
    process.refresh()
    return process.scores()


def _check_state(state: object) -> None:
    if not isinstance(state, State):
        raise ValueError(f"state is of type {type(state).__name__}, expected a State of online.start, or fit.state of "
                         "a fit by online.infer")
