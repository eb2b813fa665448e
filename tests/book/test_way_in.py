"""The way into the book: what pages say of themselves, and what leads nowhere."""

import build_book
import lean
import pytest
import way_in
from bs4 import BeautifulSoup

PAGES = build_book.pages()


@pytest.mark.parametrize(("repository", "site", "expected"), [
    ("", "", ""),
    ("https://github.com/someone/pep", "", "https://someone.github.io/pep/"),
    ("https://github.com/someone/pep.git", "", "https://someone.github.io/pep/"),
    ("https://github.com/someone/pep/tree/main", "", "https://someone.github.io/pep/"),
    ("https://github.com/Someone/someone.github.io", "", "https://someone.github.io/"),
    ("https://gitlab.com/someone/pep", "", ""),
    ("https://github.com/someone/pep", "https://pep.example", "https://pep.example/"),
])
def test_the_address_of_the_site(monkeypatch, repository, site, expected):
    monkeypatch.setenv("BOOK_REPOSITORY", repository)
    monkeypatch.setenv("BOOK_SITE", site)
    assert way_in.address() == expected


def test_previews_need_a_whole_address(monkeypatch):
    monkeypatch.delenv("BOOK_REPOSITORY", raising=False)
    monkeypatch.delenv("BOOK_SITE", raising=False)
    said = way_in.tags("A & B", 'with "quotes"', "chapters/a.html", {"title": "Book"})
    page = BeautifulSoup(said, "html.parser")
    assert page.find("meta", {"name": "description"})["content"] == 'with "quotes"'
    assert page.find("meta", {"property": "og:title"})["content"] == "A & B"
    assert "og:image" not in said and "canonical" not in said
    monkeypatch.setenv("BOOK_SITE", "https://pep.example")
    page = BeautifulSoup(way_in.tags("A", "b", "chapters/a.html", {"title": "Book"}), "html.parser")
    assert page.find("meta", {"property": "og:image"})["content"] == "https://pep.example/_static/cover.png"
    assert page.find("link", rel="canonical")["href"] == "https://pep.example/chapters/a.html"


def test_the_entrance_says_what_it_leads_to(monkeypatch):
    monkeypatch.setenv("BOOK_SITE", "https://pep.example")
    page = BeautifulSoup(way_in.entrance("chapters/a.html", "words", {"title": "A & B"}), "html.parser")
    assert page.html["lang"] == "en" and page.title.get_text() == "A & B" == page.a.get_text()
    assert page.a["href"] == "chapters/a.html"
    assert page.find("meta", {"http-equiv": "refresh"})["content"] == "0; url=chapters/a.html"
    assert page.find("meta", {"name": "description"})["content"] == "words"
    assert page.find("meta", {"property": "og:title"})["content"] == "A & B"
    assert page.find("link", rel="canonical")["href"] == "https://pep.example/chapters/a.html"


def test_a_description_has_no_tex():
    said = way_in.without_tex(r"costs \(N^3\) for \(N = 100\,000\), at any \(\lambda\)")
    assert said == "costs N³ for N = 100 000, at any λ"


def test_a_description_is_the_first_words_cut_at_a_word():
    said = f"<div class='admonition'><p>no</p></div><p>First \n words.</p><p>{'longer ' * 60}</p>"
    article = BeautifulSoup(said, "html.parser")
    said = way_in.description(article)
    assert said.startswith("First words. longer") and said.endswith("longer …") and len(said) <= way_in.LONGEST + 2


def test_ids_become_unique_and_the_first_keeps_its_name():
    page = '<p id="a">1</p><p class="x" id="a">2</p><a href="#a" data-id="a">3</a><p id="b"></p>'
    assert way_in.unique_ids(page) == page.replace('class="x" id="a"', 'class="x" id="a-again-2"')


def test_references_know_who_cites_them():
    cited = '<div class="citation" id="bui2017">Bui</div><div class="citation" id="x">X</div>'
    page = way_in.add_links_back(cited, {"bui2017": [("a.html", "1. One"), ("b.html", r"The power \(\alpha\)")]})
    links = BeautifulSoup(page, "html.parser").find(id="bui2017").select("a")
    assert [(link["href"], link.get_text()) for link in links] == [("a.html", "1. One"), ("b.html", r"The power \(\alpha\)")]


def test_a_page_sheds_what_it_does_not_need():
    page = ('<script defer src="../_static/scripts/fontawesome.js?digest=1"></script>\n<script>const THEBE_JS_URL = 1;</script>'
            '<script src="../searchindex.js"></script><script src="keep.js"></script>')
    assert lean.lighten(page) == '<script src="keep.js"></script>'
    assert "searchindex" in lean.lighten(page, search=True)


def test_links_from_the_source_to_a_description_that_no_page_has_go(tmp_path):
    (tmp_path / "api.html").write_text('<dt id="pep.known">')
    link = '<a class="viewcode-back" href="../api.html#pep.{}">[docs]</a>\n'
    page = link.format("known") + "def one" + link.format("unknown") + "def two"
    assert lean.without_dead_links_back(page, tmp_path / "_modules") == link.format("known") + "def onedef two"


def test_scripts_that_can_wait_do():
    page = '<script src="../_static/slider.js?v=1"></script><script src="../_static/answers.js?v=2"></script>'
    assert lean.lighten(page) == page.replace('src="../_static/answers', 'defer src="../_static/answers')


@pytest.mark.book
@pytest.mark.parametrize("name", PAGES)
def test_every_page_describes_itself_and_has_no_id_twice(site, name):
    page = BeautifulSoup((site / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
    assert 40 < len(page.find("meta", {"name": "description"})["content"]) <= way_in.LONGEST + 2
    assert page.find("meta", {"property": "og:title"})["content"]
    ids = [tag["id"] for tag in page.select("[id]")]
    assert sorted({name for name in ids if ids.count(name) > 1}) == []


@pytest.mark.book
def test_a_dead_link_finds_a_page_that_leads_back(site):
    page = BeautifulSoup((site / "404.html").read_text(encoding="utf-8"), "html.parser")
    assert page.h1 and page.find("a")["href"].endswith("index.html")


@pytest.mark.book
def test_references_lead_back_to_the_pages_that_cite_them(site):
    page = BeautifulSoup((site / "chapters/bibliography.html").read_text(encoding="utf-8"), "html.parser")
    citing = page.select(".cited-in a")
    assert len(citing) >= 2
    assert all((site / "chapters" / link["href"]).exists() for link in citing)


@pytest.mark.book
def test_icons_are_a_few_glyphs(site):
    fonts = list((site / "_static/vendor/fontawesome/webfonts").iterdir())
    assert fonts and sum(font.stat().st_size for font in fonts) < 30_000
    assert not list((site / "_static").rglob("fontawesome.js*"))


@pytest.mark.book
def test_the_glossary_is_in_the_index(site):
    index = (site / "genindex.html").read_text(encoding="utf-8")
    assert "glossary.html#term-cavity" in index
