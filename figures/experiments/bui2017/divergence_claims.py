"""What bui2017 says of Power EP in general, without pseudo-inputs: its ends, its fixed points, its speed and its stability.

Each function returns the number that a claim of the ledger is judged by. Densities live on a grid; the classifier has
twenty-four labels on a line, as in the chapter "Power EP and its limits".
"""

from functools import cache

import numpy as np
from scipy.optimize import minimize, root
from scipy.special import ndtr

from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit
from pepcore.sites import Sites, cavity, target

GRID, CELL = np.linspace(-30, 30, 6001, retstep=True)


def gaussian(mean, sd, f=GRID):
    """The density N(f; mean, sd²)."""
    return np.exp(-0.5 * ((f - mean) / sd) ** 2) / (np.sqrt(2 * np.pi) * sd)


def divergence(alpha, p, q, cell=CELL):
    """D_α of two non-negative functions on a grid, 0 < α < 1; :eq:`pep-divergence`."""
    return cell * np.sum(alpha * p + (1 - alpha) * q - p**alpha * q ** (1 - alpha)) / (alpha * (1 - alpha))


def ends():
    """Largest difference of D_α at α = 1e-5 and 1 − 1e-5 from KL[q‖p] and KL[p‖q], for two pairs of densities.

    In the limits α → 0 and α → 1 there is none, :eq:`pep-kl-ends`.
    """
    pairs = [(0.6 * gaussian(0, 0.7) + 0.4 * gaussian(3, 1.2), gaussian(0.5, 1.4)), (gaussian(0, 1), gaussian(1, 2))]
    apart = [divergence(near, p, q) - CELL * np.sum(a * np.log(a / b))
             for p, q in pairs for near, a, b in ((1e-5, q, p), (1 - 1e-5, p, q))]
    return float(np.abs(apart).max())


def hellinger():
    """Largest |D_½ − 4 H²| for pairs of Gaussians, H² the squared Hellinger distance."""
    densities = [gaussian(mean, sd) for mean, sd in np.random.default_rng(8).uniform(0.5, 3, (4, 2))]
    squared = lambda p, q: 0.5 * CELL * np.sum((np.sqrt(p) - np.sqrt(q)) ** 2)
    return float(max(abs(divergence(0.5, p, q) - 4 * squared(p, q)) for p in densities for q in densities))


@cache
def classifier(variance=25.0):
    """Prior covariance (24, 24) and labels (24,)."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-3, 3, 24))
    chance = ndtr(3 * np.sin(1.4 * x) + 0.8)
    labels = np.where(rng.uniform(size=24) < chance, 1.0, -1.0)
    return SquaredExponential(variance, 1.0)(x[:, None]), labels


def sweep(K, y, alpha, step, tolerance=1e-8, max_sweeps=5000):
    """Parallel Power EP from flat sites with a fixed step.

    Returns
    -------
    sites; mu (N,) and Sigma (N, N) of q; sweeps; smallest c_n met; whether the sites came to rest
    """
    sites, smallest = Sites.flat(len(y)), 1.0
    for done in range(1, max_sweeps + 1):
        Sigma = np.linalg.solve(np.eye(len(y)) + K * sites.tau, K)
        mu, s = Sigma @ sites.nu, np.diag(Sigma)
        smallest = min(smallest, np.min(1 - alpha * sites.tau * s))
        if smallest <= 0:
            return sites, mu, Sigma, done, smallest, False
        m, v = cavity(mu, s, sites, alpha)
        _, d1, d2 = Probit().log_moment(y, m, v, alpha)
        new = target(m, v, d1, d2, alpha)
        if max(np.abs(new.tau - sites.tau).max(), np.abs(new.nu - sites.nu).max()) < tolerance:
            return sites, mu, Sigma, done, smallest, True
        sites = sites.toward(new, step)
    return sites, mu, Sigma, max_sweeps, smallest, False


def local_minimum():
    """Sites that minimise the local α-divergence, height included, against those of the fixed point: largest difference.

    Nine sites, three of each of the powers ¼, ½ and ¾.
    """
    K, y = classifier()
    worst = 0.0
    for alpha in (0.25, 0.5, 0.75):
        sites, mu, Sigma, *_ = sweep(K, y, alpha, 0.5, 1e-10)
        m, v = cavity(mu, np.diag(Sigma), sites, 1.0)
        for n in (2, 11, 20):
            f, cell = np.linspace(m[n] - 9 * np.sqrt(v[n]), m[n] + 9 * np.sqrt(v[n]), 1801, retstep=True)
            rest = gaussian(m[n], np.sqrt(v[n]), f)
            p = rest * ndtr(y[n] * f)

            def local(site, alpha=alpha, p=p, rest=rest, f=f, cell=cell):
                height, tau, nu = site
                return divergence(alpha, p, rest * np.exp(height + nu * f - 0.5 * tau * f**2), cell)

            def slope(site, alpha=alpha, p=p, rest=rest, f=f):
                height, tau, nu = site
                q = rest * np.exp(height + nu * f - 0.5 * tau * f**2)
                return np.stack([np.ones_like(f), -0.5 * f**2, f]) @ (q - p**alpha * q**(1 - alpha))

            found = minimize(local, [-0.5, 0.02, 0.0], method="Nelder-Mead", options={"xatol": 1e-5, "maxiter": 4000}).x
            found = root(slope, found, tol=1e-13).x     # the values of `local` tell seven digits, its slope tells all
            worst = max(worst, abs(found[1] - sites.tau[n]), abs(found[2] - sites.nu[n]))
    return float(worst)


def global_and_local():
    """Difference of KL[q‖p*] and the sum of its local terms E_q[log t_n / p(y_n|f_n)], heights included."""
    K, y = classifier()
    K = K + 0.1 * np.eye(24)        # solving with K alone would leave six digits, which are other ones on another machine
    sites, mu, Sigma, *_ = sweep(K, y, 0.5, 0.5)
    expected = Probit().log_moment(y, mu, np.diag(Sigma), 0.0)[0].sum()
    second = np.trace(np.linalg.solve(K, Sigma)) + mu @ np.linalg.solve(K, mu) - 24
    whole = 0.5 * (second + np.linalg.slogdet(K)[1] - np.linalg.slogdet(Sigma)[1]) - expected
    heights = 0.5 * (np.linalg.slogdet(np.eye(24) + K * sites.tau)[1] - sites.nu @ mu)
    parts = heights + np.sum(sites.nu * mu - 0.5 * sites.tau * (mu**2 + np.diag(Sigma))) - expected
    return float(abs(whole - parts))


def best_bound_and_power_zero():
    """Power EP's log evidence at α = 0 against the largest variational bound that L-BFGS finds; eight labels."""
    K, y = (part[..., 1::3] for part in classifier(4.0))
    K = K[1::3]

    def energy(logs):
        tau, nu = np.exp(logs[:8]), logs[8:]
        B = np.eye(8) + K * tau
        Sigma = np.linalg.solve(B, K)
        mu, s = Sigma @ nu, np.diag(Sigma)
        kl = np.sum(nu * mu - 0.5 * tau * (mu**2 + s)) + 0.5 * np.linalg.slogdet(B)[1] - 0.5 * nu @ mu
        return kl - Probit().log_moment(y, mu, s, 0.0)[0].sum()

    best = minimize(energy, np.r_[np.full(8, -2.0), 0.3 * y], method="L-BFGS-B", jac="3-point",
                    options={"maxfun": 10**5, "ftol": 0.0})
    sites, *_ = sweep(K, y, 0.0, 0.5, 1e-10)
    return float(abs(best.fun - energy(np.r_[np.log(sites.tau), sites.nu])))


def slower_at(alpha):
    """Sweeps at a small power as a multiple of those at α = 1, both with the paper's step ε = α."""
    K, y = classifier(4.0)
    return sweep(K, y, alpha, alpha)[3] / sweep(K, y, 1.0, 1.0)[3]


def stable_runs(step=0.3):
    """Percentage of runs on log-concave factors that converge with proper cavities: 3 shuffles of the labels, 3 powers."""
    K, y = classifier(100.0)
    ends = [sweep(K, np.random.default_rng(seed).permutation(y), alpha, step, 1e-6, 300)
            for seed in range(3) for alpha in (0.0, 0.5, 1.0)]
    return 100 * float(np.mean([smallest > 0 and settled for *_, smallest, settled in ends]))
