"""Anderson mixing of sweeps: exact where sweeps are linear, same fixed point elsewhere, and what it does when it goes astray."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_multiclass import problem

from pepcore import SquaredExponential, metrics, multiclass
from pepcore.sites import ImproperCavityError, Sites, parallel
from pepcore.sweeps import ASTRAY, DEPTH, NEAR, Mixing, damped_step, run_sweeps


def linear(rates, centre):
    """A problem whose site n goes the fraction rates[n] of its way in a sweep."""
    rates = np.asarray(rates)

    def evaluate(sites):
        move = rates * (centre - sites.nu)
        return SimpleNamespace(sites=sites, target=Sites(sites.tau, sites.nu + move), move=move, log_evidence=0.0)

    return evaluate


def begin(size):
    return Sites(np.zeros(size), np.zeros(size))


def test_linear_sweeps_arrive_once_as_many_are_remembered_as_have_rates():
    rates, centre = [0.02, 0.05, 0.1, 0.3, 0.7], 0.1 * np.arange(1.0, 6.0)
    mixing = Mixing()
    options = {"step": 1.0, "tolerance": 1e-8}
    state, ending = run_sweeps(linear(rates, centre), mixing, begin(5), **options, max_sweeps=100, next_step=mixing.next_step)
    assert ending["converged"] and ending["sweeps"] <= 8
    assert state.sites.nu == pytest.approx(centre, abs=1e-6)
    _, plain = run_sweeps(linear(rates, centre), parallel, begin(5), **options, max_sweeps=2000)
    assert plain["sweeps"] >= 500


def test_far_from_the_fixed_point_a_sweep_is_a_plain_one():
    evaluate, mixing = linear([0.5, 1.0], np.array([4 * NEAR, NEAR])), Mixing()
    first = evaluate(begin(2))
    second = evaluate(mixing(first, 1.0))
    assert np.array_equal(second.sites.nu, first.target.nu)
    assert np.array_equal(mixing(second, 0.5).nu, 0.5 * (second.sites.nu + second.target.nu))


def test_after_a_combination_that_left_no_cavity_comes_a_plain_sweep():
    evaluate, mixing = linear([0.1, 0.2], np.array([0.2, 0.2])), Mixing()
    state = evaluate(begin(2))
    state = evaluate(mixing(state, 1.0))
    mixed = mixing(state, 1.0)
    plain = mixing(state, 0.5)  # the same state again: what came of `mixed` could not be evaluated
    assert not np.allclose(mixed.nu, state.target.nu)
    assert plain.nu == pytest.approx(0.5 * (state.sites.nu + state.target.nu), abs=1e-15)


def test_a_combination_that_left_no_cavity_does_not_shorten_the_step():
    inner, mixing, refused = linear([0.1, 0.2], np.array([0.2, 0.2])), Mixing(), []

    def evaluate(sites):
        if sites is mixing.combined and not refused:
            refused.append(sites)
            raise ImproperCavityError("too far")
        return inner(sites)

    state, ending = run_sweeps(mixing.guarded(evaluate), mixing, begin(2), step=1.0, tolerance=1e-8, max_sweeps=100,
                               next_step=mixing.next_step)
    assert refused and ending["converged"]
    assert {record["step"] for record in ending["history"]} == {1.0}
    assert state.sites.nu == pytest.approx(0.2, abs=1e-6)


def test_a_plain_sweep_that_leaves_no_cavity_is_an_error():
    mixing = Mixing()
    evaluate = mixing.guarded(lambda sites: (_ for _ in ()).throw(ImproperCavityError("too far")))
    with pytest.raises(ImproperCavityError):
        evaluate(begin(2))


@pytest.mark.parametrize("variance", [1.0, 100.0])
@pytest.mark.parametrize("noise", [1e-3, 0.1])
def test_classes_that_lie_far_apart_are_told_apart_by_sweeps_that_converge(variance, noise):
    rng = np.random.default_rng(0)
    X = np.concatenate([0.4 * rng.normal(size=(200, 2)) + centre for centre in ([0, 0], [4, 0], [0, 4])])
    y = np.repeat([0, 1, 2], 200)
    fit = multiclass.infer(SquaredExponential(variance, 2.0), X[::40], X, y, noise=noise)
    assert fit.converged and fit.sweeps < 100
    patient = multiclass.infer(SquaredExponential(variance, 2.0), X[::40], X, y, noise=noise, step=0.5, max_sweeps=1000)
    assert fit.log_evidence == pytest.approx(patient.log_evidence, abs=1e-6)
    p = fit.predict_y(X)
    assert p.max() <= 1 and metrics.error_rate(y, p) == 0


def test_a_run_survives_combinations_that_leave_no_cavity():
    rates, centre, refused = np.array([0.02, 0.1, 0.5]), np.full(3, 0.2), []
    inner, mixing = linear(rates, centre), Mixing()

    def evaluate(sites):
        # rates that depend on where the sites are: linear extrapolation then overshoots
        if sites.nu.max() > 0.22:
            refused.append(sites)
            raise ImproperCavityError("too far")
        state = inner(sites)
        state.move = state.move * (1 + 20 * np.abs(sites.nu - centre))
        state.target = Sites(sites.tau, sites.nu + state.move)
        return state

    options = {"step": 1.0, "tolerance": 1e-8, "max_sweeps": 2000, "next_step": mixing.next_step}
    state, ending = run_sweeps(evaluate, mixing, begin(3), **options)
    assert refused and ending["converged"]
    assert state.sites.nu == pytest.approx(centre, abs=1e-5)


@given(before=st.floats(1e-6, NEAR), growth=st.floats(0, 10), step=st.floats(0.06, 1), turned=st.booleans())
def test_while_sweeps_are_mixed_only_a_large_rise_shortens_the_step(before, growth, step, turned):
    change = growth * before
    found = Mixing().next_step(change, before, turned, step, 1.0)
    if change > NEAR:
        assert found == damped_step(change, before, turned, step, 1.0)
    else:
        assert (found < step) == (growth > ASTRAY)


def test_no_more_sweeps_are_remembered_than_the_depth():
    evaluate, mixing = linear(np.linspace(0.01, 0.3, 40), np.full(40, 0.2)), Mixing()
    state = evaluate(begin(40))
    for _ in range(2 * DEPTH):
        state = evaluate(mixing(state, 1.0))
    assert len(mixing.moves) == len(mixing.points) == DEPTH


@pytest.mark.parametrize("approximation", ["ep", "sep", "gfitc"])
def test_mixed_sweeps_end_where_plain_ones_do_and_much_sooner(approximation, monkeypatch):
    kernels, Z, X, y, noise = problem(N=200)
    settings = {"approximation": approximation, "noise": noise, "tolerance": 1e-7, "max_sweeps": 3000}
    mixed = multiclass.infer(kernels, Z, X, y, **settings)
    monkeypatch.setattr("pepcore.multiclass.inference.Mixing", _Plain)
    plain = multiclass.infer(kernels, Z, X, y, **settings)
    assert mixed.converged and plain.converged
    assert mixed.predict_y(X) == pytest.approx(plain.predict_y(X), abs=1e-4)
    assert mixed.sweeps < 0.4 * plain.sweeps


class _Plain(Mixing):
    """Parallel damped sweeps, in the place of `Mixing`."""

    next_step = staticmethod(damped_step)

    def __call__(self, state, step):
        return parallel(state, step)
