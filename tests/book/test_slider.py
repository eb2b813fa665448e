"""Sliders: the right picture for every value, in the built book, in a live notebook and in one that lies in a folder."""

import ast
import base64
import html
import io
import json
import os
import re
import symtable

import build_book
import ipywidgets as widgets
import matplotlib as mpl
import numpy as np
import pictures
import pytest
from bs4 import BeautifulSoup
from PIL import Image

from figures import progress
from figures.drawing import frames, live, style
from figures.drawing.dark import dark
from figures.drawing.slider import ALPHA, Parameter, slider

THREE = Parameter("alpha", (0.0, 0.5, 1.0), "α", ".2f")
SIZES = Parameter("M", (5, 20), format="d")
LOSSES = Parameter("loss", ("error", "log loss"))


def fill(fig, alpha, M=0):
    """A frame that is all of one colour, told by its values."""
    fig.set_facecolor((alpha, M / 20, 0.25))


def describe(alpha, M=0):
    return f'alpha {alpha} & "M" {M}'


def colour(alpha, M=0):
    return np.round([255 * alpha, 255 * M / 20, 255 * 0.25])


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The book is being built, and its pictures go here."""
    monkeypatch.setenv("BOOK_FRAMES", str(tmp_path))
    return tmp_path


def written(folder, name):
    return json.loads((folder / name / "slider.json").read_text(encoding="utf-8"))


def page(folder, name):
    return BeautifulSoup(pictures.slider_html(name, written(folder, name)), "html.parser")


def test_every_value_has_its_frame_and_its_description(folder):
    slider(fill, describe, THREE, name="fig-x", caption="What to see.")
    described = written(folder, "fig-x")
    assert described["alts"] == {str(i): describe(alpha) for i, alpha in enumerate(THREE.values)}
    assert described["caption"] == "What to see."
    for i, alpha in enumerate(THREE.values):
        ground = re.search(r"fill: (#[0-9a-f]{6})", (folder / f"fig-x/{i}.svg").read_text())[1]
        assert np.abs(255 * np.array(mpl.colors.to_rgb(ground)) - colour(alpha)).max() <= 1


def test_two_sliders_have_a_frame_for_both_values(folder):
    slider(fill, describe, THREE, SIZES, name="fig-x")
    alts = written(folder, "fig-x")["alts"]
    assert alts["2-1"] == describe(1.0, 20)
    assert {path.stem for path in (folder / "fig-x").glob("*.svg")} == {*alts, *(f"{stem}-dark" for stem in alts)}


def test_negative_numbers_have_a_true_minus_in_the_picture_and_in_its_words(folder):
    def draw(fig, alpha):
        ax = fig.subplots()
        _ = ax.plot(0, 0, label=f"leave-one-out {alpha - 2:g}, $x^{{-1}}$ {alpha - 3:g}")
        _ = ax.set(title=f"bound {alpha - 2:g}", xlabel="1e-5")
        _ = ax.legend()

    shown = slider(draw, lambda alpha: f"The bound is {alpha - 2:g} nats.", THREE, name="fig-x")
    assert written(folder, "fig-x")["alts"]["2"] == shown.describe((1.0,)) == "The bound is −1 nats."
    ax = shown.figure((1.0,)).axes[0]
    assert (ax.get_title(loc="left"), ax.get_xlabel()) == ("bound −1", "1e-5")
    assert ax.get_legend().get_texts()[0].get_text() == "leave-one-out −1, $x^{-1}$ −2"


def test_the_second_building_leaves_nothing_of_the_first(folder):
    slider(fill, describe, size=(1, 1), name="fig-x")
    slider(fill, describe, THREE, name="fig-x")
    assert len(list((folder / "fig-x").glob("*.svg"))) == 6


def test_alpha_is_the_default():
    assert slider(fill, describe, size=(1, 1)).start == (0.5,)
    assert ALPHA.values[0] == 0 and ALPHA.values[-1] == 1 and len(ALPHA.values) == 21
    assert ALPHA.ends == ("VFE", "EP") and ALPHA.paper == (0, 0.5, 1)


def test_a_notebook_on_the_disk_holds_the_start_and_text_that_never_changes(monkeypatch):
    monkeypatch.setenv("PEPCORE_PROGRESS", "0")
    data, metadata = slider(fill, describe, THREE, name="fig-x")._repr_mimebundle_()
    assert data["text/plain"] == "slider fig-x: α from 0.00 to 1.00"
    assert set(data) == {"text/plain", "image/png"}
    assert np.abs(pixels(base64.b64decode(data["image/png"])) - colour(0.5)).max() <= 1
    assert metadata["image/png"]["alt"] == describe(0.5)
    assert pictures.SLIDER.match(data["text/plain"])[1] == "fig-x"


def test_a_slider_without_a_name_gets_one_that_stays():
    names = {slider(fill, describe, THREE).name for _ in range(2)}
    assert len(names) == 1 and names.pop().startswith("fig-")


def test_numbers_make_a_slider_that_is_named_valued_and_has_ends(folder):
    slider(fill, describe, THREE, SIZES, name="fig-x")
    first, second = page(folder, "fig-x").select(".slider-control")
    range_ = first.find("input")
    assert (range_["type"], range_["min"], range_["max"], range_["value"]) == ("range", "0", "2", "1")
    assert first.find("label")["for"] == range_["id"] and first.find("label").get_text() == "α"
    assert range_["aria-valuetext"] == "α 0.50"
    assert json.loads(range_["data-words"]) == ["α 0.00, VFE", "α 0.50", "α 1.00, EP"]
    assert [end.get_text(" ") for end in first.select(".slider-end")] == ["0.00 VFE", "1.00 EP"]
    assert [end.get_text() for end in second.select(".slider-end")] == ["5", "20"]
    assert range_["style"] == "--steps: 2"      # ticks
    assert first["data-name"] == "alpha"


def test_categories_make_buttons_or_a_list(folder):
    many = Parameter("set", tuple("abcdefg"), start="c")
    slider(lambda fig, loss, set: None, lambda loss, set: f"{loss} {set}", LOSSES, many, name="fig-x")
    buttons, list_ = page(folder, "fig-x").select(".slider-control")
    assert buttons.name == "fieldset" and buttons.legend.get_text() == "loss"
    assert [label.get_text().strip() for label in buttons.select("label")] == ["error", "log loss"]
    assert [button.has_attr("checked") for button in buttons.select("input")] == [False, True]
    assert list_.select_one("option[selected]").get_text() == "c"
    assert list_.find("label")["for"] == list_.find("select")["id"]


@pytest.mark.parametrize(("values", "kind"), [((1, 2), "range"), ((0.5, np.float64(1)), "range"), (("a", "b"), "radio"),
                                              ((True, False), "radio"), (tuple("abcdef"), "list")])
def test_the_kind_of_a_parameter_follows_from_its_values(values, kind):
    assert Parameter("p", values, format=str).kind == kind


def test_ends_belong_to_the_powers_0_and_1():
    assert Parameter("alpha", (0, 0.5)).ends == ("VFE", "")
    assert Parameter("alpha", (0, 1), ends=("VB", "EP")).ends == ("VB", "EP")
    assert Parameter("M", (0, 1)).ends == ()


def test_start_frame_is_an_ordinary_picture_for_each_theme(folder):
    slider(fill, describe, THREE, name="fig-x")
    images = page(folder, "fig-x").select(".slider-picture img")
    assert [image["src"] for image in images] == ["{frames}/fig-x/1.svg", "{frames}/fig-x/1-dark.svg"]
    assert {image["alt"] for image in images} == {describe(0.5)}
    assert {(image["width"], image["height"]) for image in images} == {("840", "432")}


def test_paper_shows_what_the_author_chose(folder):
    chosen = Parameter("M", (5, 20, 80), format="d", paper=(5, 80))
    slider(lambda fig, M: None, lambda M: f"M {M}", chosen, name="fig-x")
    assert [image["alt"] for image in page(folder, "fig-x").select(".paper-only img.light-frame")] == ["M 5", "M 80"]


@pytest.mark.parametrize(("parameter", "shown"), [
    (Parameter("alpha", (0, 0.25, 0.5, 0.75, 0.9, 1)), (0, 0.5, 1)),
    (Parameter("alpha", (0.1, 0.2, 0.3, 0.4)), (0.1, 0.3, 0.4)),
    (Parameter("M", (5, 10, 20, 40, 80)), (5, 20, 80)),
    (Parameter("M", (5, 20)), (5, 20)),
    (Parameter("M", (5,)), (5,)),
    (Parameter("set", tuple("abcd")), tuple("abcd")),
    (Parameter("set", tuple("abcdefg")), tuple("adg")),
])
def test_paper_shows_ends_and_middle_where_the_author_chose_nothing(parameter, shown):
    assert parameter.paper == shown


def test_frames_are_the_same_at_every_drawing(folder):
    def curve(fig, alpha):
        fig.add_subplot().plot([0, 1], [alpha, 1 - alpha], label=style.alpha_label(alpha))

    found = []
    for _ in range(2):
        slider(curve, describe, THREE, name="fig-x")
        found.append([path.read_bytes() for path in sorted((folder / "fig-x").glob("*.svg"))])
    assert found[0] == found[1]


def test_frames_share_the_places_of_their_axes():
    """The labels of the middle value are wider than those of the others; its axes must not be narrower for that."""
    def draw(fig, M):
        fig.add_subplot(1, 2, 1)
        fig.add_subplot(1, 2, 2, ylim=(0, 1e-3 if M == SIZES.start else 1))

    shown = slider(draw, lambda M: f"M {M}", SIZES)
    places = [[ax.get_position().bounds for ax in shown.figure((M,)).axes] for M in SIZES.values]
    assert places[0] == places[1] == places[-1]


def test_a_frame_with_other_axes_has_a_layout_of_its_own():
    def draw(fig, M):
        for ax in fig.subplots(1, M, squeeze=False)[0]:
            ax.set_ylabel("label")

    shown = slider(draw, lambda M: f"M {M}", Parameter("M", (1, 2, 3), format="d", start=1))
    shown.figure((3,)).canvas.draw()
    boxes = [ax.get_tightbbox() for ax in shown.figure((3,)).axes]
    assert all(left.x1 < right.x0 for left, right in zip(boxes, boxes[1:]))


def test_light_and_dark_have_the_same_layout(folder):
    def curve(fig, alpha):
        ax = fig.add_subplot()
        ax.plot([0, 1], [alpha, 1], color=style.colours["vfe"])
        style.label(ax, "x", "y", "title")

    slider(curve, describe, THREE, name="fig-x")
    light, dark = ((folder / f"fig-x/1{end}.svg").read_text() for end in ("", "-dark"))
    light_shape, dark_shape = (re.sub("svg{fill: #.{6}}|#[0-9a-f]{6}|m[0-9a-f]{10}", "", text) for text in (light, dark))
    assert light_shape == dark_shape
    assert light != dark


def test_a_dark_frame_is_the_figure_drawn_in_dark_colours(folder):
    with style.context():
        fig = frames.new_figure((4, 3))
        ax = fig.add_subplot()
        ax.plot([0, 1], [0, 1], "k:", marker="o", markerfacecolor=style.INK, label="a")
        ax.fill_between([0, 1], 0, 1, color=style.colours["vfe"], alpha=0.2)
        ax.scatter([0, 1], [1, 0], c=[0.1, 0.9], cmap="Blues")
        ax.annotate("here", (0, 0), (0.5, 0.5), color=style.INK, arrowprops={"color": style.INK})
        ax.legend()
        frames.finish(fig)
    frames.save(fig, folder / "frame", "svg")
    frames.recolour(fig)
    frames.save(fig, folder / "drawn", "svg")
    of_their_colours = "[mp][0-9a-f]{10}|C[0-9]_[0-9a-f]_[0-9a-f]{10}|svg{fill: #[0-9a-f]{6}}"
    found, drawn = (re.sub(of_their_colours, "", (folder / name).read_text()) for name in ("frame-dark.svg", "drawn.svg"))
    assert found == drawn


def test_black_is_recoloured_where_a_drawing_does_not_name_it(folder):
    with style.context():
        fig = frames.new_figure((4, 3))
        fig.text(0.5, 0.5, "here", color="black")
        frames.finish(fig)
    frames.save(fig, folder / "frame", "svg")
    assert "#000000" not in (folder / "frame.svg").read_text()
    assert f"svg{{fill: {mpl.colors.to_hex(dark('black'))}}}" in (folder / "frame-dark.svg").read_text()


def test_a_heavy_drawing_becomes_a_sharp_png(folder):
    def crowd(fig, alpha):
        points = np.random.default_rng(0).normal(size=(2, 20_000))
        fig.add_subplot().plot(*points, linestyle="-", linewidth=0.2)

    slider(crowd, describe, Parameter("alpha", (0.5,)), size=(4, 3), name="fig-x")
    assert Image.open(folder / "fig-x/0.png").size == (4 * 120 * 2, 3 * 120 * 2)


def test_small_marks_keep_their_colour():
    """A hundred pixels of the pseudo-inputs' colour survive beside large areas of a similar one."""
    def crowd(fig, alpha):
        ax = fig.add_axes((0, 0, 1, 1))
        ax.axis("off")
        ax.set(xlim=(0, 1), ylim=(0, 1))
        for i, shade in enumerate(np.linspace(0, 1, 60)):
            ax.axvspan(i / 60, (i + 1) / 60, color=style.alpha_colour(shade), linewidth=0)
        ax.plot(0.5, 0.5, marker="s", markersize=8, markeredgewidth=0, color=style.colours["pseudo"])

    frame = pixels(slider(crowd, describe, Parameter("alpha", (0.0,))).start_png)
    wanted = [int(style.colours["pseudo"][i:i + 2], 16) for i in (1, 3, 5)]
    assert np.abs(frame[frame.shape[0] // 2, frame.shape[1] // 2] - np.array(wanted)).max() <= 8


def test_a_picture_of_many_colours_keeps_them():
    rainbow = np.random.default_rng(0).integers(0, 256, (100, 100, 3), dtype=np.uint8)
    np.testing.assert_array_equal(pixels(frames.with_palette(rainbow)), rainbow)


def test_frames_are_light(folder):
    def curves(fig, alpha):
        ax = fig.add_subplot()
        for i in range(5):
            ax.plot(np.sin(np.linspace(0, 6 + i, 300)), label=f"curve {i}")
        ax.legend()

    shown = slider(curves, describe, THREE, name="fig-x")
    assert len(shown.start_png) < 30_000
    assert max(path.stat().st_size for path in (folder / "fig-x").glob("*.svg")) < 100_000


def test_frames_wear_the_style_and_leave_the_callers_alone():
    sizes = []
    with mpl.rc_context({"font.size": 3}):
        slider(lambda fig, alpha: sizes.append(mpl.rcParams["font.size"]), describe, THREE)
        assert mpl.rcParams["font.size"] == 3
    assert set(sizes) == {style.RC["font.size"]}


def test_a_live_slider_draws_what_is_asked_for():
    handle, picture = live.widget(slider(fill, describe, THREE)).children
    assert isinstance(handle, widgets.FloatSlider) and handle.description == "α"
    handle.value = 0.25
    shown = re.search(r"base64,([^\"]+)", picture.value)[1]
    assert np.abs(pixels(base64.b64decode(shown)) - colour(0.25)).max() <= 1
    assert f'alt="{html.escape(describe(0.25))}"' in picture.value


def test_a_live_slider_keeps_to_the_frames_where_nothing_else_can_be_drawn():
    stored = {alpha: alpha for alpha in THREE.values}
    shown = live.widget(slider(lambda fig, alpha: fill(fig, stored[alpha]), describe, THREE))
    handle, _ = shown.children
    assert isinstance(handle, widgets.SelectionSlider)
    assert [text for text, _ in handle.options] == ["0.00", "0.50", "1.00"]


def test_live_numbers_and_categories():
    first, second, _ = live.widget(slider(lambda fig, M, loss: None, lambda M, loss: f"{M} {loss}", SIZES, LOSSES)).children
    assert isinstance(first, widgets.IntSlider) and (first.min, first.max) == (5, 20)
    assert isinstance(second, widgets.RadioButtons)


def test_static_figures_are_drawn_for_both_themes(folder):
    from matplotlib.figure import Figure

    with style.context():
        fig = Figure(figsize=(4, 2))
        fig.add_subplot().plot([0, 1])
        shown = frames.still(fig)
    (described,) = (folder / "still").glob("*.json")
    data = json.loads(described.read_text())
    assert (data["width"], data["height"]) == Image.open(io.BytesIO(shown)).size
    assert {path.name for path in (folder / "still").glob("*.svg")} == {f"{described.stem}.svg", f"{described.stem}-dark.svg"}


@pytest.mark.parametrize(("options", "message"), [
    ({"values": ()}, "no values"),
    ({"values": (0.1, 0.1)}, "duplicates"),
    ({"values": (0.101, 0.102), "format": ".2f"}, "duplicates or give a finer format"),
    ({"values": (0.0, 1.0), "start": 0.5}, "start = 0.5 is not one of its values"),
    ({"values": (0.0, 1.0), "paper": (0.5,)}, "paper = 0.5 is not one of its values"),
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


def test_a_name_must_be_a_label():
    with pytest.raises(ValueError, match="must look like fig-pep-humps"):
        slider(fill, describe, THREE, name="Humps")


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


def test_drawing_in_the_background_prints_nothing(monkeypatch, capfd, folder):
    monkeypatch.setenv("PEPCORE_PROGRESS", "0")
    slider(fill, describe, THREE, name="fig-x")
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def names_of_sliders(path):
    """The names of all sliders in a notebook."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    calls = [node for cell in cells if cell["cell_type"] == "code" for node in ast.walk(ast.parse("".join(cell["source"])))
             if isinstance(node, ast.Call) and "slider" in (getattr(node.func, "attr", ""), getattr(node.func, "id", ""))]
    return [keyword.value.value for call in calls for keyword in call.keywords if keyword.arg == "name"]


def test_no_two_sliders_have_the_same_name():
    names = [name for path in build_book.chapters() for name in names_of_sliders(path)]
    assert sorted({name for name in names if names.count(name) > 1}) == []
    assert len(names) > 40


def read_when_called(node):
    """The global names that the functions in this piece of code read when they are called."""
    def inside(table):
        for child in table.get_children():
            yield from (symbol.get_name() for symbol in child.get_symbols() if symbol.is_global() and symbol.is_referenced())
            yield from inside(child)

    return set(inside(symtable.symtable(ast.unparse(node), "cell", "exec")))


def overwritten(path):
    """(slider, name, cell) wherever a later cell assigns to a global name with which a slider draws or describes."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = {place: "".join(cell["source"]) for place, cell in enumerate(cells) if cell["cell_type"] == "code"}
    assigned = {place: {symbol.get_name() for symbol in symtable.symtable(source, "cell", "exec").get_symbols()
                        if symbol.is_assigned()} for place, source in sources.items()}
    reads = {}      # of each function of the notebook so far: the global names in it
    for place, source in sources.items():
        tree = ast.parse(source)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                reads[node.name] = read_when_called(node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                reads[node.targets[0].id] = read_when_called(node.value)
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and "slider" in (getattr(call.func, "attr", ""), getattr(call.func, "id", "")):
                name = next((keyword.value.value for keyword in call.keywords if keyword.arg == "name"), f"cell {place}")
                needed, waiting = set(), set()
                for given in call.args[:2]:
                    waiting |= read_when_called(given)
                    waiting = waiting.union(*(reads.get(part.id, ()) for part in ast.walk(given) if isinstance(part, ast.Name)))
                while waiting:
                    needed |= (new := waiting - needed)
                    waiting = set().union(*(reads.get(one, ()) for one in new))
                yield from ((name, one, later) for later in sources if later > place for one in needed & assigned[later])


@pytest.mark.parametrize("path", build_book.chapters(), ids=lambda path: path.stem)
def test_no_later_cell_overwrites_what_a_slider_draws_with(path):
    """In a live notebook a slider draws with the notebook's names as they are then: after the last cell has run."""
    assert sorted(overwritten(path)) == []


def test_an_overwritten_name_is_found_through_functions(tmp_path):
    sources = ["scale = 2\n\n\ndef inner(x):\n    return scale * x",
               "def draw(fig, x):\n    inner(x)\n\n\nslider(draw, lambda x: f'{unit} {x}', name='fig-x')",
               "for scale in (1, 2):\n    [inner for inner in (scale,)]\nx, unit = 3, 'm'"]
    cells = [{"cell_type": "code", "source": [source]} for source in sources]
    (tmp_path / "chapter.ipynb").write_text(json.dumps({"cells": cells}))
    assert sorted(overwritten(tmp_path / "chapter.ipynb")) == [("fig-x", "scale", 2), ("fig-x", "unit", 2)]
