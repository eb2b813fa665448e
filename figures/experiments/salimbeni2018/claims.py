"""Our numbers for the claims of salimbeni2018 that need no long run.

Each function measures one kind of claim; `claims.toml` says which claim is measured by which, and with what arguments.
"""

import warnings
from dataclasses import replace

import numpy as np

from figures.experiments.salimbeni2018 import conditioning as hessians
from figures.experiments.salimbeni2018 import fig1
from figures.experiments.salimbeni2018 import small_problem as toy
from pepcore import power_ep
from pepcore.decoupled.bases import Bases, marginals
from pepcore.decoupled.bound import bound
from pepcore.decoupled.natural import coupled_step, optimum
from pepcore.decoupled.parametrisations import Decoupled, Hybrid, Orthogonal
from pepcore.gaussian import multiply_lower
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Gaussian, Poisson, Probit

LIKELIHOODS = {"gaussian": Gaussian(0.1), "probit": Probit(), "poisson": Poisson()}


def small_problem(seed, likelihood="gaussian", gamma=4):
    """X (30, 2), y (30,), and Bases with five points beta and `gamma` points gamma, at random places."""
    rng = np.random.default_rng(seed)
    X, f = rng.uniform(-2, 2, (30, 2)), rng.normal(size=30)
    y = {"gaussian": f, "probit": np.where(f > 0, 1.0, -1.0), "poisson": np.floor(np.exp(f))}[likelihood]
    beta, places = rng.uniform(-2, 2, (5, 2)), rng.uniform(-2, 2, (gamma, 2))
    return X, y, Bases.build(SquaredExponential(1.3, [0.6, 0.8]), beta, places, jitter=1e-10)


def somewhere(bases, rng):
    """An `Orthogonal` at random, as far from the prior as a standard deviation or two, its S_root with a positive diagonal."""
    M, G = len(bases.beta), len(bases.gamma)
    root = np.tril(rng.normal(size=(M, M)), -1) * 0.3 + np.diag(rng.uniform(0.2, 1.5, M))
    return Orthogonal(rng.normal(size=G), bases.L @ rng.normal(size=M), np.asfortranarray(bases.L @ root))


def round_trip(trials=20):
    """The largest relative difference after going to natural or expectation parameters and back, over random processes."""
    trips = []
    for seed in range(trials):
        _, _, bases = small_problem(seed)
        trips.append(fig1.round_trip(bases, somewhere(bases, np.random.default_rng(seed))))
    return max(trips)


def slope_at_the_optimum(trials=10):
    """The largest derivative of the bound at the closed-form optimum, over that at the prior, in the three bases."""
    slopes = []
    for seed in range(trials):
        X, y, bases = small_problem(seed)
        best = optimum(bases, X, y, 0.1)
        process = best.process(bases)
        hybrid = Hybrid(best.a_gamma, bases.L @ process.w, multiply_lower(bases.L, np.array(process.root, order="F")))
        everything = Bases.build(bases.kernel, bases.beta, np.vstack([bases.gamma, bases.beta]), jitter=1e-10)
        weights = np.linalg.solve(bases.L.T, process.w)
        within = np.linalg.inv(process.V) - np.eye(len(bases.beta))
        B = np.linalg.solve(bases.L.T, np.linalg.solve(bases.L.T, within).T)
        decoupled = Decoupled(np.concatenate([best.a_gamma, weights]), np.asfortranarray(np.linalg.cholesky(B)))
        for where, parameters in ((bases, best), (bases, hybrid), (everything, decoupled)):
            prior = Decoupled.prior(where) if isinstance(parameters, Decoupled) else type(parameters).prior(where)
            there, here = (bound(where, q, X, y, Gaussian(0.1)).gradient for q in (prior, parameters))
            slopes.append(_largest(here) / _largest(there))
    return float(max(slopes))


def _largest(gradient):
    return max(np.abs(value).max() for value in gradient.values())


def convex_lines(trials=20):
    """The share of random chords, three likelihoods, along which the loss in (a_γ, m_β, L) lies below the chord.

    Chords in (a_γ, a_β, L) are the same, since a_β = K_β⁻¹m_β.
    """
    below = []
    for name, likelihood in LIKELIHOODS.items():
        for seed in range(trials):
            X, y, bases = small_problem(seed, name)
            rng = np.random.default_rng(seed)
            ends = [somewhere(bases, rng) for _ in range(2)]
            losses = [-bound(bases, end, X, y, likelihood).value for end in ends]
            for t in (0.25, 0.5, 0.75):
                between = {key: (1 - t) * value + t * getattr(ends[1], key) for key, value in vars(ends[0]).items()}
                below.append(-bound(bases, Orthogonal(**between), X, y, likelihood).value
                             < (1 - t) * losses[0] + t * losses[1])
    return float(np.mean(below))


def decoupled_bends_down(trials=20):
    """The share of problems in which the loss of the decoupled basis is above one chord, along B_root = t I."""
    above = []
    for seed in range(trials):
        X, y, bases = small_problem(seed)
        start, M = Decoupled.prior(bases), len(bases.beta)
        losses = [-bound(bases, replace(start, B_root=t * np.eye(M, order="F")), X, y, Gaussian(0.1)).value
                  for t in (10.0, 50.0, 90.0)]
        above.append(losses[1] > 0.5 * (losses[0] + losses[2]))
    return float(np.mean(above))


def coupled_part_beside_gamma(trials=3, step=0.3):
    """The largest difference of a natural step's coupled part beside a_γ, and in the coupled basis on what a_γ leaves of y."""
    differences = []
    for seed in range(trials):
        X, y, bases = small_problem(seed)
        here = somewhere(bases, np.random.default_rng(seed))
        offset, _ = marginals(bases, replace(here, m_beta=np.zeros_like(here.m_beta)).process(bases), X)
        alone = Bases.build(bases.kernel, bases.beta, bases.gamma[:0], jitter=1e-10)
        moved = []
        for where, q, target in ((bases, here, y), (alone, replace(here, a_gamma=np.zeros(0)), y - offset)):
            now = bound(where, q, X, target, Gaussian(0.1))
            moved.append(Orthogonal.from_process(where, coupled_step(where, now.process, now.data, step)))
        differences += [np.abs(getattr(moved[0], name) - getattr(moved[1], name)).max() for name in ("m_beta", "S_root")]
    return float(max(differences))


def step_and_site_update(sweeps=3, step=0.3):
    """The largest of two differences: of the coupled part's step and the coupled basis's, and of that and Power EP at α = 0."""
    differences = [coupled_part_beside_gamma(step=step)]
    for name, likelihood in LIKELIHOODS.items():
        X, y, bases = small_problem(0, name, gamma=0)
        parameters, sites = Orthogonal.prior(bases), None
        for _ in range(sweeps):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # one sweep does not converge
                fit = power_ep.infer(bases.kernel, bases.beta, X, y, likelihood, alpha=0.0, sites=sites, step=step,
                                     max_sweeps=1, jitter=1e-10)
            now = bound(bases, parameters, X, y, likelihood)
            after = coupled_step(bases, now.process, now.data, fit.history[-1]["step"])
            parameters, sites = Orthogonal.from_process(bases, after), fit.sites
            mean, V = fit.posterior.whitened()
            differences += [np.abs(after.w - mean).max(), np.abs(after.V - V).max()]
    return float(max(differences))


def correlation_left(G=10, trials=20):
    """Canonical correlation of a_γ and a_β in the loss, median over random data and gammas of the chapter's toy problem."""
    return float(np.median([hessians.correlation(part) for part in _toys(G, trials)]))


def conditioning(G=10, trials=20, scaled=False):
    """Condition number in the hybrid basis over that in the orthogonal one, median; each coordinate scaled if `scaled`."""
    return float(np.median(gains(G, trials, scaled)))


def gains(G=10, trials=20, scaled=False):
    """What `conditioning` is the median of, one number for each draw of data and gammas."""
    scale = hessians.rescaled if scaled else np.array
    numbers = [[np.linalg.cond(scale(hessians.in_basis(part, basis))) for basis in ("hybrid", "orthogonal")]
               for part in _toys(G, trials)]
    return [float(hybrid / orthogonal) for hybrid, orthogonal in numbers]


def _toys(G, trials):
    for seed in range(trials):
        X, _ = toy.data(seed)
        yield hessians.parts(toy.KERNEL, *toy.points(X, 10, G, seed + 1), X, toy.NOISE)
