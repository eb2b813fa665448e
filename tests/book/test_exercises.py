"""`check` itself, and that each exercise of the book has a checker that says no kindly."""

import json
import re

import build_book
import exercises
import numpy as np
import pytest
from exercises import Feedback, as_array, as_function, as_number, check, close

# Every check that a notebook calls, with what it printed when the notebook was executed. Where the solution stands,
# the notebook prints "Correct."; nbval proves that it still does.
CALL = re.compile(r"""\bcheck\(\s*["']([\w-]+)["']""")
GARBAGE = [None, ..., "a word", {}, object(), np.array([]), np.nan, [1, [2, 3]], np.full((7, 3), 1e300), -1e9,
           lambda *arguments: None, lambda: 1 / 0, [None, None]]


def called_and_printed():
    """Name of the check -> all that the cells which call it printed."""
    found = {}
    for path in build_book.chapters():
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            names = CALL.findall("".join(cell["source"])) if cell["cell_type"] == "code" else []
            printed = "".join("".join(output.get("text", "")) for output in cell.get("outputs", []))
            for name in names:
                found[name] = found.get(name, "") + printed
    return found


def test_every_check_of_the_book_has_a_checker_and_every_checker_is_used():
    assert set(called_and_printed()) == set(exercises.names())
    assert len(exercises.names()) >= 5


@pytest.mark.parametrize("name", sorted(called_and_printed()))
def test_the_solution_in_the_book_is_accepted(name):
    assert f"Correct. ({name})" in called_and_printed()[name]


@pytest.mark.parametrize("name", exercises.names())
def test_garbage_is_rejected_with_a_message(name, capsys):
    for answer in GARBAGE:
        assert check(name, answer) is False, f"accepts {answer!r}"
        assert re.match(r"Not yet: .{10,}", capsys.readouterr().out), f"says nothing of use about {answer!r}"


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
    assert capsys.readouterr().out.splitlines() == [
        "Correct. (demo-two)", "Correct. (demo-two)", "Not yet: the sign is turned round.",
        "Not yet: numbers are asked for, this is of type str."]


def test_two_checkers_cannot_have_one_name(monkeypatch):
    monkeypatch.setattr(exercises, "_checkers", {"demo-one": check})

    def other(answer):
        """Defined in this module, `check` in another."""

    with pytest.raises(ValueError, match="demo-one"):
        exercises.checker("demo-one")(other)


def test_helpers_say_what_is_wrong():
    assert as_number([3]) == 3.0
    assert as_array([[1, 2]], shape=(1, 2)).dtype == float
    assert as_function(len) is len
    for use, message in [(lambda: as_number([1, 2]), "one number"), (lambda: as_array([1, 2], shape=(3,)), r"\(3,\)"),
                         (lambda: as_array([1, np.nan]), "1 of 2"), (lambda: as_array("x"), "type str"),
                         (lambda: as_array(len), "a function"), (lambda: as_function(1), "function is asked")]:
        with pytest.raises(Feedback, match=message):
            use()


def test_close_compares_with_the_largest_expected_number():
    assert close([1e-9, 1.0], [0.0, 1.0])
    assert not close([1e-5, 1.0], [0.0, 1.0])
    assert not close([1.0], 1.0)
    assert not close(np.nan, 1.0)
    assert close(np.zeros(3), np.zeros(3))
    assert close(1.04, 1.0, rtol=0.05)
