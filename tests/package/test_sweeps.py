"""Sweeps until nothing moves: which of them are undone, and when they end."""

import inspect
from types import SimpleNamespace

import numpy as np
import pytest

from pepcore import exact, power_ep, training
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit, StudentT
from pepcore.sites import ImproperCavityError
from pepcore.sweeps import run_sweeps


def sweep(evaluate, start, **options):
    """`run_sweeps` over states of one number that moves by `step` times what `evaluate` says."""
    propose = lambda state, step: state.sites + step * state.move
    return run_sweeps(evaluate, propose, np.array([start]), **{"step": 1.0, "tolerance": 1e-6, "max_sweeps": 1} | options)


@pytest.mark.filterwarnings("ignore:EP has not converged")
def test_a_sweep_after_which_the_sites_run_away_is_undone_and_halved():
    def evaluate(site):
        move = 1.0 - site if site <= 0.6 else np.array([1e4])
        return SimpleNamespace(sites=site, move=move, log_evidence=0.0)

    state, _ = sweep(evaluate, 0.0)
    assert state.sites == 0.5


def test_the_evidence_may_move_by_the_tolerance_times_its_own_size():
    evidence = iter([-1e6, -1e6 + 0.5])
    _, ending = sweep(lambda site: SimpleNamespace(sites=site, move=np.array([1e-9]), log_evidence=next(evidence)), 0.0)
    assert ending["converged"] and ending["sweeps"] == 1
    evidence = iter([-1e6, -1e6 + 2.0])
    with pytest.warns(RuntimeWarning, match="not converged"):
        _, ending = sweep(lambda site: SimpleNamespace(sites=site, move=np.array([1e-9]), log_evidence=next(evidence)), 0.0,
                          max_sweeps=1)
    assert not ending["converged"]


def test_where_no_step_is_possible_the_reason_is_said_and_no_sweep_is_counted():
    def evaluate(site):
        if site > 0:
            raise ImproperCavityError("no cavity there; take another likelihood")
        return SimpleNamespace(sites=site, move=np.array([1.0]), log_evidence=0.0)

    with pytest.warns(RuntimeWarning, match=r"no step forward is possible, however short; no cavity there; take"):
        _, ending = sweep(evaluate, 0.0, max_sweeps=5)
    assert (ending["sweeps"], len(ending["history"]), ending["converged"]) == (0, 1, False)


def test_a_likelihood_that_exact_ep_cannot_take_is_sent_where_it_can():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    y = np.sin(2 * X[:, 0]) + np.where(np.arange(40) % 5, 0.0, 8.0)
    with pytest.warns(RuntimeWarning, match=r"not log-concave there, and power_ep\.infer takes such likelihoods"):
        fit = exact.infer(SquaredExponential(), X, y, StudentT(3.0, 0.1))
    assert not fit.converged and len(fit.history) == fit.sweeps + 1


def test_a_warning_names_the_line_of_a_callback_that_called_the_package():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 1))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    line = []

    def callback(record):
        line.append(inspect.currentframe().f_lineno + 1)
        power_ep.infer(SquaredExponential(), X[:3], X, y, Probit(), max_sweeps=0)

    with pytest.warns(RuntimeWarning, match="after 0 sweeps") as caught:
        training.fit(None, X, np.sin(X[:, 0]), M=3, max_evaluations=1, callback=callback)
    assert {(one.filename, one.lineno) for one in caught} == {(__file__, line[0])}
