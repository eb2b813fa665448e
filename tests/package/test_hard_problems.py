"""Two hundred problems that should hurt: inference ends, tells no NaN, and says truly whether it has converged."""

import warnings

import numpy as np
import pytest

from pepcore import power_ep
from pepcore.kernels import Matern52, SquaredExponential
from pepcore.likelihoods import Logit, Poisson, Probit, StudentT

KINDS = ["badly scaled", "imbalanced", "separable", "duplicated rows", "M > N", "huge variance", "tiny lengthscales", "outliers"]
TOLERANCE = 1e-6
PER_KIND = 25


def problem(kind, seed):
    """kernel, Z, X, y, likelihood, alpha of one problem."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    N, D, M = int(rng.integers(20, 120)), int(rng.integers(1, 4)), int(rng.integers(2, 15))
    X, scale = rng.normal(size=(N, D)), np.ones(D)
    variance, lengthscales = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-0.5, 0.5, D)
    likelihood = [Probit(), Logit(), Poisson(), StudentT(rng.uniform(1, 6), 10 ** rng.uniform(-2, 0))][seed % 4]
    f = np.sqrt(variance) * np.sin(2 * X @ rng.normal(size=D))
    if kind == "badly scaled":
        scale = 10 ** rng.uniform(-6, 6, D)
        X = X * scale + 1e3 * scale * rng.normal(size=D)
    if kind == "imbalanced":
        N, likelihood = 201, [Probit(), Logit()][seed % 2]
        X, f = rng.normal(size=(N, D)), np.where(np.arange(N) == 0, 50.0, -50.0)
    if kind == "separable":
        likelihood, variance = [Probit(), Logit()][seed % 2], 100.0
        f = 50 * (np.sign(X[:, 0]) + X[:, 0])
    if kind == "duplicated rows":
        X = X[rng.integers(0, 4, N)]
        f = np.sqrt(variance) * rng.normal(size=N)
    if kind == "M > N":
        M = 2 * N
    if kind == "huge variance":
        variance = 1e4
    if kind == "tiny lengthscales":
        lengthscales = np.full(D, 1e-3)
    if isinstance(likelihood, StudentT):
        y = f + likelihood.scale * rng.standard_t(likelihood.degrees, N)
        y += (kind == "outliers") * 30 * rng.normal(size=N) * (rng.random(N) < 0.3)
    elif isinstance(likelihood, Poisson):
        y = rng.poisson(np.exp(np.clip(f, -20, 8))).astype(float)
    else:
        y = np.where(f + 0.1 * rng.normal(size=N) > 0, 1.0, -1.0)
    Z = X[rng.integers(0, N, M)] + 1e-3 * scale * rng.normal(size=(M, D))
    kernel = [SquaredExponential, Matern52][seed % 2](variance, lengthscales * scale)
    return kernel, Z, X, y, likelihood, [0.0, 0.01, 0.5, 1.0][int(rng.integers(4))]


@pytest.mark.parametrize("schedule", ["parallel", "alternating"])
@pytest.mark.parametrize("kind", KINDS)
def test_ends_without_nan_and_tells_truly(kind, schedule):
    converged = 0
    for seed in range(PER_KIND):
        kernel, Z, X, y, likelihood, alpha = problem(kind, seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit = power_ep.infer(kernel, Z, X, y, likelihood, alpha=alpha, schedule=schedule, tolerance=TOLERANCE, max_sweeps=400)
        label = f"{kind}, {seed}: {likelihood}, alpha = {alpha}"
        mean, variance = fit.predict_f(X)
        numbers = [fit.log_evidence, mean, variance, fit.sites.tau, fit.sites.nu, *map(np.ravel, fit.gradient.values())]
        assert all(np.isfinite(x).all() for x in numbers), label
        assert (variance > 0).all(), label
        assert fit.sweeps <= 400, label
        warned = any("not converged" in str(w.message) for w in caught)
        assert [str(w.message) for w in caught if "not converged" not in str(w.message)] == [], label
        assert warned != fit.converged, label
        if fit.converged:
            converged += 1
            assert further_move(fit, kernel, Z, X, y) <= TOLERANCE, label
    print(f"{kind}, {schedule}: {converged} of {PER_KIND} converged")
    assert converged >= 0.8 * PER_KIND


def further_move(fit, kernel, Z, X, y):
    """By how much the next full sweep would move the sites or the evidence: computed anew, from the sites alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one sweep is not enough to converge from elsewhere
        more = power_ep.infer(kernel, Z, X, y, fit.likelihood, alpha=fit.alpha, sites=fit.sites, max_sweeps=1)
    before, after = more.history[0], more.history[-1]
    moved = abs(after["log_evidence"] - fit.log_evidence) / max(1.0, abs(fit.log_evidence))
    return max(before["change"], moved)
