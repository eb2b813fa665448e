"""The drawings and measurements of the chapter on orthogonal natural gradients."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from figures.experiments.salimbeni2018 import claims, conditioning, fig1, small_problem
from pepcore.decoupled.bases import Bases
from pepcore.decoupled.bound import bound
from pepcore.decoupled.parametrisations import Hybrid, Orthogonal, OrthogonalWeights
from pepcore.likelihoods import Gaussian

NOISE = small_problem.NOISE


@pytest.fixture(scope="module")
def toy():
    X, y = small_problem.data()
    return X, y, *small_problem.points(X, 6, 5)


def test_every_arrow_joins_two_boxes_and_all_pairs_are_joined():
    pairs = {(start, end) for start, end, *_ in fig1.ARROWS}
    assert pairs == {(one, other) for one in fig1.BOXES for other in fig1.BOXES if one != other}
    fig = Figure(figsize=(7, 3.4))
    fig1.draw(fig)
    texts = [text.get_text() for text in fig.axes[0].texts]
    assert sum(any(heading in text for text in texts) for heading in fig1.BOXES) == 3


def loss_of_mean(where, kind, X, y):
    """The negative bound as a function of the parameters of the mean, in the order of `conditioning`."""
    start = kind.prior(where)
    beta_name = "a_beta" if kind is OrthogonalWeights else "m_beta"
    M = len(where.beta)

    def loss(point):
        parameters = kind(**{"a_gamma": point[M:], beta_name: point[:M], "S_root": start.S_root})
        return -bound(where, parameters, X, y, Gaussian(NOISE)).value

    return loss


@pytest.mark.parametrize(
    ("kind", "basis"), [(Orthogonal, "orthogonal"), (OrthogonalWeights, "orthogonal-weights"), (Hybrid, "hybrid")]
)
def test_hessians_are_those_of_the_bound(toy, kind, basis):
    """The loss is quadratic in the mean: second differences along random directions are exact but for rounding.

    In the orthogonal basis it is :eq:`og-hessian`.
    """
    X, y, beta, gamma = toy
    where = Bases.build(small_problem.KERNEL, beta, gamma, jitter=1e-6)
    H = conditioning.in_basis(conditioning.parts(small_problem.KERNEL, beta, gamma, X, NOISE), basis)
    loss, rng = loss_of_mean(where, kind, X, y), np.random.default_rng(0)
    for _ in range(5):
        place, direction = rng.normal(size=11), rng.normal(size=11)
        second = loss(place + direction) - 2 * loss(place) + loss(place - direction)
        assert second == pytest.approx(direction @ H @ direction, rel=1e-8)


def test_the_hessian_of_the_decoupled_basis_is_that_of_the_weights(toy):
    X, _, beta, gamma = toy
    kernel, alpha = small_problem.KERNEL, np.vstack([beta, gamma])
    H = conditioning.in_basis(conditioning.parts(kernel, beta, gamma, X, NOISE, jitter=1e-12), "decoupled")
    K = kernel(alpha, X)
    np.testing.assert_allclose(H, kernel(alpha) + K @ K.T / NOISE, rtol=1e-7, atol=1e-7)


def test_orthogonality_uncouples_the_divergence_and_not_the_loss(toy):
    X, _, beta, gamma = toy
    p = conditioning.parts(small_problem.KERNEL, beta, gamma, X, NOISE)
    assert conditioning.correlation(p, "orthogonal", likelihood=False) == 0
    assert 0.1 < conditioning.correlation(p, "orthogonal") < conditioning.correlation(p, "hybrid") <= 1 + 1e-9
    assert conditioning.correlation(p, "hybrid", likelihood=False) > 0.5


def test_descent_is_gradient_descent():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    H, gap = root @ root.T + np.eye(4), rng.normal(size=4)
    values = np.linalg.eigvalsh(H)
    point, losses = gap.copy(), []
    for _ in range(6):
        losses.append(0.5 * point @ H @ point)
        point = point - 2 / (values[0] + values[-1]) * H @ point
    np.testing.assert_allclose(conditioning.descent(H, gap, np.arange(6)), losses, rtol=1e-10)


@pytest.mark.parametrize(("share", "grows"), [(0.97, False), (1.03, True)])
def test_steps_longer_than_the_limit_diverge(toy, share, grows):
    X, y, beta, gamma = toy
    p = conditioning.parts(small_problem.KERNEL, beta, gamma, X, NOISE)
    inner = p.A.T @ p.A + NOISE * np.eye(len(X))
    g, step, sizes = np.zeros(5), share * conditioning.longest_step(p), []
    for _ in range(600):
        g = g + step * np.linalg.solve(p.R, p.B @ np.linalg.solve(inner, y - p.B.T @ g) - p.R @ g)
        sizes.append(np.abs(g).max())
    assert (sizes[-1] > 1e3 * sizes[100]) == grows
    assert np.isfinite(sizes[-1])


def test_a_rescaled_hessian_has_a_unit_diagonal():
    root = np.random.default_rng(0).normal(size=(4, 4))
    np.testing.assert_allclose(np.diag(conditioning.rescaled(root @ root.T)), 1)


def test_a_wrong_process_would_be_noticed(monkeypatch):
    """The measurements of the claims can fail: with another step, other parameters, a damaged Hessian they do."""
    real = claims.coupled_step
    monkeypatch.setattr(claims, "coupled_step", lambda bases, process, data, step: real(bases, process, data, 0.9 * step))
    assert claims.step_and_site_update(sweeps=2) > 1e-3
    monkeypatch.setattr(claims, "marginals", lambda bases, process, X: (np.zeros(len(X)), None))
    assert claims.coupled_part_beside_gamma(trials=1) > 1e-3
    best = claims.optimum
    monkeypatch.setattr(claims, "optimum", lambda bases, X, y, noise: best(bases, X, y, 1.1 * noise))
    assert claims.slope_at_the_optimum(trials=1) > 1e-4


def test_the_draw_that_the_chapter_shows_is_the_most_favourable_of_twenty():
    gains = []
    for seed in range(20):
        X, _ = small_problem.data(seed)
        p = conditioning.parts(small_problem.KERNEL, *small_problem.points(X, 10, 10, seed + 1), X, NOISE)
        hybrid, orthogonal = (np.linalg.cond(conditioning.rescaled(conditioning.in_basis(p, basis)))
                              for basis in ("hybrid", "orthogonal"))
        gains.append(hybrid / orthogonal)
    assert np.argmax(gains) == 0 and np.median(gains) == pytest.approx(18, abs=0.5)
