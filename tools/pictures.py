"""Show the chapters' pictures from the files that `figures/drawing/frames.py` wrote: a Sphinx extension.

The output of a slider becomes a numbered figure with native controls, which _static/slider.js brings to life. Every other
figure gets its sharp light and dark files in place of the notebook's small PNG. The files that pages use are copied into
_static/frames/ of the site.
"""

import html
import json
import re
import shutil
from pathlib import Path

import build_book
from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.osutil import relative_uri

from figures.experiments.bui2017 import fig1

FRAMES = build_book.FRAMES
TARGET = "_static/frames"
SLIDER = re.compile(r"slider (fig-[a-z0-9-]+): ")
USED = re.compile(rf"{TARGET}/(still/[a-z0-9]+|fig-[a-z0-9-]+)")


class picture(nodes.General, nodes.Element):
    """HTML in which {frames} stands for the folder of pictures, as seen from the page."""


def visit_picture(translator, node):
    builder = translator.builder
    place = relative_uri(builder.get_target_uri(builder.current_docname), TARGET)
    translator.body.append(node["html"].replace("{frames}", place))
    raise nodes.SkipNode


class Sliders(SphinxTransform):
    """Put a numbered figure in place of each slider's output, early enough for Sphinx to number it."""

    default_priority = 300

    def apply(self, **options):
        for bundle in list(self.document.findall(is_bundle)):
            plain = next((part for part in bundle.children if part["mime_type"] == "text/plain"), None)
            said = plain.astext().strip() if plain else ""
            if SLIDER.match(said):
                self._replace(bundle, said)

    def _replace(self, bundle, said):
        name = SLIDER.match(said)[1]
        file = FRAMES / name / "slider.json"
        if not file.exists():
            logging.getLogger(__name__).warning("there are no pictures of the slider %s: remove _build and build again", name,
                                                location=bundle)
            return
        described = json.loads(file.read_text(encoding="utf-8"))
        shown = figure(self.document, bundle, name, slider_html(name, described), described["caption"])
        shown["classes"].append("slider")
        bundle.replace_self(shown)


class Map(SphinxTransform):
    """Make a numbered figure of the map of methods, which is HTML."""

    default_priority = 300

    def apply(self, **options):
        for bundle in list(self.document.findall(is_bundle)):
            drawn = next((part for part in bundle.children if part["mime_type"] == "text/html"), None)
            if drawn and f'id="{fig1.ANCHOR}"' in drawn.astext():
                numbered = figure(self.document, bundle, fig1.FIGURE, drawn.astext(), fig1.CAPTION)
                bundle.replace_self(numbered)


class Stills(SphinxPostTransform):
    """Put the sharp light and dark files in place of the notebooks' PNGs."""

    default_priority = 20       # after the output to be shown was chosen
    formats = ("html",)

    def run(self, **options):
        for image in list(self.document.findall(nodes.image)):
            described = FRAMES / "still" / f"{Path(image['uri']).stem}.json"
            if described.exists():
                data = json.loads(described.read_text())
                stem = f"{{frames}}/still/{described.stem}"
                image.replace_self(picture("", html=both_themes(stem, data, image.get("alt", ""))))


class CodeBehindFigures(SphinxPostTransform):
    """Put the hidden code of a cell that shows something behind a small link below what it shows."""

    default_priority = 210      # after the code was hidden
    formats = ("html",)

    def run(self, **options):
        for cell in list(self.document.findall(nodes.container)):
            hidden = isinstance(cell.children[0], HideCodeCellNode) if cell.children else False
            if cell.get("nb_element") == "cell_code" and hidden and len(cell.children) > 1:
                code = cell.children[0]
                code["classes"].append("below-output")
                cell.remove(code)
                cell.append(code)


def figure(document, bundle, name, shown, caption):
    """A figure of this name in the place of a bundle, with HTML in it; Sphinx numbers it if it has a caption."""
    node = nodes.figure("")
    node.source, node.line = document["source"], bundle.line
    node["names"].append(name)
    document.note_explicit_target(node, node)
    node += picture("", html=shown)
    if caption:
        node += nodes.caption(caption, "", *inline(caption))
    return node


def is_bundle(node):
    return isinstance(node, nodes.container) and node.get("nb_element") == "mime_bundle"


def inline(text):
    """The nodes of a caption: text with formulas between dollar signs and `code`."""
    for part in re.split(r"(\$[^$]+\$|`[^`]+`)", text):
        if part.startswith("$"):
            yield nodes.math(part, part[1:-1])
        elif part.startswith("`"):
            yield nodes.literal(part, part[1:-1])
        elif part:
            yield nodes.Text(part)


def both_themes(stem, data, alt, lazy=True):
    """The picture for the light and for the dark theme; only the one that shows is fetched."""
    shared = (f'alt="{html.escape(alt, quote=True)}" width="{data["width"]}" height="{data["height"]}"'
              + ' loading="lazy"' * lazy + ' decoding="async"')
    return "".join(f'<img class="frame {theme} dark-light" {shared} src="{stem}{end}.{data["kind"]}">'
                   for theme, end in (("light-frame", ""), ("dark-frame", "-dark")))


def slider_html(name, described):
    """Controls, the picture at which they start, and for paper the pictures that the author chose."""
    parameters = described["parameters"]
    start = "-".join(str(p["start"]) for p in parameters)
    stem = f"{{frames}}/{name}"
    on_paper = ["-".join([str(place), *(str(p["start"]) for p in parameters[1:])]) for place in parameters[0]["paper"]]
    controls = "".join(control_html(f"{name}-{place}", p) for place, p in enumerate(parameters))
    paper = "".join(both_themes(f"{stem}/{frame}", described, described["alts"][frame]) for frame in on_paper)
    data = html.escape(json.dumps({"kind": described["kind"], "alts": described["alts"]}, ensure_ascii=False), quote=True)
    return (f'<div class="slider-box" data-folder="{stem}" data-frames="{data}">\n'
            f'<div class="slider-controls">{controls}</div>\n'
            f'<div class="slider-picture{" screen-only" * bool(paper)}">'
            f'{both_themes(f"{stem}/{start}", described, described["alts"][start])}</div>\n'
            + (f'<div class="paper-only">{paper}</div>\n' if paper else "")
            + "</div>\n<script>start_slider(document.currentScript.previousElementSibling)</script>\n")


def control_html(ident, parameter):
    """One control: a slider for numbers, radio buttons or a list for categories."""
    name, label = (html.escape(parameter[key], quote=True) for key in ("name", "label"))
    texts = [html.escape(text, quote=True) for text in parameter["texts"]]
    start = parameter["start"]
    if parameter["kind"] == "radio":
        buttons = "".join(f'<label><input type="radio" name="{ident}" value="{i}"{" checked" * (i == start)}> {text}</label>'
                          for i, text in enumerate(texts))
        return f'<fieldset class="slider-control" data-name="{name}"><legend>{label}</legend>{buttons}</fieldset>'
    if parameter["kind"] == "list":
        options = "".join(f'<option value="{i}"{" selected" * (i == start)}>{text}</option>' for i, text in enumerate(texts))
        return (f'<div class="slider-control" data-name="{name}"><label for="{ident}">{label}</label>'
                f'<select id="{ident}" autocomplete="off">{options}</select></div>')
    words = spoken(parameter)
    ends = [f"{text}<span>{word}</span>" if word else text for text, word in
            zip((texts[0], texts[-1]), map(html.escape, parameter["ends"]))]
    return (f'<div class="slider-control" data-name="{name}"><label for="{ident}">{label}</label>'
            f'<output for="{ident}" aria-live="off">{texts[start]}</output>'
            f'<span class="slider-end" aria-hidden="true">{ends[0]}</span>'
            f'<input type="range" id="{ident}" min="0" max="{len(texts) - 1}" value="{start}" '
            f'style="--steps: {max(len(texts) - 1, 1)}" autocomplete="off" '
            f'aria-valuetext="{html.escape(words[start], quote=True)}" '
            f'data-texts="{html.escape(json.dumps(parameter["texts"], ensure_ascii=False), quote=True)}" '
            f'data-words="{html.escape(json.dumps(words, ensure_ascii=False), quote=True)}">'
            f'<span class="slider-end" aria-hidden="true">{ends[1]}</span></div>')


def spoken(parameter):
    """What a screen reader says at each value."""
    last = len(parameter["texts"]) - 1
    words = [f"{parameter['label']} {text}" for text in parameter["texts"]]
    for place, word in zip((0, last), parameter["ends"]):
        if word:
            words[place] += f", {word}"
    return words


def copy(app, problem):
    """Copy the pictures that the pages use into the site: the folder of a slider, the files of any other figure."""
    if problem:
        return
    site = Path(app.outdir)
    used = {name for page in site.rglob("*.html") for name in USED.findall(page.read_text(encoding="utf-8"))}
    for name in sorted(used):
        source, target = FRAMES / name, site / TARGET / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.json"), dirs_exist_ok=True)
        else:
            for file in source.parent.glob(f"{source.name}[-.]*[gp]"):
                shutil.copy(file, target.parent)


def setup(app):
    app.add_node(picture, html=(visit_picture, None))
    app.add_transform(Sliders)
    app.add_transform(Map)
    app.add_post_transform(Stills)
    app.add_post_transform(CodeBehindFigures)
    app.connect("build-finished", copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
