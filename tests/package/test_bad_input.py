"""Awkward and wrong input: each gives a right answer or the promised error, and no array of the caller is touched.

The right answer is worked out here by orthogonal factorisations, which hold where normal equations lose their digits:
for y ~ N(0, AᵀA + diag d), stack R = qr([A D^-½, I]ᵀ).
"""

import numpy as np
import pytest
from scipy import sparse

from pepcore import datasets, decoupled, exact, multiclass, online, power_ep, training
from pepcore.kernels import Matern52, SquaredExponential
from pepcore.likelihoods import Gaussian, Probit, StudentT
from pepcore.multiclass import learning, minibatch
from pepcore.online import fixed_basis
from pepcore.sites import Sites

ALPHAS = [0.0, 0.3, 1.0]


def problem(N=40, D=2, M=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (N, D))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=N)
    return X, y, rng.uniform(-2, 2, (M, D))


def power_ep_evidence(kernel, Z, X, y, noise, alpha, jitter=1e-6):
    """The collapsed evidence from A, h and two QR factorisations."""
    scale = kernel.diagonal(Z).mean()
    root = np.linalg.cholesky(kernel(Z) + jitter * scale * np.eye(len(Z)))
    A = np.linalg.solve(root, kernel(Z, X))
    h = kernel.diagonal(X) - (A**2).sum(0)
    d = alpha * h + noise
    stacked = np.vstack([A.T / np.sqrt(d)[:, None], np.eye(len(Z))])
    Q, R = np.linalg.qr(stacked)
    white = np.concatenate([y / np.sqrt(d), np.zeros(len(Z))])
    quadratic = ((white - Q @ (Q.T @ white)) ** 2).sum()
    log_determinant = np.log(d).sum() + 2 * np.log(np.abs(np.diag(R))).sum()
    log_normal = -0.5 * (quadratic + log_determinant + len(y) * np.log(2 * np.pi))
    if alpha == 0:
        return log_normal - h.sum() / (2 * noise)
    return log_normal - (1 - alpha) / (2 * alpha) * np.log1p(alpha * h / noise).sum()


def is_finite(fit):
    values = [fit.log_evidence, *fit.gradient.values()]
    return all(np.isfinite(value).all() for value in values)


# --- awkward, but there is a right answer -----------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", ALPHAS)
def test_duplicate_pseudo_inputs_count_once(alpha):
    X, y, Z = problem()
    kernel = SquaredExponential(1.5, [0.8, 1.2])
    twice = power_ep.regression(kernel, np.vstack([Z, Z[:3]]), X, y, noise=0.1, alpha=alpha, jitter=1e-9)
    once = power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=alpha, jitter=1e-9)
    assert twice.log_evidence == pytest.approx(once.log_evidence, rel=1e-6)
    assert np.allclose(twice.predict_f(X), once.predict_f(X), rtol=0, atol=1e-6)
    assert is_finite(twice)
    # moving both copies together is moving the one
    pair = twice.gradient["Z"][:3] + twice.gradient["Z"][8:]
    assert np.allclose(pair, once.gradient["Z"][:3], rtol=1e-3, atol=1e-3)


def test_all_pseudo_inputs_in_one_place():
    X, y, Z = problem()
    kernel = SquaredExponential(1.5, [0.8, 1.2])
    many = power_ep.regression(kernel, np.repeat(Z[:1], 8, axis=0), X, y, jitter=1e-9)
    one = power_ep.regression(kernel, Z[:1], X, y, jitter=1e-9)
    assert many.log_evidence == pytest.approx(one.log_evidence, rel=1e-6)
    assert is_finite(many)


@pytest.mark.parametrize("constant", [0.1, 3e5])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_constant_columns_change_nothing(alpha, constant):
    X, y, Z = problem()
    kernel, wider = SquaredExponential(1.5, [0.8, 1.2]), SquaredExponential(1.5, [0.8, 1.2, 0.5])
    column = [np.column_stack([points, np.full(len(points), constant)]) for points in (Z, X)]
    narrow = power_ep.regression(kernel, Z, X, y, alpha=alpha)
    wide = power_ep.regression(wider, *column, y, alpha=alpha)
    assert wide.log_evidence == pytest.approx(narrow.log_evidence, rel=1e-12)
    assert np.allclose(wide.gradient["lengthscales"], [*narrow.gradient["lengthscales"], 0], rtol=1e-8, atol=1e-10)
    assert np.allclose(wide.gradient["Z"][:, 2], 0, atol=1e-10)
    full = exact.regression(wider, column[1], y)
    assert full.log_evidence == pytest.approx(exact.regression(kernel, X, y).log_evidence, rel=1e-12)


@pytest.mark.parametrize("constant", [0.0, 0.1, 3e5])
def test_a_fit_with_a_constant_column_is_the_fit_without(constant):
    X, y, _ = problem(N=60)
    X_wide = np.column_stack([X, np.full(60, constant)])
    options = {"M": 6, "max_evaluations": 40, "Z": "subset"}
    narrow = training.fit(SquaredExponential(1.0, [1.0, 1.0]), X, y, **options)
    wide = training.fit(SquaredExponential(1.0, [1.0, 1.0, 1.0]), X_wide, y, **options)
    assert wide.trace()[:10] == pytest.approx(narrow.trace()[:10], rel=1e-8)
    assert wide.fit.log_evidence == pytest.approx(narrow.fit.log_evidence, rel=1e-3)
    assert wide.kernel.lengthscales[2] == pytest.approx(1.0)
    by_default = training.fit(None, X_wide, y, **options)
    assert by_default.kernel.lengthscales[2] == pytest.approx(np.sqrt(3))  # where it started: one unit times √D
    assert np.mean((by_default.predict_f(X_wide)[0] - y) ** 2) < 0.5 * y.var()


def test_a_column_that_is_constant_but_for_rounding_is_constant():
    X, y, _ = problem(N=60)
    X_wide = np.column_stack([X, np.where(np.arange(60) % 2, 0.1 + 0.2, 0.3)])
    assert np.ptp(X_wide[:, 2]) > 0
    assert training.fit(None, X_wide, y, M=6, max_evaluations=1).kernel.lengthscales[2] == pytest.approx(np.sqrt(3), rel=0.2)
    shifted, _ = datasets.standardise(X_wide, X_wide)
    assert np.abs(shifted[:, 2]).max() < 1e-15
    assert training.starts.variance_of(1e6 + X_wide[:, 2] * 0) == 1


@pytest.mark.parametrize("seed", [1.5, -1, "zero"])
@pytest.mark.parametrize("call", [
    lambda seed: training.fit(None, np.eye(4), np.ones(4), M=2, seed=seed),
    lambda seed: training.choose_pseudo_inputs(np.eye(4), 2, seed=seed),
    lambda seed: training.fit_minibatch(None, np.eye(4), np.ones(4), Gaussian(0.1), M=2, seed=seed),
    lambda seed: multiclass.fit(None, np.eye(4), [0, 1, 0, 1], M=2, seed=seed),
    lambda seed: decoupled.infer(SquaredExponential(), np.eye(4), None, np.eye(4), np.ones(4), Gaussian(0.1), basis="coupled",
                                 seed=seed),
    lambda seed: datasets.snelson_like(seed=seed)])
def test_seeds_that_are_none_are_named(call, seed):
    with pytest.raises(ValueError, match=f"seed = {seed!r} must be a numpy Generator"):
        call(seed)


class _Named(SquaredExponential):
    """A kernel whose variance has the name of something else."""

    name = "noise"

    @property
    def parameters(self):
        return {self.name: self.variance, "lengthscales": self.lengthscales}


@pytest.mark.parametrize(("name", "call"), [
    ("noise", lambda kernel, X, y: power_ep.regression(kernel, X[:3], X, y)),
    ("Z", lambda kernel, X, y: power_ep.regression(kernel, X[:3], X, y)),
    ("noise", lambda kernel, X, y: exact.regression(kernel, X, y)),
    ("noise", lambda kernel, X, y: exact.infer(kernel, X, y, Gaussian(0.1))),
    ("noise", lambda kernel, X, y: power_ep.infer(kernel, X[:3], X, y, Gaussian(0.1))),
    ("noise", lambda kernel, X, y: training.fit_minibatch(kernel, X, y, Gaussian(0.1), M=3)),
    ("noise", lambda kernel, X, y: multiclass.infer(kernel, X[:3], X, np.arange(20) % 2)),
    ("beta", lambda kernel, X, y: decoupled.infer(kernel, X[:3], None, X, y, Gaussian(0.1), basis="coupled"))])
def test_parameters_of_one_name_are_refused(name, call):
    X, y, _ = problem(N=20)
    kernel = _Named(1.0, [1.0, 1.0])
    object.__setattr__(kernel, "name", name)
    with pytest.raises(ValueError, match=f"the kernels? has a parameter '{name}', which in the gradient is"):
        call(kernel, X, y)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_the_sites_of_a_fit_cannot_be_changed(alpha):
    X, y, Z = problem(N=20)
    fit = power_ep.regression(SquaredExponential(), Z, X, y, alpha=alpha)
    with pytest.raises(ValueError, match="read-only"):
        fit.sites.tau[:] = 1.0
    power_ep.infer(SquaredExponential(), Z, X, y, Gaussian(0.1), alpha=alpha, sites=fit.sites)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("N", [1, 3])
def test_fewer_data_than_pseudo_inputs(alpha, N):
    X, y, Z = problem(N=N, M=8)
    kernel = Matern52(1.5, [0.8, 1.2])
    fit = power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=alpha)
    assert fit.log_evidence == pytest.approx(power_ep_evidence(kernel, Z, X, y, 0.1, alpha), rel=1e-9)
    assert is_finite(fit)


@pytest.mark.parametrize("value", [0.0, 0.1, -7.0])
def test_targets_of_one_value(value):
    X, y, Z = problem()
    y = np.full(len(y), value)
    kernel = SquaredExponential(1.5, [0.8, 1.2])
    for alpha in ALPHAS:
        fit = power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=alpha)
        assert fit.log_evidence == pytest.approx(power_ep_evidence(kernel, Z, X, y, 0.1, alpha), rel=1e-9)
    model = training.fit(None, X, y, M=5, max_evaluations=30)
    assert np.isfinite(model.fit.log_evidence)
    assert np.allclose(model.predict_f(X)[0], value, atol=0.05 * max(1, abs(value)))


@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_labels_of_one_class(label):
    X, y, _ = problem()
    fit = exact.infer(SquaredExponential(1.5, [0.8, 1.2]), X, np.full(len(y), label), Probit())
    assert fit.converged
    assert is_finite(fit)
    assert (fit.predict_y(X) * label > (0.5 if label > 0 else -0.5)).all()


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.9, 1.0])
def test_almost_no_noise(alpha):
    X, y, Z = problem()
    kernel = SquaredExponential(1.5, [0.8, 1.2])
    fit = power_ep.regression(kernel, Z, X, y, noise=1e-12, alpha=alpha)
    assert fit.log_evidence == pytest.approx(power_ep_evidence(kernel, Z, X, y, 1e-12, alpha), rel=1e-8)
    assert is_finite(fit)
    # at alpha = 1 the residual variances hide so little noise: the evidence changes over steps of their size only
    step = 1e-16 if alpha < 1 else 1e-7
    above = power_ep.regression(kernel, Z, X, y, noise=1e-12 + 2 * step, alpha=alpha).log_evidence
    middle = power_ep.regression(kernel, Z, X, y, noise=1e-12 + step, alpha=alpha)
    slope = (above - fit.log_evidence) / (2 * step)
    assert middle.gradient["noise"] == pytest.approx(slope, rel=1e-4)


def test_almost_no_noise_interpolates():
    X, y, _ = problem(N=12)
    kernel = Matern52(1.5, [0.8, 1.2])
    fit = exact.regression(kernel, X, y, noise=1e-12)
    K = kernel(X)
    expected = -0.5 * (y @ np.linalg.solve(K, y) + np.linalg.slogdet(2 * np.pi * K)[1])
    assert fit.log_evidence == pytest.approx(expected, rel=1e-8)
    assert np.allclose(fit.predict_f(X)[0], y, atol=1e-6)
    sparse = power_ep.regression(kernel, X, X, y, noise=1e-12, alpha=1.0, jitter=1e-12)
    assert sparse.log_evidence == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("make", [SquaredExponential, Matern52])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_inputs_far_from_the_origin(alpha, make):
    X, y, Z = (np.array(a) for a in problem())
    kernel = make(1.5, [0.8, 1.2])
    X_far, Z_far = X + 1e8, Z + 1e8
    X, Z = X_far - 1e8, Z_far - 1e8  # what is left of them after rounding, exactly
    far, near = (
        power_ep.regression(kernel, Z_far, X_far, y, alpha=alpha),
        power_ep.regression(kernel, Z, X, y, alpha=alpha),
    )
    assert far.log_evidence == pytest.approx(near.log_evidence, rel=1e-7)
    for key in near.gradient:
        scale = np.abs(near.gradient[key]).max()
        assert np.allclose(far.gradient[key], near.gradient[key], rtol=1e-5, atol=1e-5 * scale)
    assert np.allclose(far.predict_f(X_far), near.predict_f(X), rtol=0, atol=1e-5)


def test_exact_inference_far_from_the_origin():
    X, y, _ = problem()
    kernel = SquaredExponential(1.5, [0.8, 1.2])
    X_far = X + 1e8
    X = X_far - 1e8
    near, far = exact.regression(kernel, X, y), exact.regression(kernel, X_far, y)
    assert far.log_evidence == pytest.approx(near.log_evidence, rel=1e-7)
    labels = np.where(y > 0, 1.0, -1.0)
    near, far = (exact.infer(kernel, points, labels, Probit()) for points in (X, X_far))
    assert far.log_evidence == pytest.approx(near.log_evidence, rel=1e-7)


@pytest.mark.parametrize("shift", [0.0, 1e8])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_a_fit_does_not_mind_the_units_of_the_inputs(scale, shift):
    X, y, _ = problem(N=80)
    moved = (X + shift) * scale if scale > 1 else X * scale + shift * scale
    model = training.fit(None, moved, y, M=8, max_evaluations=60, seed=0)
    mean, _ = model.predict_f(moved)
    assert np.mean((mean - y) ** 2) < 0.25 * y.var()


# --- wrong: the promised error ----------------------------------------------------------------------------------------


def regression(X, y, Z, **options):
    return power_ep.regression(SquaredExponential(1.0, [1.0, 1.0]), Z, X, y, **options)


def exact_regression(X, y, Z, **options):
    return exact.regression(SquaredExponential(1.0, [1.0, 1.0]), X, y, **options)


def exact_infer(X, y, Z, **options):
    labels = np.where(np.isfinite(y) & (np.asarray(y) > 0), 1.0, np.where(np.isfinite(y), -1.0, y))
    return exact.infer(SquaredExponential(1.0, [1.0, 1.0]), X, labels, Probit(), **options)


def fit(X, y, Z, **options):
    return training.fit(None, X, y, Z=Z, max_evaluations=5, **options)


def sparse_infer(X, y, Z, **options):
    return power_ep.infer(SquaredExponential(1.0, [1.0, 1.0]), Z, X, y, Gaussian(), **options)


def fixed_basis_infer(X, y, Z, **options):
    return fixed_basis.infer(SquaredExponential(1.0, [1.0, 1.0]), Z, X, y, Gaussian(), **options)


def nystrom(X, y, Z, **options):
    return fixed_basis.nystrom(SquaredExponential(1.0, [1.0, 1.0]), Z, X, y, X, **options)


def fit_minibatch(X, y, Z, **options):
    return training.fit_minibatch(None, X, y, Gaussian(), Z=Z, epochs=1, **options)


def multiclass_infer(X, y, Z, **options):
    return multiclass.infer(SquaredExponential(1.0, [1.0, 1.0]), Z, X, y > 0, **options)


def multiclass_fit(X, y, Z, **options):
    return learning.fit(None, X, y > 0, Z=Z, **{"iterations": 1, **options})


def multiclass_fit_minibatch(X, y, Z, **options):
    return minibatch.fit_minibatch(SquaredExponential(1.0, [1.0, 1.0]), Z, (X, y > 0), **options)


def decoupled_infer(X, y, Z, **options):
    return decoupled.infer(SquaredExponential(1.0, [1.0, 1.0]), Z, None, X, y, Gaussian(), steps=1, **options)


ALL = [regression, exact_regression, exact_infer, fit]
SPARSE = [regression, fit]
SWEEPING = [sparse_infer, fixed_basis_infer, multiclass_infer]


def spoil(array, value):
    array = np.array(array)
    array.flat[-1] = value
    return array


@pytest.mark.parametrize("call", ALL)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(call, value):
    X, y, Z = problem()
    with pytest.raises(ValueError, match=r"X holds 1 value\(s\) that are NaN or infinite"):
        call(spoil(X, value), y, Z)
    with pytest.raises(ValueError, match=r"y holds 1 value\(s\) that are NaN or infinite, the first at index \(39,\)"):
        call(X, spoil(y, value), Z)


@pytest.mark.parametrize("call", SPARSE)
def test_pseudo_inputs_that_are_not_finite(call):
    X, y, Z = problem()
    with pytest.raises(ValueError, match="Z holds 1 value"):
        call(X, y, spoil(Z, np.nan))


@pytest.mark.parametrize("call", ALL)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:, 0], y), r"X has shape \(40,\).*X\[:, None\]"),
        (lambda X, y: (X[None], y), r"X has shape \(1, 40, 2\)"),
        (lambda X, y: (X[:0], y[:0]), r"X has shape \(0, 2\)"),
        (lambda X, y: (X, y[:-1]), r"y has shape \(39,\), expected \(40,\)"),
        (lambda X, y: (X, y[:, None]), r"y has shape \(40, 1\).*ravel"),
    ],
)
def test_wrong_shapes(call, change, message):
    X, y, Z = problem()
    X, y = change(X, y)
    with pytest.raises(ValueError, match=message):
        call(X, y, Z)


@pytest.mark.parametrize("call", [regression, exact_regression, fit])
def test_values_that_are_no_numbers(call):
    X, y, Z = problem()
    with pytest.raises(ValueError, match="X must be an array of real numbers"):
        call(X.astype(str), y, Z)
    with pytest.raises(ValueError, match="y must be an array of real numbers"):
        call(X, y + 1j, Z)


@pytest.mark.parametrize("call", ALL)
def test_text_in_an_array_of_objects_is_refused_and_numbers_are_not(call):
    X, y, Z = problem()
    assert np.isfinite(call(X.astype(object), y, Z).predict_f(X)).all()
    with pytest.raises(ValueError, match=r"X must be an array of real numbers \(it holds text\)"):
        call(X.astype(str).astype(object), y, Z)


@pytest.mark.parametrize("call", [regression, exact_regression, fit])
def test_a_whole_number_beyond_floating_point_is_refused(call):
    X, y, Z = problem()
    with pytest.raises(ValueError, match="noise must be one real number"):
        call(X, y, Z, noise=10**400)


@pytest.mark.parametrize("call", [regression, exact_regression, fit])
def test_masked_arrays_are_refused(call):
    X, y, Z = problem()
    with pytest.raises(ValueError, match=r"X is a masked array.*drop the masked rows"):
        call(np.ma.masked_greater(X, 1.9), y, Z)
    with pytest.raises(ValueError, match="y is a masked array"):
        call(X, np.ma.masked_greater(y, 0.0), Z)


def test_lists_that_hold_masked_arrays_are_refused():
    X, y, Z = problem(N=2)
    with pytest.raises(ValueError, match=r"X\[1\] is a masked array"):
        regression([X[0], np.ma.array([1.0, 99.0], mask=[0, 1])], y, Z)
    with pytest.raises(ValueError, match=r"X\[0\]\[1\] is a masked array"):
        regression([[1.0, np.ma.masked], [1.0, 2.0]], y, Z)


@pytest.mark.parametrize("call", SPARSE)
def test_pseudo_inputs_of_another_shape(call):
    X, y, Z = problem()
    with pytest.raises(ValueError, match="Z has 1 column"):
        call(X, y, Z[:, :1])
    with pytest.raises(ValueError, match=r"Z has shape \(2,\)"):
        call(X, y, Z[0])


def test_another_number_of_lengthscales():
    X, y, Z = problem()
    with pytest.raises(ValueError, match="lengthscales"):
        power_ep.regression(SquaredExponential(1.0, [1.0, 1.0, 1.0]), Z, X, y)


@pytest.mark.parametrize("call", [regression, exact_infer, fit])
@pytest.mark.parametrize("alpha", [1.5, -0.1, np.nan])
def test_powers_outside_of_the_range(call, alpha):
    X, y, Z = problem()
    with pytest.raises(ValueError, match=r"alpha .*(outside|NaN)"):
        call(X, y, Z, alpha=alpha)
    with pytest.raises(ValueError, match=r"alpha .*(outside|NaN)"):
        call(X, y, Z, alpha=spoil(np.full(len(y), 0.5), alpha))


@pytest.mark.parametrize("call", [regression, exact_infer, fit])
def test_private_powers_of_another_number(call):
    X, y, Z = problem()
    with pytest.raises(ValueError, match="alpha is a masked array"):
        call(X, y, Z, alpha=np.ma.array(np.full(40, 0.5)))
    with pytest.raises(ValueError, match=r"alpha has shape \(3,\)"):
        call(X, y, Z, alpha=np.full(3, 0.5))


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([np.arange(20) + 0.7, np.arange(20, 40)], "0 ... 39 exactly once"),
        ([np.arange(40), np.zeros(0, int)], "a list of non-empty index arrays"),
        ([np.arange(20), np.ma.array(np.arange(20, 40))], r"blocks\[1\] is a masked array"),
        ([np.arange(20).astype(str), np.arange(20, 40)], r"blocks\[0\] must be an array of real numbers"),
        (np.ma.array(np.arange(40) // 4), "blocks is a masked array"),
    ],
)
def test_blocks_that_are_no_partition(blocks, message):
    X, y, Z = problem()
    with pytest.raises(ValueError, match=message):
        regression(X, y, Z, blocks=blocks)


def test_blocks_are_not_streamed():
    with pytest.raises(ValueError, match="stream=True keeps no features, but blocks need them"):
        regression(*problem(), blocks=np.arange(40) // 4, stream=True)


@pytest.mark.parametrize("call", [regression, exact_regression, fit])
@pytest.mark.parametrize("noise", [-0.1, 0.0, np.nan, np.inf])
def test_noise_that_is_not_positive(call, noise):
    X, y, Z = problem()
    with pytest.raises(ValueError, match=r"noise .*(positive|NaN)"):
        call(X, y, Z, noise=noise)


@pytest.mark.parametrize("call", [regression, exact_regression, fit])
@pytest.mark.parametrize("noise", [[0.1], np.linspace(0.1, 0.5, 40)])
def test_a_noise_for_every_datum_is_refused(call, noise):
    X, y, Z = problem()
    with pytest.raises(ValueError, match=r"noise has shape .*, expected one number"):
        call(X, y, Z, noise=noise)


@pytest.mark.parametrize("likelihood", [{"noise": [0.1, 0.2]}, {"degrees": [4.0]}, {"scale": np.ones(3)}])
def test_likelihoods_with_arrays_of_parameters_are_refused(likelihood):
    with pytest.raises(ValueError, match="expected one number"):
        (Gaussian if "noise" in likelihood else StudentT)(**likelihood)


@pytest.mark.parametrize("name", ["step", "tolerance"])
def test_arrays_for_the_options_of_sweeps_are_refused(name):
    X, y, Z = problem()
    with pytest.raises(ValueError, match=f"{name} has shape .*, expected one number"):
        exact_infer(X, y, Z, **{name: [0.5, 0.5]})


@pytest.mark.parametrize("jitter", [-1e-3, 0.1, np.inf, np.nan, "a", [1e-6]])
@pytest.mark.parametrize(
    "call",
    [*ALL, *SWEEPING, nystrom, fit_minibatch, multiclass_fit, multiclass_fit_minibatch, decoupled_infer],
)
def test_jitters_that_are_no_small_numbers(call, jitter):
    X, y, Z = problem()
    with pytest.raises(ValueError, match=r"jitter .*(in \[0, 0.01\]|NaN|number)"):
        call(X, y, Z, jitter=jitter)


@pytest.mark.parametrize("max_sweeps", [-1, 2.5, np.nan, "many"])
@pytest.mark.parametrize("call", [exact_infer, *SWEEPING])
def test_numbers_of_sweeps_that_are_no_numbers(call, max_sweeps):
    X, y, Z = problem()
    with pytest.raises(ValueError, match=r"max_sweeps .*must be a whole number"):
        call(X, y, Z, max_sweeps=max_sweeps)


def has_begun(*_):
    pytest.fail("it learns before it looks at its options")


@pytest.mark.parametrize(
    ("options", "message"), [({"max_sweeps": -1}, "max_sweeps = -1 .* at least 0"), ({"tolerance": 0}, "tolerance = 0")]
)
def test_options_of_the_last_inference_are_refused_before_the_learning(options, message):
    X, y, Z = problem()
    with pytest.raises(ValueError, match=message):
        multiclass_fit(X, y, Z, callback=has_begun, **options)
    if "max_sweeps" in options:
        with pytest.raises(ValueError, match=message):
            fit_minibatch(X, y, Z, callback=has_begun, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_evaluations": -1}, "max_evaluations = -1 must be a whole number"),
        ({"tolerance": -1e-9}, "tolerance = -1e-09 must be at least 0"),
        ({"tolerance": np.nan}, "tolerance = nan"),
    ],
)
def test_options_of_the_optimiser_are_checked(options, message):
    X, y, Z = problem()
    assert np.isfinite(training.fit(None, X, y, Z=Z, max_evaluations=5.0, tolerance=0).fit.log_evidence)
    with pytest.raises(ValueError, match=message):
        training.fit(None, X, y, Z=Z, **options)


@pytest.mark.parametrize("labels", [[0, 1], [0, 2], [1, 2], [-1, 0]])
def test_labels_that_are_not_plus_or_minus_one(labels):
    X, y, _ = problem()
    with pytest.raises(ValueError, match=r"expected labels -1 and \+1") as error:
        exact.infer(SquaredExponential(), X, np.where(y > 0, labels[1], labels[0]), Probit())
    assert ("2 * y - 1" in str(error.value)) == (labels == [0, 1])


@pytest.mark.parametrize("M", [-1, 0, 2.5, "many", [4]])
@pytest.mark.parametrize("call", [fit, fit_minibatch, multiclass_fit])
def test_numbers_of_pseudo_inputs_that_are_no_numbers(call, M):
    X, y, _ = problem()
    with pytest.raises(ValueError, match=r"M .*must be a whole number"):
        call(X, y, "kmeans", M=M)


@pytest.mark.parametrize("restarts", [0, 1.5])
def test_numbers_of_restarts_that_are_no_numbers(restarts):
    with pytest.raises(ValueError, match=f"restarts = {restarts} must be a whole number, at least 1"):
        fit(*problem(), restarts=restarts)


@pytest.mark.parametrize("call", [fit, fit_minibatch, multiclass_fit])
def test_a_name_alone_is_no_tuple_of_names(call):
    with pytest.raises(ValueError, match=r"optimise = 'noise' must be a tuple of names out of 'kernel"):
        call(*problem(), optimise="noise")


@pytest.mark.parametrize("optimise", [(), ("likelihood",)])
def test_nothing_to_learn_is_an_error_that_says_so(optimise):
    X, y, Z = problem()
    labels = np.where(y > 0, 1.0, -1.0)
    with pytest.raises(ValueError, match=r"nothing is left to learn: .*name more"):
        fit(X, labels, Z, infer=power_ep.infer, likelihood=Probit(), optimise=optimise)
    if optimise:  # without names learning on batches moves the sites alone
        with pytest.raises(ValueError, match="nothing is left to learn"):
            training.fit_minibatch(None, X, labels, Probit(), Z=Z, optimise=optimise)


def test_more_pseudo_inputs_than_distinct_rows():
    X, y, _ = problem(N=10)
    with pytest.raises(ValueError, match="M = 30 pseudo-inputs were asked for, but X has 10 distinct rows"):
        training.fit(None, np.repeat(X, 4, axis=0), np.repeat(y, 4), M=30)


@pytest.mark.parametrize("call", ALL)
def test_predictions_at_wrong_places(call):
    X, y, Z = problem()
    model = call(X, y, Z)
    with pytest.raises(ValueError, match="NaN"):
        model.predict_f(spoil(X, np.nan))
    with pytest.raises(ValueError, match="column"):
        model.predict_f(X[:, :1])
    with pytest.raises(ValueError, match="shape"):
        model.predict_f(X[0])


# --- the caller's arrays ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ALL)
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_the_caller_may_be_read_only_and_stay_as_they_are(call, order):
    arrays = [np.array(array, order=order) for array in problem()]
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.setflags(write=False)
    model = call(*arrays)
    model.predict_f(arrays[0])
    _ = model.fit.gradient if call is fit else model.gradient
    assert all(np.array_equal(a, b) for a, b in zip(arrays, before))


def moved(arrays):
    """The caller goes on to use the memory for something else."""
    for array in arrays:
        array *= -3
        array += 1


@pytest.mark.parametrize("call", [regression, exact_regression, exact_infer, *SWEEPING])
def test_predictions_stay_when_the_caller_changes_the_arrays(call):
    arrays, (Xs, *_) = problem(), problem(seed=1)
    model = call(*arrays)
    before = model.predict_f(Xs)
    moved(arrays)
    assert np.array_equal(model.predict_f(Xs), before)


def test_decoupled_bases_stay_when_the_caller_changes_the_arrays():
    (X, y, beta), (gamma, *_) = problem(), problem(N=5, seed=1)
    bases = decoupled.infer(SquaredExponential(1.0, [1.0, 1.0]), beta, gamma, X, y, Gaussian(), steps=2).bases
    before = bases.beta.copy(), bases.gamma.copy()
    moved((beta, gamma))
    assert np.array_equal(bases.beta, before[0])
    assert np.array_equal(bases.gamma, before[1])


@pytest.mark.parametrize(
    ("call", "options"),
    [
        (exact_regression, {}),
        (exact_infer, {}),
        (regression, {"stream": True}),
        (sparse_infer, {"stream": True}),
        (multiclass_infer, {"stream": True}),
        (fit_minibatch, {}),
    ],
)
def test_a_gradient_asked_for_later_is_that_of_the_arrays_given(call, options):
    arrays = problem()
    now, later = (getattr(model, "fit", model) for model in (call(*arrays, **options), call(*arrays, **options)))
    expected = now.gradient
    moved(arrays)
    assert str(later.gradient) == str(expected)


def test_private_powers_given_to_a_model_stay_when_the_caller_changes_them():
    X, y, Z = problem()
    alpha, index = np.linspace(0, 1, len(y)), np.arange(20, 40)
    whole, blocked = fit(X, y, Z, alpha=alpha), regression(X, y, Z, alpha=0.5, blocks=[np.arange(20), index])
    expected = regression(X, y, Z, alpha=0.5, blocks=[np.arange(20), index.copy()]).gradient
    alpha[:], index[:] = 0.5, np.arange(20)
    assert np.array_equal(whole.alpha, np.linspace(0, 1, len(y)))
    assert np.array_equal(whole.fit.alpha, np.linspace(0, 1, len(y)))
    assert str(blocked.gradient) == str(expected)


def test_sites_to_start_from_stay_when_they_are_all_that_is_returned():
    X, y, Z = problem()
    flat = Sites.flat(len(y))
    with pytest.warns(RuntimeWarning, match="not converged after 0 sweeps"):
        model = sparse_infer(X, y, Z, sites=flat, max_sweeps=0)
    flat.tau[:] = 5.0
    assert (model.sites.tau == 0).all()


def test_private_powers_and_blocks_of_the_caller_stay_as_they_are():
    X, y, Z = problem()
    alpha, labels = np.linspace(0, 1, len(y)), np.arange(len(y)) // 4
    powers = np.linspace(0, 1, 10)
    for array in (X, y, Z, alpha, labels, powers):
        array.setflags(write=False)
    assert is_finite(regression(X, y, Z, alpha=alpha))
    assert is_finite(regression(X, y, Z, alpha=powers, blocks=labels))


def test_lists_and_integers_are_as_good_as_arrays():
    X, y, Z = problem()
    X, y, Z = (X * 4).round(), (y * 10).round(), (Z * 4).round()
    by_list = regression(X.tolist(), y.tolist(), Z.tolist())
    by_integers = regression(X.astype(int), y.astype(int), Z.astype(int))
    assert by_list.log_evidence == by_integers.log_evidence == regression(X, y, Z).log_evidence


def test_nothing_and_sparse_matrices_are_named():
    kernel, X = SquaredExponential(), np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match="noise = None must be"):
        power_ep.regression(kernel, X[:2], X, X[:, 0], noise=None)
    for call in (lambda: power_ep.regression(kernel, X[:2], sparse.csr_array(X), X[:, 0]),
                 lambda: multiclass.fit_minibatch(kernel, X[:2], (sparse.csr_array(X), np.arange(6) % 2))):
        with pytest.raises(ValueError, match="toarray"):
            call()


def test_data_are_added_to_fits_of_sparse_regression_at_rest_only():
    kernel, X = SquaredExponential(), np.linspace(0, 3, 30)[:, None]
    y, Z, noise = np.sin(X[:, 0]), X[::6], Gaussian(0.1)
    with pytest.warns(RuntimeWarning, match="EP has not converged"):
        unfinished = power_ep.infer(kernel, Z, X, y, noise, max_sweeps=0)
    for fit, said in ((online.fixed_basis.infer(kernel, Z, X, y, noise), "needs a Fit of power_ep.regression"),
                      (unfinished, "has converged, but this one has")):
        with pytest.raises(ValueError, match=said):
            power_ep.add_data(fit, X, y)
    whole = power_ep.regression(kernel, Z, X, y, noise=0.1)
    begun = power_ep.infer(kernel, Z, X[:20], y[:20], noise, alpha=0.5)
    assert power_ep.add_data(begun, X[20:], y[20:]).log_evidence == pytest.approx(whole.log_evidence, abs=1e-5)


def test_means_too_far_apart_for_a_quadrature_are_refused():
    likelihood = multiclass.RobustMax(3, noise=0.0)
    with pytest.raises(ValueError, match="variance"):
        likelihood.predict(np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="apart"):
        likelihood.predict(np.array([[0.0, 1e12, 0.0]]), np.ones((1, 3)))
