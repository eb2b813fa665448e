"""nbgrader's assignments from the chapters: a notebook for each, with quiz, exercises, solutions and hidden tests.

The notebooks made here are nbgrader's *source* and stay with the teacher. `make_course` puts them into a course folder
and lets nbgrader make the *release*, which has neither solutions nor hidden tests. A hidden test asks the checker of
the exercise, so that whoever gets no points gets its hint.
"""

import os
import shutil

import build_book
import nbformat
import setup_cell
from exercise_list import points
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.apps import NbGraderAPI
from plain_text import plain
from traitlets.config import Config

INTRODUCTION = """# {title}: exercises

{asked}{count} exercises, {points} points in all: {each}one for every five minutes that an exercise should take. Put your \
answers in place of `...`, in the cell below each exercise. The cells after them stay as they are: they are filled when \
your work is graded, and then say what to look at again. Where an exercise has points for your words, write them into \
the last cell below it; they are marked by hand.

Equations and figures are called by their names in the book; the chapter is `{stem}.html` there. The next cell has \
what the exercises need of the chapter's code."""
WORDS = """*{points} for your words, marked by hand:* answer what the exercise leaves open, and say how you found \
your answer. Write in place of the next line.

### BEGIN SOLUTION
{words}
### END SOLUTION"""
HIDDEN_TEST = """# {points}: your answer is checked when it is graded.
### BEGIN HIDDEN TESTS
from exercises import grade

grade("{name}", {answer})
### END HIDDEN TESTS"""
CONFIG = """# nbgrader's settings. Grading needs the book's checkers, and nbgrader needs its programs on the path.
import os
import sys

c = get_config()
course = os.path.dirname(os.path.abspath(__file__))
book = os.path.join(course, {book!r})     # change this if you move the course and not the book
c.CourseDirectory.root = course
c.CourseDirectory.course_id = "pepcore"
c.ClearSolutions.code_stub = {{"python": ""}}
c.ExecutePreprocessor.timeout = 600
os.environ["PYTHONPATH"] = os.pathsep.join(os.path.join(book, folder) for folder in ("", "chapters"))
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
os.environ["PEPCORE_PROGRESS"] = "0"
"""


def assignment(chapter):
    """A chapter's exercises as a notebook with solutions and hidden tests, and the values that it reads."""
    questions = chapter.questions
    introduction = INTRODUCTION.format(
        title=chapter.title, stem=chapter.stem, count=len(chapter.exercises), points=chapter.points,
        asked=f"{len(questions)} questions and " if questions else "", each="one for each question, and " if questions else "")
    code, values = setup_cell.setup(chapter)
    cells = [
        new_markdown_cell(introduction, id="introduction"),
        graded(new_code_cell(code, id="setup"), "setup", locked=True),
    ]
    for number, question in enumerate(questions, start=1):
        text = "## Questions\n\n" * (number == 1) + f"**Question {number}.** {question.statement()}"
        cells += set_cells(question, text, question.blank, question.right)
    emitted = set()
    for number, exercise in enumerate(chapter.exercises, start=1):
        cells += exercise_cells(chapter, exercise, number, emitted)
    notebook = new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return notebook, values


def exercise_cells(chapter, exercise, number, emitted):
    """An exercise's cells; `emitted` holds the places of solutions' statements in earlier cells."""
    cells = set_cells(exercise, exercise.statement(number), setup_cell.without_figures(exercise.blank),
                      solution(chapter, exercise, emitted))
    if exercise.by_hand:
        words = "\n\n".join(plain(part) for part in exercise.solution if isinstance(part, str))
        text = WORDS.format(points=points(exercise.by_hand), words=words)
        cells.append(graded(new_markdown_cell(text, id=f"{exercise.name}-words"), f"{exercise.name}-words",
                            grade=True, solution=True, points=exercise.by_hand))
    return cells


def set_cells(task, statement, blank, right):
    """Statement, answer and hidden test of an exercise, or of a question of the quiz."""
    answer = f"{blank}\n### BEGIN SOLUTION\n{right}\n### END SOLUTION"
    worth = task.points - task.by_hand
    test = HIDDEN_TEST.format(points=points(worth), name=task.name, answer=task.answer)
    return [
        new_markdown_cell(statement, id=f"{task.name}-text"),
        graded(new_code_cell(answer, id=f"{task.name}-answer"), f"{task.name}-answer", solution=True),
        graded(new_code_cell(test, id=f"{task.name}-test"), task.name, grade=True, locked=True, points=worth),
    ]


def solution(chapter, exercise, emitted):
    """The statements of the solution that the answer depends on, and the answer under the name of the cell to try."""
    places, expression = chapter.places(exercise)
    new = [place for place in places if chapter.program[place].origin is not None and place not in emitted]
    emitted.update(new)
    given = "" if expression == exercise.answer else f"\n{exercise.answer} = {expression}"
    return setup_cell.joined([chapter.program[place] for place in new]) + given


def graded(cell, grade_id, grade=False, locked=False, solution=False, points=None):
    """A cell with the metadata that nbgrader needs."""
    cell.metadata.nbgrader = {"schema_version": 3, "grade_id": grade_id, "grade": grade, "locked": locked,
                              "solution": solution, "task": False}
    if points is not None:
        cell.metadata.nbgrader["points"] = points
    return cell


def make_course(chapters, course):
    """Write nbgrader's course folder with the source of all assignments, and let nbgrader make their releases."""
    for made in ("source", "release"):
        shutil.rmtree(course / made, ignore_errors=True)
    course.mkdir(parents=True, exist_ok=True)
    (course / "nbgrader_config.py").write_text(CONFIG.format(book=os.path.relpath(build_book.ROOT, course)))
    for chapter in chapters:
        folder = course / "source" / chapter.stem
        folder.mkdir(parents=True)
        notebook, values = assignment(chapter)
        nbformat.write(notebook, folder / f"{chapter.stem}.ipynb")
        if values:
            (folder / setup_cell.VALUES).write_bytes(setup_cell.dumped(values))
    api = grader(course)
    for chapter in chapters:
        demand(api.generate_assignment(chapter.stem, force=True, create=True))


def grader(course):
    """nbgrader with the settings of a course."""
    config, file = Config(), course / "nbgrader_config.py"
    exec(file.read_text(), {"get_config": lambda: config, "__file__": str(file)})
    return NbGraderAPI(config=config)


def demand(outcome):
    """Raise RuntimeError unless nbgrader did what it was asked to do."""
    if not outcome["success"]:
        raise RuntimeError(outcome.get("log") or outcome.get("error"))
