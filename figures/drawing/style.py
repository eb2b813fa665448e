"""One look for every figure of the book.

* The power alpha has one colour scale: blue is 0 (VFE), red is 1 (EP). Its five anchors were chosen so that
  neighbours look equally far apart to readers with each of the three kinds of colour blindness as well.
* Every figure stands on a pale card of its own. For the dark theme `dark.py` inverts the lightness of all but strong colours.

Call `style.use()` once at the top of a chapter; sliders apply the style by themselves.
"""

import matplotlib as mpl
import numpy as np
from IPython import get_ipython
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure

CARD = "#fafaf7"
INK = "#22262b"
GRID = "#dfdfda"

ALPHA_CMAP = LinearSegmentedColormap.from_list("alpha", ["#1a5ceb", "#825cba", "#ac6588", "#cf5b52", "#ee4312"])

# What a thing is decides its colour, in every chapter.
colours = {
    "data": "#5f666d",          # observations: grey, they are the background of every story
    "truth": "#22262b",         # the function or distribution that made the data
    "exact": "#00806a",         # the full Gaussian process, or sampling: what the approximations aim at
    "prior": "#8a8f94",
    "pseudo": "#b87800",        # pseudo-inputs
    "highlight": "#b87800",     # the one datum, site or line that the text speaks of
    "vfe": "#1a5ceb",           # alpha = 0
    "ep": "#ee4312",            # alpha = 1; FITC in regression
    "positive": "#d95f02",      # the two classes of a binary problem
    "negative": "#2b6cb0",
    "grid": GRID,
    "ink": INK,
    "card": CARD,
}

# For things without an order and without a colour of their own (classes, data sets); dark enough for lines on the card.
CYCLE = ["#00729f", "#b35900", "#00806a", "#a63f8c", "#6b5fc4", "#7a6a00", "#5f666d"]

RC = {
    "figure.facecolor": CARD,
    "savefig.facecolor": CARD,
    "axes.facecolor": CARD,
    "figure.figsize": (7.0, 3.6),
    "figure.dpi": 120,
    "savefig.dpi": 120,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.09,     # inches between the drawing and the edge of the card
    "figure.constrained_layout.w_pad": 0.09,
    "font.family": "DejaVu Sans",       # comes with matplotlib: the same letters on every machine
    "mathtext.fontset": "dejavusans",
    "font.size": 14.3,                  # on a phone a 7 inch figure is 390 pixels wide, and these letters 11 pixels
    "axes.titlesize": 14.3,
    "axes.labelsize": 14.3,
    "figure.labelsize": 14.3,
    "xtick.labelsize": 14.3,
    "ytick.labelsize": 14.3,
    "legend.fontsize": 14.3,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.prop_cycle": mpl.cycler(color=CYCLE),
    "axes.axisbelow": True,
    "grid.color": GRID,
    "lines.linewidth": 2.0,
    "lines.markersize": 5.0,
    "legend.frameon": False,
    "image.cmap": "cividis",
    "svg.hashsalt": "figures",
}


def use():
    """Apply the style to every figure drawn from now on, and let the notebook show figures as the book needs them."""
    import matplotlib.pyplot as plt

    from figures.drawing import frames

    mpl.rcParams.update(RC)
    shell = get_ipython()
    if shell:
        plt.switch_backend(mpl.get_backend())       # now: loaded later, it would replace what the next line sets
        shell.display_formatter.formatters["image/png"].for_type(Figure, frames.still)


def context():
    """The style inside a `with` block only."""
    return mpl.rc_context(RC)


def alpha_colour(alpha):
    """Colour of the power alpha, e.g. ``alpha_colour(0.5)`` -> ``"#ac6588"``.

    Parameters
    ----------
    alpha : float in [0, 1], or an array-like of such

    Returns
    -------
    hex string, or a list of them
    """
    values = np.asarray(alpha, dtype=float)
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError(f"alpha_colour: alpha must lie in [0, 1], got {alpha!r}")
    if values.ndim == 0:
        return to_hex(ALPHA_CMAP(float(values)))
    return [to_hex(ALPHA_CMAP(value)) for value in values]


def alpha_label(alpha, ends=("VFE", "EP")):
    """How alpha is written in legends and titles: ``α = 0 (VFE)``, ``α = 0.5``, ``α = 1 (EP)``."""
    name = {0.0: f" ({ends[0]})", 1.0: f" ({ends[1]})"}.get(float(alpha), "")
    return f"α = {alpha:.3g}{name}"


def label(ax, x=None, y=None, title=None, grid=False):
    """Axis labels and title in one call; returns the axes."""
    ax.set(**{key: text for key, text in (("xlabel", x), ("ylabel", y), ("title", title)) if text is not None})
    if grid:
        ax.grid(True)
    return ax


def band(ax, x, mean, variance, colour, label=None, width=2.0, **line):
    """Draw a mean and its band of `width` standard deviations; returns the line.

    Parameters
    ----------
    x, mean, variance : (S,) arrays, x in increasing order
    """
    sd = np.sqrt(variance)
    ax.fill_between(x, mean - width * sd, mean + width * sd, color=colour, alpha=0.16, linewidth=0)
    return ax.plot(x, mean, color=colour, label=label, **line)[0]


def pseudo_inputs(ax, Z, label="pseudo-inputs", y=0.035, limits=None):
    """Mark one-dimensional pseudo-inputs along the foot of the axes, and account for every one of them.

    A triangle stands at each one inside the frame, with its number where several stand in one place (closer than a
    hundredth of the frame). An arrow with a number at the edge tells how many lie outside.

    Parameters
    ----------
    Z : (M,) or (M, 1)
    y : height as a fraction of the axes
    limits : (low, high), ends of the frame; if not given, those that the axes have been set to, or else no ends

    Returns
    -------
    Line2D: the triangles, for the legend
    """
    Z = np.sort(np.ravel(Z))
    if limits is None:
        limits = (-np.inf, np.inf) if ax.get_autoscalex_on() else ax.get_xlim()
    low, high = sorted(limits)
    inside = Z[(Z >= low) & (Z <= high)]
    marks = ax.plot(inside, np.full(len(inside), y), linestyle="none", marker="^", markersize=7, color=colours["pseudo"],
                    markeredgecolor=CARD, markeredgewidth=0.8, transform=ax.get_xaxis_transform(), label=label,
                    zorder=5)[0]
    text = {"color": colours["pseudo"], "fontweight": "bold", "zorder": 6, "annotation_clip": False}
    width = high - low if np.isfinite([low, high]).all() else np.ptp(Z)
    for place in np.split(inside, np.flatnonzero(np.diff(inside) >= 0.01 * width) + 1):
        if len(place) > 1:
            ax.annotate(f"×{len(place)}", (place.mean(), y), xycoords=ax.get_xaxis_transform(), xytext=(0, 5),
                        textcoords="offset points", ha="center", va="bottom", **text)
    for count, edge, arrow in ((np.sum(Z < low), 0, "◀ {}"), (np.sum(Z > high), 1, "{} ▶")):
        if count:
            ax.annotate(arrow.format(count), (edge, y), xycoords="axes fraction", xytext=(3 - 6 * edge, 12),
                        textcoords="offset points", ha=("left", "right")[edge], va="center", **text)
    return marks


def alpha_colourbar(fig, ax, label="power α", ends=("0 · VFE", "½", "1 · EP"), **options):
    """Draw the colour scale of alpha beside `ax`, and return it."""
    bar = fig.colorbar(mpl.cm.ScalarMappable(norm=mpl.colors.Normalize(0, 1), cmap=ALPHA_CMAP), ax=ax, label=label,
                       ticks=[0, 0.5, 1], **options)
    bar.set_ticklabels(list(ends))
    bar.outline.set_visible(False)
    return bar
