"""The built site in a real browser: no console error, no request elsewhere, and sliders that move the picture.

Drives an installed Chromium or Chrome, else Playwright's own; where neither can be had the tests skip and say so.
"""

import functools
import http.server
import json
import os
import shutil
import threading

import build_book
import pytest
from conftest import NEEDS_BROWSER

from figures.experiments import claims

pytestmark = pytest.mark.book

PAGES = build_book.pages()
WIDTHS = {"desktop": (1400, 900), "phone": (390, 844)}
# Stock sphinx-thebe, part of Jupyter Book, declares its constants twice on every page; it is harmless.
ALLOWED_ERRORS = ["THEBE_JS_URL' has already been declared"]
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync"]
INSTALLED = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
PATIENCE = 90_000       # milliseconds, for a busy machine
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def has_slider(name):
    """Whether the page's notebook, as committed, shows a slider of figures/slider.py."""
    path = build_book.ROOT / f"{name}.ipynb"
    return path.exists() and any(
        WIDGET_VIEW in output.get("data", {}) and "slider" in "".join(output["data"].get("text/plain", ""))
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] for output in cell.get("outputs", []))


def has_map(name):
    """Whether the page's notebook shows the map of methods of figures/experiments/bui2017/fig1.py."""
    path = build_book.ROOT / f"{name}.ipynb"
    return path.exists() and 'class=\\"method-map' in path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def address(site):
    """Serve the site on a free port of this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    installed = next(filter(None, map(shutil.which, INSTALLED)), None)
    with sync_playwright() as playwright:
        if not installed and not os.path.exists(playwright.chromium.executable_path):
            pytest.skip(NEEDS_BROWSER)
        running = playwright.chromium.launch(executable_path=installed, args=OPTIONS)
        yield running
        running.close()


class Visit:
    """A page that was opened, with what went wrong on it."""

    def __init__(self, browser, address, name, size):
        self.address, self.errors, self.elsewhere, self.missing = address, [], [], []
        self.page = browser.new_page(viewport=dict(zip(("width", "height"), WIDTHS[size])))
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(error.message))
        self.page.on("response", lambda r: r.status >= 400 and self.missing.append(f"{r.status} {r.url}"))
        self.page.route("**/*", self._route)
        self.page.set_default_timeout(PATIENCE)
        self.page.goto(f"{address}/{name}.html", wait_until="load")
        self.page.wait_for_function("() => !window.MathJax || (MathJax.startup && MathJax.startup.promise)")
        self.page.evaluate("() => window.MathJax && MathJax.startup.promise.then(() => null)")
        if has_slider(name):
            self.page.locator("img.slider-frame:visible").first.wait_for()

    def _route(self, route):
        if route.request.url.startswith((self.address, "data:", "blob:")):
            route.continue_()
        else:
            self.elsewhere.append(route.request.url)
            route.abort()

    @property
    def problems(self):
        unexpected = [text for text in self.errors if not any(allowed in text for allowed in ALLOWED_ERRORS)]
        return {"errors": unexpected, "asked elsewhere": self.elsewhere, "missing": self.missing}


# Formulas inside a sentence do not scroll, so none may reach over the edge; displayed ones and tables scroll.
CUT_FORMULAS = """() => [...document.querySelectorAll('article mjx-container:not([display="true"])')]
    .filter(formula => !formula.closest("table, div.math, .cell_output"))
    .filter(formula => formula.getBoundingClientRect().right > document.documentElement.clientWidth)
    .map(formula => formula.textContent.slice(0, 80))"""

NO_PROBLEMS = {"errors": [], "asked elsewhere": [], "missing": []}


@pytest.fixture(params=WIDTHS)
def size(request):
    return request.param


@pytest.fixture
def visit(browser, address, size, request):
    visited = Visit(browser, address, request.param, size)
    yield visited
    visited.page.close()


@pytest.mark.parametrize("visit", PAGES, indirect=True)
def test_page_loads_without_errors_and_fits_the_screen(visit):
    page = visit.page
    page.wait_for_timeout(500)      # whatever else the page starts
    assert visit.problems == NO_PROBLEMS
    assert page.locator("article h1").first.is_visible()
    page.evaluate("() => window.scrollTo(500, 0)")      # sideways, as a thumb would
    assert page.evaluate("() => window.scrollX") == 0
    assert page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    equations = page.locator("div.math mjx-container")
    if page.locator("div.math").count():
        assert equations.count() > 0, "equations are not set"
    assert page.evaluate(CUT_FORMULAS) == []


@pytest.mark.parametrize("visit", [page for page in PAGES if has_slider(page)], indirect=True)
def test_every_slider_moves_its_picture_by_keyboard_and_by_mouse(visit):
    page = visit.page
    boxes = page.locator(".widget-vbox:has(> .widget-slider)")
    assert boxes.count() > 0
    for i in range(boxes.count()):
        box = boxes.nth(i)
        box.scroll_into_view_if_needed()
        for j in range(box.locator(".widget-slider").count()):
            slider = box.locator(".widget-slider").nth(j)
            handle = slider.locator(".noUi-handle")
            start = look(box, slider)
            handle.focus()
            by_keyboard = press_until_changed(page, box, slider, handle, start)
            drag(page, handle, slider.locator(".noUi-target"))
            changed(page, box, slider, by_keyboard)
    assert visit.problems == NO_PROBLEMS


def look(box, slider):
    """What a reader sees: the slider's reading, the visible frame's description, and the frame itself."""
    frames = box.locator("img.slider-frame:visible")
    frames.first.wait_for()
    assert frames.count() == 1, "exactly one frame is shown"
    assert frames.first.evaluate("image => image.complete && image.naturalWidth > 0")
    return (slider.locator(".widget-readout").inner_text(), frames.first.get_attribute("alt"),
            frames.first.get_attribute("src"))


def press_until_changed(page, box, slider, handle, start):
    """Press the arrow key towards the farther end until the picture changes; neighbouring frames may be alike."""
    low, now, high = (float(handle.get_attribute(f"aria-value{name}")) for name in ("min", "now", "max"))
    key, presses = ("ArrowRight", high - now) if now - low < high - now else ("ArrowLeft", now - low)
    before = start
    for _ in range(round(presses)):
        page.keyboard.press(key)
        before = changed(page, box, slider, before, picture=False)
        if before[2] != start[2]:
            return before
    return changed(page, box, slider, start)


def changed(page, box, slider, before, picture=True):
    """Wait until reading and description (and the picture) differ from what they were; returns what is seen then."""
    for _ in range(50):
        now = look(box, slider)
        if now[0] != before[0] and now[1] != before[1] and (now[2] != before[2] or not picture):
            return now
        page.wait_for_timeout(100)
    pytest.fail(f"the picture does not follow the slider: {before[:2]} -> {now[:2]}")


def drag(page, handle, track):
    """Drag the handle with the mouse to the end of the track that is farther away."""
    at, rail = handle.bounding_box(), track.bounding_box()
    x, y = at["x"] + at["width"] / 2, at["y"] + at["height"] / 2
    to_the_right = x < rail["x"] + rail["width"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(rail["x"] + rail["width"] * (0.95 if to_the_right else 0.05), y, steps=8)
    page.mouse.up()


@pytest.mark.parametrize("visit", [page for page in PAGES if has_map(page)], indirect=True)
def test_the_map_of_methods_leads_to_its_sections_by_mouse_and_by_keyboard(visit):
    page, start = visit.page, visit.page.url
    corner = page.locator(".method-map svg a").filter(has=page.locator("circle")).first
    goal = corner.get_attribute("href")
    for follow in (corner.locator("circle").click, functools.partial(corner.press, "Enter")):
        page.goto(start)
        follow()
        page.wait_for_url(f"**/{goal}")
        assert page.locator(f"[id='{goal.partition('#')[2]}']").is_visible()
    assert visit.problems == NO_PROBLEMS


@pytest.mark.parametrize("visit", PAGES[:1], indirect=True)
def test_light_and_dark_are_one_button_apart(visit):
    page = visit.page
    seen = set()
    for _ in range(3):
        seen.add(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))
        page.locator("button.theme-switch-button:visible").first.click()
        page.wait_for_timeout(200)
    assert len(seen) >= 2


@pytest.mark.parametrize("visit", ["chapters/claims"], indirect=True)
def test_the_ledger_shows_the_claims_that_the_filters_ask_for(visit):
    page, ledger = visit.page, claims.ledger()
    shown = page.locator("details.claim:visible")
    assert shown.count() == 0                               # folded by paper
    assert page.evaluate("document.documentElement.scrollHeight") < 8000
    page.select_option("select[name=verdict]", "not-reproduced")
    wanted = [claim for claim in ledger if claim.verdict == "not reproduced"]
    assert shown.count() == len(wanted) > 0
    assert page.locator("form.ledger-filters output").inner_text() == f"{len(wanted)} of {len(ledger)} claims"
    assert {badge.inner_text() for badge in shown.locator(".verdict").all()} == {"not reproduced"}
    page.select_option("select[name=paper]", wanted[0].paper)
    assert shown.count() == sum(claim.paper == wanted[0].paper for claim in wanted)
    assert page.url.endswith(f"#?paper={wanted[0].paper}&verdict=not-reproduced")
    page.reload()
    assert shown.count() == sum(claim.paper == wanted[0].paper for claim in wanted)     # the address keeps the choice
    page.evaluate(f"location.hash = '{ledger[0].anchor}'")
    page.wait_for_function(f"document.getElementById('{ledger[0].anchor}').open")
    assert page.locator(f"details#{ledger[0].anchor}").is_visible()
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))
    assert visit.problems == NO_PROBLEMS


def test_the_book_has_pages_with_sliders():
    assert sum(map(has_slider, PAGES)) >= 5
