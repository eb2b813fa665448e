"""The figures of the chapter on sparse classification: what they draw is true, and committed rows come out again."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from matplotlib.figure import Figure
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from figures.experiments import runner
from figures.experiments.book import sampling_truth
from figures.experiments.bui2017 import fig1, fig2, fig23, fig33
from pepcore import exact, power_ep
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Gaussian, Probit
from pepcore.sites import Sites, cavity

TESTS = Path(__file__).parents[1]


# bui_fig1: the map of methods -----------------------------------------------------------------------------------------

PLACES = [place for places in fig1.PANELS.values() for place in places]


@pytest.fixture(scope="module")
def method_map():
    return BeautifulSoup(fig1.html(), "html.parser")


def test_every_place_of_the_map_names_tests_that_exist():
    for place in PLACES:
        assert place.tests, place.label
        for test in place.tests:
            file, _, function = test.partition("::")
            tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
            assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test
    assert fig1.unproved() == 0


def test_a_place_without_its_test_is_counted(monkeypatch):
    lost = replace(PLACES[0], tests=(*PLACES[0].tests, "package/test_exact.py::test_that_is_not_there"))
    monkeypatch.setattr(fig1, "PANELS", {"Regression": (lost, PLACES[1])})
    assert fig1.unproved() == 1


@pytest.mark.book
def test_every_link_of_the_map_leads_to_a_section_of_the_book(site):
    for place in PLACES:
        for address in filter(None, (place.section, place.identity)):
            page, _, anchor = address.partition("#")
            html = BeautifulSoup((site / "chapters" / page).read_text(encoding="utf-8"), "html.parser")
            target = html.find(id=anchor)
            assert target is not None and target.find_parent("article"), address


def test_every_place_is_a_link_in_the_drawing_and_in_the_list(method_map):
    drawn = [link["href"] for link in method_map.select("svg a[href]")]
    listed = [entry.find("a")["href"] for entry in method_map.select("li")]
    assert drawn == listed == [place.section for place in PLACES]
    assert all(test.partition("::")[2] in method_map.find("details").get_text() for place in PLACES for test in place.tests)


def test_the_map_can_be_read_without_seeing_it(method_map):
    for drawing in method_map.select("svg"):
        parts = drawing["aria-labelledby"].split()
        assert [method_map.find(id=part).name for part in parts] == ["title", "desc"]
        for link in drawing.select("a"):
            assert link.find("title").get_text() in link["aria-label"]
    names = [link["aria-label"] for link in method_map.select("svg a")]
    assert len(names) == len(set(names))


def test_the_map_keeps_the_colours_of_alpha_and_leaves_text_to_the_page(method_map):
    assert {text.get("fill") for text in method_map.select("svg text")} == {None}
    stops = [stop["stop-color"] for stop in method_map.select("linearGradient stop, lineargradient stop")]
    assert stops[0] == stops[5] == fig1.style.colours["vfe"]
    assert stops[4] == stops[9] == fig1.style.colours["ep"]


# bui_fig2: the surrogate regression -----------------------------------------------------------------------------------

@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("M", [3, 6])
def test_the_surrogate_has_the_posterior_and_the_evidence_of_power_ep(alpha, M):
    """The data of :eq:`sc-surrogate`."""
    fit = fig2.example(alpha, M)
    data = fig2.surrogate(fit)
    answer = fig2.exact_inference(fit.posterior.basis, data)
    mean, covariance = fit.posterior.hensman()
    assert answer.log_evidence == pytest.approx(fit.log_evidence, rel=1e-10)
    np.testing.assert_allclose(answer.mean, mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(answer.covariance, covariance, rtol=0, atol=1e-9)
    np.testing.assert_allclose(fig2.predict(fit.posterior.basis, answer, fig2.GRID), fit.predict_f(fig2.GRID),
                               rtol=0, atol=1e-9)


def test_nothing_is_left_between_the_surrogate_and_power_ep():
    assert fig2.largest_difference() < 1e-10


def test_the_surrogate_evidence_is_a_gaussian_density():
    """The scale that fits the evidence is no fudge on top: the density is evaluated independently.

    In closed form it is :eq:`sc-surrogate-evidence`.
    """
    fit = fig2.example(0.5)
    data, K = fig2.surrogate(fit), fit.posterior.basis.kernel(fit.posterior.basis.Z)
    marginal = data.W @ K @ data.W.T + np.diag(data.noise)
    density = multivariate_normal(np.zeros(len(K)), marginal).logpdf(data.targets)
    assert density == pytest.approx(fit.log_evidence, abs=1e-4)     # K without the jitter


def test_each_surrogate_number_speaks_of_one_pseudo_input():
    W = fig2.surrogate(fig2.example(0.5)).W
    np.testing.assert_array_equal(np.abs(W).argmax(axis=1), np.arange(len(W)))
    assert (np.abs(np.diag(W)) > 0.9 * np.linalg.norm(W, axis=1)).all()


def test_the_frame_of_the_surrogate_shows_what_its_text_says():
    fig = Figure(figsize=(7, 5.6), layout="constrained")
    fig2.draw(fig, 0.5, -29.21)
    titles = [ax.get_title() for ax in fig.axes]
    text = fig2.describe(0.5, -29.21)
    assert "−29.21" in titles[2] and "−29.21" in text
    evidence = f"{fig2.example(0.5).log_evidence:.2f}".replace("-", "−")
    assert evidence in titles[3] and evidence in text
    dots, errors = (fig2.surrogate(fig2.example(0.5))[i] for i in (1, 2))
    assert len(dots) == len(errors) == len(fig.axes[1].lines[-1].get_xdata())


# sampling_truth: the true posterior -----------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def gaussian_problem():
    """Ten observations with Gaussian noise, whose posterior and evidence are known exactly."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 1))
    y = np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=10)
    kernel = SquaredExponential(2.0, 0.7)
    likelihood = Gaussian(0.3)
    return kernel, X, y, lambda f: likelihood.log_density(y, f).sum(axis=1), exact.regression(kernel, X, y, noise=0.3)


def test_elliptical_slice_sampling_finds_the_exact_posterior(gaussian_problem):
    kernel, X, _, log_likelihood, fit = gaussian_problem
    root = np.linalg.cholesky(kernel(X) + 1e-8 * np.eye(10))
    rng = np.random.default_rng(1)
    f, states = np.zeros((400, 10)), []
    for move in range(300):
        f = sampling_truth.elliptical_slice(f, log_likelihood, root, rng)
        if move >= 100:
            states.append(f)
    chains = np.mean(states, axis=0)        # independent of each other, whatever the moves within a chain
    mean, variance = fit.predict_f(X)
    error = chains.std(axis=0, ddof=1) / np.sqrt(len(chains))
    assert (np.abs(chains.mean(axis=0) - mean) < 4 * error).all()
    assert (error < 0.03 * np.sqrt(variance)).all()
    np.testing.assert_allclose(np.var(states, axis=(0, 1)), variance, rtol=0.06)


@pytest.mark.parametrize("informed", [False, True])
def test_annealing_finds_the_exact_evidence_from_any_base(gaussian_problem, informed):
    kernel, X, y, log_likelihood, fit = gaussian_problem
    # half of each site, so that something is left to anneal
    sites = Sites(0.5 * fit.sites.tau, 0.5 * fit.sites.nu) if informed else Sites.flat(len(y))
    base = sampling_truth.Base.build(kernel, X, sites)
    log_evidence, log_weights, _ = sampling_truth.sample(log_likelihood, base, np.random.default_rng(2), 300, 200, 0)
    weights = np.exp(log_weights - log_weights.max())
    error = weights.std() / weights.mean() / np.sqrt(len(weights))
    assert error < 0.05
    assert log_evidence == pytest.approx(fit.log_evidence, abs=4 * error)


def test_rows_of_the_sampling_study_come_out_again():
    """Another processor may take another turn in a chain, so the rows agree as batches do."""
    results = runner.results("sampling_truth")
    again = sampling_truth.compute("line", "sites", 0)
    known = sampling_truth.truth(results, "line")
    batch_error = known.log_evidence_error * np.sqrt(sampling_truth.BATCHES)
    assert again["log_evidence"] == pytest.approx(known.log_evidence, abs=5 * batch_error)
    p = np.array([again[f"p{i}"] for i in range(sampling_truth.POINTS)])
    assert np.abs(p - known.p).max() < 0.01


def test_the_truth_does_not_depend_on_where_annealing_starts():
    results = runner.results("sampling_truth")
    informed, ignorant = (sampling_truth.truth(results, "line", base) for base in ("sites", "prior"))
    error = np.hypot(informed.log_evidence_error, ignorant.log_evidence_error)
    assert abs(informed.log_evidence - ignorant.log_evidence) < 3 * error < 0.06
    assert np.abs(informed.p - ignorant.p).max() < 4 * ignorant.p_error.max()


def test_without_sparsity_the_evidence_is_below_the_truth_and_nearer_to_it_the_larger_alpha():
    results = runner.results("sampling_truth")
    for problem in sampling_truth.PROBLEMS:
        table = sampling_truth.compare(results, problem, sizes=())
        error = sampling_truth.truth(results, problem).log_evidence_error
        assert (np.diff(table["evidence"]) > 0).all()
        assert table["evidence"].max() < -3 * error



# bui_fig23: where pseudo-inputs go ------------------------------------------------------------------------------------

def test_distance_to_the_boundary():
    on_it = np.array([[0.0, -1.0], [1.5, 1.25]])
    np.testing.assert_allclose(fig23.distance(on_it), 0, atol=1e-3)
    # from a point on the axis above the vertex's centre of curvature the nearest points are (±√(y + ½), y − ½)
    np.testing.assert_allclose(fig23.distance(np.array([[0.0, 1.0], [0.0, -3.0]])), [np.sqrt(1.75), 2.0], atol=1e-3)
    banana = fig23.generators.banana(0, N=5)
    assert banana.truth["function"](np.array([[1.5, 1.25]])) == pytest.approx(0)


def test_fraction_outside_the_hull():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert fig23.outside(np.array([[0.5, 0.5], [2.0, 0.0], [0.1, 0.9], [-1.0, -1.0]]), X) == 0.5


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_what_wants_residual_is_the_sign_of_the_gradient(alpha):
    """The derivative in one h is that of the log evidence, the features held still."""
    X, y = fig23.load(0)
    X, y = X[:40], y[:40]
    fit = power_ep.infer(SquaredExponential(9.0, 1.0), X[:5], X, y, Probit(), alpha=alpha, tolerance=1e-11)
    wants = fig23.wants_residual(fit, X, y)
    assert wants.shape == (40,) and wants.any() == (alpha > 0)
    mean, variance = fit.predict_f(X)
    _, h = fit.posterior.basis.features(X)
    cavity_mean, cavity_variance = cavity(mean, variance - h, fit.sites, alpha)
    up, down = (fit.likelihood.log_moment(y, cavity_mean, cavity_variance + h + step, alpha)[0] for step in (1e-4, -1e-4))
    np.testing.assert_array_equal(wants, up > down)


def test_evidence_of_the_other_model_against_the_integral():
    """With one pseudo-input the evidence is one integral."""
    X, y = (part[:12] for part in fig23.load(0))
    fit = power_ep.infer(SquaredExponential(4.0, 1.0), X[:1], X, y, Probit(), alpha=1.0)
    A, h = fit.posterior.basis.features(X)
    truth = quad(lambda v: norm.pdf(v) * norm.cdf(y * A[0] * v / np.sqrt(1 + h)).prod(), -9, 9, epsabs=1e-14)[0]
    log_evidence, error = fig23.other_model(fit, X, y)
    assert error < 0.01
    assert log_evidence == pytest.approx(np.log(truth), abs=4 * error)


def test_ep_has_the_evidence_of_the_other_model():
    """What exceeds the full GP's evidence at α = 1 is no error of EP: it is the evidence of the model with label noise."""
    fit, _, row = fig23.placement(runner.results("bui_fig23"), 1.0)
    log_evidence, error = fig23.other_model(fit, *fig23.load(0))
    assert error < 0.01
    assert abs(log_evidence - fit.log_evidence) < 0.1 < 5 < fit.log_evidence - row["full_log_evidence"]


@pytest.mark.parametrize(("data", "alpha"), [(0, 0.0), (0, 1.0)])
def test_a_row_of_the_placement_study_is_the_model_that_it_says(data, alpha):
    """The stored pseudo-inputs and kernel have the stored evidence, and moving the pseudo-inputs lowers it."""
    fit, Z, row = fig23.placement(runner.results("bui_fig23"), alpha, data)
    assert row["converged"]
    assert fit.log_evidence == pytest.approx(row["log_evidence"], rel=1e-6)
    assert fig23.distance(Z).mean() == pytest.approx(row["distance"], rel=1e-9)
    moved = Z + 0.1 * np.random.default_rng(0).standard_normal(Z.shape)
    there = power_ep.infer(fit.posterior.basis.kernel, moved, *fig23.load(data), Probit(), alpha=alpha)
    assert there.log_evidence < fit.log_evidence


def test_a_given_kernel_is_trained_to_the_committed_row():
    results = runner.results("bui_fig23")
    inputs = {"data": 1, "kernel": "given", "alpha": 1.0}
    (row,) = results[(results[list(inputs)] == pd.Series(inputs)).all(axis=1)].to_dict("records")
    again = fig23.compute(**inputs)
    assert again["log_evidence"] == pytest.approx(row["log_evidence"], rel=0.01)
    assert again["full_log_evidence"] == pytest.approx(row["full_log_evidence"], rel=1e-4)


def test_numbers_of_the_placement_claim_are_geometric_means(monkeypatch):
    rows = [{"data": data, "kernel": "learnt", "alpha": alpha, "distance": 3 * factor, "data_distance": 3.0}
            for data, near, far in [(0, 0.5, 2.0), (1, 0.5, 8.0)] for alpha, factor in [(0.0, near), (1.0, far)]]
    monkeypatch.setattr(runner, "results", lambda study: pd.DataFrame(rows))
    assert fig23.distance_ratio(0.0) == pytest.approx((0.5, 0.5, 0.5))
    # two logarithms, log 2 and log 8: mean log 4, standard error log 2, Student's factor for one degree of freedom 12.706
    half = 2.0 ** 12.706205
    assert fig23.distance_ratio(1.0) == pytest.approx((4, 4 / half, 4 * half))
    assert fig23.distance_growth()[0] == pytest.approx(8)


def test_pictures_of_the_placement_agree_with_their_words():
    results = runner.results("bui_fig23")
    fig = Figure(figsize=(5, 5), layout="constrained")
    fig23.draw_placement(fig, results, 1.0)
    _, Z, row = fig23.placement(results, 1.0)
    shown = next(line for line in fig.axes[0].lines if line.get_marker() == "^")
    arrows = [child for child in fig.axes[0].texts if child.arrow_patch is not None]
    assert len(shown.get_xdata()) + len(arrows) == len(Z)
    assert f"{row['distance']:.2f}" in fig.axes[0].get_title()
    assert f"{row['distance']:.2f}" in fig23.describe_placement(results, 1.0)


# bui_fig33: sparse EP with the pseudo-inputs at the data --------------------------------------------------------------

@pytest.mark.parametrize(("alpha", "log_lengthscale", "log_amplitude"), [(1.0, 2.0, 1.0), (1.0, 5.0, 5.0), (0.75, 3.0, 2.0)])
def test_cells_of_the_ionosphere_grid_come_out_again(alpha, log_lengthscale, log_amplitude):
    inputs = {"alpha": alpha, "log_lengthscale": log_lengthscale, "log_amplitude": log_amplitude}
    results = runner.results("bui_fig33")
    (row,) = results[(results[list(inputs)] == pd.Series(inputs)).all(axis=1)].to_dict("records")
    again = fig33.compute(**inputs)
    assert again["converged"] == row["converged"]
    for name in ("log_evidence", "nll", "standard_log_evidence", "standard_nll"):
        assert again[name] == pytest.approx(row[name], rel=1e-5)


def test_sparse_ep_at_the_data_is_standard_ep_on_the_whole_grid():
    apart = fig33.differences(runner.results("bui_fig33"))
    assert apart.loc[1.0, "cells"] == len(fig33.LOG_LENGTHSCALES) * len(fig33.LOG_AMPLITUDES)
    assert fig33.largest_difference() == max(apart.loc[1.0, "log_evidence"], apart.loc[1.0, "nll"])
    assert fig33.largest_difference() < 1e-6


def test_what_did_not_converge_is_neither_drawn_nor_chosen():
    rows = [{"alpha": 1.0, "log_lengthscale": 0.0, "log_amplitude": amplitude, "log_evidence": evidence, "nll": -evidence,
             "standard_log_evidence": 0.0, "standard_nll": 0.0, "p_apart": 0.0, "converged": converged}
            for amplitude, evidence, converged in [(0.0, -5.0, True), (1.0, -3.0, True), (2.0, -1.0, False)]]
    results = pd.DataFrame(rows)
    assert [cell["log_amplitude"] for cell in fig33.best(results, 1.0)] == [1.0, 1.0]
    np.testing.assert_array_equal(fig33.table(results, 1.0, "nll")[0.0], [5.0, 3.0, np.nan])
    assert fig33.differences(results).loc[1.0].tolist() == [5.0, 5.0, 0.0, 2]


def test_the_picture_of_the_grid_marks_the_best_cells():
    results = runner.results("bui_fig33")
    fig = Figure(figsize=(7, 4.4), layout="constrained")
    fig33.draw(fig, results, 1.0)
    by_evidence, by_loss = fig33.best(results, 1.0)
    marks = [(line.get_xdata()[0], line.get_ydata()[0]) for line in fig.axes[0].lines]
    assert marks == [(cell["log_lengthscale"], cell["log_amplitude"]) for cell in (by_evidence, by_loss)]
    assert f"{by_loss['nll']:.3f}" in fig33.describe(results, 1.0)


# all studies ----------------------------------------------------------------------------------------------------------

def test_the_studies_are_complete_and_without_failures():
    for study in ("bui_fig23", "bui_fig33", "sampling_truth"):
        results = runner.results(study)
        assert len(results) == len(runner.load(study).runs())
        assert np.isfinite(results.select_dtypes("number").to_numpy()).all()


@pytest.mark.parametrize("name", ["bui_fig23", "bui_fig33", "sampling_truth"])
def test_a_study_can_be_drawn_from_its_committed_rows(name):
    for draw, size in runner.load(name).module.FIGURES.values():
        fig = Figure(figsize=size, layout="constrained")
        draw(fig, runner.results(name))
        assert all(ax.has_data() for ax in fig.axes)
