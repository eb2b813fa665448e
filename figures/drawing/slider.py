"""Sliders over pictures that were computed beforehand.

`slider(draw, alt)` draws a picture for every value of a parameter and ties the pictures to a slider. While the book is
built, the pictures go into files, and the page's own script shows the one that the reader asks for. In a live notebook
the same call gives a widget, which draws what is asked for. A notebook that was executed in the background holds the
picture at which the slider starts.
"""

import base64
import inspect
import itertools
import json
import numbers
import os
import re
import shutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from IPython import get_ipython

from figures.drawing import frames, style
from figures.drawing.table import true_minus
from figures.progress import progress

ENDS = ("VFE", "EP")      # what the powers 0 and 1 are called
RADIO = 5                 # up to this many categories are radio buttons, more are a list


@dataclass(frozen=True)
class Parameter:
    """What a slider moves through. Numbers become a slider, categories radio buttons or a list.

    Parameters
    ----------
    name : str                  in error messages and links, e.g. "alpha"
    values : sequence           the values that `draw` is called with, in the slider's order
    label : str                 what stands beside the slider, e.g. "α"
    format : str or function    how one value is written: a format specification such as ".2f", or value -> str
    start : value, optional     where the slider starts and what is printed; the middle value if not given
    ends : two str, optional    words for the two ends; for the powers 0 and 1 they are VFE and EP if not given
    paper : sequence, optional  the values shown side by side on paper; if not given, 0, 1/2 and 1 for the powers, all radio
        buttons, and for others the first, the middle and the last
    """

    name: str
    values: tuple
    label: str = ""
    format: str | Callable = ""
    start: object = None
    ends: tuple = ()
    paper: tuple = ()

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
        if self.name == "alpha" and not self.ends:
            object.__setattr__(self, "ends", tuple(name if value == end else "" for name, value, end in
                                                   zip(ENDS, (values[0], values[-1]), (0, 1))))
        if not self.paper:
            object.__setattr__(self, "paper", self._on_paper())
        for what, wanted in (("start", [self.start]), ("paper", self.paper)):
            for value in wanted:
                if value not in values:
                    raise ValueError(f"slider parameter {self.name!r}: {what} = {value!r} is not one of its values")

    def _on_paper(self):
        """The values for paper where the author chose none."""
        values = self.values
        if self.name == "alpha" and {0, 0.5, 1} <= set(values):
            return 0, 0.5, 1
        return values if self.kind == "radio" else tuple(dict.fromkeys((values[0], values[len(values) // 2], values[-1])))

    @property
    def texts(self):
        """The values as the reader sees them, one string each."""
        return [self.text(value) for value in self.values]

    def text(self, value):
        """How one value is written."""
        written = self.format(value) if callable(self.format) else format(value, self.format)
        return re.sub(r"^-(?=0(\.0*)?$)", "", written)      # rounding may leave the sign of a zero

    @property
    def start_index(self):
        return self.values.index(self.start)

    @property
    def kind(self):
        """How the reader chooses: "range" for numbers in order, else "radio" or "list"."""
        if all(isinstance(value, numbers.Real) and not isinstance(value, bool) for value in self.values):
            return "range"
        return "radio" if len(self.values) <= RADIO else "list"


ALPHA = Parameter("alpha", tuple(i / 20 for i in range(21)), label="α", format=".2f", start=0.5)


def slider(draw, alt, parameter=ALPHA, second=None, size=(7, 3.6), *, name="", caption=""):
    """A slider, or two, over the pictures that `draw` makes.

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
    if name and not re.fullmatch(r"fig-[a-z0-9-]+", name):
        raise ValueError(f"slider: the name must look like fig-pep-humps, got {name!r}")
    shown = Slider(draw, alt, parameters, size, name, caption)
    if frames.folder():
        shown.write(frames.folder())
    return shown


class Slider:
    """What `slider` returns. A notebook shows its widget, or else the picture at which it starts."""

    def __init__(self, draw, alt, parameters, size, name, caption):
        self.draw, self.alt, self.parameters, self.size, self.caption = draw, alt, parameters, size, caption
        self.start = tuple(p.start for p in parameters)
        self.start_alt = self.describe(self.start)
        self.name = name or f"fig-{zlib.crc32(inspect.getsource(draw).encode()):08x}"
        self.description = f"slider {self.name}: " + "; ".join(
            f"{p.label} from {p.texts[0]} to {p.texts[-1]}" for p in parameters)
        self.places = ()
        start = self.figure(self.start)
        self.places = [ax.get_position(original=True) for ax in start.axes]     # the other frames' axes stand there too
        self.start_png = frames.png(start)

    def figure(self, values):
        """The figure at these values, drawn afresh."""
        with style.context():
            fig = frames.new_figure(self.size)
            self.draw(fig, *values)
            frames.finish(fig, self.places)
        return fig

    def describe(self, values):
        """The words for readers who cannot see the picture at these values."""
        text = self.alt(*values)
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"slider: alt{values} must return a sentence that describes the frame, got {text!r}")
        return true_minus(text)

    def write(self, root):
        """Draw all pictures into a folder of this slider's name, with a file that says what they show."""
        target = root / self.name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        grid = list(itertools.product(*(range(len(p.values)) for p in self.parameters)))
        kind, alts = None, {}
        for places in progress(grid, "drawing", len(grid)):
            values = tuple(p.values[i] for p, i in zip(self.parameters, places))
            stem = "-".join(map(str, places))
            with style.context():
                kind = frames.save(self.figure(values), target / stem, kind)
            alts[stem] = self.describe(values)
        described = {"caption": self.caption, "kind": kind, "alts": alts,
                     "width": round(self.size[0] * frames.DPI), "height": round(self.size[1] * frames.DPI),
                     "parameters": [{"name": p.name, "label": p.label, "kind": p.kind, "texts": p.texts,
                                     "start": p.start_index, "ends": p.ends or ("", ""),
                                     "paper": [p.values.index(value) for value in p.paper]} for p in self.parameters]}
        (target / "slider.json").write_text(json.dumps(described, ensure_ascii=False), encoding="utf-8")

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {"text/plain": self.description, "image/png": base64.b64encode(self.start_png).decode()}
        if is_live():
            from figures.drawing import live

            self.widget = live.widget(self)
            data |= self.widget._repr_mimebundle_()
        return data | {"text/plain": self.description}, {"image/png": {"alt": self.start_alt}}


def is_live():
    """Whether somebody has this notebook open: it is not executed in the background, nor by the build."""
    return get_ipython() is not None and os.environ.get("PEPCORE_PROGRESS") != "0" and not frames.folder()
