"""Sparse online Gaussian processes and sparse EP with projections, after csato2002.

`infer` learns from data at hand: one sweep is online learning (assumed-density filtering), more sweeps are sparse EP.
`start` and `update` learn from a stream, in memory that does not grow with it. The basis vectors are data: one that is
novel enough is taken in, and when there are more than the budget, the one that costs least is projected out::

    fit = online.infer(kernel, X, y, Probit(), budget=50, sweeps=10, moving_sweeps=3)
    fit.posterior.predict(Xs), fit.log_evidence, fit.basis, fit.projection, fit.sites, fit.history

    state = online.start(kernel, Gaussian(0.1), budget=100)
    for X, y in blocks:
        state = online.update(state, X, y)
    state.posterior.predict(Xs), state.alpha, state.C, online.scores(state), online.prune(state, 3)
"""

from dataclasses import dataclass, replace

import numpy as np

from pepcore.fit import Fit
from pepcore.likelihoods import Likelihood
from pepcore.model_validation import check_likelihood, check_plain
from pepcore.process import Process
from pepcore.sequential import DirectedSites, Learner, no_gradient
from pepcore.sites import Sites
from pepcore.sweeps import warn_unconverged
from pepcore.threads import one_blas_thread
from pepcore.validation import check_count, check_fraction, check_inputs, check_order, check_positive, check_targets


@dataclass(frozen=True, eq=False)
class State:
    """What online learning knows after some data, in O(M²) numbers for M basis vectors.

    Attributes
    ----------
    kernel, likelihood, budget, tolerance : as given to `start`
    process : Process, the numbers themselves; not to be changed
    seen : int, data so far
    log_predictive : float, Σ log p(y_n | the data before n) in nats: how well each datum was foretold
    """

    kernel: object
    likelihood: Likelihood
    budget: int | None
    tolerance: float
    process: Process
    seen: int = 0
    log_predictive: float = 0.0

    @property
    def basis(self):
        """Numbers (M,) of the data that are basis vectors."""
        return self.process.rows

    @property
    def Z(self):
        """Basis vectors (M, D)."""
        return self.process.Z

    @property
    def alpha(self):
        """α (M,): mean(x) = k_u(x)ᵀα. Source: csato2002 eq. (106)."""
        return self.process.alpha

    @property
    def C(self):
        """C (M, M): variance(x) = k(x, x) + k_u(x)ᵀC k_u(x). Source: csato2002 eq. (106)."""
        return self.process.C

    @property
    def posterior(self):
        """The book's Posterior."""
        if not len(self.basis):
            raise ValueError("this state has seen no data yet; give it some with online.update(state, X, y)")
        return self.process.posterior()

    @property
    def log_evidence(self):
        """Log of the sites' normaliser, in nats: what all data add up to, less what the projections lost.

        Without projections it is `log_predictive` after one sweep, and EP's evidence at convergence.
        """
        return self.process.log_evidence() if len(self.basis) else 0.0

    def predict(self, Xs, noise=False):
        """Mean (S,) and variance (S,) of the latent f at Xs (S, D); if `noise`, what the likelihood predicts of y."""
        mean, variance = self.posterior.predict(Xs)
        return self.likelihood.predict(mean, variance) if noise else (mean, variance)


@dataclass(frozen=True, eq=False, kw_only=True)
class OnlineFit(Fit):
    """A `Fit` on basis vectors chosen from the data.

    There is no gradient: csato2002 does not learn hyper-parameters. Learn them with `training.fit`.

    Attributes
    ----------
    state : State, from which `update` may go on with further data
    basis : (M,) numbers of the data that are basis vectors; −1 for pseudo-inputs that were given as Z
    projection : (N, M), P: the site of datum n is a function of P[n] @ f(Z)
    history : list of dict, one for each sweep: "log_evidence", "change", "included" and "removed" (basis vectors),
        "log_predictive" (Σ log p(y_n | cavity) in nats) and the "posterior" then
    """

    state: State
    projection: np.ndarray

    @property
    def basis(self):
        return self.state.basis


def start(kernel, likelihood, budget=None, tolerance=1e-6):
    """A state that has seen no data.

    Parameters
    ----------
    kernel : kernel
    likelihood : an object as in `pepcore.likelihoods`, log-concave
    budget : int, optional
        Most basis vectors that are kept, M_BV; without it all novel data are.
    tolerance : float
        ε_tol: a datum becomes a basis vector if the prior variance that the others leave it, γ, is more than this part
        of k(x, x). With less than about 1e-10 the prior covariance of the basis vectors is as good as singular.

    Returns
    -------
    State

    Raises
    ------
    ValueError
        For a budget that is no positive whole number, a tolerance outside (0, 1), a kernel with other pseudo-points.

    Source: csato2002 section 4.6.
    """
    check_plain(kernel, "online methods")
    check_likelihood(likelihood)
    if budget is not None:
        budget = check_count(budget, "budget")
    tolerance = check_positive(tolerance, "tolerance")
    if not tolerance < 1:
        raise ValueError(f"tolerance = {tolerance} must be below 1; it is a part of the prior variance, such as 1e-6")
    return State(kernel, likelihood, budget, tolerance, Process(kernel, 0, 0))


@one_blas_thread
def update(state, X, y):
    """Learn from more data, one after the other, each looked at once.

    Parameters
    ----------
    state : State, which stays as it is
    X : (B, D) inputs
    y : (B,) targets, for Probit labels -1 and +1

    Returns
    -------
    State
        It needs O(M²) numbers however many data it has seen, and O(M²) time for each.

    Raises
    ------
    ValueError
        For wrong shapes, NaN, or labels the likelihood does not know.
    ImproperCavityError
        If the likelihood is not log-concave and a site leaves no proper posterior.

    Source: csato2002 sections 4.2 and 4.6; :eq:`cs-online`, :eq:`cs-eta`.
    """
    _check_state(state)
    X = check_inputs(X, columns=state.Z.shape[1] if state.seen else None)
    y = state.likelihood.validate(check_targets(y, len(X)))
    process = state.process.with_room(state.budget, X.shape[1])
    learner = Learner(process, state.likelihood, state.budget, state.tolerance)
    report = learner.sweep(X, y, range(len(X)), first=state.seen)
    log_predictive = state.log_predictive + report["log_predictive"]
    return replace(state, process=learner.process.compact(), seen=state.seen + len(X), log_predictive=log_predictive)


def prune(state, i):
    """The state without its basis vector number i: the one of least KL(pruned ‖ full) among all on the others.

    Parameters
    ----------
    state : State with at least two basis vectors; it stays as it is
    i : int, in 0 ... M − 1

    Returns
    -------
    State

    Raises
    ------
    ValueError
        If i is no number of a basis vector, or there is only one.

    Source: csato2002 eqs (77), (79), (126) and (128); :eq:`cs-condition`, :eq:`cs-prune`.
    """
    _check_state(state)
    M, i = len(state.basis), check_count(i, "i", least=0)
    if M < 2 or i >= M:
        raise ValueError(f"i = {i} must number one of at least two basis vectors, 0 ... M - 1; this state has M = {M}")
    process = state.process.resized(M)
    process.prune(i)
    return replace(state, process=process.resized(M - 1))


def scores(state):
    """KL(pruned ‖ full) (M,) in nats that removing each basis vector would cost; source: csato2002 section 4.6."""
    _check_state(state)
    process = state.process.compact()
    process.refresh()
    return process.scores()


@one_blas_thread
def infer(
    kernel,
    X,
    y,
    likelihood,
    budget=None,
    tolerance=1e-6,
    sweeps=1,
    moving_sweeps=None,
    Z=None,
    rho=1.0,
    order=None,
    convergence=1e-8,
):
    """Online learning (one sweep) or sparse EP with projections (several).

    Parameters
    ----------
    kernel : kernel
    X : (N, D) inputs
    y : (N,) targets, for Probit labels -1 and +1
    likelihood : an object as in `pepcore.likelihoods`, log-concave
    budget, tolerance : as in `start`
    sweeps : int
        Most sweeps over the data.
    moving_sweeps : int, optional
        Sweeps in which basis vectors may come and go; afterwards they stay, without which sparse EP need not converge.
    Z : (M, D), optional
        Basis vectors that stay from the beginning, in place of data that come and go.
    rho : float, in [0, 1]
        Part of the residual variance γ of a datum that is no basis vector that belongs to the process when its site is
        computed: 1 is csato2002; with Z, 0 is Power EP with alpha = 1, see `pepcore.fixed_basis`.
    order : (N,), optional
        Permutation in which the data are taken in every sweep.
    convergence : float
        Converged when in a whole sweep no basis vector came or went and no site moved by more: max over data of
        |τ* − τ| s and |ν* − ν| √s, s the variance of the site's pᵀu.

    Returns
    -------
    OnlineFit
        It holds O(NM) numbers, and O(M²) for each sweep. If several sweeps were not enough, `converged` is False and a
        RuntimeWarning says so.

    Raises
    ------
    ValueError
        For wrong shapes, NaN, labels the likelihood does not know, a budget or sweeps that are no positive whole
        number, a tolerance outside (0, 1), a rho outside [0, 1], an order that is no permutation, a budget beside Z.
    ImproperCavityError
        If the likelihood is not log-concave and a site leaves no proper posterior.

    Source: csato2002 sections 4.4 and 4.6; :eq:`cs-delete`, :eq:`cs-P`.
    """
    state = start(kernel, likelihood, budget, tolerance)
    X = check_inputs(X)
    y = likelihood.validate(check_targets(y, len(X)))
    sweeps = check_count(sweeps, "sweeps")
    moving_sweeps = sweeps if moving_sweeps is None else check_count(moving_sweeps, "moving_sweeps")
    rho, order = check_fraction(rho, "rho"), check_order(order, len(X))
    convergence = check_positive(convergence, "convergence")
    if Z is None:
        process = state.process.with_room(state.budget, X.shape[1])
    elif budget is not None:
        raise ValueError(f"budget = {budget} is for basis vectors that are chosen, but Z gives them all; leave one out")
    else:
        process, moving_sweeps = Process.fixed(kernel, check_inputs(Z, "Z", columns=X.shape[1])), 0
    sites = DirectedSites(len(X), process.slots)
    learner = Learner(process, likelihood, state.budget, state.tolerance, rho, sites)

    history, converged = [], False
    while len(history) < sweeps and not converged:
        report = learner.sweep(X, y, order, moving=len(history) < moving_sweeps)
        learner.sum_sites()
        report |= {"log_evidence": learner.process.log_evidence(), "posterior": learner.process.posterior()}
        history.append(report)
        still = report["included"] == report["removed"] == 0
        converged = still and report["change"] <= convergence
    if sweeps > 1 and not converged:
        _warn(report, sweeps, convergence)
    state = replace(state, process=learner.process.compact(), seen=len(X), log_predictive=report["log_predictive"])
    result = report["log_evidence"], report["posterior"], likelihood, 1.0, Sites(sites.tau, sites.nu)
    more = {"state": state, "projection": sites.A @ learner.process.W[:, learner.process.used]}
    return OnlineFit(*result, no_gradient, converged, len(history), history, **more)


def _check_state(state):
    if not isinstance(state, State):
        raise ValueError(
            f"state is of type {type(state).__name__}, expected a State of online.start, or fit.state of a fit by online.infer"
        )


def _warn(report, sweeps, convergence):
    warn_unconverged(
        f"sparse EP has not converged after {sweeps} sweeps (in the last one {report['included']} basis vectors came, "
        f"{report['removed']} went, sites changed by {report['change']:.2g}, tolerance {convergence:.2g}); basis "
        "vectors under a budget need never come to rest: give moving_sweeps, a larger budget or more sweeps"
    )
