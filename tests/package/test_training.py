import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from pepcore import datasets, exact, multiclass, power_ep, training
from pepcore.kernels import Matern52, SquaredExponential
from pepcore.likelihoods import Gaussian, Poisson, Probit, StudentT
from pepcore.training import lbfgs, search, starts
from pepcore.training.coordinates import Coordinates, open_box


def data(seed=0, N=120):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(N, 2)) * [1.0, 100.0]
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=N)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_fit_ends_where_the_gradient_vanishes(alpha):
    X, y = data()
    model = training.fit(
        SquaredExponential(1.0, 1.0), X / [1.0, 100.0], y, M=8, alpha=alpha, max_evaluations=3000, tolerance=1e-13
    )
    assert model.converged
    gradient = model.fit.gradient
    assert abs(gradient["variance"] * model.kernel.variance) < 1e-2
    assert abs(gradient["noise"] * model.noise) < 1e-2
    assert np.abs(gradient["Z"]).max() < 5e-2


def test_a_coarser_tolerance_ends_the_search_sooner():
    X, y = data(N=60)
    fine, coarse = (training.fit(None, X, y, M=6, tolerance=t, max_evaluations=400).evaluations for t in (1e-10, 1e-2))
    assert coarse < fine


def creeping(**settings):
    """Learning that takes all of its 200 evaluations, and gains less than a nat in the last 170."""
    X, y = data()
    return training.fit(None, X, y, M=30, alpha=0.5, max_evaluations=200, **settings)


def test_a_search_that_hardly_rises_ends_as_converged():
    long, short = creeping(), creeping(least_rise=0.03)
    assert short.converged and not long.converged
    assert short.message == "10 steps raised the log evidence by less than 0.03"
    assert short.evaluations < 0.7 * long.evaluations
    assert 0 <= long.log_evidence - short.log_evidence < 0.5
    assert np.array_equal(short.trace(), long.trace()[:short.evaluations])  # the same steps, as far as it went


def test_a_search_whose_steps_all_gain_more_ends_as_without_the_test():
    X, y = data(N=60)
    one, other = (training.fit(None, X, y, M=6, max_evaluations=15, least_rise=rise) for rise in (0.0, 1e-9))
    assert np.array_equal(one.trace(), other.trace())
    assert one.message == "15 evaluations were not enough"


def test_each_start_has_ten_steps_of_its_own():
    X, y = data(N=60)
    model = training.fit(None, X, y, M=6, restarts=3, least_rise=1e9)
    assert model.converged and model.evaluations >= 3 * 11


def test_a_narrow_valley_takes_few_evaluations():
    """With the memory of ten steps that L-BFGS has by default, or with thirty, it takes some 2500."""
    data = datasets.load("energy")
    (X, _), (y, _) = datasets.standardise(data.X, data.X), datasets.standardise(data.y, data.y)
    model = training.fit(None, X, y, M=10, alpha=0.6, max_evaluations=1500)
    assert model.converged


def test_fit_finds_the_noise_and_the_irrelevant_input():
    X, y = data(N=200)
    model = training.fit(None, X, y, M=20, alpha=0.5)
    assert 0.005 < model.noise < 0.02  # 0.1² was put in
    assert model.kernel.lengthscales[1] / 100 > 5 * model.kernel.lengthscales[0]


def test_fit_improves_the_evidence_and_reports_every_evaluation():
    X, y = data()
    model = training.fit(None, X, y, M=10, max_evaluations=40)
    assert len(model.history) == model.evaluations >= 10
    assert model.fit.log_evidence == pytest.approx(model.trace().max(), rel=1e-9)
    assert model.fit.log_evidence > model.trace()[0] + 10


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_classifier_is_learnt_by_the_same_function(alpha):
    X, f = data(N=80)
    labels = np.where(f > 0, 1.0, -1.0)
    options = {"infer": power_ep.infer, "likelihood": Probit(), "alpha": alpha, "M": 8, "max_evaluations": 25}
    model = training.fit(None, X, labels, **options)
    assert model.fit.converged
    assert model.noise is None
    assert model.fit.log_evidence > model.trace()[0] + 1
    assert np.mean(labels * model.predict_f(X)[0] > 0) > 0.9


def test_labels_start_at_their_own_variance():
    X, _ = data(N=40)
    y = np.where(np.arange(40) < 5, 1.0, -1.0)
    options = {"infer": power_ep.infer, "likelihood": Probit(), "M": 4, "optimise": ("Z",), "max_evaluations": 0}
    assert training.fit(None, X, y, **options).kernel.variance == pytest.approx(y.var())


def test_a_model_of_inference_without_pseudo_inputs_has_none():
    X, y = data(N=20)
    assert training.fit(None, X, y, infer=exact.regression, max_evaluations=2).Z is None


def test_units_of_the_inputs_do_not_matter():
    X, y = data()
    one = training.fit(None, X, y, M=8, max_evaluations=30)
    other = training.fit(None, X * [1e4, 1e-3], y, M=8, max_evaluations=30)
    assert other.fit.log_evidence == pytest.approx(one.fit.log_evidence, rel=1e-4)


def test_only_what_is_asked_for_is_learnt():
    X, y = data()
    Z = X[:7].copy()
    model = training.fit(Matern52(1.0, [1.0, 50.0]), X, y, Z=Z, noise=0.3, optimise=("kernel",), max_evaluations=20)
    np.testing.assert_array_equal(model.Z, Z)
    assert model.noise == 0.3
    assert model.kernel.variance != 1.0


def test_the_same_seed_gives_the_same_model():
    X, y = data()
    one, two = (training.fit(None, X, y, M=8, Z="subset", max_evaluations=20, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.Z, two.Z)


def interrupting(after):
    calls = 0

    def infer(kernel, Z, X, y, noise, alpha):
        nonlocal calls
        calls += 1
        if calls == after:
            raise KeyboardInterrupt
        return power_ep.regression(kernel, Z, X, y, noise=noise, alpha=alpha)

    return infer


def test_an_interrupt_keeps_the_best_so_far():
    X, y = data()
    model = training.fit(None, X, y, M=8, infer=interrupting(after=12), restarts=3)
    assert model.evaluations == 11
    assert "interrupted" in model.message
    assert not model.converged
    assert model.fit.log_evidence == pytest.approx(model.trace().max(), rel=1e-9)


@pytest.mark.parametrize(("owner", "name", "after"), [
    (SquaredExponential, "with_parameters", 8),  # on the way from the optimiser's vector to a kernel
    (search.Search, "_objective", 8),  # in SciPy
    (lbfgs, "starting_points", 2),  # between two starts
])
def test_an_interrupt_outside_of_inference_keeps_the_best_so_far(monkeypatch, owner, name, after):
    original, calls = getattr(owner, name), []

    def interrupted(*args, **options):
        calls.append(name)
        if len(calls) == after:
            raise KeyboardInterrupt
        return original(*args, **options)

    monkeypatch.setattr(owner, name, interrupted)
    X, y = data()
    model = training.fit(None, X, y, M=8, restarts=3, max_evaluations=20)
    assert len(calls) == after
    assert "interrupted" in model.message
    assert model.fit.log_evidence == pytest.approx(model.trace().max(), rel=1e-9)


def test_an_interrupt_before_anything_was_found_is_passed_on():
    X, y = data()
    with pytest.raises(KeyboardInterrupt):
        training.fit(None, X, y, M=8, infer=interrupting(after=1))


def test_kmeans_centres_lie_among_the_data_and_differ():
    X, _ = data(N=500)
    Z = training.choose_pseudo_inputs(X, 30)
    assert Z.shape == (30, 2)
    assert len(np.unique(Z, axis=0)) == 30
    assert np.all((Z - X.min(axis=0) >= 0) & (X.max(axis=0) - Z >= 0))


def test_kmeans_of_many_rows_looks_at_a_sample_of_all_of_them(monkeypatch):
    monkeypatch.setattr(starts, "KMEANS_ROWS", 200)
    X = np.repeat([[0.0], [10.0]], 2000, axis=0) + np.random.default_rng(0).normal(size=(4000, 1))
    assert np.sort(training.choose_pseudo_inputs(X, 2)[:, 0]) == pytest.approx([0, 10], abs=0.5)


@pytest.mark.parametrize(("X", "message"), [(np.arange(10.0), "X"), ([[0.0], [np.nan]], "NaN")])
def test_starts_check_the_inputs(X, message):
    with pytest.raises(ValueError, match=message):
        training.choose_pseudo_inputs(X, 1)
    with pytest.raises(ValueError, match=message):
        training.default_kernel(X, np.zeros(len(X)))


@pytest.mark.parametrize("seed", range(3))
def test_counts_start_at_a_variance_of_one(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    counts = rng.poisson(np.exp(3 + 2 * np.sin(2 * X[:, 0]))).astype(float)
    model = training.fit(None, X, counts, M=8, alpha=0.0, infer=power_ep.infer, likelihood=Poisson(), max_evaluations=40)
    assert -400 < model.log_evidence < 0
    on_batches = training.fit_minibatch(None, X, counts, Poisson(), M=8, batch=20, epochs=5)
    assert on_batches.predict_y(X)[0].max() < 1e4


def test_a_search_that_is_walled_in_keeps_its_best_point():
    """From a variance of thousands most counts are astronomical, and L-BFGS, between walls, proposes NaN."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    counts = rng.poisson(np.exp(3 + 2 * np.sin(2 * X[:, 0]))).astype(float)
    start = training.default_kernel(X, counts)
    with pytest.warns(RuntimeWarning):
        model = training.fit(start, X, counts, M=8, alpha=0.0, infer=power_ep.infer, likelihood=Poisson(), max_evaluations=40)
    assert model.log_evidence == np.nanmax(model.trace())


def test_names_that_inference_does_not_have_leave_nothing_to_learn():
    X, y = data(N=20)
    with pytest.raises(ValueError, match="name some of kernel, noise, Z"):
        training.fit(None, X, y, M=3, optimise=("likelihood",))


def test_starts_take_lists():
    X = [[0.0], [1.0], [2.0]]
    assert training.choose_pseudo_inputs(X, 2, "subset").shape == (2, 1)
    assert training.default_kernel(X, [0.0, 1.0, 5.0]).lengthscales.shape == (1,)


def test_random_subset_takes_distinct_rows():
    X = np.repeat(np.arange(6.0)[:, None], 10, axis=0)
    Z = training.choose_pseudo_inputs(X, 6, "subset")
    np.testing.assert_array_equal(np.sort(Z[:, 0]), np.arange(6.0))


def test_unknown_names_to_optimise_are_an_error():
    X, y = data()
    with pytest.raises(ValueError, match=r"\['lengthscale'\]"):
        training.fit(None, X, y, M=5, optimise=("lengthscale",))


def test_progress_bar_counts_evaluations(capsys):
    X, y = data()
    training.fit(None, X, y, M=5, max_evaluations=5, progress=True)
    assert "evaluations" in capsys.readouterr().err


def counting(sweeps):
    """`power_ep.infer`, which notes how many sweeps each evaluation took and from which sites it started."""

    def infer(kernel, Z, X, y, likelihood, alpha, sites=None):
        fit = power_ep.infer(kernel, Z, X, y, likelihood, alpha=alpha, sites=sites)
        sweeps.append((sites, fit.sites, fit.sweeps))
        return fit

    return infer


def test_every_evaluation_starts_from_the_sites_of_the_one_before():
    X, f = data(N=80)
    seen, options = [], {"likelihood": Probit(), "M": 8, "max_evaluations": 8}
    training.fit(None, X, np.where(f > 0, 1.0, -1.0), infer=counting(seen), **options)
    assert seen[0][0] is None
    assert all(start is before[1] for before, (start, _, _) in zip(seen, seen[1:], strict=False))


def test_a_given_start_of_the_sites_is_left_alone():
    X, f = data(N=80)
    y = np.where(f > 0, 1.0, -1.0)
    sites = power_ep.infer(SquaredExponential(1.0, [1.0, 100.0]), X[:8], X, y, Probit()).sites
    seen, options = [], {"likelihood": Probit(), "Z": X[:8], "max_evaluations": 5}
    training.fit(None, X, y, infer=counting(seen), sites=sites, **options)
    assert all(start is sites for start, _, _ in seen)


def test_every_restart_begins_with_sites_that_say_nothing():
    X, f = data(N=60)
    seen, options = [], {"likelihood": Probit(), "M": 5, "restarts": 3, "max_evaluations": 2}
    training.fit(None, X, np.where(f > 0, 1.0, -1.0), infer=counting(seen), **options)
    assert sum(start is None for start, _, _ in seen) == 3


def test_where_a_factorisation_fails_the_search_steps_back(small_variance):
    X, y = data()
    free = training.fit(SquaredExponential(1.0, [1.0, 100.0]), X, 5 * y, M=8, max_evaluations=30)
    assert free.kernel.variance > 3.0
    with small_variance(3.0):
        model = training.fit(SquaredExponential(1.0, [1.0, 100.0]), X, 5 * y, M=8, max_evaluations=30)
    assert np.isnan(model.trace()).any()
    assert model.kernel.variance < 3.0
    assert model.fit.log_evidence == pytest.approx(np.nanmax(model.trace()), rel=1e-12)
    assert model.fit.log_evidence > model.trace()[0] + 10


def test_a_start_that_cannot_be_factorised_says_what_to_look_for(small_variance):
    X, y = data()
    with small_variance(0.5), pytest.raises(LinAlgError, match="at the start; look for extreme values"):
        training.fit(SquaredExponential(1.0, 1.0), X, y, M=8, max_evaluations=5)


def test_restarts_keep_the_best():
    X, y = data()
    bad = SquaredExponential(1e-3, [1e3, 1e5])
    single = training.fit(bad, X, y, M=8, noise=10.0, max_evaluations=15)
    several = training.fit(bad, X, y, M=8, noise=10.0, max_evaluations=15, restarts=4)
    assert several.fit.log_evidence >= single.fit.log_evidence
    assert several.evaluations > single.evaluations


def test_restarts_keep_the_best_and_not_the_last():
    """The first start is nearly an optimum; the others begin elsewhere and have two evaluations."""
    X, y = data()
    good = training.fit(None, X, y, M=8, max_evaluations=60)
    several = training.fit(good.kernel, X, y, Z=good.Z, noise=good.noise, restarts=4, max_evaluations=2)
    assert several.trace()[-1] < several.trace().max() - 1
    assert several.fit.log_evidence == pytest.approx(several.trace().max(), rel=1e-12)


@pytest.mark.parametrize("Z", ["subset", "given"])
def test_restarts_scatter_all_but_given_pseudo_inputs(Z):
    X, y = data()
    seen = []

    def infer(kernel, Z, X, y, noise, alpha):
        seen.append((kernel.variance, noise, Z))
        return power_ep.regression(kernel, Z, X, y, noise=noise, alpha=alpha)

    given = X[:7].copy() if Z == "given" else Z
    training.fit(None, X, y, M=7, Z=given, infer=infer, restarts=3, max_evaluations=1, optimise=("kernel", "noise"))
    variances, noises, places = zip(*seen, strict=True)
    assert len(set(variances)) >= 3 and len(set(noises)) >= 3
    assert all(np.array_equal(points, places[0]) for points in places) == (Z == "given")


def test_restarts_scatter_each_lengthscale_by_itself():
    X, y = data()
    seen = []

    def infer(kernel, X, y, noise):
        seen.append(kernel.lengthscales / kernel.lengthscales[0])
        return exact.regression(kernel, X, y, noise=noise)

    training.fit(None, X, y, infer=infer, restarts=3, max_evaluations=1)
    assert len({float(ratios[1]) for ratios in seen}) >= 3


@pytest.mark.parametrize("scale", [1.0, 7.0])
def test_learning_starts_at_the_scales_of_the_data(scale):
    X, y = data()
    seen = []

    def infer(kernel, X, y, noise):
        seen.append((kernel.variance, noise))
        return exact.regression(kernel, X, y, noise=noise)

    training.fit(None, X, scale * y, infer=infer, max_evaluations=1)
    assert seen[0] == pytest.approx((np.var(scale * y), 0.1 * np.var(scale * y)), rel=1e-9)


def test_inference_does_not_start_from_sites_that_have_not_converged():
    X, y = data(N=40)
    given = []

    def infer(kernel, Z, X, y, likelihood, sites=None):
        given.append(sites)
        fit = power_ep.infer(kernel, Z, X, y, likelihood, sites=sites)
        return replace(fit, converged=len(given) != 2)

    training.fit(None, X, np.sign(y), M=4, infer=infer, likelihood=Probit(), max_evaluations=4)
    assert given[0] is None and given[1] is not None and given[2] is None and given[3] is not None


@pytest.mark.parametrize("learnt", ["Z", "noise"])
def test_restarts_leave_alone_what_is_not_learnt(learnt):
    X, y = data()
    seen = []

    def infer(kernel, Z, X, y, noise, alpha):
        seen.append((kernel.variance, noise))
        return power_ep.regression(kernel, Z, X, y, noise=noise, alpha=alpha)

    training.fit(None, X, y, M=7, noise=0.05, infer=infer, restarts=3, max_evaluations=1, optimise=(learnt,))
    variances, noises = (set(values) for values in zip(*seen, strict=True))
    assert len(variances) == 1
    assert (noises == {0.05}) == (learnt == "Z")


def test_an_interrupted_search_says_that_nothing_has_converged():
    X, y = data()
    stop = interrupting(after=4)

    def infer(kernel, Z, X, y, noise, alpha):
        return replace(stop(kernel, Z, X, y, noise, alpha), converged=False)

    model = training.fit(None, X, y, M=8, infer=infer)
    assert model.message.startswith("interrupted") and "inference has not converged" in model.message


@pytest.mark.parametrize("noise", [1e-1, 1e-2, 1e-3, 1e-4])
def test_no_start_of_the_noise_leads_into_a_corner(noise):
    """The gradient of the evidence is thousands of nats there: a first step of that length ends where all is noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(60, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=60)
    model = training.fit(SquaredExponential(1.0, 1.0), X, y, noise=noise, infer=exact.regression)
    assert model.converged
    assert model.noise == pytest.approx(0.3**2, rel=0.5)
    assert model.kernel.lengthscales == pytest.approx(0.8, rel=0.3)


@pytest.mark.parametrize("bounds", [[(-1.0, 1.0), (None, None)], [(None, None)]])
def test_a_box_with_an_opening_stays_as_it_is(bounds):
    assert open_box(bounds) == bounds


def test_the_coordinate_without_an_upper_bound_does_not_overflow():
    coordinates, values = Coordinates(("noise",), np.ones(1)), {"noise": 1.0}
    assert open_box(coordinates.bounds(values))[-1][1] is None
    assert np.isfinite(coordinates.unpack(np.array([1e4]), values)["noise"])
    assert coordinates.unpack(np.array([-1e4]), values)["noise"] > 0  # nor vanish, where nothing bounds a step of Adam


@pytest.mark.parametrize(("max_evaluations", "converged"), [(3, False), (1000, True)])
def test_a_model_says_whether_the_optimiser_was_done(max_evaluations, converged):
    X, y = data()
    model = training.fit(SquaredExponential(1.0, [1.0, 100.0]), X, y, Z=X[:5], optimise=("kernel", "noise"),
                         max_evaluations=max_evaluations)
    assert model.converged is converged
    assert ("CONVERGENCE" in model.message) is converged


def boasting(unsettled):
    """`power_ep.regression` that says a million nats, and that it has not converged, where `unsettled(kernel)`."""

    def infer(kernel, Z, X, y, noise, alpha):
        fit = power_ep.regression(kernel, Z, X, y, noise=noise, alpha=alpha)
        return replace(fit, log_evidence=1e6, converged=False) if unsettled(kernel) else fit

    return infer


def test_an_evidence_that_has_not_converged_is_refused_and_the_search_goes_on():
    X, y = data()
    options = {"M": 8, "max_evaluations": 30}
    start = SquaredExponential(1.0, [1.0, 100.0])
    assert training.fit(start, X, 5 * y, **options).kernel.variance > 3.0
    model = training.fit(start, X, 5 * y, infer=boasting(lambda kernel: kernel.variance > 3.0), **options)
    assert model.fit.converged
    assert np.isnan(model.trace()).any()
    assert model.kernel.variance < 3.0
    assert model.fit.log_evidence == np.nanmax(model.trace()) > model.trace()[0] + 10


def test_a_start_that_has_not_converged_is_left_and_the_search_arrives_all_the_same():
    X, y = data()
    start = SquaredExponential(1.0, [1.0, 100.0])
    model = training.fit(start, X, y, M=8, infer=boasting(lambda kernel: kernel.variance == 1.0))
    assert model.trace()[0] == 1e6
    assert model.fit.converged and model.converged
    assert model.fit.log_evidence == pytest.approx(training.fit(start, X, y, M=8).fit.log_evidence, abs=0.1)


def test_a_failed_evaluation_does_not_end_the_search():
    X, y = data()
    calls = []

    def infer(kernel, Z, X, y, noise, alpha):
        calls.append(1)
        if len(calls) == 2:
            raise LinAlgError
        return power_ep.regression(kernel, Z, X, y, noise=noise, alpha=alpha)

    start = SquaredExponential(1.0, [1.0, 100.0])
    model = training.fit(start, X, y, M=8, infer=infer)
    assert np.isnan(model.trace()[1])
    assert model.fit.log_evidence == pytest.approx(training.fit(start, X, y, M=8).fit.log_evidence, abs=0.1)


def test_an_evidence_whose_gradient_is_not_finite_is_refused():
    X, y = data()
    calls = []

    def infer(kernel, Z, X, y, noise, alpha):
        fit = power_ep.regression(kernel, Z, X, y, noise=noise, alpha=alpha)
        calls.append(1)
        return replace(fit, log_evidence=1e6, _gradient=lambda: fit.gradient | {"noise": np.nan}) if len(calls) == 3 else fit

    model = training.fit(None, X, y, M=5, infer=infer, max_evaluations=20)
    assert len(calls) > 3
    assert model.log_evidence < 1e5


def test_a_search_in_which_nothing_converges_keeps_the_best_and_says_so():
    X, f = data(N=80)
    options = {"infer": power_ep.infer, "likelihood": Probit(), "max_sweeps": 2, "M": 8, "max_evaluations": 10}
    with pytest.warns(RuntimeWarning, match="not converged after 2 sweeps"):
        model = training.fit(None, X, np.where(f > 0, 1.0, -1.0), **options)
    assert not model.fit.converged and not model.converged
    assert "inference has not converged" in model.message
    assert model.fit.log_evidence == model.trace().max() > model.trace()[0] + 1


@pytest.mark.filterwarnings("ignore:EP has not converged")
@pytest.mark.parametrize("seed", [0, 7, 15])
def test_learning_leaves_a_start_at_which_student_t_claims_a_hundred_thousand_nats(seed):
    """Told a tenth of the noise, EP stops at sites that are not at rest, and what it calls the evidence is none."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-3, 3, 60))[:, None]
    y = np.sin(2 * X[:, 0]) + 0.15 * rng.normal(size=60)
    y[rng.choice(60, 9, replace=False)] += rng.choice([-1, 1], 9) * rng.uniform(1.5, 4, 9)
    options = {"Z": np.linspace(-3, 3, 14)[:, None], "infer": power_ep.infer, "optimise": ("kernel", "likelihood")}
    near, far = (
        training.fit(SquaredExponential(1.0, 0.8), X, y, likelihood=StudentT(degrees=3.0, scale=scale), **options)
        for scale in (0.2, 0.02)
    )
    assert far.trace()[0] > 1e5
    assert far.fit.converged and far.converged
    assert far.fit.log_evidence == pytest.approx(near.fit.log_evidence, abs=0.01)
    assert np.abs(far.predict_f(X)[0] - np.sin(2 * X[:, 0])).max() < 0.3


@pytest.mark.filterwarnings("ignore:One of the clusters is empty")
@pytest.mark.parametrize(("N", "D", "M"), [(200, 1, 20), (300, 7, 40), (60, 2, 59)])
def test_centres_are_those_of_scipy(N, D, M):
    from scipy.cluster.vq import kmeans2

    X = np.round(np.random.default_rng(N).normal(size=(N, D)), 1)
    start = np.vstack([X[:M - 1], X.max(axis=0) + 50])     # the last one gets no datum
    assert np.array_equal(starts._kmeans(X, start), kmeans2(X, start, iter=10, minit="matrix")[0])


def test_choosing_in_threads_leaves_the_filters_of_warnings_alone():
    X, before = np.random.default_rng(0).normal(size=(200, 2)), list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda seed: training.choose_pseudo_inputs(X, 30, seed=seed), range(40)))
    assert warnings.filters == before


@pytest.mark.parametrize("factor", [1e80, 1e-80])
def test_a_start_beyond_the_coordinates_is_refused(factor):
    X = np.linspace(0, 1, 20)[:, None]
    with pytest.raises(ValueError, match=r"variance.*in other units"):
        training.fit(None, X, factor * np.sin(5 * X[:, 0]), M=4)


def test_a_search_goes_on_from_a_better_point_that_its_line_search_passed():
    X = np.array([[-.7, -.3], [-1.8, .1], [1, -1.4], [-1.1, .7], [.6, .7], [.9, -.3], [-.3, -.6], [1.5, -.1], [-.8, -1.1],
                  [.7, 2.3]])
    y = np.where([0, 0, 0, 1, 1, 1, 0, 1, 0, 1], 1.0, -1.0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    options = {"infer": power_ep.infer, "likelihood": Probit(), "alpha": 1.0, "M": 1, "seed": 0, "max_evaluations": 200}
    model = training.fit(None, X, y, **options)
    assert model.converged and model.log_evidence > 10 * np.log(0.5) + 0.5      # that of a coin, where it had ended
    assert max(np.abs(value).max() for value in model.gradient.values()) < 1e-3
    assert model.log_evidence == pytest.approx(np.nanmax(model.trace()), rel=1e-6)


@pytest.mark.parametrize("learn", [
    lambda X, y: training.fit(None, X, y, M=3, max_evaluations=1),
    lambda X, y: training.fit(None, X, y, M=3, max_evaluations=1, infer=power_ep.infer, likelihood=StudentT(4.0, 0.1)),
    lambda X, y: training.fit_minibatch(None, X, y, Gaussian(0.1), M=3, epochs=1)])
def test_targets_far_from_the_prior_mean_are_named(learn):
    X = np.linspace(0, 6, 40)[:, None]
    y = np.sin(3 * X[:, 0])
    with pytest.warns(UserWarning, match=r"the mean of y, 1e\+03, is 1\d\d\d of its standard deviations away from 0"):
        learn(X, y + 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        learn(X, y + 5)


def test_inference_for_several_classes_is_sent_to_its_own_learning():
    with pytest.raises(ValueError, match=r"has a kernel for each class; learn with multiclass\.fit"):
        training.fit(None, np.eye(3), np.arange(3), infer=multiclass.infer)


def test_a_noise_that_inference_does_not_take_is_refused():
    X = np.linspace(0, 1, 10)[:, None]
    with pytest.raises(ValueError, match=r"noise = 0\.3 was given, but this infer takes none"):
        training.fit(None, X, np.sign(X[:, 0] - 0.5), M=3, infer=power_ep.infer, likelihood=Probit(), noise=0.3)
