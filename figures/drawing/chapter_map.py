"""Which chapter needs which: the map on the first page, without the two studies that only hold a chapter's tables."""

import numpy as np
from matplotlib.patches import FancyBboxPatch

from figures.drawing import style

# name: (place of the box's centre in inches, what it says)
CHAPTERS = {
    "gp-features": ((0.875, 4.25), "Gaussian\nprocesses,\nfeatures"),
    "ep-step-by-step": ((2.625, 4.25), "EP,\nstep by\nstep"),
    "power-ep": ((4.375, 4.25), "Power EP\nand its\nlimits"),
    "sparse-regression": ((6.125, 4.25), "Sparse\nregression:\none family"),
    "orthogonal-natural-gradients": ((0.875, 2.45), "Orthogonal\nnatural\ngradients"),
    "sparse-classification": ((2.625, 2.45), "Sparse\nclassifi-\ncation"),
    "sparse-ep-projection": ((4.375, 2.45), "Sparse EP\nby\nprojection"),
    "which-alpha-regression": ((6.125, 2.45), "Study:\nwhich α?\nregression"),
    "sparse-beyond-probit": ((0.875, 0.65), "Beyond\nthe\nprobit"),
    "stochastic-ep-many-classes": ((2.625, 0.65), "Stochastic\nEP, many\nclasses"),
    "which-alpha-classification": ((4.375, 0.65), "Study:\nwhich α?\nclassifi-\ncation"),
    "which-alpha-for-your-data": ((6.125, 0.65), "Study:\nwhich α for\nyour data?"),
}
NEEDS = [("gp-features", "ep-step-by-step"), ("ep-step-by-step", "power-ep"), ("power-ep", "sparse-regression"),
         ("gp-features", "sparse-regression"), ("power-ep", "sparse-classification"),
         ("sparse-regression", "sparse-ep-projection"), ("sparse-regression", "which-alpha-regression"),
         ("sparse-regression", "orthogonal-natural-gradients"), ("sparse-classification", "orthogonal-natural-gradients"),
         ("sparse-classification", "sparse-beyond-probit"), ("sparse-classification", "stochastic-ep-many-classes"),
         ("sparse-classification", "which-alpha-classification"),
         ("which-alpha-classification", "which-alpha-for-your-data"), ("which-alpha-regression", "which-alpha-for-your-data")]
WIDTH, HEIGHT = 1.4, 1.08
SIZE = (6.8, 5.5)      # of the figure, in inches; its margin makes it 7


def draw(fig):
    """Draw boxes and arrows into an empty figure of this `SIZE`."""
    ax = fig.add_axes((0, 0, 1, 1))
    ax.axis("off")
    ax.set(xlim=(0.1, 0.1 + SIZE[0]), ylim=(0, SIZE[1]), aspect="equal")
    for place, text in CHAPTERS.values():
        corner = (place[0] - WIDTH / 2, place[1] - HEIGHT / 2)
        ax.add_patch(FancyBboxPatch(corner, WIDTH, HEIGHT, boxstyle="round,pad=0.02,rounding_size=0.12",
                                    facecolor="white", edgecolor=style.INK, linewidth=1.2))
        ax.text(*place, text, ha="center", va="center")
    for first, second in NEEDS:
        _arrow(ax, CHAPTERS[first][0], CHAPTERS[second][0])
    ax.text(3.5, 5.22, "short cut: in regression nothing is iterated", ha="center", va="center",
            color=style.colours["data"], bbox={"facecolor": style.CARD, "edgecolor": "none", "pad": 1.5})


def _arrow(ax, start, end):
    """An arrow from box to box: sideways to a neighbour, in an arch over others of the same row, else down to the next row."""
    (x, y), (to_x, to_y) = start, end
    arched = y == to_y and abs(to_x - x) > 2
    if arched:
        start, end = (x, y + HEIGHT / 2 + 0.04), (to_x, to_y + HEIGHT / 2 + 0.04)
    elif y == to_y:
        side = np.sign(to_x - x) * (WIDTH / 2 + 0.04)
        start, end = (x + side, y), (to_x - side, to_y)
    else:
        side = np.sign(x - to_x) * WIDTH / 4
        start, end = (x - side, y - HEIGHT / 2 - 0.04), (to_x + side, to_y + HEIGHT / 2 + 0.04)
    ax.annotate("", end, start, arrowprops={
        "arrowstyle": "-|>", "linewidth": 1.6, "color": style.INK, "shrinkA": 0, "shrinkB": 0,
        "connectionstyle": "arc,angleA=90,angleB=90,armA=34,armB=34,rad=14" if arched else "arc3"})
