"""Sweeps until nothing moves: which of them are undone, and when they end."""

from types import SimpleNamespace

import numpy as np
import pytest

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
