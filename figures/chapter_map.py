"""Which chapter needs which: the map on the first page."""

from matplotlib.patches import FancyBboxPatch

from figures import style

# name: (place of the box's centre in inches, what it says)
CHAPTERS = {
    "gp-features": ((0.9, 0.65), "Gaussian\nprocesses,\nfeatures"),
    "ep-step-by-step": ((2.7, 0.65), "EP,\nstep by\nstep"),
    "power-ep": ((4.5, 0.65), "Power EP\nand its\nlimits"),
    "sparse-regression": ((6.3, 0.65), "Sparse\nregression:\none family"),
}
NEEDS = [("gp-features", "ep-step-by-step"), ("ep-step-by-step", "power-ep"), ("power-ep", "sparse-regression"),
         ("gp-features", "sparse-regression")]
WIDTH, HEIGHT = 1.4, 1.0


def draw(fig):
    """Boxes and arrows into an empty figure of 7.2 x 2 inches."""
    ax = fig.add_axes((0, 0, 1, 1))
    ax.axis("off")
    ax.set(xlim=(0, 7.2), ylim=(0, 2), aspect="equal")
    for place, text in CHAPTERS.values():
        corner = (place[0] - WIDTH / 2, place[1] - HEIGHT / 2)
        ax.add_patch(FancyBboxPatch(corner, WIDTH, HEIGHT, boxstyle="round,pad=0.02,rounding_size=0.12",
                                    facecolor="white", edgecolor=style.INK, linewidth=1.2))
        ax.text(*place, text, ha="center", va="center", fontsize=12)
    for first, second in NEEDS:
        neighbours = abs(list(CHAPTERS).index(first) - list(CHAPTERS).index(second)) == 1
        _arrow(ax, CHAPTERS[first][0], CHAPTERS[second][0], arched=not neighbours)
    ax.text(3.6, 1.77, "short cut: in regression nothing has to be iterated", ha="center", va="center", fontsize=11,
            color=style.colours["data"], bbox={"facecolor": style.CARD, "edgecolor": "none", "pad": 1.5})


def _arrow(ax, start, end, arched):
    if arched:
        start, end = (start[0], start[1] + HEIGHT / 2 + 0.04), (end[0], end[1] + HEIGHT / 2 + 0.04)
    else:
        start, end = (start[0] + WIDTH / 2 + 0.04, start[1]), (end[0] - WIDTH / 2 - 0.04, end[1])
    ax.annotate("", end, start, arrowprops={
        "arrowstyle": "-|>", "linewidth": 1.6, "color": style.INK, "shrinkA": 0, "shrinkB": 0,
        "connectionstyle": "arc,angleA=90,angleB=90,armA=34,armB=34,rad=14" if arched else "arc3"})
