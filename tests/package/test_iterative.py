"""Sparse Power EP by iteration, against closed forms, dense EP, other software and direct optimisation."""

import numpy as np
import pytest
from conftest import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import slope
from scipy.optimize import minimize

from pepcore import datasets, exact, multiclass, online, power_ep, training
from pepcore.kernels import Blurred, Matern52, SquaredExponential
from pepcore.likelihoods import Gaussian, Logit, Poisson, Probit, StudentT
from pepcore.online import fixed_basis
from pepcore.sites import ImproperCavityError, Sites

ALPHAS = [0.0, 0.01, 0.5, 1.0]
each_alpha = pytest.mark.parametrize("alpha", ALPHAS)
KERNEL = SquaredExponential(2.0, [0.9, 1.3])


def problem(seed=0, N=40, M=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=N) > 0, 1.0, -1.0)
    return 1.5 * rng.normal(size=(M, 2)), X, y


@each_alpha
def test_gaussian_likelihood_needs_one_sweep_to_the_closed_form(alpha):
    Z, X, _ = problem()
    y = np.sin(X.sum(axis=1))
    closed = power_ep.regression(KERNEL, Z, X, y, noise=0.3, alpha=alpha)
    fit = power_ep.infer(KERNEL, Z, X, y, Gaussian(0.3), alpha=alpha)
    assert fit.sweeps == 1
    assert fit.log_evidence == pytest.approx(closed.log_evidence, rel=1e-10)
    np.testing.assert_allclose(fit.sites.tau, closed.sites.tau, rtol=1e-10)
    for key, value in fit.gradient.items():
        np.testing.assert_allclose(value, closed.gradient[key], rtol=1e-8, atol=1e-8)


@each_alpha
def test_pseudo_inputs_at_the_data_give_dense_power_ep(alpha):
    _, X, y = problem(1)
    dense = exact.infer(KERNEL, X, y, Probit(), alpha=alpha, tolerance=1e-10)
    fit = power_ep.infer(KERNEL, X, X, y, Probit(), alpha=alpha, tolerance=1e-10, jitter=1e-11)
    assert fit.log_evidence == pytest.approx(dense.log_evidence, abs=1e-7)
    Xs = np.random.default_rng(2).normal(size=(9, 2))
    np.testing.assert_allclose(fit.predict_y(Xs), dense.predict_y(Xs), atol=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 0.5, 0.2])
def test_values_of_the_authors_code_are_met(alpha):
    ref = reference("classification_small.npz")
    kernel, name = SquaredExponential(float(ref["s2"]), ref["ls"]), f"authors_pep_{alpha}_gh60__"
    jitter = 1e-6 / kernel.variance  # theirs is absolute
    fit = power_ep.infer(kernel, ref["Z"], ref["X"], ref["y_pm1"][:, 0], Probit(), alpha=alpha, jitter=jitter)
    assert fit.log_evidence == pytest.approx(float(ref[name + "energy_seq"]), rel=1e-7)
    mean, variance = fit.predict_f(ref["Xs"])
    np.testing.assert_allclose(mean, np.ravel(ref[name + "mean_f"]), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(variance, np.ravel(ref[name + "var_f"]), rtol=1e-5)


def test_alpha_zero_is_the_maximum_of_the_variational_bound():
    """The bound :eq:`sc-bound`, against L-BFGS over m and a Cholesky factor of V, with the expectation by Gauss-Hermite."""
    Z, X, y = problem(3, M=4)
    fit = power_ep.infer(KERNEL, Z, X, y, Probit(), alpha=0.0, tolerance=1e-11)
    A, h = fit.posterior.basis.features(X)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    lower = np.tril_indices(4)

    def negative_bound(point):
        m, root = point[:4], np.zeros((4, 4))
        root[lower] = point[4:]
        mean, variance = A.T @ m, h + ((root.T @ A) ** 2).sum(axis=0)
        log_p = Probit().log_density(y[:, None], mean[:, None] + np.sqrt(variance)[:, None] * nodes)
        kl = 0.5 * ((root**2).sum() + m @ m - 4) - np.log(np.abs(np.diag(root))).sum()
        return kl - (log_p @ weights).sum() / weights.sum()

    start = np.concatenate([np.zeros(4), np.eye(4)[lower]])
    best = minimize(negative_bound, start, method="BFGS", options={"gtol": 1e-7, "maxiter": 2000})
    assert fit.log_evidence == pytest.approx(-best.fun, abs=1e-6)


@pytest.mark.parametrize(("N", "M", "seed"), [(40, 8, 0), (200, 15, 1), (600, 20, 2)])
def test_the_evidence_is_continuous_where_alpha_reaches_zero(N, M, seed):
    Z, X, y = problem(seed, N=N, M=M)
    fits = [power_ep.infer(KERNEL, Z, X, y, Probit(), alpha=a, tolerance=1e-10) for a in (0.0, 1e-8, 1e-4, 2e-4)]
    at_zero, nearby, once, twice = (fit.log_evidence for fit in fits)
    assert nearby == pytest.approx(at_zero, abs=1e-6)
    assert once == pytest.approx(at_zero, abs=1e-3)
    assert twice - at_zero == pytest.approx(2 * (once - at_zero), rel=1e-2)


def test_pseudo_inputs_at_the_data_give_dense_ep_on_ionosphere():
    data = datasets.load("ionosphere")
    X, _ = datasets.standardise(data.X, data.X)
    train, test = np.arange(len(X)) % 2 == 0, np.arange(len(X)) % 2 == 1
    kernel = SquaredExponential(10.0, np.full(X.shape[1], 4.0))
    dense = exact.infer(kernel, X[train], data.y[train], Probit(), tolerance=1e-9)
    fit = power_ep.infer(kernel, X[train], X[train], data.y[train], Probit(), alpha=1.0, jitter=1e-10, tolerance=1e-9)
    assert fit.log_evidence == pytest.approx(dense.log_evidence, abs=1e-6)
    np.testing.assert_allclose(fit.predict_y(X[test]), dense.predict_y(X[test]), atol=1e-6)


LIKELIHOODS = {
    "probit": (Probit(), lambda f, rng: np.where(f > rng.normal(size=f.size), 1.0, -1.0)),
    "logit": (Logit(), lambda f, rng: np.where(f > rng.logistic(size=f.size), 1.0, -1.0)),
    "poisson": (Poisson(), lambda f, rng: rng.poisson(np.exp(f)).astype(float)),
    "student": (StudentT(4.0, 0.4), lambda f, rng: f + 0.4 * rng.standard_t(4, f.size)),
    "gaussian": (Gaussian(0.3), lambda f, rng: f + 0.5 * rng.normal(size=f.size)),
}
BASE = SquaredExponential(1.5, [0.9, 1.3])
KERNELS = {"ordinary": BASE + Matern52(0.5, 1.1), "inter-domain": Blurred(BASE, [0.4, 0.2])}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
@pytest.mark.parametrize("name", LIKELIHOODS)
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([0.0, 0.01, 0.3, 1.0]))
def test_gradient_agrees_with_differences_through_reconverged_ep(name, kernel, seed, alpha):
    Z, X, _ = problem(seed, N=20, M=4)
    rng = np.random.default_rng(seed)
    likelihood, draw = LIKELIHOODS[name]
    y = draw(np.sin(2 * X[:, 0]) + X[:, 1], rng)
    options = {"alpha": alpha, "tolerance": 1e-11, "jitter": 1e-4, "max_sweeps": 1000}
    fit = power_ep.infer(kernel, Z, X, y, likelihood, **options)
    way = {key: rng.normal(size=np.shape(value)) for key, value in fit.gradient.items()}

    def moved(thing, t):
        return thing.with_parameters({key: value + t * way[key] for key, value in thing.parameters.items()})

    def evidence(t):
        place = moved(kernel, t), Z + t * way["Z"], X, y, moved(likelihood, t)
        return power_ep.infer(*place, sites=fit.sites, **options).log_evidence

    parts = [np.sum(fit.gradient[key] * way[key]) for key in way]
    assert abs(sum(parts) - slope(evidence)) <= 1e-6 * max(1.0, np.abs(parts).sum())


@pytest.mark.parametrize("schedule", ["alternating", "sequential"])
@pytest.mark.parametrize("name", LIKELIHOODS)
@each_alpha
def test_other_orders_of_the_updates_end_at_the_same_fixed_point(name, alpha, schedule):
    Z, X, _ = problem(10)
    likelihood, draw = LIKELIHOODS[name]
    y = draw(np.sin(2 * X[:, 0]) + X[:, 1], np.random.default_rng(10))
    parallel = power_ep.infer(KERNEL, Z, X, y, likelihood, alpha=alpha, tolerance=1e-10)
    other = power_ep.infer(KERNEL, Z, X, y, likelihood, alpha=alpha, tolerance=1e-10, schedule=schedule)
    assert parallel.converged and other.converged
    assert other.sweeps <= parallel.sweeps
    assert other.log_evidence == pytest.approx(parallel.log_evidence, abs=1e-8)
    np.testing.assert_allclose(other.sites.nu, parallel.sites.nu, rtol=1e-7, atol=1e-7)


def test_a_student_t_likelihood_makes_sites_of_negative_precision():
    Z, X, y = problem(11)
    y = np.where(np.arange(40) % 8 == 0, 20.0, np.sin(X[:, 0]))
    fit = power_ep.infer(KERNEL, Z, X, y, StudentT(3.0, 0.1))
    assert fit.converged
    assert (fit.sites.tau < 0).any()
    mean, variance = fit.predict_f(X)
    assert (variance > 0).all()
    assert np.abs(mean - np.sin(X[:, 0])).mean() < 0.3  # the outliers at 20 hardly pull


def test_convergence_asks_for_a_steady_evidence_too():
    Z, X, y = problem(12, N=200, M=15)
    fit = power_ep.infer(KERNEL, Z, X, y, Probit(), tolerance=1e-6)
    before, last = (entry["log_evidence"] for entry in fit.history[-2:])
    assert fit.history[-1]["change"] <= 1e-6
    assert abs(last - before) <= 1e-6 * max(1.0, abs(last))
    again = power_ep.infer(KERNEL, Z, X, y, Probit(), tolerance=1e-6, sites=fit.sites)
    assert again.sweeps == 1  # from converged sites one sweep is needed to see that the evidence stands


@pytest.mark.parametrize(
    ("N", "M", "variance", "seed"),
    [(200, 15, 2.0, 5), (1000, 30, 2.0, 6), (300, 40, 5.0, 7), (500, 10, 0.5, 8), (400, 25, 10.0, 9)],
)
def test_sweeps_hardly_depend_on_alpha(N, M, variance, seed):
    Z, X, y = problem(seed, N=N, M=M)
    kernel = KERNEL.with_parameters({"variance": variance})
    fits = {a: power_ep.infer(kernel, Z, X, y, Probit(), alpha=a) for a in (0.0, 0.01, 0.1, 0.5, 1.0)}
    assert all(fit.converged for fit in fits.values())
    sweeps = {alpha: fit.sweeps for alpha, fit in fits.items()}
    assert max(sweeps.values()) <= 1.5 * sweeps[1.0], sweeps


@pytest.mark.filterwarnings("ignore:EP has not converged")
def test_a_step_of_alpha_crawls():
    """The paper's own update is the damped step with ε = α."""
    Z, X, y = problem(5, N=200, M=15)
    own = power_ep.infer(KERNEL, Z, X, y, Probit(), alpha=0.1, step=0.1, max_sweeps=1000).sweeps
    assert own > 5 * power_ep.infer(KERNEL, Z, X, y, Probit(), alpha=0.1).sweeps


def test_order_of_the_data_and_streaming_do_not_matter(monkeypatch):
    monkeypatch.setattr("pepcore.features.BLOCK_ELEMENTS", 64 * 8)
    Z, X, y = problem(6, N=300)
    order = np.random.default_rng(0).permutation(300)
    one = power_ep.infer(KERNEL, Z, X, y, Probit())
    other = power_ep.infer(KERNEL, Z, X[order], y[order], Probit(), stream=True)
    assert other.log_evidence == pytest.approx(one.log_evidence, rel=1e-9)
    np.testing.assert_allclose(other.gradient["Z"], one.gradient["Z"], rtol=1e-6, atol=1e-8)


def test_a_warm_start_saves_sweeps():
    Z, X, y = problem(7, N=200, M=15)
    first = power_ep.infer(KERNEL, Z, X, y, Probit())
    near = KERNEL.with_parameters({"variance": 2.02})
    assert (
        power_ep.infer(near, Z, X, y, Probit(), sites=first.sites).sweeps
        < power_ep.infer(near, Z, X, y, Probit()).sweeps
    )


def test_too_few_sweeps_are_told_truly():
    Z, X, y = problem(8)
    with pytest.warns(RuntimeWarning, match="not converged after 2 sweeps"):
        fit = power_ep.infer(KERNEL, Z, X, y, Probit(), max_sweeps=2)
    assert not fit.converged
    assert len(fit.history) == 3


@pytest.mark.parametrize("call", [
    lambda Z, X, y: exact.infer(KERNEL, X, y, Probit(), max_sweeps=1),
    lambda Z, X, y: power_ep.infer(KERNEL, Z, X, y, Probit(), max_sweeps=1),
    lambda Z, X, y: fixed_basis.infer(KERNEL, Z, X, y, Probit(), max_sweeps=1),
    lambda Z, X, y: multiclass.infer(KERNEL, Z, X, y > 0, max_sweeps=1),
    lambda Z, X, y: online.infer(KERNEL, X, y, Probit(), max_sweeps=2),
    lambda Z, X, y: training.fit(KERNEL, X, y, Z=Z, infer=power_ep.infer, likelihood=Probit(), max_sweeps=1, max_evaluations=1),
])
def test_the_warning_names_the_line_that_called_the_package(call):
    with pytest.warns(RuntimeWarning, match="not converged after") as caught:
        call(*problem(8))
    assert {(warning.filename, warning.lineno) for warning in caught} == {(__file__, call.__code__.co_firstlineno)}


@pytest.mark.parametrize(("options", "message"), [
    ({"alpha": 1.5}, r"alpha = 1\.5"),
    ({"schedule": "serial"}, "choose 'parallel', 'alternating' or 'sequential'"),
    ({"step": 2.0}, "step = 2"),
    ({"sites": Sites.flat(3)}, "one for each row of X"),
    ({"sites": (np.zeros(40), np.zeros(40))}, r"must be Sites .*got tuple"),
])
def test_bad_options_are_refused(options, message):
    Z, X, y = problem(9)
    with pytest.raises(ValueError, match=message):
        power_ep.infer(KERNEL, Z, X, y, Probit(), **options)


def test_labels_that_count_from_zero_are_refused():
    Z, X, y = problem(9)
    with pytest.raises(ValueError, match=r"labels -1 and \+1"):
        power_ep.infer(KERNEL, Z, X, (y + 1) / 2, Probit())


def test_sites_that_leave_no_posterior_are_refused():
    Z, X, y = problem(9)
    with pytest.raises(ImproperCavityError, match="sites of negative precision leave no proper posterior"):
        power_ep.infer(KERNEL, Z, X, y, Probit(), sites=Sites(np.full(40, -9.0), np.zeros(40)))


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("size", [20, 300, 3000])
def test_large_counts_converge_at_every_power(size, alpha):
    """At α = 0 the first full step would lead to a rate of exp(size)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.round(size * np.exp(np.sin(X[:, 0])))
    for schedule in ("parallel", "alternating"):
        fit = power_ep.infer(SquaredExponential(1.0, 1.0), X[:8], X, y, Poisson(), alpha=alpha, schedule=schedule)
        assert fit.converged


@pytest.mark.parametrize("schedule", ["parallel", "alternating", "sequential"])
def test_private_powers_are_those_of_the_closed_form_and_of_dense_power_ep(schedule):
    Z, X, y = problem(13)
    alpha, f = np.linspace(0, 1, 40), np.sin(X.sum(axis=1))
    closed = power_ep.regression(KERNEL, Z, X, f, noise=0.3, alpha=alpha)
    fit = power_ep.infer(KERNEL, Z, X, f, Gaussian(0.3), alpha=alpha, schedule=schedule)
    assert fit.log_evidence == pytest.approx(closed.log_evidence, rel=1e-10)
    for key, value in closed.gradient.items():
        np.testing.assert_allclose(fit.gradient[key], value, rtol=1e-7, atol=1e-7)
    dense = exact.infer(KERNEL, X, y, Probit(), alpha=alpha, tolerance=1e-10)
    fit = power_ep.infer(KERNEL, X, X, y, Probit(), alpha=alpha, schedule=schedule, tolerance=1e-10, jitter=1e-11)
    assert fit.log_evidence == pytest.approx(dense.log_evidence, abs=1e-7)
    np.testing.assert_allclose(fit.sites.tau, dense.sites.tau, atol=1e-6)


def test_gradients_with_private_powers_agree_with_differences():
    Z, X, y = problem(14, N=20, M=4)
    options = {"alpha": np.linspace(0, 1, 20), "tolerance": 1e-12, "max_sweeps": 1000}
    fit, rng = power_ep.infer(KERNEL, Z, X, y, Probit(), **options), np.random.default_rng(0)
    way = rng.normal(size=Z.shape)
    ends = [power_ep.infer(KERNEL, Z + t * way, X, y, Probit(), sites=fit.sites, **options).log_evidence for t in (1e-4, -1e-4)]
    assert (fit.gradient["Z"] * way).sum() == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-6)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("schedule", ["parallel", "alternating", "sequential"])
def test_blocks_of_rows_change_nothing(schedule, stream, monkeypatch):
    Z, X, y = problem(6, N=150)
    alpha = np.linspace(0, 1, 150)
    whole = power_ep.infer(KERNEL, Z, X, y, Probit(), alpha=alpha, max_sweeps=300, tolerance=1e-10)
    expected = whole.gradient
    monkeypatch.setattr("pepcore.features.BLOCK_ELEMENTS", 1)  # 64 rows, the fewest
    blocked = power_ep.infer(KERNEL, Z, X, y, Probit(), alpha=alpha, schedule=schedule, stream=stream, tolerance=1e-10)
    assert blocked.converged
    assert blocked.log_evidence == pytest.approx(whole.log_evidence, abs=1e-8)
    for key, value in expected.items():
        np.testing.assert_allclose(blocked.gradient[key], value, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("noise", "digits"), [(1e-6, 1e-9), (1e-8, 1e-7)])
@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_sharp_sites_are_found_in_a_few_sweeps(noise, digits, alpha):
    """The closed form's evidence, with features that explain everything: 1 + α d2 s would cancel."""
    X = np.linspace(0, 20, 12)[:, None]
    y, kernel = np.sin(2 * X[:, 0]), SquaredExponential(1.0, 0.5)
    expected = power_ep.regression(kernel, X, X, y, noise=noise, alpha=alpha, jitter=0.0)
    found = power_ep.infer(kernel, X, X, y, Gaussian(noise), alpha=alpha, jitter=0.0)
    assert found.converged and found.sweeps <= 3
    assert found.log_evidence == pytest.approx(expected.log_evidence, abs=digits)
