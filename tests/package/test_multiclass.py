"""Multi-class inference: moments, evidence and gradient against independent computations, and what tying does."""

import warnings

import numpy as np
import pytest
from conftest import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import slope
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr

from pepcore import multiclass
from pepcore.kernels import Matern52, SquaredExponential
from pepcore.multiclass import sites_each, sites_tied
from pepcore.multiclass.factors import Joint, Pairwise
from pepcore.multiclass.maps import ClassMaps
from pepcore.multiclass.quadrature import log_largest, probabilities
from pepcore.sites import Sites

EXACT = {"tolerance": 1e-10, "max_sweeps": 1000}


def problem(C=3, N=24, M=4, D=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    y = np.argmax(X @ rng.standard_normal((D, C)) + 0.7 * rng.standard_normal((N, C)), axis=1)
    y[:C] = np.arange(C)
    Z = [X[rng.choice(N, M, replace=False)] + 0.01 for _ in range(C)]
    kernels = [SquaredExponential(1 + rng.random(), 0.7 + rng.random(D)) for _ in range(C)]
    return kernels, Z, X, y, 0.2 + 0.3 * rng.random(C)


def hermite(n):
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, weights / weights.sum()


# --- moments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.0, 0.4, 0.0])
def test_the_pair_factors_moments_are_those_of_a_two_dimensional_rule(alpha):
    mean, variance, noise = np.array([[0.3], [0.9]]), np.array([[0.5], [0.8]]), np.array([0.4, 0.7])
    factors = Pairwise(np.array([0]), 2)
    found = factors.tilted(factors.gather(mean), factors.gather(variance), noise, alpha)

    def log_moment(means, variances, noise):
        x, w = hermite(80)
        f = means[0] + np.sqrt(variances[0]) * x[:, None]
        g = means[1] + np.sqrt(variances[1]) * x
        p = ndtr((f - g) / np.sqrt(noise.sum()))
        return w @ np.log(p) @ w if alpha == 0 else np.log(w @ p**alpha @ w) / alpha

    at = lambda a, b: log_moment(np.array([0.3 + a, 0.9 + b]), variance[:, 0], noise)
    assert found.l[0, 0] == pytest.approx(at(0, 0), abs=1e-9)
    for role, step in enumerate(np.eye(2) * 1e-3):
        up, down = at(*step), at(*-step)
        assert found.d1[role, 0, 0] == pytest.approx((up - down) / 2e-3, abs=1e-6)
        assert found.d2[role, 0, 0] == pytest.approx((up + down - 2 * at(0, 0)) / 1e-6, abs=1e-6)
        up, down = (log_moment(mean[:, 0], variance[:, 0], noise + sign * 0.1 * step) for sign in (1, -1))
        assert found.dnoise[role, 0, 0] == pytest.approx((up - down) / 2e-4, abs=1e-6)


def test_the_joint_factors_tilted_moments_are_those_of_samples():
    rng = np.random.default_rng(0)
    mean, variance = np.array([0.2, 0.7, -0.3, 0.1]), np.array([0.5, 0.3, 0.9, 0.4])
    log_p, slope, bend = log_largest(np.array([2]), mean[:, None], variance[:, None])
    draws = mean + np.sqrt(variance) * rng.standard_normal((2_000_000, 4))
    kept = draws[draws.argmax(axis=1) == 2]
    assert np.exp(log_p[0]) == pytest.approx(len(kept) / len(draws), abs=1e-3)
    assert mean + variance * slope[:, 0] == pytest.approx(kept.mean(axis=0), abs=3e-3)
    tilted_variance = variance + variance**2 * (bend - slope**2)[:, 0]
    assert tilted_variance == pytest.approx(kept.var(axis=0), abs=4e-3)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), C=st.integers(2, 6), spread=st.floats(0.01, 30))
def test_the_largest_ones_probability_has_the_derivatives_it_says(seed, C, spread):
    rng = np.random.default_rng(seed)
    y, mean = rng.integers(0, C, 5), spread * rng.standard_normal((C, 5))
    variance = 10 ** rng.uniform(-2, 1.5, (C, 5))
    _, slope, bend = log_largest(y, mean, variance)
    assert slope.sum(axis=0) == pytest.approx(0, abs=1e-8 * np.abs(slope).max())  # a shift of all means changes nothing
    for c in range(C):
        step = np.zeros((C, 1))
        step[c] = 1e-4
        deviation = np.sqrt(variance)
        up, down = (log_largest(y, mean + sign * step * deviation, variance)[0] for sign in (1, -1))
        assert slope[c] * deviation[c] == pytest.approx((up - down) / 2e-4, rel=1e-5, abs=1e-6)
        up, down = (log_largest(y, mean, variance * (1 + sign * step))[0] for sign in (1, -1))
        assert 0.5 * bend[c] * variance[c] == pytest.approx((up - down) / 2e-4, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("C", [2, 3, 10, 30])
@pytest.mark.parametrize(("scale", "low", "high"), [(1, -1, 1), (1000, -3, 2), (0.01, -3, 0), (30, -4, 2)])
def test_probabilities_sum_to_one(C, scale, low, high):
    rng = np.random.default_rng(C)
    mean, variance = scale * rng.standard_normal((20, C)), 10 ** rng.uniform(low, high, (20, C))
    p = probabilities(mean, variance)
    assert np.all((p >= 0) & (p <= 1 + 1e-8))
    assert p.sum(axis=1) == pytest.approx(1, abs=1e-8)


def test_for_two_classes_the_probability_is_the_probit_of_the_difference_far_into_the_tail():
    mean = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 3.0, 40.0, -40.0]])
    variance = np.array([[0.5] * 4, [0.7] * 4])
    expected = log_ndtr(-mean[1] / np.sqrt(1.2))
    assert log_largest(np.zeros(4, int), mean, variance)[0] == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_the_robust_factors_expected_logarithm_is_that_of_gpflow():
    data = reference("gpflow_svgp.npz")
    X, y, Z, C = data["X"], data["y_multi"][:, 0].astype(int), data["Z"], 3
    kernel = SquaredExponential(float(data["s2"]), data["ls"])
    basis = ClassMaps.build((kernel,), (Z,), C, X, 1e-6).of(0)
    white = np.einsum("mkp,mn->pkn", data["robustmax_white__q_sqrt"].transpose(1, 2, 0), basis.A)
    mean, variance = data["robustmax_white__q_mu"].T @ basis.A, basis.h + (white**2).sum(axis=1)
    factors = Joint(y, C, 1e-3)
    found = factors.tilted(mean, variance, np.zeros(C), 0.0).l
    assert found == pytest.approx(data["robustmax_white__var_exp"].ravel(), abs=2e-3)  # it has 20 nodes


# --- evidence --------------------------------------------------------------------------------------------------------


def naive_two_classes(kernels, Z, X, y, noise, alpha, sweeps=400, step=0.5):
    """Power EP for C = 2 with dense matrices, full-matrix log-normalisers and adaptive quadrature: log evidence."""
    maps = [ClassMaps.build((k,), (z,), 1, X, 1e-6).of(0) for k, z in zip(kernels, Z, strict=True)]
    M, N = maps[0].A.shape
    tau, nu = np.zeros((2, N)), np.zeros((2, N))

    def moments(P, b):
        V = np.linalg.inv(P)
        return V @ b, V, 0.5 * (b @ V @ b - np.linalg.slogdet(P)[1])

    def log_z(difference, variance):
        sd, scale = np.sqrt(variance), np.sqrt(noise.sum())
        integrand = lambda x, k: x**k * ndtr((difference + sd * x) / scale) ** alpha * np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
        z0, z1, z2 = (quad(integrand, -9, 9, args=(k,), epsabs=1e-12, epsrel=1e-12)[0] for k in range(3))
        return np.log(z0), z1 / z0 / sd, (z2 / z0 - 1 - (z1 / z0) ** 2) / variance

    for _ in range(sweeps):
        new_tau, new_nu, change, total = tau.copy(), nu.copy(), 0.0, 0.0
        P = [np.eye(M) + (maps[c].A * tau[c]) @ maps[c].A.T for c in range(2)]
        b = [maps[c].A @ nu[c] for c in range(2)]
        whole = [moments(P[c], b[c]) for c in range(2)]
        for n in range(N):
            cavity = [moments(P[c] - alpha * tau[c, n] * np.outer(maps[c].A[:, n], maps[c].A[:, n]),
                              b[c] - alpha * nu[c, n] * maps[c].A[:, n]) for c in range(2)]
            a = [maps[c].A[:, n] for c in range(2)]
            mean, s = [a[c] @ cavity[c][0] for c in range(2)], [a[c] @ cavity[c][1] @ a[c] for c in range(2)]
            sign = 1 - 2 * y[n]
            l, d1, d2 = log_z(sign * (mean[0] - mean[1]), sum(s) + sum(maps[c].h[n] for c in range(2)))
            total += (l + sum(cavity[c][2] - whole[c][2] for c in range(2))) / alpha
            for c in range(2):
                slope = sign * d1 * (1 - 2 * c)
                # the tilted Gaussian's natural parameters less the cavity's
                new_s, new_mean = s[c] + s[c] ** 2 * d2, mean[c] + s[c] * slope
                new_tau[c, n] = (1 / new_s - 1 / s[c]) / alpha
                new_nu[c, n] = (new_mean / new_s - mean[c] / s[c]) / alpha
        change = max(np.abs(new_tau - tau).max(), np.abs(new_nu - nu).max())
        evidence = total + sum(w[2] for w in whole)
        tau, nu = (1 - step) * tau + step * new_tau, (1 - step) * nu + step * new_nu
        if change < 1e-9:
            return evidence
    raise AssertionError(f"the naive implementation has not converged: {change}")


@pytest.mark.parametrize("alpha", [1.0, 0.4])
def test_two_classes_equal_an_independent_implementation(alpha):
    kernels, Z, X, y, noise = problem(C=2, N=6, M=3)
    fit = multiclass.infer(kernels, Z, X, y, alpha=alpha, noise=noise, **EXACT)
    assert fit.log_evidence == pytest.approx(naive_two_classes(kernels, Z, X, y, noise, alpha), abs=1e-6)


def test_for_two_classes_pair_factors_are_the_exact_factors():
    kernels, Z, X, y, noise = problem(C=2)
    ep, exact = (multiclass.infer(kernels, Z, X, y, approximation=a, noise=noise, **EXACT) for a in ("ep", "gfitc"))
    assert ep.log_evidence == pytest.approx(exact.log_evidence, abs=1e-8)
    assert ep.predict_y(X) == pytest.approx(exact.predict_y(X), abs=1e-7)


def test_the_evidence_of_exact_factors_is_near_that_of_sampling():
    kernels, _, X, y, noise = problem(C=3, N=4)
    fit = multiclass.infer(kernels, X, X, y, approximation="gfitc", noise=noise, jitter=1e-10)
    rng = np.random.default_rng(0)
    draws = np.stack([
        np.linalg.cholesky(k(X) + s * np.eye(4)) @ rng.standard_normal((4, 400_000)) for k, s in zip(kernels, noise, strict=True)
    ])
    truth = np.log((draws.argmax(axis=0) == y[:, None]).all(axis=0).mean())
    bound = multiclass.infer(kernels, X, X, y, approximation="vi", noise=noise, jitter=1e-10).log_evidence
    assert bound < truth
    assert abs(fit.log_evidence - truth) < 0.05 * (truth - bound)


@pytest.mark.parametrize(("approximation", "epsilon"), [("ep", None), ("gfitc", 0.01 * 2 / 3)])
def test_the_powers_limit_at_zero_is_variational_inference(approximation, epsilon):
    kernels, Z, X, y, noise = problem()
    options = {"approximation": approximation, "epsilon": epsilon, "noise": noise} | EXACT
    small, zero = (multiclass.infer(kernels, Z, X, y, alpha=a, **options).log_evidence for a in (1e-5, 0.0))
    assert small == pytest.approx(zero, rel=1e-4)


def test_vi_is_the_robust_factor_at_power_zero():
    kernels, Z, X, y, noise = problem()
    vi = multiclass.infer(kernels, Z, X, y, approximation="vi", noise=noise)
    robust = multiclass.infer(kernels, Z, X, y, approximation="gfitc", alpha=0, epsilon=1e-3 * 2 / 3, noise=noise)
    assert vi.log_evidence == robust.log_evidence


def test_the_variational_bound_cannot_be_improved_by_moving_the_posterior():
    kernels, Z, X, y, noise = problem()
    fit = multiclass.infer(kernels, Z, X, y, approximation="ep", alpha=0, noise=noise, **EXACT)
    maps = ClassMaps.build(tuple(kernels), tuple(Z), 3, X, 1e-6)
    factors, rng = Pairwise(y, 3), np.random.default_rng(0)
    for _ in range(5):
        moved = Sites(fit.sites.tau * np.exp(0.1 * rng.standard_normal(factors.shape)),
                      fit.sites.nu + 0.1 * rng.standard_normal(factors.shape))
        assert sites_each.evaluate(maps, factors, noise, 0.0, moved).log_evidence < fit.log_evidence


@pytest.mark.parametrize("approximation", ["ep", "sep", "gfitc", "vi"])
def test_the_order_of_data_and_the_names_of_classes_do_not_matter(approximation):
    kernels, Z, X, y, noise = problem()
    order, names = np.random.default_rng(3).permutation(len(y)), np.array([2, 0, 1])
    back = np.argsort(names)
    first = multiclass.infer(kernels, Z, X, y, approximation=approximation, noise=noise)
    second = multiclass.infer([kernels[c] for c in back], [Z[c] for c in back], X[order], names[y][order],
                              approximation=approximation, noise=noise[back])
    assert second.log_evidence == pytest.approx(first.log_evidence, abs=1e-6)
    assert second.predict_y(X)[:, names] == pytest.approx(first.predict_y(X), abs=1e-6)


@pytest.mark.parametrize("approximation", ["ep", "sep", "vi"])
def test_a_shared_map_is_the_same_map_for_every_class(approximation):
    kernels, Z, X, y, _ = problem()
    shared = multiclass.infer(kernels[0], Z[0], X, y, approximation=approximation, noise=0.3)
    own = multiclass.infer([kernels[0]] * 3, [Z[0]] * 3, X, y, approximation=approximation, noise=0.3)
    mixed = multiclass.infer(kernels[0], [Z[0]] * 3, X, y, approximation=approximation, noise=0.3)
    assert shared.log_evidence == pytest.approx(own.log_evidence, abs=1e-8)
    assert shared.gradient["Z"] == pytest.approx(sum(own.gradient["Z"]), abs=1e-6)
    assert mixed.gradient["Z"][1] == pytest.approx(own.gradient["Z"][1], abs=1e-6)
    total = sum(part["lengthscales"] for part in own.gradient["kernels"])
    assert shared.gradient["kernels"]["lengthscales"] == pytest.approx(total, abs=1e-6)
    assert mixed.gradient["kernels"]["lengthscales"] == pytest.approx(total, abs=1e-6)


def test_features_may_be_recomputed_in_place_of_stored():
    kernels, Z, X, y, noise = problem()
    stored, streamed = (multiclass.infer(kernels, Z, X, y, noise=noise, stream=stream) for stream in (False, True))
    assert stored.log_evidence == pytest.approx(streamed.log_evidence, abs=1e-9)


# --- gradients -------------------------------------------------------------------------------------------------------


def directional(evidence, gradient, kernels, Z, noise, seed=0):
    """The derivative along a random direction of all parameters: by differences, and by `gradient`."""
    rng = np.random.default_rng(seed)
    dk = [{key: rng.standard_normal(np.shape(value)) for key, value in kernel.parameters.items()} for kernel in kernels]
    dZ, dnoise = [rng.standard_normal(np.shape(z)) for z in Z], rng.standard_normal(len(noise))

    def at(t):
        moved = [k.with_parameters({p: v + t * d[p] for p, v in k.parameters.items()}) for k, d in zip(kernels, dk, strict=True)]
        return evidence(moved, [z + t * d for z, d in zip(Z, dZ, strict=True)], noise + t * dnoise)

    analytic = sum((g[p] * d[p]).sum() for g, d in zip(gradient["kernels"], dk, strict=True) for p in d)
    analytic += sum((g * d).sum() for g, d in zip(gradient["Z"], dZ, strict=True)) + gradient["noise"] @ dnoise
    return slope(at, 2e-4), analytic


CASES = [("ep", 1.0, None), ("ep", 0.6, None), ("ep", 0.1, None), ("ep", 0.0, None), ("sep", 0.0, None), ("gfitc", 1.0, None),
         ("gfitc", 0.5, None), ("gfitc", 0.5, 0.01 * 2 / 3), ("vi", None, None)]


@pytest.mark.parametrize(("approximation", "alpha", "epsilon"), CASES)
def test_the_gradient_is_that_of_the_evidence(approximation, alpha, epsilon):
    kernels, Z, X, y, noise = problem(N=15)
    options = {"alpha": alpha, "approximation": approximation, "epsilon": epsilon} | EXACT
    infer = lambda k, z, s: multiclass.infer(k, z, X, y, noise=s, **options)
    fit = infer(kernels, Z, noise)
    assert fit.converged
    differences, analytic = directional(lambda *p: infer(*p).log_evidence, fit.gradient, kernels, Z, noise)
    assert analytic == pytest.approx(differences, abs=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 0.3, 0.0])
@pytest.mark.parametrize("kind", ["pair", "joint"])
def test_the_exact_gradient_holds_far_from_convergence(kind, alpha):
    kernels, Z, X, y, noise = problem()
    kernels[1] = Matern52(1.2, np.array([0.8, 1.1]))
    factors = Pairwise(y, 3) if kind == "pair" else Joint(y, 3, 0.01 * 2 / 3)
    rng = np.random.default_rng(1)
    sites = Sites(0.3 * rng.random(factors.shape), rng.standard_normal(factors.shape))

    def state(k, z, s):
        maps = ClassMaps.build(tuple(k), tuple(z), 3, X, 1e-6)
        return maps, sites_each.evaluate(maps, factors, s, alpha, sites)

    maps, now = state(kernels, Z, noise)
    gradient = sites_each.exact_gradient_of(maps, factors, alpha, now)
    differences, analytic = directional(lambda *p: state(*p)[1].log_evidence, gradient, kernels, Z, noise)
    assert analytic == pytest.approx(differences, abs=1e-6)
    rough = sites_each.gradient_of(maps, factors, alpha, now)
    assert abs(directional(lambda *p: 0.0, rough, kernels, Z, noise)[1] - differences) > 1e-2


def test_at_convergence_both_gradients_agree():
    kernels, Z, X, y, noise = problem()
    fit = multiclass.infer(kernels, Z, X, y, noise=noise, alpha=0.5, **EXACT)
    maps, factors = ClassMaps.build(tuple(kernels), tuple(Z), 3, X, 1e-6), Pairwise(y, 3)
    state = sites_each.evaluate(maps, factors, noise, 0.5, fit.sites)
    exact = sites_each.exact_gradient_of(maps, factors, 0.5, state)
    for c in range(3):
        assert exact["Z"][c] == pytest.approx(fit.gradient["Z"][c], abs=1e-7)


# --- stochastic EP ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.0, 0.5])
@pytest.mark.parametrize("C", [2, 3])
def test_with_one_factor_in_each_group_sep_is_ep(alpha, C):
    kernels, Z, X, y, noise = problem(C=C, N=10)
    groups = np.arange((C - 1) * 10).reshape(C - 1, 10)
    ep = multiclass.infer(kernels, Z, X, y, alpha=alpha, noise=noise, **EXACT)
    sep = multiclass.infer(kernels, Z, X, y, alpha=alpha, noise=noise, approximation="sep", groups=groups, **EXACT)
    assert sep.log_evidence == pytest.approx(ep.log_evidence, abs=1e-8)
    assert sep.predict_y(X) == pytest.approx(ep.predict_y(X), abs=1e-8)
    for c in range(C):
        assert sep.gradient["Z"][c] == pytest.approx(ep.gradient["Z"][c], abs=1e-6)


def test_for_two_classes_one_datum_is_one_group():
    kernels, Z, X, y, noise = problem(C=2, N=10)
    by_datum = multiclass.infer(kernels, Z, X, y, noise=noise, approximation="sep", groups=np.arange(10), **EXACT)
    assert by_datum.log_evidence == pytest.approx(multiclass.infer(kernels, Z, X, y, noise=noise, **EXACT).log_evidence, abs=1e-8)


def test_sep_comes_closer_to_ep_with_more_data():
    kernels, Z, X, y, noise = problem(N=400)
    errors = []
    for N in (25, 100, 400):
        options = {"noise": noise, "max_sweeps": 500}
        ep, sep = (multiclass.infer(kernels, Z, X[:N], y[:N], approximation=a, **options) for a in ("ep", "sep"))
        errors.append(np.abs(ep.predict_y(X) - sep.predict_y(X)).max())
    assert errors[2] < errors[1] < errors[0] and errors[2] < 0.3 * errors[0]


def test_at_power_zero_tying_does_not_matter():
    kernels, Z, X, y, noise = problem()
    ep, sep = (multiclass.infer(kernels, Z, X, y, alpha=0, approximation=m, noise=noise, **EXACT) for m in ("ep", "sep"))
    assert sep.log_evidence == pytest.approx(ep.log_evidence, abs=1e-8)


@pytest.mark.parametrize("alpha", [1.0, 0.5, 0.0])
def test_seps_gradient_is_exact_with_the_tied_sites_held_still(alpha):
    kernels, Z, X, y, noise = problem()
    fit = multiclass.infer(kernels, Z, X, y, alpha=alpha, approximation="sep", noise=noise)
    factors = Pairwise(y, 3)

    def state(k, z, s):
        maps = ClassMaps.build(tuple(k), tuple(z), 3, X, 1e-6)
        return maps, sites_tied.evaluate(maps, factors, s, alpha, [1.0], fit.sites, weight=2.5)

    maps, now = state(kernels, Z, noise)
    gradient = sites_tied.gradient_of(maps, factors, now, 2.5)
    differences, analytic = directional(lambda *p: state(*p)[1].log_evidence, gradient, kernels, Z, noise)
    assert analytic == pytest.approx(differences, abs=1e-6)


# --- bad input -------------------------------------------------------------------------------------------------------

def tied(M, value=0.0):
    return sites_tied.TiedSites([[np.full((M, M), value)] * 3], [[np.zeros(M)] * 3])


BAD = [
    ({"y": np.full(24, 3)}, "y holds 3, expected whole numbers 0 ... 2"),
    ({"y": np.arange(24) % 3 + 0.5}, r"y holds 0\.5, expected whole numbers"),
    ({"y": np.arange(24) % 3 + 1}, "y holds 3, .* y - 1"),
    ({"y": np.zeros(23)}, r"y has shape \(23,\), expected \(24,\)"),
    ({"X": np.full((24, 2), np.nan)}, r"X holds 48 value\(s\) that are NaN"),
    ({"X": np.zeros((24, 3))}, r"Z\[0\] has 2 column\(s\), expected 3"),
    ({"alpha": 1.5}, r"alpha = 1\.5 is outside \[0, 1\]"),
    ({"alpha": np.full(24, 0.5)}, r"alpha has shape \(24,\), expected a scalar"),
    ({"approximation": "EP"}, "approximation = 'EP' is unknown"),
    ({"approximation": "gfitc", "alpha": 0.0}, "alpha = 0 needs epsilon > 0"),
    ({"approximation": "vi", "alpha": 0.5}, 'approximation = "vi" is alpha = 0, got 0.5'),
    ({"epsilon": 0.1}, "epsilon is for 'gfitc' and 'vi'"),
    ({"approximation": "vi", "epsilon": 1.0}, r"epsilon = 1\.0 must be one number in \[0, 1\)"),
    ({"noise": 0.0}, r"noise = 0\.0 must be positive"),
    ({"noise": [0.1, 0.2]}, "there are 3 classes, but .* 2 in noise"),
    ({"kernels": [SquaredExponential()] * 2}, "there are 3 classes, but 2 in kernels"),
    ({"Z": [np.zeros((4, 2))] * 2}, "there are 3 classes, but .* 2 in Z"),
    ({"classes": 1}, "there must be at least 2 classes, got 1"),
    ({"groups": np.zeros(24, int)}, 'groups are for approximation = "sep"'),
    ({"approximation": "sep", "groups": np.zeros(5, int)}, r"groups must hold whole numbers .* in shape \(5,\)"),
    ({"approximation": "sep", "groups": np.ma.zeros(24, int)}, "groups is a masked array"),
    ({"step": 0.0}, r"step = 0\.0 must be positive"),
    ({"sites": Sites(np.zeros(24), np.zeros(24))}, r"must be Sites of shape \(2, 2, 24\).*got Sites of shapes \(24,\)"),
    ({"sites": Sites(np.full((2, 2, 24), np.nan), np.zeros((2, 2, 24)))}, "sites.tau holds 96 value.* NaN"),
    ({"sites": sites_tied.TiedSites([[]], [[]])}, "must be Sites .*got TiedSites"),
    ({"approximation": "sep", "sites": Sites(np.zeros((2, 2, 24)), np.zeros((2, 2, 24)))}, "must be TiedSites.*got Sites"),
    ({"approximation": "sep", "sites": tied(5)}, r"must be TiedSites.*got .*\(5, 5\)"),
    ({"approximation": "sep", "sites": tied(4, np.nan)}, "sites.precisions holds 16 value.* NaN"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_input_gets_a_clear_error(change, message):
    kernels, Z, X, y, noise = problem()
    arguments = {"kernels": kernels, "Z": Z, "X": X, "y": y, "noise": noise} | change
    with pytest.raises(ValueError, match=message):
        multiclass.infer(**arguments)


def test_one_class_in_the_labels_and_nothing_else_is_an_error():
    with pytest.raises(ValueError, match="at least 2 classes"):
        multiclass.infer(SquaredExponential(), np.zeros((2, 1)), np.ones((5, 1)), np.zeros(5))


def test_callers_arrays_are_left_alone():
    kernels, Z, X, y, noise = problem()
    copies = [X.copy(), y.copy(), noise.copy(), *[z.copy() for z in Z]]
    for approximation in ("ep", "sep", "vi"):
        assert multiclass.infer(kernels, Z, X, y, approximation=approximation, noise=noise).gradient
    assert all(np.array_equal(a, b) for a, b in zip([X, y, noise, *Z], copies, strict=True))


def test_too_few_sweeps_are_reported():
    kernels, Z, X, y, noise = problem()
    with pytest.warns(RuntimeWarning, match="not converged"):
        assert not multiclass.infer(kernels, Z, X, y, noise=noise, max_sweeps=1).converged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert multiclass.infer(kernels, Z, X, y, noise=noise).converged


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("approximation", ["ep", "sep", "gfitc"])
def test_blocks_of_rows_change_nothing(approximation, shared, stream, monkeypatch):
    kernels, Z, X, y, noise = problem(N=150)
    kernels, Z = (kernels[0], Z[0]) if shared else (kernels, Z)
    options = {"approximation": approximation, "noise": noise, "tolerance": 1e-9, "max_sweeps": 1000}
    whole = multiclass.infer(kernels, Z, X, y, **options)
    expected, p = whole.gradient, whole.predict_y(X)
    monkeypatch.setattr("pepcore.features.BLOCK_ELEMENTS", 1)  # 64 rows, the fewest
    blocked = multiclass.infer(kernels, Z, X, y, stream=stream, **options)
    assert blocked.log_evidence == pytest.approx(whole.log_evidence, abs=1e-7)
    assert blocked.predict_y(X) == pytest.approx(p, abs=1e-7)
    found = blocked.gradient
    assert found["noise"] == pytest.approx(expected["noise"], abs=1e-5)
    pairs = [(found, expected)] if shared else [({"kernels": a, "Z": b}, {"kernels": c, "Z": d}) for a, b, c, d in zip(
        found["kernels"], found["Z"], expected["kernels"], expected["Z"], strict=True)]
    for one, other in pairs:
        assert one["Z"] == pytest.approx(other["Z"], abs=1e-5)
        assert one["kernels"]["lengthscales"] == pytest.approx(other["kernels"]["lengthscales"], abs=1e-5)


def test_blocks_of_rows_do_not_change_the_exact_gradient(monkeypatch):
    kernels, Z, X, y, noise = problem(N=150)
    factors, rng = Pairwise(y, 3), np.random.default_rng(1)
    sites = Sites(0.3 * rng.random(factors.shape), rng.standard_normal(factors.shape))

    def gradient():
        maps = ClassMaps.build(tuple(kernels), tuple(Z), 3, X, 1e-6)
        state = sites_each.evaluate(maps, factors, noise, 0.5, sites)
        return sites_each.exact_gradient_of(maps, factors, 0.5, state)

    whole = gradient()
    monkeypatch.setattr("pepcore.features.BLOCK_ELEMENTS", 1)
    blocked = gradient()
    for c in range(3):
        assert blocked["Z"][c] == pytest.approx(whole["Z"][c], rel=1e-9, abs=1e-9)


def test_seps_evidence_keeps_its_digits_at_small_powers():
    """It is smooth in alpha: at 1e-12 it is that at 0, and at 1e-4 what the slope between 0 and 1e-3 says."""
    kernels, Z, X, y, noise = problem(N=30)
    options = {"noise": noise, "approximation": "sep"} | EXACT
    evidence = lambda alpha: multiclass.infer(kernels, Z, X, y, alpha=alpha, **options).log_evidence
    limit = evidence(0.0)
    assert [evidence(alpha) for alpha in (1e-300, 1e-14, 1e-12)] == pytest.approx([limit] * 3, abs=1e-9)
    slope = [(evidence(alpha) - limit) / alpha for alpha in (1e-8, 1e-6, 1e-4)]
    assert slope == pytest.approx([slope[1]] * 3, rel=1e-3)


def tied_state(alpha, groups=None):
    """The state after one damped sweep over tied sites."""
    kernels, Z, X, y, noise = problem(N=30)
    maps, factors = ClassMaps.build(tuple(kernels), tuple(Z), 3, X, 1e-6), Pairwise(y, 3)
    masks = [np.ones(1)] if groups is None else [(groups == g).astype(float) for g in np.unique(groups)]
    flat = sites_tied.TiedSites.flat(maps, len(masks))
    first = sites_tied.evaluate(maps, factors, noise, alpha, masks, flat)
    return sites_tied.evaluate(maps, factors, noise, alpha, masks, flat.toward(first.target, 0.7))


@pytest.mark.parametrize("alpha", [0.3, 1.0])
@pytest.mark.parametrize("groups", [None, np.arange(30) % 4, np.arange(30)])
def test_the_cost_of_tied_sites_is_a_difference_of_log_normalisers(groups, alpha):
    state = tied_state(alpha, groups)
    G = lambda q: 0.5 * ((q.precision_cholesky.T @ q.mean) ** 2).sum() - np.log(np.diag(q.precision_cholesky)).sum()
    expected = sum(map(G, state.posteriors))
    for group in state.groups:
        triples = zip(group.counts, group.cavities, state.posteriors)
        expected += group.l + sum(n * (G(cavity) - G(whole)) for n, cavity, whole in triples) / alpha
    assert state.log_evidence == pytest.approx(expected, abs=1e-9)


def test_the_move_of_tied_sites_is_in_units_of_the_posterior():
    state, expected = tied_state(alpha=1.0), []
    symmetric = lambda part: np.tril(part) + np.tril(part, -1).T
    for c, q in enumerate(state.posteriors):
        root = np.linalg.inv(q.precision_cholesky)
        change = symmetric(state.target.precisions[0][c] - state.sites.precisions[0][c])
        shift = state.target.shifts[0][c] - state.sites.shifts[0][c]
        expected += [(root @ change @ root.T).ravel(), root @ shift]
    np.testing.assert_allclose(state.move, np.concatenate(expected), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("noise", [1e-2, 1e-6, 1e-12])
def test_the_gradient_in_a_tiny_noise_is_half_of_two_derivatives_at_power_one(noise):
    """The factor sees the sum of variance and noise alone, so with a noise of almost 0 the derivative is that in the variance."""
    factors, mean, variance = Pairwise(np.array([0]), 2), np.array([[[0.3]], [[0.9]]]), np.array([[[0.5]], [[0.8]]])
    found = factors.tilted(mean, variance, np.full(2, noise), 1.0).dnoise[0, 0, 0]
    step = 1e-5
    up, down = (factors.tilted(mean, variance + s, np.full(2, noise), 1.0).l[0, 0] for s in (step, -step))
    assert found == pytest.approx((up - down) / (4 * step), rel=1e-8)
