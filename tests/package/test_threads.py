"""The threads of one call: the same bits for every number of them, and no more than the surroundings allow."""

import multiprocessing
import threading

import numpy as np
import pytest
import threadpoolctl

from pepcore import decoupled, multiclass, power_ep
from pepcore.features import in_order
from pepcore.gaussian import add_gram, add_outer, multiply_lower
from pepcore.kernels import Matern52, SquaredExponential
from pepcore.likelihoods import Gaussian, Probit
from pepcore.threads import one_blas_thread, set_threads, thread_count


@pytest.fixture
def choose():
    yield set_threads
    set_threads(None)


def problem(N, M=6, D=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    return X[:M].copy(), X, np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=N)


def same_bits(one, other):
    assert one.log_evidence == other.log_evidence
    np.testing.assert_array_equal(one.posterior.mean, other.posterior.mean)
    assert one.gradient.keys() == other.gradient.keys()
    for key, value in one.gradient.items():
        np.testing.assert_array_equal(value, other.gradient[key])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kernel", [SquaredExponential(1.3, [0.8, 1.2]), SquaredExponential() + Matern52(0.5, 0.7)])
@pytest.mark.parametrize("private", [False, True])
def test_regression_has_the_same_bits_for_every_number_of_threads(choose, monkeypatch, kernel, stream, private):
    monkeypatch.setattr("pepcore.features.BLOCK_ELEMENTS", 64 * 6)
    Z, X, y = problem(1500)
    alpha = np.linspace(0, 1, len(y)) if private else 0.5
    fits = []
    for threads in (1, 2, 3):
        choose(threads)
        fits.append(power_ep.regression(kernel, Z, X, y, alpha=alpha, stream=stream))
        fits[-1].gradient  # noqa: B018 - computed now, by so many threads
    same_bits(fits[0], fits[1])
    same_bits(fits[0], fits[2])


def test_what_a_thread_of_a_call_calls_gets_no_threads_of_its_own(choose):
    choose(3)
    names = lambda part: [thread_count(), *in_order(lambda _: threading.current_thread().name, range(4))]
    assert all(inner[0] == 1 and len(set(inner[1:])) == 1 for inner in in_order(names, range(6)))
    assert thread_count() == 3


def test_threads_heed_what_the_caller_does_with_floating_point_errors(choose):
    choose(2)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        list(in_order(lambda part: np.float64(1e300) * np.float64(1e300), range(4)))
    with np.errstate(over="ignore"):
        assert list(in_order(lambda part: np.float64(1e300) * np.float64(1e300), range(4))) == [np.inf] * 4


def test_the_gradient_of_iterative_ep_has_the_same_bits(choose, monkeypatch):
    monkeypatch.setattr("pepcore.features.BLOCK_ELEMENTS", 64 * 6)
    Z, X, y = problem(600)
    fits = []
    for threads in (1, 2):
        choose(threads)
        fits.append(power_ep.infer(SquaredExponential(), Z, X, np.sign(y), Probit()))
        fits[-1].gradient  # noqa: B018
    same_bits(*fits)


@pytest.mark.filterwarnings("ignore:EP has not converged")
@pytest.mark.parametrize("approximation", ["sep", "ep", "vi"])
def test_many_classes_have_the_same_bits(choose, monkeypatch, approximation):
    monkeypatch.setattr("pepcore.features.EFFORT", 0.0)
    Z, X, _ = problem(90)
    fits = []
    for threads in (1, 2, 3):
        choose(threads)
        options = {"approximation": approximation, "max_sweeps": 5, "tolerance": 1e-3}
        fits.append(multiclass.infer(SquaredExponential(), Z, X, np.arange(len(X)) % 3, **options))
        fits[-1].gradient  # noqa: B018
    for other in fits[1:]:
        assert fits[0].log_evidence == other.log_evidence
        np.testing.assert_array_equal(fits[0].gradient["Z"], other.gradient["Z"])
        np.testing.assert_array_equal(fits[0].predict_f(X)[1], other.predict_f(X)[1])


def test_work_is_shared_and_comes_back_in_order(choose):
    choose(2)
    meeting = threading.Barrier(2, timeout=60)  # passed only by two threads at the same time

    def work(part):
        meeting.wait()
        return part, threading.get_ident()

    parts, idents = zip(*in_order(work, range(6)), strict=True)
    assert parts == tuple(range(6))
    assert len(set(idents)) == 2


def test_no_threads_for_little_work(choose):
    choose(2)
    here = threading.get_ident()
    assert list(in_order(lambda part: threading.get_ident(), range(4), effort=1e3)) == [here] * 4
    assert here not in in_order(lambda part: threading.get_ident(), range(4), effort=1e9)


@pytest.mark.skipif(not one_blas_thread.pools, reason="need a BLAS library whose threads threadpoolctl can limit")
def test_by_default_as_many_threads_as_blas_gave_up():
    with threadpoolctl.threadpool_limits(2), one_blas_thread:
        assert thread_count() == 2
        with one_blas_thread:
            assert thread_count() == 2
    with threadpoolctl.threadpool_limits(1), one_blas_thread:
        assert thread_count() == 1
    assert thread_count() == 1


@pytest.mark.parametrize("likelihood", [Gaussian(0.1), Probit()], ids=str)
def test_decoupled_bases_have_the_same_bits(choose, monkeypatch, likelihood):
    monkeypatch.setattr("pepcore.decoupled.bound.BLOCK_ELEMENTS", 64 * 10)
    monkeypatch.setattr("pepcore.features.EFFORT", 0)
    Z, X, y = problem(1500)
    y = np.sign(y) if isinstance(likelihood, Probit) else y
    fits = []
    for threads in (1, 2, 3):
        choose(threads)
        found = decoupled.infer(SquaredExponential(), Z, X[:4], X, y, likelihood, basis="orthogonal", steps=3, batch=len(X),
                                optimise=("kernel", "beta", "gamma"))
        fits.append(found)
    for other in fits[1:]:
        assert other.log_evidence == fits[0].log_evidence
        np.testing.assert_array_equal(other.posterior.predict(X)[0], fits[0].posterior.predict(X)[0])


def test_one_thread_where_the_call_itself_is_in_a_thread(choose):
    found = []
    with threadpoolctl.threadpool_limits(2), one_blas_thread:
        other = threading.Thread(target=lambda: found.append(thread_count()))
        other.start()
        other.join()
    assert found == [1]


def threads_where_blas_gave_up_two(_):
    with threadpoolctl.threadpool_limits(2), one_blas_thread:
        return thread_count()


def test_one_thread_in_a_child_process():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(threads_where_blas_gave_up_two, [0]) == [1]


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_a_number_of_threads_that_is_none_is_refused(threads):
    with pytest.raises(ValueError, match="must be a whole number, at least 1, or None"):
        set_threads(threads)


def test_the_products_are_those_of_numpy():
    rng = np.random.default_rng(0)
    T, B, C = (np.asfortranarray(rng.normal(size=shape)) for shape in [(5, 5), (5, 7), (5, 5)])
    for transposed, lower in ((False, np.tril(T)), (True, np.tril(T).T)):
        product = B.copy(order="F")
        multiply_lower(T, product, transposed)
        np.testing.assert_allclose(product, lower @ B, rtol=1e-12)
    gram = C.copy(order="F")
    add_gram(gram, B)
    np.testing.assert_allclose(np.tril(gram), np.tril(C + B @ B.T), rtol=1e-12)
    np.testing.assert_array_equal(np.triu(gram, 1), np.triu(C, 1))
    outer, m, v = B.copy(order="F"), rng.normal(size=5), rng.normal(size=(7, 3))[:, 1]
    add_outer(outer, m, v)
    np.testing.assert_allclose(outer, B + np.outer(m, v), rtol=1e-12)


@pytest.mark.parametrize(
    "arrays",
    [
        (np.eye(3), np.ones((3, 4))),
        (np.eye(3, order="F"), np.ones((4, 4), order="F")),
        (np.eye(3, order="F", dtype=np.float32), np.ones((3, 4), order="F")),
    ],
)
@pytest.mark.parametrize("product", [multiply_lower, add_gram])
def test_arrays_that_a_pointer_would_misread_are_refused(product, arrays):
    with pytest.raises(TypeError, match="float64 arrays in Fortran order whose shapes fit"):
        product(*arrays)
