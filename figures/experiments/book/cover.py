"""The picture of the README: `python -m figures.experiments.book.cover` draws it anew into _static/cover.png."""

import matplotlib.pyplot as plt
import numpy as np

from figures import FOLDER
from figures.drawing import style
from figures.experiments.book import start_here

PATH = FOLDER.parent / "_static" / "cover.png"


def draw(alphas=(0.0, 0.75, 1.0)):
    """Real data and the sparse fit at three powers, side by side; returns the figure."""
    X, y = start_here.standardised(start_here.PICTURE)
    fig, panels = plt.subplots(1, len(alphas), figsize=(11, 3.4), sharey=True)
    for ax, alpha in zip(panels, alphas):
        model = start_here.learn(X, y, alpha)
        start_here.draw_fit(ax, model, X, y)
        ax.set_title(f"{style.alpha_label(alpha)}: noise {np.sqrt(model.noise):.2f}", color=style.alpha_colour(alpha))
        ax.label_outer()
    return fig


if __name__ == "__main__":
    style.use()
    draw().savefig(PATH, dpi=100)
    print(f"wrote {PATH}")
