"""The figures of the chapter on sparse classification: what they draw is true, and committed rows come out again."""

import ast
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from figures import bui_fig1

TESTS = Path(__file__).parent


# bui_fig1: the map of methods -----------------------------------------------------------------------------------------

PLACES = [place for places in bui_fig1.PANELS.values() for place in places]


@pytest.fixture(scope="module")
def method_map():
    return BeautifulSoup(bui_fig1.html(), "html.parser")


def test_every_place_of_the_map_names_tests_that_exist():
    for place in PLACES:
        assert place.tests, place.label
        for test in place.tests:
            file, _, function = test.partition("::")
            tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
            assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


@pytest.mark.book
def test_every_link_of_the_map_leads_to_a_section_of_the_book(site):
    for place in PLACES:
        for address in filter(None, (place.section, place.identity)):
            page, _, anchor = address.partition("#")
            html = BeautifulSoup((site / "chapters" / page).read_text(encoding="utf-8"), "html.parser")
            target = html.find(id=anchor)
            assert target is not None and target.find_parent("article"), address


def test_every_place_is_a_link_in_the_drawing_and_in_the_list(method_map):
    drawn = [link["href"] for link in method_map.select("svg a[href]")]
    listed = [entry.find("a")["href"] for entry in method_map.select("li")]
    assert drawn == listed == [place.section for place in PLACES]
    assert all(test.partition("::")[2] in method_map.find("details").get_text() for place in PLACES for test in place.tests)


def test_the_map_can_be_read_without_seeing_it(method_map):
    for drawing in method_map.select("svg"):
        parts = drawing["aria-labelledby"].split()
        assert [method_map.find(id=part).name for part in parts] == ["title", "desc"]
        for link in drawing.select("a"):
            assert link.find("title").get_text() in link["aria-label"]
    names = [link["aria-label"] for link in method_map.select("svg a")]
    assert len(names) == len(set(names))


def test_the_map_keeps_the_colours_of_alpha_and_leaves_text_to_the_page(method_map):
    assert {text.get("fill") for text in method_map.select("svg text")} == {None}
    stops = [stop["stop-color"] for stop in method_map.select("linearGradient stop, lineargradient stop")]
    assert stops[0] == stops[5] == bui_fig1.style.colours["vfe"]
    assert stops[4] == stops[9] == bui_fig1.style.colours["ep"]
