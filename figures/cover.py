"""The picture of the README: `python -m figures.cover` draws it anew into _static/cover.png."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from figures import start_here, style

PATH = Path(__file__).resolve().parent.parent / "_static" / "cover.png"


def draw(data="nuclei", alphas=(0.0, 0.5, 1.0)):
    """Real data and the sparse fit at three powers, side by side; returns the figure."""
    X, y = start_here.standardised(data)
    fig, panels = plt.subplots(1, len(alphas), figsize=(11, 3.4), sharey=True)
    for ax, alpha in zip(panels, alphas):
        model = start_here.learn(X, y, alpha)
        start_here.draw_fit(ax, model, data)
        ax.set_title(f"{style.alpha_label(alpha)}: noise {np.sqrt(model.noise):.2f}", color=style.alpha_colour(alpha))
        ax.label_outer()
    return fig


if __name__ == "__main__":
    style.use()
    draw().savefig(PATH, dpi=100)
    print(f"wrote {PATH}")
