"""The built site: every page is there with its content and outputs, and it loads nothing from elsewhere."""

import json
import re
import tomllib
from html import unescape

import build_book
import formulas
import ledger
import pytest
from bs4 import BeautifulSoup

from figures.experiments import claims, rules, runner
from figures.experiments.bui2017 import fig1

pytestmark = pytest.mark.book

PAGES = build_book.pages()
MAX_PAGE_BYTES = 1_200_000
PHONE, PIXELS = 390, 120 / 72     # width of a phone in CSS pixels, and of a point in a drawing of full size
LETTERS = 10.9                  # CSS pixels


@pytest.fixture(params=PAGES)
def name(request):
    return request.param


@pytest.fixture
def html(site, name):
    return BeautifulSoup((site / f"{name}.html").read_text(encoding="utf-8"), "html.parser")


def test_the_table_of_contents_names_every_page_once():
    assert len(PAGES) == len(set(PAGES)) >= 17
    sources = {path.with_suffix("").name for path in (build_book.ROOT / "chapters").iterdir()
               if path.suffix in (".ipynb", ".md")}
    assert {page.split("/")[-1] for page in PAGES} == sources


def test_page_has_a_title_and_content(html):
    article = html.find("article")
    assert article.find("h1").get_text(strip=True)
    assert len(article.get_text()) > 500, "a page this short is a mistake"


def test_page_shows_every_output_of_its_notebook(html, name):
    path = build_book.ROOT / f"{name}.ipynb"
    cells = json.loads(path.read_text())["cells"] if path.exists() else []
    cells = [cell for cell in cells if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]

    def without(*tags):
        return [cell for cell in cells if not set(tags) & set(cell["metadata"].get("tags", []))]

    assert len(html.select("div.cell_input")) == len(without("remove-cell", "remove-input"))
    shown = [cell for cell in without("remove-cell", "remove-output") if cell["outputs"]]
    assert len(html.select("div.cell_output")) == len(shown)


def test_page_shows_no_error(html):
    assert not html.select(".output.traceback, .system-message, .problematic")
    article = html.find("article").get_text()
    assert "Traceback (most recent call last)" not in article
    assert "Undefined label" not in article


def test_page_loads_nothing_from_another_site(html):
    loaded = [tag.get("src") for tag in html.select("script[src], img[src], iframe[src], source[src], embed[src]")]
    loaded += [tag.get("href") for tag in html.select("link[href]") if set(tag.get("rel", [])) & {
        "stylesheet", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "icon", "shortcut"}]
    loaded += re.findall(r"url\(\s*['\"]?([^)'\"]+)", " ".join(tag.get_text() for tag in html.select("style")))
    assert loaded, "a page without a style sheet is no page of this book"
    assert [url for url in loaded if re.match(r"(https?:)?//", url)] == []


def test_style_sheets_load_nothing_from_another_site(site):
    sheets = list((site / "_static").rglob("*.css"))
    assert len(sheets) > 5
    for sheet in sheets:
        urls = re.findall(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^)'\"]+)", sheet.read_text(encoding="utf-8"))
        assert urls == [], sheet


def test_formulas_are_set_and_their_fonts_part_of_the_site(site, html):
    sheet = site / formulas.SHEET
    for font in re.findall(r'url\("([^"]+)"\)', sheet.read_text(encoding="utf-8")):
        assert (sheet.parent / font).stat().st_size > 500
    assert all(formula.select_one("mjx-math") and formula.select_one("math") for formula in html.select(".math"))
    assert html.select("mjx-container") == [] or html.select_one(f"link[href$='{sheet.name}']")
    assert html.select("script[src*=mathjax], mjx-merror") == []
    assert not (site / "_static/ipywidgets").exists(), "no page needs widgets"


def test_every_picture_of_a_slider_is_part_of_the_site(site, html, name):
    for box in html.select(".slider-box"):
        data = json.loads(box["data-frames"])
        for stem in data["alts"]:
            for end in ("", "-dark"):
                assert (site / name).parent.joinpath(box["data-folder"], f"{stem}{end}.{data['kind']}").exists()


def test_links_within_the_site_lead_somewhere(site):
    """On every page there is, those of modules and of the index too."""
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    ids = {path: set(re.findall(r'\bid="([^"]+)"', page)) for path, page in pages.items()}
    pages.pop(site / "404.html")        # its links are as seen from the site's address
    links = [(path, unescape(link)) for path, page in pages.items() for link in re.findall(r'<a\s[^>]*?href="([^"]*)"', page)]
    assert len(links) > 10_000
    dead = set()
    for path, link in links:
        target, _, anchor = link.partition("#")
        if re.match(r"\w+:", target):
            continue
        page = (path.parent / target).resolve() if target else path
        by_name = anchor and not anchor.startswith("?") and page.suffix == ".html"      # "?" is a choice of the ledger's filters
        if not page.exists() or (by_name and anchor not in ids[page]):
            dead.add((path.relative_to(site).as_posix(), link))
    assert dead == set()


@pytest.mark.parametrize("name", ["chapters/claims", "chapters/reproduction-summary"], indirect=True)
def test_each_paper_has_a_heading_and_stands_in_the_contents(html):
    papers = sorted({ledger.spoken(claim.paper) for claim in claims.ledger()})
    contents = {link.get_text(strip=True) for link in html.select("nav.page-toc a")}
    assert [title for title in papers if title not in contents] == []
    headings = {heading.get_text().strip("#\n ") for heading in html.find("article").select("h2, h3")}
    assert [title for title in papers if title not in headings] == []


def test_a_drawing_of_a_page_has_a_dark_twin(site):
    page = BeautifulSoup((site / "chapters/benchmarks.html").read_text(encoding="utf-8"), "html.parser")
    light, dark = (page.select(f"article img.{theme}-frame") for theme in ("light", "dark"))
    assert len(light) == len(dark) == 2
    for one, other in zip(light, dark):
        assert other["src"] == one["src"].replace(".svg", "-dark.svg") and other["alt"] == one["alt"]
        assert "#fafaf7" in (site / "chapters" / one["src"]).read_text(encoding="utf-8")
        assert "#fafaf7" not in (site / "chapters" / other["src"]).read_text(encoding="utf-8")


def test_the_map_of_methods_is_a_numbered_figure(site):
    page = BeautifulSoup((site / "chapters/sparse-classification.html").read_text(encoding="utf-8"), "html.parser")
    numbered = page.find("figure", id=fig1.FIGURE)
    assert len(numbered.select(".method-map svg")) == 2 and not numbered.select("figure")
    assert numbered.select_one(".caption-number") and fig1.CAPTION in numbered.select_one(".caption-text").get_text()


def test_every_image_is_described(html):
    images = html.find("article").select("img")
    assert [image.get("src", "")[:80] for image in images if not image.get("alt", "").strip()] == []


def test_letters_of_every_drawing_are_large_enough_on_a_phone(site):
    """The smallest, subscripts excepted, are 11 pixels high where the drawing is as wide as a phone."""
    sizes = {}
    for path in (*site.glob("_static/frames/**/*.svg"), *site.glob("_images/*.svg")):
        drawing = path.read_text(encoding="utf-8")
        letters = re.findall(r"scale\(([\d.]+) -[\d.]+\)", drawing)      # of a glyph's 100 units, as matplotlib writes them
        if letters:
            width = float(re.search(r'viewBox="0 0 ([\d.]+) ', drawing)[1])
            sizes[path.relative_to(site).as_posix()] = 100 * min(map(float, letters)) * min(PHONE / width, PIXELS)
    assert len(sizes) > 300
    assert {path: round(size, 1) for path, size in sizes.items() if size < LETTERS} == {}


def test_page_is_light_enough_for_a_phone(site, name):
    assert (site / f"{name}.html").stat().st_size < MAX_PAGE_BYTES


def test_the_entrance_leads_to_the_first_page(site):
    page = BeautifulSoup((site / "index.html").read_text(encoding="utf-8"), "html.parser")
    assert page.html["lang"] == "en" and page.title.get_text() and page.find("meta", {"name": "description"})["content"]
    assert page.a["href"] == f"{PAGES[0]}.html" and (site / page.a["href"]).exists()


@pytest.mark.parametrize("summary", ["claims", "reproduction-summary"])
def test_the_headline_counts_the_claims_of_the_ledger_and_of_the_changelog(site, summary):
    status = {entry["claim"]: entry["status"] for entry in rules.read()["rule"]}
    claimed = tomllib.loads(claims.FILE.read_text(encoding="utf-8"))["claim"]

    def counted(kind):
        found = [claim["verdict"] for claim in claimed if status[claim["id"]] == kind]
        numbers = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in claims.VERDICTS if verdict in found)
        return f"{len(found)} ({numbers})"

    text = BeautifulSoup((site / f"chapters/{summary}.html").read_text(encoding="utf-8"), "html.parser").get_text()
    tested = sum(status[claim["id"]] != rules.NOT_MEASURED for claim in claimed)
    assert f"Of {tested} claims that were tested, {counted(rules.BEFORE)} were judged by a rule committed before" in text
    assert f"and {counted(rules.HINDSIGHT)} with hindsight" in text and f"The other {counted(rules.NO_ROWS)} need no rows" in text


def test_the_summary_names_every_tested_claim_under_its_verdict(site):
    page = BeautifulSoup((site / "chapters/reproduction-summary.html").read_text(encoding="utf-8"), "html.parser")
    found = {(part.summary.get_text().split(":")[0].lower(), link.get_text())
             for part in page.select("article details:has(.ledger-list)") for link in part.select("a")}
    assert found == {(claim.verdict, claim.id) for claim in claims.ledger() if claim.measure}


def test_the_ledger_holds_every_claim_with_its_verdict_and_files(site):
    page = BeautifulSoup((site / "chapters/claims.html").read_text(encoding="utf-8"), "html.parser")
    for claim in claims.ledger():
        card = page.find(id=claim.anchor)
        assert card.select_one(".verdict").get_text() == claim.verdict
        text = card.get_text().replace("’", "'")       # the page has typographic quotation marks
        assert claim.statement in text and claim.found.split(" (")[0] in text
        files = [link["href"] for link in card.select("a.download")]
        has_data = bool(claim.data) and runner.load(claim.data).file.exists()
        assert len(files) == bool(claim.measure) + has_data
        assert all((site / "chapters" / file).exists() for file in files)
