import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import central_differences

from pepcore.kernels import Kernel, Matern52, SquaredExponential, Sum

KERNELS = {
    "squared exponential": SquaredExponential(1.3, [0.7, 1.9]),
    "matern": Matern52(0.8, [1.1, 0.6]),
    "shared lengthscale": Matern52(0.8, 0.9),
    "sum": SquaredExponential(0.9, [1.2, 0.5]) + Matern52(1.1, 0.8) + SquaredExponential(0.3, 2.0),
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


def test_squared_exponential_is_its_formula():
    x, z, lengthscales = np.array([0.3, -1.0]), np.array([1.0, 0.4]), np.array([0.7, 1.9])
    expected = 1.3 * np.exp(-0.5 * (((x - z) / lengthscales) ** 2).sum())
    assert SquaredExponential(1.3, lengthscales)(x[None], z[None])[0, 0] == pytest.approx(expected, rel=1e-14)


def test_matern_is_its_formula():
    x, z, lengthscales = np.array([0.3, -1.0]), np.array([1.0, 0.4]), np.array([0.7, 1.9])
    r = np.sqrt((((x - z) / lengthscales) ** 2).sum())
    expected = 0.8 * (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)
    assert Matern52(0.8, lengthscales)(x[None], z[None])[0, 0] == pytest.approx(expected, rel=1e-14)


@each_kernel
def test_matrix_is_symmetric_positive_and_has_the_diagonal_it_says(kernel):
    X = np.random.default_rng(0).normal(size=(30, 2))
    K = kernel(X)
    np.testing.assert_allclose(K, K.T, atol=1e-14)
    np.testing.assert_allclose(np.diag(K), kernel.diagonal(X), rtol=1e-14)
    assert np.linalg.eigvalsh(K).min() > -1e-12


def parameters_as_vector(kernel):
    return np.concatenate([np.ravel(value) for value in kernel.parameters.values()])


def with_vector(kernel, vector):
    new, position = {}, 0
    for key, value in kernel.parameters.items():
        part = vector[position : position + np.size(value)]
        new[key] = part if np.ndim(value) else float(part[0])
        position += np.size(value)
    return kernel.with_parameters(new)


@each_kernel
@given(seed=st.integers(0, 10**6), fortran=st.booleans())
def test_vjp_agrees_with_central_differences(kernel, seed, fortran):
    rng = np.random.default_rng(seed)
    X, X2 = rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    dK = np.array(rng.normal(size=(4, 3)), order="F" if fortran else "C")
    gradient, dX = kernel.vjp(X, X2, dK)
    vector = parameters_as_vector(kernel)
    numeric = central_differences(lambda p: (dK * with_vector(kernel, p)(X, X2)).sum(), vector)
    np.testing.assert_allclose(np.concatenate([np.ravel(g) for g in gradient.values()]), numeric, atol=2e-8)
    np.testing.assert_allclose(dX, central_differences(lambda Y: (dK * kernel(Y, X2)).sum(), X), atol=2e-8)
    assert list(gradient) == list(kernel.parameters)


@each_kernel
@pytest.mark.parametrize("second", [False, True])
def test_derivatives_of_a_value_agree_with_central_differences_for_both_arguments(kernel, second):
    rng = np.random.default_rng(1)
    X, X2, dK = rng.normal(size=(4, 2)), rng.normal(size=(3, 2)), rng.normal(size=(4, 3))
    K, vjp = kernel.value_and_vjp(X, X2)
    np.testing.assert_array_equal(K, kernel(X, X2))
    gradient, dX, dX2 = vjp(dK, first=not second, second=second)
    expected = kernel.vjp(X, X2, dK)[0]
    for key in expected:
        np.testing.assert_allclose(gradient[key], expected[key], atol=1e-13)
    if second:
        assert dX is None
        np.testing.assert_allclose(dX2, central_differences(lambda Y: (dK * kernel(X, Y)).sum(), X2), atol=2e-8)
    else:
        assert dX2 is None
        np.testing.assert_allclose(dX, central_differences(lambda Y: (dK * kernel(Y, X2)).sum(), X), atol=2e-8)


@each_kernel
def test_a_value_and_its_derivatives_can_be_had_of_one_set_of_inputs(kernel):
    rng = np.random.default_rng(2)
    X, dK = rng.normal(size=(40, 2)), rng.normal(size=(40, 40))
    K, vjp = kernel.value_and_vjp(X)
    np.testing.assert_array_equal(np.diag(K), kernel.diagonal(X))
    np.testing.assert_allclose(K, kernel(X, X.copy()), atol=1e-13)
    _, dX, dX2 = vjp(dK, first=True, second=True)
    both = central_differences(lambda Y: (dK * kernel(Y)).sum(), X)
    np.testing.assert_allclose(dX + dX2, both, atol=1e-7)


@each_kernel
def test_diagonal_vjp_agrees_with_central_differences(kernel):
    rng = np.random.default_rng(0)
    X, dk = rng.normal(size=(5, 2)), rng.normal(size=5)
    gradient = kernel.diagonal_vjp(X, dk)
    numeric = central_differences(
        lambda p: (dk * with_vector(kernel, p).diagonal(X)).sum(), parameters_as_vector(kernel)
    )
    np.testing.assert_allclose(np.concatenate([np.ravel(g) for g in gradient.values()]), numeric, atol=1e-8)


def test_matern_has_derivatives_of_zero_where_two_inputs_coincide():
    X = np.array([[0.5, 0.5], [0.5, 0.5]])
    gradient, dX = KERNELS["matern"].vjp(X, X, np.ones((2, 2)))
    np.testing.assert_array_equal(dX, 0)
    np.testing.assert_array_equal(gradient["lengthscales"], 0)


@each_kernel
def test_a_common_shift_of_all_inputs_changes_nothing(kernel):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(6, 2)), 4)
    np.testing.assert_allclose(kernel(X + 2**26, X[:3] + 2**26), kernel(X, X[:3]), atol=1e-7)


@pytest.mark.parametrize("kernel", [SquaredExponential(), Matern52()], ids=["se", "matern"])
def test_a_shift_of_hundreds_of_lengthscales_costs_no_digits(kernel):
    X = np.round(2**20 * np.random.default_rng(0).normal(size=(30, 2))) / 2**20  # so that the shift is exact
    np.testing.assert_allclose(kernel(X + 512, X[:9] + 512), kernel(X, X[:9]), rtol=0, atol=1e-14)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, [1.0, 2.0], "2"])
def test_variance_must_be_one_positive_number(bad):
    with pytest.raises(ValueError, match="variance must be"):
        SquaredExponential(variance=bad)


@pytest.mark.parametrize("bad", [0.0, [1.0, -1.0], [np.nan], [[1.0]], "2", ["1", "2"]])
def test_lengthscales_must_be_positive_numbers(bad):
    with pytest.raises(ValueError, match="lengthscales must be"):
        Matern52(lengthscales=bad)


def test_number_of_lengthscales_must_match_the_inputs():
    with pytest.raises(ValueError, match=r"got shapes \(5,\) and \(5,\).*give x\[:, None\]"):
        SquaredExponential()(np.zeros(5))
    with pytest.raises(ValueError, match="3 and 3 columns and the kernel 2"):
        SquaredExponential(1.0, [1.0, 2.0])(np.ones((4, 3)))


def test_unknown_parameters_are_named():
    with pytest.raises(ValueError, match="lenghtscale"):
        SquaredExponential().with_parameters({"lenghtscale": 1.0})
    with pytest.raises(ValueError, match="variance"):
        (SquaredExponential() + Matern52()).with_parameters({"variance": 1.0})


def test_lengthscales_cannot_be_changed_behind_the_kernels_back():
    given = np.array([1.0, 2.0])
    kernel = SquaredExponential(1.0, given)
    given[0] = 5.0
    assert kernel.lengthscales[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        kernel.lengthscales[0] = 3.0


def test_sums_are_flat_and_keep_their_order():
    total = SquaredExponential(1.0) + (Matern52(2.0) + SquaredExponential(3.0))
    assert [part.variance for part in total.parts] == [1.0, 2.0, 3.0]
    assert list(total.parameters)[:2] == ["0.variance", "0.lengthscales"]


def test_sums_of_lists_are_sums_of_tuples():
    parts = [SquaredExponential(), Matern52(2.0)]
    one = Sum(parts)
    assert one == parts[0] + parts[1] == sum(parts) and hash(one) == hash(sum(parts))
    assert repr(one) == f"{parts[0]!r} + {parts[1]!r}"


def test_zero_is_the_only_number_that_a_sum_leaves_out():
    assert 0 + SquaredExponential() == SquaredExponential()
    with pytest.raises(TypeError):
        1 + SquaredExponential()


class White(Kernel):
    """Independent values of variance one."""

    @property
    def parameters(self):
        return {}

    def _with(self, parameters):
        return self

    def __call__(self, X, X2=None):
        return np.eye(len(X)) if X2 is None else np.zeros((len(X), len(X2)))

    def diagonal(self, X):
        return np.ones(len(X))

    def value_and_vjp(self, X, X2=None):
        return self(X, X2), lambda dK, first=True, second=False: ({}, np.zeros_like(X), None)

    def diagonal_vjp(self, X, dk):
        return {}


def test_kernels_of_others_stand_on_either_side_of_a_sum():
    white, smooth = White(), SquaredExponential()
    assert (white + smooth).parts == (white, smooth) and (smooth + white).parts == (smooth, white)


@pytest.mark.parametrize("missing", ["parameters", "_with", "__call__", "diagonal", "value_and_vjp", "diagonal_vjp"])
def test_a_kernel_that_lacks_a_method_is_refused_by_name(missing):
    part = type("Part", (Kernel,), {name: method for name, method in vars(White).items() if name != missing})
    with pytest.raises(TypeError, match=missing):
        part()


@pytest.mark.parametrize(("parts", "message"), [((), "has no parts"), ((SquaredExponential(), 3.0), "is 3.0, expected a kernel")])
def test_what_is_no_kernel_is_no_part_of_a_sum(parts, message):
    with pytest.raises(ValueError, match=message):
        Sum(parts)



@pytest.mark.parametrize("kernel", [SquaredExponential(1.0, 10.0), Matern52(1.0, 10.0)], ids=lambda k: type(k).__name__)
def test_inputs_millions_of_lengthscales_apart_cost_no_digits(kernel):
    """Time stamps: what remains is the rounding of the inputs, 1e-8 in 1e8; products would be wrong by its square."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 1e8, (30, 1))
    X = np.concatenate([X, X + rng.normal(size=X.shape)])
    distance = np.abs(X - X.T)
    near = type(kernel)(1.0, 10.0)(np.zeros((1, 1)), distance.reshape(-1, 1)[distance.ravel() < 100]).ravel()
    np.testing.assert_allclose(kernel(X, X.copy())[distance < 100], near, rtol=1e-8)


def test_derivatives_where_inputs_are_thousands_of_lengthscales_apart():
    X = np.random.default_rng(4).normal(size=(12, 2)) + 1e4 * (np.arange(12)[:, None] // 6)
    dK = np.random.default_rng(5).normal(size=(12, 12))
    kernel = SquaredExponential(1.3, [0.7, 1.9])
    gradient, dX = kernel.vjp(X, X, dK)
    halves = [kernel.vjp(X[rows] - X[rows][0], X[rows] - X[rows][0], dK[rows, rows]) for rows in (slice(6), slice(6, 12))]
    np.testing.assert_allclose(gradient["lengthscales"], sum(g["lengthscales"] for g, _ in halves), rtol=1e-9)
    np.testing.assert_allclose(dX, np.concatenate([dx for _, dx in halves]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", [SquaredExponential(1.3, [0.7, 1.9]), Matern52(0.8, [1.1, 0.6])], ids=["se", "matern"])
def test_large_matrices_are_those_of_their_rows(kernel):
    """The Matérn is computed for a few rows at a time: 300 x 100 takes four parts."""
    rng = np.random.default_rng(6)
    X, X2, dK = rng.normal(size=(300, 2)), rng.normal(size=(100, 2)), rng.normal(size=(300, 100))
    one_by_one = np.vstack([kernel(x[None], X2) for x in X])
    np.testing.assert_allclose(kernel(X, X2), one_by_one, rtol=1e-12, atol=1e-14)
    K, vjp = kernel.value_and_vjp(X, X2)
    np.testing.assert_allclose(K, one_by_one, rtol=1e-12, atol=1e-14)
    gradient, dX, dX2 = vjp(dK, first=True, second=True)
    parts = [kernel.vjp(X[rows], X2, dK[rows]) for rows in np.array_split(np.arange(300), 10)]
    np.testing.assert_allclose(dX, np.vstack([part[1] for part in parts]), rtol=1e-9, atol=1e-11)
    for key, value in gradient.items():
        np.testing.assert_allclose(value, sum(part[0][key] for part in parts), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(dX2, kernel.vjp(X2, X, dK.T.copy())[1], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("family", [SquaredExponential, Matern52])
def test_one_lengthscale_in_an_array_has_a_gradient_of_one(family):
    rng = np.random.default_rng(7)
    X, X2, dK = rng.normal(size=(5, 3)), rng.normal(size=(4, 3)), rng.normal(size=(5, 4))
    expected, _ = family(1.3, 0.7).vjp(X, X2, dK)
    found, _ = family(1.3, [0.7]).vjp(X, X2, dK)
    assert found["lengthscales"].shape == (1,)
    assert found["lengthscales"][0] == pytest.approx(expected["lengthscales"], rel=1e-14)
    assert family(1.3, [0.7]).vjp(X[:, :1], X2[:, :1], dK)[0]["lengthscales"].shape == (1,)


@pytest.mark.parametrize("kernel", [SquaredExponential(), Matern52()], ids=lambda k: type(k).__name__)
def test_a_row_does_not_depend_on_the_rows_beside_it(kernel):
    """500 lengthscales away the product is wrong by 1e-10, and a row that is further away must not change its neighbours'."""
    rng = np.random.default_rng(8)
    X, X2 = rng.uniform(-500, 500, (40, 1)), np.linspace(-500, 500, 300)[:, None]
    far = np.array([[-5000.0], [5000.0]])
    together = kernel(np.concatenate([far[:1], X, far[1:]]), X2)
    np.testing.assert_allclose(together[1:-1], kernel(X, X2), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(together[[0, -1]], kernel(far, X2))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kernel", [SquaredExponential(), Matern52(), SquaredExponential() + Matern52()],
                         ids=["se", "matern", "sum"])
@pytest.mark.parametrize("distance", [1e155, 1e250])
def test_distances_whose_square_overflows_are_infinite_to_a_kernel(kernel, distance):
    X = np.array([[0.0], [distance], [-distance]])
    np.testing.assert_array_equal(kernel(X), kernel(X).diagonal()[0] * np.eye(3))
    gradient, dX = kernel.vjp(X, X, np.ones((3, 3)))
    assert all(np.isfinite(value) for value in gradient.values())
    np.testing.assert_array_equal(dX, 0.0)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda kernel: pickle.loads(pickle.dumps(kernel))])
def test_the_lengthscales_of_a_copy_cannot_be_changed_either(copied):
    other = copied(SquaredExponential(1.0, [1.0, 2.0]) + Matern52(1.0, [3.0, 4.0]))
    assert all(not kernel.lengthscales.flags.writeable for kernel in other.parts)
    assert other == SquaredExponential(1.0, [1.0, 2.0]) + Matern52(1.0, [3.0, 4.0])


@pytest.mark.parametrize("family", [SquaredExponential, Matern52])
def test_many_inputs_that_are_each_near_cost_no_digits_where_they_are_far_together(family):
    """784 coordinates below a thousand lengthscales: the square of the distance from the centre is what cancels."""
    rng = np.random.default_rng(0)
    Z = rng.choice([-990.0, 990.0], size=(50, 784))
    Z[1::2] = -Z[::2]
    X = Z + 0.02 * rng.normal(size=Z.shape)
    near = family(1.0, 1.0)(np.zeros((50, 784)) + (X - Z), np.zeros((1, 784)))[:, 0]
    np.testing.assert_allclose(np.diag(family(1.0, 1.0)(X, Z)), near, rtol=1e-12)
