"""Sphinx extension: the directives of the pages for teachers and for self-study, from chapters/teaching.toml.

`minutes`, the times of all sections; `prerequisites`, the map of the chapters; `goals`, with their exercises; `route NAME`,
a plan by weeks or sessions; `lesson CHAPTER`, one class minute by minute; `checklist NAME NUMBER`, a part of a route to tick;
`checklist_progress`, how much of all parts is ticked.
"""

import re
import tomllib
from functools import cache
from html import escape
from itertools import groupby
from operator import itemgetter

import pictures
import reading
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from figures.drawing import chapter_map, frames, style

FILE = reading.build_book.ROOT / "chapters/teaching.toml"
MAP = "chapter-map"


@cache
def kept():
    """What the file holds."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def route(name):
    """The parts of a route."""
    return _entry("route", "name", name)["part"]


def lesson(chapter):
    """The plan of a class."""
    return _entry("lesson", "chapter", chapter)


def _entry(kind, key, wanted):
    """The route or lesson in the file whose `key` is `wanted`."""
    named = {one[key]: one for one in kept()[kind]}
    if wanted not in named:
        raise ValueError(f"{FILE.name} has no {kind} called {wanted!r}; it has: {', '.join(named)}")
    return named[wanted]


class Material:
    """Something to read, a chapter or one section of it: where it is, what it is called, how long it takes."""

    def __init__(self, name):
        self.stem, _, self.section = name.partition("#")
        self.chapter = reading.chapters()[self.stem]

    @property
    def minutes(self):
        return self.chapter.section(self.section).minutes if self.section else self.chapter.reading

    @property
    def title(self):
        return self.section or self.chapter.title

    @property
    def address(self):
        known = self.section not in ("", reading.OPENING)
        return f"{self.stem}.html" + (f"#{nodes.make_id(self.section)}" if known else "")

    @property
    def link(self):
        return f'<a href="{self.address}">{words(self.title)}</a>'


class Task:
    """An exercise by its label."""

    def __init__(self, label):
        self.stem, self.exercise = exercises()[label]
        self.minutes = self.exercise.minutes
        self.title = self.exercise.title
        self.address = f"{self.stem}.html#{label}"

    @property
    def link(self):
        return f'<a href="{self.address}">{words(self.title)}</a>'


@cache
def exercises():
    """All exercises: dict of label -> (chapter, exercise)."""
    return {exercise.label: (stem, exercise) for stem, chapter in reading.chapters().items() for exercise in chapter.exercises}


def words(text):
    """Text with formulas between dollar signs, in HTML."""
    return re.sub(r"\$([^$]+)\$", r'<span class="math notranslate nohighlight">\\(\1\\)</span>', escape(text, quote=False))


def rounded(minutes):
    """Minutes as they are shown: multiples of five from a quarter of an hour on; at least one."""
    return max(1, round(minutes)) if minutes < 15 else 5 * round(minutes / 5)


def in_minutes(number):
    return f"{number} minute{'s' * (number != 1)}"


def table(head, rows, kind=""):
    """A table in HTML; the first cell of a row is its heading."""
    columns = "".join(f'<th scope="col">{name}</th>' for name in head)
    lines = "".join(f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
                    for first, *rest in rows)
    return f'<table class="table {kind}"><thead><tr>{columns}</tr></thead><tbody>{lines}</tbody></table>'


def minutes_html():
    """For each chapter a table of its sections, folded below its name and its times."""
    found = []
    for stem, chapter in reading.chapters().items():
        rows = [(Material(f"{stem}#{section.title}").link, rounded(section.minutes))
                for section in chapter.sections if section.title != reading.OPENING]
        solving = f", exercises {chapter.solving}" if chapter.exercises else ""
        found.append(f'<details><summary>{words(chapter.title)}: reading {rounded(chapter.reading)}{solving} minutes</summary>'
                     f'{table(("section", "minutes"), rows)}</details>')
    return "".join(found)


def needs(chapter):
    """The chapters that a chapter needs directly, in the order of `NEEDS`."""
    return [first for first, second in chapter_map.NEEDS if second == chapter]


def all_needs(chapter):
    """The chapters that a chapter needs, directly or through others, in the order of the map."""
    found = set()
    for first in needs(chapter):
        found |= {first, *all_needs(first)}
    return [stem for stem in chapter_map.CHAPTERS if stem in found]


def prerequisites_html():
    """The chapters of the map in a table."""
    rows = []
    for stem in chapter_map.CHAPTERS:
        before = all_needs(stem)
        time = sum(reading.chapters()[name].reading for name in before)
        rows.append((Material(stem).link, ", ".join(Material(name).link for name in needs(stem)) or "–",
                     rounded(time) if before else "–"))
    return table(("chapter", "needs first", "minutes to read all that it needs"), rows)


def map_in_words():
    """What the map shows, for readers who cannot see it."""
    said = [f"{reading.chapters()[stem].title} needs {' and '.join(reading.chapters()[name].title for name in needs(stem))}"
            for stem in chapter_map.CHAPTERS if needs(stem)]
    return "Boxes with arrows between them. " + "; ".join(said) + "."


def draw_map():
    """The map as a picture for both themes."""
    target = pictures.FRAMES / "still" / MAP
    target.parent.mkdir(parents=True, exist_ok=True)
    with style.context():
        fig = frames.new_figure(chapter_map.SIZE)
        chapter_map.draw(fig)
        kind = frames.save(fig, target)
    width, height = (round(size * frames.DPI) for size in chapter_map.SIZE)
    data = {"kind": kind, "width": width, "height": height}
    return pictures.picture("", html=pictures.both_themes(f"{{frames}}/still/{MAP}", data, map_in_words()))


def goals_html():
    """What a student can do after each chapter, with the exercises that test it."""
    def line(goal):
        tasks = [Task(label) for label in goal["exercises"]]
        return f"You can {escape(goal['text'])}: {', '.join(f'{task.link} ({task.exercise.grade.lower()})' for task in tasks)}."

    by_chapter = groupby(kept()["goal"], itemgetter("chapter"))
    return definitions((Material(stem).link, list(map(line, goals))) for stem, goals in by_chapter)


def definitions(groups):
    """A list of terms, each with some lines, in HTML."""
    lines = "".join(f"<dt>{term}</dt>{''.join(f'<dd>{line}</dd>' for line in said)}" for term, said in groups)
    return f'<dl class="simple">{lines}</dl>'


def route_html(name):
    """A route, in HTML: for each part what to read and solve, and how long that takes."""
    groups = []
    for part in route(name):
        texts, tasks = [Material(one) for one in part["read"]], [Task(one) for one in part["exercises"]]
        said = [f"In the paper: {escape(part['paper'])}."] if "paper" in part else []
        said += [f"Read ({in_minutes(total(texts))}): {by_chapter(texts)}.",
                 f"Exercises ({in_minutes(total(tasks))}): {', '.join(one.link for one in tasks)}."]
        groups.append((escape(part["when"]), said))
    return definitions(groups)


def by_chapter(texts):
    """Links to chapters, or to sections with the name of their chapter before them."""
    said = []
    for stem, group in groupby(texts, lambda text: text.stem):
        links = [text.link for text in group]
        inside = any("#" in link for link in links)
        said.append((f"<em>{words(reading.chapters()[stem].title)}</em>: " if inside else "") + ", ".join(links))
    return "; ".join(said)


def total(parts):
    """The minutes of some parts together, as they are shown."""
    return rounded(sum(part.minutes for part in parts))


def lesson_html(chapter):
    """A class minute by minute, with what is read before and after it."""
    plan, at, rows = lesson(chapter), 0, []
    for step in plan["step"]:
        about = (Task(step["exercise"]).link if "exercise" in step else
                 Material(f"{chapter}#{step['section']}").link)
        rows.append((f"{at}–{at + step['minutes']}", about, words(step["what"])))
        at += step["minutes"]
    sides = "".join(f"<p><strong>{side.capitalize()} the class</strong> ({in_minutes(total(texts))}): "
                    f"{'; '.join(one.link for one in texts)}.</p>"
                    for side in ("before", "after") if (texts := [Material(f"{chapter}#{one}") for one in plan[side]]))
    return table(("minutes", "section or exercise", "what happens"), rows, "lesson") + sides


def checklist_html(name, number):
    """A part of a route as a list to tick."""
    part = route(name)[number - 1]
    items = [(f"Read “{one.title}”", one) for one in map(Material, part["read"])]
    items += [(f"Exercise “{one.title}”", one) for one in map(Task, part["exercises"])]
    lines = []
    for title, one in items:
        mark = f"tick-{number}-{nodes.make_id(one.address)}"
        lines.append(f'<li><input type="checkbox" id="{mark}" data-item="{escape(one.address)}">'
                     f'<label for="{mark}">{words(title)}, {in_minutes(rounded(one.minutes))}</label>'
                     f'<a href="{one.address}" aria-label="Open {escape(one.title.replace("$", ""))}">open</a></li>')
    whole = round(sum(one.minutes for _, one in items) / 30) / 2
    return (f"<p>About {whole:g} hours.</p>"
            f'<ul class="checklist">{"".join(lines)}</ul>')


def progress_html():
    """How much is ticked, and the button that clears it; _static/checklist.js fills it."""
    return ('<p class="checklist-progress"><span role="status"></span>'
            '<button type="button">Clear all ticks</button></p>')


class Shown(SphinxDirective):
    """A directive that shows what a function of its arguments returns."""

    optional_arguments = 2

    def run(self):
        self.env.note_dependency(str(FILE))
        return [nodes.raw("", self.show(*self.arguments), format="html")]


class Prerequisites(SphinxDirective):
    """The map of the chapters, and the same in a table."""

    def run(self):
        return [draw_map(), nodes.raw("", prerequisites_html(), format="html")]


def shown(function):
    """A directive for a function that returns HTML."""
    return type(function.__name__, (Shown,), {"show": staticmethod(function)})


def setup(app):
    for name, function in {"minutes": minutes_html, "goals": goals_html, "route": route_html, "lesson": lesson_html,
                           "checklist": lambda name, number: checklist_html(name, int(number)),
                           "checklist_progress": progress_html}.items():
        app.add_directive(name, shown(function))
    app.add_directive("prerequisites", Prerequisites)
    return {"version": "1", "parallel_read_safe": True}
