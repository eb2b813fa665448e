"""The page Notation: a symbol is defined before it is used, and a letter that a chapter uses otherwise is announced."""

import json
import re

import build_book
import pytest
from conftest import ROOT

PAGE = (ROOT / "chapters" / "notation.md").read_text(encoding="utf-8")
BOOK, OTHERWISE = "The symbols of this book", "Letters that one chapter uses otherwise"
DISPLAYED = re.compile(r"\$\$(.*?)\$\$(?:\s*\(([\w-]+)\))?", re.DOTALL)
WORDS = re.compile(r"\\(?:text|mathrm|operatorname)\s*\{[^{}]*\}|\\(?:begin|end)\{\w+\}(?:\{\w+\})?|\\[,;:!]")
ACCENTS = r"\\(?:mathcal|mathbb|mathbf|mathsf|boldsymbol|bar|hat|tilde|widehat)"
TOKEN = re.compile(rf"{ACCENTS}\s*(?:\{{[^{{}}]*\}}|\\[A-Za-z]+|[A-Za-z])|\\[A-Za-z]+|\S")


def rows(heading):
    """The cells of the table below a heading of the page, one list a row."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line.strip("| ") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split(" | ")] for line in lines[2:]]


def symbol_of(cell):
    return re.fullmatch(r"\$(.*)\$", cell)[1]


def label_of(cell):
    return re.fullmatch(r"\{eq\}`([\w-]+)`", cell)[1]


def tokens(latex):
    """The parts of a formula; an accented or calligraphic letter is one, and braces around a single part are dropped."""
    latex = re.sub(r"\{\s*(\\?[A-Za-z]+|\w)\s*\}", r" \1 ", WORDS.sub(" ", latex))
    return [re.sub(r"[\s{}]", "", part) for part in TOKEN.findall(latex)]


def without_indices(latex):
    return re.sub(r"_\s*(?:\{[^{}]*\}|\\[A-Za-z]+|\w)", " ", latex)


def occurs(symbol, latex):
    """Whether a formula holds a symbol. Letters in an index count only for a symbol that has one itself."""
    found = tokens(latex if "_" in symbol else without_indices(latex))
    wanted = tokens(symbol)
    return any(found[i:i + len(wanted)] == wanted for i in range(len(found) - len(wanted) + 1))


def formulas():
    """(page, place of page and cell, label or "", formula) of every displayed equation, in the order of the book."""
    for number, path in enumerate(build_book.chapters()):
        for place, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            if cell["cell_type"] == "markdown":
                for latex, label in DISPLAYED.findall("".join(cell["source"])):
                    yield path.stem, (number, place), label, latex


FORMULAS = list(formulas())
PLACES = {label: place for _, place, label, _ in FORMULAS if label}
ELSEWHERE = [(symbol_of(row[0]), re.fullmatch(r"\{doc\}`([\w-]+)`", row[1])[1], label_of(row[3])) for row in rows(OTHERWISE)]
SYMBOLS = [(symbol_of(row[0]), label_of(row[2])) for row in rows(BOOK)]


def first_use(symbol, pages):
    return min(place for page, place, _, latex in FORMULAS if page in pages and occurs(symbol, latex))


def pages_with_the_usual_meaning(symbol):
    """The chapters but those that the second table lists for this letter."""
    other = {page for letter, page, _ in ELSEWHERE if tokens(letter)[0] == tokens(symbol)[0]}
    return {page for page, *_ in FORMULAS} - other


@pytest.mark.parametrize(("symbol", "label"), SYMBOLS)
def test_a_symbol_is_defined_before_it_is_used(symbol, label):
    assert PLACES[label] <= first_use(symbol, pages_with_the_usual_meaning(symbol))


@pytest.mark.parametrize(("symbol", "page", "label"), ELSEWHERE)
def test_a_letter_that_a_chapter_uses_otherwise_is_defined_there_first(symbol, page, label):
    uses = {place[0] for stem, place, *_ in FORMULAS if stem == page}
    assert PLACES[label][0] in uses, f"{label} is no equation of {page}"
    assert PLACES[label] <= first_use(symbol, {page})


def test_the_passage_that_is_named_holds_the_symbol():
    """In the equation itself, or in one without a label beside it in the same cell."""
    beside = {label: [latex for _, place, _, latex in FORMULAS if place == PLACES[label]] for label in PLACES}
    named = SYMBOLS + [(symbol, label) for symbol, _, label in ELSEWHERE]
    assert [pair for pair in named if not any(occurs(pair[0], latex) for latex in beside[pair[1]])] == []


def test_a_symbol_has_one_meaning_in_a_chapter():
    symbols = [symbol for symbol, _ in SYMBOLS]
    assert len(symbols) == len(set(symbols)) >= 30
    letters = [(symbol, page) for symbol, page, _ in ELSEWHERE]
    assert len(letters) == len(set(letters)) >= 20


def test_letters_are_told_from_accented_and_longer_ones():
    assert occurs("h_n", r"\alpha h_n + \sigma^2") and not occurs("h_n", r"\bar h_n")
    assert occurs("v", r"A^\top v") and not occurs("v", r"x_v + \nu + \mathsf v")
    assert occurs(r"K_{uu}", r"L L^\top = K_{uu}") and not occurs("u", r"K_{uu}")
    assert occurs("s_n", r"\frac{s_n}{c_n}") and not occurs("s", r"\text{s} + \log_s")
