"""The checkers of chapter "Sparse EP by projection": right answers pass, usual mistakes are named."""

import numpy as np
from checks import cs
from conftest import changed, checker_tests

from pepcore import datasets, online
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Gaussian


def include(alpha, C, k, q, r):
    s = np.append(C @ k, 1.0)
    return np.append(alpha, 0.0) + q * s, np.pad(C, (0, 1)) + r * np.outer(s, s)


def forget(alpha, C, K, i):
    r = np.arange(len(K)) != i
    precision = np.linalg.inv(C + np.linalg.inv(K))
    covariance = np.linalg.inv(precision[np.ix_(r, r)])
    return covariance @ (precision @ alpha)[r], covariance - np.linalg.inv(K[np.ix_(r, r)])


def marginalise(alpha, C, K, i):
    r = np.arange(len(K)) != i
    R = np.linalg.solve(K[np.ix_(r, r)], K[r])
    return R @ alpha, R @ C @ R.T


def drop(alpha, C, K, i):
    return np.delete(alpha, i), np.delete(np.delete(C, i, axis=0), i, axis=1)


def swap(alpha, C, K, k, own, q, r, i, corner=True):
    """Take in, then forget, with the newcomer's own variance in the corner of the larger matrix, or 1."""
    larger = np.block([[K, k[:, None]], [k, np.array(own if corner else 1.0)]])
    return marginalise(*include(alpha, C, k, q, r), larger, i)


def condition(alpha, C, K, k, own, q, r, i):
    return forget(*include(alpha, C, k, q, r), np.block([[K, k[:, None]], [k, np.array(own)]]), i)


def forget_first(alpha, C, K, k, own, q, r, i):
    stay = np.arange(len(K)) != i
    return include(*marginalise(alpha, C, K, i), k[stay], q, r)


def struck_out(alpha, C, K, k, own, q, r, i):
    return drop(*include(alpha, C, k, q, r), K, i)


def newcomer_out(alpha, C, K, k, own, q, r, i):
    return swap(alpha, C, K, k, own, q, r, len(K))


def farthest_first():
    x, line = datasets.snelson_like(seed=0, N=100).X[:, 0], [50]
    while len(line) < 100:
        distance = np.abs(x[:, None] - x[line]).min(axis=1)
        distance[line] = -1.0
        line.append(int(np.argmax(distance)))
    return line


def sent_ahead(every, ahead=9):
    """Every so many data one goes in front of those that came before it, so many places at most."""
    return np.array(sorted(range(100), key=lambda n: n - ahead - 0.5 if n % every == every - 1 else n))


def far_from_the_basis(size=10):
    """A room that always lets the datum pass that is farthest from the present basis."""
    toy, kernel = datasets.snelson_like(seed=0, N=100), SquaredExponential(0.7, 0.6)
    state, waiting, rest, line = online.start(kernel, Gaussian(0.06), budget=6, novelty=0.01), list(range(size)), size, []
    while waiting:
        n = waiting[0]
        if line:
            n = max(waiting, key=lambda n: np.abs(toy.X[n] - state.Z).min())
        waiting.remove(n)
        line.append(n)
        state = online.update(state, toy.X[[n]], toy.y[[n]])
        if rest < 100:
            waiting.append(rest)
            rest += 1
    return np.array(line)


q = np.sqrt(2 / (5 * np.pi))
FULL = np.sin(np.linspace(0, 6, 30))
FIRST, SECOND = FULL + 0.1 * np.cos(7 * FULL), FULL - 0.2 * np.cos(3 * FULL)
RIGHT = {
    "cs-1-first": (q, -(q**2), q**2 / (1 - 4 * q**2)),
    "cs-2-twice": (3 / 2.5, -2 / 2.5),
    "cs-3-prune": forget,
    "cs-4-swap": swap,
    "cs-5-disguise": (0.7, 0.45, 6.0),
    "cs-6-yours": (FIRST, SECOND, FULL),
    "cs-7-nystrom": ([0.0], [5.0], 5.0, 0.1),
    "cs-8-order": sent_ahead(10),
}
ALSO_RIGHT = [
    ("cs-7-nystrom", [[0.0], [5.0], 5.0, 0.1]),
    ("cs-8-order", far_from_the_basis()),
]
WRONG = [
    ("cs-3-prune", marginalise, "marginal"),
    ("cs-3-prune", drop, "dropped"),
    ("cs-3-prune", changed(forget, 1, lambda C: 2 * C), "alpha is right, C is not"),
    ("cs-3-prune", lambda alpha, C, K, i: (np.zeros(3), np.zeros((3, 3))), "not the process that is closest"),
    ("cs-4-swap", struck_out, "nobody was told"),
    ("cs-4-swap", condition, "moves the values that stay"),
    ("cs-4-swap", newcomer_out, "the newcomer went out again"),
    ("cs-4-swap", forget_first, "the old vector went first"),
    ("cs-4-swap", lambda *given: swap(*given, corner=False), "own prior variance in its corner"),
    ("cs-4-swap", changed(swap, 1, lambda C: 2 * C), "alpha is right, C is not"),
    ("cs-4-swap", lambda *given: (np.zeros(4), np.zeros((4, 4))), "In which order"),
    ("cs-6-yours", (FIRST, FIRST, FULL), "both orders end alike"),
    ("cs-6-yours", (FIRST, FULL, FULL), "so large that nothing had to go"),
    ("cs-6-yours", (FIRST, -SECOND, FULL), "runs against"),
    ("cs-6-yours", (FIRST, SECOND, 0 * FULL), "the same everywhere"),
    ("cs-6-yours", (FIRST[:5], SECOND[:5], FULL[:5]), "at least 20"),
    ("cs-7-nystrom", ([0.0], [0.1], 0.1, 0.1), "the variance is"),
    ("cs-7-nystrom", ([0.0], [5.0], 5.0, -1.0), "between"),
    ("cs-8-order", farthest_first(), "it has not come in yet"),
    ("cs-8-order", np.random.default_rng(1).permutation(100), "it has not come in yet"),
    ("cs-8-order", np.arange(100)[::-1], "it has not come in yet"),
    ("cs-8-order", np.arange(100), "nobody waits"),
    ("cs-8-order", sent_ahead(11, 10), "one place more than the room has"),
    ("cs-8-order", np.roll(np.arange(100), -1), "Its distance is"),
    ("cs-8-order", np.roll(np.arange(100), 1), "when each datum is read"),
    ("cs-8-order", np.argsort(sent_ahead(10)), "Its distance is"),
    ("cs-7-nystrom", ([], [5.0], 5.0, 0.1), "at least one"),
    ("cs-8-order", np.zeros(100), "once"),
    ("cs-8-order", np.zeros(5), "shape (100,)"),
]


test_right_answer_passes, test_usual_mistake_is_named = checker_tests(RIGHT, WRONG, ALSO_RIGHT)


def test_the_process_of_the_checks_is_a_proper_one():
    K, alpha, C = cs.random_process(0)
    covariance = K + K @ C @ K
    assert alpha.shape == (4,)
    assert np.linalg.eigvalsh(covariance).min() > 0
    assert np.linalg.eigvalsh(K - covariance).min() > 0
