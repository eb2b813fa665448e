"""Sparse EP with projections, on data at hand: the online step, sweep after sweep."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore.features import row_blocks
from pepcore.gaussian import Array, solve_lower
from pepcore.kernels.base import Kernel
from pepcore.likelihoods.scalar import Likelihood
from pepcore.normal_equations import check_left_out
from pepcore.online.process import Process
from pepcore.online.sequential import NO_GRADIENT, DirectedSites, Learner
from pepcore.online.streaming import State, start
from pepcore.results import Fit, LeftOut
from pepcore.sites import Sites
from pepcore.sweeps import warn
from pepcore.threads import one_blas_thread
from pepcore.validation import check_count, check_fraction, check_inputs, check_order, check_positive, check_targets


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class OnlineFit(Fit):
    """A `Fit` on basis vectors chosen from the data.

    There is no gradient: csato2002 does not learn hyper-parameters. Learn them with `training.fit`.

    Attributes
    ----------
    basis : (M,) numbers of the data that are basis vectors; −1 for pseudo-inputs that were given as Z
    history : list of dict, one for each sweep: "log_evidence", "change", "included" and "removed" (basis vectors),
        "log_predictive" (Σ log p(y_n | cavity) in nats) and "posterior" after it
    """

    state: State  #: from which `update` may go on with further data, with the same rho, and on the basis Z if it was given
    projection: Array  #: (N, M), P: the site of datum n is a function of P[n] @ f(Z)

    @property
    def basis(self) -> np.ndarray:
        return self.state.basis

    def _left_out(self, X: Array, y: Array) -> LeftOut:
        """The site of datum n lies along d = Lᵀp_n, its prediction along a: m − Vd (ν − τμ)/c and V + τ Vd dᵀV/c.

        Source: csato2002 eq. (131); :eq:`loo-direction`.
        """
        basis, mean, C = self.posterior.basis, self.posterior.mean, self.posterior.precision_cholesky
        chosen = self.basis >= 0
        if not np.array_equal(X[self.basis[chosen]], basis.Z[chosen]):
            raise ValueError("X must be the data of the fit, in the same order; its basis vectors are not where they were")
        left_mean, left_variance, kept = (np.empty(len(X)) for _ in range(3))
        for rows in row_blocks(len(X), len(mean)):
            tau, directions = self.sites.tau[rows], (self.projection[rows] @ basis.L).T
            A, h = basis.features(X[rows])
            center, pull = mean @ A, self.sites.nu[rows] - tau * (mean @ directions)
            white, white_direction = solve_lower(C, A), solve_lower(C, np.asfortranarray(directions))
            kept[rows] = 1 - tau * np.einsum("mn,mn->n", white_direction, white_direction)
            across = np.einsum("mn,mn->n", white, white_direction)
            left_mean[rows] = center - across * pull / kept[rows]
            left_variance[rows] = h + np.einsum("mn,mn->n", white, white) + tau * across**2 / kept[rows]
        check_left_out(kept)
        return LeftOut(left_mean, left_variance, self.likelihood.log_predictive(y, left_mean, left_variance))


@one_blas_thread
def infer(
    kernel: Kernel, X: ArrayLike, y: ArrayLike, likelihood: Likelihood, *,
    budget: int | None = None, novelty: float = 1e-6, max_sweeps: int = 1, moving_sweeps: int | None = None,
    Z: ArrayLike | None = None, rho: float = 1.0, order: ArrayLike | None = None, tolerance: float = 1e-8,
    callback: Callable | None = None,
) -> OnlineFit:
    """Online learning (one sweep) or sparse EP with projections (several).

    Parameters
    ----------
    X, y : (N, D) inputs, (N,) targets; for Probit, labels -1 and +1
    likelihood : an object as in `pepcore.likelihoods`, log-concave
    budget, novelty : as in `start`
    max_sweeps : 1 is online learning, more is sparse EP
    moving_sweeps : number of initial sweeps in which basis vectors may come and go; after these they stay, since otherwise
        sparse EP need not converge; None lets them move in all sweeps
    Z : (M, D) basis vectors that stay from the beginning, in place of data that come and go
    rho : float, in [0, 1]; share of the residual variance γ of a datum outside the basis that counts as process, and not as
        noise, when its site is computed: 1 is csato2002; with Z, 0 is Power EP with alpha = 1, see `pepcore.online.fixed_basis`
    order : (N,), a permutation, the order of the data in every sweep; None keeps theirs
    tolerance : converged when in a whole sweep no basis vector came or went and no site moved by more: max over data of
        |τ* − τ| s and |ν* − ν| √s, s the variance of the site's pᵀu
    callback : called after each sweep with the dict that enters the history

    Returns an OnlineFit of O(NM) numbers, and O(M²) for each sweep. If several sweeps were not enough, `converged` is False
    and a RuntimeWarning says so.

    Raises
    ------
    ValueError for wrong shapes, NaN, labels the likelihood does not accept, a budget or sweeps that are no positive whole
        number, a novelty outside (0, 1), a rho outside [0, 1], an order that is no permutation, a budget together with Z
    ImproperCavityError if the likelihood is not log-concave and a site leaves no proper posterior
    NotPositiveDefiniteError if the prior covariance of the basis vectors cannot be factorised

    Source: csato2002 sections 4.4 and 4.6; :eq:`cs-delete`, :eq:`cs-P`.
    """
    state = start(kernel, likelihood, budget=budget, novelty=novelty)
    X = check_inputs(X)
    y = likelihood.validate(check_targets(y, len(X)))
    max_sweeps = check_count(max_sweeps, "max_sweeps")
    moving_sweeps = max_sweeps if moving_sweeps is None else check_count(moving_sweeps, "moving_sweeps")
    rho, order = check_fraction(rho, "rho"), check_order(order, len(X))
    tolerance = check_positive(tolerance, "tolerance")
    if Z is None:
        process = state.process.with_room(state.budget, X.shape[1])
    elif budget is not None:
        raise ValueError(f"budget = {budget} is for basis vectors that are chosen, but Z gives them all; leave one out")
    else:
        process, moving_sweeps = Process.fixed(kernel, check_inputs(Z, "Z", columns=X.shape[1])), 0
    sites = DirectedSites(len(X), process.slots)
    learner = Learner(process, likelihood, state.budget, state.novelty, rho, sites)

    history: list[dict] = []
    converged = False
    while len(history) < max_sweeps and not converged:
        report = learner.sweep(X, y, order, moving=len(history) < moving_sweeps)
        learner.sum_sites()
        report |= {"log_evidence": learner.process.log_evidence(), "posterior": learner.process.posterior()}
        history.append(report)
        if callback is not None:
            callback(report)
        still = report["included"] == report["removed"] == 0
        converged = still and report["change"] <= tolerance
    message = f"converged after {len(history)} sweeps"
    if not converged:
        message = (f"not {message} (in the last sweep {report['included']} basis vectors came, {report['removed']} went, "
                   f"sites changed by {report['change']:.2g}, tolerance {tolerance:.2g})")
        if max_sweeps > 1:
            warn(f"sparse EP has {message}; under a budget, basis vectors may come and go for ever: give "
                             "moving_sweeps, a larger budget or more sweeps")
    state = replace(state, process=learner.process.compact(), seen=len(X), log_predictive=report["log_predictive"], rho=rho,
                    moving=Z is None)
    result = report["log_evidence"], report["posterior"], likelihood, 1.0, Sites(sites.tau, sites.nu)
    more: dict[str, Any] = {"state": state, "projection": sites.A @ learner.process.W[:, learner.process.used]}
    return OnlineFit(*result, NO_GRADIENT, converged, message, len(history), history, **more)

