"""Remarks 2 to 6 of bui2017: which methods Power EP contains, as differences on one random problem.

Each function returns the largest relative difference of log evidence and of predictive means and variances. One side
comes from `pepcore`, the other from dense matrices of all the data; `one_pass` compares the sites after one and two passes.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from pepcore import power_ep
from pepcore.features import feature_map
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Gaussian
from pepcore.sites import Sites, cavity, target

NOISE, JITTER, BLOCKS, POWERS = 0.1, 1e-10, 5, (0.0, 0.05, 0.5, 1.0)


class Problem(NamedTuple):
    """Data, pseudo-inputs, test inputs, blocks of the data, and the dense prior covariances."""

    kernel: object
    X: np.ndarray       # (N, D)
    y: np.ndarray       # (N,)
    Z: np.ndarray       # (M, D)
    Xs: np.ndarray      # (S, D)
    blocks: list        # index arrays that partition range(N)
    K: np.ndarray       # (N, N) prior covariance
    Q: np.ndarray       # (N, N) its part that the pseudo-points explain
    Q_s: np.ndarray     # (S, N) the same between test and training inputs


@cache
def problem(N=40, M=8, D=2):
    """A small random problem whose residual variances are neither all small nor all large."""
    rng = np.random.default_rng(0)
    X, Z, Xs = rng.normal(size=(N, D)), 1.5 * rng.normal(size=(M, D)), rng.normal(size=(10, D))
    y = np.sin(2 * X.sum(axis=1)) + 0.3 * rng.normal(size=N)
    kernel = SquaredExponential(1.3, [0.8, 1.2])
    K_uu = kernel(Z) + JITTER * kernel.variance * np.eye(M)
    explained = np.linalg.solve(K_uu, kernel(Z, X))
    blocks = np.array_split(rng.permutation(N), BLOCKS)
    return Problem(kernel, X, y, Z, Xs, blocks, kernel(X), kernel(X, Z) @ explained, kernel(Xs, Z) @ explained)


def fitc():
    """Remark 2: alpha = 1 is FITC, whose prior covariance is Q + diag(K - Q)."""
    p = problem()
    return difference(_power_ep(1.0), _dense(np.diag(np.diag(p.K - p.Q))))


def vfe():
    """Remark 3: alpha = 0 is VFE, whose prior covariance is Q and whose bound subtracts a trace."""
    p = problem()
    return difference(_power_ep(0.0), _dense(np.zeros_like(p.K), penalty=np.trace(p.K - p.Q) / (2 * NOISE)))


def one_pass():
    """Remark 4: one pass over the data from flat sites is enough, at every power."""
    return max(difference(_sites_after(1, alpha), _sites_after(2, alpha)) for alpha in POWERS)


def pitc():
    """Remark 5: blocks with alpha = 1 are PITC, which keeps the blocks of K - Q."""
    p = problem()
    kept = np.zeros_like(p.K)
    for block in p.blocks:
        kept[np.ix_(block, block)] = (p.K - p.Q)[np.ix_(block, block)]
    return difference(_power_ep(1.0, blocks=p.blocks), _dense(kept))


def block_vfe():
    """Remark 6: blocks with alpha = 0 are VFE, whatever the blocks."""
    p = problem()
    dense = _dense(np.zeros_like(p.K), penalty=np.trace(p.K - p.Q) / (2 * NOISE))
    return difference(_power_ep(0.0, blocks=p.blocks), dense)


def difference(left, right):
    """The largest difference of two lists of numbers and arrays, each relative to its largest entry."""
    return float(max(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)) for ours, theirs in zip(left, right)))


def _power_ep(alpha, blocks=None):
    p = problem()
    fit = power_ep.regression(p.kernel, p.Z, p.X, p.y, noise=NOISE, alpha=alpha, blocks=blocks, jitter=JITTER)
    return [fit.log_evidence, *fit.predict_f(p.Xs)]


def _dense(kept, penalty=0.0):
    """Log evidence and predictions of f when y ~ N(0, Q + kept + noise), by dense linear algebra."""
    p = problem()
    covariance = p.Q + kept + NOISE * np.eye(len(p.y))
    solved = np.linalg.solve(covariance, np.column_stack([p.y, p.Q_s.T]))
    log_evidence = -0.5 * (len(p.y) * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1] + p.y @ solved[:, 0])
    return [log_evidence - penalty, p.Q_s @ solved[:, 0], p.kernel.diagonal(p.Xs) - np.sum(p.Q_s.T * solved[:, 1:], axis=0)]


def _sites_after(passes, alpha):
    """Precisions and precision-means of the sites after some passes of undamped parallel updates."""
    p = problem()
    features = feature_map(p.kernel, p.Z, p.X, JITTER)
    A, h, sites = features.A, features.h, Sites.flat(len(p.y))
    for _ in range(passes):
        V = np.linalg.inv(np.eye(len(A)) + (A * sites.tau) @ A.T)
        mean, variance = A.T @ V @ A @ sites.nu, np.sum(A * (V @ A), axis=0)
        cavity_mean, cavity_variance = cavity(mean, variance, sites, alpha)
        _, d1, d2 = Gaussian(NOISE).log_moment(p.y, cavity_mean, cavity_variance + h, alpha)
        sites = target(cavity_mean, cavity_variance, d1, d2, alpha)
    return [sites.tau, sites.nu]
