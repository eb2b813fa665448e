"""Equations and code name each other: every `:eq:` of a docstring is an equation of a chapter, what a chapter links by
"In the code:" names the equation in its docstring, and every equation is named by code, unless `STEPS` says why not."""

import importlib
import inspect
import json
import re

import build_book
import pytest
from conftest import ROOT

LABEL = re.compile(r"\$\$\s*\(([\w-]+)\)")  # behind the equation that it names
NAMED = re.compile(r":eq:`([\w-]+)`")
EQUATION = re.compile(r"\{eq\}`([\w-]+)`")
LINK = re.compile(r"\{py:(?:func|meth|class)\}`~?(?:[^`<]*<)?(pepcore[\w.]*)>?`")


IN_CELL = re.compile(r"\(([\w-]+)\)")  # a code cell says "(label)"

STEPS = {  # the equations that no code names, and why
    "ep-family": "the definition of an exponential family and its log-integral",
    "sc-family": "the shape of the approximation; what follows from it is checked",
    "sr-model": "the definition of the model: gp-prior-split with noise",
}


def passages(text):
    """(equations, code) of each passage that begins with "In the code:": the equations that it names, else the last one above."""
    for found in re.finditer(r"\*In the code:\*.*", text):
        passage = found[0]
        above = LABEL.findall(text[: found.start()])
        yield EQUATION.findall(passage) or above[-1:], LINK.findall(passage)


def chapters():
    """(chapter, equations, code) of all passages that link code."""
    for path in build_book.chapters():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        for equations, code in passages(text):
            if equations and code:
                yield pytest.param(equations, code, id=f"{path.stem}-{'-'.join(equations)}")


def in_cells(kind, pattern):
    """What the pattern finds in the cells of this kind of all chapters."""
    texts = ["".join(cell["source"]) for path in build_book.chapters()
             for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]
    return {label for text in texts for label in pattern.findall(text)}


def equations_of_chapters():
    return in_cells("markdown", LABEL)


def named_by(paths):
    return {label for path in paths for label in NAMED.findall(path.read_text(encoding="utf-8"))}


def linked(name):
    """The object with this full name, and its docstring with those of its methods."""
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            thing = getattr(thing, part)
        inside = vars(thing).values() if inspect.isclass(thing) else ()
        return "\n".join(inspect.getdoc(one) or "" for one in (thing, *inside))
    raise AssertionError(f"{name} does not exist")


SOURCES = sorted((ROOT / "pepcore").rglob("*.py"))
CHECKS = [path for name in ("figures", "tests/package", "tests/experiments") for path in sorted((ROOT / name).rglob("*.py"))]


def test_every_equation_that_a_test_or_a_figure_names_is_in_a_chapter():
    named = named_by(CHECKS)
    assert len(named) > 10 and named <= equations_of_chapters()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_equation_that_code_names_is_in_a_chapter(path):
    assert named_by([path]) <= equations_of_chapters()


def test_every_equation_is_named_by_code_or_a_step():
    named = named_by(SOURCES + CHECKS) | in_cells("code", IN_CELL)
    assert equations_of_chapters() - named == set(STEPS)


@pytest.mark.parametrize(("equations", "code"), list(chapters()))
def test_what_a_chapter_links_names_its_equations(equations, code):
    named = NAMED.findall("\n".join(map(linked, code)))
    assert set(equations) <= set(named)


def test_enough_passages_and_equations_are_found():
    assert len(list(chapters())) >= 25
    assert len(equations_of_chapters()) >= 150
    assert len(named_by(SOURCES)) >= 90


def test_a_passage_takes_the_equation_above_or_those_that_it_names():
    link = "{py:func}`pepcore.sites.cavity`"
    text = f"$$\na\n$$ (one)\n\n$$b$$ (two)\n\n*In the code:* {link}.\n\n*In the code:* {link} is {{eq}}`one`."
    assert list(passages(text)) == [(["two"], ["pepcore.sites.cavity"]), (["one"], ["pepcore.sites.cavity"])]


@pytest.mark.parametrize("path", build_book.chapters(), ids=lambda path: path.stem)
def test_no_equation_stands_in_two_pairs_of_parentheses(path):
    """A reference shows its own: "(3.18)"."""
    assert not re.search(r"\(\{eq\}`[\w-]+`\)", path.read_text(encoding="utf-8"))
