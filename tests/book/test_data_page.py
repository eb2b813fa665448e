"""The page of the data sets shows the source, the terms and the checksum of every set of the registry."""

import re

import build_book
import pytest
from bs4 import BeautifulSoup

from pepcore import datasets
from pepcore.datasets import generators, registry

SECTIONS = {"regression": "regression", "binary": "two-classes", "multiclass": "several-classes",
            "bundled": "sets-bundled-by-scikit-learn", "large": "large-sets"}


@pytest.mark.book
@pytest.mark.parametrize("folder", SECTIONS)
def test_every_set_stands_in_its_section_with_its_terms(site, folder):
    page = BeautifulSoup((site / "chapters/data.html").read_text(encoding="utf-8"), "html.parser")
    section = page.find(id=SECTIONS[folder])
    sets = [info for info in registry.values() if info.folder == folder]
    titles = section.select("dt")
    assert len(titles) == len(sets) > 0
    for title, info in zip(titles, sets):
        shown = " ".join(title.find_next_sibling("dd").get_text().split())
        assert title.find("code").get_text() == info.name
        assert f"{info.N} rows, {info.D} inputs" in title.get_text()
        assert f"Licence: {info.licence}." in shown and info.sha256 in shown
        links = [link["href"] for link in title.find_next_sibling("dd").select("a[href]")]
        assert set(info.origin.get("urls", ())) <= set(links)


def dangling(note):
    """What a note calls `datasets.something` or `generators.something` and is not there."""
    named = re.findall(r"`(?:datasets\.)?(datasets|generators)\.(\w+)`", note)
    return [name for module, name in named if not hasattr(datasets if module == "datasets" else generators, name)]


def test_functions_that_a_note_names_exist():
    assert dangling("see `generators.nothing`, `datasets.nobody`, `datasets.load`, `text`") == ["nothing", "nobody"]
    assert {info.name: dangling(info.notes) for info in registry.values() if dangling(info.notes)} == {}


def test_the_page_is_part_of_the_book():
    assert "chapters/data" in build_book.pages()
