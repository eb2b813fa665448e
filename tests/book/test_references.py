"""The references: each is cited, and each says where it can be found."""

import re

import build_book
import pytest
from bs4 import BeautifulSoup

CITED = re.compile(r"\{cite(?::[a-z]+)?\}`([^`]+)`")


def references():
    """The entries of references.bib: dict of key -> text."""
    entries = (build_book.ROOT / "references.bib").read_text(encoding="utf-8").split("\n@")[1:]
    return {re.match(r"\w+\{([^,]+),", entry)[1]: entry for entry in entries}


def cited():
    """The keys that the chapters cite."""
    chapters = [path for path in (build_book.ROOT / "chapters").iterdir() if path.suffix in (".ipynb", ".md")]
    return {key.strip() for path in chapters for keys in CITED.findall(path.read_text(encoding="utf-8"))
            for key in keys.split(",")}


def test_every_reference_is_cited_and_every_citation_is_a_reference():
    assert len(references()) > 40
    assert set(references()) == cited()


@pytest.mark.parametrize("key", references())
def test_a_reference_says_where_it_is(key):
    assert re.search(r"\n  (doi|url|isbn) +=|\\url\{https", references()[key])


@pytest.mark.book
def test_the_page_names_for_each_reference_who_cites_it(site):
    page = BeautifulSoup((site / "chapters/bibliography.html").read_text(encoding="utf-8"), "html.parser")
    shown = page.select("div.citation")
    assert len(shown) == len(references())
    assert [one["id"] for one in shown if not one.select_one(".cited-in a")] == []
