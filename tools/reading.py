"""How long the chapters take: words, code, formulas and pictures of each section, and exercises by their titles."""

import ast
import json
import re
from dataclasses import dataclass
from functools import cache, cached_property

import build_book
import exercise_list

WORDS, LINES, FORMULAS = 130, 10, 2     # read in a minute: words of prose, lines of visible code, displayed formulas
SLIDER, PICTURE = 2, 1                  # minutes for a slider, and for another figure or a table
HIDDEN = {"hide-input", "remove-input", "hide-cell", "remove-cell"}
NOT_PROSE = (r"(?m)^% [^\n]*$", r"\$\$.*?\$\$", r"\$[^$]*\$", r"(?ms)^(`{3,}|:{3,})\{math\}.*?^\1", r"(?m)^:[\w-]+:[^\n]*$",
             r"\{[\w:]+\}`[^`]*`", r"`[^`]*`", r"\]\([^)]*\)")
DISPLAYED = re.compile(r"^(`{3,}|:{3,})\{math\}|^\$\$.*?^\$\$", re.MULTILINE | re.DOTALL)
OPENING = "The opening"


@dataclass
class Section:
    """What stands below one heading of the second level: its title, and (kind of cell, source, cell) in order."""

    title: str
    parts: list

    @cached_property
    def minutes(self):
        """Minutes to read it; not rounded."""
        prose = "\n\n".join(text for kind, text, _ in self.parts if kind == "markdown")
        cells = [cell for kind, _, cell in self.parts if kind == "code"]
        lines = sum(len([line for line in code.splitlines() if line.strip()]) for code in visible(cells))
        return (words(prose) / WORDS + lines / LINES + len(DISPLAYED.findall(prose)) / FORMULAS
                + sum(SLIDER if calls(source(cell), "slider") else PICTURE * shows_picture(cell) for cell in cells))

    @property
    def is_exercises(self):
        return self.title.startswith("Exercises")


@dataclass
class Times:
    """A chapter's sections without its exercises, and its exercises."""

    stem: str
    title: str
    sections: list
    exercises: list

    @property
    def reading(self):
        """Minutes to read all of it; not rounded."""
        return sum(section.minutes for section in self.sections)

    @property
    def solving(self):
        """Minutes for all of its exercises, by their titles."""
        return sum(exercise.minutes for exercise in self.exercises)

    def section(self, title):
        for section in self.sections:
            if section.title == title:
                return section
        raise ValueError(f"there is no section {title!r}; the sections are: {', '.join(one.title for one in self.sections)}")


@cache
def chapters():
    """The times of the book's chapters by their names, in order."""
    return {path.stem: of(path) for path in build_book.chapters()}


def of(path):
    """The times of a notebook."""
    chapter = exercise_list.read(path)
    found = sections(json.loads(path.read_text(encoding="utf-8"))["cells"])
    return Times(path.stem, chapter.title, [section for section in found if not section.is_exercises], chapter.exercises)


def sections(cells):
    """The sections of a notebook; before the first heading comes the opening."""
    found = [Section(OPENING, [])]
    for cell in cells:
        if cell["cell_type"] == "code":
            found[-1].parts.append(("code", source(cell), cell))
            continue
        for text in re.split(r"^(?=## )", source(cell), flags=re.MULTILINE):
            if heading := re.match(r"## (.*)", text):
                found.append(Section(heading[1].strip(), []))
            found[-1].parts.append(("markdown", text, cell))
    return found


def source(cell):
    return "".join(cell["source"])


def words(text):
    """How many words a reader reads: formulas, code, options of directives and targets of links do not count."""
    for pattern in NOT_PROSE:
        text = re.sub(pattern, " ", text, flags=re.DOTALL)
    return len(re.findall(r"[^\W\d_][\w'’-]*", text))


def visible(cells):
    """The code that the page shows open."""
    return [source(cell) for cell in cells
            if cell["cell_type"] == "code" and not HIDDEN.intersection(cell["metadata"].get("tags", []))]


def calls(code, name):
    """Whether code calls a function of that name, as `name(...)` or `module.name(...)`."""
    return any(isinstance(node, ast.Call) and name == getattr(node.func, "id", getattr(node.func, "attr", None))
               for node in ast.walk(ast.parse(code)))


def shows_picture(cell):
    """Whether the page shows a figure or a table below the cell; the box for an answer is neither."""
    code, shown = source(cell), [output.get("data", {}) for output in cell["outputs"]]
    return not calls(code, "check") and not calls(code, "quiz") and any({"image/png", "text/html"} & set(data) for data in shown)
