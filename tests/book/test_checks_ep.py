"""The checkers of chapter "EP, step by step": right answers pass, usual mistakes are named."""

import numpy as np
from conftest import changed, checker_tests
from exercises import check
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

from pepcore import exact
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit


def moments(y, mean, variance, over=np.sqrt, label=True, sign=1.0):
    sd = over(variance)
    z = (y if label else 1.0) * mean / sd
    rho = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
    return log_ndtr(z), y * rho / sd, -sign * rho * (rho + z) / sd**2


def left_out(mean, variance, tau, nu, y, cavity=True, noise=1.0):
    kept = 1 - cavity * tau * variance
    return log_ndtr(y * (mean - cavity * nu * variance) / kept / np.sqrt(noise + variance / kept))


def longest(eigenvalues):
    w = 1 - np.asarray(eigenvalues)
    return np.min(2 * w.real / np.abs(w) ** 2)


def alike(tau, nu, N, s_0, others=None):
    """The site of a label +1 whose N − 1 companions all have the site (τ, ν)."""
    others = N - 1 if others is None else others
    variance = 1 / (1 / s_0 + others * tau)
    mean = variance * others * nu
    z = mean / np.sqrt(1 + variance)
    rho = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) / ndtr(z)
    d1, d2 = rho / np.sqrt(1 + variance), -rho * (rho + z) / (1 + variance)
    return np.array([-d2, d1 - d2 * mean]) / (1 + d2 * variance)


X = np.random.default_rng(2).uniform(-3, 3, (40, 1))
LABELS, KERNEL = np.where(np.sin(2 * X[:, 0]) > 0, 1.0, -1.0), SquaredExponential(4.0, 1.0)
FIT = exact.infer(KERNEL, X, LABELS, likelihood=Probit())
LEFT_OUT = left_out(*FIT.predict_f(X), FIT.sites.tau, FIT.sites.nu, LABELS)
SEEN = left_out(*FIT.predict_f(X), FIT.sites.tau, FIT.sites.nu, LABELS, cavity=False)
RIGHT = {
    "ep-1-mixture": (-0.1, 2.365),
    "ep-2-step": moments,
    "ep-3-worth": 6.25,
    "ep-4-loo": left_out,
    "ep-5-step": longest,
    "ep-6-alike": (alike, 5),
    "ep-8-yours": (KERNEL, X, LABELS, LEFT_OUT),
}
ALSO_RIGHT = [
    ("ep-8-yours", (KERNEL, X, LABELS, [float(f"{value:.3g}") for value in LEFT_OUT])),
    ("ep-2-step", lambda *given: np.array(moments(*given))),
    ("ep-2-step", lambda *given: list(moments(*given))),
    ("ep-5-step", lambda e: float(f"{longest(e):.6g}")),
]
WRONG = [
    ("ep-2-step", lambda *given: moments(*given)[:2], "three things"),
    ("ep-2-step", lambda *given: np.array(moments(*given)[:2]), "three things"),
    ("ep-2-step", lambda *given: np.array(1.0), "three things"),
    ("ep-2-step", lambda y, m, v: moments(y, m, v, over=lambda v: np.sqrt(1 + v)), "unit noise"),
    ("ep-2-step", changed(moments, 0, np.exp), "logarithm is asked for"),
    ("ep-2-step", lambda *given: moments(*given, label=False), "depend on the label"),
    ("ep-2-step", lambda *given: moments(*given, over=np.array), "not the variance"),
    ("ep-2-step", changed(moments, 0, lambda l: l + 1), "log P(y f > 0)"),
    ("ep-2-step", lambda y, m, v: (moments(y, m, v)[0], y * moments(y, m, v)[1], moments(y, m, v)[2]), "factor y"),
    ("ep-2-step", changed(moments, 1, lambda d: 2 * d), "chain rule included"),
    ("ep-2-step", lambda *given: moments(*given, sign=-1.0), "concave"),
    ("ep-2-step", changed(moments, 2, lambda d: 2 * d), "rho'"),
    ("ep-4-loo", lambda *given: left_out(*given).sum(), "their sum"),
    ("ep-4-loo", lambda *given: left_out(*given)[:5], "got shape (5,)"),
    ("ep-4-loo", lambda *given: np.exp(left_out(*given)), "logarithms are asked for"),
    ("ep-4-loo", lambda *given: -left_out(*given), "reversed"),
    ("ep-4-loo", lambda *given: left_out(*given, cavity=False), "already seen the label"),
    ("ep-4-loo", lambda *given: left_out(*given, noise=0.0), "noise of its own"),
    ("ep-4-loo", lambda m, v, t, n, y: left_out(m, v, t, n, np.ones_like(y)), "factor y inside"),
    ("ep-4-loo", lambda *given: left_out(*given) - 0.1, "first the cavity"),
    ("ep-5-step", lambda e: 0.5 * longest(e), "the edge of stability"),
    ("ep-5-step", lambda e: np.max(2 / (1 - np.asarray(e)).real), "take the minimum"),
    ("ep-5-step", lambda e: 3.0, "you say 3"),
    ("ep-5-step", lambda e: float(f"{longest(e):.3g}"), "found on a grid"),
    ("ep-5-step", lambda e: np.floor(1000 * longest(e)) / 1000 - 1e-4, "found on a grid"),
    ("ep-5-step", lambda e: np.min(2 / (1 - np.asarray(e)).real), "imaginary part"),
    ("ep-5-step", lambda e: np.min(2 / np.abs(1 - np.asarray(e))), "only if w were real"),
    ("ep-5-step", lambda e: longest(e) if np.isrealobj(e) else 0.1, "not for complex ones"),
    ("ep-5-step", lambda e: min(1.0, longest(e)), "do not cut the answer off"),
    ("ep-5-step", lambda e: longest(e) if np.real(e).min() > -2 else 0.9, "in most cases"),
    ("ep-6-alike", (lambda *given: alike(*given, others=given[2]), 5), "own one has to come out"),
    ("ep-6-alike", (lambda *given: alike(*given, others=0), 5), "prior alone"),
    ("ep-6-alike", (lambda *given: alike(*given)[::-1], 5), "tau first"),
    ("ep-6-alike", (lambda *given: 2 * alike(*given), 5), "not the new site"),
    ("ep-6-alike", (alike, 4), "last stable one"),
    ("ep-6-alike", (alike, 2), "it converges"),
    ("ep-6-alike", (alike, 40), "unstable already"),
    ("ep-6-alike", (alike, ...), "still missing"),
    ("ep-6-alike", alike, "a tuple of 2"),
    ("ep-8-yours", (KERNEL, X, LABELS, SEEN), "already seen the label"),
    ("ep-8-yours", (KERNEL, X, LABELS, -LEFT_OUT), "never positive"),
    ("ep-8-yours", (KERNEL, X, LABELS, LEFT_OUT.sum()), "one log probability for each"),
    ("ep-8-yours", (KERNEL, X, LABELS > 0, LEFT_OUT), "-1 and +1"),
    ("ep-8-yours", (KERNEL, X, LABELS, 1.1 * LEFT_OUT), "was it learnt"),
    ("ep-8-yours", (KERNEL, X, LABELS, [float(f"{value:.1g}") for value in LEFT_OUT]), "was it learnt"),
    ("ep-8-yours", (KERNEL, X, LABELS, np.round(LEFT_OUT, 3)), "not only three digits after the point"),
    ("ep-8-yours", (KERNEL, X[:5], LABELS[:5], LEFT_OUT[:5]), "20 to 400 rows"),
    ("ep-8-yours", (1.0, X, LABELS, LEFT_OUT), "comes the kernel"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)


PLACES, ANSWERS = np.array([3.0, 3.3, 3.6, -3.0, -3.3, -3.6]), np.array([1, 1, 1, -1, -1, -1])


def log_integral(shift, precision):
    return 0.5 * shift**2 / precision - 0.5 * np.log(precision / (2 * np.pi))


def two_humps(shifts):
    """EP's log evidence from these precision-means on, of six answers of which one in twenty is a lie; in closed form."""
    tau, nu = 0.1 * shifts, shifts
    for _ in range(2000):
        precision, shift = 1 / 25 + tau.sum() - tau, nu.sum() - nu
        mean, variance = shift / precision, 1 / precision
        slope = ANSWERS / np.sqrt(0.25 + variance)
        z = slope * (mean - PLACES)
        Z = 0.05 + 0.9 * ndtr(z)
        d1 = 0.9 * slope * norm.pdf(z) / Z
        d2 = -z * slope * d1 - d1**2
        whole = log_integral(nu.sum(), 1 / 25 + tau.sum())
        log_Z = whole - log_integral(0.0, 1 / 25) + np.sum(np.log(Z) + log_integral(shift, precision) - whole)
        matched = 1 / (variance + variance**2 * d2)
        tau, nu = tau + 0.2 * (matched - precision - tau), nu + 0.2 * ((mean + variance * d1) * matched - shift - nu)
    return log_Z


def test_mistakes_with_the_two_humps_are_named(capsys):
    one, wide = two_humps(np.repeat([0.5, 0.0], 3)), two_humps(np.zeros(6))
    both = np.logaddexp(one, one)
    truth = np.log(quad(lambda f: norm.pdf(f, 0, 5) * np.prod(0.05 + 0.9 * ndtr(ANSWERS * (f - PLACES) / 0.5)), -60, 60,
                        points=[-3, 3], limit=200)[0])
    assert abs(both - truth) < abs(one - truth)
    assert check("ep-7-modes", both)
    for answer, hint in ((2 * one, "adding logarithms"), (one, "one hump's"), (wide, "wide fixed point"),
                         (truth, "exact value"),
                         (np.round(both, 1), "close: two digits"), (-50.0, "What is each of the two an estimate of?")):
        capsys.readouterr()
        assert not check("ep-7-modes", answer)
        assert hint in " ".join(capsys.readouterr().out.split())
