"""The exercises of the chapters: statement, cell for the answer, solution, and what they need of the chapter's code."""

import ast
import re
from dataclasses import dataclass, field
from functools import cached_property

import answers
import build_book
import nbformat
import slicing
from plain_text import plain

EXERCISE = re.compile(r"(`{3,}|:{3,})\{exercise\} ?(.*)\n:label: ([\w-]+)\n(.*?)\n\1", re.DOTALL)
SOLUTION = re.compile(r"[`:]{3,}\{solution(?:-start)?\} ([\w-]+)\n(?::class: dropdown\n?)?")
SOLVED = re.compile(r"[`:]{3,}\{solution-end\}")
MARK = re.compile(r"((?:`{3,}|:{3,})\{exercise\}.*?\n(?:`{3,}|:{3,})(?=\n|$)"
                  r"|[`:]{3,}\{solution(?:-start)?\}[^\n]*\n(?::class: dropdown\n?)?"
                  r"|[`:]{3,}\{solution-end\})", re.DOTALL)
FENCE = re.compile(r"^([`:]{3,}|% .*)$", re.MULTILINE)      # what is left of a mark, or a comment
TITLE = re.compile(r"(Warm-up|Core|Research), (\d+) minutes(?:, ([^:]*))?: (.*)")
TIME = re.compile(r"\*\*Time:\*\* (.*?)(?= \*\*|\n)")
QUIZ = re.compile(r"^quiz\(\"([\w-]+)\"\)$")
CODE_SPAN = re.compile(r"(?<![}`])`([A-Za-z_]\w*)[^`\n]*`(?!`)")     # its first name
MINUTES_PER_POINT = 5


@dataclass
class Exercise:
    """One exercise of a chapter; `solution` lists its words (str) and its cells (dict) in their order."""

    label: str
    heading: str
    text: str
    to_try: str = ""
    solution: list = field(default_factory=list)

    @property
    def grade(self):
        return TITLE.fullmatch(self.heading)[1]

    @property
    def minutes(self):
        return int(TITLE.fullmatch(self.heading)[2])

    @property
    def kind(self):
        """What else the heading says: on paper, your own data; or nothing."""
        return TITLE.fullmatch(self.heading)[3] or ""

    @property
    def title(self):
        title = TITLE.fullmatch(self.heading)[4]
        return title[0].upper() + title[1:]

    @property
    def points(self):
        return self.minutes // MINUTES_PER_POINT

    @property
    def by_hand(self):
        """How many of the points a person gives, for the words: research and one's own data end in open questions."""
        return max(1, self.points // 4) if self.grade == "Research" or self.kind.startswith("your own") else 0

    def statement(self, number):
        """Heading and text in plain Markdown."""
        worth = points(self.points) + (f", {self.by_hand} of them for your words" if self.by_hand else "")
        about = ", ".join(filter(None, [self.grade, f"{self.minutes} minutes", self.kind, worth]))
        return f"## {number}. {self.title}\n\n*{about}*\n\n{plain(self.text)}"

    @cached_property
    def asked(self):
        """The name of its checker, and the expression with which the cell to try hands over the answer."""
        return next(call for call in map(check_of, slicing.statements(self.to_try)) if call)

    @property
    def name(self):
        return self.asked[0]

    @property
    def answer(self):
        """The name that the answer gets in the cell to try."""
        return self.asked[1]

    @property
    def blank(self):
        """The cell to try without its call of `check`."""
        return without_check(self.to_try)


    @cached_property
    def mentions(self):
        """The names that its statement and its cell to try take from elsewhere."""
        own = slicing.statements(self.blank)
        inside = {node.arg for statement in own for node in ast.walk(statement.tree) if isinstance(node, ast.arg)}
        inside |= set().union(*(statement.binds for statement in own))
        used = set().union(*(statement.uses | statement.uses_later for statement in own))
        return (set(CODE_SPAN.findall(self.text)) | used) - inside


@dataclass
class Question:
    """One question of a chapter's quiz, which is worth a point."""

    asked: object           # its declaration
    points: int = 1
    by_hand: int = 0

    @property
    def name(self):
        return self.asked.name

    @property
    def answer(self):
        return self.name.replace("-", "_")

    @property
    def blank(self):
        return f"{self.answer} = ...  # a letter"

    @property
    def right(self):
        """The cell with the right answer."""
        return f'{self.answer} = "{self.asked.letters[self.asked.right]}"'

    def statement(self):
        options = "\n".join(f"{letter}) {text}\n" for letter, (text, _) in zip(self.asked.letters, self.asked.options))
        return f"{self.asked.text}\n\n{options}"


@dataclass
class Chapter:
    """A chapter's title, code and exercises."""

    stem: str
    title: str
    time: str               # what its first cells say of the time that it takes
    program: list           # statements; the origin of one is the exercise whose solution it stands in, or None
    exercises: list

    @cached_property
    def questions(self):
        """The questions of its quizzes, in order."""
        declared = answers.exercises().declarations()       # here, since it loads all checkers
        asked = [QUIZ.search(statement.source) for statement in self.program if statement.origin is None]
        return [Question(one) for quiz in filter(None, asked) for one in declared[quiz[1]].questions]

    @property
    def points(self):
        """All points of its assignment."""
        return sum(task.points for task in [*self.questions, *self.exercises])

    def places(self, exercise):
        """Places of the statements that the solution's answer depends on, and the expression that hands it over."""
        for place, statement in enumerate(self.program):
            call = check_of(statement)
            if call and call[0] == exercise.name and statement.origin is exercise:
                return slicing.needed(self.program, slicing.names(call[1]), place), call[1]
        raise ValueError(f"{exercise.label}: no solution is handed to a checker")

    def solving(self):
        """The statements of the solutions that their answers depend on, in order."""
        places = {place for exercise in self.exercises for place in self.places(exercise)[0]}
        return [self.program[place] for place in sorted(places) if self.program[place].origin is not None]

    def setup(self):
        """The statements outside the solutions that the exercises and their solutions need."""
        outside = [place for place, statement in enumerate(self.program) if statement.origin is None]
        text = [self.program[place] for place in outside]
        chosen = set()
        for exercise in self.exercises:
            chosen |= {outside[place] for place in slicing.needed(text, exercise.mentions, len(text))}
            chosen |= set(outside) & set(self.places(exercise)[0])
        return [self.program[place] for place in sorted(chosen)]


def read(path):
    """The chapter in a notebook."""
    cells = nbformat.read(path, 4).cells
    program, exercises, trying, solving = [], {}, None, None
    for cell in cells:
        if cell.cell_type == "code" and trying:
            trying.to_try, trying = cell.source, None
        elif cell.cell_type == "code":
            program += slicing.statements(cell.source, solving)
            if solving:
                solving.solution.append(cell)
        else:
            for mark in MARK.split(cell.source):
                if found := EXERCISE.fullmatch(mark):
                    trying, solving = Exercise(found[3], found[2], found[4].strip()), None
                    exercises[trying.label] = trying
                elif found := SOLUTION.fullmatch(mark):
                    solving = exercises[found[1]]
                elif SOLVED.fullmatch(mark):
                    solving = None
                elif solving and FENCE.sub("", mark).strip():
                    solving.solution.append(FENCE.sub("", mark).strip())
    words = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    title, time = re.search(r"^# (.*)", words, re.MULTILINE)[1], TIME.search(words)
    return Chapter(path.stem, title, time[1] if time else "", program, list(exercises.values()))


def chapters():
    """The chapters of the book that have exercises, in order."""
    return [chapter for chapter in map(read, build_book.chapters()) if chapter.exercises]


def check_of(statement):
    """Name and source of the answer in a statement `_ = check("name", answer)`; None for another one."""
    value = getattr(statement.tree.body[0], "value", None)
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "check" and len(value.args) == 2:
        return value.args[0].value, ast.unparse(value.args[1])
    return None


def points(number):
    return f"{number} point{'s' if number > 1 else ''}"


def without_check(source):
    """Code up to its first call of `check`."""
    return re.split(r"^_ = check\(", source, flags=re.MULTILINE)[0].rstrip()
