"""Notes on a chapter for its teacher: marks, time, what to show, and each exercise with solution and usual mistakes."""

import ast
import inspect
import math
import textwrap

import exercises
import nbformat
from checks.declared import Choice, NotWhole, Numbers, Within
from nbformat.v4 import new_code_cell, new_markdown_cell
from plain_text import plain

GRADES = ["Warm-up", "Core", "Research"]
SHORTEST = 15       # characters; shorter strings in a checker are no sentences


def notes(chapter, course):
    """The cells of a chapter's notes; `course` is the place of nbgrader's course beside them."""
    cells = [f"# {chapter.title}: notes for teachers", marks(chapter, course), live(chapter)]
    cells += [f"## Quiz\n\n{quiz(chapter)}"] if chapter.questions else []
    cells = [new_markdown_cell(cell) for cell in cells]
    for number, exercise in enumerate(chapter.exercises, start=1):
        cells += about(number, exercise)
    return cells


def marks(chapter, course):
    """Points and minutes, by grade and by exercise."""
    whole, reached = chapter.points, len(chapter.questions)
    by_grade = [("Quiz", reached, "", reached, f"{reached / whole:.0%}")] if reached else []
    for grade in GRADES:
        of_grade = [exercise for exercise in chapter.exercises if exercise.grade == grade]
        minutes, points = (sum(getattr(exercise, what) for exercise in of_grade) for what in ("minutes", "points"))
        reached += points
        by_grade.append((grade, len(of_grade), minutes, points, f"{reached / whole:.0%}"))
    each = [(number, exercise.title, exercise.grade, exercise.minutes, exercise.points, exercise.by_hand or "", exercise.kind)
            for number, exercise in enumerate(chapter.exercises, start=1)]
    return "\n\n".join([
        "## Marks and time",
        f"The page says of its time: {chapter.time} Together, the exercises are set for "
        f"{sum(exercise.minutes for exercise in chapter.exercises)} minutes.",
        "An exercise gives one point for every five minutes that it should take, a question of the quiz one point. nbgrader "
        f"marks the assignment `{course}/{chapter.stem}`, each answer with all of its points or none. The points *by hand* are "
        "for what an exercise leaves open: the last cell below it, which you mark in the Formgrader.",
        table(("grade", "exercises", "minutes", "points", "with those above, of all points"), by_grade),
        table(("", "exercise", "grade", "minutes", "points", "by hand", "kind"), each),
    ])


def live(chapter):
    """The chapter's sliders, with links to them."""
    shown = [f"- [{caption}](../html/chapters/{chapter.stem}.html#{name})" for name, caption in sliders(chapter)]
    return "## To show live\n\n" + ("\n".join(shown) or "This chapter has no slider.")


def quiz(chapter):
    """The questions of its quiz, each with the right answer and the reason."""
    return "\n".join(f"{number}. {question.asked.text} *{question.asked.options[question.asked.right][0]}*: {question.asked.why}"
                     for number, question in enumerate(chapter.questions, start=1))


def sliders(chapter):
    """Name and caption of each slider of the chapter, in order."""
    for statement in chapter.program:
        for node in ast.walk(statement.tree):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "slider":
                given = {keyword.arg: keyword.value for keyword in node.keywords}
                if {"name", "caption"} <= set(given):
                    yield tuple(ast.literal_eval(given[part]) for part in ("name", "caption"))


def about(number, exercise):
    """Statement, solution and usual mistakes of an exercise."""
    cells = [new_markdown_cell(exercise.statement(number)), new_markdown_cell("### Solution")]
    for part in exercise.solution:
        if isinstance(part, str):
            cells.append(new_markdown_cell(plain(part)))
        else:
            outputs = [nbformat.from_dict(output) for output in part["outputs"]]
            cells.append(new_code_cell(part["source"], outputs=outputs))
    return [*cells, new_markdown_cell(f"### Usual mistakes\n\n{mistakes(exercise.name)}")]


def mistakes(name):
    """The mistakes that a checker knows, each with the hint that answers it."""
    declared = exercises.declarations().get(name)
    if isinstance(declared, Choice):
        return table(("answer", "hint"), [(text, hint) for text, hint in declared.options if hint])
    if isinstance(declared, Numbers):
        known = [(", ".join(map(pattern, places)), hint) for places, hint in declared.rules()]
        return table(("answer", "hint"), known + [("any other", hint) for hint in dict.fromkeys(declared.otherwise)])
    return "\n".join(f"- {hint}" for hint in hints(name))


def pattern(place):
    """One number of a mistake in words."""
    if place is None:
        return "any"
    if isinstance(place, NotWhole):
        return "not a whole number"
    if isinstance(place, Within):
        bounds = [f"at least {place.low:g}" * math.isfinite(place.low), f"at most {place.high:g}" * math.isfinite(place.high)]
        return " and ".join(filter(None, bounds))
    return f"{place.centre:.4g}"


def hints(name):
    """What the function that checks an exercise may say, in its order."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(exercises.checker_of(name))))
    said = [node for node in ast.walk(tree) if isinstance(node, ast.Return | ast.Raise)]
    found = [text for node in sorted(said, key=lambda node: node.lineno) for text in sentences(node)]
    return list(dict.fromkeys(text for text in found if len(text) >= SHORTEST and " " in text))


def sentences(node):
    """The strings in a piece of code; what is filled in when it runs is shown as …"""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    else:
        for child in ast.iter_child_nodes(node):
            yield from sentences(child)


def table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
