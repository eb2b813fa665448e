"""Sparse online Gaussian processes and sparse EP with projections, after csato2002.

`infer` learns from data at hand: one sweep is online learning (assumed-density filtering), more sweeps are sparse EP.
`start` and `update` learn from a stream, in memory that does not grow with it. The basis vectors are data: a datum
that is novel enough joins them; when there are more than the budget, the one that costs least is projected out::

    fit = online.infer(kernel, X, y, Probit(), budget=50, max_sweeps=10, moving_sweeps=3)
    fit.predict_f(Xs), fit.log_evidence, fit.basis, fit.projection, fit.sites, fit.history

    state = online.start(kernel, Gaussian(0.1), budget=100)
    for X, y in blocks:
        state = online.update(state, X, y)
    state.predict_f(Xs), state.alpha, state.C, online.scores(state), online.prune(state, 3)
"""

from pepcore.online import fixed_basis
from pepcore.online.sparse_ep import OnlineFit, infer
from pepcore.online.streaming import State, prune, scores, start, update

__all__ = ["OnlineFit", "State", "fixed_basis", "infer", "prune", "scores", "start", "update"]
