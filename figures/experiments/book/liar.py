"""EP on six answers that contradict each other, some of which are lies: several fixed points, or none.

With `moment(question, answer, mean, variance)`, the log-normaliser of one answer and its two derivatives, call
`game(d, moment, factor)` for what EP finds at distance d, and `draw(fig, found)` with `describe(d, found)` for its picture.
"""

import numpy as np

from figures.drawing import style

SPREAD = 25.0       # prior variance of the number
ORDERS = 12
LEAST = 1e-3        # a cavity of a smaller precision is none
GRID = np.linspace(-60, 60, 6001)


def questions(d):
    """Three questions answered "yes, larger" above d, three answered "no" below -d: (6,) and answers (6,)."""
    above = d + np.array([0.0, 0.3, 0.6])
    return np.r_[above, -above], np.repeat([1.0, -1.0], 3)


def log_integral(precision, shift):
    """G: the log-integral of exp(shift f - ½ precision f²)."""
    return 0.5 * (shift**2 / precision - np.log(precision / (2 * np.pi)))


def fixed_points(d, moment, step=0.2, sweeps=2000, tolerance=1e-9, seed=11):
    """EP from flat sites in several random orders of the answers, all orders at once.

    Returns
    -------
    list of (mean, sd, log evidence, tau (6,)), or None for an order that loses its Gaussian or does not settle
    """
    rng = np.random.default_rng(seed)
    orders = np.array([rng.permutation(6) for _ in range(ORDERS)])
    x, y = questions(d)
    tau, nu = np.zeros((2, ORDERS, 6))
    running, lost = np.arange(ORDERS), np.zeros(ORDERS, dtype=bool)
    for _ in range(sweeps):
        change = np.zeros(ORDERS)
        for n in orders.T:
            n, r = n[running], running
            precision = 1 / SPREAD + tau[r].sum(axis=1) - tau[r, n]
            shift = nu[r].sum(axis=1) - nu[r, n]
            proper = precision > LEAST
            lost[r[~proper]] = True
            n, r, precision, shift = n[proper], r[proper], precision[proper], shift[proper]
            mean, variance = shift / precision, 1 / precision
            _, d1, d2 = moment(x[n], y[n], mean, variance)
            moves = np.array([-d2, d1 - d2 * mean]) / (1 + d2 * variance) - [tau[r, n], nu[r, n]]
            tau[r, n], nu[r, n] = [tau[r, n], nu[r, n]] + step * moves
            change[r] = np.maximum(change[r], np.abs(moves).max(axis=0))
            lost[r[1 / SPREAD + tau[r].sum(axis=1) <= LEAST]] = True
            running = running[~lost[running]]
        running = running[change[running] >= tolerance]
        if not len(running):
            break
    lost[running] = True
    return [None if lost[r] else _end(x, y, tau[r], nu[r], moment) for r in range(ORDERS)]


def _end(x, y, tau, nu, moment):
    """Mean, sd, log evidence and site precisions of one fixed point."""
    precision, shift = 1 / SPREAD + tau.sum(), nu.sum()
    left, pull = precision - tau, shift - nu
    log_Z, _, _ = moment(x, y, pull / left, 1 / left)
    whole = log_integral(precision, shift)
    log_evidence = whole - log_integral(1 / SPREAD, 0.0) + np.sum(log_Z + log_integral(left, pull) - whole)
    return shift / precision, precision**-0.5, log_evidence, tau


def game(d, moment, factor):
    """What EP finds at distance d, and the truth on a grid.

    Parameters
    ----------
    factor : function (question, answer, f) -> probability of the answer

    Returns
    -------
    dict with density (6001,) on GRID, not normalised; log_Z; points, {(mean, sd): end}; failed, how many orders found none
    """
    ends = fixed_points(d, moment)
    points = {(round(end[0], 2) + 0.0, round(end[1], 2)): end for end in ends if end is not None}
    x, y = questions(d)
    prior = np.exp(-0.5 * GRID**2 / SPREAD) / np.sqrt(2 * np.pi * SPREAD)
    density = prior * np.prod([factor(question, answer, GRID) for question, answer in zip(x, y)], axis=0)
    log_Z = np.log(density.sum() * (GRID[1] - GRID[0]))
    return {"density": density, "log_Z": log_Z, "points": points, "failed": sum(end is None for end in ends)}


def draw(fig, found):
    """The true posterior and every fixed point of EP."""
    ax = fig.subplots()
    shown = np.flatnonzero(np.abs(GRID) <= 20)[::4]     # enough points for a picture
    f = GRID[shown]
    ax.fill_between(f, found["density"][shown] / np.exp(found["log_Z"]), color=style.colours["exact"], alpha=0.25, linewidth=0,
                    label="true posterior")
    for (mean, sd), colour in zip(sorted(found["points"]), ("#00729f", "#b35900", "#a63f8c", "#6b5fc4"), strict=False):
        q = np.exp(-0.5 * ((f - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        ax.plot(f, q, color=colour, label=f"EP: mean {mean:.1f}, sd {sd:.1f}")
    if found["failed"]:
        ax.text(0.02, 0.95, f"{found['failed']} of {ORDERS} orders\nreach no fixed point", transform=ax.transAxes, va="top",
                color=style.colours["ep"])
    ax.set(xlim=(-20, 20), ylim=(0, 0.4), xlabel="f", yticks=[])
    ax.spines["left"].set_visible(False)
    ax.legend(loc="upper right")


def describe(d, found):
    """The frame in words and numbers."""
    points = [f"mean {mean:.1f}, standard deviation {sd:.1f}" for mean, sd in sorted(found["points"])]
    return (f"Contradicting answers at distance {d:.1f}: fixed points of EP found: {'; '.join(points) or 'none'}; "
            f"{found['failed']} of {ORDERS} orders reach none. The true posterior is symmetric about 0.")
