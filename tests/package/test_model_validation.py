"""What is no kernel or no likelihood is named at every public door; what has the methods needed is let in."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest

from pepcore import Blurred, decoupled, exact, multiclass, online, power_ep, training
from pepcore.kernels import Matern52, SquaredExponential, Sum
from pepcore.likelihoods import Probit
from pepcore.multiclass import learning, minibatch
from pepcore.online import fixed_basis
from pepcore.validation import check_kernel, check_likelihood

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(30, 2)), RNG.normal(size=(4, 2))
LABELS, CLASSES = np.sign(X[:, 0]), np.arange(30) % 3
KERNEL = SquaredExponential(1.0, [1.0, 1.0])

TAKE_KERNELS = {
    "exact.regression": lambda kernel: exact.regression(kernel, X, LABELS),
    "exact.infer": lambda kernel: exact.infer(kernel, X, LABELS, Probit()),
    "power_ep.regression": lambda kernel: power_ep.regression(kernel, Z, X, LABELS),
    "power_ep.infer": lambda kernel: power_ep.infer(kernel, Z, X, LABELS, Probit()),
    "fixed_basis.infer": lambda kernel: fixed_basis.infer(kernel, Z, X, LABELS, Probit()),
    "fixed_basis.nystrom": lambda kernel: fixed_basis.nystrom(kernel, Z, X, LABELS, X),
    "online.start": lambda kernel: online.start(kernel, Probit()),
    "online.infer": lambda kernel: online.infer(kernel, X, LABELS, Probit()),
    "decoupled": lambda kernel: decoupled.infer(kernel, Z, None, X, LABELS, Probit(), steps=1),
    "training.fit": lambda kernel: training.fit(kernel, X, LABELS, M=4, max_evaluations=2),
    "training.fit_minibatch": lambda kernel: training.fit_minibatch(kernel, X, LABELS, Probit(), M=4, epochs=1),
    "multiclass": lambda kernel: multiclass.infer(kernel, Z, X, CLASSES, max_sweeps=50),
    "multiclass_training": lambda kernel: learning.fit(kernel, X, CLASSES, M=4, iterations=1),
    "multiclass_minibatch": lambda kernel: minibatch.fit_minibatch(kernel, Z, (X, CLASSES)),
    "a kernel of each class": lambda kernel: multiclass.infer([KERNEL, kernel, KERNEL], Z, X, CLASSES, max_sweeps=50),
    "Blurred": lambda kernel: Blurred(kernel, 0.1),
    "a sum": lambda kernel: KERNEL + kernel,
    "Sum": lambda kernel: Sum((kernel, KERNEL)),
}
TAKE_LIKELIHOODS = {
    "exact.infer": lambda likelihood: exact.infer(KERNEL, X, LABELS, likelihood),
    "power_ep.infer": lambda likelihood: power_ep.infer(KERNEL, Z, X, LABELS, likelihood),
    "fixed_basis.infer": lambda likelihood: fixed_basis.infer(KERNEL, Z, X, LABELS, likelihood),
    "online.start": lambda likelihood: online.start(KERNEL, likelihood),
    "online.infer": lambda likelihood: online.infer(KERNEL, X, LABELS, likelihood),
    "decoupled": lambda likelihood: decoupled.infer(KERNEL, Z, None, X, LABELS, likelihood, steps=1),
    "training.fit": lambda likelihood: training.fit(KERNEL, X, LABELS, M=4, infer=power_ep.infer, likelihood=likelihood),
    "training.fit_minibatch": lambda likelihood: training.fit_minibatch(KERNEL, X, LABELS, likelihood, M=4, epochs=1),
}
each_door_of_kernels = pytest.mark.parametrize("door", TAKE_KERNELS.values(), ids=TAKE_KERNELS)
each_door_of_likelihoods = pytest.mark.parametrize("door", TAKE_LIKELIHOODS.values(), ids=TAKE_LIKELIHOODS)


@each_door_of_kernels
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("rbf", "is 'rbf', expected a kernel, an object that can be called and has the method diagonal; give SquaredExponential"),
        (SquaredExponential, r"is the class SquaredExponential, expected an object made of it; give SquaredExponential\("),
        (0.1, "is 0.1, expected a kernel"),
        (X, "is of type ndarray, expected a kernel"),
    ],
)
def test_what_is_no_kernel_is_named_at_every_door(door, kernel, message):
    with pytest.raises(ValueError, match=message):
        door(kernel)


def test_none_among_the_kernels_of_the_classes_is_numbered():
    with pytest.raises(ValueError, match=r"kernels\[1\] is None, expected a kernel"):
        TAKE_KERNELS["a kernel of each class"](None)


@each_door_of_likelihoods
@pytest.mark.parametrize(
    ("likelihood", "message"),
    [
        ("probit", r"likelihood is 'probit', expected a likelihood.* log_moment, validate and predict; give Probit\(\)"),
        (Probit, r"likelihood is the class Probit, expected an object made of it; give Probit\("),
        (None, "likelihood is None"),
        (KERNEL, "likelihood is of type SquaredExponential"),
    ],
)
def test_what_is_no_likelihood_is_named_at_every_door(door, likelihood, message):
    with pytest.raises(ValueError, match=message):
        door(likelihood)


class Foreign:
    """All that another object has, with no ancestor in common."""

    def __init__(self, part):
        self.part = part

    def __getattr__(self, name):
        return getattr(self.part, name)

    def __call__(self, *inputs):
        return self.part(*inputs)


class White:
    """A kernel for inference alone: it has no parameters, and no derivatives."""

    def __call__(self, X, X2=None):
        return np.eye(len(X))

    def diagonal(self, X):
        return np.ones(len(X))


def test_a_kernel_without_derivatives_is_good_for_inference():
    kernel = White()
    assert exact.infer(kernel, X, LABELS, Probit()).log_evidence == pytest.approx(30 * np.log(0.5), abs=1e-6)


def test_a_likelihood_of_many_functions_is_sent_where_it_belongs():
    several = multiclass.RobustMax(3)
    for infer in (exact.infer, online.infer):
        with pytest.raises(ValueError, match=r"call multiclass\.infer or decoupled\.infer"):
            infer(KERNEL, X, LABELS, several)
    for infer in (power_ep.infer, fixed_basis.infer):
        with pytest.raises(ValueError, match=r"call multiclass\.infer or decoupled\.infer"):
            infer(KERNEL, Z, X, LABELS, several)


def test_what_has_moments_alone_is_no_likelihood():
    with pytest.raises(ValueError, match="log_moment, validate and predict"):
        power_ep.infer(KERNEL, Z, X, LABELS, SimpleNamespace(log_moment=Probit().log_moment))


def test_kernels_and_likelihoods_of_others_are_taken_for_what_they_can_do():
    kernel, likelihood = Foreign(KERNEL), Foreign(Probit())
    assert check_kernel(kernel) is kernel
    assert check_likelihood(likelihood) is likelihood
    own = power_ep.infer(kernel, Z, X, LABELS, likelihood)
    assert own.log_evidence == power_ep.infer(KERNEL, Z, X, LABELS, Probit()).log_evidence


# --- the options of training ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"likelihood": Probit()},
            r"power_ep\.closed_form\.regression: .*'likelihood'; its options are blocks, jitter, stream; power_ep.infer and",
        ),
        ({"infer": power_ep.infer}, r"infer: missing a required argument: 'likelihood'; its options are likelihood, schedule, "),
        ({"infer": exact.infer}, r"exact\.infer: missing a required argument: 'likelihood'"),
        ({"jiter": 1e-6}, "unexpected keyword argument 'jiter'; its options are blocks, jitter, stream$"),
        ({"infer": "infer"}, "infer = 'infer' must be a function such as power_ep.regression"),
    ],
)
def test_training_names_the_options_that_a_method_has(options, message):
    with pytest.raises(ValueError, match=message):
        training.fit(None, X, LABELS, M=4, **options)


def test_training_takes_methods_with_options_filled_in():
    infer = functools.partial(power_ep.infer, likelihood=Probit(), jitter=1e-5)
    given = {"likelihood": Probit(), "jitter": 1e-5, "infer": power_ep.infer}
    expected = training.fit(None, X, LABELS, M=4, max_evaluations=3, **given)
    assert training.fit(None, X, LABELS, M=4, max_evaluations=3, infer=infer).history[0] == expected.history[0]


# --- the state of online learning -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call", [lambda fit: online.update(fit, X, LABELS), lambda fit: online.prune(fit, 0), online.scores]
)
def test_a_fit_in_the_place_of_its_state_is_named(call):
    fit = online.infer(KERNEL, X, LABELS, Probit(), budget=5)
    with pytest.raises(ValueError, match=r"state is of type OnlineFit, expected .* fit\.state"):
        call(fit)
    call(fit.state)


# --- kernels that are called directly ---------------------------------------------------------------------------------

CALLED = {
    "squared exponential": KERNEL,
    "Matérn": Matern52(0.7, 1.3),
    "sum": KERNEL + Matern52(0.7, 1.3),
    "blurred": Blurred(KERNEL, 0.2),
    "blurred once": Blurred(KERNEL, 0.2).uf,
    "blurred twice": Blurred(KERNEL, 0.2).uu,
}
each_kernel = pytest.mark.parametrize("kernel", CALLED.values(), ids=CALLED)


@each_kernel
def test_a_kernel_takes_lists_and_tables_and_single_precision_as_arrays(kernel):
    pandas = pytest.importorskip("pandas")
    single = X.astype(np.float32)
    points = single.astype(float)
    expected = kernel(points, Z)
    for given in (points.tolist(), pandas.DataFrame(points), single):
        assert np.array_equal(kernel(given, Z), expected)
        assert np.array_equal(kernel(given), kernel(points))
    assert np.array_equal(kernel(Z, points.tolist()), kernel(Z, points))


@each_kernel
def test_a_kernel_refuses_what_are_no_numbers(kernel):
    hole = np.where(np.arange(60).reshape(30, 2) == 7, np.nan, X)
    with pytest.raises(ValueError, match=r"X holds 1 value\(s\) that are NaN.*\(3, 1\)"):
        kernel(hole)
    with pytest.raises(ValueError, match=r"X2 holds 1 value"):
        kernel(Z, hole)
    with pytest.raises(ValueError, match="X must be an array of real numbers"):
        kernel([["a", "b"]])
    with pytest.raises(ValueError, match="X is a masked array"):
        kernel(np.ma.masked_greater(X, 1.0))
