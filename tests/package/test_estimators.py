"""The estimators, as scikit-learn and its users meet them."""

import pickle
import re
import warnings
from dataclasses import replace
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from problems import python
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pepcore import (
    Gaussian,
    Matern52,
    Poisson,
    Probit,
    SquaredExponential,
    StudentT,
    decoupled,
    exact,
    multiclass,
    online,
    power_ep,
    training,
)
from pepcore.estimators import PowerEPClassifier, PowerEPClassifierCV, PowerEPRegressor, PowerEPRegressorCV

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CHECKED = [
    PowerEPRegressor(M=5, max_evaluations=15),
    PowerEPRegressor(M=5, batch=50, epochs=3),
    PowerEPClassifier(M=5, alpha=1.0, max_evaluations=15),
    PowerEPClassifier(M=5, alpha=1.0, batch=50, epochs=5),
    PowerEPRegressorCV(M=5, alphas=(0.0, 0.5), cv=2, max_evaluations=15),
    PowerEPClassifierCV(M=5, alphas=(0.5, 1.0), cv=2, max_evaluations=15),
]
ARRAY_API = f"""
from sklearn.utils.estimator_checks import estimator_checks_generator
from pepcore.estimators import PowerEPClassifier, PowerEPClassifierCV, PowerEPRegressor, PowerEPRegressorCV

for checked in {CHECKED}:
    for estimator, check in estimator_checks_generator(checked):
        if "array_namespace" in check.keywords:
            check(estimator)
            print("passed")
"""
WITHOUT_SCIKIT_LEARN = """
import sys
sys.modules["sklearn"] = None
import pepcore
from pepcore import decoupled, multiclass
try:
    from pepcore import estimators
except ImportError as reason:
    print(reason)
"""


def without_array_api(mark):
    """Leave out the checks of other array types, which need a process of their own: see the second test below."""
    pairs = [(estimator, check) for estimator, check in mark.args[1] if "array_namespace" not in check.keywords]
    return pytest.mark.parametrize(mark.args[0], pairs, **mark.kwargs)


@without_array_api(parametrize_with_checks(CHECKED).mark)
def test_scikit_learn_accepts_the_estimators(estimator, check):
    check(estimator)


def test_scikit_learn_accepts_the_estimators_with_other_array_types():
    """SciPy reads the variable at import."""
    assert python(ARRAY_API, SCIPY_ARRAY_API="1").split() == ["passed"] * len(CHECKED)


def curve(N=80, seed=0, noise=0.2):
    """X (N, 2) in unequal units, y (N,) far from 0; a sine of the first input."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 600, N), rng.normal(5.0, 0.01, N)])
    return X, 1000 + 50 * (np.sin(X[:, 0] / 100) + noise * rng.standard_normal(N))


def two_classes(N=120, seed=0):
    """X (N, 2), and labels drawn with a probability that is known: X, y, P(y = "yes")."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    p = norm.cdf(2 * np.sin(2 * X[:, 0]))
    return X, np.where(rng.uniform(size=N) < p, "yes", "no"), p


def small(**settings):
    return PowerEPRegressor(**{"M": 10, "max_evaluations": 60, "tol": 0.0, "random_state": 0} | settings)


def small_classifier(**settings):
    return PowerEPClassifier(**{"M": 8, "alpha": 1.0, "max_evaluations": 30, "tol": 0.0, "random_state": 0} | settings)


# --- the same numbers as the functions ---------------------------------------------------------------------------------


def test_regressor_is_training_on_standardised_data():
    X, y = curve()
    model = small(Z=X[::8]).fit(X, y)
    white, target = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    other = training.fit(None, white, target, Z=white[::8], max_evaluations=60)
    mean, variance = other.predict_y(white)
    assert abs(model.log_marginal_likelihood_value_ - other.log_evidence) < 1e-10
    assert model.model_.parameters["noise"] == model.noise_ == pytest.approx(other.noise, rel=1e-10)
    assert np.allclose(model.Z_, other.Z * X.std(axis=0) + X.mean(axis=0), rtol=1e-10)
    found, deviation = model.predict(X, return_std=True)
    assert np.allclose(found, mean * y.std() + y.mean(), rtol=1e-10, atol=0)
    assert np.allclose(deviation, np.sqrt(variance) * y.std(), rtol=1e-10, atol=0)
    assert model.n_iter_ == other.evaluations


def test_without_standardisation_everything_is_in_the_units_of_the_data():
    X, y = curve()
    kernel, y = SquaredExponential(2500.0, [100.0, 0.05]), y - 1000
    model = small(kernel=kernel, Z=X[::8], noise=90.0, standardise=False).fit(X, y)
    other = training.fit(kernel, X, y, Z=X[::8], noise=90.0, max_evaluations=60)
    assert np.allclose(model.predict(X), other.predict_y(X)[0], rtol=1e-10)
    assert abs(model.log_marginal_likelihood_value_ - other.log_evidence) < 1e-10


@pytest.mark.parametrize("likelihood", [StudentT(4.0, 0.5), Poisson()])
def test_other_likelihoods_are_training_by_inference(likelihood):
    X, y = curve(60)
    counts = isinstance(likelihood, Poisson)
    y = np.floor((y - y.min()) / 20) if counts else y
    model = small(likelihood=likelihood, Z=X[::8], max_evaluations=10).fit(X, y)
    white, target = (X - X.mean(axis=0)) / X.std(axis=0), y if counts else (y - y.mean()) / y.std()
    kernel = SquaredExponential(1.0, [np.sqrt(2)] * 2)
    settings = {"infer": power_ep.infer, "likelihood": likelihood, "Z": white[::8], "max_evaluations": 10}
    other = training.fit(kernel, white, target, **settings)
    assert abs(model.log_marginal_likelihood_value_ - other.log_evidence) < 1e-8
    mean, variance = other.predict_y(white)
    shift, scale = (0.0, 1.0) if counts else (y.mean(), y.std())
    found, deviation = model.predict(X, return_std=True)
    assert np.allclose(found, mean * scale + shift, rtol=1e-8)
    assert np.allclose(deviation, np.sqrt(variance) * scale, rtol=1e-8)
    assert model.noise_ is None
    assert type(model.likelihood_) is type(likelihood)


def test_two_classes_are_probit_power_ep():
    X, y, _ = two_classes()
    model = small_classifier(Z=X[:8], alpha=0.5, max_evaluations=10).fit(X, y)
    white, sign = (X - X.mean(axis=0)) / X.std(axis=0), np.where(y == "yes", 1.0, -1.0)
    kernel = SquaredExponential(1.0, [np.sqrt(2)] * 2)
    settings = {"infer": power_ep.infer, "likelihood": Probit(), "Z": white[:8], "max_evaluations": 10}
    other = training.fit(kernel, white, sign, **settings)
    assert list(model.classes_) == ["no", "yes"]
    assert np.allclose(model.predict_proba(X)[:, 1], other.predict_y(white), rtol=1e-8)


def test_more_classes_are_multiclass_ep():
    X, y = load_iris(return_X_y=True)
    model = small_classifier(alpha=0.7, Z=X[::15]).fit(X, y)
    white = (X - X.mean(axis=0)) / X.std(axis=0)
    kernels = 3 * [SquaredExponential(1.0, 4 * [2.0])]
    other = multiclass.fit(kernels, white, y, Z=3 * [white[::15]], alpha=0.7, iterations=30)
    assert np.allclose(model.predict_proba(X), other.predict_y(white), rtol=1e-8)
    assert len(model.kernel_) == len(model.Z_) == len(model.noise_) == 3
    assert model.score(X, y) > 0.94


def test_nothing_to_learn_leaves_inference():
    X, y = curve()
    white, target = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    kernel = Matern52(1.5, [0.5, 2.0])
    fixed = {"kernel": kernel, "Z": X[::8], "optimise": ()}
    fit = power_ep.regression(kernel, white[::8], white, target, noise=0.04, alpha=0.5)
    model = small(noise=0.04, **fixed).fit(X, y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(fit.log_evidence, rel=1e-12)
    assert model.kernel_ is kernel
    fit = power_ep.infer(kernel, white[::8], white, target, StudentT(), alpha=0.5)
    model = small(likelihood=StudentT(), **fixed).fit(X, y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(fit.log_evidence, rel=1e-12)
    labels = np.digitize(y, [980, 1020])
    fit = multiclass.infer(3 * [kernel], 3 * [white[::8]], white, labels, alpha=0.5)
    model = small_classifier(alpha=0.5, **fixed).fit(X, labels)
    assert model.log_marginal_likelihood_value_ == pytest.approx(fit.log_evidence, rel=1e-12)


def test_batches_are_training_on_batches():
    X, y = curve()
    white, target = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    model = small(batch=20, epochs=3, Z=X[::8]).fit(X, y)
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    settings = {"Z": white[::8], "batch": 20, "epochs": 3, "seed": seed}
    other = training.fit_minibatch(None, white, target, Gaussian(0.1), **settings)
    assert abs(model.log_marginal_likelihood_value_ - other.log_evidence) < 1e-8
    assert model.n_iter_ == 12
    assert model.noise_ == pytest.approx(other.likelihood.noise, rel=1e-8)


@pytest.mark.parametrize("scale", [1.0, 7.0])
def test_without_standardisation_learning_starts_at_the_scales_of_the_targets(scale, monkeypatch):
    X, y = curve()
    seen, learn = [], training.fit

    def watched(kernel, *data, **options):
        seen.append((kernel.variance, options["noise"]))
        return learn(kernel, *data, **options)

    monkeypatch.setattr(training, "fit", watched)
    small(standardise=False, max_evaluations=1).fit(X, scale * (y - y.mean()))
    assert seen[0] == pytest.approx((np.var(scale * y), 0.1 * np.var(scale * y)), rel=1e-9)


def test_batches_make_a_thousand_steps_but_at_least_twenty_passes():
    X, y = curve()
    assert small(M=4, batch=40).fit(X, y).n_iter_ == 1000
    assert small(batch=20)._passes(np.empty((2000, 1))) == 20
    assert small(batch=10_000)._passes(np.empty((80, 1))) == 1000  # one step in each, whatever the batch could hold


def test_a_thousand_steps_on_batches_come_close_to_learning_on_all_data():
    X, y = curve()
    whole, batches = small(max_evaluations=500).fit(X, y), small(batch=20).fit(X, y)
    assert abs(whole.log_density(X, y).mean() - batches.log_density(X, y).mean()) < 0.05


# --- units, draws, calibration ----------------------------------------------------------------------------------------


def test_predictions_follow_the_units_of_the_data():
    X, y = curve()
    few = {"max_evaluations": 20}  # a search magnifies rounding errors, here from 1e-15 to 1e-5 in sixty evaluations
    here, there = small(**few).fit(X, y), small(**few).fit(X * [1e-3, 1e4] - 7, 1e5 * y + 3)
    mean, deviation = here.predict(X, return_std=True)
    mean2, deviation2 = there.predict(X * [1e-3, 1e4] - 7, return_std=True)
    assert np.allclose(mean2, 1e5 * mean + 3, rtol=1e-9)
    assert np.allclose(deviation2, 1e5 * deviation, rtol=1e-8)


def test_constant_columns_and_targets_are_no_obstacle():
    X, y = curve(30)
    X[:, 1] = 4.0
    assert np.allclose(small().fit(X, np.full(30, 7.0)).predict(X), 7.0)
    assert np.isfinite(small().fit(X, y).predict(X)).all()


@pytest.mark.parametrize("likelihood", [None, StudentT(5.0, 0.3)])
def test_draws_have_the_moments_that_are_predicted(likelihood):
    X, y = curve(60)
    model = small(likelihood=likelihood, max_evaluations=10).fit(X, y)
    Xs = X[:3]
    mean, covariance = model.predict(Xs, return_cov=True)
    assert np.allclose(np.sqrt(np.diag(covariance)), model.predict(Xs, return_std=True)[1])
    draws = model.sample_y(Xs, n_samples=40_000, random_state=1)
    assert draws.shape == (3, 40_000)
    error = np.sqrt(np.diag(covariance) / 40_000)
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 5 * error)
    assert np.allclose(np.cov(draws), covariance, atol=0.06 * covariance.max())
    assert np.array_equal(model.sample_y(Xs, 2, random_state=1), model.sample_y(Xs, 2, random_state=1))


def test_draws_of_counts_have_the_moments_that_are_predicted():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (80, 1))
    model = small(likelihood=Poisson(), max_evaluations=15).fit(X, rng.poisson(np.exp(1 + np.sin(X[:, 0]))))
    mean, deviation = model.predict(X[:4], return_std=True)
    draws = model.sample_y(X[:4], 40_000)
    assert np.array_equal(draws, np.floor(draws))
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 5 * deviation / np.sqrt(40_000))
    assert np.allclose(draws.std(axis=1), deviation, rtol=0.05)


def test_intervals_hold_as_many_new_targets_as_they_should():
    X, y = curve(400)
    model = small(M=20).fit(X[:200], y[:200])
    mean, deviation = model.predict(X[200:], return_std=True)
    inside = np.mean(np.abs(y[200:] - mean) < norm.ppf(0.9) * deviation)
    assert abs(inside - 0.8) < 4 * np.sqrt(0.8 * 0.2 / 200)
    assert np.sqrt(model.noise_) * model.y_scale_ == pytest.approx(10.0, rel=0.2)       # 50 * 0.2


def test_probabilities_are_close_to_those_that_drew_the_labels():
    X, y, p = two_classes(600)
    model = small_classifier(M=20).fit(X[:400], y[:400])
    found = model.predict_proba(X[400:])[:, 1]
    assert np.mean(np.abs(found - p[400:])) < 0.1
    assert abs(np.sum(found - (y[400:] == "yes"))) < 4 * np.sqrt(np.sum(found * (1 - found)))


def test_log_probabilities_keep_their_digits_where_probabilities_vanish():
    X = np.linspace(-1, 1, 3000)[:, None]
    y = np.random.default_rng(0).uniform(size=3000) < norm.cdf(3 * X[:, 0])
    far = np.linspace(-8, 8, 30)[:, None]
    model = small_classifier(kernel=SquaredExponential(1e4, 100.0), optimise=(), Z=far[::4]).fit(X, y)
    logs = model.predict_log_proba(far)
    mean, variance = model.model_.predict_f((far - X.mean()) / X.std())
    assert logs.min() < -40
    assert np.allclose(logs, np.stack([norm.logcdf(s * mean / np.sqrt(1 + variance)) for s in (-1, 1)], axis=1), rtol=1e-10)
    assert np.allclose(np.exp(logs), model.predict_proba(far), atol=1e-12)
    y = np.digitize(X[:, 0], [-0.3, 0.3])
    model = small_classifier().fit(X, y)
    assert np.allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), atol=1e-6)


# --- more data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_partial_fit_is_inference_on_all_data(alpha):
    X, y = curve(120)
    model = small(alpha=alpha).partial_fit(X[:40], y[:40])
    learnt = model.model_
    for rows in (slice(40, 70), slice(70, 120)):
        model.partial_fit(X[rows], y[rows])
    white, target = (X - model.X_mean_) / model.X_scale_, (y - model.y_mean_) / model.y_scale_
    whole = power_ep.regression(learnt.kernel, learnt.Z, white, target, noise=learnt.noise, alpha=alpha)
    assert model.log_marginal_likelihood_value_ == pytest.approx(whole.log_evidence, rel=1e-10)
    mean, variance = whole.predict_y(white)
    found, deviation = model.predict(X, return_std=True)
    assert np.allclose(found, mean * model.y_scale_ + model.y_mean_, rtol=1e-10)
    assert np.allclose(deviation, np.sqrt(variance) * model.y_scale_, rtol=1e-8)
    assert not np.allclose(model.predict(X), small(alpha=alpha).fit(X[:40], y[:40]).predict(X), rtol=1e-6)
    with pytest.raises(NotImplementedError, match=r"power_ep\.regression"):
        _ = model.model_.gradient


def test_fit_forgets_what_was_added():
    X, y = curve()
    once = small().fit(X, y)
    again = small().fit(X[:30], y[:30]).partial_fit(X[30:], y[30:]).fit(X, y)
    assert np.array_equal(once.predict(X), again.predict(X))


def test_adding_data_repeats_no_warning_of_the_learning():
    X, y = curve()
    model = small(max_evaluations=3).fit(X[:60], y[:60])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X[60:], y[60:])


def test_only_fits_of_sparse_regression_go_on():
    X, y = curve()
    white = (X - X.mean(axis=0)) / X.std(axis=0)
    kernel, Z = SquaredExponential(), white[:5]
    for fit in (exact.regression(kernel, white, y), online.infer(kernel, white, y, Gaussian(0.1)),
                decoupled.infer(kernel, Z, white[6:9], white, y, Gaussian(0.1), steps=2), None):
        with pytest.raises(ValueError, match=r"add_data needs a Fit of power_ep\.regression"):
            power_ep.add_data(fit, white, y)


def test_only_gaussian_noise_takes_more_data():
    assert hasattr(PowerEPRegressor(likelihood=Gaussian(0.1)), "partial_fit")
    assert not hasattr(PowerEPRegressor(likelihood=StudentT()), "partial_fit")
    assert not hasattr(PowerEPClassifier(), "partial_fit")


def test_an_estimator_says_why_it_takes_no_more_data():
    with pytest.raises(AttributeError) as caught:
        PowerEPRegressor(likelihood=StudentT()).partial_fit(*curve())
    assert "needs Gaussian noise" in str(caught.value.__cause__)


def test_a_fit_of_other_than_gaussian_noise_takes_no_more_data():
    X, y = curve()
    white = (X - X.mean(axis=0)) / X.std(axis=0)
    fit = power_ep.infer(SquaredExponential(), white[:5], white, y - 1000, StudentT(4.0, 10.0), alpha=0.5)
    with pytest.raises(ValueError, match="Gaussian noise"):
        power_ep.add_data(fit, white, y)


def test_a_fit_with_private_powers_takes_no_more_data():
    X, y = curve()
    white = (X - X.mean(axis=0)) / X.std(axis=0)
    fit = power_ep.regression(SquaredExponential(), white[:5], white, y, alpha=np.full(len(y), 0.5))
    with pytest.raises(ValueError, match="one power for all data"):
        power_ep.add_data(fit, white, y)


# --- scikit-learn's tools ---------------------------------------------------------------------------------------------


def test_grid_search_over_alpha():
    X, y = curve()
    search = GridSearchCV(small(), {"alpha": [0.0, 0.5, 1.0], "M": [4, 10]}, cv=3).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert len(set(scores)) == 6
    assert search.best_params_["M"] == 10
    assert search.best_estimator_.model_.alpha == search.best_params_["alpha"]
    X, y, _ = two_classes()
    search = GridSearchCV(small_classifier(M=5), {"alpha": [0.0, 1.0]}, cv=2, scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_pipeline_and_cross_validation():
    X, y = curve()
    scores = cross_val_score(make_pipeline(StandardScaler(), small()), X, y, cv=4)
    assert scores.min() > 0.8
    X, y = load_iris(return_X_y=True)
    p = cross_val_predict(small_classifier(), X, y, cv=3, method="predict_proba")
    assert p.shape == (150, 3)
    assert np.mean(p.argmax(axis=1) == y) > 0.9


def test_a_frame_keeps_its_names():
    X, y = curve()
    frame = pd.DataFrame(X, columns=["height", "width"])
    model = small().fit(frame, pd.Series(y, name="load"))
    assert list(model.feature_names_in_) == ["height", "width"]
    assert model.n_features_in_ == 2
    assert np.array_equal(model.predict(frame), small().fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["width", "height"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    X, y, _ = two_classes()
    labels = pd.Series(y).astype("category")
    found = small_classifier().fit(pd.DataFrame(X, columns=["a", "b"]), labels).predict(pd.DataFrame(X, columns=["a", "b"]))
    assert set(found) <= {"yes", "no"}


def test_estimators_are_pickled_dumped_and_cloned(tmp_path):
    X, y = curve()
    labels = np.digitize(y, [980, 1020])
    settings = {"kernel": Matern52(1.0, [1.0, 1.0]), "max_evaluations": 10}
    fits = [small(**settings).fit(X, y), small(likelihood=StudentT(), **settings).fit(X, y),
            small_classifier(**settings).fit(X, labels == 1), small_classifier(**settings).fit(X, labels)]
    for model in fits:
        joblib.dump(model, tmp_path / "model.joblib")
        for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
            assert np.array_equal(copy.predict(X), model.predict(X))
        other = clone(model)
        assert other.get_params() == model.get_params()
        assert not hasattr(other, "model_")
        assert "Matern52" in repr(other)


def test_a_file_keeps_no_training_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    for model in (small(max_evaluations=3).fit(X, X[:, 0]), small_classifier(max_evaluations=3).fit(X, labels)):
        copy = pickle.loads(pickle.dumps(model))
        fits = model.model_.fit, copy.model_.fit
        assert len(pickle.dumps(copy.model_.fit._gradient)) < 1000 < X.nbytes < len(pickle.dumps(fits[0]._gradient))
        assert model.model_.gradient.keys() and fits[0].log_evidence == fits[1].log_evidence
        with pytest.raises(NotImplementedError, match="keeps no training data"):
            copy.model_.gradient  # noqa: B018


@pytest.mark.parametrize(("estimator", "wrong"), [(PowerEPRegressor(M=5), {"alpha": 2}), (PowerEPClassifier(M=5), {"alpha": 2}),
                                                  (PowerEPRegressorCV(M=5, cv=2), {"alphas": [2]})], ids=str)
def test_a_fit_that_fails_leaves_nothing_of_the_one_before(estimator, wrong):
    X, y = curve()
    model = clone(estimator).set_params(max_evaluations=5).fit(X, y > np.median(y))
    with pytest.raises(ValueError, match="outside"):
        model.set_params(**wrong).fit(100 * X + 7, y > np.quantile(y, 0.9))
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_search_leaves_the_filters_of_warnings_alone():
    X, y = curve()
    before = list(warnings.filters)
    with joblib.parallel_config("threading"):
        PowerEPRegressorCV(M=4, cv=4, alphas=[0.0, 1.0], max_evaluations=4, n_jobs=4).fit(X, y)
    assert warnings.filters == before


def test_counts_too_large_to_draw_are_named():
    X = np.arange(6.0)[:, None]
    model = PowerEPRegressor(kernel=SquaredExponential(1e4, [1.0]), likelihood=Poisson(), optimise=()).fit(X, np.arange(6))
    with pytest.raises(ValueError, match=r"log rates reach .* at rows \[1\] of X"):
        model.sample_y([[0.0], [1e3]], 50)


class Own(StudentT):
    """The noise of somebody else."""


def test_a_likelihood_from_which_no_draw_is_known_is_named():
    X, y = curve(30)
    model = small(likelihood=Own(4.0, 0.3), max_evaluations=2).fit(X, y)
    with pytest.raises(ValueError, match="sample_y cannot draw from Own"):
        model.sample_y(X)


def test_the_same_state_gives_the_same_model():
    X, y = curve()
    assert np.array_equal(small().fit(X, y).predict(X), small().fit(X, y).predict(X))
    rng = np.random.RandomState(3)
    first, second = small(random_state=rng).fit(X, y), small(random_state=rng).fit(X, y)
    assert not np.array_equal(first.Z_, second.Z_)


def test_restarts_are_never_worse():
    X, y = curve(40)
    one, four = small(max_evaluations=30).fit(X, y), small(max_evaluations=30, restarts=4).fit(X, y)
    assert four.log_marginal_likelihood_value_ >= one.log_marginal_likelihood_value_ - 1e-9
    assert four.n_iter_ > one.n_iter_


def test_fewer_distinct_rows_make_fewer_pseudo_inputs():
    X, y = curve(40)
    repeated = np.repeat(X[:6], 7, axis=0)
    assert small(M=30).fit(repeated, np.repeat(y[:6], 7)).Z_.shape == (6, 2)


# --- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("settings", "said"), [
    ({"alpha": 1.5}, "outside [0, 1]"),
    ({"M": 0}, "M = 0 must be a whole number"),
    ({"optimise": ("lengthscale",)}, "out of 'kernel', 'noise', 'Z'"),
    ({"kernel": "rbf"}, "expected a kernel"),
    ({"likelihood": Probit()}, "use PowerEPClassifier"),
    ({"likelihood": Gaussian(0.1), "noise": 0.1}, "give one of them"),
    ({"noise": -1.0}, "must be positive"),
    ({"Z": np.zeros((3, 5))}, "Z has 5 column(s), expected 2"),
    ({"Z": []}, "Z has shape (0,)"),
    ({"likelihood": Poisson(), "optimise": ("noise",)}, "Poisson() has no parameter"),
    ({"Z": "grid"}, '"kmeans", "subset"'),
    ({"batch": 10, "restarts": 2}, "restarts = 2 must be 1"),
    ({"standardise": "False"}, "standardise = 'False' must be True or False"),
    ({"tol": -1.0, "batch": 10}, "tol = -1.0 must be at least 0"),
    ({"epochs": -1}, "epochs = -1 must be a whole number"),
])
def test_wrong_settings_are_named(settings, said):
    X, y = curve(30)
    with pytest.raises(ValueError, match=re.escape(said)):
        small(**settings).fit(X, y)


@pytest.mark.parametrize(("wrong", "said"), [
    (lambda X, y: small(likelihood=Poisson()).fit(X, y - 1e4), "expected counts"),
    (lambda X, y: small_classifier().fit(X, np.full(30, "a")), "one class only, 'a'"),
    (lambda X, y: small().fit(X, y.astype(str)), "y must be an array of real numbers"),
    (lambda X, y: small().fit(np.ma.array(X, mask=X > 300), y), "X is a masked array"),
    (lambda X, y: small().fit(X, np.ma.array(y, mask=y > 1000)), "y is a masked array"),
    (lambda X, y: small().fit(X, y).predict(np.ma.array(X, mask=X > 300)), "X is a masked array"),
    (lambda X, y: small_classifier(max_evaluations=0).fit(X, np.arange(30) % 3), "max_evaluations = 0"),
    (lambda X, y: small_classifier().fit(X, y), "Unknown label type"),
    (lambda X, y: small_classifier(restarts=2).fit(X, np.arange(30) % 3), "must be 1 on batches and for more than two classes"),
    (lambda X, y: counting(X, y).predict(X, return_cov=True), "return_cov needs"),
    (lambda X, y: counting(X, y).predict(X, return_std=True, return_cov=True), "not both"),
])
def test_wrong_data_are_named(wrong, said):
    with pytest.raises(ValueError, match=said):
        wrong(*curve(30))


def counting(X, y):
    return small(likelihood=Poisson(), max_evaluations=3).fit(X, np.floor(y / 100))


def test_an_estimator_that_was_not_fitted_draws_no_targets():
    with pytest.raises(NotFittedError):
        small().sample_y(curve(30)[0])


@pytest.mark.parametrize("kind", ["int8", "float16", "float32"])
def test_targets_of_small_types_are_measured_as_real_numbers(kind):
    X, y = curve(30)
    y = np.round(2 * (y - y.mean())).astype(kind)
    narrow, wide = small().fit(X, y), small().fit(X, y.astype(float))
    assert narrow.y_scale_ == wide.y_scale_
    assert np.array_equal(narrow.log_density(X, y), wide.log_density(X, y.astype(float)))


@pytest.mark.parametrize("factor", [1e160, 1e-200])
def test_units_whose_squares_are_no_numbers_are_refused(factor):
    X, y = curve(30)
    y = y - y.mean()
    with pytest.raises(ValueError, match="y varies so much or so little"):
        small().fit(X, y * factor)
    with pytest.raises(ValueError, match="X varies so much or so little"):
        small().fit((X - X.mean(axis=0)) * factor, y)


class Interrupting(SquaredExponential):
    """Ctrl-C during the eighth evaluation."""

    evaluations = 0

    def value_and_vjp(self, X, X2=None):
        type(self).evaluations += X2 is None
        if self.evaluations == 8:
            raise KeyboardInterrupt
        return super().value_and_vjp(X, X2)


@pytest.mark.parametrize("estimator", [
    PowerEPRegressor(M=5), PowerEPRegressor(M=5, batch=10), PowerEPRegressorCV(M=5, cv=2),
    GridSearchCV(PowerEPRegressor(M=5), {"alpha": [0.5, 1.0]}, cv=2),
], ids=["L-BFGS", "batches", "search", "grid search"])
def test_an_interrupt_ends_what_the_fit_is_a_part_of(estimator, monkeypatch):
    X, y = curve()
    monkeypatch.setattr(Interrupting, "evaluations", 0)
    kernel = {"estimator__kernel" if isinstance(estimator, GridSearchCV) else "kernel": Interrupting()}
    with pytest.raises(KeyboardInterrupt):
        clone(estimator).set_params(**kernel).fit(X, y)
    assert Interrupting.evaluations <= 9  # what batches have learnt is put together once more


def test_batches_of_many_classes_are_power_ep_too():
    X, y = load_iris(return_X_y=True)
    model = small_classifier(batch=50, epochs=2).fit(X, y)
    assert model.model_.fit.approximation == "ep"
    left_out = model._log_densities(X, y, left_out=True)
    assert left_out.mean() < model.log_density(X, y).mean()


def test_what_has_not_converged_warns():
    X, y = curve()
    with pytest.warns(ConvergenceWarning, match="raise max_evaluations") as caught:
        small(max_evaluations=3).fit(X, y)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert small(M=4, max_evaluations=500).fit(X, y).model_.converged


def test_a_classifier_that_no_longer_gains_does_not_warn():
    X, y = make_classification(300, 10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PowerEPClassifier(M=20, alpha=1.0, max_evaluations=150, random_state=0).fit(X, y)
    assert model.n_iter_ < 150 and "less than 0.03" in model.model_.message
    with pytest.warns(ConvergenceWarning, match="150 evaluations were not enough; raise"):
        PowerEPClassifier(M=20, alpha=1.0, max_evaluations=150, tol=0.0, random_state=0).fit(X, y)


def test_learning_on_batches_does_not_warn_of_its_own_end(monkeypatch):
    X, y = curve()
    learn = training.fit_minibatch
    monkeypatch.setattr(training, "fit_minibatch", lambda *data, **options: replace(learn(*data, **options), converged=False))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not small(batch=20, epochs=2).fit(X, y).model_.converged


def test_many_classes_warn_of_inference_that_has_not_converged(monkeypatch):
    X, y = load_iris(return_X_y=True)
    impatient = partial(multiclass.fit, tolerance=1e-12, max_sweeps=1)
    monkeypatch.setattr(multiclass, "fit", impatient)
    with pytest.warns() as caught:
        small_classifier(max_evaluations=2).fit(X, y)
    assert [warning.category for warning in caught] == [RuntimeWarning, ConvergenceWarning]
    assert "inference after learning has not converged" in str(caught[1].message)


def test_without_scikit_learn_the_import_says_what_to_install():
    said = python(WITHOUT_SCIKIT_LEARN)
    assert said == 'pepcore.estimators needs scikit-learn 1.6 or newer: pip install "pepcore[sklearn]"\n'


def test_the_snippet_of_the_readme_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    found = [block for block in blocks if "pepcore.estimators" in block]
    assert len(found) == 1
    names = {}
    exec(found[0], names)
    assert 0 <= names["probabilities"].min() <= names["probabilities"].max() <= 1


@pytest.mark.parametrize(("approximation", "alpha"), [("ep", 0.5), ("sep", 0.5), ("gfitc", 1.0), ("vi", 0.0)])
def test_every_approximation_for_many_classes_can_be_chosen(approximation, alpha):
    X, y = load_iris(return_X_y=True)
    model = PowerEPClassifier(approximation=approximation, alpha=alpha, M=5, max_evaluations=5, random_state=0).fit(X, y)
    assert model.model_.fit.approximation == approximation
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("classes", [2, 3])
def test_an_approximation_that_is_none_is_named(classes):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="approximation = 'laplace' is unknown; choose one of ep, sep, gfitc, vi"):
        PowerEPClassifier(approximation="laplace").fit(X[y < classes], y[y < classes])


def test_gfitc_at_power_zero_is_called_vi():
    with pytest.raises(ValueError, match='"gfitc" needs alpha > 0 here; give "vi" for alpha = 0'):
        PowerEPClassifier(approximation="gfitc", alpha=0).fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize(("name", "value"), [("kernel", 2 * [SquaredExponential()]), ("Z", 2 * [np.eye(2)])])
def test_two_classes_share_one_latent_function(name, value):
    with pytest.raises(ValueError, match=f"{name} is a list of 2, one for each class, but two classes share one latent function"):
        PowerEPClassifier(**{name: value}).fit(np.eye(2), [0, 1])


def test_counts_that_are_all_zero_are_named():
    with pytest.raises(ValueError, match="all counts in y are 0"):
        PowerEPRegressor(likelihood=Poisson()).fit(np.eye(4), np.zeros(4))
