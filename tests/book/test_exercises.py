"""`check` and `quiz` themselves, and that each exercise of the book is graded, judged kindly and solved in words."""

import ast
import inspect
import json
import re
import textwrap

import build_book
import exercises
import numpy as np
import pytest
from checks.declared import Choice, Numbers, Quiz
from exercises import Feedback, NoAnswer, as_array, as_function, as_number, as_things, check, close, rounded

# Every check that a notebook calls, with what it printed when the notebook was executed. Where the solution stands,
# the notebook prints "Correct."; nbval proves that it still does.
CALL = re.compile(r"""\bcheck\(\s*["']([\w-]+)["']""")
QUIZ = re.compile(r"""\bquiz\(\s*["']([\w-]+)["']""")
TITLE = re.compile(r"\{exercise\} ?(.*)\n:label: ([\w-]+)")
GRADE = re.compile(r"(Warm-up|Core|Research), \d+ minutes(, on paper[^:]*|, your own (data|code))?: \S")
GARBAGE = ["a word", {}, object(), np.array([]), np.nan, [1, [2, 3]], np.full((7, 3), 1e300), -1e9, lambda: 1 / 0,
           [None, None], np.zeros(3), np.zeros((2, 2)), 0.0, lambda *arguments: 0.0, lambda *arguments: np.zeros(4),
           lambda *arguments: np.full(4, np.nan), lambda *arguments: (0.0, 0.0), lambda *arguments: ...]
DECLARED = exercises.declarations()
NUMBERS = sorted(name for name, declared in DECLARED.items() if isinstance(declared, Numbers))
QUIZZES = sorted(name for name, declared in DECLARED.items() if isinstance(declared, Quiz))
FEW = {"start-here": 3}         # so many exercises at least; elsewhere six


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def called_and_printed():
    """Name of the check -> all that the cells which call it printed."""
    found = {}
    for path in build_book.chapters():
        for cell in cells(path):
            names = CALL.findall("".join(cell["source"])) if cell["cell_type"] == "code" else []
            printed = "".join("".join(output.get("text", "")) for output in cell.get("outputs", []))
            for name in names:
                found[name] = found.get(name, "") + printed
    return found


def solutions():
    """Label of an exercise -> words, code and printed output of its solution, in whichever order they stand."""
    found: dict = {}
    for path in build_book.chapters():
        label = None
        for cell in cells(path):
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts = re.split(r"\{solution(?:-start)?\} ([\w-]+)\n|\{solution-end\}", text)
                for words, opened in zip(parts[::2], [*parts[1::2], "the end"]):
                    if label:
                        found[label]["words"] += words
                    if opened != "the end":
                        label = opened
                        found.setdefault(label, {"words": "", "code": "", "printed": ""})
            elif label:
                found[label]["code"] += text + "\n"
                found[label]["printed"] += "".join(map(printed, cell["outputs"]))
    return {label: solution for label, solution in found.items() if label}


def printed(output):
    """What was printed, or the text of a table."""
    data = output.get("data", {})
    return "".join(output.get("text", data.get("text/plain", "") if "text/html" in data else ""))


def titles():
    """(chapter, title, label) of every exercise."""
    return [(path.stem, title, label) for path in build_book.chapters() for cell in cells(path)
            for title, label in TITLE.findall("".join(cell["source"]))]


def test_every_check_of_the_book_has_a_checker_and_every_checker_is_used():
    assert set(called_and_printed()) == set(exercises.names())
    assert len(exercises.names()) >= 70


def test_every_quiz_is_asked_and_every_chapter_with_exercises_asks_one():
    asked = {path.stem: QUIZ.findall("".join("".join(cell["source"]) for cell in cells(path)))
             for path in build_book.chapters()}
    assert sorted(name for names in asked.values() for name in names) == QUIZZES
    with_exercises = {chapter for chapter, _, _ in titles()} - set(FEW)
    assert all(asked[chapter] for chapter in with_exercises)
    assert all(3 <= len(DECLARED[name].questions) <= 5 for name in QUIZZES)


@pytest.mark.parametrize("name", sorted(called_and_printed()))
def test_the_solution_in_the_book_is_accepted(name):
    assert f"Correct. ({name})" in called_and_printed()[name]


@pytest.mark.parametrize(("chapter", "title", "label"), titles(), ids=lambda part: part[:24])
def test_every_exercise_says_its_grade_and_minutes(chapter, title, label):
    assert GRADE.match(title), title


def test_every_chapter_has_enough_exercises_of_each_kind():
    for chapter in {chapter for chapter, _, _ in titles()}:
        here = [title for place, title, _ in titles() if place == chapter]
        assert len(here) >= FEW.get(chapter, 6), chapter
        assert len({title.split(",")[0] for title in here}) >= (2 if chapter in FEW else 3), f"{chapter}: grades"
        assert any("on paper" in title for title in here), f"{chapter}: none on paper"
        if chapter not in FEW:
            assert any("your own" in title for title in here), f"{chapter}: none on the reader's own data or code"


@pytest.mark.parametrize(("label", "solution"), solutions().items(), ids=lambda part: part if isinstance(part, str) else "")
def test_every_solution_says_its_answer_and_why(label, solution):
    words = re.sub(r"```|:class: dropdown|:::|^% .*$", "", solution["words"], flags=re.MULTILINE)
    assert len(words.split()) >= 15, f"a reason in words is missing: {words!r}"
    printed = re.sub(r"Correct\. \([\w-]+\)", "", solution["printed"])
    assert re.search(r"\d|True", printed), "no number of the answer is printed"


# What checkers say.

@pytest.mark.parametrize("name", exercises.names())
def test_garbage_is_rejected_with_a_message(name, capsys):
    for answer in GARBAGE:
        assert check(name, answer) is False, f"accepts {answer!r}"
        assert re.match(r"(Not yet: |Put your answer ).{10,}", capsys.readouterr().out), f"nothing of use about {answer!r}"
    for answer in (None, ...):
        assert check(name, answer) is False
        assert capsys.readouterr().out == "Put your answer in place of `...` and run this cell.\n"


def squeezed(text):
    """Text without what may be written in several ways."""
    return re.sub(r"np\.|\s", "", text).replace("**", "^").replace("−", "-").replace("·", "*").lower()


def messages(name):
    """All that the checker of an exercise may say: what is declared, or the strings in its function."""
    declared = DECLARED.get(name)
    if isinstance(declared, Numbers):
        return [hint for _, hint in declared.mistakes] + list(declared.otherwise)
    if isinstance(declared, Choice):
        return [hint for _, hint in declared.options if hint]
    tree = ast.parse(textwrap.dedent(inspect.getsource(exercises.checker_of(name))))
    function = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return [node.value for part in function.body for node in ast.walk(part)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def formulas(name):
    """What the solution of the book hands over or returns, as code without spaces."""
    found = []
    for solution in solutions().values():
        if f'"{name}"' in solution["code"]:
            tree = ast.parse(solution["code"])
            values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value]
            found += [squeezed(ast.unparse(value)) for value in values]
    return [formula for formula in found if len(formula) >= 8]


SOLVED = {name: secrets for name in exercises.names() if (secrets := [*exercises.never(name), *formulas(name)])}


def test_only_these_have_no_words_and_no_formula_that_a_message_could_say():
    assert set(exercises.names()) - set(SOLVED) == {
        "cs-2-twice", "ep-1-mixture", "gp-8-yours", "pep-1-divergence", "pep-5-slope", "start-evidence", "start-fan",
        "wd-1-paper", "wr-6-ties"}


@pytest.mark.parametrize("name", SOLVED)
def test_no_message_says_the_solution(name):
    said = [squeezed(message) for message in messages(name)]
    for secret in SOLVED[name]:
        assert not any(squeezed(secret) in message for message in said), f"a message says {secret}"


@pytest.mark.parametrize("name", NUMBERS)
def test_no_message_says_a_right_number(name):
    read = lambda number: float(number.replace(",", ".").replace("−", "-"))
    for value in DECLARED[name].values():
        for number in re.findall(r"(?<![\w.,/²])[-−]?\d+(?:[.,]\d+)?(?![\w/])", " ".join(messages(name))):
            assert abs(value) in (0, 1) or not DECLARED[name].near(value).fits(read(number)), number


def printed_numbers():
    """Name of an exercise -> the numbers that the book's solution prints and the question does not give."""
    found = {}
    for solution in solutions().values():
        numbers = set(re.findall(r"(?<![\d.])(?:\d+\.\d+|\d{3,})(?!\d)", solution["printed"]))
        for name in re.findall(r"\(([a-z]+-[\w-]+)\)", solution["printed"]):
            found[name] = found.get(name, set()) | numbers - GIVEN.get(name, set())
    return {name: numbers for name, numbers in found.items() if numbers}


GIVEN = {"ep-5-step": {"1.5", "0.3"}, "sr-2-rise": {"0.5"}}        # eigenvalues, and a power
PRINTED = printed_numbers()


def test_only_these_print_no_number_that_could_be_told():
    """Bounds and texts, or whole numbers of two digits, such as stand in any sentence."""
    assert set(exercises.names()) - set(PRINTED) == {
        "bp-4-means", "bp-6-sequential", "cs-4-swap", "gp-5-pull-back", "gp-7-nystrom", "sr-6-surrogate", "wc-2-share",
        "wd-5-cautious", "wd-6-anew", "wr-7-study"}


@pytest.mark.parametrize("name", PRINTED)
def test_answers_of_the_wrong_kind_earn_no_number_of_the_solution(name, capsys):
    """Zeros, NaN, wrong shapes: the numbers that the book's solution prints do not appear in what is said of them."""
    for answer in GARBAGE:
        check(name, answer)
    said = capsys.readouterr().out
    assert not [number for number in PRINTED[name] if re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", said)]


# `check` itself.

def test_an_unknown_name_lists_names_like_it():
    name = exercises.names()[0]
    with pytest.raises(ValueError, match=name):
        check(name + "x", 1.0)
    with pytest.raises(ValueError, match="no exercise called"):
        check("../secret", 1.0)


def test_check_prints_and_returns(monkeypatch, capsys):
    monkeypatch.setattr(exercises, "_checkers", dict(exercises._checkers))

    @exercises.checker("demo-two")
    def two(answer):
        if close(as_number(answer), -2):
            return "the sign is turned round."
        if not close(as_number(answer), 2):
            return "try one and one."

    assert check("demo-two", 2) is True
    assert check("demo-two", np.array([2.0])) is True
    assert check("demo-two", -2) is False
    assert check("demo-two", "two") is False
    assert check("demo-two") is False
    assert capsys.readouterr().out.splitlines() == [
        "Correct. (demo-two)", "Correct. (demo-two)", "Not yet: the sign is turned round.",
        "Not yet: numbers are asked for, this is of type str.", "Put your answer in place of `...` and run this cell."]


def test_two_checkers_cannot_have_one_name(monkeypatch):
    monkeypatch.setattr(exercises, "_checkers", {"demo-one": check})
    with pytest.raises(ValueError, match="two checkers are called 'demo-one'"):
        exercises.number("demo-one", 1.0, digits=3, otherwise="no")


def test_helpers_say_what_is_wrong():
    assert as_number([3]) == 3.0
    assert as_array([[1, 2]], shape=(1, 2)).dtype == float
    assert as_function(len) is len
    assert as_things([1, 2], 2, "two") == (1, 2)
    for use, message in [(lambda: as_number([1, 2]), "one number"), (lambda: as_array([1, 2], shape=(3,)), r"\(3,\)"),
                         (lambda: as_array([1, np.nan]), "1 of 2"), (lambda: as_array("x"), "type str"),
                         (lambda: as_array(len), "a function"), (lambda: as_function(1), "function is asked"),
                         (lambda: as_things(1, 2, "two numbers"), "two numbers are asked for, as a tuple of 2")]:
        with pytest.raises(Feedback, match=message):
            use()
    with pytest.raises(NoAnswer, match="returns nothing"):
        exercises.called(lambda x: None, 1.0)


def test_close_compares_with_the_largest_expected_number():
    assert close([1e-9, 1.0], [0.0, 1.0])
    assert close(float(f"{1 / 7:.6g}"), 1 / 7) and close(float(f"{1 / 7:.3g}"), 1 / 7, digits=3)
    assert not close([1e-5, 1.0], [0.0, 1.0])
    assert not close([1.0], 1.0)
    assert not close(np.nan, 1.0)
    assert close(np.zeros(3), np.zeros(3))
    assert close(1.04, 1.0, rtol=0.05)


@pytest.mark.parametrize("digits", [2, 3, 4])
def test_rounded_takes_what_is_rounded_as_asked_and_nothing_coarser(digits):
    rng = np.random.default_rng(digits)
    values = rng.choice([-1.0, 1.0], 300) * 10 ** rng.uniform(-4, 4, 300)
    for value in [*values, 0.9996, 999.96, -1172.5, 32.65]:
        assert rounded(value, value, digits) and rounded(float(f"{value:.{digits}g}"), value, digits)
        unit = 10.0 ** (np.floor(np.log10(abs(value))) - digits + 1)
        assert not rounded(value + 0.6 * unit, value, digits) and not rounded(-value, value, digits)
    assert rounded([float(f"{value:.{digits}g}") for value in values], values, digits)
    assert not rounded([*values[:-1], 2 * values[-1]], values, digits), "each number counts, not the largest only"
    assert not rounded([1.0], 1.0, digits) and not rounded(np.nan, 1.0, digits)
    assert rounded(0.0, 0.0, digits) and not rounded(0.01, 0.0, digits)
