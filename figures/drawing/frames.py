"""Pictures in files: light and dark, sharp on every screen, as the built book shows them.

While the book is built, the variable BOOK_FRAMES names a folder. Every figure of a chapter and every frame of a slider is
then written there twice, for the light and for the dark theme: as SVG, or as PNG where that is lighter. Without the
variable nothing is written, and a notebook holds small PNGs only.
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from figures.drawing.dark import pictures_in, recolour, recoloured
from figures.drawing.table import true_minus

DPI = 120               # CSS pixels in an inch of a figure
DENSITY = 2             # pixels of a file for a CSS pixel
COLOURS = 64            # in a frame's palette
COLOUR_STEP = 24        # two colours of a palette differ by more than this, summed over red, green and blue
MANY_OFF = 0.02         # share of pixels that a palette may change visibly
HEAVY = 60_000          # bytes of a compressed SVG above which a PNG is the better choice
NAMELESS = {"Date": None, "Creator": None, "Format": None, "Type": None}


def folder():
    """Where the built book's pictures go; None where the book is not being built."""
    path = os.environ.get("BOOK_FRAMES")
    return Path(path) if path else None


def new_figure(size):
    """An empty figure in the book's style, `size` in inches."""
    return Figure(figsize=size, dpi=DPI, layout="constrained")


def set_true_minus(fig):
    """Write the negative numbers in titles, labels and legends with a true minus, as the axes write theirs."""
    for text in fig.findobj(Text):
        parts = text.get_text().split("$")          # every second one is a formula, in which a hyphen is a minus already
        text.set_text("$".join(part if i % 2 else true_minus(part) for i, part in enumerate(parts)))


def finish(fig, places=()):
    """Give the drawing its final places: `places`, those of another frame of the same slider, or else the layout's."""
    set_true_minus(fig)
    if _has_a_grid(fig) and len(places) == len(fig.axes) and not fig.get_suptitle():       # a layout moves the title too
        for ax, place in zip(fig.axes, places):
            ax.set_position(place, which="original")
    elif _has_a_grid(fig):
        fig.get_layout_engine().execute(fig)
    fig.set_layout_engine("none")           # it must not move between light and dark


def _has_a_grid(fig):
    """Whether a layout can be computed: the drawing placed its axes in a grid, and not by hand."""
    return any(ax.get_subplotspec() for ax in fig.axes)


def save(fig, path, kind=None, tight=False):
    """Write a figure for the light and for the dark theme; this may change its colours.

    Parameters
    ----------
    fig : Figure
    path : Path         without a suffix; the dark one has "-dark" after the name
    kind : "svg" or "png", optional; the lighter one if not given
    tight : bool        cut off empty margins

    Returns
    -------
    kind
    """
    light = b"" if kind == "png" else _svg(fig, tight)
    kind = kind or ("svg" if len(gzip.compress(light)) < HEAVY else "png")
    if kind == "png":
        light = png(fig, DENSITY * DPI, tight)
    if kind == "svg" and not pictures_in(fig):
        dark = recoloured(light)            # fast; drawing takes most of the build's time
    else:
        recolour(fig)
        dark = _svg(fig, tight) if kind == "svg" else png(fig, DENSITY * DPI, tight)
    for end, data in (("", light), ("-dark", dark)):
        path.with_name(f"{path.name}{end}.{kind}").write_bytes(data)
    return kind


def _svg(fig, tight):
    stream, before = io.BytesIO(), fig.dpi
    with _canvas(fig, FigureCanvasSVG) as canvas:
        if tight:
            canvas.print_figure(stream, format="svg", dpi=72, metadata=NAMELESS, bbox_inches="tight", facecolor="auto")
        else:
            fig.set_dpi(72)
            canvas.print_svg(stream, metadata=NAMELESS)     # print_figure would draw twice
            fig.set_dpi(before)
    return stream.getvalue()


def png(fig, dpi=DPI, tight=False):
    """A PNG of the figure, as bytes; one with few colours keeps only those."""
    stream, before = io.BytesIO(), fig.dpi
    with _canvas(fig, FigureCanvasAgg) as canvas:
        if tight:
            canvas.print_figure(stream, format="png", dpi=dpi, bbox_inches="tight", facecolor="auto")
            return with_palette(np.asarray(Image.open(stream).convert("RGB")))
        fig.set_dpi(dpi)
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[..., :3]
        fig.set_dpi(before)
    return with_palette(pixels)


@contextlib.contextmanager
def _canvas(fig, kind):
    """Another canvas for a while: the figure may belong to a window or a notebook."""
    before = fig.canvas
    if not _has_a_grid(fig):
        fig.set_layout_engine("none")       # set each time: printing a figure switches the engine on again
    try:
        yield kind(fig)
    finally:
        fig.set_canvas(before)


def with_palette(pixels):
    """A PNG with a palette of 64 colours: a fifth of the weight of a full one, and the eye sees no difference.

    Colours enter the palette in the order of the area they cover, unless one much like them is in it already. So every
    flat area keeps its exact colour, and a small mark is not swallowed by a large area of a similar hue, which is what
    the usual palettes (median cut, octree) do to it. A picture of so many colours that 64 cannot stand for them keeps all.
    """
    packed, areas = np.unique(pixels.reshape(-1, 3) @ np.array([65536, 256, 1]), return_counts=True)
    colours = np.stack([packed >> 16, packed >> 8 & 255, packed & 255], axis=1)
    palette = np.empty((0, 3), dtype=int)
    for colour in colours[np.argsort(-areas, kind="stable")].astype(int):
        if np.all(np.abs(palette - colour).sum(axis=1) > COLOUR_STEP):
            palette = np.vstack([palette, colour])
        if len(palette) == COLOURS:
            break
    holder = Image.new("P", (1, 1))
    holder.putpalette(palette.astype(np.uint8).ravel().tolist())
    full = Image.fromarray(pixels)
    reduced = full.quantize(palette=holder, dither=Image.Dither.NONE)
    off = np.abs(np.asarray(reduced.convert("RGB")).astype(int) - pixels).sum(axis=2) > 3 * COLOUR_STEP
    stream = io.BytesIO()
    (full if off.mean() > MANY_OFF else reduced).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def still(fig):
    """The PNG by which a notebook shows a figure that is no slider; while the book is built its files are written as well.

    The files are named after the PNG's hash, as the build names the PNG.
    """
    set_true_minus(fig)
    picture = png(fig, tight=True)
    if folder():
        target = folder() / "still" / hashlib.sha256(picture).hexdigest()
        target.parent.mkdir(parents=True, exist_ok=True)
        width, height = Image.open(io.BytesIO(picture)).size
        described = {"kind": save(fig, target, tight=True), "width": width, "height": height}
        target.with_suffix(".json").write_text(json.dumps(described))
    return picture
