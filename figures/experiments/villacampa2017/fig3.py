"""Two inputs, three classes: where four methods put their pseudo-inputs (villacampa2017 figure 3).

Three functions are drawn from the prior, 1000 inputs fall on a square, and the label is the largest function. The kernel is held
at what made the data and the noise at 0.01; only the pseudo-inputs of each class are learnt, from one random start for all.
EP, SEP and GFITC take 2000 steps of Adam on all data, each after one sweep; VI takes 2000 epochs of batches of 100.
"""

import warnings
from functools import cache
from itertools import groupby

import numpy as np

from figures.drawing import style
from pepcore.kernels import SquaredExponential
from pepcore.multiclass import learning
from pepcore.multiclass.minibatch import fit_minibatch

BOX, N, N_TEST, CLASSES = 2.5, 1000, 4000, 3
KERNEL, NOISE = SquaredExponential(1.0, np.array([1.0, 1.0])), 1e-2
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
MAP_SIDE, TRUTH_SIDE = 80, 120  # points along a side of the maps that are kept, and of the true one
METHODS = ("ep", "sep", "gfitc", "vi")
JUDGED, SEEDS = 64, (1, 2)  # the size that the ledger judges, and further draws of that size
ITERATIONS, RATE, VI_EPOCHS = 2000, 0.001, 2000
SPREAD = BOX / np.sqrt(3)  # of inputs that fall on the square, the unit in which `learning.fit` moves pseudo-inputs
OUTPUTS = ("error_rate", "boundary_distance", "neighbour_distance", "start_boundary_distance", "start_neighbour_distance",
           "places", "map")
NAMES = {"ep": "EP", "sep": "SEP", "gfitc": "GFITC", "vi": "VI"}


def grid():
    """All sizes of the first draw, which the chapter shows, and one size of two more, for the ledger."""
    runs = [(0, M) for M in SIZES] + [(seed, JUDGED) for seed in SEEDS]
    return [{"seed": seed, "M": M, "method": method} for seed, M in runs for method in METHODS]


class Problem:
    """Three functions of two inputs, the sum of 500 random cosines each, and the labels that they make."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.frequencies, self.phases = rng.standard_normal((2, 500)), rng.uniform(0, 2 * np.pi, 500)
        self.weights = rng.standard_normal((500, CLASSES))
        self.X = rng.uniform(-BOX, BOX, (N, 2))
        self.y = self.label(self.X)
        self.X_test = rng.uniform(-BOX, BOX, (N_TEST, 2))
        self.starts = [self.X[rng.choice(N, max(SIZES), replace=False)] for _ in range(CLASSES)]

    def label(self, X):
        """The largest function at X (S, 2)."""
        return (np.cos(X @ self.frequencies + self.phases) @ self.weights).argmax(axis=1)

    def start(self, M):
        """C arrays (M, 2): the first M of a random choice of data for each class."""
        return [Z[:M].copy() for Z in self.starts]

    def boundary(self, side=201):
        """Points (B, 2) at which the label changes, on a square lattice a little larger than the data's."""
        axis = np.linspace(-1.1 * BOX, 1.1 * BOX, side)
        first, second = np.meshgrid(axis, axis, indexing="ij")
        labels = self.label(np.stack([first.ravel(), second.ravel()], axis=1)).reshape(side, side)
        half = 0.5 * (axis[1] - axis[0])
        across, up = labels[1:] != labels[:-1], labels[:, 1:] != labels[:, :-1]
        return np.vstack([np.stack([first[:-1][across] + half, second[:-1][across]], axis=1),
                          np.stack([first[:, :-1][up], second[:, :-1][up] + half], axis=1)])


@cache
def problem(seed):
    return Problem(seed)


def compute(seed, M, method, iterations=ITERATIONS, epochs=VI_EPOCHS):
    """Learn the pseudo-inputs; the test error, and how far they are from the true boundaries and from each other."""
    data = problem(seed)
    start = data.start(M)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "EP has not converged")
        if method == "vi":
            model = fit_minibatch(KERNEL, start, (data.X, data.y), approximation="vi", noise=NOISE, classes=CLASSES, batch=100,
                                  epochs=epochs, rate=RATE, optimise=("Z",), spread=np.ones(2), seed=seed)
        else:
            model = learning.fit(KERNEL, data.X, data.y, Z=start, approximation=method, noise=NOISE, classes=CLASSES,
                                 update="inner", optimiser="adam", rate=RATE / SPREAD, iterations=iterations,
                                 optimise=("Z",))
    wrong = model.predict_y(data.X_test).argmax(axis=1) != data.label(data.X_test)
    labels = model.predict_y(lattice(MAP_SIDE)).argmax(axis=1).reshape(MAP_SIDE, MAP_SIDE)
    boundary = data.boundary()
    found = {"error_rate": float(wrong.mean()), "boundary_distance": to_boundary(model.Z, boundary),
             "neighbour_distance": to_neighbour(model.Z), "start_boundary_distance": to_boundary(start, boundary),
             "start_neighbour_distance": to_neighbour(start)}
    return found | {"places": write_places(model.Z), "map": write_map(labels)}


def to_boundary(Z, boundary):
    """Mean distance of the pseudo-inputs of all classes to the nearest point of the boundary (B, 2)."""
    points = np.vstack(Z)
    return float(np.mean([np.sqrt(((boundary - z) ** 2).sum(axis=1).min()) for z in points]))


def to_neighbour(Z):
    """Median distance of a pseudo-input to the nearest other one of its class; 0 where it is alone."""
    if len(Z[0]) == 1:
        return 0.0
    distances = []
    for points in Z:
        square = ((points[:, None] - points) ** 2).sum(axis=-1)
        np.fill_diagonal(square, np.inf)
        distances.append(np.sqrt(square.min(axis=1)))
    return float(np.median(np.concatenate(distances)))


def write_places(Z):
    """C arrays (M, 2) as one word, to three digits."""
    return "|".join(";".join(f"{a:.3f},{b:.3f}" for a, b in points) for points in Z)


def read_places(text):
    """C arrays (M, 2) of a row of the results."""
    return [np.array([[float(part) for part in pair.split(",")] for pair in points.split(";")]) for points in text.split("|")]


def lattice(side):
    """(side², 2) points over the square, the first coordinate moving fastest."""
    axis = np.linspace(-BOX, BOX, side)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def write_map(labels):
    """Classes (side, side) as one word: in each row the runs of equal ones, and how long they are."""
    return "|".join(",".join(f"{label}x{len(list(run))}" for label, run in groupby(row)) for row in labels.tolist())


def read_map(text):
    """The classes (side, side) of a row of the results."""
    runs = [[run.split("x") for run in row.split(",")] for row in text.split("|")]
    return np.array([[int(label) for label, count in row for _ in range(int(count))] for row in runs])


def draw(fig, results, M, seed=0):
    """The four methods: data, boundaries found and true, pseudo-inputs."""
    data = problem(seed)
    fine, coarse = np.linspace(-BOX, BOX, TRUTH_SIDE), np.linspace(-BOX, BOX, MAP_SIDE)
    truth = data.label(lattice(TRUTH_SIDE)).reshape(TRUTH_SIDE, TRUTH_SIDE)
    colours = style.CYCLE[:CLASSES]
    for ax, method in zip(fig.subplots(2, 2, sharex=True, sharey=True).ravel(), METHODS):
        (row,) = results[(results["seed"] == seed) & (results["M"] == M) & (results["method"] == method)].to_dict("records")
        labels = read_map(row["map"])
        for c in range(CLASSES):
            ax.plot(*data.X[data.y == c].T, ".", color=colours[c], ms=2, alpha=0.35)
            ax.contour(fine, fine, truth == c, [0.5], colors=style.colours["truth"], linewidths=0.8, linestyles=":")
            ax.contour(coarse, coarse, labels == c, [0.5], colors=style.INK, linewidths=1.4)
        size = 5.5 if M <= 32 else 3
        for c, points in enumerate(read_places(row["places"])):
            ax.plot(*points.T, "o", color=colours[c], markeredgecolor=style.INK, ms=size, mew=size / 6)
        ax.set(xlim=(-BOX, BOX), ylim=(-BOX, BOX), xticks=[-2, 0, 2], yticks=[-2, 0, 2], aspect="equal")
        style.label(ax, x="$x_1$", y="$x_2$", title=f"{NAMES[method]}: error {100 * row['error_rate']:.1f} %").label_outer()


FIGURES = {f"M{M}": (lambda fig, results, M=M: draw(fig, results, M), (7, 6.6)) for M in SIZES}
