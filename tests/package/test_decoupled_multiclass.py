"""Robust-max classification with decoupled bases: moments, gradients, natural steps, learning, against other software."""

from dataclasses import replace

import numpy as np
import pytest
from problems import three_classes
from test_decoupled import close, differences, somewhere

from pepcore import SquaredExponential, decoupled
from pepcore.decoupled import DecoupledPosterior
from pepcore.decoupled.bases import Bases, Process
from pepcore.decoupled.bound import bound
from pepcore.decoupled.natural import coupled_step
from pepcore.decoupled.parametrisations import Decoupled, Hybrid, Orthogonal
from pepcore.multiclass import RobustMax
from pepcore.posterior import Posteriors
from tests.conftest import reference

C = 3


def problem(N=10):
    data = three_classes(0, 200)
    rng = np.random.default_rng(0)
    return data.X[:N], data.y[:N].astype(int), rng.normal(size=(5, 2)), rng.normal(size=(7, 2))


def test_moments_are_those_of_many_draws():
    """Four standard errors of the mean of 400 000 draws, at fixed seeds."""
    rng = np.random.default_rng(1)
    mean, variance, y = rng.normal(size=(C, 4)), rng.uniform(0.2, 2, (C, 4)), np.array([0, 1, 2, 1])
    f = mean + np.sqrt(variance) * rng.standard_normal((400_000, C, 4))
    likelihood = RobustMax(C, 0.02)
    right = f.argmax(axis=1) == y
    log_p = np.where(right, np.log(0.98), np.log(0.01))
    l, _, _ = likelihood.log_moment(y, mean, variance, 0.0)
    assert np.all(np.abs(l - log_p.mean(axis=0)) < 4 * log_p.std(axis=0) / np.sqrt(len(f)))
    predicted = likelihood.predict(mean.T, variance.T)
    assert np.allclose(predicted.sum(axis=1), 1.0, rtol=0, atol=1e-8)
    own = np.where(right, 0.98, 0.01)
    assert np.all(np.abs(predicted[range(4), y] - own.mean(axis=0)) < 4 * own.std(axis=0) / np.sqrt(len(f)))
    assert np.allclose(likelihood.log_predictive(y, mean.T, variance.T), np.log(predicted[range(4), y]), rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", [Hybrid, Orthogonal, Decoupled])
@pytest.mark.parametrize("columns", [None, np.array([0, 3])], ids=["exact", "sampled"])
def test_gradients_agree_with_central_differences(kind, columns):
    X, y, beta, gamma = problem()
    kernel, likelihood = SquaredExponential(1.5, [0.9, 1.1]), RobustMax(C, 0.01)
    bases = Bases.build(kernel, beta, gamma)
    parameters = tuple(somewhere(kind, bases, seed, size=0.1) for seed in range(C))  # no diagonal of S_root near 0

    def value(kernel=kernel, beta=beta, gamma=gamma, parameters=parameters):
        return bound(Bases.build(kernel, beta, gamma), parameters, X, y, likelihood, weight=1.3, columns=columns).value

    gradient = bound(bases, parameters, X, y, likelihood, weight=1.3, columns=columns, hyper=True).gradient
    for name, old in vars(parameters[1]).items():
        change = lambda new, name=name: (parameters[0], replace(parameters[1], **{name: new}), parameters[2])
        slope = differences(lambda new, change=change: value(parameters=change(new)), old)
        assert close(gradient[name][1], np.tril(slope) if slope.ndim == 2 else slope, 1e-6), name
    for name, old in kernel.parameters.items():
        slope = differences(lambda new, name=name: value(kernel.with_parameters({name: new})), old)
        assert close(gradient[name], slope, 1e-6), name
    assert close(gradient["beta"], differences(lambda new: value(beta=new), beta), 1e-6)
    assert close(gradient["gamma"], differences(lambda new: value(gamma=new), gamma), 1e-6)


@pytest.mark.parametrize("setting", ["white", "unwhite"])
def test_without_gamma_bound_gradient_and_step_are_those_of_gpflow(setting):
    """Its 20 Gauss-Hermite nodes cannot follow the products of steps, so it is less exact than ours: 5e-7 in the bound."""
    data = reference("gpflow_svgp.npz")
    truth = {key.split("__")[1]: data[key] for key in data if key.startswith(f"robustmax_{setting}__")}
    bases = Bases.build(SquaredExponential(float(data["s2"]), data["ls"]), data["Z"], np.zeros((0, 2)), 1e-6 / float(data["s2"]))
    none, roots = np.zeros(0), [np.asfortranarray(root) for root in truth["q_sqrt"]]
    if setting == "white":
        pairs = zip(truth["q_mu"].T, roots, strict=True)
        parameters = tuple(Hybrid.from_process(bases, Process(mean, none, root)) for mean, root in pairs)
    else:
        parameters = tuple(Hybrid(none, mean, root) for mean, root in zip(truth["q_mu"].T, roots, strict=True))
    y, likelihood = data["y_multi"][:, 0].astype(int), RobustMax(C)
    now = bound(bases, parameters, data["X"], y, likelihood, hyper=True)
    assert now.value == pytest.approx(float(truth["elbo"]), rel=1e-6)
    if setting == "unwhite":  # here the fields held still are the same
        assert close(now.gradient["m_beta"].T, truth["d_qmu"], 1e-6)
        assert close(now.gradient["lengthscales"], truth["d_ls"], 1e-6)
        assert close(now.gradient["beta"], truth["d_Z"], 1e-6)
    parts = zip(now.process, now.data, strict=True)
    after = tuple(Hybrid.from_process(bases, coupled_step(bases, q, part, 0.1)) for q, part in parts)
    assert bound(bases, after, data["X"], y, likelihood).value == pytest.approx(float(truth["natgrad0.1_elbo"]), rel=1e-4)
    mean, variance = Posteriors(tuple(DecoupledPosterior(bases, process) for process in now.process)).predict(data["Xs"])
    assert close(mean, truth["mean_f"], 1e-8)
    assert close(variance, truth["var_f"], 1e-8)
    assert close(likelihood.predict(mean, variance), truth["p"], 2e-5)


@pytest.mark.parametrize(("basis", "natural"), [("coupled", True), ("orthogonal", True), ("hybrid", False), ("decoupled", False)])
def test_every_basis_learns_three_classes(basis, natural):
    X, y, _, _ = problem(200)
    gamma = None if basis == "coupled" else X[12:40]
    fit = decoupled.infer(SquaredExponential(5.0, [1.0, 1.0]), X[:12], gamma, X, y, RobustMax(C), basis=basis, natural=natural,
                          steps=150, step=0.1, rate=0.03, batch=100, columns=10, optimise=("kernel", "beta"))
    assert fit.log_evidence > fit.trace()[0] + 500
    probability = fit.predict_y(X)
    assert probability.shape == (200, C)
    assert np.mean(probability.argmax(axis=1) == y) > 0.85
    again = decoupled.infer(fit.bases.kernel, fit.bases.beta, None if gamma is None else fit.bases.gamma, X, y, RobustMax(C),
                            basis=basis, natural=natural, steps=1, start=fit.parameters)
    assert again.trace()[0] == pytest.approx(fit.log_evidence, rel=1e-9)


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda: RobustMax(1), "at least 2"),
    (lambda: RobustMax(C, 1.0), r"in \[0, 1\)"),
    (lambda: RobustMax(C, noise=[0.1, 0.2]), r"noise has shape \(2,\), expected one number or shape \(3,\)"),
    (lambda: RobustMax(C, noise=-0.1), r"noise = -0\.1 must be at least 0"),
])
def test_wrong_parameters_of_robust_max_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


@pytest.mark.parametrize(("change", "likelihood", "options", "message"), [
    (5, RobustMax(C), {}, "the labels of 3 classes"),
    (0, RobustMax(C), {"start": Orthogonal(np.zeros(7), np.zeros(5), np.eye(5))}, "tuple of 3"),
    (0, RobustMax(C, 0.0), {}, "alpha = 0 needs epsilon > 0"),
])
def test_what_cannot_be_learnt_from_says_what_to_do(change, likelihood, options, message):
    X, y, beta, gamma = problem()
    with pytest.raises(ValueError, match=message):
        decoupled.infer(SquaredExponential(1.0, [1.0, 1.0]), beta, gamma, X, y + change, likelihood, **options)


@pytest.mark.parametrize(("labels", "hint"), [([1, 2, 3], "right with y - 1"), ([0, 1, -1], "number the classes from 0"),
                                              ([0, 1, 0.5], "number the classes from 0")])
def test_wrong_class_labels_say_how_to_number_them(labels, hint):
    with pytest.raises(ValueError, match=hint):
        RobustMax(3).validate(labels)


def test_the_covariances_of_several_latent_functions_are_those_of_each():
    X, y, beta, gamma = problem(30)
    posterior = decoupled.infer(SquaredExponential(1.5, [0.9, 1.1]), beta, gamma, X, y, RobustMax(C), steps=1).posterior
    mean, covariance = posterior.predict_full(X)
    assert mean.shape == (30, C) and covariance.shape == (30, 30, C)
    for c in range(C):
        assert np.array_equal(mean[:, c], posterior[c].predict_full(X)[0])
        assert np.array_equal(covariance[:, :, c], posterior[c].predict_full(X)[1])
        assert mean[:, c] == pytest.approx(posterior.predict(X)[0][:, c], rel=1e-12)
        assert np.diag(covariance[:, :, c]) == pytest.approx(posterior.predict(X)[1][:, c], rel=1e-9)


def test_a_likelihood_without_parameters_may_be_named_among_what_is_learnt():
    X, y, beta, gamma = problem(30)
    options = {"steps": 3, "columns": 3, "batch": 10}
    kernel, likelihood = SquaredExponential(1.5, [0.9, 1.1]), RobustMax(C)
    named, unnamed = (
        decoupled.infer(kernel, beta, gamma, X, y, likelihood, optimise=learn, **options)
        for learn in (("kernel", "likelihood"), ("kernel",))
    )
    assert named.log_evidence == unnamed.log_evidence
    with pytest.raises(ValueError, match="none to learn"):
        likelihood.with_parameters({"epsilon": 0.1})
