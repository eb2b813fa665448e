"""A chapter is for one sitting: how long it is, how much code it shows, and that what it announces is there."""

import ast
import json
import re

import build_book
import pytest
import reading
import yaml
from conftest import ROOT
from reading import calls, source, visible, words

MOST_WORDS, MOST_WORDS_OF_A_STUDY, MOST_LINES, WIDEST = 4550, 3500, 320, 80
REFERENCES = {"identities"}     # a page to look things up in
STUDIES = {path.rsplit("/", 1)[1] for part in yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"]
           if part["caption"] == "Studies" for path in [chapter["file"] for chapter in part["chapters"]]}
CHAPTERS = [path for path in build_book.chapters() if path.stem not in REFERENCES]


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def chapter(request):
    return request.param.stem, json.loads(request.param.read_text(encoding="utf-8"))["cells"]


def read(cells):
    """The cells of one sitting: all but the exercises and their solutions, which are folded."""
    parts, exercises = [], False
    for cell in cells:
        headings = re.findall(r"^## (.*)$", source(cell), re.MULTILINE) if cell["cell_type"] == "markdown" else []
        if headings:
            exercises = headings[-1].startswith("Exercises")
        if not exercises:
            parts.append(cell)
    return parts


def prose(cells):
    """The Markdown of these cells."""
    return "\n\n".join(source(cell) for cell in cells if cell["cell_type"] == "markdown")


def test_words_are_counted_without_formulas_code_and_links():
    text = "Two words, $a$ and [a link](https://example.org/x-y) to `code` by {eq}`gp-prior`.\n$$\nx = y\n$$\n:label: no"
    assert words(text) == 7
    assert words("% a comment\nTwo words,\n% another one\nand two.") == 4


def test_a_chapter_is_for_one_sitting(chapter):
    name, cells = chapter
    assert words(prose(read(cells))) <= (MOST_WORDS_OF_A_STUDY if name in STUDIES else MOST_WORDS)


def test_the_times_that_a_chapter_announces_are_those_of_its_sections_and_exercises(chapter):
    name, cells = chapter
    announced = re.search(r"\*\*Time:\*\* about (\d+) minutes(?:[^.\d]*?(\d+) for the exercises)?[^.\d]*\.", prose(read(cells)))
    times = reading.chapters()[name]
    assert int(announced[1]) == 5 * round(times.reading / 5), times.reading
    assert int(announced[2] or 0) == times.solving


def test_what_a_section_shows_takes_its_time():
    def code(source, outputs=(), tags=()):
        return {"cell_type": "code", "source": source, "outputs": list(outputs), "metadata": {"tags": list(tags)}}

    picture = {"data": {"image/png": ""}}
    cells = [{"cell_type": "markdown", "source": f"# Title\n\n## One\n\n{'word ' * 130}\n\n$$\nx\n$$\n"},
             code("a = 1\n\nb = 2"), code("slider(a)", [picture], ["hide-input"]), code("c = 3", [picture], ["hide-input"]),
             code('check("x", 1)', [picture], ["hide-input"])]
    opening, one = reading.sections(cells)
    assert opening.title == reading.OPENING and one.title == "One"
    spoken = words(f"## One {'word ' * 130}") / reading.WORDS
    assert one.minutes == pytest.approx(spoken + 1 / reading.FORMULAS + 2 / reading.LINES + reading.SLIDER + reading.PICTURE)


def test_visible_code_is_short_and_narrow(chapter):
    _, cells = chapter
    lines = [line for code in visible(read(cells)) for line in code.splitlines()]
    assert len(lines) <= MOST_LINES
    assert [line for line in lines if len(line) > WIDEST] == []


def test_every_slider_is_shown_with_name_and_caption(chapter):
    _, cells = chapter
    for cell in cells:
        if cell["cell_type"] == "code" and calls(source(cell), "slider"):
            last = ast.parse(source(cell)).body[-1]
            assert isinstance(last, ast.Expr) and calls(ast.unparse(last), "slider"), source(cell)
            assert {"name", "caption"} <= {keyword.arg for keyword in last.value.keywords}, source(cell)
            assert any("image/png" in output.get("data", {}) for output in cell["outputs"]), source(cell)


def test_code_of_a_page_to_look_things_up_in_is_narrow_too():
    for name in REFERENCES:
        cells = json.loads((ROOT / "chapters" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
        assert [line for code in visible(cells) for line in code.splitlines() if len(line) > WIDEST] == []


@pytest.mark.parametrize("path", [path for path in CHAPTERS if path.stem != "start-here"], ids=lambda path: path.stem)
def test_chapters_have_one_frame(path):
    """All but the first page, which is an entrance."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    headings = re.findall(r"^## (.*)$", prose(cells), re.MULTILINE)
    assert headings[0].startswith("The picture: ")
    assert headings[-5:] == ["Exercises", "Key equations", "What to take away", "Errata", "Further reading"]
    assert "Claimed and reproduced" in headings
    assert source(cells[-1]).splitlines()[-1].startswith(("Next: ", "This was the last chapter."))
