"""The decks of slides: each opens without an error, asks no other server, fits its page, prints, and its sliders move."""

import io

import build_book
import make_slides
import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader
from visits import NO_PROBLEMS, PATIENCE, Visit, changed, look, served

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.book

DECKS = [path.stem for path in build_book.chapters() if path.stem != "identities"]


@pytest.fixture(scope="module")
def decks(site):
    make_slides.main()
    return make_slides.TARGET


@pytest.fixture(scope="module")
def address(decks):
    with served(decks) as address:
        yield address


def opened(browser, address, name, anchor=""):
    visit = Visit(browser, address, name, (1280, 800), anchor=anchor)
    visit.page.wait_for_selector("html[data-ready]", state="attached")
    return visit


def test_there_is_a_deck_for_each_chapter(decks):
    links = BeautifulSoup((decks / "index.html").read_text(encoding="utf-8"), "html.parser").select("li > a:first-child")
    assert [link["href"] for link in links] == [f"{name}.html" for name in DECKS]


@pytest.mark.parametrize("name", DECKS)
def test_a_deck_holds_what_its_page_shows_and_no_code(decks, site, name):
    deck, page = (BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
                  for path in (decks / f"{name}.html", site / f"chapters/{name}.html"))
    slides = deck.select(".slides > section")
    assert 3 <= len(slides) <= make_slides.MOST
    assert [box["data-folder"] for box in deck.select(".slider-box")] == [
        box["data-folder"].removeprefix("../") for box in page.select("article .slider-box")]
    assert deck.select("pre, .cell_input, .solution, a.headerlink") == []
    assert all(image.get("alt", "").strip() and (decks / image["src"]).exists() for image in deck.select("img"))
    assert all(one.select_one(".body").get_text().strip() or one.select("img") for one in slides)


TOO_LARGE = """() => { const slide = Reveal.getCurrentSlide(), room = slide.getBoundingClientRect();
  return [...slide.querySelectorAll("h1, h2, p, li, img, figcaption, .slider-control, mjx-container > mjx-math")]
    .filter((part) => part.getClientRects().length)
    .filter((part) => part.getBoundingClientRect().right > room.right + 1
                      || part.getBoundingClientRect().bottom > room.bottom + 1)
    .map((part) => part.tagName + " " + part.textContent.slice(0, 60)); }"""


@pytest.mark.parametrize("name", DECKS)
def test_a_deck_opens_fits_and_its_sliders_move(browser, address, name):
    visit = opened(browser, address, name)
    page, moved = visit.page, 0
    too_large = {}
    for number in range(page.evaluate("Reveal.getTotalSlides()")):
        page.evaluate(f"Reveal.slide({number})")
        for image in page.locator("section.present img").all():
            image.evaluate("image => image.decode()")
        too_large[number] = page.evaluate(TOO_LARGE)
        for control in page.locator("section.present .slider-control").all():
            moved += move(page, control)
            assert page.evaluate("Reveal.getIndices().h") == number, "an arrow key on a slider must not turn the page"
    assert {number: parts for number, parts in too_large.items() if parts} == {}
    assert moved == page.locator(".slider-control").count() > 0
    assert visit.problems == NO_PROBLEMS
    page.close()


def move(page, control):
    """Move a slider, or choose otherwise, by the keyboard, and wait until picture and value have followed."""
    figure = page.locator("section.present figure.slider")
    start = look(figure, control)
    track = control.locator("input[type=range]")
    used = track if track.count() else control.locator("select, :checked").first
    key = "ArrowDown"
    if track.count():
        low, now, high = track.evaluate("range => [range.min, range.value, range.max].map(Number)")
        key = "ArrowRight" if now - low < high - now else "ArrowLeft"
    used.focus()
    page.keyboard.press(key)
    changed(page, figure, control, start, words=False)
    page.evaluate("document.activeElement.blur()")
    return 1


def test_the_mouse_moves_a_slider_and_the_keys_turn_the_page(browser, address):
    visit = opened(browser, address, "power-ep")
    page = visit.page
    page.keyboard.press("ArrowRight")
    assert page.evaluate("Reveal.getIndices().h") == 1
    page.evaluate("Reveal.slide(Reveal.getSlides().findIndex(slide => slide.querySelector('input[type=range]')))")
    control = page.locator("section.present .slider-control").first
    figure = page.locator("section.present figure.slider")
    start, box = look(figure, control), control.locator("input").bounding_box()
    page.mouse.click(box["x"] + 0.03 * box["width"], box["y"] + box["height"] / 2)
    changed(page, figure, control, start)
    assert visit.problems == NO_PROBLEMS
    page.close()


def test_an_address_opens_the_slide_of_a_slider_at_its_value(browser, address):
    visit = opened(browser, address, "sparse-regression", "#fig-sr-picture?alpha=0.3")
    page = visit.page
    assert page.locator("section.present #fig-sr-picture").count() == 1
    page.wait_for_function("document.querySelector('#fig-sr-picture output').textContent === '0.3'")
    assert page.locator("section.present h2").bounding_box()["y"] >= 0, "the slide was scrolled away"
    page.close()


@pytest.mark.parametrize("name", ["gp-features", "sparse-ep-projection"])
def test_a_deck_prints_one_page_for_each_slide(browser, address, name):
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{address}/{name}.html?print-pdf", wait_until="load")
    page.wait_for_selector("html[data-ready]", state="attached")
    page.wait_for_function("[...document.images].every((image) => image.complete)")
    slides = page.evaluate("Reveal.getTotalSlides()")
    printed = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True, print_background=True)))
    page.close()
    assert len(printed.pages) == slides
    assert all(sheet.extract_text().strip() for sheet in printed.pages)


def test_the_last_slides_that_can_be_spared_go_first():
    slides = [(kind, str(number)) for number, kind in enumerate(["title", "slider", "figure", "equations", "figure"])]
    assert [kind for kind, _ in make_slides.at_most(4, slides)] == ["title", "slider", "figure", "equations"]
    assert [kind for kind, _ in make_slides.at_most(2, slides)] == ["title", "slider"]


def test_an_equation_is_led_to_by_its_sentence():
    page = BeautifulSoup("<p>One. Two is <em>this</em>:</p><div class='math' id='equation-a'>x</div>", "html.parser")
    assert make_slides.lead(page.div) == "<p>Two is <em>this</em>:</p>"
