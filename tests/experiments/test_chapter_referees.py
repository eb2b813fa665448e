"""What chapters take as a referee, or show as a picture, does what it says."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from figures.experiments import runner
from figures.experiments.book import races
from figures.experiments.bui2017 import energies, fig23
from figures.experiments.bui2017.block_ep import block_power_ep
from pepcore import power_ep
from pepcore.features import feature_map
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit


def problem(N=18, M=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return SquaredExponential(1.5, [0.8, 1.2]), X[:M] + 0.1, X, np.sin(X[:, 0]) + 0.2 * rng.normal(size=N)


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_iterated_block_power_ep_is_the_closed_form(alpha):
    kernel, Z, X, y = problem()
    features = feature_map(kernel, Z, X)
    blocks = np.array_split(np.arange(len(y)), 5)
    residual = kernel(X) - features.A.T @ features.A
    value, moved = block_power_ep(features.A, residual, y, 0.1, blocks, [alpha] * 5, sweeps=90)
    assert moved < 1e-9
    assert value == pytest.approx(power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=alpha, blocks=blocks).log_evidence)


def test_the_referees_of_the_energy_agree_with_a_converged_fit():
    kernel, Z, X, y = problem()
    labels = np.sign(y)
    for alpha in (0.4, 1.0):
        fit = power_ep.infer(kernel, Z, X, labels, Probit(), alpha=alpha, tolerance=1e-11)
        A, h = fit.posterior.basis.features(X)
        held = energies.with_numbers_held(A, h, labels, alpha, fit.sites.tau, fit.sites.nu)
        assert held == pytest.approx(fit.log_evidence, abs=1e-8)
    fit = power_ep.infer(kernel, Z, X, labels, Probit(), alpha=0.0, tolerance=1e-11)
    assert energies.best_bound(*fit.posterior.basis.features(X), labels) == pytest.approx(fit.log_evidence, abs=1e-5)


def test_every_pseudo_input_is_in_the_picture():
    """Triangles, and arrows with the numbers beside them, add up to M in each panel."""
    fig = Figure(figsize=(7, 3))
    fig23.draw_placements(fig, runner.results("bui_fig23"))
    for ax in fig.axes:
        shown = sum(len(line.get_xdata()) for line in ax.lines if line.get_marker() == "^")
        arrows = sum(getattr(text, "arrow_patch", None) is not None for text in ax.texts)
        more = sum(int(text.get_text()) - 1 for text in ax.texts if text.get_gid() == "left")
        assert shown + arrows + more == fig23.M


def test_pseudo_inputs_that_share_a_place_are_counted():
    places = np.array([[0.0, 0.0], [3.0, 0.0], [0.1, 0.0], [3.0, 0.2], [3.0, 0.1]])
    assert [(tuple(place), count) for place, count in fig23._stacks(places)] == [((0.0, 0.0), 2), ((3.0, 0.0), 3)]


def test_the_race_has_five_problems_of_25_pseudo_inputs():
    found = list(races.problems())
    assert len({name for name, *_ in found}) == 5
    for _, _, Z, X, y in found:
        assert Z.shape == (25, X.shape[1])
        assert set(y) == {-1.0, 1.0}
    assert [name for name, *_ in races.problems(3)] == [name for name, *_ in found[:3]]
