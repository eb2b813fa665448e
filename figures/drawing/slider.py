"""Sliders over pictures that were computed beforehand.

`slider(draw, alt)` draws one frame per value of a parameter and ties the frames to a slider. The picture changes in
the reader's browser, without Python: the same widget works in a live notebook, in the built book and, as the frame at
which the slider starts, on paper and where JavaScript is off.
"""

import base64
import html
import io
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets as widgets
import numpy as np
from IPython.display import display
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from figures.drawing import style
from figures.progress import progress

DPI = 120
COLOURS = 64            # in a frame's palette
COLOUR_STEP = 24        # two colours of a palette differ by more than this, summed over red, green and blue


@dataclass(frozen=True)
class Parameter:
    """What a slider moves through.

    Parameters
    ----------
    name : str                  in error messages, e.g. "alpha"
    values : sequence           the values that `draw` is called with, in the slider's order
    label : str                 what stands beside the slider, e.g. "α"
    format : str or function    how one value is written: a format specification such as ".2f", or value -> str
    start : value, optional     where the slider starts and what is printed; the middle value if not given
    """

    name: str
    values: tuple
    label: str = ""
    format: str | Callable = ""
    start: object = None

    def __post_init__(self):
        values = tuple(self.values)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "label", self.label or self.name)
        if not values:
            raise ValueError(f"slider parameter {self.name!r}: got no values; give at least one")
        texts = self.texts
        repeated = sorted({text for text in texts if texts.count(text) > 1})
        if repeated:
            raise ValueError(f"slider parameter {self.name!r}: several values are written {', '.join(repeated)}; "
                             f"leave out the duplicates or give a finer format than {self.format!r}")
        if self.start is None:
            object.__setattr__(self, "start", values[len(values) // 2])
        elif self.start not in values:
            raise ValueError(f"slider parameter {self.name!r}: start = {self.start!r} is not one of its values")

    @property
    def texts(self):
        """The values as the reader sees them, one string each."""
        write = self.format if callable(self.format) else lambda value: format(value, self.format)
        return [write(value) for value in self.values]

    @property
    def start_index(self):
        return self.values.index(self.start)


ALPHA = Parameter("alpha", tuple(i / 20 for i in range(21)), label="α", format=".2f", start=0.5)


def slider(draw, alt, parameter=ALPHA, second=None, size=(7, 3.6), *, name="", caption=""):
    """A slider, or two, over the frames that `draw` makes.

    Parameters
    ----------
    draw : function (fig, value) or (fig, value, second_value)
        Draws one frame into an empty figure. Fix the limits of the axes, so that frames do not jump.
    alt : function value -> str, or (value, second_value) -> str
        Says in words and numbers what that frame shows, for readers who cannot see it.
    parameter : Parameter, default the 21 powers 0, 0.05, ..., 1
    second : Parameter, optional
        A second slider below the first; keep to about 11 x 5 frames.
    size : (width, height) in inches; at most 7 wide, or the text is too small on a phone
    name, caption : str
        The label of the figure, as in fig-pep-humps, and one sentence that says what to see.

    Returns
    -------
    Slider: make it the last line of the cell.
    """
    parameters = [parameter] if second is None else [parameter, second]
    if second is not None and parameter.name == second.name:
        raise ValueError(f"slider: both parameters are called {parameter.name!r}")
    grid = list(itertools.product(*(p.values for p in parameters)))
    frames = {values: _frame(draw, alt, values, size) for values in progress(grid, "drawing", len(grid))}
    return Slider(frames, parameters, size)


class Slider(widgets.VBox):
    """The widget that `slider` returns: one or two sliders above a stack of images.

    Parameters
    ----------
    frames : dict of values (tuple, one per parameter) -> (png, alt)
    parameters : list of one or two Parameter
    size : (width, height) in inches
    """

    def __init__(self, frames, parameters, size):
        start = frames[tuple(p.start for p in parameters)]
        self.start_png, self.start_alt = start
        self.size = size
        self.links = []                 # a link works as long as somebody holds it
        widest = max(len(p.label) for p in parameters)
        handles = [_handle(p, f"{widest + 1}ch") for p in parameters]
        picture_layout = widgets.Layout(width="100%", margin="0")
        pictures = {values: widgets.HTML(_img(png, text, size), layout=picture_layout)
                    for values, (png, text) in frames.items()}

        def stack(children, handle):
            result = widgets.Stack(children, selected_index=handle.index, layout=picture_layout)
            self.links.append(widgets.jslink((handle, "index"), (result, "selected_index")))
            return result

        if len(parameters) == 1:
            (first,) = parameters
            picture = stack([pictures[(value,)] for value in first.values], handles[0])
        else:
            first, second = parameters
            columns = [stack([pictures[(value, other)] for value in first.values], handles[0])
                       for other in second.values]
            picture = stack(columns, handles[1])
        self.description = "slider: " + "; ".join(f"{p.label} from {p.texts[0]} to {p.texts[-1]}" for p in parameters)
        super().__init__([*handles, picture], layout=widgets.Layout(width="100%", max_width=_width(size)))

    def _repr_mimebundle_(self, **kwargs):
        """The widget for browsers, its first frame for paper and for viewers that do not know widgets."""
        bundle = super()._repr_mimebundle_(**kwargs)
        return {**bundle, "text/plain": self.description, "image/png": base64.b64encode(self.start_png).decode()}

    def _ipython_display_(self):
        """Show the widget and, to a browser that runs no JavaScript, the first frame."""
        without_javascript = f"<noscript>{_img(self.start_png, self.start_alt, self.size)}</noscript>"
        display({"text/html": without_javascript, "text/plain": ""}, raw=True)
        display(self._repr_mimebundle_(), raw=True, metadata={"image/png": {"alt": self.start_alt}})


def _handle(parameter, label_width):
    """The slider proper. It can be reached by the tab key and moved by the arrow keys."""
    return widgets.SelectionSlider(
        options=[(text, i) for i, text in enumerate(parameter.texts)], index=parameter.start_index,
        description=parameter.label, continuous_update=True, style={"description_width": label_width},
        layout=widgets.Layout(width="98%", margin="2px 0"))


def _frame(draw, alt, values, size):
    """Draw one frame; returns its PNG and its description."""
    with style.context():
        fig = Figure(figsize=size, dpi=DPI, layout="constrained")
        canvas = FigureCanvasAgg(fig)
        draw(fig, *values)
        if not any(ax.get_subplotspec() for ax in fig.axes):
            fig.set_layout_engine("none")       # the drawing placed its axes by hand, or has none
        canvas.draw()
    text = alt(*values)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"slider: alt{values} must return a sentence that describes the frame, got {text!r}")
    return _png(canvas.buffer_rgba()), text


def _png(rgba):
    """A PNG with a palette of 64 colours: a fifth of the weight of a full one, and the eye sees no difference.

    Colours enter the palette in the order of the area they cover, unless one much like them is in it already. So every
    flat area keeps its exact colour, and a small mark is not swallowed by a large area of a similar hue, which is what
    the usual palettes (median cut, octree) do to it.
    """
    pixels = np.asarray(rgba)[..., :3]
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
    stream = io.BytesIO()
    Image.fromarray(pixels).quantize(palette=holder, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _img(png, alt, size):
    """The frame as an HTML element that shrinks with the page."""
    return (f'<img class="slider-frame" alt="{html.escape(alt, quote=True)}" width="{size[0] * DPI:.0f}" '
            f'height="{size[1] * DPI:.0f}" style="max-width: 100%; height: auto; padding: 0; border-radius: 6px" '
            f'src="data:image/png;base64,{base64.b64encode(png).decode()}">')


def _width(size):
    return f"{size[0] * DPI:.0f}px"
