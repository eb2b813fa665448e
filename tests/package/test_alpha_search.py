"""The estimators that choose their power, beside fits at each power by hand."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_estimators import curve, two_classes

from pepcore import Gaussian, SquaredExponential, StudentT
from pepcore.estimators import PowerEPClassifier, PowerEPClassifierCV, PowerEPRegressor, PowerEPRegressorCV

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def search(**settings):
    return PowerEPRegressorCV(**{"M": 8, "max_evaluations": 40, "cv": 3, "alphas": (0, 0.5, 1), "random_state": 0} | settings)


def search_classes(**settings):
    return PowerEPClassifierCV(**{"M": 6, "max_evaluations": 20, "cv": 3, "alphas": (0.5, 1), "random_state": 0} | settings)


def test_the_last_fit_is_that_of_the_chosen_power_alone():
    X, y = curve()
    model = search().fit(X, y)
    alone = PowerEPRegressor(M=8, max_evaluations=40, random_state=0, alpha=model.alpha_).fit(X, y)
    assert model.log_marginal_likelihood_value_ == alone.log_marginal_likelihood_value_
    assert np.array_equal(model.predict(X), alone.predict(X))


def test_a_number_of_numpy_is_a_seed_like_any_other():
    X, y = curve()
    chosen, alone = search(random_state=np.int64(3), alphas=(0.5,)), PowerEPRegressor(M=8, max_evaluations=40, random_state=3)
    assert np.array_equal(chosen.fit(X, y).Z_, alone.fit(X, y).Z_)


def test_the_first_power_of_each_fold_has_the_score_of_a_fresh_fit():
    X, y = curve()
    model = search(alphas=(1.0, 0.5)).fit(X, y)
    for k, (learn, left_out) in enumerate(KFold(3).split(X)):
        alone = PowerEPRegressor(M=8, max_evaluations=40, random_state=0, alpha=0.5).fit(X[learn], y[learn])
        assert model.cv_results_[f"split{k}_test_score"][0] == alone.log_density(X[left_out], y[left_out]).mean()


@pytest.mark.parametrize(("fresh", "later"), [
    ({"max_evaluations": 40}, {"max_evaluations": 10}),
    ({"batch": 20, "epochs": 8}, {"batch": 20, "epochs": 2}),
    ({"batch": 20}, {"batch": 20, "epochs": 83}),  # of 334, which make 1000 steps on sixty data
], ids=["evaluations", "epochs", "usual epochs"])
def test_a_later_power_starts_where_the_one_before_it_ended_and_has_a_quarter_of_its_length(fresh, later):
    X, y = curve()
    model = search(cv=[(np.arange(60), np.arange(60, 80))], alphas=(0.5, 1.0), **fresh).fit(X, y)
    first = PowerEPRegressor(M=8, random_state=0, alpha=0.5, **fresh).fit(X[:60], y[:60])
    start = {"kernel": first.kernel_, "Z": first.Z_, "noise": first.noise_}
    second = PowerEPRegressor(**start, random_state=0, alpha=1.0, **later).fit(X[:60], y[:60])
    assert model.cv_results_["split0_test_score"][1] == second.log_density(X[60:], y[60:]).mean()


def test_the_best_mean_score_wins():
    X, y = curve()
    model = search().fit(X, y)
    results = model.cv_results_
    folds = np.array([results[f"split{k}_test_score"] for k in range(3)])
    assert np.allclose(results["mean_test_score"], folds.mean(axis=0), rtol=1e-12)
    assert np.allclose(results["std_test_score"], folds.std(axis=0), rtol=1e-12)
    assert model.alpha_ == results["param_alpha"][np.argmax(folds.mean(axis=0))]
    assert model.best_score_ == results["mean_test_score"].max()
    assert results["rank_test_score"][model.best_index_] == 1
    assert [setting["alpha"] for setting in results["params"]] == [0.0, 0.5, 1.0]


def test_powers_of_one_score_share_their_rank_and_the_smallest_is_chosen():
    model = search(alphas=(0.5, 1.0), scoring=lambda *_: 0.0).fit(*curve())
    assert model.cv_results_["rank_test_score"].tolist() == [1, 1]
    assert model.alpha_ == 0.5


def test_another_scoring_is_used():
    X, y = curve()
    model = search(scoring="neg_mean_absolute_error", cv=[(np.arange(60), np.arange(60, 80))], alphas=(0.5,)).fit(X, y)
    alone = PowerEPRegressor(M=8, max_evaluations=40, random_state=0, alpha=0.5).fit(X[:60], y[:60])
    assert model.best_score_ == -np.abs(alone.predict(X[60:]) - y[60:]).mean()


def test_leave_one_out_scores_each_power_by_its_own_fit():
    X, y = curve()
    model = search(cv="leave-one-out", alphas=(0.5, 0.9)).fit(X, y)
    alone = PowerEPRegressor(M=8, max_evaluations=40, random_state=0, alpha=0.5).fit(X, y)
    target = (y - y.mean()) / y.std()
    left_out = alone.model_.leave_one_out((X - X.mean(axis=0)) / X.std(axis=0), target)
    assert model.cv_results_["mean_test_score"][0] == pytest.approx(left_out.log_density.mean() - np.log(y.std()), rel=1e-12)


def test_the_usual_powers_stop_before_one_for_leave_one_out():
    powers = {cv: search(cv=cv, alphas=None, max_evaluations=3).fit(*curve()).cv_results_["param_alpha"].tolist()
              for cv in (2, "leave-one-out")}
    assert powers == {2: [0.0, 0.25, 0.5, 0.75, 1.0], "leave-one-out": [0.0, 0.25, 0.5, 0.75, 0.9]}


def test_leave_one_out_warns_of_power_one():
    with pytest.warns(UserWarning, match="far too optimistic at alpha = 1"):
        search(cv="leave-one-out", alphas=(0.5, 1.0)).fit(*curve())


def test_leave_one_out_refuses_another_scoring():
    with pytest.raises(ValueError, match="leave scoring = 'r2' out"):
        search(cv="leave-one-out", scoring="r2", alphas=(0.5,)).fit(*curve())


def test_outliers_keep_their_likelihood_from_one_power_to_the_next():
    X, y = curve()
    y[::9] += 300
    part, given = [(np.arange(60), np.arange(60, 80))], {"likelihood": StudentT(4.0, 0.3), "max_evaluations": 8}
    model = search(cv=part, alphas=(0.5, 1.0), **given).fit(X, y)
    first = PowerEPRegressor(M=8, random_state=0, alpha=0.5, **given).fit(X[:60], y[:60])
    start = {"kernel": first.kernel_, "Z": first.Z_, "likelihood": first.likelihood_}
    second = PowerEPRegressor(**start, random_state=0, alpha=1.0, max_evaluations=2).fit(X[:60], y[:60])
    assert model.cv_results_["split0_test_score"][1] == second.log_density(X[60:], y[60:]).mean()


def test_binary_labels_keep_their_shares_in_the_folds():
    X, y, _ = two_classes()
    model = search_classes().fit(X, y)
    scores = [
        PowerEPClassifier(M=6, max_evaluations=20, random_state=0, alpha=0.5).fit(X[learn], y[learn])
        .log_density(X[left_out], y[left_out]).mean()
        for learn, left_out in StratifiedKFold(3).split(X, y)
    ]
    assert [model.cv_results_[f"split{k}_test_score"][0] for k in range(3)] == scores
    assert set(model.predict(X)) == {"yes", "no"}


def test_each_class_goes_on_from_its_own_kernel():
    X, y = load_iris(return_X_y=True)
    learn = np.arange(0, 150, 2)
    part = [(learn, np.arange(1, 150, 2))]
    model = search_classes(cv=part).fit(X, y)
    first = PowerEPClassifier(M=6, max_evaluations=20, random_state=0, alpha=0.5).fit(X[learn], y[learn])
    start = {"kernel": first.kernel_, "Z": first.Z_, "noise": first.noise_}
    second = PowerEPClassifier(**start, max_evaluations=5, random_state=0, alpha=1.0).fit(X[learn], y[learn])
    score = second.log_density(X[1::2], y[1::2]).mean()
    assert model.cv_results_["split0_test_score"][1] == score


@pytest.mark.filterwarnings("ignore:EP has not converged:RuntimeWarning")
@pytest.mark.parametrize(("approximation", "classes", "cv", "powers"), [
    ("ep", 3, "leave-one-out", [0, 0.25, 0.5, 0.75, 0.9]), ("sep", 3, 2, [0, 0.25, 0.5, 0.75, 1]),
    ("gfitc", 3, "leave-one-out", [0.25, 0.5, 0.75, 0.9]), ("gfitc", 3, 2, [0.25, 0.5, 0.75, 1]), ("vi", 3, 2, [0]),
    ("gfitc", 2, 2, [0, 0.25, 0.5, 0.75, 1]), ("vi", 2, 2, [0, 0.25, 0.5, 0.75, 1])])
def test_the_usual_powers_are_those_that_the_approximation_has(approximation, classes, cv, powers):
    X, y = load_iris(return_X_y=True)
    settings = {"approximation": approximation, "alphas": None, "cv": cv, "M": 3, "max_evaluations": 2}
    model = search_classes(**settings).fit(X[y < classes], y[y < classes])
    assert model.cv_results_["param_alpha"].tolist() == powers


def test_log_densities_of_labels_are_their_log_probabilities():
    X, y = load_iris(return_X_y=True)
    model = PowerEPClassifier(M=6, max_evaluations=10, random_state=0).fit(X, y)
    assert np.allclose(model.log_density(X, y), model.predict_log_proba(X)[np.arange(150), y], rtol=1e-10)


def test_log_densities_of_targets_are_in_their_units():
    X, y = curve()
    model = PowerEPRegressor(M=8, max_evaluations=30, random_state=0).fit(X, y)
    mean, deviation = model.predict(X, return_std=True)
    normal = -0.5 * ((y - mean) / deviation) ** 2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)
    assert np.allclose(model.log_density(X, y), normal, rtol=1e-9)


def test_a_label_that_fit_has_not_seen_has_no_density():
    X, y, _ = two_classes()
    model = PowerEPClassifier(M=6, max_evaluations=10).fit(X, y)
    with pytest.raises(ValueError, match=r"the label 'perhaps', but fit has seen only \['no', 'yes'\]"):
        model.log_density(X[:1], ["perhaps"])


def test_processes_make_no_difference():
    X, y = curve()
    assert np.array_equal(*(search(n_jobs=jobs).fit(X, y).cv_results_["mean_test_score"] for jobs in (None, 2)))


def test_a_random_state_object_draws_once():
    X, y = curve()
    one, other = (search(random_state=np.random.RandomState(3), Z="subset").fit(X, y) for _ in range(2))
    assert np.array_equal(one.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])


def test_batches_are_searched_too():
    X, y = curve()
    model = search(batch=20, epochs=4).fit(X, y)
    assert model.n_iter_ == 16
    assert np.isfinite(model.best_score_)


def test_a_search_works_in_a_pipeline_of_tables_and_is_cloned_and_pickled():
    X, y = curve()
    table = pd.DataFrame(X, columns=["time", "height"])
    model = search(kernel=SquaredExponential(1.0, [1.0, 1.0]), likelihood=Gaussian(0.1)).fit(table, y)
    assert list(model.feature_names_in_) == ["time", "height"]
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(table), model.predict(table))
    assert clone(model).get_params() == model.get_params()
    assert cross_val_score(make_pipeline(StandardScaler(), search(alphas=(0.5,))), table, y, cv=2).shape == (2,)


def test_data_can_be_added_after_the_search_as_to_a_fit_at_the_power_chosen():
    X, y = curve()
    model = search().fit(X[:60], y[:60])
    alone = PowerEPRegressor(M=8, max_evaluations=40, random_state=0, alpha=model.alpha_).fit(X[:60], y[:60])
    for estimator in (model, alone):
        estimator.partial_fit(X[60:], y[60:])
    assert model.log_marginal_likelihood_value_ == alone.log_marginal_likelihood_value_
    assert model.model_.fit.alpha == model.alpha_


@pytest.mark.parametrize(("alphas", "message"), [((), "alphas is empty"), ((0.5, 1.5), r"alpha = 1.5 is outside \[0, 1\]")])
def test_powers_out_of_range_are_refused(alphas, message):
    with pytest.raises(ValueError, match=message):
        search(alphas=alphas).fit(*curve())


@pytest.mark.parametrize(("settings", "message"), [
    ({"scoring": ["r2", "neg_mean_squared_error"]}, "one score chooses the power"),
    ({"max_evaluations": None}, "max_evaluations = None must be a whole number"),
])
def test_settings_that_no_search_can_use_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        search(**settings).fit(*curve())


def test_one_power_needs_no_list():
    assert search(alphas=0.5).fit(*curve()).alpha_ == 0.5


def test_folds_without_a_class_are_explained():
    X, _ = curve(30)
    with pytest.raises(ValueError, match="stratified folds"):
        search_classes(cv=KFold(3)).fit(X, np.repeat([0, 1, 2], 10))


def test_no_finite_score_is_an_error():
    with pytest.raises(ValueError, match="no power has a finite score"):
        search(scoring=lambda *_: np.nan).fit(*curve())


def test_a_power_without_a_finite_score_is_not_chosen():
    model = search(alphas=(0.5, 1.0), scoring=lambda fit, X, y: np.nan if fit.alpha == 1.0 else -1.0).fit(*curve())
    assert model.alpha_ == 0.5


@pytest.mark.parametrize("make", [PowerEPRegressorCV, PowerEPClassifierCV])
def test_groups_are_given_to_the_splitter(make):
    X, y = curve() if make is PowerEPRegressorCV else two_classes()[:2]
    groups = np.arange(len(y)) % 3
    search = make(M=4, alphas=(0.0, 1.0), cv=GroupKFold(3), max_evaluations=3, random_state=0)
    assert search.fit(X, y, groups=groups).cv_results_["mean_test_score"].shape == (2,)
    with pytest.raises(ValueError, match="groups"):
        clone(search).fit(X, y)
