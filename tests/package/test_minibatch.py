"""Learning on mini-batches: exact where it must be, close to L-BFGS where it may not."""

import re
import warnings

import numpy as np
import pytest

from pepcore import power_ep, training
from pepcore.kernels import Blurred, SquaredExponential
from pepcore.likelihoods import Poisson, Probit, StudentT
from pepcore.sites import ImproperCavityError
from pepcore.training import minibatch
from pepcore.training.coordinates import Coordinates
from pepcore.training.loop import Adam

KERNEL = SquaredExponential(2.0, [1.0, 1.0])


def problem(N=300, seed=0, label_noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    f = np.sin(2 * X[:, 0]) + X[:, 1]
    return X, f, np.where(f + label_noise * rng.normal(size=N) > 0, 1.0, -1.0)


@pytest.mark.filterwarnings("ignore:EP has not converged after 0 sweeps")
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_at_rate_zero_batches_lead_to_the_fixed_point_of_all_data(alpha):
    X, _, y = problem()
    Z = X[:12].copy()
    full = power_ep.infer(KERNEL, Z, X, y, Probit(), alpha=alpha, tolerance=1e-10)
    model = training.fit_minibatch(
        KERNEL, X, y, Probit(), Z=Z, alpha=alpha, rate=0.0, batch=32, epochs=15, max_sweeps=0
    )  # no sweep over all data: what the batches left is what is compared
    np.testing.assert_allclose(model.fit.sites.tau, full.sites.tau, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.fit.sites.nu, full.sites.nu, rtol=1e-6, atol=1e-9)
    assert model.fit.log_evidence == pytest.approx(full.log_evidence, abs=1e-9)
    np.testing.assert_array_equal(model.Z, Z)
    assert model.kernel.variance == KERNEL.variance


def test_the_posterior_that_is_returned_has_converged_on_all_data():
    X, _, y = problem()
    model = training.fit_minibatch(KERNEL, X, y, Probit(), Z=X[:12], batch=100, epochs=1)
    settled = power_ep.infer(model.kernel, model.Z, X, y, Probit(), alpha=0.5, tolerance=1e-10)
    for found, expected in zip(model.fit.predict_f(X), settled.predict_f(X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("alpha", "learnt"), [(0.0, ("kernel", "Z")), (1.0, ("Z",))])
def test_adam_comes_close_to_lbfgs(alpha, learnt):
    """At α = 1 six pseudo-inputs would learn a kernel of variance 3600, for which Adam needs many epochs: Z alone there."""
    X, _, y = problem(label_noise=1.5)
    options = {"M": 6, "alpha": alpha, "likelihood": Probit(), "optimise": learnt}
    batch = training.fit_minibatch(None, X, y, batch=100, epochs=60, rate=0.05, **options)
    full = training.fit(None, X, y, infer=power_ep.infer, max_evaluations=60, tolerance=1e-6, **options)
    start = full.trace()[0]
    assert batch.fit.log_evidence > start + 0.9 * (full.fit.log_evidence - start)


def test_an_estimate_from_every_batch_is_reported_and_unbiased_at_the_fixed_point():
    X, _, y = problem()
    Z = X[:12].copy()
    options = {"Z": Z, "alpha": 0.5, "rate": 0.0, "batch": 30}
    settled = training.fit_minibatch(KERNEL, X, y, Probit(), epochs=30, **options)
    last_epoch = settled.trace()[-10:]
    assert len(settled.history) == settled.evaluations == 300
    assert last_epoch.mean() == pytest.approx(settled.fit.log_evidence, abs=1e-6)
    assert last_epoch.std() > 1


def test_parameters_of_the_likelihood_and_of_the_blur_are_learnt():
    X, f, _ = problem()
    y = f + 0.2 * np.random.default_rng(1).standard_t(3, len(f))
    kernel = Blurred(SquaredExponential(1.0, 1.0), 0.1)
    options = {"M": 12, "alpha": 0.5, "likelihood": StudentT(3.0, 1.0)}
    model = training.fit_minibatch(kernel, X, y, batch=60, epochs=20, rate=0.1, **options)
    assert model.fit.likelihood.scale == pytest.approx(0.2, rel=0.3)
    assert model.kernel.widths != 0.1
    full = training.fit(kernel, X, y, infer=power_ep.infer, max_evaluations=40, **options)
    assert full.fit.likelihood.scale == pytest.approx(0.2, rel=0.3)
    fixed = training.fit(kernel, X, y, infer=power_ep.infer, max_evaluations=5, optimise=("kernel",), **options)
    assert fixed.fit.likelihood.scale == 1.0


def test_counts_are_learnt_too():
    X, f, _ = problem()
    y = np.random.default_rng(2).poisson(np.exp(f)).astype(float)
    model = training.fit_minibatch(None, X, y, Poisson(), M=15, alpha=0.5, batch=60, epochs=20)
    rate, _ = model.predict_y(X)
    assert np.corrcoef(rate, np.exp(f))[0, 1] > 0.9


def test_the_same_seed_gives_the_same_model():
    X, _, y = problem(N=80)
    one, two = (training.fit_minibatch(None, X, y, Probit(), M=5, epochs=2, batch=20, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.Z, two.Z)
    assert one.history == two.history


def test_what_is_looked_at_on_the_way_is_the_posterior_of_that_moment():
    X, _, y = problem(N=120)
    seen = {}

    def look(record):
        if record["step"] in (1, 8):
            seen[record["step"]] = record.result().predict_f(X)

    options = {"Z": X[:6].copy(), "batch": 30, "seed": 1}
    training.fit_minibatch(KERNEL, X, y, Probit(), epochs=2, callback=look, **options)
    assert list(seen) == [1, 8]
    assert np.abs(seen[1][0] - seen[8][0]).max() > 0.1
    still = {}
    settled = training.fit_minibatch(
        KERNEL,
        X,
        y,
        Probit(),
        epochs=40,
        rate=0.0,
        callback=lambda record: still.update(last=record.result().predict_f(X)),
        **options,
    )
    for mine, theirs in zip(still["last"], settled.predict_f(X), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(("rate", "batch"), [(0.1, 5), (0.1, 20), (0.3, 20)])
def test_features_that_move_under_the_sites_do_not_end_the_learning(rate, batch):
    """At α = 1 the amplitude runs away: what the sites add up to is soon that of features which are no more."""
    X, _, y = problem(label_noise=0.1)
    numbers = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # inference at the end need not converge
        model = training.fit_minibatch(
            *(None, X, y, Probit()),
            **{"M": 5, "alpha": 1.0, "rate": rate, "batch": batch, "epochs": 10},
            callback=lambda record: numbers.append((record["step"], np.isfinite(record.result().predict_f(X)).all())),
        )
    assert numbers == [(number, True) for number in range(1, 10 * 300 // batch + 1)]
    assert np.isfinite(model.fit.log_evidence)


@pytest.mark.filterwarnings("ignore:EP has not converged")  # at the end, on all data, which is not what is tested
@pytest.mark.parametrize("batch", [10, 50, 200])
@pytest.mark.parametrize("seed", [0, 3])
def test_outliers_whose_sites_are_negative_do_not_stop_the_sites(batch, seed):
    """At α = 0 a whole step takes Student-t's sites to where they leave no posterior."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0, 6, 200))[:, None]
    y = np.sin(2 * X[:, 0]) + 0.05 * rng.standard_t(2, size=200)
    moments = []
    model = training.fit_minibatch(
        *(SquaredExponential(1.0, 0.7), X, y, StudentT(4.0, 0.05)),
        **{"M": 12, "alpha": 0.0, "batch": batch, "epochs": 3, "max_sweeps": 20},
        callback=lambda record: moments.append(record.result().predict_f(X)),
    )
    steps = 3 * 200 // batch
    assert len(moments) == len(model.history) == steps and model.message == "3 epochs"
    assert np.isfinite(moments).all() and np.isfinite(model.trace()).all()
    assert model.fit.sites.tau.min() < 0


def test_sites_that_leave_no_posterior_begin_anew_without_the_negative_ones():
    X, f, _ = problem(N=60)
    values = {"kernel": KERNEL, "Z": X[:12].copy(), "likelihood": StudentT(4.0, 0.05)}
    learner = minibatch._Learner(X, f, 0.0, values, Coordinates((), np.ones(2)), 0.0, 1.0, 1e-6, 50)
    learner.tau[:] = np.where(np.arange(60) < 40, -5.0, 1.0)
    learner.renew()
    with pytest.raises(ImproperCavityError, match="sites of negative precision leave no proper posterior"):
        learner.result()
    learner.history.append(learner.step(np.arange(50, 60)))
    assert np.all(learner.tau[:40] == 0) and np.all(learner.tau[40:50] == 1)
    assert np.isfinite(learner.result().predict_f(X)).all()


def learner_of(X, y, alpha, optimise=(), rate=0.0):
    values = {"kernel": KERNEL, "Z": X[:12].copy(), "likelihood": Probit()}
    return minibatch._Learner(X, y, alpha, values, Coordinates(optimise, np.ones(2)), rate, 1.0, 1e-6, 50)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_the_sum_holds_every_site_on_the_features_of_its_last_visit(alpha):
    """Those that wait for their turn stand on the features on which the sum was made."""
    X, _, y = problem()
    learner = learner_of(X, y, alpha, ("kernel", "Z"), rate=0.1)
    for _ in range(2):
        learner.renew()
        A = learner._features(slice(None)).A.copy()
        for rows in np.array_split(np.arange(300), 5):
            A[:, rows] = learner._features(rows).A      # the parameters move only after the sites
            learner.step(rows)
            expected = A * learner.tau @ A.T
            np.testing.assert_allclose(learner.precision, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
            np.testing.assert_allclose(learner.shift, A @ learner.nu, rtol=1e-9, atol=1e-9 * np.abs(learner.shift).max())


def test_sites_of_positive_precision_never_widen_the_prior_however_fast_the_features_move():
    X, _, y = problem(label_noise=0.1)
    learner = learner_of(X, y, 1.0, ("kernel", "Z"), rate=0.5)
    for _ in range(5):
        learner.renew()
        for rows in np.array_split(np.arange(300), 15):
            learner.step(rows)
            assert learner.tau.min() >= 0
            assert np.linalg.eigvalsh(learner.precision)[0] >= -1e-9 * np.abs(learner.precision).max()


def test_a_batch_for_which_no_step_stands_leaves_sites_and_sum_as_they_were(monkeypatch):
    X, _, y = problem()
    learner = learner_of(X, y, 1.0)
    learner.renew()
    for rows in np.array_split(np.arange(300), 10):
        learner.step(rows)
    learner.renew()
    right, sites = learner.precision.copy(), learner.tau.copy()
    monkeypatch.setattr(minibatch, "unless_astray", lambda new, old: None)
    learner.step(np.arange(30))
    np.testing.assert_array_equal(learner.tau, sites)
    np.testing.assert_allclose(learner.precision, right, rtol=1e-12, atol=1e-12 * np.abs(right).max())


def test_adam_takes_the_steps_of_its_formula():
    rng = np.random.default_rng(0)
    adam, gradients = Adam(np.zeros(3), 0.1), rng.normal(size=(5, 3))
    mean, square, point = np.zeros(3), np.zeros(3), np.zeros(3)
    for t, gradient in enumerate(gradients, start=1):
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        point = point + 0.1 * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        before = adam.point
        np.testing.assert_allclose(adam.ascend(gradient), point, rtol=1e-12)
        assert before is not adam.point


def test_an_interrupt_keeps_what_was_learnt():
    X, _, y = problem(N=80)

    class Interrupting(Probit):
        calls = 0

        def log_moment(self, *arguments):
            type(self).calls += 1
            if self.calls == 25:
                raise KeyboardInterrupt
            return super().log_moment(*arguments)

    model = training.fit_minibatch(None, X, y, Interrupting(), M=5, epochs=50, batch=20)
    assert "interrupted" in model.message
    assert 5 < model.evaluations < 25
    assert model.fit.converged


@pytest.mark.parametrize("epochs", [1, 5])
def test_a_step_after_which_a_factorisation_fails_is_taken_back(small_variance, epochs):
    X, _, y = problem(N=80)
    with small_variance(2.1):
        model = training.fit_minibatch(KERNEL, X, y, Probit(), M=5, epochs=epochs, batch=80 // epochs, rate=0.06, alpha=1.0)
    assert 2.0 <= model.kernel.variance < 2.1
    assert ("1 epochs; the" if epochs == 1 else "stopped after") in model.message
    assert re.search("last .* is taken back: K_uu", model.message)
    assert model.fit.converged


def test_a_bar_is_shown_on_demand(capsys):
    X, _, y = problem(N=40)
    training.fit_minibatch(None, X, y, Probit(), M=3, epochs=2, progress=True)
    assert "epochs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"batch": 0}, "batch = 0"),
        ({"epochs": 1.5}, r"epochs = 1\.5"),
        ({"rate": -1.0}, r"rate = -1\.0"),
        ({"step": 2.0}, r"step = 2\.0"),
        ({"optimise": ("noise",)}, r"\['noise'\]"),
        ({"alpha": 1.5}, r"alpha = 1\.5"),
        ({"Z": "grid"}, "kmeans"),
    ],
)
def test_bad_settings_say_what_is_wrong(setting, message):
    X, _, y = problem(N=40)
    with pytest.raises(ValueError, match=message):
        training.fit_minibatch(None, X, y, Probit(), **({"M": 3, "epochs": 1} | setting))


@pytest.mark.filterwarnings("ignore:EP has not converged")
def test_whole_numbers_may_be_of_another_type():
    X, _, y = problem(N=40)
    model = training.fit_minibatch(None, X, y, Probit(), M=3, batch=10.0, epochs=np.float64(2), max_sweeps=np.int64(1))
    assert model.evaluations == 8


def test_the_callers_arrays_are_not_changed():
    X, _, y = problem(N=40)
    Z = X[:4].copy()
    for array in (X, y, Z):
        array.setflags(write=False)
    training.fit_minibatch(None, X, y, Probit(), Z=Z, epochs=2, batch=10)


def test_features_that_are_too_many_to_keep_give_the_same_model(monkeypatch):
    X, _, y = problem(N=80)
    learn = lambda: training.fit_minibatch(None, X, y, Probit(), M=5, epochs=2, batch=20)
    kept = learn()
    monkeypatch.setattr(minibatch, "STREAM_ELEMENTS", 0)
    assert learn().log_evidence == pytest.approx(kept.log_evidence, rel=1e-12)


@pytest.mark.parametrize(("limit", "stream"), [(400, False), (399, True)])
def test_the_last_fit_keeps_no_more_numbers_than_the_limit(limit, stream, monkeypatch):
    """Eighty data and five pseudo-inputs have four hundred."""
    X, _, y = problem(N=80)
    seen, infer = [], power_ep.infer

    def watched(*data, **options):
        seen.append(options["stream"])
        return infer(*data, **options)

    monkeypatch.setattr(minibatch.iterative, "infer", watched)
    monkeypatch.setattr(minibatch, "STREAM_ELEMENTS", limit)
    training.fit_minibatch(None, X, y, Probit(), M=5, epochs=1, batch=20)
    assert set(seen) == {stream}


def test_positive_parameters_stay_within_a_factor_of_a_thousand_million_and_places_are_free():
    coordinates = Coordinates(("noise", "Z"), np.array([2.0]))
    place, noise = coordinates.bounds({"Z": np.array([[4.0]]), "noise": 3.0})
    assert place == (None, None) and noise == pytest.approx((np.log(3e-9), np.log(3e9)))


def test_coordinates_there_and_back():
    values = {
        "kernel": SquaredExponential(2.0, [0.5, 3.0]),
        "likelihood": StudentT(4.0, 0.3),
        "noise": 0.1,
        "Z": np.arange(6.0).reshape(3, 2),
    }
    coordinates = Coordinates(("kernel", "noise", "Z", "likelihood"), np.array([1.0, 10.0]))
    point = coordinates.pack(values)
    assert point.shape == (3 + 1 + 1 + 6,)
    back = coordinates.unpack(point + np.log(2), values)
    np.testing.assert_allclose(back["kernel"].lengthscales, [1.0, 6.0])
    assert back["likelihood"].scale == pytest.approx(0.6)
    assert back["noise"] == pytest.approx(0.2)
    np.testing.assert_allclose(back["Z"], values["Z"] + np.log(2) * np.array([1.0, 10.0]))
    assert len(coordinates.bounds(values)) == len(point)


def test_what_starts_at_zero_cannot_be_learnt():
    X, _, y = problem(N=40)
    kernel = Blurred(SquaredExponential(1.0, 1.0), 0.0)
    with pytest.raises(ValueError, match=r"\['widths'\] cannot be learnt from a start at 0"):
        training.fit(kernel, X, y, M=3)


@pytest.mark.parametrize("rate", [0.0, 0.02])
@pytest.mark.parametrize("size", [15, 300])
def test_large_counts_do_not_run_away_at_alpha_zero(size, rate):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.round(size * np.exp(np.sin(X[:, 0])))
    options = {"M": 8, "alpha": 0.0, "epochs": 2, "batch": 20, "rate": rate}
    model = training.fit_minibatch(SquaredExponential(1.0, 1.0), X, y, Poisson(), **options)
    assert model.converged
    assert model.message == "2 epochs"


@pytest.mark.filterwarnings("ignore:EP has not converged after 0 sweeps")
def test_a_step_on_one_batch_of_all_data_is_a_damped_sweep():
    X, _, y = problem(N=40)
    Z = X[:8].copy()
    start = power_ep.infer(KERNEL, Z, X, y, Probit(), max_sweeps=0)
    for step in (1.0, 0.25):
        with pytest.warns(RuntimeWarning, match="not converged after 1 sweep"):
            sweep = power_ep.infer(KERNEL, Z, X, y, Probit(), step=step, max_sweeps=1)
        model = training.fit_minibatch(KERNEL, X, y, Probit(), Z=Z, rate=0.0, step=step, batch=40, epochs=1, max_sweeps=0)
        np.testing.assert_allclose(model.fit.sites.tau, sweep.sites.tau, rtol=1e-10)
        np.testing.assert_allclose(model.fit.sites.nu, sweep.sites.nu, rtol=1e-10)
        assert model.trace() == pytest.approx([start.log_evidence], rel=1e-12)


def test_a_rate_that_throws_the_parameters_far_away_ends_without_an_error_of_the_kernel():
    X = np.random.default_rng(0).normal(size=(60, 1))
    model = training.fit_minibatch(None, X, np.sign(X[:, 0]), Probit(), M=5, rate=1e3, batch=13, epochs=5)
    assert all(np.all(value > 0) and np.all(np.isfinite(value)) for value in model.kernel.parameters.values())
