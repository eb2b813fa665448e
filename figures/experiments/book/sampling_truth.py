"""Where Power EP stands beside the truth: evidence and predictive probabilities of small classifiers, by long sampling.

The posterior is sampled by elliptical slice sampling, the evidence by annealed importance sampling with the same moves.
A run is one batch of independent chains; the spread over batches is the Monte Carlo error.

With `results = runner.results("sampling_truth")` and a problem, "line", "banana" or "steep", call `truth(results, problem)`
for what the committed batches say, `compare(results, problem)` for the approximations beside it as a table, and
`draw_compare(fig, results, problem)` and `draw_probabilities(fig, results, problem)` for the pictures.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy.special import log_ndtr, logsumexp, ndtr

from figures.drawing import style
from pepcore import exact, power_ep, training
from pepcore.datasets import generators
from pepcore.gaussian import log_determinant, safe_cholesky, solve_lower
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit
from pepcore.sites import Sites

JITTER = 1e-8       # relative to the kernel's variance, as small as the factorisation bears
POINTS = 40         # test inputs
BATCHES, CHAINS, MOVES = 6, 200, 100
TEMPERATURES = {"sites": 300, "prior": 2000}
OUTPUTS = ("log_evidence", "log_weight_sd", *(f"p{i}" for i in range(POINTS)))
ALPHAS = (0.0, 0.5, 1.0)
SIZES = (5, 10, 20, 40)


# The samplers ---------------------------------------------------------------------------------------------------------

def elliptical_slice(f, log_likelihood, root, rng):
    """One move of each chain in f (C, N) that leaves the prior N(0, root rootᵀ) times the likelihood as it is.

    The new state lies on the ellipse through the old one and a draw from the prior, at the first angle found above a
    random height. The bracket of angles shrinks towards the old state, which is always above.

    Parameters
    ----------
    f : (C, N), one chain per row
    log_likelihood : callable, (C, N) -> (C,)
    root : (N, N)
    rng : numpy Generator

    Source: murray2010 figure 2, on all chains at once.
    """
    other = rng.standard_normal(f.shape) @ root.T
    height = log_likelihood(f) + np.log(rng.random(len(f)))
    angle = rng.uniform(0, 2 * np.pi, len(f))
    low, high = angle - 2 * np.pi, angle.copy()
    new, moving = f.copy(), np.arange(len(f))
    while len(moving):
        turn = angle[moving, None]
        proposal = f[moving] * np.cos(turn) + other[moving] * np.sin(turn)
        above = log_likelihood(proposal) > height[moving]
        new[moving[above]] = proposal[above]
        moving = moving[~above]
        ahead = angle[moving] > 0
        high[moving[ahead]], low[moving[~ahead]] = angle[moving[ahead]], angle[moving[~ahead]]
        angle[moving] = rng.uniform(low[moving], high[moving])
    return new


def anneal(log_likelihood, root, chains, temperatures, rng):
    """Annealed importance sampling from N(0, root rootᵀ) to that prior times the likelihood.

    The powers (t/T)⁴ of the likelihood crowd where the prior is left.

    Parameters
    ----------
    log_likelihood : callable, (C, N) -> (C,)
    root : (N, N)
    chains, temperatures : int, C and T
    rng : numpy Generator

    Returns
    -------
    log_weights (C,), whose exponentials have the evidence as their expectation
    f (C, N), the last states, near the posterior

    Source: neal2001, with `elliptical_slice` between two temperatures.
    """
    f = rng.standard_normal((chains, len(root))) @ root.T
    log_weights = np.zeros(chains)
    powers = np.linspace(0, 1, temperatures + 1) ** 4
    for before, power in zip(powers[:-1], powers[1:]):
        log_weights += (power - before) * log_likelihood(f)
        f = elliptical_slice(f, lambda states, power=power: power * log_likelihood(states), root, rng)
    return log_weights, f


@dataclass(frozen=True, eq=False)
class Base:
    """The Gaussian that annealing starts from: prior times the sites ν, τ. Flat sites make it the prior.

    What is left of the likelihood is its ratio to the sites. With EP's sites the ratio is nearly constant, and a few
    hundred temperatures do what from the prior takes tens of thousands. The answer is the same from any base. Without a
    temperature in between, the evidence is the normaliser times the mean of that ratio, :eq:`ep-importance`.

    Attributes
    ----------
    mean (N,), root (N, N) : N(mean, root rootᵀ)
    log_normaliser : float, log ∫ N(f; 0, K) exp(νᵀf − ½ fᵀdiag(τ)f) df
    sites : Sites
    prior_root : (N, N), R with R Rᵀ = K + jitter
    """

    mean: np.ndarray
    root: np.ndarray
    log_normaliser: float
    sites: Sites
    prior_root: np.ndarray

    @classmethod
    def build(cls, kernel, X, sites):
        prior_root, _ = safe_cholesky(kernel(X), scale=kernel.diagonal(X).mean(), jitter=JITTER)
        C, _ = safe_cholesky(np.eye(len(X)) + prior_root.T @ (prior_root * sites.tau[:, None]))
        root = solve_lower(C, np.array(prior_root.T, order="F")).T
        mean = root @ (root.T @ sites.nu)
        return cls(mean, root, 0.5 * (sites.nu @ mean - log_determinant(C)), sites, prior_root)

    def log_ratio(self, log_likelihood):
        """The likelihood over the sites, as a function of f − mean (C, N)."""
        def ratio(g):
            f = g + self.mean
            return log_likelihood(f) - f @ self.sites.nu + 0.5 * f**2 @ self.sites.tau
        return ratio


def sample(log_likelihood, base, rng, chains, temperatures, moves):
    """The evidence, and a run of posterior states.

    Returns
    -------
    log_evidence : float
    log_weights : (C,), of the chains
    states : iterator of `moves` arrays (C, N) of f after annealing
    """
    ratio = base.log_ratio(log_likelihood)
    log_weights, g = anneal(ratio, base.root, chains, temperatures, rng)

    def states(g):
        for _ in range(moves):
            g = elliptical_slice(g, ratio, base.root, rng)
            yield g + base.mean

    return base.log_normaliser + logsumexp(log_weights) - np.log(chains), log_weights, states(g)


# The study ------------------------------------------------------------------------------------------------------------

def load(name):
    """Kernel, X (N, D), y (N,) and the POINTS test inputs of a problem; nothing is learnt, the kernel is given.

    "line": 60 labels on a line, drawn from the very model. "banana": 150 labels in the plane. "steep": the same labels
    under a prior of eleven times the variance, whose posterior is further from Gaussian.
    """
    if name == "line":
        data = generators.chain_1d(3, 60)
        return data.truth["kernel"], data.X, data.y, np.linspace(-4, 4, POINTS)[:, None]
    data = generators.banana(0, N=150)
    kernel = {"banana": SquaredExponential(9.0, 1.0), "steep": SquaredExponential(100.0, 1.5)}[name]
    return kernel, data.X, data.y, np.random.default_rng(1).uniform(-2.5, 2.5, (POINTS, 2))


PROBLEMS = ("line", "banana", "steep")


def grid():
    """Batches from EP's sites for each problem and, as a check of that short cut, from the prior for the smallest."""
    yield from ({"problem": name, "base": "sites", "batch": batch} for batch in range(BATCHES) for name in PROBLEMS)
    yield from ({"problem": "line", "base": "prior", "batch": batch} for batch in range(BATCHES))


def compute(problem, base, batch):
    """One batch: the evidence, and P(y = +1) at the test inputs, averaged over chains and moves."""
    kernel, X, y, Xs = load(problem)
    base_sites = exact.infer(kernel, X, y, Probit()).sites if base == "sites" else Sites.flat(len(X))
    start = Base.build(kernel, X, base_sites)
    rng = np.random.default_rng([batch, PROBLEMS.index(problem), base == "prior"])
    log_evidence, log_weights, states = sample(lambda f: log_ndtr(y * f).sum(axis=1), start, rng, CHAINS,
                                               TEMPERATURES[base], MOVES)
    mean, variance = conditional(kernel, X, Xs, start.prior_root)
    p = np.mean([ndtr(f @ mean / np.sqrt(1 + variance)).mean(axis=0) for f in states], axis=0)
    return {"log_evidence": log_evidence, "log_weight_sd": log_weights.std(), **{f"p{i}": v for i, v in enumerate(p)}}


def conditional(kernel, X, Xs, prior_root):
    """Weights (N, S) and variance (S,) of f(Xs) given f at X: the mean is f @ weights, :eq:`gp-split`."""
    white = solve_lower(prior_root, np.array(kernel(X, Xs), order="F"))
    variance = kernel.diagonal(Xs) - (white**2).sum(axis=0)
    return solve_lower(prior_root, np.array(white, order="F"), transposed=True), np.maximum(variance, 0)


@dataclass(frozen=True, eq=False)
class Truth:
    """Log evidence with its standard error, probabilities (S,) at the test inputs with theirs."""

    log_evidence: float
    log_evidence_error: float
    p: np.ndarray
    p_error: np.ndarray


def truth(results, problem, base="sites"):
    """What the batches of one problem say together; evidences are averaged, not their logarithms."""
    batches = results[(results["problem"] == problem) & (results["base"] == base)]
    log_evidence, p = batches["log_evidence"].to_numpy(), batches[[f"p{i}" for i in range(POINTS)]].to_numpy()
    ratio = np.exp(log_evidence - log_evidence.max())
    root = np.sqrt(len(batches))
    return Truth(float(np.log(ratio.mean()) + log_evidence.max()), float(ratio.std(ddof=1) / ratio.mean() / root),
                 p.mean(axis=0), p.std(axis=0, ddof=1) / root)


def approximations(problem, alphas=ALPHAS, sizes=SIZES):
    """Fits of one problem, as dict (M, alpha) -> Fit; M = N is the full GP, smaller M has pseudo-inputs from k-means."""
    kernel, X, y, _ = load(problem)
    fits = {(len(X), alpha): exact.infer(kernel, X, y, Probit(), alpha=alpha) for alpha in alphas}
    for M in sizes:
        Z = training.choose_pseudo_inputs(X, M)
        fits |= {(M, alpha): power_ep.infer(kernel, Z, X, y, Probit(), alpha=alpha) for alpha in alphas}
    return fits


def compare(results, problem, alphas=ALPHAS, sizes=SIZES):
    """One row per approximation: its log evidence less the true one, and how far its probabilities are from the true ones.

    Returns
    -------
    DataFrame with M, alpha, evidence (difference in nats), p_mean and p_max (mean and largest absolute difference)
    """
    known, Xs = truth(results, problem), load(problem)[-1]
    rows = []
    for (M, alpha), fit in approximations(problem, alphas, sizes).items():
        apart = np.abs(fit.predict_y(Xs) - known.p)
        rows.append({"M": M, "alpha": alpha, "evidence": fit.log_evidence - known.log_evidence,
                     "p_mean": apart.mean(), "p_max": apart.max()})
    return pd.DataFrame(rows)


# Pictures -------------------------------------------------------------------------------------------------------------

def draw_compare(fig, results, problem):
    """Evidence and probabilities against the truth as M grows, one line per power; the last M is the full GP."""
    table, known = compare(results, problem), truth(results, problem)
    left, right = fig.subplots(1, 2)
    for alpha, rows in table.sort_values("M").groupby("alpha"):
        look = {"color": style.alpha_colour(alpha), "marker": "o", "label": style.alpha_label(alpha)}
        left.plot(rows["M"], rows["evidence"], **look)
        right.plot(rows["M"], rows["p_mean"], **look)
    left.axhspan(-2 * known.log_evidence_error, 2 * known.log_evidence_error, color=style.colours["exact"], alpha=0.4, lw=0)
    left.axhline(0, color=style.colours["exact"], lw=1.5)
    right.axhspan(0, 2 * known.p_error.mean(), color=style.colours["exact"], alpha=0.4, lw=0)
    sizes = sorted(set(table["M"]))
    for ax in (left, right):
        ax.set_xscale("log")
        ax.set_xticks(sizes, [*map(str, sizes[:-1]), "all"])
        ax.minorticks_off()
    left.set_yscale("symlog", linthresh=0.1)
    style.label(left, x="M", y="log evidence − truth (nats)")
    style.label(right, x="M", y="mean error of P(y = +1)")
    right.set_yscale("log")
    right.legend(loc="upper right")


def draw_probabilities(fig, results, problem, alphas=ALPHAS):
    """P(y = +1) of the full GP at each power against the truth, as a difference; dots above 0 are too sure of +1."""
    known, Xs = truth(results, problem), load(problem)[-1]
    ax = fig.subplots()
    ax.axhline(0, color=style.colours["exact"], lw=1.5)
    for (_, alpha), fit in approximations(problem, alphas, ()).items():
        ax.errorbar(known.p, fit.predict_y(Xs) - known.p, 2 * known.p_error, fmt="o", lw=1,
                    color=style.alpha_colour(alpha), label=style.alpha_label(alpha))
    style.label(ax, x="true P(y = +1)", y="approximate − true")
    ax.legend()


FIGURES = {"truth_evidence": (partial(draw_compare, problem="banana"), (7, 3.6)),
           "truth_probabilities": (partial(draw_probabilities, problem="steep"), (7, 3.6))}
