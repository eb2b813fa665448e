"""Leave-one-out predictions against refits without each datum.

With Gaussian noise they are those of the refits. With other likelihoods the sites of the other data would move in a refit, and
do not here. The largest differences that this leaves, over 30 data with D = 1 and 8 pseudo-inputs (`infer_problem`), in
standard deviations of the latent f for the mean, relative for the variance, and in nats for the log density; in brackets
the same for the prediction from all data, the datum itself among them:

| likelihood | alpha | mean | variance | log density |
| --- | --- | --- | --- | --- |
| Probit | 0 | 0.016 (0.48) | 0.038 (0.34) | 0.0074 (0.23) |
| Probit | 0.5 | 0.018 (0.48) | 0.037 (0.33) | 0.0078 (0.23) |
| Probit | 1 | 0.019 (0.47) | 0.035 (0.32) | 0.0081 (0.23) |
| Logit | 0 | 0.006 (0.41) | 0.02 (0.22) | 0.0024 (0.16) |
| Logit | 0.5 | 0.0063 (0.41) | 0.02 (0.22) | 0.0025 (0.16) |
| Logit | 1 | 0.0067 (0.4) | 0.02 (0.21) | 0.0026 (0.16) |
| Poisson | 0 | 0.054 (0.65) | 0.096 (0.44) | 0.029 (0.38) |
| Poisson | 0.5 | 0.052 (0.65) | 0.096 (0.44) | 0.028 (0.38) |
| Poisson | 1 | 0.05 (0.65) | 0.096 (0.43) | 0.028 (0.38) |
| StudentT | 0 | 0.11 (1.2) | 0.14 (0.67) | 0.072 (1.3) |
| StudentT | 0.5 | 0.13 (1.2) | 0.14 (0.65) | 0.085 (1.2) |
| StudentT | 1 | 0.15 (1.2) | 0.15 (0.62) | 0.11 (1.2) |

With D = 3 the differences are of the same size; `python tests/package/test_leave_one_out.py` prints both.
"""

from dataclasses import replace

import numpy as np
import pytest

import pepcore
from pepcore import decoupled, exact, multiclass, online, power_ep, training
from pepcore.kernels import Blurred, Matern52, SquaredExponential
from pepcore.likelihoods import Gaussian, Logit, Poisson, Probit, StudentT
from pepcore.online import fixed_basis
from pepcore.results import LeftOut
from pepcore.sites import ImproperCavityError, Sites, cavity

each_alpha = pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
each_dimension = pytest.mark.parametrize("D", [1, 3])


def problem(D, N=30, M=8):
    rng = np.random.default_rng(D)
    X = rng.normal(size=(N, D))
    f = 2 * np.sin(2 * X[:, 0]) + X[:, -1]
    return SquaredExponential(2.0, 0.8 * np.sqrt(np.arange(1, D + 1))), 1.5 * rng.normal(size=(M, D)), X, f, rng


@pytest.mark.filterwarnings("ignore:EP has not converged")
def test_data_of_a_fit_that_has_not_converged_are_not_taken_for_others():
    kernel, Z, X, f, _ = problem(1)
    fit = power_ep.infer(kernel, Z, X, f, Gaussian(0.1), schedule="alternating", max_sweeps=1, step=0.5)
    assert np.isfinite(pepcore.leave_one_out(fit, X, f).log_density).all()


def targets(likelihood, f, rng):
    if isinstance(likelihood, Probit | Logit):
        return np.where(f + rng.normal(size=len(f)) > 0, 1.0, -1.0)
    return rng.poisson(np.exp(0.5 * f)).astype(float) if isinstance(likelihood, Poisson) else f + 0.3 * rng.standard_t(4, len(f))


def refits(infer, X, y):
    """The predictions of each datum by `infer(X, y, others)`, the fit to the rows in the mask `others`: LeftOut."""
    found = []
    for n in range(len(X)):
        others = np.arange(len(X)) != n
        fit = infer(X[others], y[others], others)
        mean, variance = fit.predict_f(X[n : n + 1])
        found.append((mean[0], variance[0], fit.log_density(X[n : n + 1], y[n : n + 1])[0]))
    return LeftOut(*map(np.array, zip(*found, strict=True)))


def assert_equal(left_out, expected, tolerance=1e-10):
    for found, value in zip(left_out, expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=tolerance, atol=tolerance)


def differences(left_out, expected, summary=np.max):
    """The largest differences, or their means, in the units of the table at the top."""
    return (
        summary(np.abs(left_out.mean - expected.mean) / np.sqrt(expected.variance)),
        summary(np.abs(left_out.variance / expected.variance - 1)),
        summary(np.abs(left_out.log_density - expected.log_density)),
    )


# --- Gaussian noise: exact --------------------------------------------------------------------------------------------


@each_dimension
@each_alpha
def test_sparse_regression_is_the_refit(D, alpha):
    """The closed form :eq:`loo-regression` of :eq:`loo-factor`, against a fit to the others."""
    kernel, Z, X, f, rng = problem(D)
    y = f + 0.3 * rng.normal(size=len(f))
    infer = lambda X, y, _: power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=alpha)
    assert_equal(pepcore.leave_one_out(infer(X, y, None), X, y), refits(infer, X, y))


@each_dimension
def test_the_gradient_of_fitc_is_made_of_standardised_residuals(D):
    """At alpha = 1 the derivative in the noise is the sum of :eq:`sr-loo`."""
    kernel, Z, X, f, rng = problem(D)
    y = f + 0.3 * rng.normal(size=len(f))
    fit = power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=1.0)
    mean, variance, _ = fit.leave_one_out(X, y)
    kappa = 1 / (variance + 0.1)
    zeta2 = kappa * (y - mean) ** 2
    assert fit.gradient["noise"] == pytest.approx(0.5 * np.sum(kappa * (zeta2 - 1)), rel=1e-9)


@each_dimension
def test_private_powers_are_the_refit(D):
    kernel, Z, X, f, rng = problem(D)
    alpha = rng.uniform(size=len(X))
    infer = lambda X, y, others: power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=alpha[others])
    everybody = np.ones(len(X), dtype=bool)
    assert_equal(pepcore.leave_one_out(infer(X, f, everybody), X, f), refits(infer, X, f))


@each_alpha
def test_streamed_features_and_an_interdomain_kernel(alpha):
    kernel, Z, X, f, _ = problem(2)
    kernel = Blurred(kernel, widths=np.full(2, 0.3))
    infer = lambda X, y, _: power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=alpha, stream=True)
    assert_equal(infer(X, f, None).leave_one_out(X, f), refits(infer, X, f))


@pytest.mark.parametrize("noise", [1e-8, 1e-12])
@each_alpha
def test_no_digits_are_lost_where_a_datum_decides_alone(alpha, noise):
    """Pseudo-inputs at all data: 1 - tau s is down to the noise, and as a difference from 1 it would be wrong by 5e-4."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.sin(X[:, 0])
    fit = power_ep.regression(SquaredExponential(1.0, [0.5, 0.5]), X, X, y, noise=noise, alpha=alpha)
    left_out = fit.leave_one_out(X, y)
    A, h = fit.posterior.basis.features(X)
    d = alpha * h + noise
    inverse = np.linalg.inv(A.T @ A + np.diag(d))  # well conditioned, unlike the refits; rasmussen2006 eqs (5.10) to (5.12)
    spread = 1 / np.diag(inverse)
    np.testing.assert_allclose(left_out.mean, y - (inverse @ y) * spread, atol=1e-10)
    np.testing.assert_allclose(left_out.variance, spread - d + h, rtol=1e-10)


@pytest.mark.parametrize("noise", [0.1, 1e-4, 1e-9])
@each_dimension
def test_exact_regression_is_the_refit(D, noise):
    kernel, _, X, f, rng = problem(D)
    y = f + 0.3 * rng.normal(size=len(f))
    fit = exact.regression(kernel, X, y, noise=noise)
    left_out = fit.leave_one_out(X, y)
    K_inverse = np.linalg.inv(kernel(X) + noise * np.eye(len(X)))
    spread = 1 / np.diag(K_inverse)
    tolerance = 1e-15 * np.linalg.cond(kernel(X) + noise * np.eye(len(X))) + 1e-10
    # rasmussen2006 eqs (5.10) to (5.12)
    np.testing.assert_allclose(left_out.mean, y - (K_inverse @ y) * spread, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(left_out.variance + noise, spread, rtol=tolerance)
    if noise == 0.1:
        assert_equal(left_out, refits(lambda X, y, _: exact.regression(kernel, X, y, noise=noise), X, y), 1e-8)


@each_alpha
def test_a_gaussian_likelihood_in_the_general_method_is_the_refit(alpha):
    kernel, Z, X, f, _ = problem(2)
    infer = lambda X, y, _: power_ep.infer(kernel, Z, X, y, Gaussian(0.2), alpha=alpha)
    assert_equal(infer(X, f, None).leave_one_out(X, f), refits(infer, X, f))


@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
def test_the_sites_of_projections_on_a_basis_that_stays(rho):
    kernel, Z, X, f, _ = problem(2)
    fixed = lambda X, y, _: fixed_basis.infer(kernel, Z, X, y, Gaussian(0.2), rho=rho, jitter=0.0)
    swept = lambda X, y, _: online.infer(kernel, X, y, Gaussian(0.2), Z=Z, rho=rho)
    expected = refits(fixed, X, f)
    assert_equal(fixed(X, f, None).leave_one_out(X, f), expected, 1e-8)
    assert_equal(swept(X, f, None).leave_one_out(X, f), expected, 1e-8)


def test_projected_directions_are_taken_out_one_by_one():
    """Basis vectors that come and go leave sites along directions that are not the features: divide each out by hand."""
    kernel, _, X, f, rng = problem(2)
    y = targets(Probit(), f, rng)
    fit = online.infer(kernel, X, y, Probit(), budget=6)
    left_out = fit.leave_one_out(X, y)
    m, V = fit.posterior.whitened()
    directions = fit.projection @ fit.posterior.basis.L
    precision, shift = np.linalg.inv(V), np.linalg.solve(V, m)
    np.testing.assert_allclose(precision, np.eye(6) + (directions.T * fit.sites.tau) @ directions, atol=1e-6)
    A, h = fit.posterior.basis.features(X)
    assert np.abs(directions - A.T).max() > 0.1  # that is the point of this test
    for n, d in enumerate(directions):
        without = np.linalg.inv(precision - fit.sites.tau[n] * np.outer(d, d))
        mean = without @ (shift - fit.sites.nu[n] * d)
        assert left_out.mean[n] == pytest.approx(A[:, n] @ mean, abs=1e-8)
        assert left_out.variance[n] == pytest.approx(h[n] + A[:, n] @ without @ A[:, n], rel=1e-8)


# --- other likelihoods: the other sites stay --------------------------------------------------------------------------

LIKELIHOODS = [Probit(), Logit(), Poisson(), StudentT(4.0, 0.5)]

def infer_problem(likelihood, alpha, D):
    kernel, Z, X, f, rng = problem(D)
    y = targets(likelihood, f, rng)
    kernel = kernel.with_parameters({"variance": 1.0}) if isinstance(likelihood, Poisson) else kernel
    infer = lambda X, y, _: power_ep.infer(kernel, Z, X, y, likelihood, alpha=alpha, tolerance=1e-10, max_sweeps=500)
    return infer, X, y


def measured(likelihood, alpha, D=1):
    """The differences of leave-one-out, and of the prediction from all data, from the refits."""
    infer, X, y = infer_problem(likelihood, alpha, D)
    fit, expected = infer(X, y, None), refits(infer, X, y)
    from_all = LeftOut(*fit.predict_f(X), fit.log_density(X, y))
    return differences(fit.leave_one_out(X, y), expected), differences(from_all, expected)


@each_dimension
@each_alpha
@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda likelihood: type(likelihood).__name__)
def test_the_error_is_small_beside_what_the_datum_itself_changes(likelihood, alpha, D):
    for error, change in zip(*measured(likelihood, alpha, D), strict=True):
        assert 0 < error < change / 3


@each_alpha
@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda likelihood: type(likelihood).__name__)
def test_the_table_at_the_top_is_what_is_measured(likelihood, alpha):
    error, change = measured(likelihood, alpha)
    cells = " | ".join(f"{e:.2g} ({c:.2g})" for e, c in zip(error, change, strict=True))
    assert f"| {type(likelihood).__name__} | {alpha:g} | {cells} |" in __doc__


@each_alpha
@pytest.mark.parametrize("likelihood", [Probit(), Logit(), Poisson()], ids=lambda likelihood: type(likelihood).__name__)
def test_of_exact_inference_the_error_is_small_beside_what_the_datum_changes(likelihood, alpha):
    """Sharp sites and vague ones, against the refits."""
    _, infer, fit, X, y = exactly(likelihood, alpha)
    left_out, expected = fit.leave_one_out(X, y), refits(infer, X, y)
    changes = differences(LeftOut(*fit.predict_f(X), fit.log_density(X, y)), expected)
    for error, change in zip(differences(left_out, expected), changes, strict=True):
        assert error < change / 3


@each_alpha
@pytest.mark.parametrize("likelihood", [Probit(), Logit(), Poisson()], ids=lambda likelihood: type(likelihood).__name__)
def test_exact_inference_leaves_out_as_the_sparse_method_with_its_pseudo_inputs_at_the_data(likelihood, alpha):
    kernel, _, fit, X, y = exactly(likelihood, alpha)
    sparse = power_ep.infer(kernel, X, X, y, likelihood, alpha=alpha, tolerance=1e-10, jitter=1e-11)
    assert_equal(fit.leave_one_out(X, y), sparse.leave_one_out(X, y), 1e-6)


def exactly(likelihood, alpha):
    """A kernel, exact inference with it as a function of the data, its fit, and the data."""
    kernel, _, X, f, rng = problem(2)
    kernel = kernel.with_parameters({"variance": 1.0})
    y = targets(likelihood, f, rng)
    infer = lambda X, y, _: exact.infer(kernel, X, y, likelihood, alpha=alpha, tolerance=1e-10)
    return kernel, infer, infer(X, y, None), X, y


def test_the_cavities_of_ep_are_those_of_leave_one_out():
    """At alpha = 1 the whole site is what the update takes out, so the evidence's own moments come out."""
    kernel, Z, X, f, rng = problem(1)
    y = targets(Probit(), f, rng)
    fit = power_ep.infer(kernel, Z, X, y, Probit(), alpha=1.0, tolerance=1e-12)
    left_out = fit.leave_one_out(X, y)
    _, d1, d2 = Probit().log_moment(y, left_out.mean, left_out.variance, 1.0)
    _, h = fit.posterior.basis.features(X)
    reduced = left_out.variance - h
    np.testing.assert_allclose(-d2 / (1 + d2 * reduced), fit.sites.tau, rtol=1e-8)
    np.testing.assert_allclose((d1 - d2 * left_out.mean) / (1 + d2 * reduced), fit.sites.nu, rtol=1e-8)


def test_what_the_evidence_sums_is_leave_one_out_for_ep_alone():
    """The two sides of :eq:`loo-alpha-cavity` are equal at alpha = 1 and differ below."""
    kernel, Z, X, f, rng = problem(1)
    y, apart = targets(Probit(), f, rng), {}
    for alpha in (0.5, 1.0):
        fit = power_ep.infer(kernel, Z, X, y, Probit(), alpha=alpha, tolerance=1e-12)
        _, h = fit.posterior.basis.features(X)
        mean, variance = fit.predict_f(X)
        cavity_mean, reduced = cavity(mean, variance - h, fit.sites, alpha)
        in_evidence = Probit().log_moment(y, cavity_mean, h + reduced, alpha)[0]
        apart[alpha] = np.abs(in_evidence - fit.leave_one_out(X, y).log_density).max()
    assert apart[1.0] < 1e-8 < 1e-2 < apart[0.5]


# --- many classes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("approximation", "options"), [("ep", {}), ("ep", {"alpha": 0.5}), ("gfitc", {}), ("vi", {"epsilon": 0.01})]
)
def test_with_many_classes_the_error_is_at_most_half_of_what_the_datum_changes(approximation, options):
    kernel, Z, X, f, rng = problem(2)
    y = np.digitize(f + 0.5 * rng.normal(size=len(f)), [-1.0, 1.0])
    settings = {"approximation": approximation, "noise": 0.5, "classes": 3, "tolerance": 1e-9} | options
    infer = lambda X, y, _: multiclass.infer([kernel, Matern52(1.0, [1.0, 1.0]), kernel], Z, X, y, **settings)
    fit = infer(X, y, None)
    left_out, expected = fit.leave_one_out(X, y), refits(infer, X, y)
    assert left_out.mean.shape == left_out.variance.shape == (len(X), 3)
    changes = differences(LeftOut(*fit.predict_f(X), fit.log_density(X, y)), expected, np.mean)
    for error, change in zip(differences(left_out, expected, np.mean), changes, strict=True):
        assert error < change / 2
    probability = fit.likelihood.predict(left_out.mean, left_out.variance)[np.arange(len(y)), y]
    np.testing.assert_allclose(np.log(probability), left_out.log_density, atol=1e-7)


def test_the_sites_of_one_datum_go_out_of_every_class():
    """Those of the factors with each rival: the sum of them by hand, datum by datum."""
    kernel, Z, X, f, _ = problem(2)
    y = np.digitize(f, [-1.0, 1.0])
    fit = multiclass.infer(kernel, Z, X, y, noise=0.5, classes=3)
    left_out, sites = fit.leave_one_out(X, y), fit.sites
    A, h = fit.posterior[0].basis.features(X)
    for n in range(len(X)):
        rivals = [c for c in range(3) if c != y[n]]
        tau, nu = np.zeros(3), np.zeros(3)
        tau[y[n]], nu[y[n]] = sites.tau[0, :, n].sum(), sites.nu[0, :, n].sum()
        tau[rivals], nu[rivals] = sites.tau[1, :, n], sites.nu[1, :, n]
        for c, part in enumerate(fit.posterior.parts):
            m, V = part.whitened()
            without = np.linalg.inv(np.linalg.inv(V) - tau[c] * np.outer(A[:, n], A[:, n]))
            mean = without @ (np.linalg.solve(V, m) - nu[c] * A[:, n])
            assert left_out.mean[n, c] == pytest.approx(A[:, n] @ mean, abs=1e-9)
            assert left_out.variance[n, c] == pytest.approx(h[n] + A[:, n] @ without @ A[:, n], rel=1e-9)


# --- what cannot be had, and models -----------------------------------------------------------------------------------


def test_a_model_asks_its_fit():
    _, _, X, f, _ = problem(1)
    model = training.fit(None, X, f, M=5, max_evaluations=10)
    assert_equal(pepcore.leave_one_out(model, X, f), model.fit.leave_one_out(X, f), 0.0)


def test_many_data_in_blocks():
    """More rows than one block holds: the same as in one piece."""
    kernel, Z, X, f, _ = problem(1, N=40_000)
    fit = power_ep.regression(kernel, Z, X, f, noise=0.1)
    left_out = fit.leave_one_out(X, f)
    others = np.arange(len(X)) != 39_999
    refit = power_ep.regression(kernel, Z, X[others], f[others], noise=0.1)
    mean, variance = refit.predict_f(X[-1:])
    assert left_out.mean[-1] == pytest.approx(mean[0], abs=1e-9)
    assert left_out.variance[-1] == pytest.approx(variance[0], rel=1e-9)


def test_methods_without_sites_say_what_to_call():
    kernel, Z, X, f, _ = problem(2)
    labels = (f > 0).astype(int)
    fits = [
        power_ep.regression(kernel, Z, X, f, blocks=[np.arange(15), np.arange(15, 30)]),
        multiclass.infer(kernel, Z, X, labels, approximation="sep"),
        decoupled.infer(kernel, Z, Z + 0.1, X, f, Gaussian(0.1), steps=2),
        online.update(online.start(kernel, Gaussian(0.1), budget=5), X, f),
    ]
    for fit in fits:
        with pytest.raises(NotImplementedError, match=r"no site for each datum.*(power_ep|exact)\.infer.*held out"):
            pepcore.leave_one_out(fit, X, f if fit is not fits[1] else labels)


def test_other_data_than_those_of_the_fit():
    kernel, Z, X, f, _ = problem(2)
    fit = power_ep.regression(kernel, Z, X, f)
    for wrong, message in [
        ((X[:-1], f[:-1]), "the 30 data of the fit"),
        ((X[::-1], f), "inputs of the fit, in the same order"),
        ((X, f[::-1]), "targets of the fit"),
        ((X, 2 * f), "same units"),
        ((X[:, :1], f), "X has 1 column"),
        ((X, f[:-1]), "one number per row of X"),
    ]:
        with pytest.raises(ValueError, match=message):
            pepcore.leave_one_out(fit, *wrong)
    with pytest.raises(ValueError, match="inputs of the fit"):
        exact.regression(kernel, X, f).leave_one_out(X[::-1], f)
    with pytest.raises(ValueError, match="labels"):
        power_ep.infer(kernel, Z, X, np.sign(f), Probit()).leave_one_out(X, f)


def test_a_cavity_without_variance_names_its_datum():
    """Two data at one place, one with a site of negative precision: without the other there is no posterior."""
    kernel, Z, X, f, _ = problem(1)
    X[3] = X[17] = Z[0]
    fit = power_ep.infer(kernel, Z, X, f, StudentT(4.0, 0.5))
    sites = Sites(np.zeros(len(X)), np.zeros(len(X)))
    sites.tau[[3, 17]] = 5.0, -2.0
    posterior = replace(fit.posterior, **dict(zip(("mean", "precision_cholesky"), posterior_of(fit, X, sites), strict=True)))
    with pytest.raises(ImproperCavityError, match=r"1 of 30 data: 3;.*alpha = 1"):
        replace(fit, sites=sites, posterior=posterior).leave_one_out(X, f)


def posterior_of(fit, X, sites):
    A, _ = fit.posterior.basis.features(X)
    C = np.linalg.cholesky(np.eye(len(A)) + (A * sites.tau) @ A.T)
    return np.linalg.solve(C @ C.T, A @ sites.nu), np.asfortranarray(C)


@pytest.mark.parametrize("approximation", ["ep", "gfitc"])
def test_learning_on_batches_leaves_sites_that_can_be_taken_out(approximation):
    kernel, Z, X, f, _ = problem(2)
    y = np.digitize(f, [-1.0, 1.0])
    model = multiclass.fit_minibatch([kernel] * 3, [Z] * 3, (X, y), approximation=approximation, batch=7, epochs=3, rate=0.05)
    options = {"noise": model.noise, "sites": model.fit.sites, "approximation": approximation, "max_sweeps": 0}
    with pytest.warns(RuntimeWarning):
        same = multiclass.infer(model.kernels, model.Z, X, y, **options)
    for learnt, made in zip(model.leave_one_out(X, y), same.leave_one_out(X, y), strict=True):
        np.testing.assert_allclose(learnt, made, atol=1e-9)


def test_an_online_fit_sees_that_its_basis_vectors_are_elsewhere():
    kernel, _, X, f, _ = problem(2)
    labels = np.sign(f)
    fit = online.infer(kernel, X, labels, Probit(), budget=5)
    assert np.isfinite(fit.leave_one_out(X, labels).mean).all()
    with pytest.raises(ValueError, match="basis vectors are not where they were"):
        fit.leave_one_out(X[::-1], labels[::-1])


if __name__ == "__main__":
    for D in (1, 3):
        for likelihood in LIKELIHOODS:
            for alpha in (0.0, 0.5, 1.0):
                error, change = measured(likelihood, alpha, D)
                cells = " | ".join(f"{e:.2g} ({c:.2g})" for e, c in zip(error, change, strict=True))
                print(f"D = {D} | {type(likelihood).__name__} | {alpha:g} | {cells} |")
