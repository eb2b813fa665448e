"""Pseudo-points that are local averages: against sampling of the averages, and against ordinary ones at zero width."""

from functools import partial

import numpy as np
import pytest
from problems import slope

from pepcore import exact, online, power_ep
from pepcore.features import feature_map
from pepcore.gaussian import NotPositiveDefiniteError
from pepcore.kernels import Blurred, Matern52, SquaredExponential
from pepcore.likelihoods import Gaussian, Probit

BASE = SquaredExponential(1.7, [0.9, 1.3])


def problem(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    return rng.normal(size=(6, 2)), X, np.sin(2 * X[:, 0])


@pytest.mark.parametrize("widths", [0.4, [0.3, 0.8]])
def test_covariances_are_those_of_the_averages(widths):
    """Gauss-Hermite averages of k over x, and over x and x', with weights N(x; z, diag(widths²))."""
    Z, X, _ = problem()
    kernel = Blurred(BASE, widths)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    offsets = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2) * np.broadcast_to(widths, 2)
    weights = np.outer(weights, weights).ravel() / weights.sum() ** 2
    around = lambda z: z + offsets
    for x, z in zip(X[:3], Z[:3]):
        assert kernel.uf(x[None], z[None])[0, 0] == pytest.approx(BASE(x[None], around(z))[0] @ weights, rel=1e-12)
    for z, z2 in zip(Z[:3], Z[3:]):
        expected = weights @ BASE(around(z), around(z2)) @ weights
        assert kernel.uu(np.array([z, z2]))[0, 1] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(kernel.uu.diagonal(Z), np.diag(kernel.uu(Z)), rtol=1e-12)


@pytest.mark.parametrize("side", ["uf", "uu"])
def test_covariances_of_averages_take_new_parameters(side):
    Z, X, _ = problem()
    changed = {"variance": 2.5, "widths": 0.7}
    new = getattr(Blurred(BASE, 0.4), side).with_parameters(changed)
    np.testing.assert_array_equal(new(X, Z), getattr(Blurred(BASE, 0.4).with_parameters(changed), side)(X, Z))


def test_zero_width_is_an_ordinary_pseudo_point():
    Z, X, y = problem(1)
    plain, blurred = power_ep.regression(BASE, Z, X, y), power_ep.regression(Blurred(BASE, 0.0), Z, X, y)
    assert blurred.log_evidence == pytest.approx(plain.log_evidence, rel=1e-13)
    np.testing.assert_allclose(blurred.predict_f(X), plain.predict_f(X), rtol=1e-12, atol=1e-14)
    for key, value in plain.gradient.items():
        np.testing.assert_allclose(blurred.gradient[key], value, rtol=1e-9, atol=1e-9)
    labels = np.sign(y)
    plain, blurred = (power_ep.infer(k, Z, X, labels, Probit()) for k in (BASE, Blurred(BASE, 0.0)))
    assert blurred.log_evidence == pytest.approx(plain.log_evidence, rel=1e-13)


def test_small_widths_change_the_features_in_proportion_to_their_square():
    Z, X, _ = problem(2)
    plain = feature_map(BASE, Z, X)
    change = lambda width: np.abs(feature_map(Blurred(BASE, width), Z, X).h - plain.h).max()
    assert change(1e-2) / change(1e-3) == pytest.approx(100, rel=1e-3)


@pytest.mark.parametrize("width", [0.0, 0.1, 1.0, 10.0])
def test_the_features_hold_no_more_than_the_prior_variance(width):
    """Not asked of h, which is cut off at 0."""
    Z, X, _ = problem(3)
    A = feature_map(Blurred(BASE, width), Z, X).A
    assert (BASE.diagonal(X) - (A**2).sum(axis=0)).min() >= -1e-10


@pytest.mark.parametrize("lengthscales", [1.1, [0.9, 1.3]])
@pytest.mark.parametrize("widths", [0.4, [0.3, 0.5]])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_gradient_of_regression_agrees_with_differences(lengthscales, widths, alpha):
    Z, X, y = problem(4)
    kernel, rng = Blurred(SquaredExponential(1.7, lengthscales), widths), np.random.default_rng(4)
    options = {"alpha": alpha, "jitter": 1e-4}
    fit = power_ep.regression(kernel, Z, X, y, **options)
    way = {key: rng.normal(size=np.shape(value)) for key, value in fit.gradient.items() if key != "noise"}

    def evidence(t):
        moved = kernel.with_parameters({key: value + t * way[key] for key, value in kernel.parameters.items()})
        return power_ep.regression(moved, Z + t * way["Z"], X, y, **options).log_evidence

    parts = [np.sum(fit.gradient[key] * way[key]) for key in way]
    assert abs(sum(parts) - slope(evidence)) <= 1e-6 * max(1.0, np.abs(parts).sum())


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda: Blurred(Matern52(), 0.1), "must be a SquaredExponential"),
    (lambda: Blurred(BASE, -0.1), "at least 0"),
    (lambda: Blurred(BASE, np.nan), "at least 0"),
    (lambda: power_ep.regression(Blurred(BASE, [0.1, 0.2, 0.3]), *problem(5)), "3 widths"),
    (lambda: Blurred(BASE, 0.1).with_parameters({"width": 0.2}),
     r"\['width'\]; this kernel has \['lengthscales', 'variance', 'widths'\]"),
])
def test_bad_input_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_widths_that_leave_no_variance_are_named():
    X = np.random.default_rng(0).normal(size=(10, 400))
    kernel = Blurred(SquaredExponential(1.0, 20.0), np.full(400, 200.0))
    with pytest.raises(NotPositiveDefiniteError, match="averages with these widths over 400 inputs have no prior variance left"):
        power_ep.regression(kernel, X[:3], X, X[:, 0])


def test_methods_without_pseudo_points_see_the_plain_process():
    _, X, y = problem(5)
    labels = np.sign(y)
    for method, targets in ((partial(exact.infer, likelihood=Probit()), labels), (exact.regression, y)):
        plain, blurred = (method(kernel, X, targets) for kernel in (BASE, Blurred(BASE, 0.7)))
        np.testing.assert_allclose(blurred.predict_f(X[:5] + 0.1), plain.predict_f(X[:5] + 0.1), rtol=1e-12)
        assert blurred.log_evidence == plain.log_evidence
        assert set(blurred.gradient) == {*plain.gradient, "widths"} and blurred.gradient["widths"] == 0
        for key, value in plain.gradient.items():
            np.testing.assert_allclose(blurred.gradient[key], value, rtol=1e-12)


def test_methods_whose_points_are_data_refuse_other_pseudo_points():
    _, X, y = problem(6)
    with pytest.raises(ValueError, match="online methods take points of f itself"):
        online.infer(Blurred(BASE, 0.7), X, y, Gaussian(0.1))


def test_a_sum_refuses_a_part_with_pseudo_points_of_its_own():
    with pytest.raises(ValueError, match="cannot be part of a sum"):
        BASE + Blurred(BASE, 0.7)


def test_one_lengthscale_or_width_in_an_array_has_a_gradient_of_one():
    Z, X, y = problem(6)
    expected = power_ep.regression(Blurred(SquaredExponential(1.7, 1.1), 0.4), Z, X, y).gradient
    found = power_ep.regression(Blurred(SquaredExponential(1.7, [1.1]), [0.4]), Z, X, y).gradient
    for key in ("lengthscales", "widths"):
        assert found[key].shape == (1,)
        assert found[key][0] == pytest.approx(expected[key], rel=1e-12)
