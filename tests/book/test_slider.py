"""Sliders: the right frame for every value, in a notebook, in a page without a kernel and on paper."""

import base64
import html
import io
import os
import re

import ipywidgets as widgets
import numpy as np
import pytest
from ipywidgets.embed import dependency_state, embed_data
from PIL import Image

from figures import progress
from figures.drawing import style
from figures.drawing.slider import ALPHA, Parameter, slider

THREE = Parameter("alpha", (0.0, 0.5, 1.0), "α", ".2f")
SIZES = Parameter("M", (5, 20), format="d")


def fill(fig, alpha, M=0):
    """A frame that is all of one colour, told by its values."""
    fig.set_facecolor((alpha, M / 20, 0.25))


def describe(alpha, M=0):
    return f'alpha {alpha} & "M" {M}'


def pixels(picture):
    """The frame inside an HTML widget, (height, width, 3)."""
    data = re.search(r"base64,([^\"]+)", picture.value).group(1)
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))


def colour(alpha, M=0):
    return np.round([255 * alpha, 255 * M / 20, 255 * 0.25])


def test_every_value_has_its_frame_and_its_description():
    handle, stack = slider(fill, describe, THREE).children
    assert [text for text, _ in handle.options] == ["0.00", "0.50", "1.00"]
    assert len(stack.children) == 3
    for alpha, picture in zip(THREE.values, stack.children):
        assert np.abs(pixels(picture) - colour(alpha)).max() <= 1
        assert f'alt="{html.escape(describe(alpha))}"' in picture.value


def test_two_sliders_show_the_frame_of_both_values():
    first, second, outer = slider(fill, describe, THREE, SIZES).children
    assert [text for text, _ in second.options] == ["5", "20"]
    for j, M in enumerate(SIZES.values):
        for i, alpha in enumerate(THREE.values):
            assert np.abs(pixels(outer.children[j].children[i]) - colour(alpha, M)).max() <= 1
    assert first.index == outer.children[0].selected_index == outer.children[1].selected_index == 1
    assert second.index == outer.selected_index == 1


def test_the_links_work_in_the_browser_alone():
    shown = slider(fill, describe, THREE, SIZES)
    first, second, outer = shown.children
    state = embed_data([shown], state=dependency_state([shown]))["manager_state"]["state"]
    links = {(link["state"]["source"][0], link["state"]["target"][0]) for link in state.values()
             if link["model_name"] == "LinkModel"}

    def reference(widget):
        return f"IPY_MODEL_{widget.model_id}"

    assert links == {*((reference(first), reference(inner)) for inner in outer.children),
                     (reference(second), reference(outer))}
    assert all(link.source[1] == "index" and link.target[1] == "selected_index" for link in shown.links)


def test_alpha_is_the_default():
    shown = slider(fill, describe, size=(1, 1))
    assert len(shown.children[1].children) == 21
    assert shown.children[0].label == "0.50"
    assert ALPHA.values[0] == 0 and ALPHA.values[-1] == 1


def test_start():
    start = Parameter("alpha", (0.0, 0.5, 1.0), format=".2f", start=1.0)
    handle, stack = slider(fill, describe, start).children
    assert handle.index == stack.selected_index == 2


def test_a_frame_without_a_browser(monkeypatch):
    sent = []
    monkeypatch.setattr("figures.drawing.slider.display", lambda bundle, **options: sent.append((bundle, options)))
    shown = slider(fill, describe, THREE)
    shown._ipython_display_()
    (without_javascript, _), (bundle, options) = sent
    assert without_javascript["text/html"].startswith("<noscript><img")
    assert html.escape(describe(0.5)) in without_javascript["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in bundle
    png = Image.open(io.BytesIO(base64.b64decode(bundle["image/png"])))
    assert np.abs(np.asarray(png.convert("RGB")) - colour(0.5)).max() <= 1
    assert bundle["text/plain"] == "slider: α from 0.00 to 1.00"     # nothing that changes from run to run
    assert options["metadata"]["image/png"]["alt"] == describe(0.5)


def test_frames_are_the_same_at_every_drawing():
    first, second = (slider(fill, describe, THREE).children[1].children[2].value for _ in range(2))
    assert first == second


def test_small_marks_keep_their_colour():
    """A hundred pixels of the pseudo-inputs' colour survive beside large areas of a similar one."""
    def crowd(fig, alpha):
        ax = fig.add_axes((0, 0, 1, 1))
        ax.axis("off")
        ax.set(xlim=(0, 1), ylim=(0, 1))
        for i, shade in enumerate(np.linspace(0, 1, 60)):
            ax.axvspan(i / 60, (i + 1) / 60, color=style.alpha_colour(shade), linewidth=0)
        ax.plot(0.5, 0.5, marker="s", markersize=8, markeredgewidth=0, color=style.colours["pseudo"])

    frame = pixels(slider(crowd, describe, Parameter("alpha", (0.0,))).children[1].children[0])
    wanted = [int(style.colours["pseudo"][i:i + 2], 16) for i in (1, 3, 5)]
    centre = frame[frame.shape[0] // 2, frame.shape[1] // 2]
    assert np.abs(centre - np.array(wanted)).max() <= 8


def test_frames_are_light():
    def curves(fig, alpha):
        ax = fig.add_subplot()
        for i in range(5):
            ax.plot(np.sin(np.linspace(0, 6 + i, 300)), label=f"curve {i}")
        ax.legend()

    shown = slider(curves, describe, THREE)
    assert max(len(picture.value) for picture in shown.children[1].children) < 40_000


def test_frames_shrink_with_the_page():
    picture = slider(fill, describe, THREE).children[1].children[0]
    assert "max-width: 100%" in picture.value and "height: auto" in picture.value


def test_frames_wear_the_style_and_leave_the_callers_alone():
    import matplotlib as mpl

    sizes = []
    with mpl.rc_context({"font.size": 3}):
        slider(lambda fig, alpha: sizes.append(mpl.rcParams["font.size"]), describe, THREE)
        assert mpl.rcParams["font.size"] == 3
    assert set(sizes) == {style.RC["font.size"]}


@pytest.mark.parametrize(("options", "message"), [
    ({"values": ()}, "no values"),
    ({"values": (0.1, 0.1)}, "duplicates"),
    ({"values": (0.101, 0.102), "format": ".2f"}, "duplicates or give a finer format"),
    ({"values": (0.0, 1.0), "start": 0.5}, "start = 0.5 is not one of its values"),
])
def test_wrong_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        Parameter("alpha", **options)


def test_a_frame_needs_a_description():
    with pytest.raises(ValueError, match="describes the frame"):
        slider(fill, lambda alpha: " ", THREE)


def test_two_parameters_need_two_names():
    with pytest.raises(ValueError, match="both parameters are called 'alpha'"):
        slider(fill, describe, THREE, THREE)


def test_keyboard_and_label():
    handle = slider(fill, describe, THREE).children[0]
    assert isinstance(handle, widgets.SelectionSlider)      # tab and arrow keys come with it
    assert handle.description == "α"


@pytest.mark.parametrize(("wish", "notebook", "terminal", "expected"), [
    ("0", True, True, False), ("1", False, False, True),
    (None, True, False, True), (None, False, True, True), (None, False, False, False),
])
def test_progress_only_when_someone_watches(monkeypatch, wish, notebook, terminal, expected):
    for name, value in (("PEPCORE_PROGRESS", wish), ("JPY_SESSION_NAME", "a.ipynb" if notebook else None)):
        if value is None:
            monkeypatch.delitem(os.environ, name, raising=False)
        else:
            monkeypatch.setitem(os.environ, name, value)
    monkeypatch.setattr("sys.stderr", type("Stream", (io.StringIO,), {"isatty": lambda self: terminal})())
    assert progress.watched() is expected


def test_drawing_in_the_background_prints_nothing(monkeypatch, capfd):
    monkeypatch.setenv("PEPCORE_PROGRESS", "0")
    slider(fill, describe, THREE)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
