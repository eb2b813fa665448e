"""A chapter's notes for its teacher: marks and time, what to show, and each exercise with its solution and its usual mistakes."""

import ast
import inspect
import textwrap

import exercises
import nbformat
from checks.declared import Choice, NotWhole, Numbers, Within
from nbformat.v4 import new_code_cell, new_markdown_cell
from plain_text import plain

GRADES = ["Warm-up", "Core", "Research"]
SHORTEST = 15       # characters of a string in a checker that is a sentence


def notes(chapter, course):
    """The cells of a chapter's notes; `course` is the place of nbgrader's course beside them."""
    cells = [f"# {chapter.title}: notes for teachers", marks(chapter, course), live(chapter)]
    cells = [new_markdown_cell(cell) for cell in cells]
    for number, exercise in enumerate(chapter.exercises, start=1):
        cells += about(number, exercise)
    return cells


def marks(chapter, course):
    """Points and minutes, by grade and by exercise."""
    whole = sum(exercise.points for exercise in chapter.exercises)
    by_grade, reached = [], 0
    for grade in GRADES:
        of_grade = [exercise for exercise in chapter.exercises if exercise.grade == grade]
        points = sum(exercise.points for exercise in of_grade)
        reached += points
        by_grade.append((grade, len(of_grade), sum(exercise.minutes for exercise in of_grade), points, f"{reached / whole:.0%}"))
    each = [(number, exercise.title[3], exercise.grade, exercise.minutes, exercise.points, exercise.title[2] or "")
            for number, exercise in enumerate(chapter.exercises, start=1)]
    return "\n\n".join([
        "## Marks and time",
        f"The page says of its time: {chapter.time} The exercises take {sum(row[2] for row in by_grade)} minutes together.",
        f"An exercise gives one point for every five minutes that it should take, all of them or none. The marks are computed by "
        f"nbgrader in the assignment `{course}/{chapter.stem}`.",
        table(("grade", "exercises", "minutes", "points", "share of all points, with the grades above"), by_grade),
        table(("", "exercise", "grade", "minutes", "points", "kind"), each),
    ])


def live(chapter):
    """The chapter's sliders, with links to them."""
    shown = [f"- [{caption}](../html/chapters/{chapter.stem}.html#{name})" for name, caption in sliders(chapter)]
    return "## To show live\n\n" + ("\n".join(shown) or "This chapter has no slider.")


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
    grade, minutes, kind, title = exercise.title
    about = ", ".join(filter(None, [grade, f"{minutes} minutes", kind, f"points: {exercise.points}"]))
    cells = [new_markdown_cell(f"## {number}. {title[0].upper()}{title[1:]}\n\n*{about}*\n\n{plain(exercise.text)}"),
             new_markdown_cell("### Solution")]
    for part in exercise.solution:
        cells.append(new_markdown_cell(plain(part)) if isinstance(part, str) else
                     new_code_cell("".join(part["source"]), outputs=[printed(output) for output in part["outputs"]]))
    return [*cells, new_markdown_cell(f"### Usual mistakes\n\n{mistakes(exercise.name)}")]


def printed(output):
    """An output as nbformat keeps it in memory, with text in one piece."""
    output = dict(output)
    if "text" in output:
        output["text"] = "".join(output["text"])
    if "data" in output:
        output["data"] = {kind: "".join(data) if isinstance(data, list) else data for kind, data in output["data"].items()}
    return nbformat.from_dict(output)


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
        return f"from {place.low:g} to {place.high:g}"
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
