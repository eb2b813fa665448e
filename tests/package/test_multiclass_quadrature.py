"""The race of many Gaussians where their deviations differ a millionfold: few nodes, and nothing lost."""

import numpy as np
import pytest
from scipy.special import ndtr

from pepcore.multiclass.quadrature import _Race, _rules, log_largest, probabilities

KINDS = ["two widths", "all widths", "means at their widths"]


def race_of(C, kind, N=40):
    """Means and variances (C, N)."""
    rng = np.random.default_rng(C)
    variance = 10.0 ** (rng.choice([-6, 0, 6], (C, N)) if kind == "two widths" else rng.uniform(-6, 6, (C, N)))
    mean = rng.choice([0.0, 1e-3, 1.0, 1e3], N) * rng.standard_normal((C, N))
    return (mean * np.sqrt(variance) if kind == "means at their widths" else mean), variance


@pytest.mark.parametrize("C", [2, 3, 10, 30])
@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_sum_to_one_and_need_few_nodes(C, kind):
    mean, variance = race_of(C, kind)
    p = probabilities(mean.T, variance.T)
    assert np.all((p >= 0) & (p <= 1 + 1e-8))
    assert p.sum(axis=1) == pytest.approx(1, abs=1e-8)
    for y in range(min(C, 3)):
        rivals = np.delete(np.arange(C), y)
        race = _Race(mean[y], variance[y], mean[rivals], np.sqrt(variance[rivals]))
        # what bounds the time: nodes for each datum, whatever the ratio
        most = [len(f) * np.bincount(owner).max() for _, f, _, owner in _rules(race)]
        assert most and max(most) <= 64 * C


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_those_of_a_rule_with_panels_around_every_mean(kind):
    mean, variance = race_of(4, kind)
    y = np.arange(40) % 4
    log_p, slope, bend = log_largest(y, mean, variance)
    likely = np.flatnonzero(log_p > -30)
    assert len(likely) > 15
    for n in likely:
        order = np.r_[y[n], np.delete(np.arange(4), y[n])]
        m, s = mean[order, n], np.sqrt(variance[order, n])
        total, first, second = moments(m, s)
        assert np.exp(log_p[n]) == pytest.approx(total, rel=1e-8)
        assert s * slope[order, n] == pytest.approx(first, rel=1e-7, abs=1e-9)
        assert s**2 * bend[order, n] == pytest.approx(second, rel=1e-7, abs=1e-8)


def moments(m, s):
    """P that the first is the largest; its first and second derivatives in the means, in units of s, over P."""
    steps = [0, *(sign * 2.0**j for j in range(-2, 4) for sign in (-1, 1))]
    low, high = m[0] - 12 * s[0], m[0] + 12 * s[0]
    marks = np.unique(np.clip(m + np.outer(steps, s), low, high).ravel().tolist() + [low, high])
    x, w = np.polynomial.legendre.leggauss(40)
    half = 0.5 * np.diff(marks)
    f, weight = (marks[:-1] + half * (1 + x[:, None])).ravel(), (half * w[:, None]).ravel()
    z = (f - m[:, None]) / s[:, None]
    normal = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    beaten = ndtr(z[1:])
    weight = weight * normal[0] / s[0]
    total = weight @ beaten.prod(axis=0)
    first, second = [weight @ (z[0] * beaten.prod(axis=0))], [weight @ ((z[0] ** 2 - 1) * beaten.prod(axis=0))]
    for k in range(1, len(m)):
        flux = weight * normal[k] * np.delete(beaten, k - 1, axis=0).prod(axis=0)
        first.append(-flux.sum())
        second.append(-flux @ z[k])
    return total, np.array(first) / total, np.array(second) / total
