"""The student edition leaks nothing, and nbgrader marks solved, empty and mistaken submissions as they deserve."""

import html
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import assignments
import exercise_list
import exercises
import make_instructor
import make_student
import nbformat
import pytest
import teacher_notes
from checks.declared import Choice, Near, Numbers
from conftest import ROOT
from nbgrader.api import Gradebook

CHAPTERS = exercise_list.chapters()
DECLARED = exercises.declarations()
STUDENTS = ["solved", "empty", "mistaken"]
SENTENCE_END = re.compile(r"(?<=[.?!:])\s")
COMMON = ("from ", "import ", "def ", "for ")      # so begin lines that are no secret
TAG = re.compile(r"<[^>]+>")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)")
GROUPS = re.compile(r"(?<=\d) (?=\d{3}(?!\d))")      # the spaces inside 402 000


@pytest.fixture(scope="module")
def editions(tmp_path_factory):
    """The student edition and nbgrader's course, both made anew."""
    folder, before = tmp_path_factory.mktemp("editions"), dict(os.environ)
    make_student.make(folder / "student", folder / "course")
    grader = assignments.grader(folder / "course")
    yield SimpleNamespace(student=folder / "student", course=folder / "course", grader=grader)
    os.environ.clear()
    os.environ.update(before)


def test_the_student_edition_finds_the_exercises_as_make_starts_it():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    program = "import make_student; print(sum(len(chapter.questions) for chapter in make_student.exercise_list.chapters()))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT / "tools", env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{sum(len(chapter.questions) for chapter in CHAPTERS)}\n"), done.stderr


def answer_cells(notebook):
    """Name of the exercise -> the cell for its answer."""
    return {cell.metadata.nbgrader.grade_id.removesuffix("-answer"): cell for cell in notebook.cells
            if cell.metadata.get("nbgrader", {}).get("solution")}


def read(folder, chapter):
    return nbformat.read(folder / chapter.stem / f"{chapter.stem}.ipynb", 4)


def mistake(declared):
    """A wrong answer that a declaration names, as code, and what is said of it."""
    if isinstance(declared, Choice):
        place = next(i for i, (_, hint) in enumerate(declared.options) if hint)
        return repr(declared.letters[place]), declared.options[place][1]
    for pattern, hint in declared.rules():
        values = [float(place.centre) if isinstance(place, Near) else float(right)
                  for place, right in zip(pattern, declared.values())]
        if declared.feedback(values) == hint:
            return repr(values), hint
    raise AssertionError(f"{declared.name}: no mistake can be written down")


def mistakes(chapter):
    """Name -> (wrong answer, hint) for the questions of a chapter and its exercises with declared mistakes."""
    declared = [DECLARED.get(exercise.name) for exercise in chapter.exercises]
    declared = [one for one in declared if isinstance(one, Choice) or (isinstance(one, Numbers) and one.mistakes)]
    return {one.name: mistake(one) for one in [*(question.asked for question in chapter.questions), *declared]}


def tasks(chapter):
    """All that an assignment asks: the questions of the quiz, and the exercises."""
    return [*chapter.questions, *chapter.exercises]


def hand_in(editions, chapter):
    """Put a solved, an empty and a mistaken submission where nbgrader looks for them."""
    solved = {name: cell.source for name, cell in answer_cells(read(editions.course / "source", chapter)).items()}
    names = {task.name: task.answer for task in tasks(chapter)}
    wrong = {name: f"{solved[name]}\n{names[name]} = {answer}" for name, (answer, _) in mistakes(chapter).items()}
    for student, answers in zip(STUDENTS, ({name: solved[name] for name in solved}, {}, solved | wrong)):
        notebook = read(editions.student, chapter)
        for name, cell in answer_cells(notebook).items():
            cell.source = answers.get(name, cell.source)
        folder = editions.course / "submitted" / student / chapter.stem
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{chapter.stem}.ipynb")


@pytest.fixture(scope="module", params=CHAPTERS, ids=lambda chapter: chapter.stem)
def marked(request, editions):
    """A chapter, and for each student the score, the largest score possible and the marked notebook."""
    chapter = request.param
    hand_in(editions, chapter)
    found = {}
    for student in STUDENTS:
        assignments.demand(editions.grader.autograde(chapter.stem, student, force=True, create=True))
    with Gradebook(f"sqlite:///{editions.course}/gradebook.db", "pepcore") as gradebook:
        for student in STUDENTS:
            submission = gradebook.find_submission(chapter.stem, student)
            said = errors(read(editions.course / "autograded" / student, chapter))
            found[student] = SimpleNamespace(score=submission.score, largest=submission.max_score, said=said,
                                             to_read=submission.needs_manual_grade)
    return chapter, found


def errors(notebook):
    """All that the tests of a marked notebook said."""
    return "\n".join(output.evalue for cell in notebook.cells for output in cell.get("outputs", [])
                     if output.output_type == "error")


def test_marks_are_full_none_and_partial(marked):
    chapter, found = marked
    points = {task.name: task.points - task.by_hand for task in tasks(chapter)}
    by_hand = sum(task.by_hand for task in tasks(chapter))
    wrong = mistakes(chapter)
    assert wrong
    assert {result.largest for result in found.values()} == {chapter.points} == {sum(points.values()) + by_hand}
    assert [found[student].to_read for student in STUDENTS] == [by_hand > 0, False, by_hand > 0]
    assert found["solved"].said == ""
    assert found["solved"].score == sum(points.values())
    assert found["empty"].score == 0
    assert found["mistaken"].score == sum(points.values()) - sum(points[name] for name in wrong)
    for name, (_, hint) in wrong.items():
        assert f"{name}: {hint}" in found["mistaken"].said


def test_hints_reach_the_students(editions, marked):
    """nbgrader's feedback, a page, holds the hints and nothing of the checkers."""
    chapter, _ = marked
    assignments.demand(editions.grader.generate_feedback(chapter.stem, "mistaken", force=True))
    page = next((editions.course / "feedback" / "mistaken" / chapter.stem).glob("*.html")).read_text(encoding="utf-8")
    for _, hint in mistakes(chapter).values():
        assert hint.split("'")[0] in html.unescape(page)
    assert "checks/" not in page


# What the notes for teachers have.

@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Chapter -> the text of its page of notes."""
    folder = tmp_path_factory.mktemp("instructor")
    make_instructor.make(folder, CHAPTERS)
    return {chapter.stem: squeezed(html.unescape(TAG.sub("", (folder / f"{chapter.stem}.html").read_text(encoding="utf-8"))))
            for chapter in CHAPTERS} | {"links": (folder / "index.html").read_text(encoding="utf-8")}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_notes_have_each_exercise_with_its_solution_and_mistakes(pages, chapter):
    text = pages[chapter.stem]
    assert f'href="{chapter.stem}.html"' in pages["links"]
    for number, exercise in enumerate(chapter.exercises, start=1):
        assert squeezed(f"{number}. {exercise.title}") in text
        for part in exercise.solution:
            assert isinstance(part, str) or squeezed(part.source) in text, exercise.name
        declared = DECLARED.get(exercise.name)
        if isinstance(declared, Numbers):
            hints = [hint for _, hint in declared.mistakes] + list(declared.otherwise)
        elif isinstance(declared, Choice):
            hints = [hint for _, hint in declared.options if hint]
        else:
            hints = teacher_notes.hints(exercise.name)
        assert len(hints) >= 2, exercise.name
        assert not [hint for hint in hints if squeezed(hint.replace("`", "")) not in text], exercise.name
    for question in chapter.questions:
        assert squeezed(question.asked.why) in text
    assert not re.search(r"\{[a-z:]+\}`|:::|solution-", text)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_notes_name_the_sliders_of_the_chapter(pages, chapter):
    source = (ROOT / "chapters" / f"{chapter.stem}.ipynb").read_text(encoding="utf-8")
    shown = list(teacher_notes.sliders(chapter))
    assert len(shown) == len(re.findall(r"^ +\"(?:slider\.)?slider\(", source, re.MULTILINE))
    assert all(squeezed(caption) in pages[chapter.stem] for _, caption in shown)


# What the student edition has, and what it has not.

def texts(editions):
    """Path -> text of all files that a student gets, but for tables of numbers."""
    return {path: path.read_text(encoding="utf-8") for path in editions.student.rglob("*")
            if path.suffix in (".ipynb", ".py", ".md", ".toml")}


def squeezed(text):
    return re.sub(r"\s", "", text)


def solutions():
    """Each exercise and question, and the lines and sentences of its solution that no chapter and no module of `pepcore` has."""
    elsewhere = squeezed("".join(path.read_text(encoding="utf-8") for path in (ROOT / "pepcore").rglob("*.py")))
    for chapter in CHAPTERS:
        elsewhere += squeezed("".join(statement.source for statement in chapter.program if statement.origin is None)
                              + "".join(exercise.to_try + exercise.text for exercise in chapter.exercises))
    for chapter in CHAPTERS:
        for exercise in chapter.exercises:
            secret = set()
            for part in exercise.solution:
                pieces = SENTENCE_END.split(part) if isinstance(part, str) else part.source.split("\n")
                secret |= {squeezed(piece) for piece in pieces if not piece.lstrip().startswith(COMMON)}
            yield exercise, {text for text in secret if len(text) >= 20 and text not in elsewhere}
        for question in chapter.questions:
            secret = map(squeezed, [question.asked.why, *(hint for _, hint in question.asked.options if hint)])
            yield question, {text for text in secret if len(text) >= 20 and text not in elsewhere}


def leaked_lines(files):
    """(exercise, line or sentence of its solution) for each that these files show, and how many were looked for."""
    everything = "".join(squeezed(bare(path, text)) for path, text in files.items())
    looked_for = [(exercise.name, secret) for exercise, secrets in solutions() for secret in secrets]
    return [(name, secret) for name, secret in looked_for if secret in everything], len(looked_for)


def bare(path, text):
    """The text of a file; of a notebook, what its cells hold."""
    if path.suffix != ".ipynb":
        return text
    notebook = nbformat.reads(text, 4)
    return "\n".join(cell.source + "".join(map(str, cell.get("outputs", []))) for cell in notebook.cells)


def digits_of(number):
    """How many significant digits a number has when it is written without zeros at its ends."""
    return len(f"{abs(number):.8g}".split("e")[0].replace(".", "").strip("0"))


def secret_numbers(chapter):
    """(exercise, right number) for those of a chapter that can be found.

    Left out are numbers of one significant digit (4, 0.4, 100), because statements are full of them; two digits, as in
    1.5, have raised no false alarm. Answers that are functions, arrays or choices have no number to look for. Nor is a
    number found that is rounded more coarsely than its exercise asks: it would not pass as an answer.
    """
    return [(exercise.name, float(value)) for exercise in chapter.exercises
            if isinstance(DECLARED.get(exercise.name), Numbers)
            for value in DECLARED[exercise.name].values() if digits_of(written(exercise.name, value)) >= 2]


def written(name, value):
    """A right number as precise as its exercise asks for."""
    declared = DECLARED[name]
    return round(value, declared.decimals) if declared.decimals is not None else float(f"{value:.{declared.digits}g}")


def leaked_numbers(chapter, text):
    """(exercise, right number) for each that a text shows, as precise as asked or more precise, whatever its sign."""
    plain = GROUPS.sub("", text.replace("−", "-"))      # 402 000 is 402000
    shown = {abs(float(number)) for number in NUMBER.findall(plain)}
    shown = [number for number in shown if digits_of(number) >= 2]
    return [(name, value) for name, value in secret_numbers(chapter)
            if any(DECLARED[name].near(abs(value)).fits(number) for number in shown)]


def notebook_text(folder, chapter):
    path = folder / chapter.stem / f"{chapter.stem}.ipynb"
    return bare(path, path.read_text(encoding="utf-8"))


def test_no_line_or_sentence_of_a_solution_is_in_the_student_edition(editions):
    leaks, looked_for = leaked_lines(texts(editions))
    assert leaks == []
    assert looked_for > 500


def test_no_number_of_a_solution_is_in_the_student_edition(editions):
    leaks = {chapter.stem: leaked_numbers(chapter, notebook_text(editions.student, chapter)) for chapter in CHAPTERS}
    assert leaks == {chapter.stem: [] for chapter in CHAPTERS}
    assert sum(len(secret_numbers(chapter)) for chapter in CHAPTERS) > 60


def with_a_leak(editions, chapter, leak):
    """The files of the students, with a text put between the cells of a chapter's notebook."""
    notebook = read(editions.student, chapter)
    notebook.cells.insert(3, nbformat.v4.new_markdown_cell(leak))
    return texts(editions) | {editions.student / chapter.stem / f"{chapter.stem}.ipynb": nbformat.writes(notebook)}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_a_planted_line_is_found(editions, chapter):
    """A line of code and a sentence, between other words and with other spaces."""
    for kind in (str, dict):
        exercise, piece = next(
            (exercise, piece) for exercise, secrets in solutions() if exercise in chapter.exercises
            for part in exercise.solution if isinstance(part, kind)
            for piece in (SENTENCE_END.split(part) if kind is str else part.source.split("\n")) if squeezed(piece) in secrets)
        leaks, _ = leaked_lines(with_a_leak(editions, chapter, f"A hint:\n\n>  {piece.replace(' ', '  ')} (so we found)"))
        assert (exercise.name, squeezed(piece)) in leaks
        assert {squeezed(secret) for _, secret in leaks} == {squeezed(piece)}


@pytest.mark.parametrize("chapter", [chapter for chapter in CHAPTERS if secret_numbers(chapter)],
                         ids=lambda chapter: chapter.stem)
def test_a_planted_number_is_found(editions, chapter):
    """Every right number, rounded as its exercise asks or less, up to eight digits, and in each way of writing it."""
    name = editions.student / chapter.stem / f"{chapter.stem}.ipynb"
    for secret in secret_numbers(chapter):
        exact, asked = secret[1], written(*secret)
        spelled = {f"{asked:.12g}", f"{asked:.12g}".replace("-", "−"), f"{asked:,.12g}".replace(",", " ")}
        spelled |= {f"{exact:.{digits}g}" for digits in range(digits_of(asked), 9) if "e" not in f"{exact:.{digits}g}"}
        for number in spelled:
            for sentence in (f"It is {number}.", f"$\\tau = {number}$", f"({number}, 1)"):
                files = with_a_leak(editions, chapter, sentence)
                assert secret in leaked_numbers(chapter, bare(name, files[name])), (sentence, secret)


def test_no_hidden_test_and_no_checker_is_in_the_student_edition(editions):
    assert not [path for path in editions.student.rglob("*") if "checks" in path.name or path.name == "exercises.py"]
    for path, text in texts(editions).items():
        for trace in ("HIDDEN TEST", "BEGIN SOLUTION", "from exercises import", "from checks"):
            assert trace not in text, f"{path}: {trace}"
    hidden = [cell.source for chapter in CHAPTERS for cell in read(editions.course / "source", chapter).cells
              if "BEGIN HIDDEN TESTS" in cell.source]
    assert len(hidden) == sum(len(tasks(chapter)) for chapter in CHAPTERS)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_an_assignment_says_its_points_and_has_a_cell_for_each(editions, chapter):
    """The points that the introduction names are those of the cells; words are asked for where a heading says so."""
    cells = {cell.id: cell for cell in read(editions.student, chapter).cells}
    points = {name: cell.metadata.get("nbgrader", {}).get("points", 0) for name, cell in cells.items()}
    assert f", {chapter.points} points in all" in " ".join(cells["introduction"].source.split())
    assert sum(points.values()) == chapter.points
    assert len(chapter.questions) == 0 or 3 <= len(chapter.questions) <= 5
    for exercise in chapter.exercises:
        assert points.get(f"{exercise.name}-words", 0) == exercise.by_hand
        assert (f"{exercise.by_hand} of them for your words" in cells[f"{exercise.name}-text"].source) == (exercise.by_hand > 0)
        if exercise.by_hand:
            assert cells[f"{exercise.name}-words"].source.endswith("YOUR ANSWER HERE")
    for question in chapter.questions:
        shown = cells[f"{question.name}-text"].source
        assert question.asked.text in shown and all(text in shown for text, _ in question.asked.options)


def test_assignments_run_outside_the_folder_of_the_book(editions):
    """All cells of the empty assignments run with the helpers alone, and nothing of this folder on the path."""
    program = ("import os, pathlib, sys, json\n"
               f"book = [path for path in sys.path if path.startswith({str(ROOT)!r}) and 'site-packages' not in path]\n"
               "sys.path = [path for path in sys.path if path not in book]\n"
               "for path in sorted(pathlib.Path('.').resolve().glob('*/*.ipynb')):\n"
               "    os.chdir(path.parent)\n"
               "    cells = json.loads(path.read_text())['cells']\n"
               "    for cell in cells[1:]:\n"
               "        if cell['cell_type'] == 'code':\n"
               "            exec(''.join(cell['source']), globals())\n"
               "assert not [name for name in sys.modules if name.split('.')[0] in ('figures', 'exercises', 'checks')]\n"
               "import pepcore\n"
               "print(pathlib.Path(pepcore.__file__).resolve())\n")
    done = subprocess.run([sys.executable, "-c", program], cwd=editions.student, capture_output=True, text=True,
                          env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(str(editions.student / "helpers" / "pepcore" / "__init__.py"))
