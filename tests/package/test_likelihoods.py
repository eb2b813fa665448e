"""Tilted moments against adaptive quadrature, finite differences, closed forms, and each other."""

import inspect
from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import erfcx, expit, gammaln, log_ndtr, ndtr
from scipy.stats import gamma, norm, poisson
from scipy.stats import t as student_t

from pepcore import power_ep, training
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Gaussian, Likelihood, Logit, Poisson, Probit, StudentT
from pepcore.likelihoods.normal import log_ndtr_derivatives
from pepcore.likelihoods.quadrature import quadrature_expectation, quadrature_log_moment
from pepcore.sites import target

# QUADPACK, where it is asked for the last digit
pytestmark = pytest.mark.filterwarnings("ignore:The occurrence of roundoff", "ignore:The maximum number of subdivisions")

ALPHAS = [0.0, 1e-6, 0.1, 0.5, 1.0]
POSITIONS = np.array([-40.0, -12.0, -5.0, -2.0, -0.3, 0.0, 1.0, 3.0, 8.0, 40.0])  # of the mean, in standard deviations


@dataclass(frozen=True)
class NegativeBinomial(Likelihood):
    """A new likelihood as a reader would write it: counts that vary more than Poisson's, :eq:`sc-negative-binomial`."""

    shape: float = 2.0

    def derivatives(self, y, f):
        p = expit(f - np.log(self.shape))
        constant = gammaln(y + self.shape) - gammaln(self.shape) - gammaln(y + 1)
        return constant + y * np.log(p) + self.shape * np.log1p(-p), y - (y + self.shape) * p, -(y + self.shape) * p * (1 - p)

    def predict(self, mean, variance):
        return np.exp(mean + variance / 2)

    def validate(self, y):
        return Poisson().validate(y)


def adaptive_moments(log_p, slope, bend, mean, variance, alpha):
    """l, d1, d2 by QUADPACK on the log-concave tilted density, from functions of one float."""
    sd = np.sqrt(variance)

    def exponent(f):
        return alpha * log_p(f) - 0.5 * ((f - mean) / sd) ** 2

    low, high = sorted([mean, mean + alpha * variance * slope(mean)])  # the mode lies between these
    for _ in range(200):
        middle = 0.5 * (low + high)
        uphill = alpha * slope(middle) > (middle - mean) / variance
        low, high = (middle, high) if uphill else (low, middle)
    mode = 0.5 * (low + high)
    peak = exponent(mode)

    def edge(side):
        near, far = 0.0, 12 * sd
        for _ in range(60):
            middle = 0.5 * (near + far)
            near, far = (middle, far) if exponent(mode + side * middle) > peak - 60 else (near, middle)
        return mode + side * far

    left, right = edge(-1), edge(1)
    inner = [p for p in (-8.0, -2.0, 0.0, 2.0, 8.0, mode - 2 * sd, mode, mode + 2 * sd) if left < p < right]
    corners = [left, *sorted(inner), right]

    def integral(g):
        return sum(quad(g, a, b, epsabs=0, epsrel=1e-10, limit=200)[0] for a, b in zip(corners, corners[1:]))

    total = integral(lambda f: np.exp(exponent(f) - peak))
    expect = lambda g: integral(lambda f: np.exp(exponent(f) - peak) * g(f)) / total
    d1 = expect(slope)
    d2 = expect(bend) + alpha * expect(lambda f: (slope(f) - d1) ** 2)
    if alpha == 0:
        l = expect(log_p)
    elif alpha < 1e-3:  # log(total) alone would keep no digits
        normal = lambda f: np.exp(-0.5 * ((f - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        l = np.log1p(integral(lambda f: normal(f) * np.expm1(alpha * log_p(f)))) / alpha
    else:
        l = (peak + np.log(total / (sd * np.sqrt(2 * np.pi)))) / alpha
    return l, d1, d2


def probit_functions():
    """log Φ and its derivatives in plain floats, with the asymptotic series of Φ/φ in the far tail."""

    def hazard(z):
        if z < -30:
            x2 = z * z
            return -z / (1 - 1 / x2 + 3 / x2**2 - 15 / x2**3 + 105 / x2**4)
        return np.exp(-0.5 * z * z - 0.5 * np.log(2 * np.pi) - log_ndtr(z))

    def bend(z):
        if z < -30:  # -(h² + z h) with h + z expanded, which would cancel
            x2 = z * z
            return -(1 - 1 / x2 + 6 / x2**2 - 50 / x2**3)
        return -hazard(z) * (hazard(z) + z)

    return log_ndtr, hazard, bend


def relative_errors(found, expected):
    """max |found − expected|/(|expected| + 1e-3) for each of l, d1, d2."""
    return np.max(np.abs(np.array(found) - expected) / (np.abs(expected) + 1e-3), axis=1)


@pytest.mark.parametrize("z", [-5.0, -20.0, -99.0, -101.0, -1e3, -1e5, -1e8])
def test_probit_derivatives_in_the_far_tail(z):
    """Laplace's continued fraction: φ/Φ = x + 1/(x + 2/(x + 3/(x + ...))) at z = −x, where nothing cancels."""
    x, rest = -z, 0.0
    for k in range(400, 0, -1):
        rest = k / (x + rest)
    _, slope, bend = Probit().derivatives(np.array([1.0]), np.array([z]))
    assert slope[0] == pytest.approx(x + rest, rel=1e-14)
    assert bend[0] == pytest.approx(-(x + rest) * rest, rel=1e-11)


def test_log_normal_derivatives_against_scaled_error_functions():
    """Where the rational function serves and beyond it: Φ(z) = exp(−z²/2) erfcx(−z/√2)/2, log Φ(z) = log1p(−Φ(−z))."""
    below, above = -np.linspace(0, 12, 3001), np.linspace(0, 12, 3001)
    log_p, hazard, _ = log_ndtr_derivatives(below)
    np.testing.assert_allclose(hazard, np.sqrt(2 / np.pi) / erfcx(-below / np.sqrt(2)), rtol=1e-14)
    np.testing.assert_allclose(log_p, np.log(erfcx(-below / np.sqrt(2)) / 2) - below**2 / 2, rtol=1e-14)
    log_p, hazard, _ = log_ndtr_derivatives(above)
    np.testing.assert_allclose(log_p, np.log1p(-ndtr(-above)), rtol=1e-13)
    np.testing.assert_allclose(hazard, np.exp(-(above**2) / 2) / np.sqrt(2 * np.pi) / ndtr(above), rtol=1e-14)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_single_numbers_are_answered_as_arrays_are(alpha):
    for likelihood in (Probit(), Logit(), Poisson(), StudentT(), Gaussian()):
        for mean in (-60.0, -2.0, 1.5):
            one = likelihood.log_moment(1.0, mean, 1.0, alpha)
            many = likelihood.log_moment(np.ones(1), np.array([mean]), np.ones(1), alpha)
            np.testing.assert_allclose(one, np.ravel(many), rtol=1e-12)
            assert all(np.ndim(value) == 0 for value in one)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("variance", [1e-6, 1e-2, 1.0, 10.0])
def test_probit_moments_far_into_the_tails(alpha, variance):
    means = POSITIONS * np.sqrt(variance)
    expected = np.array([adaptive_moments(*probit_functions(), m, variance, alpha) for m in means]).T
    found = Probit().log_moment(np.ones(len(means)), means, np.full(len(means), variance), alpha)
    assert np.all(relative_errors(found, expected) < [1e-10, 1e-9, 1e-8])
    mirrored = Probit().log_moment(-np.ones(len(means)), -means, np.full(len(means), variance), alpha)
    np.testing.assert_allclose(mirrored, np.array([[1], [-1], [1]]) * found, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("variance", [100.0, 1e4])
def test_probit_moments_where_the_likelihood_is_a_cliff(alpha, variance):
    means = POSITIONS * np.sqrt(variance)
    expected = np.array([adaptive_moments(*probit_functions(), m, variance, alpha) for m in means]).T
    found = Probit().log_moment(np.ones(len(means)), means, np.full(len(means), variance), alpha)
    assert np.all(relative_errors(found, expected) < [1e-8, 1e-8, 1e-6])


@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.1, 0.5, 0.95])
@pytest.mark.parametrize("likelihood", [Probit(), Logit(), Poisson()], ids=lambda x: type(x).__name__)
def test_few_nodes_are_enough_where_the_likelihood_is_gentle(likelihood, alpha):
    """Deviations from 0.02 to 0.32 of the bend, means from the tail to where nothing is left to learn."""
    y = 3.0 if isinstance(likelihood, Poisson) else 1.0
    functions = [lambda f, i=i: float(likelihood.derivatives(np.array(y), np.array(f))[i]) for i in range(3)]
    scale = likelihood.quadrature_hints(y, 0.0, 1.0, alpha).get("scale", 2.5)
    for sd in scale * np.array([0.02, 0.08, 0.16, 0.24, 0.32]):
        means = np.array([-6.0, -2.0, -0.5, 0.3, 1.5, 4.0])
        expected = np.array([adaptive_moments(*functions, m, sd**2, alpha) for m in means]).T
        found = likelihood.log_moment(np.full(6, y), means, np.full(6, sd**2), alpha)
        assert np.all(relative_errors(found, expected) < [1e-10, 1e-10, 1e-9])


def test_probit_closed_form_agrees_with_quadrature():
    rng = np.random.default_rng(0)
    y, mean, variance = rng.choice([-1.0, 1.0], 500), 6 * rng.normal(size=500), 10 ** rng.uniform(-4, 2, 500)
    closed = Probit().log_moment(y, mean, variance, 1.0)
    numeric = quadrature_log_moment(Probit().derivatives, y, mean, variance, 1.0)
    assert np.all(relative_errors(numeric, np.array(closed)) < 1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("likelihood", [Probit(), Logit(), Gaussian(0.3)], ids=lambda x: type(x).__name__)
def test_derivatives_are_those_of_l(likelihood, alpha):
    rng = np.random.default_rng(1)
    y, mean, variance = rng.choice([-1.0, 1.0], 100), 3 * rng.normal(size=100), rng.uniform(0.1, 5, 100)
    step = 1e-3
    values = [np.array(likelihood.log_moment(y, mean + k * step, variance, alpha)) for k in (-2, -1, 0, 1, 2)]
    slope = (values[0] - 8 * values[1] + 8 * values[3] - values[4]) / (12 * step)  # error of order step⁴
    np.testing.assert_allclose(values[2][1], slope[0], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(values[2][2], slope[1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.2, 1.0])
@pytest.mark.parametrize("likelihood", [Probit(), Logit(), Gaussian(0.3)], ids=lambda x: type(x).__name__)
def test_derivative_in_the_variance(likelihood, alpha):
    """The heat equation in terms of l: ∂l/∂v = ½(d2 + α d1²), on which the gradient of the energy rests."""
    y, mean = np.array([1.0, -1.0, 1.0]), np.array([-2.0, 0.3, 1.5])
    variance, step = np.array([0.3, 1.0, 4.0]), 1e-4
    up, down = (likelihood.log_moment(y, mean, variance + s, alpha)[0] for s in (step, -step))
    _, d1, d2 = likelihood.log_moment(y, mean, variance, alpha)
    np.testing.assert_allclose((up - down) / (2 * step), 0.5 * (d2 + alpha * d1**2), rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_the_price_of_residual_variance(alpha):
    """−∂l/∂h as the tilted expectation :eq:`sc-price`, and in closed form, :eq:`sc-probit-price`, at alpha = 1."""
    y, mean, variance, step = np.array([1.0, -1.0, 1.0]), np.array([-2.0, 0.3, 1.5]), np.array([0.3, 1.0, 4.0]), 1e-4

    def bend(y, f):
        _, slope, curvature = Probit().derivatives(y, f)
        return curvature + alpha * slope**2

    up, down = (Probit().log_moment(y, mean, variance + s, alpha)[0] for s in (step, -step))
    price = -0.5 * quadrature_expectation(bend, Probit().derivatives, y, mean, variance, alpha)
    np.testing.assert_allclose(price, (down - up) / (2 * step), rtol=1e-6)
    if alpha == 1:
        chi = y * mean / np.sqrt(1 + variance)
        np.testing.assert_allclose(price, chi / (2 * (1 + variance)) * norm.pdf(chi) / norm.cdf(chi), rtol=1e-8)


@pytest.mark.parametrize("likelihood", [Probit(), Logit(), Gaussian(0.3)], ids=lambda x: type(x).__name__)
def test_continuous_at_zero_and_at_one(likelihood):
    rng = np.random.default_rng(2)
    y, mean, variance = rng.choice([-1.0, 1.0], 300), 4 * rng.normal(size=300), 10 ** rng.uniform(-4, 2, 300)
    moments = lambda alpha: np.array(likelihood.log_moment(y, mean, variance, alpha))
    assert np.all(relative_errors(moments(1e-12), moments(0.0)) < 1e-8)
    assert relative_errors(moments(1e-13), moments(0.0))[0] < 1e-10
    assert np.all(relative_errors(moments(1 - 1e-12), moments(1.0)) < 1e-8)


def test_l_grows_with_alpha():
    """Jensen: (1/α) log E[p^α] cannot fall with α, from E[log p] at 0 to log E[p] at 1."""
    y, mean, variance = np.ones(50), np.linspace(-6, 6, 50), np.full(50, 2.0)
    l = np.array([Probit().log_moment(y, mean, variance, a)[0] for a in np.linspace(0, 1, 21)])
    assert np.all(np.diff(l, axis=0) > 0)


@given(
    mean=st.floats(-100, 100),
    variance=st.floats(-6, 4).map(lambda e: 10.0**e),
    alpha=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0])),
    y=st.sampled_from([-1.0, 1.0]),
)
def test_probit_moments_describe_a_distribution(mean, variance, alpha, y):
    """l is between log p at the worst and 0, it falls and bends as a log-concave function must."""
    l, d1, d2 = (float(m[0]) for m in Probit().log_moment(np.array([y]), np.array([mean]), variance, alpha))
    assert np.isfinite([l, d1, d2]).all()
    assert l <= 0
    assert y * d1 >= 0
    assert -1 - 1e-9 <= d2 <= 1e-12
    assert 1 + alpha * d2 * variance > 0  # the tilted variance


def test_private_powers_equal_one_by_one():
    rng = np.random.default_rng(3)
    y, mean, variance = rng.choice([-1.0, 1.0], 40), 3 * rng.normal(size=40), rng.uniform(0.1, 50, 40)
    alpha = rng.choice([0.0, 0.3, 0.9, 1.0], 40)
    for likelihood in (Probit(), Gaussian(0.2)):
        together = np.array(likelihood.log_moment(y, mean, variance, alpha))
        for n in range(40):
            alone = np.array(likelihood.log_moment(y[n : n + 1], mean[n : n + 1], variance[n : n + 1], float(alpha[n])))
            np.testing.assert_allclose(together[:, n], alone[:, 0], rtol=1e-13)


@pytest.mark.parametrize("likelihood", [Logit(), StudentT()], ids=lambda x: type(x).__name__)
def test_data_alike_are_answered_as_each_alone(likelihood):
    y, variance = np.array([1.0, -1.0, -1.0, 1.0, -1.0]), 1.5 * (1 + 1e-15 * np.arange(5))
    together = np.array(likelihood.log_moment(y, np.zeros(5), variance, 0.5))
    alone = [likelihood.log_moment(y[n : n + 1], np.zeros(1), variance[n : n + 1], 0.5) for n in range(5)]
    np.testing.assert_allclose(together, np.hstack(alone), rtol=1e-13)


@pytest.mark.parametrize("likelihood", [Logit(), StudentT()], ids=lambda x: type(x).__name__)
def test_data_nearly_alike_have_answers_of_their_own(likelihood):
    one, other = np.array(likelihood.log_moment(np.ones(2), np.zeros(2), np.array([1.5, 1.5 * (1 + 1e-6)]), 0.5)).T
    assert np.all(one != other)


def test_gaussian_closed_form_against_quadrature():
    rng = np.random.default_rng(4)
    y, mean, variance = rng.normal(size=60), 2 * rng.normal(size=60), 10 ** rng.uniform(-3, 1, 60)
    likelihood = Gaussian(0.4)
    for alpha in (0.0, 1e-9, 0.4, 1.0):
        numeric = quadrature_log_moment(likelihood.derivatives, y, mean, variance, alpha, centre=y)
        assert np.all(relative_errors(numeric, np.array(likelihood.log_moment(y, mean, variance, alpha))) < 1e-9)


def test_a_new_likelihood_is_short():
    """NegativeBinomial above is what the protocol promises: ten lines of code, and its moments are right."""
    code = [line for line in inspect.getsource(NegativeBinomial).splitlines() if line.strip() and '"""' not in line]
    assert len(code) <= 12
    likelihood, y = NegativeBinomial(), 3.0
    functions = [lambda f, i=i: float(likelihood.derivatives(np.array(y), np.array(f))[i]) for i in range(3)]
    for alpha in (0.0, 0.5, 1.0):
        expected = np.array([[v] for v in adaptive_moments(*functions, -3.0, 4.0, alpha)])
        assert np.all(relative_errors(likelihood.log_moment(np.array([y]), np.array([-3.0]), 4.0, alpha), expected) < 1e-8)


@pytest.mark.parametrize("y", [0, 1, 7])
def test_the_negative_binomial_is_a_poisson_whose_rate_varies(y):
    """The likelihood :eq:`sc-negative-binomial` is Poisson's, averaged over a factor of mean 1 and variance 1/shape."""
    shape, f = 2.5, 0.8
    varied = lambda x: poisson.pmf(y, x * np.exp(f)) * gamma.pdf(x, shape, scale=1 / shape)
    assert np.exp(NegativeBinomial(shape).log_density(y, f)) == pytest.approx(quad(varied, 0, 30)[0], rel=1e-7)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("variance", [1e-6, 1e-2, 1.0, 10.0, 100.0])
def test_logit_moments_far_into_the_tails(alpha, variance):
    likelihood = Logit()
    functions = [lambda f, i=i: float(likelihood.derivatives(np.array(1.0), np.array(f))[i]) for i in range(3)]
    means = POSITIONS * np.sqrt(variance)
    expected = np.array([adaptive_moments(*functions, m, variance, alpha) for m in means]).T
    found = likelihood.log_moment(np.ones(len(means)), means, np.full(len(means), variance), alpha)
    assert np.all(relative_errors(found, expected) < [1e-10, 1e-9, 1e-8])


def dense_moments(likelihood, y, mean, variance, alpha, nodes, weights):
    """l, d1, d2 by a rule with very many nodes, for alpha not too small."""
    log_p, slope, bend = likelihood.derivatives(y, nodes)
    exponent = alpha * log_p - 0.5 * (nodes - mean) ** 2 / variance
    mass = weights * np.exp(exponent - exponent.max())
    expect = lambda values: (mass * values).sum() / mass.sum()
    l = (exponent.max() + np.log(mass.sum() / np.sqrt(2 * np.pi * variance))) / alpha
    d1 = expect(slope)
    return l, d1, expect(bend) + alpha * expect((slope - d1) ** 2)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("y", [0.0, 3.0, 1000.0])
@pytest.mark.parametrize("variance", [1e-4, 1e-2, 1.0, 10.0])
def test_poisson_moments_against_a_dense_rule(alpha, y, variance):
    for mean in (-6.0, -2.0, 0.0, 3.0, 8.0):
        edge = np.sqrt(variance) * 14 * np.array([-1, 1]) + np.sort([mean, mean + alpha * variance * (y - np.exp(mean))])
        low, high = max(edge[0], -80.0), min(edge[1], 12.0)
        nodes, step = np.linspace(low, high, 100_001, retstep=True)
        expected = np.array(dense_moments(Poisson(), y, mean, variance, alpha, nodes, step))
        found = np.ravel(Poisson().log_moment(np.array([y]), np.array([mean]), variance, alpha))
        assert np.all(np.abs(found - expected) / (np.abs(expected) + 1e-3) < [1e-9, 1e-8, 1e-6])


@pytest.mark.parametrize(("mean", "variance"), [(-2.0, 10.0), (-20.0, 25.0)])
def test_counts_at_a_tiny_power_see_the_rates_far_above_the_mean(mean, variance):
    """Almost E[log p], in which the rate exp(f) weighs most about f = mean + variance."""
    y, alpha, reach = 2.0, 1e-12, 14 * np.sqrt(variance)
    f, step = np.linspace(mean - reach, mean + variance + reach, 400_001, retstep=True)
    log_p, q = Poisson().log_density(y, f), step * norm.pdf(f, mean, np.sqrt(variance))
    tilted = q * np.exp(alpha * log_p)
    l, d1, _ = Poisson().log_moment(y, mean, variance, alpha)
    assert l == pytest.approx(np.log1p(q @ np.expm1(alpha * log_p)) / alpha, rel=1e-9)
    assert d1 == pytest.approx(tilted @ (y - np.exp(f)) / tilted.sum(), rel=1e-9)


def test_poisson_closed_form_at_zero_is_the_limit():
    rng = np.random.default_rng(7)
    y, mean, variance = rng.poisson(3, 200).astype(float), 2 * rng.normal(size=200), rng.uniform(1e-3, 2, 200)
    limit = np.array(Poisson().log_moment(y, mean, variance, 0.0))
    assert np.all(relative_errors(np.array(Poisson().log_moment(y, mean, variance, 1e-13)), limit) < 1e-7)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
@pytest.mark.parametrize(("degrees", "scale"), [(4.0, 1.0), (4.0, 0.01), (1.0, 0.3), (30.0, 0.1), (0.05, 0.3)])
def test_student_t_moments_against_a_dense_rule(alpha, degrees, scale):
    """With f = scale · sinh(t) even nodes in t resolve the peak of p at y = 0 and the Gaussian wherever it lies."""
    likelihood, (t, step) = StudentT(degrees, scale), np.linspace(-14, 14, 200_001, retstep=True)
    nodes, weights = scale * np.sinh(t), scale * np.cosh(t) * step
    for variance in (1e-3, 1.0, 100.0):
        for distance in (0.0, 0.3, 2.0, 6.0, 15.0):
            mean = distance * np.sqrt(variance)
            expected = np.array(dense_moments(likelihood, 0.0, mean, variance, alpha, nodes, weights))
            found = np.ravel(likelihood.log_moment(np.zeros(1), np.array([mean]), variance, alpha))
            assert np.all(np.abs(found - expected) / (np.abs(expected) + 1e-3) < [1e-9, 1e-8, 1e-6])


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("likelihood", [Gaussian(0.3), StudentT(4.0, 0.3)], ids=lambda x: type(x).__name__)
def test_gradient_in_the_parameters_of_a_likelihood(likelihood, alpha):
    rng = np.random.default_rng(8)
    y, mean, variance = rng.normal(size=50), 2 * rng.normal(size=50), 10 ** rng.uniform(-3, 1, 50)
    for key, value in likelihood.parameters.items():
        step = 1e-4 * value
        up, down = (likelihood.with_parameters({key: value + s}).log_moment(y, mean, variance, alpha)[0] for s in (step, -step))
        gradient = likelihood.parameter_gradient(y, mean, variance, alpha)[key]
        np.testing.assert_allclose(gradient, (up - down) / (2 * step), rtol=1e-5, atol=1e-6)


def integral(function, mean, variance):
    """The average of a function of f over N(mean, variance), by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return weights @ function(mean + np.sqrt(variance) * nodes[:, None]) / weights.sum()


def test_probit_predicts_the_integral_of_its_factor():
    mean, variance = np.array([-1.0, 0.0, 2.0]), np.array([0.5, 1.0, 3.0])
    p = Probit().predict(mean, variance)
    np.testing.assert_allclose(p, ndtr(mean / np.sqrt(1 + variance)), rtol=1e-14)
    np.testing.assert_allclose(p, integral(ndtr, mean, variance), rtol=1e-10)


def test_probits_log_densities_are_the_logarithms_of_its_predictions():
    mean, variance = np.array([-1.0, 0.0, 2.0]), np.array([0.5, 1.0, 3.0])
    p = Probit().predict(mean, variance)
    np.testing.assert_allclose(np.exp(Probit().log_predictive(np.ones(3), mean, variance)), p, rtol=1e-13)
    np.testing.assert_allclose(np.exp(Probit().log_predictive(-np.ones(3), mean, variance)), 1 - p, rtol=1e-12)


def test_gaussian_predictions_have_the_variance_of_the_noise_added():
    mean, variance = np.array([-1.0, 0.0, 2.0]), np.array([0.5, 1.0, 3.0])
    np.testing.assert_array_equal(Gaussian(0.3).predict(mean, variance), [mean, variance + 0.3])
    expected = norm.logpdf(1.0, mean, np.sqrt(variance + 0.3))
    np.testing.assert_allclose(Gaussian(0.3).log_predictive(np.ones(3), mean, variance), expected, rtol=1e-13)


def test_log_density_integrates_to_one():
    f = np.linspace(-30, 30, 41)
    for likelihood in (Probit(), Logit()):
        np.testing.assert_allclose(sum(np.exp(likelihood.log_density(y, f)) for y in (-1.0, 1.0)), 1.0, rtol=1e-12)
    y = np.linspace(-8, 8, 4001)
    assert np.trapezoid(np.exp(Gaussian(0.5).log_density(y, 0.7)), y) == pytest.approx(1.0, abs=1e-10)


def test_student_ts_noise_has_the_variance_of_its_density():
    mean, variance = np.array([-1.0, 0.5]), np.array([0.3, 0.8])
    expected = [mean, variance + student_t.var(5, scale=0.2)]
    np.testing.assert_allclose(StudentT(5.0, 0.2).predict(mean, variance), expected, rtol=1e-14)


def test_student_ts_noise_of_two_degrees_has_no_finite_variance():
    assert np.isinf(StudentT(2.0, 0.2).predict(np.array([-1.0, 0.5]), np.array([0.3, 0.8]))[1]).all()


def test_logit_predicts_the_integral_of_its_factor():
    mean, variance = np.array([-1.0, 0.5]), np.array([0.3, 0.8])
    np.testing.assert_allclose(Logit().predict(mean, variance), integral(expit, mean, variance), rtol=1e-10)


def test_predicted_counts_have_the_moments_of_the_integral():
    mean, variance = np.array([-1.0, 0.5]), np.array([0.3, 0.8])
    first = integral(np.exp, mean, variance)
    second = integral(lambda f: np.exp(f) + np.exp(2 * f), mean, variance)      # E[y²] of counts
    np.testing.assert_allclose(Poisson().predict(mean, variance), [first, second - first**2], rtol=1e-10)


def test_the_variance_of_a_count_is_finite_wherever_a_float_holds_it():
    mean, variance = np.array([-1000.0, -500.0, 0.0]), np.array([800.0, 800.0, 0.0])
    first, second = Poisson().predict(mean, variance)
    np.testing.assert_allclose(first, np.exp(mean + variance / 2), rtol=1e-12)
    np.testing.assert_allclose(second, np.exp([-400.0, 600.0, 0.0]), rtol=1e-12)


@pytest.mark.parametrize(("likelihood", "y", "message"), [
    (Poisson(), [1.0, 2.5], "expected counts 0, 1, 2"),
    (Poisson(), [-1.0, 2.0], "y holds -1, expected counts"),
    (Logit(), [0, 1], r"labels -1 and \+1"),
    (Probit(), [0, 1, 1], r"values 0, 1, .*2 \* y - 1"),
    (Probit(), [1, 2, 3], r"1, 2, 3.*np\.where"),
    (Probit(), ["a", "b"], "real numbers"),
    (StudentT(), [np.nan], "NaN"),
    (Gaussian(), [1.0, np.nan], "NaN"),
])
def test_wrong_targets_say_how_to_mend_them(likelihood, y, message):
    with pytest.raises(ValueError, match=message):
        likelihood.validate(np.array(y))


@pytest.mark.parametrize(("make", "name"), [
    (lambda: StudentT(4.0, -1.0), "scale"),
    (lambda: StudentT(0.0), "degrees"),
    (lambda: Gaussian(0.0), "noise"),
])
def test_wrong_parameters_are_named(make, name):
    with pytest.raises(ValueError, match=name):
        make()


def test_labels_may_be_a_list_of_whole_numbers():
    np.testing.assert_array_equal(Probit().validate([-1, 1]), [-1.0, 1.0])


@pytest.mark.parametrize("alpha", [0.5, 1.0])
@pytest.mark.parametrize(("y", "variance"), [(3000.0, 100.0), (30_000.0, 1.0), (30_000.0, 100.0)])
def test_sites_of_large_counts_keep_their_digits(y, variance, alpha):
    """The site's precision is 1/Var_t − 1/variance over α, with a tilted variance that is millions of times smaller."""
    f = np.log(y) + np.linspace(-50, 50, 400_001) / np.sqrt(alpha * y)
    log_t = alpha * (y * f - np.exp(f)) - f**2 / (2 * variance)
    t = np.exp(log_t - log_t.max())
    mean = t @ f / t.sum()
    tilted = t @ (f - mean) ** 2 / t.sum()
    _, d1, d2 = Poisson().log_moment(np.array([y]), np.zeros(1), np.array([variance]), alpha)
    site = target(np.zeros(1), np.array([variance]), d1, d2, alpha)
    assert site.tau[0] == pytest.approx((1 / tilted - 1 / variance) / alpha, rel=1e-7)
    assert site.nu[0] == pytest.approx(mean / tilted / alpha, rel=1e-7)


@pytest.mark.parametrize("degrees", [1e9, 1e12, 1e15, 1e17])
def test_student_t_with_many_degrees_is_a_gaussian(degrees):
    log_p = StudentT(degrees, 0.5).log_density(0.3, np.array([0.0, 0.2]))
    np.testing.assert_allclose(log_p, Gaussian(0.25).log_density(0.3, np.array([0.0, 0.2])), rtol=1e-6)


@pytest.mark.parametrize("degrees", [1.0, 4.0, 30.0])
def test_the_densities_of_noise_and_counts_are_normalised(degrees):
    t = np.linspace(-16, 16, 20_001)
    y = 0.7 + 0.3 * np.sinh(t)
    p = np.exp(StudentT(degrees, 0.3).log_density(y, 0.7))
    assert np.trapezoid(p * 0.3 * np.cosh(t), t) == pytest.approx(1.0, abs=1e-6)
    counts = np.arange(200.0)
    assert np.exp(Poisson().log_density(counts, 1.5)).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("likelihood", "name", "known"),
    [(StudentT(), "degrees", r"\['scale'\]"), (Gaussian(), "nois", r"\['noise'\]"), (Probit(), "scale", r"\[\]")],
)
def test_parameters_that_are_not_learnt_or_not_there_are_refused(likelihood, name, known):
    with pytest.raises(ValueError, match=rf"unknown likelihood parameters \['{name}'\]; this one has {known}"):
        likelihood.with_parameters({name: 1.0})


def test_log_normal_derivatives_of_whole_numbers():
    for found, expected in zip(log_ndtr_derivatives(np.array([1, -2])), log_ndtr_derivatives(np.array([1.0, -2.0]))):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("alpha", [0.5, 1.0])
@pytest.mark.parametrize("scale", [1e-5, 1e-6, 1e-7])
def test_the_curvature_where_the_noise_is_a_millionth_of_the_prior(scale, alpha):
    """The tilted distribution is p^α itself, a Student-t of α(ν + 1) − 1 degrees: d2 = (Var_t/variance − 1)/(α variance)."""
    degrees = alpha * 11 - 1
    tilted = 10 * scale**2 / (degrees - 2)  # (1 + f²/(10 scale²))^(−α·11/2)
    _, _, d2 = StudentT(10.0, scale).log_moment(np.ones(1), np.zeros(1), np.ones(1), alpha)
    assert d2[0] == pytest.approx((tilted - 1) / alpha, rel=1e-14)


@pytest.mark.parametrize("y", [1e3, 1e6, 1e9])
def test_the_density_of_a_large_count_keeps_its_digits_about_its_peak(y):
    """Differences of log p between neighbouring f, against fifty digits; with E[exp(f)] they are those at alpha = 0."""
    f = np.log(y) + np.array([-3.0, -1.0, 0.0, 0.5, 3.0]) / np.sqrt(y)
    with localcontext(prec=50):
        exact = [Decimal(y) * Decimal(x) - Decimal(x).exp() for x in f]
        expected = np.array([float(value - exact[2]) for value in exact])
        slope = np.array([float(Decimal(y) - Decimal(x).exp()) for x in f])
    log_p, d1, _ = Poisson().derivatives(y, f)
    np.testing.assert_allclose(log_p - log_p[2], expected, rtol=0, atol=1e-15 * np.log(y) * np.sqrt(y))  # that of f
    np.testing.assert_allclose(d1 / np.sqrt(y), slope / np.sqrt(y), atol=1e-14 * np.sqrt(y))
    spread = 1 / y  # E[exp(f)] = exp(mean + spread/2)
    l, d1_at_zero, _ = Poisson().log_moment(y, f - spread / 2, spread, 0.0)
    np.testing.assert_allclose(l, log_p - y * spread / 2, atol=1e-15 * np.log(y) * y)
    np.testing.assert_allclose(d1_at_zero / np.sqrt(y), d1 / np.sqrt(y), atol=1e-14 * np.sqrt(y))


@pytest.mark.parametrize("alpha", [0.5, 1.0])
@pytest.mark.parametrize("size", [1e5, 1e6, 1e7])
def test_inference_from_large_counts_converges(size, alpha):
    """To the rounding of f: the last digit of f = 14 is 1e-12 of the width of a posterior from a million counts."""
    X, Z = np.random.default_rng(9).uniform(-2, 2, (40, 1)), np.linspace(-2, 2, 8)[:, None]
    y = np.round(size * np.exp(np.sin(X[:, 0])))
    fit = power_ep.infer(SquaredExponential(), Z, X, y, Poisson(), alpha=alpha, tolerance=1e-13 * size + 1e-8)
    assert fit.converged
    assert fit.sweeps < 15


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_shrinkage_is_one_plus_alpha_d2_times_the_matched_variance(alpha):
    """A Gaussian knows it in closed form: (noise + α rest)/(noise + α (matched + rest)), to all digits where nothing is left."""
    matched, rest = np.array([0.3, 2.0, 1.0]), np.array([0.0, 0.7, 0.5])
    for likelihood in (Gaussian(0.2), Probit()):
        _, _, d2 = likelihood.log_moment(np.ones(3), np.zeros(3), matched + rest, alpha)
        found = likelihood.shrinkage(d2, matched, alpha, rest)
        np.testing.assert_allclose(found, 1 + alpha * d2 * matched, rtol=1e-14)
    assert Gaussian(1e-30).shrinkage(-1.0, 1.0, 1.0) == 1e-30


def test_the_gradient_in_a_small_noise_keeps_its_digits():
    """At alpha = 1 the noise is variance: ∂l/∂noise = ½ (d2 + d1²)."""
    y, mean, variance = np.array([0.3]), np.array([-0.2]), np.array([0.9])
    for noise in (1e-2, 1e-9, 1e-16):
        _, d1, d2 = Gaussian(noise).log_moment(y, mean, variance, 1.0)
        found = Gaussian(noise).parameter_gradient(y, mean, variance, 1.0)["noise"]
        np.testing.assert_allclose(found, 0.5 * (d2 + d1**2), rtol=1e-13)


class Plain(Likelihood):
    """What a reader writes who needs no parameter to learn: two methods, and no dataclass."""

    def derivatives(self, y, f):
        return Logit().derivatives(y, f)

    def predict(self, mean, variance):
        return Logit().predict(mean, variance)


def test_two_methods_are_enough_to_learn_with():
    X = np.linspace(-2, 2, 40)[:, None]
    labels = np.sign(np.sin(3 * X[:, 0]) + 0.1)
    options = {"M": 5, "infer": power_ep.infer, "max_evaluations": 20}
    kernel = SquaredExponential()
    own, known = (training.fit(kernel, X, labels, likelihood=each, **options) for each in (Plain(), Logit()))
    assert own.log_evidence == pytest.approx(known.log_evidence)
    assert np.isfinite(training.fit_minibatch(None, X, labels, Plain(), M=5, batch=10, epochs=2).log_evidence)


def test_parameters_without_a_dataclass_are_an_error_that_says_so():
    class Scaled(Plain):
        @property
        def parameters(self):
            return {"scale": 1.0}

    with pytest.raises(TypeError, match="make it a dataclass"):
        Scaled().with_parameters({"scale": 2.0})
