"""Visits to pages in a real browser, and what a reader sees there."""

import functools
import gzip
import http.server
import json
import os
import shutil
import threading
from contextlib import contextmanager

import build_book
import pytest
from conftest import NEEDS_BROWSER

WIDTHS = {"desktop": (1400, 900), "phone": (390, 844)}
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync"]
INSTALLED = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
PATIENCE = 90_000       # milliseconds, for a busy machine
NO_PROBLEMS = {"errors": [], "asked elsewhere": [], "missing": []}


@contextmanager
def launched():
    """An installed Chromium or Chrome, else Playwright's own; where neither can be had the test is left out."""
    from playwright.sync_api import sync_playwright

    installed = next(filter(None, map(shutil.which, INSTALLED)), None)
    with sync_playwright() as playwright:
        if not installed and not os.path.exists(playwright.chromium.executable_path):
            pytest.skip(NEEDS_BROWSER)
        with playwright.chromium.launch(executable_path=installed, args=OPTIONS) as browser:
            yield browser


@contextmanager
def served(folder):
    """The address at which a free port of this machine shows the folder."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def has_slider(name):
    """Whether the page's notebook, as committed, shows a slider of figures/drawing/slider.py."""
    path = build_book.ROOT / f"{name}.ipynb"
    return path.exists() and any(
        "".join(output.get("data", {}).get("text/plain", "")).startswith("slider")
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] for output in cell.get("outputs", []))


# The browser's own measure of how much of the window has moved, and how far, after it was shown.
COUNT_SHIFTS = """window.shift = 0; new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shift += one.value;
}).observe({type: "layout-shift", buffered: true})"""


# How many sliders had started when the page was read and before any script that waits for that moment.
COUNT_SLIDERS_WHEN_READ = """addEventListener("readystatechange", () => {
  if (document.readyState === "interactive") window.started = typeof boxes === "undefined" ? 0 : boxes.length;
}, {capture: true})"""


class Visit:
    """A page that was opened with an empty cache, with what went wrong on it."""

    def __init__(self, browser, address, name, size=(1400, 900), theme="light", touch=False, anchor=""):
        self.address, self.errors, self.elsewhere, self.missing, self.responses = address, [], [], [], []
        self.page = browser.new_page(viewport=dict(zip(("width", "height"), size)), color_scheme=theme, has_touch=touch)
        self.page.on("console", lambda message: message.type in ("error", "warning") and self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(error.message))
        self.page.on("response", self._note)
        self.page.route("**/*", self._route)
        self.page.set_default_timeout(PATIENCE)
        self.page.add_init_script(COUNT_SHIFTS)
        self.page.add_init_script(COUNT_SLIDERS_WHEN_READ)
        self.page.goto(f"{address}/{name}.html{anchor}", wait_until="load")

    def _note(self, response):
        self.responses.append(response)
        if response.status >= 400:
            self.missing.append(f"{response.status} {response.url}")

    def _route(self, route):
        if route.request.url.startswith((self.address, "data:", "blob:")):
            route.continue_()
        else:
            self.elsewhere.append(route.request.url)
            route.abort()

    @property
    def problems(self):
        return {"errors": self.errors, "asked elsewhere": self.elsewhere, "missing": self.missing}

    def shift(self):
        """The layout shift so far."""
        self.page.wait_for_timeout(300)
        return self.page.evaluate("window.shift")

    def weight(self):
        """Bytes of all that was fetched, as they are and as a server would send them: (raw, compressed)."""
        bodies = [response.body() for response in self.responses if not response.url.startswith("data:")]
        return sum(map(len, bodies)), sum(min(len(body), len(gzip.compress(body))) for body in bodies)


VALUE = """control => control.querySelector("[aria-valuetext]")?.getAttribute("aria-valuetext")
    ?? control.querySelector("select")?.selectedOptions[0].text
    ?? control.querySelector(":checked").parentElement.innerText"""


def look(figure, control):
    """What a reader sees and hears: the control's value, the visible frame's description, and the frame itself."""
    frames = figure.locator(".slider-picture img:visible")
    frames.first.wait_for()
    assert frames.count() == 1, "exactly one frame is shown"
    frames.first.evaluate("image => image.decode()")
    return control.evaluate(VALUE), frames.first.get_attribute("alt"), frames.first.get_attribute("src")


def changed(page, figure, control, before, words=True):
    """Wait until value and frame (and description) differ from what they were; returns what is seen then."""
    for _ in range(PATIENCE // 100):
        now = look(figure, control)
        if now[0] != before[0] and now[2] != before[2] and (now[1] != before[1] or not words):
            return now
        page.wait_for_timeout(100)
    pytest.fail(f"the picture does not follow the control: {before} -> {now}")
