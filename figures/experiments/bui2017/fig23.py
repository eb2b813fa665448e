"""Where do pseudo-inputs go? The study of bui2017 figure 23, with numbers: distances to the boundary against the power.

Two classes in the plane (`generators.banana`) whose boundary, the curve on which P(y = +1) = ½, is a known parabola. M
pseudo-inputs and, or not, the kernel are learnt by L-BFGS from the same start for every power. The distance of a point is
that to the nearest point of the parabola, in standard deviations of the inputs.

With `results = runner.results("bui_fig23")` call `distances(results)` for a table, `draw_placement(fig, results, alpha)` and
`describe_placement(results, alpha)` for a slider over ALPHAS, and `draw_distances(fig, results)` for all data sets at once.
`distance_ratio(alpha)` and `distance_growth()` are the numbers of the claim, with their 95 % intervals. What α = 1 is about
show `wants_residual(fit, X, y)` and `other_model(fit, X, y)`, for a fit of `placement(results, alpha)` and `load(data)`.
"""

from functools import cache

import numpy as np
import pandas as pd
from scipy.spatial import Delaunay
from scipy.special import log_ndtr

from figures.drawing import style
from figures.experiments import runner
from figures.experiments.significance import Estimate, student
from pepcore import exact, metrics, power_ep, training
from pepcore.datasets import generators
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit
from pepcore.sites import cavity

ALPHAS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
SETS = range(8)
N, N_TEST, M = 400, 2000, 10
MAX_EVALUATIONS = 300
TOLERANCE = 1e-7
OUTPUTS = ("distance", "median", "data_distance", "data_median", "outside", "residual_near", "residual_far", "wants_residual",
           "log_evidence", "full_log_evidence", "nll", "full_nll", "variance", "lengthscale0", "lengthscale1",
           *(f"z{m}_{d}" for m in range(M) for d in range(2)), "evaluations", "converged")
VIEW = 3.2          # half the side of the picture
BOUNDARY = np.stack([t := np.linspace(-7, 7, 14001), t**2 - 1], axis=1)


def grid():
    """All powers with the kernel learnt, then three with the kernel that the full GP learns; data set by data set."""
    for data in SETS:
        yield from ({"data": data, "kernel": "learnt", "alpha": alpha} for alpha in ALPHAS)
        yield from ({"data": data, "kernel": "given", "alpha": alpha} for alpha in (0.0, 0.5, 1.0))


def compute(data, kernel, alpha):
    """One run, measured on its pseudo-inputs and on fresh labels."""
    X, y = load(data)
    full = full_gp(data)
    learn = ("kernel", "Z") if kernel == "learnt" else ("Z",)
    model = training.fit(full.kernel, X, y, M=M, alpha=alpha, infer=power_ep.infer, likelihood=Probit(), optimise=learn,
                         max_evaluations=MAX_EVALUATIONS, tolerance=TOLERANCE, seed=data)
    from_Z, from_X = distance(model.Z), distance(X)
    _, h = model.posterior.basis.features(X)
    share = h / model.kernel.variance
    near = from_X < np.median(from_X)
    test = generators.banana(1000 + data, N=N_TEST)
    return {"distance": from_Z.mean(), "median": np.median(from_Z), "data_distance": from_X.mean(),
            "data_median": np.median(from_X), "outside": outside(model.Z, X), "residual_near": share[near].mean(),
            "residual_far": share[~near].mean(), "wants_residual": wants_residual(model.fit, X, y).mean(),
            "log_evidence": model.fit.log_evidence, "full_log_evidence": full.fit.log_evidence,
            "nll": metrics.nll_binary(test.y, model.predict_y(test.X)),
            "full_nll": metrics.nll_binary(test.y, full.predict_y(test.X)),
            "variance": model.kernel.variance, "lengthscale0": model.kernel.lengthscales[0],
            "lengthscale1": model.kernel.lengthscales[1],
            **{f"z{m}_{d}": model.Z[m, d] for m in range(M) for d in range(2)},
            "evaluations": model.evaluations, "converged": model.converged}


def load(data):
    """X (N, 2) and y (N,) of one data set."""
    banana = generators.banana(data, N=N)
    return banana.X, banana.y


@cache
def full_gp(data):
    """The full GP with EP and the kernel that it learns, the start of every run."""
    X, y = load(data)
    return training.fit(None, X, y, infer=exact.infer, likelihood=Probit(), alpha=1.0, tolerance=TOLERANCE)


def distance(points):
    """Distance (S,) of points (S, 2) to the parabola x₂ = x₁² − 1, to three digits."""
    return np.array([np.sqrt(((BOUNDARY - point) ** 2).sum(axis=1).min()) for point in points])


def outside(Z, X):
    """Fraction of Z (M, 2) outside the convex hull of X (N, 2)."""
    return (Delaunay(X).find_simplex(Z) < 0).mean()


def wants_residual(fit, X, y):
    """Whether the evidence would rise with the residual variance of each datum: ∂F/∂h = ½ (l″ + α l′²) > 0, (N,) bool.

    At α = 0 never, since l is concave; above it, for labels that surprise.

    Source: the gradient of `pepcore.power_ep.infer`.
    """
    _, h = fit.posterior.basis.features(X)
    mean, variance = fit.predict_f(X)
    cavity_mean, cavity_variance = cavity(mean, variance - h, fit.sites, fit.alpha)
    _, d1, d2 = fit.likelihood.log_moment(y, cavity_mean, cavity_variance + h, fit.alpha)
    return d2 + fit.alpha * d1**2 > 0


def other_model(fit, X, y, draws=20_000, seed=0):
    """Evidence of the model whose residuals are independent, p(y) = E over v of Π Φ(yₙ aₙᵀv/√(1 + hₙ)), and its error.

    This is what EP approximates when pseudo-inputs are learnt at α = 1: not the GP, but a neighbour that may call its
    residual variance label noise. Importance sampling from the posterior of `fit`, a little widened.

    Returns
    -------
    log evidence, its standard error
    """
    A, h = fit.posterior.basis.features(X)
    mean, V = fit.posterior.whitened()
    root = 1.15 * np.linalg.cholesky(V)
    white = np.random.default_rng(seed).standard_normal((draws, len(mean)))
    v = mean + white @ root.T
    log_weights = (log_ndtr(y * (v @ A) / np.sqrt(1 + h)).sum(axis=1) - 0.5 * (v**2).sum(axis=1)
                   + 0.5 * (white**2).sum(axis=1) + np.log(np.diag(root)).sum())
    weights = np.exp(log_weights - log_weights.max())
    error = weights.std() / weights.mean() / np.sqrt(draws)
    return float(np.log(weights.mean()) + log_weights.max()), float(error)


# Numbers --------------------------------------------------------------------------------------------------------------

def distances(results, kernel="learnt"):
    """Distance to the boundary against the power: mean over pseudo-inputs and data sets, with its standard error.

    Returns
    -------
    DataFrame indexed by alpha with distance, error and outside (fraction of pseudo-inputs outside the data's hull)
    """
    runs = results[results["kernel"] == kernel].groupby("alpha")
    return pd.DataFrame({"distance": runs["distance"].mean(), "error": runs["distance"].sem(), "median": runs["median"].mean(),
                         "outside": runs["outside"].mean(), "nll": runs["nll"].mean()})


def distance_ratio(alpha, kernel="learnt"):
    """Distance of the pseudo-inputs to the boundary over that of the data, geometric mean over the data sets.

    1 is spread as the data are, below 1 nearer to the boundary. The interval is Student's over the data sets.
    """
    return _geometric_mean(_ratios(runner.results("bui_fig23"), kernel)[alpha])


def distance_growth(kernel="learnt"):
    """How many times farther from the boundary the pseudo-inputs of α = 1 are than those of α = 0, on the same data.

    The geometric mean over the data sets, with Student's interval.
    """
    ratios = _ratios(runner.results("bui_fig23"), kernel)
    return _geometric_mean(ratios[1.0] / ratios[0.0])


def _ratios(results, kernel):
    """Distance of the pseudo-inputs over that of the data: one row per data set, one column per power."""
    runs = results[results["kernel"] == kernel]
    return runs.assign(ratio=runs["distance"] / runs["data_distance"]).pivot(index="data", columns="alpha", values="ratio")


def _geometric_mean(ratios):
    return Estimate(*map(float, np.exp(student(np.log(ratios.dropna())))))


# Pictures -------------------------------------------------------------------------------------------------------------

def placement(results, alpha, data=0, kernel="learnt"):
    """The learnt model of one run, from its row: Fit, pseudo-inputs (M, 2), and the row."""
    rows = results[(results["data"] == data) & (results["kernel"] == kernel) & (results["alpha"] == alpha)]
    (row,) = rows.to_dict("records")
    Z = np.array([[row[f"z{m}_{d}"] for d in range(2)] for m in range(M)])
    learnt = SquaredExponential(row["variance"], [row["lengthscale0"], row["lengthscale1"]])
    return power_ep.infer(learnt, Z, *load(data), Probit(), alpha=alpha), Z, row


def draw_placement(fig, results, alpha, data=0, kernel="learnt"):
    """Data, pseudo-inputs, the known boundary and the learnt one (bui2017 figure 23); best in 5 x 5 inches."""
    draw_places(fig.subplots(), results, alpha, data, kernel)


def draw_placements(fig, results, alphas=(0.0, 0.5, 1.0)):
    """The same for several powers side by side; best in 7 x 2.9 inches."""
    panels = fig.subplots(1, len(alphas), sharey=True)
    for ax, alpha in zip(panels, alphas):
        draw_places(ax, results, alpha, size=8)
        ax.set(xlabel="", ylabel="")
    fig.supxlabel("first input")
    panels[0].set_ylabel("second input")


def draw_places(ax, results, alpha, data=0, kernel="learnt", size=12):
    """One panel of it; every pseudo-input is shown, with a number where several share a place or have left together."""
    fit, Z, row = placement(results, alpha, data, kernel)
    X, y = load(data)
    for label, name in ((1, "positive"), (-1, "negative")):
        ax.plot(*X[y == label].T, "o", ms=0.3 * size, mew=0, alpha=0.55, color=style.colours[name])
    side = np.linspace(-VIEW, VIEW, 90)
    mesh = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    p = fit.predict_y(mesh).reshape(90, 90)
    ax.contour(side, side, p, levels=[0.5], colors=[style.alpha_colour(alpha)], linewidths=2.5)
    ax.plot(*BOUNDARY.T, ls="--", lw=1.5, color=style.colours["truth"])
    inside = np.abs(Z).max(axis=1) <= VIEW
    ax.plot(*Z[inside].T, "^", ms=size, color=style.colours["pseudo"], mec=style.CARD, mew=1.2)
    for place, count in _stacks(Z[inside]):
        if count > 1:
            ax.text(*(place + 0.2), f"{count}", color=style.INK, weight="bold", gid="stacked")
    at_frame = Z[~inside] * (VIEW - 0.1) / np.abs(Z[~inside]).max(axis=1, keepdims=True)
    for place, count in _stacks(at_frame):      # an arrow at the frame for those that have left the picture
        ax.annotate("", place, 0.85 * place, arrowprops={"arrowstyle": "-|>", "lw": 2.5, "color": style.colours["pseudo"]})
        if count > 1:
            ax.text(*(0.78 * place), f"{count}", color=style.INK, weight="bold", gid="left")
    ax.set(xlim=(-VIEW, VIEW), ylim=(-VIEW, VIEW), aspect="equal")
    between = ": " if size == 12 else "\n"
    style.label(ax, x="first input", y="second input", title=f"{style.alpha_label(alpha)}{between}distance {row['distance']:.2f}")


def _stacks(places, near=0.25):
    """Places less than `near` apart count as one: the first of each, and how many they are."""
    left = list(range(len(places)))
    while left:
        close = [m for m in left if np.hypot(*(places[m] - places[left[0]])) < near]
        yield places[close[0]], len(close)
        left = [m for m in left if m not in close]


def describe_placement(results, alpha, data=0, kernel="learnt"):
    """The frame in words and numbers."""
    _, Z, row = placement(results, alpha, data, kernel)
    gone = int((np.abs(Z).max(axis=1) > VIEW).sum())
    left = f", {gone} of them beyond the picture" if gone else ""
    text = (f"α = {alpha:.2f}. {M} pseudo-inputs at a mean distance of {row['distance']:.2f} from the boundary{left}; that of "
            f"the data is {row['data_distance']:.2f}. Log evidence {row['log_evidence']:.1f}, of the full GP "
            f"{row['full_log_evidence']:.1f}; test loss {row['nll']:.3f}, of the full GP {row['full_nll']:.3f}.")
    return text.replace("-", "−").replace("pseudo−", "pseudo-")


def draw_distances(fig, results):
    """Distance of the pseudo-inputs over that of the data, one faint line per data set, and their geometric mean."""
    wide = _ratios(results, "learnt")
    ax = fig.subplots()
    ax.axhline(1, color=style.colours["data"], lw=1.5)
    ax.annotate("as far as the data", (1, 1), xytext=(0, -18), textcoords="offset points", ha="right",
                color=style.colours["data"])
    ax.plot(wide.columns, wide.T, color=style.colours["data"], alpha=0.35, lw=1.2)
    mean = np.exp(np.log(wide).mean())
    ax.plot(wide.columns, mean, color=style.INK, lw=1.5)
    ax.scatter(wide.columns, mean, s=70, c=style.alpha_colour(wide.columns.to_numpy()), zorder=3)
    ax.set_yscale("log")
    ax.set_yticks([0.5, 1, 2, 4, 8], ["½", "1", "2", "4", "8"])
    ax.minorticks_off()
    style.label(ax, x="power α", y="distance to the boundary\nover that of the data")


FIGURES = {"fig23": (draw_distances, (7, 3.6))}
