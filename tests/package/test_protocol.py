"""Every result, whatever the method, can be asked the same questions; every callback sees the records of the history."""

import importlib
import inspect
import pickle
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from pepcore import decoupled, exact, multiclass, online, power_ep, training
from pepcore.kernels import Blurred, Matern52, SquaredExponential, Sum
from pepcore.likelihoods import Gaussian, Logit, Poisson, Probit, StudentT
from pepcore.multiclass import RobustMax
from pepcore.online import fixed_basis
from pepcore.results import Result
from pepcore.validation import check_likelihood

RNG = np.random.default_rng(0)
N, C = 30, 3
X, Z, GAMMA, XS = (RNG.normal(size=(size, 2)) for size in (N, 5, 4, 6))
F = np.sin(2 * X[:, 0]) + X[:, 1]
REAL = F + 0.3 * RNG.normal(size=N)
LABELS = np.where(REAL > 0, 1.0, -1.0)
COUNTS = RNG.poisson(np.exp(0.5 * F)).astype(float)
CLASSES = np.digitize(REAL, [-0.7, 0.7])
TARGETS = {Gaussian: REAL, StudentT: REAL, Probit: LABELS, Logit: LABELS, Poisson: COUNTS, RobustMax: CLASSES}
KERNEL = SquaredExponential(1.3, [0.9, 1.1])


class Case(NamedTuple):
    """One way to a result, and what is known of it beforehand."""

    door: Callable  # the function itself
    make: Callable  # (**options) -> the result
    likelihood: object  # as given, or the class of one that is learnt
    gradient: bool = True


def power_ep_infer(likelihood):
    targets = TARGETS[type(likelihood)]
    return Case(power_ep.infer, lambda **o: power_ep.infer(KERNEL, Z, X, targets, likelihood, **o), likelihood)


def regression(**options):
    return Case(power_ep.regression, lambda: power_ep.regression(KERNEL, Z, X, REAL, noise=0.2, **options), Gaussian(0.2))


def several_classes(approximation):
    return Case(
        multiclass.infer,
        lambda **o: multiclass.infer(KERNEL, Z, X, CLASSES, approximation=approximation, noise=0.3, **o),
        RobustMax(C, 0.001 * (C - 1) / C if approximation == "vi" else 0.0, 0.3),
    )


def decoupled_bases(likelihood):
    def make(**options):
        return decoupled.infer(KERNEL, Z, GAMMA, X, TARGETS[type(likelihood)], likelihood, steps=20, step=0.1, **options)

    return Case(decoupled.infer, make, likelihood)


def learnt_classes(**options):
    options = {"M": 5, "iterations": 3, "max_sweeps": 200} | options
    return Case(multiclass.fit, lambda **o: multiclass.fit(None, X, CLASSES, **options, **o), RobustMax)


def classes_on_batches(approximation):
    options = {"approximation": approximation, "batch": 10, "epochs": 5, "classes": C}
    return Case(multiclass.fit_minibatch, lambda **o: multiclass.fit_minibatch(KERNEL, Z, (X, CLASSES), **options, **o),
                RobustMax, gradient=False)


CASES = {
    "power_ep.regression": regression(alpha=0.5),
    "power_ep.regression, private powers": regression(alpha=np.linspace(0, 1, N)),
    "power_ep.regression, blocks": regression(blocks=np.arange(N) // 5),
    "power_ep.infer, probit": power_ep_infer(Probit()),
    "power_ep.infer, logit": power_ep_infer(Logit()),
    "power_ep.infer, counts": power_ep_infer(Poisson()),
    "power_ep.infer, outliers": power_ep_infer(StudentT(4.0, 0.3)),
    "power_ep.infer, Gaussian": power_ep_infer(Gaussian(0.2)),
    "exact.regression": Case(exact.regression, lambda: exact.regression(KERNEL, X, REAL, noise=0.2), Gaussian(0.2)),
    "exact.infer": Case(exact.infer, lambda **o: exact.infer(KERNEL, X, LABELS, Probit(), **o), Probit()),
    "online.infer": Case(
        online.infer,
        lambda **o: online.infer(KERNEL, X, LABELS, Probit(), budget=8, max_sweeps=50, moving_sweeps=2, **o),
        Probit(),
        gradient=False,
    ),
    "online.State": Case(
        online.update,
        lambda: online.update(online.start(KERNEL, Gaussian(0.2), budget=8), X, REAL),
        Gaussian(0.2),
        gradient=False,
    ),
    "fixed_basis.infer": Case(
        fixed_basis.infer, lambda **o: fixed_basis.infer(KERNEL, Z, X, LABELS, Probit(), **o), Probit(), gradient=False
    ),
    "multiclass.infer, ep": several_classes("ep"),
    "multiclass.infer, sep": several_classes("sep"),
    "multiclass.infer, gfitc": several_classes("gfitc"),
    "multiclass.infer, vi": several_classes("vi"),
    "decoupled.infer, Gaussian": decoupled_bases(Gaussian(0.2)),
    "decoupled.infer, classes": decoupled_bases(RobustMax(C, 0.01)),
    "training.fit, regression": Case(
        training.fit, lambda **o: training.fit(None, X, REAL, M=5, max_evaluations=8, **o), Gaussian
    ),
    "training.fit, exact": Case(
        training.fit, lambda **o: training.fit(None, X, REAL, infer=exact.regression, max_evaluations=8, **o), Gaussian
    ),
    "training.fit, outliers": Case(
        training.fit,
        lambda **o: training.fit(
            None, X, REAL, infer=power_ep.infer, likelihood=StudentT(4.0, 0.3), M=5, max_evaluations=8, **o
        ),
        StudentT,
    ),
    "training.fit_minibatch": Case(
        training.fit_minibatch,
        lambda **o: training.fit_minibatch(None, X, LABELS, Probit(), M=5, batch=10, epochs=3, **o),
        Probit(),
    ),
    "multiclass.fit, inner": learnt_classes(),
    "multiclass.fit, outer": learnt_classes(update="outer", optimiser="lbfgs"),
    "multiclass.fit, joint": learnt_classes(approximation="vi", update="joint", optimiser="adam"),
    "multiclass.fit_minibatch, sep": classes_on_batches("sep"),
    "multiclass.fit_minibatch, ep": classes_on_batches("ep"),
}
WATCHED = {name: case for name, case in CASES.items() if "callback" in inspect.signature(case.door).parameters}
LEARNING = (decoupled.infer, training.fit, training.fit_minibatch, multiclass.fit, multiclass.fit_minibatch)


@pytest.fixture(scope="module", params=CASES)
def made(request):
    """A case and its result."""
    case = CASES[request.param]
    return case, case.make()


def targets_of(result):
    return TARGETS[type(result.likelihood)][: len(XS)]


def numbers(thing):
    """All numbers of dicts, lists and arrays in one vector."""
    if isinstance(thing, dict):
        thing = list(thing.values())
    return np.concatenate([numbers(part) for part in thing]) if isinstance(thing, list) else np.ravel(thing)


# --- the protocol -----------------------------------------------------------------------------------------------------


def test_the_log_evidence_is_a_number(made):
    _, result = made
    assert isinstance(result, Result)
    assert isinstance(result.log_evidence, float) and np.isfinite(result.log_evidence)


def test_the_gradient_is_a_dict_or_the_error_names_what_to_call(made):
    case, result = made
    if case.gradient:
        assert isinstance(result.gradient, dict) and len(numbers(result.gradient)) > 2
        assert np.isfinite(numbers(result.gradient)).all()
        return
    with pytest.raises(NotImplementedError) as caught:
        _ = result.gradient
    module, name = re.search(r"\b(\w+)\.(\w+)", str(caught.value)).groups()
    assert callable(getattr(importlib.import_module(f"pepcore.{module}"), name))


def test_the_likelihood_is_that_of_the_model(made):
    case, result = made
    assert check_likelihood(result.likelihood, several=True) is result.likelihood
    if isinstance(case.likelihood, type):
        assert isinstance(result.likelihood, case.likelihood)
    else:
        assert result.likelihood == case.likelihood


def test_the_end_is_told(made):
    _, result = made
    assert isinstance(result.converged, bool)
    assert isinstance(result.message, str) and result.message


def test_the_history_is_a_list_of_dicts(made):
    _, result = made
    assert isinstance(result.history, list) and all(isinstance(record, dict) for record in result.history)
    trace = result.trace()
    assert trace.shape == (len(result.history),) and trace.dtype == float
    for value, record in zip(trace, result.history, strict=True):
        assert np.isfinite(value) if "log_evidence" in record else np.isnan(value)
    assert np.isfinite(trace).any() or not len(trace)


def test_the_latent_function_is_that_of_the_posterior(made):
    _, result = made
    mean, variance = result.predict_f(XS)
    assert mean.shape == variance.shape == ((len(XS), C) if isinstance(result.likelihood, RobustMax) else (len(XS),))
    assert np.isfinite(mean).all() and (variance > 0).all()
    assert np.array_equal(result.posterior.predict(XS), (mean, variance))


def test_what_is_predicted_of_y_is_in_the_range_of_y(made):
    _, result = made
    mean, variance = result.predict_f(XS)
    predicted = result.predict_y(XS)
    if isinstance(result.likelihood, RobustMax):
        assert predicted.shape == (len(XS), C) and (predicted >= 0).all()
        assert predicted.sum(axis=1) == pytest.approx(1, abs=1e-8)
    elif isinstance(result.likelihood, Probit | Logit):
        assert predicted.shape == (len(XS),) and ((predicted > 0) & (predicted < 1)).all()
        assert ((predicted > 0.5) == (mean > 0)).all()
    elif isinstance(result.likelihood, Poisson):
        assert predicted[0] == pytest.approx(np.exp(mean + variance / 2))
        assert (predicted[1] > predicted[0]).all()
    else:
        assert np.array_equal(predicted[0], mean)
        assert (predicted[1] > variance).all()


LOG_DENSITIES = {
    Gaussian: lambda likelihood, y, f: stats.norm.logpdf(y, f, np.sqrt(likelihood.noise)),
    StudentT: lambda likelihood, y, f: stats.t.logpdf(y, likelihood.degrees, f, likelihood.scale),
    Probit: lambda _, y, f: stats.norm.logcdf(y * f),
    Logit: lambda _, y, f: stats.logistic.logcdf(y * f),
    Poisson: lambda _, y, f: stats.poisson.logpmf(y, np.exp(f)),
}
GRID = np.linspace(-25, 25, 20_001)  # of f, or of one of the C functions, in units of its deviation


def log_mean(log_values):
    """log E[exp(log_values(x))], x standard normal, by the trapezoidal rule, which is exact to rounding for smooth functions."""
    return logsumexp(stats.norm.logpdf(GRID) + log_values) + np.log(GRID[1] - GRID[0])


def integrated(likelihood, y, mean, variance):
    """log E[p(y|f)]."""
    return log_mean(LOG_DENSITIES[type(likelihood)](likelihood, y, mean + np.sqrt(variance) * GRID))


def integrated_class(likelihood, y, mean, variance):
    """log P(y) where each of the C functions has its own noise: the largest of them is y's, unless the label is wrong."""
    deviation, rivals = np.sqrt(variance + likelihood.noise), [c for c in range(C) if c != y]
    f = mean[y] + deviation[y] * GRID
    largest = log_mean(sum(stats.norm.logcdf((f - mean[c]) / deviation[c]) for c in rivals))
    if likelihood.epsilon == 0:
        return largest
    return np.log((1 - likelihood.epsilon) * np.exp(largest) - likelihood.epsilon / (C - 1) * np.expm1(largest))


def test_the_log_density_is_that_of_the_integral(made):
    _, result = made
    ys, (mean, variance) = targets_of(result), result.predict_f(XS)
    by_hand = integrated_class if isinstance(result.likelihood, RobustMax) else integrated
    expected = [by_hand(result.likelihood, *one) for one in zip(ys, mean, variance, strict=True)]
    found = result.log_density(XS, ys)
    assert found.shape == (len(XS),)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert np.array_equal(result.log_density(XS.tolist(), ys.tolist()), found)


def test_a_result_says_how_much_jitter_was_needed():
    given = [power_ep.regression(KERNEL, Z, X, REAL, jitter=1e-5),
             decoupled.infer(KERNEL, Z, None, X, REAL, Gaussian(0.2), steps=1, jitter=1e-5)]
    assert [result.jitter for result in given] == [1e-5, 1e-5]
    twice = np.repeat(Z, 2, axis=0)
    assert power_ep.regression(KERNEL, twice, X, REAL, jitter=0.0).jitter > 0
    several = multiclass.infer(KERNEL, [Z, twice, Z], X, CLASSES, noise=0.3, jitter=0.0)
    needed = [part.basis.jitter for part in several.posterior.parts]
    assert several.jitter == needed[1] > needed[0] == needed[2] == 0


def test_targets_that_do_not_fit_are_named(made):
    _, result = made
    with pytest.raises(ValueError, match=r"ys has shape \(5,\), expected \(6,\), one number per row of Xs"):
        result.log_density(XS, targets_of(result)[:5])
    with pytest.raises(ValueError, match="NaN"):
        result.log_density(XS, np.full(len(XS), np.nan))


def test_it_is_shown_on_few_lines(made):
    _, result = made
    lines = repr(result).splitlines()
    assert 1 <= len(lines) <= 4
    assert max(map(len, lines)) <= 130


def test_it_can_be_sent_to_another_process(made):
    case, result = made
    again = pickle.loads(pickle.dumps(result))
    assert np.array_equal(again.predict_f(XS), result.predict_f(XS))
    assert np.array_equal(again.predict_y(XS), result.predict_y(XS))
    assert np.array_equal(again.log_density(XS, targets_of(result)), result.log_density(XS, targets_of(result)))
    assert (again.log_evidence, again.converged, again.message) == (result.log_evidence, result.converged, result.message)
    assert np.array_equal(again.trace(), result.trace(), equal_nan=True)
    if case.gradient:
        assert np.array_equal(numbers(again.gradient), numbers(result.gradient))


# --- callbacks --------------------------------------------------------------------------------------------------------


def test_every_door_with_a_callback_is_watched():
    doors = set()
    for module in (power_ep, exact, online, fixed_basis, multiclass, decoupled, training):
        functions = [thing for name, thing in vars(module).items() if inspect.isfunction(thing) and not name.startswith("_")]
        own = [thing for thing in functions if thing.__name__ != "run_sweeps"]
        doors |= {function for function in own if "callback" in inspect.signature(function).parameters}
    assert doors == {case.door for case in WATCHED.values()}
    assert len(doors) == 10


@pytest.mark.parametrize("name", WATCHED)
def test_a_callback_sees_the_very_records_of_the_history(name):
    seen = []
    result = WATCHED[name].make(callback=seen.append)
    # tied sites estimate the evidence in every tenth step only
    seen = [record for record in seen if np.isfinite(record["log_evidence"])]
    assert seen
    if name == "multiclass.fit, outer":  # a line search shows what is the best so far
        records = [record for record in result.history if any(record is one for one in seen)]
        assert [record["log_evidence"] for record in records] == sorted(record["log_evidence"] for record in records)
    else:
        records = result.history
    assert all(one is other for one, other in zip(seen, records, strict=True))


@pytest.mark.parametrize("name", [name for name, case in WATCHED.items() if case.door in LEARNING])
def test_a_record_makes_the_result_of_its_moment(name):
    kept = []

    def look(record):
        if len(kept) < 3:
            kept.append((dict(record), record, record.result(), record.result().predict_f(XS)))
            assert record.parameters is None or "noise" in record.parameters or "kernel" in record.parameters

    WATCHED[name].make(callback=look)
    for number, (then, record, result, moments) in enumerate(kept, start=1):
        assert then == record
        assert then.get("step", then.get("evaluation")) >= number
        assert isinstance(result, Result)
        assert np.array_equal(result.predict_f(XS), moments)  # later steps do not reach back
        assert record.result is None and record.parameters is None
    assert np.abs(kept[-1][3][0] - kept[0][3][0]).max() > 1e-6


@pytest.mark.parametrize("name", [name for name, case in WATCHED.items() if case.door in LEARNING])
def test_what_an_interrupt_leaves_can_be_sent_to_another_process(name):
    seen = []

    def stop(record):
        seen.append(record)
        if len(seen) == 2:
            raise KeyboardInterrupt

    model = WATCHED[name].make(callback=stop)
    assert "interrupted" in model.message
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.trace(), model.trace(), equal_nan=True)


# --- kernels and likelihoods are equal by value -----------------------------------------------------------------------

ONE, OTHER = SquaredExponential(1.3, [0.9, 1.1]), Matern52(1.3, [0.9, 1.1])


@pytest.mark.parametrize(
    "make",
    [
        lambda: SquaredExponential(1.3, [0.9, 1.1]),
        lambda: Matern52(0.7, 2.0),
        lambda: Sum((ONE, OTHER)),
        lambda: Blurred(ONE, [0.2, 0.3]),
        lambda: Blurred(ONE, 0.2).uf,
        lambda: Gaussian(0.2),
        lambda: RobustMax(C, 0.01, [0.1, 0.2, 0.3]),
    ],
)
def test_what_has_equal_parameters_is_equal(make):
    one, other = make(), make()
    assert one is not other
    assert one == other
    assert (one != other) is False
    assert hash(one) == hash(other) and len({one, other}) == 1
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ONE, SquaredExponential(1.3, [0.9, 1.2])),
        (ONE, SquaredExponential(1.4, [0.9, 1.1])),
        (SquaredExponential(1.3, 0.9), SquaredExponential(1.3, [0.9])),  # one shared by all inputs, and that of one input
        (ONE, OTHER),
        (Sum((ONE, OTHER)), Sum((OTHER, ONE))),
        (Sum((ONE, OTHER)), Sum((ONE, ONE))),
        (Sum((ONE,)), ONE),
        (Blurred(ONE, 0.2), Blurred(ONE, 0.3)),
        (Blurred(ONE, 0.2), ONE),
        (ONE, "SquaredExponential"),
        (Gaussian(0.2), Gaussian(0.3)),
        (RobustMax(C, 0.01, 0.1), RobustMax(C, 0.01, [0.1, 0.1, 0.2])),
        (RobustMax(C, 0.01), RobustMax(C, 0.02)),
        (RobustMax(C, 0.01), RobustMax(C + 1, 0.01)),
    ],
)
def test_what_differs_is_unequal(one, other):
    assert one != other and other != one
    assert (one == other) is False


def test_the_sum_of_two_kernels_is_the_sum_of_its_parts():
    assert ONE + OTHER == Sum((ONE, OTHER))
    assert ONE.with_parameters(ONE.parameters) == ONE


def test_a_model_without_a_kernel_of_that_name_says_so():
    one = training.fit(KERNEL, X, REAL, M=4, max_evaluations=3)
    many = multiclass.fit(KERNEL, X, CLASSES, M=4, iterations=2)
    assert one.kernel is one.parameters["kernel"] and many.kernels is many.parameters["kernels"]
    assert not hasattr(one, "kernels") and not hasattr(many, "kernel")
    with pytest.raises(AttributeError, match="no kernel, but kernels"):
        many.kernel  # noqa: B018


def test_a_result_without_a_gradient_has_none_to_ask_for():
    X = np.linspace(0, 1, 8)[:, None]
    fit = online.infer(SquaredExponential(), X, np.sin(X[:, 0]), Gaussian(0.1), max_sweeps=2)
    assert not hasattr(fit, "gradient") and dict(inspect.getmembers(fit))
    with pytest.raises(NotImplementedError, match=r"training\.fit"):
        fit.gradient  # noqa: B018
