"""Sparse regression against methods written again, independently, with dense N x N algebra."""

import numpy as np
import pytest
from conftest import reference
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from problems import peak, slope
from scipy.stats import multivariate_normal

from pepcore import power_ep
from pepcore.features import feature_map
from pepcore.gaussian import kl_divergence
from pepcore.kernels import Matern52, SquaredExponential
from pepcore.likelihoods import Gaussian

ALPHAS = [0.0, 1e-8, 0.05, 0.3, 0.5, 0.8, 1.0]
KERNELS = {
    "se": SquaredExponential(1.3, [0.8, 1.2]),
    "matern": Matern52(0.9, [1.1, 0.7]),
    "sum": SquaredExponential(0.7, 1.5) + Matern52(0.5, [0.9, 1.4]),
}
BLOCKS = [np.array([0, 5, 7]), np.array([1]), np.array([2, 3, 4, 6, 8, 9]), np.arange(10, 25)]
JITTER = 1e-10  # the dense formulas below carry the same


def problem(seed, N=25, M=6, D=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    return 1.5 * rng.normal(size=(M, D)), X, np.sin(2 * X.sum(axis=1)) + 0.3 * rng.normal(size=N)


def log_normal(y, covariance):
    return -0.5 * (len(y) * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y))


class Dense:
    """Q = K_fu K_uu⁻¹ K_uf and everything that follows from it, at O(N³)."""

    def __init__(self, kernel, Z, X, y, noise):
        self.kernel, self.Z, self.X, self.y, self.noise = kernel, Z, X, y, noise
        K_uu = kernel(Z) + JITTER * kernel.diagonal(Z).mean() * np.eye(len(Z))
        self.q = lambda a, b: kernel(a, Z) @ np.linalg.solve(K_uu, kernel(Z, b))
        self.Q, self.K = self.q(X, X), kernel(X)

    def evidence(self, noise_covariance, penalty=0.0):
        """The log density :eq:`sr-linear`, less the penalty."""
        return log_normal(self.y, self.Q + noise_covariance) - penalty

    def predict(self, noise_covariance, Xs):
        S = self.Q + noise_covariance
        cross = self.q(Xs, self.X)
        covariance = self.kernel(Xs) - cross @ np.linalg.solve(S, cross.T)
        return cross @ np.linalg.solve(S, self.y), covariance


def assert_same(fit, dense, noise_covariance, penalty=0.0):
    Xs = np.random.default_rng(99).normal(size=(9, dense.X.shape[1]))
    assert fit.log_evidence == pytest.approx(dense.evidence(noise_covariance, penalty), rel=1e-8)
    mean, covariance = dense.predict(noise_covariance, Xs)
    np.testing.assert_allclose(fit.predict_f(Xs)[0], mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(fit.predict_f(Xs)[1], np.diag(covariance), rtol=1e-8)
    np.testing.assert_allclose(fit.predict_y(Xs)[1], np.diag(covariance) + dense.noise, rtol=1e-8)
    np.testing.assert_allclose(fit.posterior.predict_full(Xs)[1], covariance, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_alpha_one_is_fitc(kernel):
    """The covariance :eq:`sr-k-bar` with blocks of one, dense, and the predictions :eq:`sr-predict` that it gives."""
    Z, X, y = problem(0)
    dense = Dense(kernel, Z, X, y, 0.1)
    fit = power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=1.0, jitter=JITTER)
    assert_same(fit, dense, np.diag(np.diag(dense.K - dense.Q)) + 0.1 * np.eye(len(y)))


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_alpha_zero_is_vfe(kernel):
    """The bound :eq:`sr-vfe` with a dense covariance."""
    Z, X, y = problem(1)
    dense = Dense(kernel, Z, X, y, 0.1)
    fit = power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=0.0, jitter=JITTER)
    assert_same(fit, dense, 0.1 * np.eye(len(y)), penalty=np.trace(dense.K - dense.Q) / 0.2)


def block_diagonal(matrix, blocks):
    kept = np.zeros_like(matrix)
    for b in blocks:
        kept[np.ix_(b, b)] = matrix[np.ix_(b, b)]
    return kept


def test_blocks_with_alpha_one_are_pitc():
    """The covariance :eq:`sr-k-bar` at power 1, dense."""
    Z, X, y = problem(2)
    dense = Dense(KERNELS["se"], Z, X, y, 0.1)
    fit = power_ep.regression(KERNELS["se"], Z, X, y, noise=0.1, alpha=1.0, blocks=BLOCKS, jitter=JITTER)
    assert_same(fit, dense, block_diagonal(dense.K - dense.Q, BLOCKS) + 0.1 * np.eye(len(y)))


def test_blocks_with_alpha_zero_are_vfe():
    """The variational bound sees only the trace of the residual, so blocks change nothing."""
    Z, X, y = problem(2)
    plain = power_ep.regression(KERNELS["se"], Z, X, y, noise=0.1, alpha=0.0)
    blocked = power_ep.regression(KERNELS["se"], Z, X, y, noise=0.1, alpha=0.0, blocks=BLOCKS)
    assert blocked.log_evidence == pytest.approx(plain.log_evidence, rel=1e-10)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_blocks_of_one_are_pointwise(alpha):
    Z, X, y = problem(3)
    plain = power_ep.regression(KERNELS["matern"], Z, X, y, noise=0.1, alpha=alpha)
    blocked = power_ep.regression(KERNELS["matern"], Z, X, y, noise=0.1, alpha=alpha, blocks=np.arange(len(y)))
    assert blocked.log_evidence == pytest.approx(plain.log_evidence, rel=1e-12)
    for key, value in plain.gradient.items():
        np.testing.assert_allclose(blocked.gradient[key], value, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_pseudo_inputs_at_the_data_give_the_exact_gp(alpha):
    _, X, y = problem(4)
    X = 3 * X  # well separated, so that a jitter of 1e-12 is enough
    kernel = KERNELS["se"]
    fit = power_ep.regression(kernel, X, X, y, noise=0.1, alpha=alpha, jitter=1e-13)
    K, Xs = kernel(X), np.random.default_rng(0).normal(size=(5, 2))
    S = K + 0.1 * np.eye(len(y))
    assert fit.log_evidence == pytest.approx(log_normal(y, S), rel=1e-8)
    cross = kernel(Xs, X)
    np.testing.assert_allclose(fit.predict_f(Xs)[0], cross @ np.linalg.solve(S, y), rtol=1e-8)
    variance = kernel.diagonal(Xs) - np.einsum("sn,ns->s", cross, np.linalg.solve(S, cross.T))
    np.testing.assert_allclose(fit.predict_f(Xs)[1], variance, rtol=1e-8)


def test_one_block_with_alpha_one_has_the_exact_evidence_whatever_the_pseudo_inputs():
    Z, X, y = problem(5)
    fit = power_ep.regression(KERNELS["se"], Z, X, y, noise=0.1, alpha=1.0, blocks=[np.arange(len(y))], jitter=JITTER)
    assert fit.log_evidence == pytest.approx(log_normal(y, KERNELS["se"](X) + 0.1 * np.eye(len(y))), rel=1e-8)


def iterated_block_power_ep(dense, noise, alphas, blocks, sweeps=150):
    """Power EP on the blocks from its definition: remove a fraction, tilt, project, put back, until nothing moves.

    Works on u itself with natural parameters and dense inverses; shares no line with pepcore.
    """
    M = len(dense.Z)
    K_uu = dense.kernel(dense.Z) + JITTER * dense.kernel.diagonal(dense.Z).mean() * np.eye(M)
    W = np.linalg.solve(K_uu, dense.kernel(dense.Z, dense.X))
    prior = np.linalg.inv(K_uu)
    precisions, shifts = np.zeros((len(blocks), M, M)), np.zeros((len(blocks), M))

    def normaliser(precision, shift):
        return 0.5 * (shift @ np.linalg.solve(precision, shift) - np.linalg.slogdet(precision)[1])

    def tilt(k):
        b, a = blocks[k], alphas[k]
        precision = prior + precisions.sum(axis=0) - a * precisions[k]
        shift = shifts.sum(axis=0) - a * shifts[k]
        V = np.linalg.inv(precision)
        S = W[:, b].T @ V @ W[:, b] + (dense.K - dense.Q)[np.ix_(b, b)] + noise / a * np.eye(len(b))
        gain = V @ W[:, b] @ np.linalg.inv(S)
        mean = V @ shift + gain @ (dense.y[b] - W[:, b].T @ (V @ shift))
        covariance = V - gain @ W[:, b].T @ V
        # N(y; f, noise)^a is N(y; f, noise/a) times this constant
        constant = -0.5 * len(b) * (a * np.log(2 * np.pi * noise) - np.log(2 * np.pi * noise / a))
        log_Z = constant + log_normal(dense.y[b] - W[:, b].T @ (V @ shift), S)
        return precision, shift, np.linalg.inv(covariance), np.linalg.solve(covariance, mean), log_Z

    for _ in range(sweeps):
        for k, a in enumerate(alphas):
            precision, shift, new_precision, new_shift, _ = tilt(k)
            precisions[k] = (1 - a) * precisions[k] + new_precision - precision
            shifts[k] = (1 - a) * shifts[k] + new_shift - shift
    total = prior + precisions.sum(axis=0), shifts.sum(axis=0)
    evidence = normaliser(*total) - normaliser(prior, np.zeros(M))
    for k, a in enumerate(alphas):
        precision, shift, *_, log_Z = tilt(k)
        evidence += (log_Z + normaliser(precision, shift) - normaliser(*total)) / a
    return evidence, np.linalg.solve(total[0], total[1])


def test_private_powers_of_blocks_equal_block_power_ep_iterated_to_convergence():
    Z, X, y = problem(6, M=4)
    alphas = np.array([0.3, 0.9, 0.5, 0.7])
    dense = Dense(KERNELS["se"], Z, X, y, 0.2)
    evidence, mean_u = iterated_block_power_ep(dense, 0.2, alphas, BLOCKS)
    fit = power_ep.regression(KERNELS["se"], Z, X, y, noise=0.2, alpha=alphas, blocks=BLOCKS, jitter=JITTER)
    assert fit.log_evidence == pytest.approx(evidence, rel=1e-8)
    np.testing.assert_allclose(fit.posterior.hensman()[0], mean_u, rtol=1e-8, atol=1e-9)


def test_private_powers_of_data_equal_blocks_of_one_iterated_to_convergence():
    Z, X, y = problem(7, N=12, M=4)
    alphas = np.random.default_rng(7).uniform(0.2, 1.0, size=12)
    dense = Dense(KERNELS["matern"], Z, X, y, 0.2)
    evidence, mean_u = iterated_block_power_ep(dense, 0.2, alphas, [np.array([n]) for n in range(12)])
    fit = power_ep.regression(KERNELS["matern"], Z, X, y, noise=0.2, alpha=alphas, jitter=JITTER)
    assert fit.log_evidence == pytest.approx(evidence, rel=1e-8)
    np.testing.assert_allclose(fit.posterior.hensman()[0], mean_u, rtol=1e-8, atol=1e-9)


def test_evidence_is_continuous_at_alpha_zero():
    Z, X, y = problem(8)
    at_zero = power_ep.regression(KERNELS["se"], Z, X, y, alpha=0.0)
    nearby = power_ep.regression(KERNELS["se"], Z, X, y, alpha=1e-9)
    assert nearby.log_evidence == pytest.approx(at_zero.log_evidence, rel=1e-7)
    np.testing.assert_allclose(nearby.gradient["Z"], at_zero.gradient["Z"], rtol=1e-6)


@pytest.mark.parametrize("noise", [1e-4, 0.1, 1e3])
@pytest.mark.parametrize("stream", [False, True])
def test_the_gradient_of_vfe_is_that_of_power_ep_at_a_power_that_vanishes(noise, stream):
    """At alpha = 0 it has a shorter form, which one datum's power of 1e-14 keeps from being taken."""
    Z, X, y = problem(7, N=60)
    powers = np.zeros(len(y))
    powers[3] = 1e-14
    options = {"noise": noise, "stream": stream}
    short, full = (power_ep.regression(KERNELS["se"], Z, X, y, alpha=a, **options).gradient for a in (0.0, powers))
    for key, value in full.items():
        np.testing.assert_allclose(short[key], value, rtol=0, atol=1e-9 * np.abs(value).max(), err_msg=key)


def test_the_gradient_does_not_see_what_becomes_of_the_callers_targets():
    Z, X, y = problem(8)
    expected = power_ep.regression(KERNELS["se"], Z, X, y).gradient
    fit = power_ep.regression(KERNELS["se"], Z, X, y)
    y[:] = 0.0
    np.testing.assert_array_equal(fit.gradient["Z"], expected["Z"])


def test_vfe_is_a_lower_bound_that_grows_with_every_pseudo_input():
    Z, X, y = problem(9, M=12)
    exact = log_normal(y, KERNELS["se"](X) + 0.1 * np.eye(len(y)))
    bounds = [
        power_ep.regression(KERNELS["se"], Z[:M], X, y, alpha=0.0, jitter=1e-12).log_evidence for M in range(1, 13)
    ]
    assert np.all(np.diff(bounds) > -1e-8)
    assert bounds[-1] < exact


def test_order_of_the_data_does_not_matter():
    Z, X, y = problem(10)
    order = np.random.default_rng(0).permutation(len(y))
    one = power_ep.regression(KERNELS["sum"], Z, X, y)
    other = power_ep.regression(KERNELS["sum"], Z, X[order], y[order])
    assert other.log_evidence == pytest.approx(one.log_evidence, rel=1e-12)


def test_sites_are_the_closed_form_and_one_more_sweep_does_not_move_them():
    """The sites :eq:`sr-sites`, against one more update from their cavities."""
    from pepcore.likelihoods import Gaussian
    from pepcore.sites import cavity, target

    Z, X, y = problem(11)
    alpha, noise = 0.4, 0.1
    fit = power_ep.regression(KERNELS["se"], Z, X, y, noise=noise, alpha=alpha)
    A, h = fit.posterior.basis.features(X)
    np.testing.assert_allclose(fit.sites.tau, 1 / (alpha * h + noise), rtol=1e-12)
    np.testing.assert_allclose(fit.sites.nu, y * fit.sites.tau, rtol=1e-12)
    mean, s = A.T @ fit.posterior.mean, fit.posterior.predict(X)[1] - h
    cavity_mean, cavity_s = cavity(mean, s, fit.sites, alpha)
    _, d1, d2 = Gaussian(noise).log_moment(y, cavity_mean, h + cavity_s, alpha)
    again = target(cavity_mean, cavity_s, d1, d2, alpha)
    np.testing.assert_allclose(again.tau, fit.sites.tau, rtol=1e-8)
    np.testing.assert_allclose(again.nu, fit.sites.nu, rtol=1e-7, atol=1e-8)


def test_streaming_changes_nothing_but_the_memory(monkeypatch):
    monkeypatch.setattr("pepcore.features.BLOCK_ELEMENTS", 64 * 6)
    Z, X, y = problem(12, N=300)
    alpha = np.linspace(0, 1, 300)
    stored = power_ep.regression(KERNELS["se"], Z, X, y, alpha=alpha)
    streamed = power_ep.regression(KERNELS["se"], Z, X, y, alpha=alpha, stream=True)
    assert streamed.log_evidence == pytest.approx(stored.log_evidence, rel=1e-12)
    for key, value in stored.gradient.items():
        np.testing.assert_allclose(streamed.gradient[key], value, rtol=1e-9, atol=1e-10)


@st.composite
def regression_problems(draw):
    kernel_name = draw(st.sampled_from(sorted(KERNELS)))
    alpha_kind = draw(st.sampled_from(["zero", "one", "between", "private"]))
    return {
        "seed": draw(st.integers(0, 10**6)),
        "kernel": KERNELS[kernel_name],
        "noise": draw(st.sampled_from([0.01, 0.1, 1.0])),
        "alpha": {"zero": 0.0, "one": 1.0, "between": draw(st.floats(0.0, 1.0)), "private": None}[alpha_kind],
        "n_blocks": draw(st.sampled_from([None, 1, 3, 7])),
        "N": draw(st.integers(3, 25)),
        "M": draw(st.integers(1, 6)),
    }


@settings(max_examples=240, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=regression_problems())
def test_gradient_agrees_with_central_differences(case):
    rng = np.random.default_rng(case["seed"])
    Z, X, y = problem(case["seed"], N=case["N"], M=case["M"])
    blocks = None if case["n_blocks"] is None else rng.integers(case["n_blocks"], size=case["N"])
    size = case["N"] if blocks is None else len(np.unique(blocks))
    alpha = rng.uniform(size=size) if case["alpha"] is None else case["alpha"]
    kernel, noise = case["kernel"], case["noise"]
    options = {"alpha": alpha, "blocks": blocks, "jitter": 1e-4}
    gradient = power_ep.regression(kernel, Z, X, y, noise=noise, **options).gradient

    flat = np.concatenate([np.ravel(v) for v in kernel.parameters.values()] + [[noise], Z.ravel()])

    def evidence(vector):
        new, position = {}, 0
        for key, value in kernel.parameters.items():
            part = vector[position : position + np.size(value)]
            new[key] = part if np.ndim(value) else float(part[0])
            position += np.size(value)
        moved = kernel.with_parameters(new)
        Z_moved = vector[position + 1 :].reshape(Z.shape)
        return power_ep.regression(moved, Z_moved, X, y, noise=vector[position], **options).log_evidence

    exact = np.concatenate(
        [np.ravel(gradient[key]) for key in kernel.parameters] + [[gradient["noise"]], gradient["Z"].ravel()]
    )
    numeric = np.empty_like(exact)
    for i in range(len(flat)):
        way = np.eye(len(flat))[i]
        step = 1e-3 * min(flat[i], 1.0) if i < len(flat) - Z.size else 1e-3
        numeric[i] = slope(lambda t, way=way: evidence(flat + t * way), step)
    assert np.abs(numeric - exact).max() <= 1e-6 * max(1.0, np.abs(exact).max())


METHODS = {"pep_1.0": 1.0, "pep_0.8": 0.8, "pep_0.5": 0.5, "pep_0.1": 0.1, "fitc": 1.0, "vardtc": 0.0}


@pytest.mark.parametrize("file", ["gpy_regression_small", "gpy_regression_mid"])
@pytest.mark.parametrize("method", METHODS)
def test_values_of_other_software_are_met(file, method):
    ref = reference(f"{file}.npz")
    kernel = SquaredExponential(float(ref["s2"]), ref["ls"])
    jitter = (1e-8 if method == "vardtc" else 1e-6) / kernel.variance  # theirs is absolute

    def evaluate(relative_jitter):
        data = ref["Z"], ref["X"], ref["y"][:, 0]
        return power_ep.regression(
            kernel, *data, noise=float(ref["noise"]), alpha=METHODS[method], jitter=relative_jitter
        )

    fit = evaluate(jitter)
    assert fit.log_evidence == pytest.approx(float(ref[f"{method}__lml"]), rel=1e-6)
    mean, variance = fit.predict_f(ref["Xs"])
    np.testing.assert_allclose(mean, ref[f"{method}__mean"][:, 0], rtol=1e-6, atol=1e-6 * np.abs(mean).max())
    np.testing.assert_allclose(variance, ref[f"{method}__var_f"][:, 0], rtol=1e-6)
    ours = np.concatenate([np.ravel(fit.gradient[k]) for k in ("lengthscales", "noise", "Z")])
    theirs = np.concatenate([np.ravel(ref[f"{method}__d{k}"]) for k in ("ls", "noise", "Z")])
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())

    def evidence(relative_jitter):
        return evaluate(relative_jitter).log_evidence

    # our jitter is relative, so it moves with the variance; theirs is absolute: the chain rule takes that part out
    step = 0.05 * jitter
    one, two = (evidence(jitter + k * step) - evidence(jitter - k * step) for k in (1, 2))
    by_jitter = (8 * one - two) / (12 * step)
    ours = fit.gradient["variance"] - by_jitter * jitter / kernel.variance
    assert ours == pytest.approx(float(ref[f"{method}__ds2"]), rel=1e-6)


@pytest.mark.parametrize(("method", "alpha"), [("sgpr", 0.0), ("gprfitc", 1.0)])
def test_values_of_a_second_package_are_met(method, alpha):
    data, ref = reference("gpy_regression_mid.npz"), reference("gpflow_regression_mid.npz")
    kernel = SquaredExponential(float(data["s2"]), data["ls"])
    fit = power_ep.regression(
        kernel, data["Z"], data["X"], data["y"][:, 0], noise=float(data["noise"]), alpha=alpha, jitter=1e-6 / kernel.variance
    )
    assert fit.log_evidence == pytest.approx(float(ref[f"{method}__lml"]), rel=1e-6)
    mean, variance = fit.predict_f(data["Xs"])
    np.testing.assert_allclose(mean, ref[f"{method}__mean"][:, 0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(variance, ref[f"{method}__var_f"][:, 0], rtol=1e-6)


def test_blocks_of_data_in_several_blocks_of_rows(monkeypatch):
    """The data, rotated within their blocks, are cut anew into blocks of rows: 150 of them in three parts."""
    rng = np.random.default_rng(3)
    X, y, Z = rng.normal(size=(150, 2)), rng.normal(size=150), rng.normal(size=(6, 2))
    blocks, alpha = rng.integers(40, size=150), rng.uniform(size=40)
    assert len(np.unique(blocks)) == 40
    whole = power_ep.regression(KERNELS["se"], Z, X, y, alpha=alpha, blocks=blocks)
    expected = whole.gradient
    monkeypatch.setattr("pepcore.features.BLOCK_ELEMENTS", 1)
    cut = power_ep.regression(KERNELS["se"], Z, X, y, alpha=alpha, blocks=blocks)
    assert cut.log_evidence == pytest.approx(whole.log_evidence, rel=1e-12)
    np.testing.assert_allclose(cut.predict_f(X), whole.predict_f(X), rtol=1e-9, atol=1e-12)
    for key, value in expected.items():
        np.testing.assert_allclose(cut.gradient[key], value, rtol=1e-8, atol=1e-8)


def test_blocks_at_the_pseudo_inputs_leave_no_negative_residual():
    """The eigenvalues of a residual covariance of 0 are rounding of either sign, and larger than this noise."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    options = {"noise": 1e-17, "blocks": np.arange(20) // 10, "jitter": 0.0}
    assert np.isfinite(power_ep.regression(Matern52(), X, X, np.sin(X[:, 0]), **options).log_evidence)


@pytest.mark.parametrize("method", ["regression", "infer"])
def test_streaming_keeps_no_features(method):
    """What is O(N) is there either way; the difference is A, 50 000 x 40 numbers."""
    X = np.random.default_rng(0).normal(size=(50_000, 2))
    Z, y = X[:40].copy(), np.sign(X[:, 0])
    learn = {"regression": lambda stream: power_ep.regression(KERNELS["se"], Z, X, y, stream=stream).gradient,
             "infer": lambda stream: power_ep.infer(KERNELS["se"], Z, X, y, Gaussian(0.1), stream=stream).gradient}[method]
    stored, streamed = (peak(lambda stream=stream: learn(stream)) for stream in (False, True))
    assert stored - streamed > 0.8 * 50_000 * 40 * 8


def on_disk(folder, X):
    """X as a memory map."""
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def test_a_memory_map_gives_the_same_bits_as_the_array(tmp_path):
    Z, X, y = problem(12, N=300)
    fit = power_ep.regression(KERNELS["se"], Z, X, y, stream=True)
    mapped = power_ep.regression(KERNELS["se"], Z, on_disk(tmp_path, X), y, stream=True)
    assert mapped.log_evidence == fit.log_evidence
    for key, value in fit.gradient.items():
        np.testing.assert_array_equal(mapped.gradient[key], value)


def test_a_memory_map_is_never_in_memory_as_a_whole(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(100_000, 40)), np.zeros(100_000)
    kernel, Z, mapped = SquaredExponential(1.0, 8.0), X[:40], on_disk(tmp_path, X)
    assert peak(lambda: power_ep.regression(kernel, Z, mapped, y).gradient) < 0.6 * X.nbytes


def test_a_gap_far_down_a_memory_map_is_found(tmp_path):
    X = np.zeros((150_000, 1))
    X[140_000] = np.nan
    with pytest.raises(ValueError, match=r"1 value\(s\) that are NaN or infinite, the first at index \(140000, 0\)"):
        power_ep.regression(SquaredExponential(), X[:3], on_disk(tmp_path, X), np.zeros(150_000))


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_no_fixed_parameters_exceed_on_average_the_evidence_of_those_that_made_the_data(alpha):
    """:eq:`sr-average` with other parameters: E log Z = E log p0 − KL(p0 ‖ changed model) − penalty, each by itself."""
    X, Z = np.linspace(0, 4, 12)[:, None], np.linspace(0, 4, 4)[:, None]
    truth, noise = SquaredExponential(1.3, 0.7)(X) + 0.2 * np.eye(12), 0.1
    kernel = SquaredExponential(0.8, 1.1)
    features = feature_map(kernel, Z, X, jitter=0.0)
    changed = features.A.T @ features.A + np.diag(alpha * features.h + noise)
    root = np.linalg.cholesky(truth)     # the evidence is quadratic in y: its mean over 24 points is that over y
    points = np.sqrt(12) * np.hstack([root, -root]).T
    mean = np.mean([power_ep.regression(kernel, Z, X, y, noise=noise, alpha=alpha, jitter=0.0).log_evidence for y in points])
    of_truth = np.mean([multivariate_normal(np.zeros(12), truth).logpdf(y) for y in points])
    ratio = features.h / noise
    penalty = 0.5 * ratio.sum() if alpha == 0 else (1 - alpha) / (2 * alpha) * np.log1p(alpha * ratio).sum()
    assert mean == pytest.approx(of_truth - kl_divergence(np.zeros(12), truth, np.zeros(12), changed) - penalty, rel=1e-8)
    assert mean < of_truth
