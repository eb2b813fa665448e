"""Three parametrisations of an orthogonally decoupled process and the ways between them, salimbeni2018 figure 1 redrawn."""

import numpy as np

from figures.drawing import style
from pepcore.decoupled.natural import from_expectation, from_natural, to_expectation, to_natural

BOXES = {  # name -> centre, heading, what it holds
    "model": ((0.5, 0.8), "model", r"$g,\quad m,\quad V$"),
    "natural": ((0.17, 0.2), "natural", r"$g,\quad b,\quad P$"),
    "expectation": ((0.83, 0.2), "expectation", r"$\theta_g,\quad m,\quad \Theta$"),
}
ARROWS = (  # from, to, formula, where it stands
    ("model", "natural", r"$P=V^{-1}$" "\n" r"$b=V^{-1}m$", (0.44, 0.56), "left"),
    ("natural", "model", r"$V=P^{-1},\ m=Vb$", (0.06, 0.56), "left"),
    ("model", "expectation", r"$\theta_g=Rg$" "\n" r"$\Theta=-\frac{1}{2}(V+mm^\top)$", (0.98, 0.6), "right"),
    ("expectation", "model", r"$g=R^{-1}\theta_g$" "\n" r"$V=-2\Theta-mm^\top$", (0.66, 0.4), "right"),
    ("natural", "expectation", r"$\nabla \mathcal{A}$", (0.5, 0.275), "center"),
    ("expectation", "natural", r"$\nabla \mathcal{A}^{*}$", (0.5, 0.075), "center"),
)


def draw(fig):
    """Boxes for the three sets of parameters; each arrow carries its formula."""
    ax = fig.add_axes([0.02, 0.02, 0.96, 0.96])
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.axis("off")
    for (x, y), heading, text in BOXES.values():
        ax.text(x, y, f"{heading}\n{text}", ha="center", va="center", linespacing=1.6, zorder=3,
                bbox={"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": style.CYCLE[0]})
    for start, end, text, place, side in ARROWS:
        one, other = (np.array(BOXES[name][0]) for name in (start, end))
        along = (other - one) / np.linalg.norm(other - one)
        shift = 0.022 * np.array([-along[1], along[0]])  # the way there and the way back lie side by side
        margin = 0.2 if abs(along[1]) < 0.1 else 0.21
        ax.annotate("", xy=other - margin * along + shift, xytext=one + margin * along + shift,
                    arrowprops={"arrowstyle": "-|>", "color": style.INK, "lw": 1.2, "shrinkA": 0, "shrinkB": 0})
        ax.text(*place, text, ha=side, va="center")


def round_trip(bases, model):
    """The largest difference, relative to the largest number, after going to each of the other parametrisations and back."""
    there = (from_natural(to_natural(model)), from_expectation(bases, to_expectation(bases, model)))
    pairs = [(value, getattr(back, name)) for back in there for name, value in vars(model).items()]
    return float(max(np.abs(value - returned).max() / np.abs(value).max() for value, returned in pairs))
