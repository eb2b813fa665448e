"""Learning with many classes: every update and optimiser climbs, batches end where full inference does, bad input is told."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from problems import peak, three_classes
from test_multiclass import problem

from pepcore import multiclass
from pepcore.kernels import SquaredExponential
from pepcore.multiclass import learning, minibatch, sites_each
from pepcore.multiclass.bound import Bound
from pepcore.multiclass.factors import Pairwise
from pepcore.multiclass.inference import Method, check_model, check_power
from pepcore.multiclass.learning import fit
from pepcore.multiclass.minibatch import fit_minibatch
from pepcore.sites import Sites, parallel
from pepcore.training.batches import InMemory
from pepcore.training.coordinates import Coordinates
from pepcore.training.loop import Adaptive

SMALL = {"M": 4, "iterations": 25, "tolerance": 1e-4, "max_sweeps": 100}


def start_evidence(X, y, approximation):
    still = {**SMALL, "iterations": 1, "rate": 1e-12, "optimiser": "adam", "approximation": approximation}
    return fit(None, X, y, **still).fit.log_evidence


def test_kernels_start_at_the_scales_of_the_inputs():
    data = three_classes(N=60)
    X = data.X * [1.0, 100.0]
    model = fit(None, X, data.y, optimise=("noise",), **SMALL | {"iterations": 1})
    for kernel in model.parameters["kernels"]:
        np.testing.assert_allclose(kernel.lengthscales, X.std(axis=0) * np.sqrt(2), rtol=1e-9)


COMBINATIONS = [("ep", "outer", "lbfgs"), ("ep", "outer", "adam"), ("ep", "inner", "adaptive"), ("ep", "inner-exact", "adam"),
                ("sep", "inner", "adaptive"), ("sep", "outer", "adam"), ("gfitc", "outer", "lbfgs"), ("gfitc", "inner", "adam"),
                ("vi", "outer", "adam"),
                ("vi", "joint", "lbfgs")]


@pytest.mark.filterwarnings("ignore:EP has not converged")  # VI sweeps may be slow; that they climb is what is tested
@pytest.mark.parametrize(("approximation", "update", "optimiser"), COMBINATIONS)
def test_every_combination_climbs(approximation, update, optimiser):
    _, _, X, y, _ = problem(N=40)
    model = fit(None, X, y, approximation=approximation, update=update, optimiser=optimiser, **SMALL)
    assert model.fit.log_evidence > start_evidence(X, y, approximation) + 1
    assert model.predict_y(X).sum(axis=1) == pytest.approx(1, abs=1e-8)


def test_a_jointly_learnt_model_can_be_sent_to_another_process():
    _, _, X, y, _ = problem(N=40)
    model = fit(None, X, y, approximation="vi", update="joint", optimiser="adam", **SMALL | {"iterations": 1})
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.fit.gradient["noise"], model.fit.gradient["noise"])


def test_outer_and_inner_updates_reach_about_the_same_evidence():
    _, _, X, y, _ = problem(N=40)
    settings = {**SMALL, "iterations": 150, "optimise": ("kernels", "noise"), "optimiser": "adam"}
    found = [fit(None, X, y, update=update, **settings).fit.log_evidence for update in ("outer", "inner", "inner-exact")]
    assert max(found) - min(found) < 0.3


def test_shared_parameters_stay_shared():
    _, _, X, y, _ = problem(N=40)
    model = fit(None, X, y, shared=True, **SMALL)
    assert model.Z.shape == (4, 2)
    assert isinstance(model.kernels, SquaredExponential)


def test_what_is_not_learnt_stays():
    kernels, Z, X, y, noise = problem()
    model = fit(kernels, X, y, Z=Z, noise=noise, optimise=("noise",), **SMALL)
    assert all(kept is kernel for kept, kernel in zip(model.kernels, kernels, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(model.Z, Z, strict=True))
    assert not np.allclose(model.noise, noise)


def test_the_vector_of_parameters_is_undone_and_its_gradient_is_the_chain_rule():
    kernels, Z, X, y, noise = problem()
    parameters = Coordinates(("kernels", "Z", "noise"), np.array([0.7, 1.3]))
    values = {"kernels": tuple(kernels), "Z": tuple(Z), "noise": noise}
    point = parameters.pack(values)
    again = parameters.unpack(point, values)
    assert parameters.pack(again) == pytest.approx(point, abs=1e-14)
    infer = lambda v: multiclass.infer(v["kernels"], v["Z"], X, y, noise=v["noise"], tolerance=1e-10, max_sweeps=500)
    gradient = parameters.pack_gradient(values, infer(values).gradient)
    direction = np.random.default_rng(0).standard_normal(len(point))
    up, down = (infer(parameters.unpack(point + t * direction, values)).log_evidence for t in (1e-5, -1e-5))
    assert gradient @ direction == pytest.approx((up - down) / 2e-5, abs=1e-4)


def test_the_adaptive_step_takes_no_direction_from_rounding():
    climber = Adaptive(np.zeros(2), 0.01)
    assert np.array_equal(climber.ascend(np.array([1e-16, -1e-17])), np.zeros(2))
    assert np.allclose(climber.ascend(np.array([2.0, -4.0])), [0.01, -0.01])


def test_the_first_adaptive_step_is_short_where_the_gradient_is_a_millionth_of_the_largest():
    assert np.allclose(Adaptive(np.zeros(2), 0.01).ascend(np.array([1.0, 1e-6])), [0.01, 1e-5])


def test_the_adaptive_step_grows_by_two_percent_and_halves_when_the_sign_changes():
    climber = Adaptive(np.zeros(2), 0.01)
    steps, before = [], np.zeros(2)
    for gradient in ([1.0, 5.0], [1.0, 5.0], [1.0, -5.0]):
        after = climber.ascend(np.array(gradient))
        steps.append(after - before)
        before = after
    assert np.array(steps) == pytest.approx(0.01 * np.array([[1, 1], [1.02, 1.02], [1.02**2, -0.51]]))
    assert np.array_equal(climber.ascend(np.array([np.nan, 1.0])), before)


def test_an_adaptive_step_is_at_most_a_tenth_however_the_gradient_grows():
    climber = Adaptive(np.zeros(2), 0.01)
    before = climber.ascend(np.array([1e-3, -1e-3]))
    assert climber.ascend(np.array([1e3, -1e3])) - before == pytest.approx([0.1, -0.1], rel=1e-12)


def test_the_bounds_gradient_is_that_of_differences_and_its_optimum_is_that_of_natural_gradients():
    kernels, Z, X, y, noise = problem()
    bound, values = Bound(X, y, 3, 1e-3 * 2 / 3, 1e-6), {"kernels": tuple(kernels), "Z": tuple(Z), "noise": noise}
    parameters, values = Coordinates(("kernels", "Z", "noise", "q"), np.array([0.7, 1.3])), bound.start(values)
    rng = np.random.default_rng(0)
    point = parameters.pack(values) + 0.1 * rng.standard_normal(len(parameters.pack(values)))
    direction, moved = rng.standard_normal(len(point)), parameters.unpack(point, values)
    assert parameters.pack(moved) == pytest.approx(point, abs=1e-14)
    up, down = (bound(parameters.unpack(point + t * direction, values))[0] for t in (1e-5, -1e-5))
    slope = parameters.pack_gradient(moved, bound(moved)[1]) @ direction
    assert slope == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-4)

    sites = multiclass.infer(kernels, Z, X, y, approximation="vi", noise=noise)
    optimum = tuple((p.whitened()[0], np.linalg.cholesky(p.whitened()[1])) for p in sites.posterior.parts)
    value, gradient = bound(values | {"q": optimum})
    assert value == pytest.approx(sites.log_evidence, abs=1e-8)
    assert all(np.abs(part).max() < 1e-5 for pair in gradient["q"] for part in pair)


def test_the_fit_of_a_joint_search_has_the_posterior_that_was_climbed():
    kernels, Z, X, y, noise = problem()
    bound, rng = Bound(X, y, 3, 1e-3, 1e-6), np.random.default_rng(0)
    q = tuple((rng.normal(size=4), np.tril(0.3 * rng.normal(size=(4, 4))) + np.eye(4)) for _ in range(3))
    fit = bound.finish({"kernels": tuple(kernels), "Z": tuple(Z), "noise": noise, "q": q})
    for (mean, root), part in zip(q, fit.posterior.parts, strict=True):
        np.testing.assert_allclose(part.whitened()[0], mean)
        np.testing.assert_allclose(part.whitened()[1], root @ root.T, atol=1e-10)


@pytest.mark.parametrize("update", ["inner", "inner-exact"])
def test_an_inner_update_climbs_the_gradient_that_its_name_says(update):
    """In the second step, whose sites are half of the way to their first targets: there some signs of the two differ."""
    kernels, Z, X, y, noise = problem()
    seen = []
    fit(kernels, X, y, Z=Z, noise=noise, update=update, iterations=2, optimise=("Z",),
        callback=lambda record: seen.append(np.stack(record.parameters["Z"])))
    method, factors = Method.checked("ep", None, None, 3, 1e-6), Pairwise(y, 3)
    start, moved = (method.maps({"kernels": tuple(kernels), "Z": tuple(points)}, X) for points in (Z, seen[0]))
    first = sites_each.evaluate(start, factors, noise, 1.0, method.flat(start, factors))
    state = sites_each.evaluate(moved, factors, noise, 1.0, parallel(first, 0.5))
    rough, exact = (np.sign(gradient_of(moved, factors, 1.0, state)["Z"])
                    for gradient_of in (sites_each.gradient_of, sites_each.exact_gradient_of))
    differ = rough != exact
    assert differ.any()
    np.testing.assert_array_equal(np.sign(seen[1] - seen[0])[differ], (rough if update == "inner" else exact)[differ])


@pytest.mark.filterwarnings("ignore:EP has not converged")
@pytest.mark.parametrize("optimiser", ["lbfgs", "adam"])
def test_only_a_search_begins_anew_after_inference_that_has_not_converged(optimiser, monkeypatch):
    kernels, Z, X, y, noise = problem()
    keeps, evaluate = [], learning._Outer.__call__

    def watched(self, values):
        found = evaluate(self, values)
        keeps.append(self.sites is not None)
        return found

    monkeypatch.setattr(learning._Outer, "__call__", watched)
    fit(kernels, X, y, Z=Z, noise=noise, update="outer", optimiser=optimiser, iterations=2, max_sweeps=1, tolerance=1e-8)
    assert set(keeps) == {optimiser == "adam"}


@pytest.mark.parametrize(("update", "iterations"), [("outer", 2), ("outer", 30), ("inner", 30)])
def test_a_step_after_which_a_factorisation_fails_is_taken_back(small_variance, update, iterations):
    _, _, X, y, _ = problem(N=40)
    with small_variance(1.1):
        model = fit(None, X, y, update=update, optimiser="adam", **SMALL | {"iterations": iterations})
    assert ("2 iterations; the" if iterations == 2 else "stopped after") in model.message
    assert re.search("last .* is taken back: K_uu", model.message)
    assert all(kernel.variance < 1.1 for kernel in model.kernels)
    assert model.fit.converged


# --- mini-batches ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("approximation", ["ep", "gfitc"])
def test_batches_with_parameters_held_end_at_the_fixed_point(approximation):
    kernels, Z, X, y, noise = problem()
    whole = multiclass.infer(kernels, Z, X, y, approximation=approximation, noise=noise)
    model = fit_minibatch(kernels, Z, (X, y), approximation=approximation, noise=noise, batch=5, epochs=150, rate=0)
    assert model.predict_y(X) == pytest.approx(whole.predict_y(X), abs=1e-6)


@pytest.mark.parametrize("approximation", ["sep", "vi"])
def test_one_batch_of_all_data_is_a_sweep_over_tied_sites(approximation):
    kernels, Z, X, y, noise = problem()
    whole = multiclass.infer(kernels, Z, X, y, approximation=approximation, noise=noise)
    model = fit_minibatch(kernels, Z, (X, y), approximation=approximation, noise=noise, batch=24, epochs=400, rate=0, step=0.5)
    assert model.predict_y(X) == pytest.approx(whole.predict_y(X), abs=1e-5)
    estimates = [record["log_evidence"] for record in model.history if "log_evidence" in record]  # one in ten steps
    assert len(estimates) == 40
    assert estimates[-1] == pytest.approx(whole.log_evidence, abs=1e-4)


@pytest.mark.parametrize("approximation", ["ep", "gfitc"])
def test_at_rest_the_estimates_from_the_batches_average_to_the_evidence(approximation):
    kernels, Z, X, y, noise = problem()
    options = {"approximation": approximation, "noise": noise}
    whole = multiclass.infer(kernels, Z, X, y, tolerance=1e-11, max_sweeps=3000, **options)
    estimates = fit_minibatch(kernels, Z, (X, y), sites=whole.sites, batch=6, rate=0, **options).trace()
    assert estimates.mean() == pytest.approx(whole.log_evidence, abs=1e-7)
    assert estimates.std() > 0.1


@pytest.mark.parametrize("approximation", ["ep", "gfitc"])
def test_the_step_of_a_batch_damps_its_own_sites(approximation):
    kernels, Z, X, y, noise = problem()
    options = {"approximation": approximation, "noise": noise, "batch": 24, "rate": 0}
    whole, part = (fit_minibatch(kernels, Z, (X, y), step=step, **options).fit.sites for step in (1.0, 0.25))
    np.testing.assert_allclose(part.tau, 0.25 * whole.tau, rtol=1e-10)
    np.testing.assert_allclose(part.nu, 0.25 * whole.nu, rtol=1e-10)


@pytest.mark.parametrize("approximation", ["ep", "gfitc", "sep", "vi"])
def test_learning_can_go_on_from_the_sites_of_a_fit(approximation):
    kernels, Z, X, y, noise = problem()
    settings = {"approximation": approximation, "noise": noise, "batch": 24, "rate": 0, "step": 0.5}
    if approximation == "vi":
        whole = fit_minibatch(kernels, Z, (X, y), epochs=400, **settings).fit
    else:
        whole = multiclass.infer(kernels, Z, X, y, approximation=approximation, noise=noise)
    before = whole.predict_y(X)
    model = fit_minibatch(kernels, Z, (X, y), sites=whole.sites, **settings)
    assert model.predict_y(X) == pytest.approx(before, abs=1e-6)
    flat = fit_minibatch(kernels, Z, (X, y), **settings)
    assert np.abs(flat.predict_y(X) - before).max() > 1e-3
    assert np.array_equal(whole.predict_y(X), before)


def test_from_given_sums_a_batch_replaces_no_more_than_its_share():
    kernels, Z, X, y, noise = problem()
    whole = multiclass.infer(kernels, Z, X, y, approximation="sep", noise=noise)
    model = fit_minibatch(kernels, Z, [(X[:6], y[:6])], approximation="vi", noise=noise, sites=whole.sites, size=24, rate=0)
    by_hand = fit_minibatch(
        kernels, Z, [(X[:6], y[:6])], approximation="vi", noise=noise, sites=whole.sites, size=24, rate=0, step=0.25
    )
    assert np.array_equal(model.predict_y(X), by_hand.predict_y(X))


@pytest.mark.parametrize(("approximation", "other"), [("sep", "ep"), ("vi", "gfitc"), ("ep", "gfitc"), ("gfitc", "sep")])
def test_sites_of_another_kind_are_refused(approximation, other):
    kernels, Z, X, y, noise = problem()
    sites = multiclass.infer(kernels, Z, X, y, approximation=other, noise=noise).sites
    with pytest.raises(ValueError, match=f"sites for '{approximation}' must be .*; got"):
        fit_minibatch(kernels, Z, (X, y), approximation=approximation, noise=noise, sites=sites)


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_small_batches_come_near_full_stochastic_ep_with_a_small_step(alpha):
    kernels, Z, X, y, noise = problem(N=200)
    whole = multiclass.infer(kernels, Z, X, y, alpha=alpha, approximation="sep", noise=noise)
    errors = [np.abs(model.predict_y(X) - whole.predict_y(X)).max() for step in (0.3, 0.01) for model in [
        fit_minibatch(kernels, Z, (X, y), alpha=alpha, noise=noise, batch=20, epochs=60, rate=0, step=step)]]
    assert errors[1] < 0.3 * errors[0]


@pytest.mark.filterwarnings("ignore:EP has not converged")  # VI sweeps may be slow; that they climb is what is tested
@pytest.mark.parametrize("approximation", ["ep", "sep", "gfitc", "vi"])
def test_learning_on_batches_raises_the_evidence_of_all_data(approximation):
    _, Z, X, y, _ = problem(N=200, M=8)
    start, found = SquaredExponential(1.0, np.full(2, 5.0)), []
    for rate in (0, 0.02):
        model = fit_minibatch(start, Z[0], (X, y), approximation=approximation, noise=1.0, batch=40, epochs=25, rate=rate)
        whole = multiclass.infer(model.kernels, model.Z, X, y, approximation=approximation, noise=model.noise, tolerance=1e-3)
        found.append(whole.log_evidence)
    assert found[1] > found[0] + 10


def test_arrays_mapped_from_a_file_and_blocks_give_what_arrays_give(tmp_path):
    kernels, Z, X, y, noise = problem(N=60)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    settings = {"noise": noise, "batch": 20, "epochs": 2, "seed": 4}
    first, second = (fit_minibatch(kernels, Z, (data, y), **settings) for data in (X, mapped))
    assert np.array_equal(first.noise, second.noise)
    blocks = [(X[rows], y[rows]) for rows in np.array_split(np.arange(60), 3)]
    streamed = fit_minibatch(kernels, Z, blocks, noise=noise, size=60, epochs=2)
    generated = fit_minibatch(kernels, Z, (block for block in blocks * 2), noise=noise, size=60)
    assert np.array_equal(streamed.noise, generated.noise)


def test_lists_and_tables_are_learnt_from_as_arrays_are():
    kernels, Z, X, y, noise = problem()
    settings = {"noise": noise, "batch": 8, "epochs": 2.0}
    expected = fit_minibatch(kernels, Z, (X, y), **settings)
    for data in ((X.tolist(), y.tolist()), (pd.DataFrame(X), pd.Series(y, index=np.arange(len(y))[::-1]))):
        found = fit_minibatch(kernels, [points.tolist() for points in Z], data, **settings)
        assert np.array_equal(found.noise, expected.noise)
    assert found.message == "2 epochs"


def test_the_memory_of_stochastic_ep_does_not_grow_with_the_data():
    rng, kernel = np.random.default_rng(0), SquaredExponential()
    Z = rng.standard_normal((10, 2))

    def peak_of(blocks):
        data = ((X, (X[:, 0] > 0).astype(int)) for X in (rng.standard_normal((1500, 2)) for _ in range(blocks)))
        return peak(lambda: fit_minibatch(kernel, Z, data, size=1500 * blocks, classes=2))

    peak_of(3)  # the first run loads what later ones share
    assert peak_of(30) < peak_of(10) + 50_000  # the data grow by ten times as much, the history of 20 steps by less than 10_000


@pytest.mark.parametrize(("approximation", "epochs"), [("sep", 2), ("sep", 20), ("ep", 20)])
def test_a_step_of_a_batch_after_which_a_factorisation_fails_is_taken_back(small_variance, approximation, epochs):
    _, Z, X, y, noise = problem(N=40)
    with small_variance(1.1 if epochs > 2 else 1.01):
        kernel, options = SquaredExponential(1.0, [1.0, 1.0]), {"batch": 40, "epochs": epochs, "rate": 0.05}
        model = fit_minibatch(kernel, Z, (X, y), approximation=approximation, noise=noise, **options)
    assert ("2 epochs; the" if epochs == 2 else "stopped after") in model.message
    assert re.search("last .* is taken back: K_uu", model.message)
    assert model.kernels.variance < 1.1
    assert model.predict_y(X).sum(axis=1) == pytest.approx(1, abs=1e-8)


ROBUST = [{"alpha": 0.0, "epsilon": 0.001 * 2 / 3}, {"alpha": 0.5, "epsilon": 0.01 * 2 / 3}]  # the factors are not log-concave


@pytest.mark.parametrize("power", ROBUST)
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_whole_steps_of_a_batch_leave_a_posterior(power, seed):
    data = three_classes(seed, N=120)
    Z, calls = data.X[np.random.default_rng(seed).permutation(120)[:6]], []
    options = {"approximation": "gfitc", "noise": 0.1, "classes": 3, "batch": 7, "epochs": 6, "rate": 0.0, "seed": seed}
    watch = {"callback": lambda record: calls.append(record.result().log_evidence)}
    model = fit_minibatch(SquaredExponential(1.0, 0.7), Z, (data.X, data.y), **options, **power, **watch)
    assert len(calls) == len(model.history) == 6 * 18 and np.isfinite(calls).all()
    assert model.message == "6 epochs"


def test_sites_of_a_batch_that_leave_no_posterior_begin_anew_without_the_negative_ones():
    data = three_classes(0, N=60)
    sites = Sites(np.where(np.arange(60) < 40, -5.0, 1.0) * np.ones((3, 1)), np.zeros((3, 60)))
    seen = []
    model = fit_minibatch(SquaredExponential(1.0, 0.7), data.X[:6], (data.X, data.y), approximation="gfitc", **ROBUST[1],
                          classes=3, sites=sites, batch=60, rate=0.0, epochs=1, callback=seen.append)
    assert len(seen) == len(model.history) == 1
    assert model.predict_y(data.X).sum(axis=1) == pytest.approx(1, abs=1e-8)
    assert sites.tau.min() == -5.0


@pytest.mark.filterwarnings("ignore:EP has not converged")  # VI's sweeps at the end
@pytest.mark.parametrize("approximation", ["vi", "gfitc"])
def test_inner_updates_shorten_a_step_that_leaves_no_posterior(approximation, monkeypatch):
    data, begun = three_classes(0, N=120), []
    flat = learning._Inner._flat
    monkeypatch.setattr(learning._Inner, "_flat", lambda *args: begun.append(1) or flat(*args))
    power = {} if approximation == "vi" else ROBUST[1]
    model = fit(SquaredExponential(1.0, 0.7), data.X, data.y, M=6, shared=True, Z="subset", approximation=approximation, **power,
                iterations=40, max_sweeps=20)
    assert len(begun) == 1
    assert model.trace().min() > 2 * model.trace()[0] and model.trace()[-1] > model.trace()[0] + 20


def test_a_step_can_be_watched():
    kernels, Z, X, y, noise = problem()
    seen = []
    fit_minibatch(kernels, Z, (X, y), noise=noise, batch=8, callback=lambda record: seen.append(record.result().predict_y(X[:2])))
    assert len(seen) == 3 and not np.array_equal(seen[0], seen[2])


def test_a_rate_that_falls_to_nothing_stops_the_learning():
    kernels, Z, X, y, noise = problem()
    seen = []
    settings = {"noise": noise, "batch": 8, "rate": lambda steps: 0.01 if steps < 2 else 0.0}
    fit_minibatch(kernels, Z, (X, y), callback=lambda record: seen.append(record.parameters["noise"]), **settings)
    assert not np.array_equal(seen[0], seen[1]) and np.array_equal(seen[1], seen[2])


@pytest.mark.parametrize("given", ["block", "noises"])
def test_training_counts_the_classes_as_inference_does(given):
    _, Z, X, y, _ = problem()
    y = np.minimum(y, 1)  # the third class has no datum
    options = {"block": {"Z": np.stack(Z)}, "noises": {"noise": [0.1, 0.2, 0.3]}}
    arguments = {"noise": 0.1, "Z": Z[0]} | options[given]
    expected = multiclass.infer(SquaredExponential(), X=X, y=y, max_sweeps=20, tolerance=1e-2, **arguments)
    model = fit(None, X, y, iterations=2, tolerance=1e-2, **arguments)
    assert model.predict_y(X[:2]).shape == expected.predict_y(X[:2]).shape == (2, 3)
    assert np.shape(model.Z) == np.shape(arguments["Z"])


def test_a_table_of_pseudo_inputs_tells_no_number_of_classes():
    _, Z, X, y, noise = problem()
    assert fit(None, X, y, Z=Z[0].tolist(), noise=noise, iterations=2).predict_y(X[:2]).shape == (2, 3)


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("change", "message"), [
    ({"update": "sometimes"}, "update = 'sometimes' is unknown"),
    ({"optimiser": "sgd"}, "optimiser = 'sgd' is unknown"),
    ({"optimiser": "lbfgs", "update": "inner"}, 'optimiser = "lbfgs" needs update = "outer" or "joint"'),
    ({"approximation": "sep", "update": "inner-exact"}, "already that with the sites held still"),
    ({"approximation": "ep", "update": "joint"}, 'update = "joint" maximises the bound .* got it with \'ep\''),
    ({"optimise": ("kernel",)}, r"optimise must hold names out of .* got \['kernel'\]"),
    ({"optimise": ()}, r"optimise = \(\) leaves nothing to learn"),
    ({"iterations": 0}, "iterations = 0 must be a whole number"),
    ({"rate": -1.0}, r"rate = -1\.0 must be positive"),
    ({"step": 2.0}, r"step = 2\.0 must be in \(0, 1\]"),
    ({"approximation": "gfitc", "alpha": 0.0}, "alpha = 0 needs epsilon > 0"),
    ({"M": 100}, "M = 100 .* 24 distinct rows"),
    ({"y": np.full(24, -1)}, "y holds -1, expected whole numbers 0 ... 2"),
])
def test_bad_settings_of_training_get_a_clear_error(change, message):
    kernels, _, X, y, noise = problem()
    with pytest.raises(ValueError, match=message):
        fit(**({"kernels": kernels, "X": X, "y": y, "noise": noise, "M": 4, "iterations": 1} | change))


@pytest.mark.parametrize(("change", "message"), [
    ({"data": [(np.zeros((2, 2)), np.zeros(2))]}, "need size = N"),
    ({"data": [(np.zeros((2, 2)), np.zeros(2))], "size": 2, "approximation": "ep"}, "every datum"),
    ({"data": [(np.full((2, 2), np.nan), np.zeros(2))], "size": 2}, r"X of batch 1 holds 4 value\(s\) that are NaN"),
    ({"data": [(np.zeros((2, 2)), np.full(2, 3))], "size": 2}, "y holds 3, expected whole numbers 0 ... 2"),
    ({"data": (np.zeros((4, 2)), np.zeros(3))}, r"y has shape \(3,\), expected \(4,\)"),
    ({"data": (np.zeros(4), np.zeros(4))}, r"X has shape \(4,\), expected \(N, D\)"),
    ({"rate": -1.0}, r"rate = -1\.0 must be at least 0"),
    ({"rate": lambda steps: 0.01 if steps < 1 else np.nan, "batch": 8}, "rate = nan"),
    ({"step": 2.0}, r"step = 2\.0 must be in \(0, 1\]"),
    ({"batch": 0}, "batch = 0 must be a whole number"),
    ({"spread": np.ones(3)}, r"spread has shape \(3,\), expected \(2,\), one number per column of Z"),
    ({"spread": [1.0, -1.0]}, "spread = .* must be positive"),
    ({"epochs": 0}, "epochs = 0 must be a whole number"),
    ({"approximation": "none"}, "approximation = 'none' is unknown"),
    ({"optimise": ("kernel", "Z")}, r"got \['kernel'\]"),
    ({"optimise": "Z"}, r"such as \('Z',\)"),
    ({"data": ((np.zeros((2, 2)), np.zeros(2)),) * 3, "size": 6}, "tuple of 3"),
    ({"data": (np.zeros((4, 2)), [0, 1, 2, np.nan])}, "y holds 1 value.* NaN"),
    ({"data": (np.zeros((4, 2)), ["0", "1", "2", "0"])}, "y must be an array of real numbers"),
    ({"data": (np.zeros((4, 3)), np.zeros(4))}, r"Z\[0\] has 2 column\(s\), expected 3"),
    ({"Z": "kmeans"}, r"Z = 'kmeans' must be an array.*choose_pseudo_inputs"),
    ({"data": [], "size": 4}, "data gave no batches"),
    ({"data": 5, "size": 4}, "data = 5 must be a tuple"),
    ({"data": iter([(np.zeros((2, 2)), np.zeros(2))]), "size": 2, "epochs": 3}, "gives its batches once, but epochs = 3"),
    ({"data": [(np.zeros((40, 2)), np.zeros(40))], "size": 4}, "batch 1 has 40 rows, more than size = 4"),
    ({"data": [np.zeros((40, 2)), np.zeros(40)], "size": 40}, r"batch 1 of data is of type ndarray, expected a pair.* tuple"),
    ({"data": pd.DataFrame({"x1": [0.0], "x2": [0.0]}), "size": 4}, "batch 1 of data is of type str"),
    ({"data": [(1.0, 1.0)], "size": 4}, r"X of batch 1 has shape \(\)"),
])
def test_bad_settings_of_batches_get_a_clear_error(change, message):
    kernels, Z, X, y, noise = problem()
    with pytest.raises(ValueError, match=message):
        fit_minibatch(**({"kernels": kernels, "Z": Z, "data": (X, y), "noise": noise} | change))


def test_labels_of_another_class_are_refused_before_the_learning():
    kernels, Z, X, y, noise = problem()
    y[-1] = 3
    with pytest.raises(ValueError, match="y holds 3"):
        fit_minibatch(kernels, Z, (X, y), noise=noise, batch=1, callback=lambda _: pytest.fail("it learns"))


def test_blocks_without_a_number_of_classes_are_an_error():
    with pytest.raises(ValueError, match="give classes, the number of classes"):
        fit_minibatch(SquaredExponential(), np.zeros((2, 2)), [(np.zeros((2, 2)), np.zeros(2))], size=2)


def stop_after(steps):
    seen = []

    def callback(record):
        seen.append(record)
        if len(seen) == steps:
            raise KeyboardInterrupt

    return callback


@pytest.mark.filterwarnings("ignore:EP has not converged")
@pytest.mark.parametrize(("approximation", "update", "optimiser"), [("ep", "inner", "adaptive"), ("ep", "outer", "adam"),
                                                             ("ep", "outer", "lbfgs"), ("vi", "joint", "lbfgs")])
def test_an_interrupt_keeps_what_was_learnt(approximation, update, optimiser):
    _, _, X, y, _ = problem(N=40)
    options = {**SMALL, "approximation": approximation, "update": update, "optimiser": optimiser}
    model = fit(None, X, y, callback=stop_after(4), **options)
    assert "interrupted" in model.message
    assert 4 <= model.evaluations < 25
    if optimiser == "lbfgs":
        assert model.fit.log_evidence == pytest.approx(model.trace().max(), abs=1e-3)
    else:
        assert not np.allclose(model.noise, 0.1)
    assert model.predict_y(X).sum(axis=1) == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("approximation", ["ep", "gfitc", "sep", "vi"])
def test_an_interrupt_of_learning_on_batches_keeps_what_was_learnt(approximation):
    kernels, Z, X, y, noise = problem()
    seen = []

    def callback(record):
        seen.append(record.parameters["noise"])
        if len(seen) == 5:
            raise KeyboardInterrupt

    model = fit_minibatch(kernels, Z, (X, y), approximation=approximation, noise=noise, batch=8, epochs=50, callback=callback)
    assert model.message == "interrupted; what was learnt so far is kept"
    assert np.array_equal(model.noise, seen[-1]) and not np.array_equal(model.noise, noise)
    assert model.predict_y(X).sum(axis=1) == pytest.approx(1, abs=1e-8)


def test_until_every_datum_had_its_turn_the_sum_is_the_mean_over_the_batches():
    """Steps 1, 1/2, 1/3, 1/4 and then the batch's share, a quarter, one by one from the sums before."""
    kernels, Z, X, y, noise = problem()
    batches = [(X[rows], y[rows]) for rows in np.array_split(np.arange(24), 4)] * 2
    options = {"noise": noise, "size": 24, "rate": 0}
    model, sites = fit_minibatch(kernels, Z, batches, **options), None
    for number, batch in enumerate(batches, start=1):
        sites = fit_minibatch(kernels, Z, [batch], step=max(1 / number, 0.25), sites=sites, **options).fit.sites
    for found, expected in zip(model.fit.sites.precisions[0], sites.precisions[0], strict=True):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("approximation", ["ep", "gfitc", "sep"])
def test_the_callers_arrays_are_not_changed_by_learning(approximation):
    kernels, Z, X, y, noise = problem()
    for array in (X, y, noise, *Z):
        array.setflags(write=False)
    fit_minibatch(kernels, Z, (X, y), approximation=approximation, noise=noise, batch=8, epochs=2)
    fit(kernels, X, y, Z=Z, noise=noise, approximation=approximation, iterations=2)


@pytest.mark.parametrize("approximation", ["ep", "gfitc"])
def test_the_sums_hold_every_site_on_the_features_of_its_last_visit(approximation):
    """Those that wait for their turn stand on the features on which the sums were made."""
    kernels, Z, X, y, noise = problem()
    values, _, C = check_model(kernels, Z, noise, None, y, X.shape[1])
    method = Method.checked(approximation, check_power(None, approximation), None, C, 1e-6)
    learner = minibatch._PerDatum(method, len(X), values, ("kernels", "Z"), np.ones(2), lambda steps: 0.1, None)
    batches = InMemory((X, y), 6, 0)
    for _ in range(2):
        learner.begin_epoch(batches)
        features = [learner.maps(X).of(c).A.copy() for c in range(C)]
        for rows, part, labels in batches.epoch():
            for c, A in enumerate(features):
                A[:, rows] = learner.maps(part).of(c).A     # the parameters move only after the moments are taken
            learner.step((rows, part, labels.astype(int)))
            tau, nu = (learner.all_factors.scatter(each) for each in (learner.sites.tau, learner.sites.nu))
            for c, A in enumerate(features):
                expected = np.tril(A * tau[c] @ A.T)
                np.testing.assert_allclose(np.tril(learner.precisions[c]), expected, rtol=1e-8, atol=1e-9)
                np.testing.assert_allclose(learner.shifts[c], A @ nu[c], rtol=1e-8, atol=1e-9)


def test_a_fit_in_the_middle_of_learning_is_not_written_into():
    d, seen = three_classes(0, N=40), []

    def look(record):
        fit = record.result()
        seen.append((fit.sites.tau, fit.sites.tau.copy()))

    fit_minibatch(SquaredExponential(1.0, 1.0), d.X[:5], (d.X, d.y), approximation="ep", batch=10, epochs=2, callback=look)
    for now, then in seen:
        np.testing.assert_array_equal(now, then)
    assert np.abs(seen[-1][0] - seen[0][0]).max() > 0.1


@pytest.mark.parametrize("how", ["arrays", "list", "generator"])
@pytest.mark.parametrize("points", ["one", "in a line"])
def test_the_units_of_the_inputs_do_not_matter_where_pseudo_inputs_do_not_differ(points, how):
    _, Z, X, y, noise = problem()
    Z = Z[0][:1] if points == "one" else np.column_stack([Z[0][:, 0], np.zeros(len(Z[0]))])
    scales = np.array([1e-3, 1e3])

    def learn(X, Z, kernel):
        data = {"arrays": (X, y), "list": [(X[:12], y[:12]), (X[12:], y[12:])]}
        data["generator"] = (batch for batch in data["list"])
        return fit_minibatch(kernel, Z, data[how], noise=noise, size=24, classes=3, batch=8, rate=0.05)

    plain = learn(X, Z, SquaredExponential(1.0, [1.0, 1.0]))
    scaled = learn(X * scales, Z * scales, SquaredExponential(1.0, scales))
    assert np.abs(plain.Z - Z).max() > 0.01
    np.testing.assert_allclose(scaled.Z / scales, plain.Z, rtol=1e-6, atol=1e-9)
    assert scaled.evaluations == plain.evaluations


@pytest.mark.parametrize("approximation", ["sep", "ep"])
def test_the_evidence_of_a_fit_on_batches_is_that_of_its_last_step(approximation):
    kernels, Z, X, y, noise = problem()
    fits = []
    model = fit_minibatch(kernels, Z, (X, y), approximation=approximation, noise=noise, batch=24, epochs=4, rate=0,
                          callback=lambda record: fits.append(record.result()))
    assert [one.sweeps for one in fits] == [1, 2, 3, 4]
    assert (model.fit.sweeps, model.fit.log_evidence) == (4, fits[-1].log_evidence)
    with pytest.warns(RuntimeWarning, match="not converged after 0 sweeps"):
        before = multiclass.infer(kernels, Z, X, y, noise=noise, approximation=approximation, sites=fits[-2].sites, max_sweeps=0)
    assert model.fit.log_evidence == pytest.approx(before.log_evidence, rel=1e-9)


@pytest.mark.parametrize("approximation", ["sep", "ep"])
def test_records_of_batches_always_say_the_evidence_and_steps_are_counted(approximation):
    _, _, X, y, _ = problem(N=40)
    seen = []
    model = fit_minibatch(SquaredExponential(), X[:4], (X, y), approximation=approximation, batch=20, epochs=8,
                          callback=lambda record: seen.append((record["step"], record["log_evidence"])))
    estimated = [step for step, value in seen if np.isfinite(value)]
    assert [step for step, _ in seen] == list(range(1, 17))
    assert estimated == ([1, 11] if approximation == "sep" else list(range(1, 17)))
    assert [record["step"] for record in model.history] == estimated and model.evaluations == 16


def test_a_rate_that_begins_at_zero_learns_later():
    _, _, X, y, _ = problem(N=40)
    still = fit_minibatch(SquaredExponential(), X[:4], (X, y), batch=20, epochs=4, rate=0)
    later = fit_minibatch(SquaredExponential(), X[:4], (X, y), batch=20, epochs=4, rate=lambda steps: 0.01 * steps)
    assert still.kernels.variance == 1.0 != later.kernels.variance


def test_labels_that_are_no_numbers_of_classes_are_refused():
    _, _, X, y, _ = problem(N=40)
    y = np.where(y == y.max(), 20_240_131, y)
    with pytest.raises(ValueError, match="the largest of the 40 labels is 20240131"):
        multiclass.infer(SquaredExponential(), X[:4], X, y)
    with pytest.raises(ValueError, match="the largest of the 40 labels is 20240131"):
        fit(None, X, y, M=4)


def test_a_bad_batch_of_a_stream_is_named_by_its_number():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.arange(40) % 3
    X[25, 1] = np.nan
    batches = [(X[start : start + 10], y[start : start + 10]) for start in range(0, 40, 10)]
    with pytest.raises(ValueError, match="X of batch 3 holds 1 value"):
        fit_minibatch([SquaredExponential(1.0, 1.0)] * 3, X[:4], batches, classes=3, size=40)
