"""The surrogate regression, bui2017 figure 2 with numbers: a sparse classifier is exact inference from M invented data.

Call `example(alpha)` for a fit, `surrogate(fit)` for the invented data, `exact_inference(fit.posterior.basis, data)` for
what the exact GP makes of them, and `draw(fig, alpha, true_log_evidence)` with `describe(alpha, true_log_evidence)` as its
text: the paper's four panels, ready for a slider over alpha, and a second one over M = 3 ... 8. The true log evidence is
`sampling_truth.truth(runner.results("sampling_truth"), "line").log_evidence`.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.special import log_ndtr

from figures.drawing import style
from figures.experiments.book import sampling_truth
from pepcore import exact, power_ep
from pepcore.gaussian import inverse_lower
from pepcore.likelihoods import Probit

GRID = np.linspace(-4, 4, 161)[:, None]


class Surrogate(NamedTuple):
    """M observations targets = W u + noise of the pseudo-outputs u."""

    W: np.ndarray  # (M, M)
    targets: np.ndarray  # (M,)
    noise: np.ndarray  # (M,), variances


class Answer(NamedTuple):
    """What exact inference says."""

    log_evidence: float
    mean: np.ndarray  # (M,), of u
    covariance: np.ndarray  # (M, M)


def surrogate(fit):
    """The M observations whose exact posterior is that of `fit`, and whose exact evidence is its `log_evidence`.

    R = S⁻¹ − K_uu⁻¹ is what the sites add to the precision of u, and S⁻¹m to its product with the mean. Any W with
    WᵀW/c = R and Wᵀỹ/c = S⁻¹m will do; the symmetric root of R mixes neighbours least. The common noise c is then free,
    and log p(ỹ) falls by M/2 per unit of log c: it takes the value that gives the evidence.

    Source: bui2017 appendix H, corrected as in errata bui-2 and bui-3.
    """
    m, V = fit.posterior.whitened()
    L_inverse = inverse_lower(fit.posterior.basis.L)
    precision = np.linalg.inv(V)
    values, vectors = eigh(L_inverse.T @ (precision - np.eye(len(m))) @ L_inverse)
    root = vectors * np.sqrt(values) @ vectors.T
    W, targets = root, np.linalg.solve(root, L_inverse.T @ (precision @ m))
    unit = exact_inference(fit.posterior.basis, Surrogate(W, targets, np.ones(len(m)))).log_evidence
    log_c = 2 * (unit - fit.log_evidence) / len(m)
    scale = np.exp(0.5 * log_c)
    return Surrogate(scale * W, scale * targets, np.full(len(m), scale**2))


def exact_inference(basis, data):
    """Evidence and posterior of u ~ N(0, K_uu) after `data`, by the dense formulas of GP regression.

    Parameters
    ----------
    basis : Basis
    data : Surrogate

    Source: bui2017 eqs (147) and (148), corrected as in errata bui-2 and bui-3.
    """
    K = basis.L @ basis.L.T
    marginal = data.W @ K @ data.W.T + np.diag(data.noise)
    gain = np.linalg.solve(marginal, data.W @ K).T
    quadratic = data.targets @ np.linalg.solve(marginal, data.targets)
    log_evidence = -0.5 * (len(K) * np.log(2 * np.pi) + np.linalg.slogdet(marginal)[1] + quadratic)
    return Answer(float(log_evidence), gain @ data.targets, K - gain @ data.W @ K)


def largest_difference():
    """The largest difference in evidence, and in mean and covariance of u, over α = 0, ½, 1 and M = 3 ... 8."""
    differences = []
    for fit in (example(alpha, M) for alpha in (0.0, 0.5, 1.0) for M in range(3, 9)):
        answer = exact_inference(fit.posterior.basis, surrogate(fit))
        pairs = zip(answer, (fit.log_evidence, *fit.posterior.hensman()))
        differences += [np.max(np.abs(ours - theirs)) for ours, theirs in pairs]
    return float(max(differences))


def predict(basis, answer, Xs):
    """Mean (S,) and variance (S,) of f at Xs from the posterior of u, as in any GP with inducing outputs."""
    weights = np.linalg.solve(basis.L @ basis.L.T, basis.kernel(basis.Z, Xs))
    removed = (weights * basis.kernel(basis.Z, Xs)).sum(axis=0)
    return weights.T @ answer.mean, basis.kernel.diagonal(Xs) - removed + (weights * (answer.covariance @ weights)).sum(axis=0)


@cache
def example(alpha, M=6):
    """Power EP on the 60 labels of `sampling_truth.load("line")` with M evenly spaced pseudo-inputs, not learnt."""
    kernel, X, y, _ = sampling_truth.load("line")
    return power_ep.infer(kernel, np.linspace(-2.7, 2.7, M)[:, None], X, y, Probit(), alpha=alpha)


@cache
def sampled():
    """Mean and variance (S,) on GRID of the true posterior, from 200 chains of elliptical slice sampling."""
    kernel, X, y, _ = sampling_truth.load("line")
    base = sampling_truth.Base.build(kernel, X, exact.infer(kernel, X, y, Probit()).sites)
    _, _, states = sampling_truth.sample(lambda f: log_ndtr(y * f).sum(axis=1), base, np.random.default_rng(0),
                                         chains=200, temperatures=20, moves=50)
    weights, variance = sampling_truth.conditional(kernel, X, GRID, base.prior_root)
    means = np.concatenate([f @ weights for f in states])
    return means.mean(axis=0), means.var(axis=0) + variance


def draw(fig, alpha, true_log_evidence, M=6):
    """Four panels: model and surrogate above, their posteriors below (bui2017 figure 2).

    Parameters
    ----------
    fig : empty figure, 7 x 5.6 inches
    alpha, M : as in `example`
    true_log_evidence : float, `sampling_truth.truth(results, "line").log_evidence`
    """
    fit = example(alpha, M)
    kernel, X, y, _ = sampling_truth.load("line")
    basis, data = fit.posterior.basis, surrogate(fit)
    answer = exact_inference(basis, data)
    x = GRID[:, 0]
    panels = fig.subplots(2, 2, sharex=True, sharey=True)
    (model, invented), (true, approximate) = panels
    for ax in panels[0]:
        style.band(ax, x, np.zeros(len(x)), np.full(len(x), kernel.variance), style.colours["prior"], lw=1)
    for label, name in ((1, "positive"), (-1, "negative")):
        marked = X[y == label, 0]
        model.plot(marked, np.full(len(marked), 6.0 * label), "|", ms=12, mew=1.5, color=style.colours[name])
    length = np.linalg.norm(data.W, axis=1)     # a row of unit length is nearly the value at one pseudo-input
    invented.errorbar(basis.Z[:, 0], data.targets / length, 2 * np.sqrt(data.noise) / length, fmt="o", ms=7, lw=2.5,
                      color=style.colours["pseudo"])
    style.band(true, x, *sampled(), style.colours["exact"])
    style.band(approximate, x, *fit.predict_f(GRID), style.alpha_colour(alpha), lw=5)
    mean, variance = predict(basis, answer, GRID)
    for line in (mean, mean - 2 * np.sqrt(variance), mean + 2 * np.sqrt(variance)):
        approximate.plot(x, line, "--", color=style.INK, lw=1.2)
    titles = (f"the model: {len(y)} labels", f"the surrogate: {M} numbers", f"true, log Z = {_number(true_log_evidence)}",
              f"α = {alpha:.2f}, log Z = {_number(answer.log_evidence)}")
    for ax, title in zip(panels.flat, titles):
        ax.set_title(title)
    model.set(xlim=(-4, 4), ylim=(-7.5, 7.5), ylabel="latent f", yticks=(-5, 0, 5))
    true.set(ylabel="latent f", xlabel="x")
    approximate.set(xlabel="x")


def describe(alpha, true_log_evidence, M=6):
    """The frame in words and numbers."""
    fit = example(alpha, M)
    apart = np.abs(fit.predict_f(GRID)[0] - sampled()[0]).max()
    return (f"α = {alpha:.2f}, M = {M}. Above, 60 labels on a line, and the {M} numbers with error bars that stand for them. "
            f"Below, the sampled posterior, log evidence {_number(true_log_evidence)}, and that of Power EP, log evidence "
            f"{_number(fit.log_evidence)}, on which the exact answer to the {M} numbers lies as dashed lines. The two means "
            f"are at most {apart:.1f} apart.")


def _number(value):
    return f"{value:.2f}".replace("-", "−")
