"""The checkers of the chapter "Study: decoupled bases on real data": right answers pass, usual mistakes are named."""

import numpy as np
from conftest import checker_tests
from scipy.stats import rankdata

from figures.experiments.salimbeni2018 import small_problem
from pepcore import exact, power_ep
from pepcore.kernels import SquaredExponential


def ranked(losses, axis=1, method="average"):
    return rankdata(losses, axis=axis, method=method)


def leaders(losses, ranks=None, choose=np.argmin):
    ranks = ranked(losses) if ranks is None else ranks
    return choose(np.stack([np.delete(ranks, n, axis=0).mean(axis=0) for n in range(len(ranks))]), axis=1)


def closure(contains):
    """By paths: which bases can be reached from each."""
    found = np.zeros(np.shape(contains), dtype=bool)
    for i in range(len(found)):
        waiting = list(np.flatnonzero(contains[i]))
        while waiting:
            j = waiting.pop()
            if not found[i, j]:
                found[i, j] = True
                waiting += list(np.flatnonzero(contains[j]))
    return found


def two_links(contains):
    """The closure by one product: chains of two links at most."""
    return contains | (contains @ contains)


def behind(bounds, contains, close=closure, floor=True, combine=np.max):
    out = []
    for bound, row in zip(bounds, close(contains)):
        out.append(combine(bounds[row]) - bound if row.any() else 0.0)
    return np.maximum(out, 0) if floor else np.array(out)


RNG = np.random.default_rng(0)
X = RNG.uniform(0, 6, (80, 1))
Y = np.sin(2 * X[:, 0]) + 0.2 * RNG.normal(size=80)
KERNEL, NOISE = SquaredExponential(1.0, 0.5), 0.05
BETA, GAMMA = np.linspace(0.5, 5.5, 4)[:, None], np.linspace(0.3, 5.7, 6)[:, None]


def evidence(Z, kernel=KERNEL):
    return power_ep.regression(kernel, Z, X, Y, noise=NOISE, alpha=0.0).log_evidence


def fit(Z, kernel=KERNEL, jitter=1e-6):
    """½ yᵀ(Q + σ²I)⁻¹y by the weights of the features."""
    L = np.linalg.cholesky(kernel(Z) + jitter * np.eye(len(Z)))
    A = np.linalg.solve(L, kernel(Z, X))
    m = np.linalg.solve(np.eye(len(Z)) + A @ A.T / NOISE, A @ Y / NOISE)
    return 0.5 * (np.sum((Y - A.T @ m) ** 2) / NOISE + m @ m)


BOTH = np.vstack([BETA, GAMMA])
GAIN, GAP = fit(BETA) - fit(BOTH), evidence(BOTH) - evidence(BETA)
TO_TRUTH = exact.regression(KERNEL, X, Y, noise=NOISE).log_evidence - evidence(BETA)


def yours(share):
    return KERNEL, BETA, GAMMA, X, Y, NOISE, share


EVEN_GAMMA = np.linspace(0.3, 5.7, 20)[:, None]


def weak(relative, lengthscale=1.5):
    """With a kernel of small variance, where the jitter matters: relative to the variance, or the same for all."""
    kernel, beta, gamma = SquaredExponential(0.1, lengthscale), np.linspace(0.5, 5.5, 6)[:, None], EVEN_GAMMA
    both, jitter = np.vstack([beta, gamma]), 1e-6 * (kernel.variance if relative else 1.0)
    share = (fit(beta, kernel, jitter) - fit(both, kernel, jitter)) / (evidence(both, kernel) - evidence(beta, kernel))
    return kernel, beta, gamma, X, Y, NOISE, share


def moved(M, sweeps=40):
    """M points of the toy problem, moved uphill one after the other."""
    X_toy, y_toy = small_problem.data()
    Z, step = np.linspace(0.3, 9.7, M), 0.1
    value = lambda Z: power_ep.regression(
        small_problem.KERNEL, Z[:, None], X_toy, y_toy, noise=small_problem.NOISE, alpha=0.0).log_evidence
    best = value(Z)
    for _ in range(sweeps):
        before = best
        for i in range(M):
            for change in (step, -step):
                tried = Z + change * np.eye(M)[i]
                if value(tried) > best:
                    Z, best = tried, value(tried)
        step = step if best > before else step / 2
    return Z[:, None]


EVEN, NONE = np.linspace(0.3, 9.7, 14)[:, None], np.zeros((0, 1))
GOOD = moved(14, sweeps=12)
ERROR = np.sqrt(0.127 * 0.873 / 1902) * 100
RIGHT = {
    "sd-1-ranks": (3.5, np.sqrt(35 / 12), np.sqrt(35 / 120)),
    "sd-2-labels": (1 / 8, 37 / 128, 6),
    "sd-3-leave": leaders,
    "sd-4-behind": behind,
    "sd-5-rows": (ERROR, np.sqrt(0.04 / 1902) * 100, np.sqrt(8) * ERROR),
    "sd-6-yours": yours(GAIN / GAP),
    "sd-7-budget": (GOOD, NONE),
}
ALSO_RIGHT = [
    ("sd-1-ranks", ["7/2", "1,71", "0.540"]),
    ("sd-2-labels", ["1/8", "0.289", "6"]),
    ("sd-3-leave", lambda losses: list(leaders(losses))),
    ("sd-4-behind", lambda bounds, contains: behind(bounds, contains).tolist()),
    ("sd-5-rows", ["0.763", "0.459", "2.16"]),
    ("sd-6-yours", yours(float(f"{GAIN / GAP:.2g}"))),
    ("sd-6-yours", weak(relative=True)),
    ("sd-6-yours", weak(relative=False)),
    ("sd-7-budget", (GOOD, np.array([[4.4]]))),
    ("sd-7-budget", (GOOD, [])),
]
WRONG = [
    ("sd-1-ranks", (2.5, 1.71, 0.540), "counted from 1"),
    ("sd-1-ranks", (3.5, 35 / 12, 0.540), "a variance"),
    ("sd-1-ranks", (3.5, 1.71, 1.71 / 10), "falls like 1/n"),
    ("sd-2-labels", (0.0625, 0.289, 6), "one side only"),
    ("sd-2-labels", (0.125, 2 * 28 / 256, 6), "more uneven"),
    ("sd-2-labels", (0.125, 0.289, 5), "still above"),
    ("sd-3-leave", lambda losses: np.full(len(losses), ranked(losses).mean(axis=0).argmin()), "no set is left out"),
    ("sd-3-leave", lambda losses: losses.argmin(axis=1), "on each set alone"),
    ("sd-3-leave", lambda losses: leaders(losses, losses), "averages the losses"),
    ("sd-3-leave", lambda losses: leaders(losses, choose=np.argmax), "worst average rank"),
    ("sd-3-leave", lambda losses: leaders(losses, ranked(losses, axis=0)), "run over the sets"),
    ("sd-3-leave", lambda losses: leaders(losses, ranked(losses, method="ordinal")), "share a rank"),
    ("sd-3-leave", lambda losses: leaders(losses, losses.argsort(axis=1).argsort(axis=1)), "right where no losses are equal"),
    ("sd-3-leave", lambda losses: leaders(losses)[:-1], "an array of shape"),
    ("sd-3-leave", lambda losses: (leaders(losses) + 1) % losses.shape[1], "not the method that is first"),
    ("sd-4-behind", lambda bounds, contains: behind(bounds, contains, close=lambda c: c), "through another one"),
    ("sd-4-behind", lambda bounds, contains: behind(bounds, contains, close=two_links), "may be longer"),
    ("sd-4-behind", lambda bounds, contains: behind(bounds, contains.T), "turned round: row i"),
    ("sd-4-behind", lambda bounds, contains: -behind(bounds, contains), "the sign"),
    ("sd-4-behind", lambda bounds, contains: behind(bounds, contains, floor=False), "ahead of all"),
    ("sd-4-behind", lambda bounds, contains: np.where(closure(contains), bounds, -np.inf).max(axis=1) - bounds, "zero"),
    ("sd-4-behind", lambda bounds, contains: behind(bounds, contains, combine=np.mean), "which bound says most"),
    ("sd-4-behind", lambda bounds, contains: None, "returns nothing yet"),
    ("sd-5-rows", (0.00763, 0.459, 2.16), "percentage points"),
    ("sd-5-rows", (0.763, np.sqrt(2) * ERROR, 2.16), "different rows"),
    ("sd-5-rows", (0.763, 0.459, 2 * ERROR), "both errors are uncertain"),
    ("sd-6-yours", yours(1 - GAIN / GAP), "leave open"),
    ("sd-6-yours", yours(GAIN), "gain in nats"),
    ("sd-6-yours", yours(GAP / GAIN), "turned round"),
    ("sd-6-yours", yours(100 * GAIN / GAP), "not in per cent"),
    ("sd-6-yours", yours(f"{100 * GAIN / GAP:.0f}"), "not in per cent"),
    ("sd-6-yours", (*weak(True, 1.0)[:-1], 1 / weak(True, 1.0)[-1]), "was something learnt"),
    ("sd-6-yours", (SquaredExponential, BETA, GAMMA, X, Y, NOISE, 0.5), "a class of kernels"),
    ("sd-6-yours", (KERNEL, BETA, GAMMA[:0], X, Y, NOISE, 0.0), "one place a row"),
    ("sd-6-yours", yours(GAIN / TO_TRUTH), "full process"),
    ("sd-6-yours", yours(0.4321), "was something learnt"),
    ("sd-6-yours", (KERNEL, BETA, GAMMA, X, Y + 100, NOISE, 0.5), "subtract it first"),
    ("sd-6-yours", (KERNEL, BETA, BETA, X, Y, NOISE, 0.5), "less than a tenth"),
    ("sd-7-budget", (np.linspace(0, 10, 15)[:, None], NONE), "are allowed"),
    ("sd-7-budget", (EVEN, NONE), "more than -510"),
    ("sd-7-budget", (EVEN[:8], np.linspace(0, 10, 30)[:, None]), "know beta only"),
    ("sd-7-budget", (np.full((4, 1), 2.0), NONE), "in one place"),
    ("sd-7-budget", EVEN[:3], "beta (M, 1)"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)
