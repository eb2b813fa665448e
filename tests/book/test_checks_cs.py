"""The checkers of chapter "Sparse EP by projection": right answers pass, usual mistakes are named."""

import numpy as np
import pytest
from checks import cs
from conftest import changed, checker_tests
from exercises import feedback
from scipy.linalg import block_diag

from pepcore import datasets, online
from pepcore.gaussian import kl_divergence
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


def newcomer_first(*given):
    (alpha, C), order = swap(*given), [3, 0, 1, 2]
    return alpha[order], C[np.ix_(order, order)]


def newcomer_out(alpha, C, K, k, own, q, r, i):
    return swap(alpha, C, K, k, own, q, r, len(K))


def farthest_first():
    x, line = datasets.snelson_like(seed=0, N=100).X[:, 0], [50]
    while len(line) < 100:
        distance = np.abs(x[:, None] - x[line]).min(axis=1)
        distance[line] = -1.0
        line.append(int(np.argmax(distance)))
    return line


def coordinates(alpha, C, K, gone):
    """Mean and covariance of v with the coordinates that go at the end, and how many of them there are."""
    turn = [i for i in range(len(K)) if i not in gone] + list(gone)
    root = np.linalg.cholesky(K[np.ix_(turn, turn)])
    return root.T @ alpha[turn], np.eye(len(K)) + root.T @ C[np.ix_(turn, turn)] @ root, len(gone)


def all_at_once(alpha, C, K, gone, turned=False):
    """The divergence itself, from the process that is conditioned on zero; turned, to the one that is marginalised."""
    m, V, number = coordinates(alpha, C, K, gone)
    left = len(m) - number
    precision = np.linalg.inv(V)
    covariance = V[:left, :left] if turned else np.linalg.inv(precision[:left, :left])
    mean = m[:left] if turned else covariance @ (precision @ m)[:left]
    pruned = np.append(mean, np.zeros(number)), block_diag(covariance, np.eye(number))
    return kl_divergence(m, V, *pruned) if turned else kl_divergence(*pruned, m, V)


def one_by_one(alpha, C, K, gone):
    paid, names = 0.0, list(range(len(K)))
    for name in gone:
        i = names.index(name)
        paid += all_at_once(alpha, C, K, [i])
        stay = np.arange(len(K)) != i
        (alpha, C), K, names = forget(alpha, C, K, i), K[np.ix_(stay, stay)], np.delete(names, i).tolist()
    return paid


def popping(alpha, C, K, gone):
    """Takes the names out of the list itself."""
    taken = []
    while gone:
        taken.append(gone.pop(0))
    return one_by_one(alpha, C, K, taken)


def of_the_mean(alpha, C, K, gone):
    m, V, number = coordinates(alpha, C, K, gone)
    return 0.5 * m[-number:] @ np.linalg.solve(V[-number:, -number:], m[-number:])


def logs_apart(alpha, C, K, gone):
    """The log variances of the coordinates in place of their log determinant."""
    variances = np.diag(C + np.linalg.inv(K))[gone] / np.diag(np.linalg.inv(K))[gone]
    _, V, number = coordinates(alpha, C, K, gone)
    return all_at_once(alpha, C, K, gone) + 0.5 * (np.log(variances).sum() - np.linalg.slogdet(V[-number:, -number:])[1])


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
    "cs-3-prune": all_at_once,
    "cs-4-swap": swap,
    "cs-5-disguise": (0.7, 0.45, 6.0),
    "cs-6-yours": (FIRST, SECOND, FULL),
    "cs-7-nystrom": ([0.0], [5.0], 5.0, 0.1),
    "cs-8-order": sent_ahead(10),
}
ALSO_RIGHT = [
    ("cs-3-prune", one_by_one),
    ("cs-3-prune", popping),
    ("cs-6-yours", (FIRST, 1e-3 * -SECOND, FULL)),          # has forgotten these places: hardly moves, and any way it likes
    ("cs-6-yours", (FIRST, np.roll(SECOND, 12), FULL)),     # a time series, and the wrong hump
    ("cs-6-yours", (FIRST, 0 * FULL, FULL)),
    ("cs-7-nystrom", [[0.0], [5.0], 5.0, 0.1]),
    ("cs-8-order", far_from_the_basis()),
]
WRONG = [
    ("cs-3-prune", lambda *given: 2 * all_at_once(*given), "½"),
    ("cs-3-prune", lambda *given: all_at_once(*given, turned=True), "other direction"),
    ("cs-3-prune", lambda *given: all_at_once(*given) + len(given[3]) / 2, "precision of 1"),
    ("cs-3-prune", of_the_mean, "lost mean"),
    ("cs-3-prune", lambda *given: sum(all_at_once(*given[:3], [i]) for i in given[3]), "sum of the single prices"),
    ("cs-3-prune", logs_apart, "do not add up to a log determinant"),
    ("cs-3-prune", lambda *given: all_at_once(*given[:3], given[3][:1]), "right for a single one, not for 2"),
    ("cs-3-prune", lambda *given: 1.0, "not the price of a single one"),
    ("cs-4-swap", struck_out, "the others were left"),
    ("cs-4-swap", condition, "moves the values that stay"),
    ("cs-4-swap", newcomer_first, "only in another order"),
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
    ("cs-8-order", np.arange(100), "no datum waits"),
    ("cs-8-order", sent_ahead(11, 10), "one place more than the room has"),
    ("cs-8-order", np.roll(np.arange(100), -1), "Its distance is"),
    ("cs-8-order", np.roll(np.arange(100), 1), "it has not come in yet"),
    ("cs-8-order", sent_ahead(20, 19), "it has not come in yet"),
    ("cs-8-order", np.argsort(sent_ahead(10)), "when each datum is read"),
    ("cs-8-order", np.argsort(far_from_the_basis()), "when each datum is read"),
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


@pytest.mark.filterwarnings("error")
def test_a_constant_stream_is_compared_without_a_warning():
    assert feedback("cs-6-yours", (0 * FULL, SECOND, FULL)) is None
    assert feedback("cs-6-yours", (FIRST, -SECOND, FULL)).startswith("one of the streams runs against")
