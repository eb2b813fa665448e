"""The built site in a real browser: no console error, no request elsewhere, and sliders that move the picture.

Drives an installed Chromium or Chrome, else Playwright's own; where neither can be had the tests skip and say so.
"""

import functools
import json
import re
from urllib.parse import urlencode

import build_book
import pytest
from visits import NO_PROBLEMS, WIDTHS, Visit, changed, has_slider, look

from figures.drawing import style
from figures.experiments import claims

pytest_plugins = ["browser_fixtures"]
pytestmark = pytest.mark.book

PAGES = build_book.pages()
NARROW_AND_BETWEEN = (320, 768)
AXE = build_book.ROOT / "node_modules/axe-core/axe.min.js"
GZIP, APPENDIX, RAW = 600_000, 480_000, 2_600_000   # bytes of a page before the first touch


def has_map(name):
    """Whether the page's notebook shows the map of methods of figures/experiments/bui2017/fig1.py."""
    path = build_book.ROOT / f"{name}.ipynb"
    return path.exists() and 'class=\\"method-map' in path.read_text(encoding="utf-8")


# Formulas inside a sentence do not scroll, so none may reach over the edge; displayed ones and tables scroll.
CUT_FORMULAS = """() => [...document.querySelectorAll('article mjx-container:not([display="true"])')]
    .filter(formula => !formula.closest("table, div.math, .cell_output"))
    .filter(formula => formula.getBoundingClientRect().right > document.documentElement.clientWidth)
    .map(formula => formula.textContent.slice(0, 80))"""


@pytest.fixture(params=WIDTHS)
def size(request):
    return request.param


@pytest.fixture
def visit(browser, address, size, request):
    visited = Visit(browser, address, request.param, WIDTHS[size], touch=size == "phone")
    yield visited
    visited.page.close()


@pytest.mark.parametrize("name", PAGES)
def test_page_loads_without_errors_and_fits_the_screen(browser, address, name):
    for size, window in WIDTHS.items():
        visit = Visit(browser, address, name, window, touch=size == "phone")
        page = visit.page
        page.wait_for_timeout(500)      # whatever else the page starts
        assert visit.problems == NO_PROBLEMS, size
        assert page.locator("article h1").first.is_visible(), size
        equations = page.locator("div.math mjx-container")
        if page.locator("div.math").count():
            assert equations.count() > 0, f"equations are not set ({size})"
        for width in (window[0], NARROW_AND_BETWEEN[size == "desktop"]):
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate("() => window.scrollTo(500, 0)")      # sideways, as a thumb would
            assert page.evaluate("() => window.scrollX") == 0, width
            too_wide = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert too_wide <= 0, width
            assert page.evaluate(CUT_FORMULAS) == [], width
            assert page.evaluate(OVERPRINTED) == [], width
        page.close()


# An equation's number and the equation must not meet.
OVERPRINTED = """() => [...document.querySelectorAll("div.math > .eqno")].filter((number) => {
  const formula = number.parentElement.querySelector("mjx-container")?.getBoundingClientRect();
  const place = number.getBoundingClientRect();
  return formula && place.left < formula.right - 1 && place.right > formula.left + 1
    && place.top < formula.bottom - 1 && place.bottom > formula.top + 1;
}).map((number) => number.textContent)"""


# Code of at most 80 columns that has to be scrolled all the same.
CUT_CODE = """() => [...document.querySelectorAll("article div.cell_input .highlight pre")]
    .filter(pre => pre.offsetWidth && !pre.textContent.split("\\n").some(line => line.length > 80))
    .filter(pre => pre.scrollWidth > pre.clientWidth).map(pre => pre.textContent.slice(0, 80))"""


@pytest.mark.parametrize("name", ["chapters/power-ep"])
def test_eighty_columns_of_code_fit_beside_the_bars(browser, address, name):
    page = browser.new_page()
    page.goto(f"{address}/{name}.html")
    assert page.locator("article div.cell_input .highlight pre:visible").count() > 5
    for width in range(960, 1420, 20):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(CUT_CODE) == [], width
    page.close()


@pytest.mark.parametrize("name", [page for page in PAGES if page.split("/")[-1].startswith("study-many")])
def test_a_long_table_of_verdicts_can_be_sorted(browser, address, name):
    page = browser.new_page()
    page.goto(f"{address}/{name}.html")
    table = page.locator("table.verdicts.sortable").first
    verdicts = table.locator("tbody td:nth-child(4)")
    before = verdicts.all_inner_texts()
    table.get_by_role("button", name="verdict").click()
    assert verdicts.all_inner_texts() == sorted(before) != before
    assert table.locator("th[aria-sort=ascending]").inner_text().startswith("verdict")
    table.get_by_role("button", name="ours").click()
    found = [re.match(r"[−-]?[\d.]+", said) for said in table.locator("tbody td:nth-child(3)").all_inner_texts()]
    numbers = [float(one[0].replace("−", "-")) for one in found if one]
    assert numbers == sorted(numbers) and len(numbers) > 3
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_light(browser, address, name):
    """What a reader's first look costs: the page at its top, with an empty cache, before the first touch."""
    visit = Visit(browser, address, name)
    visit.page.wait_for_timeout(1000)
    raw, compressed = visit.weight()
    most = GZIP if (build_book.ROOT / f"{name}.ipynb").exists() else APPENDIX
    assert (raw <= RAW, compressed <= most) == (True, True), (raw, compressed)
    visit.page.close()


ANCHORS = ("article section section[id]", "article div.math[id]", "article figure[id]")


@pytest.mark.parametrize("name", PAGES)
def test_nothing_moves_after_it_was_shown(browser, address, name):
    """At the top of a page, and where a link leads into its middle: to a section, an equation, a figure."""
    shifts = {}
    for size, window in WIDTHS.items():
        top = Visit(browser, address, name, window)
        goals = [top.page.locator(kind).evaluate_all("all => all[Math.floor(all.length / 2)]?.id") for kind in ANCHORS]
        shifts[size, "top"] = top.shift()
        for goal in filter(None, goals):
            visit = Visit(browser, address, name, window, anchor=f"#{goal}")
            shifts[size, goal] = visit.shift()
            place = visit.page.locator(f"[id='{goal}']").bounding_box()
            assert 0 <= place["y"] < window[1], f"{goal} is not in sight ({size})"
            visit.page.close()
        top.page.close()
    assert {where: shift for where, shift in shifts.items() if shift >= 0.05} == {}


@pytest.mark.parametrize("name", PAGES)
def test_assistive_technology_finds_no_obstacle(browser, address, name):
    """axe-core finds nothing serious, with all that is folded open: in a page that was opened in the dark, then in the light."""
    visit = Visit(browser, address, name, theme="dark")
    page = visit.page
    page.evaluate("() => document.querySelectorAll('article details').forEach(details => { details.open = true })")
    page.evaluate("() => document.querySelectorAll('article button.toggle-button-hidden').forEach(button => button.click())")
    page.evaluate("() => document.querySelectorAll('article img').forEach(image => { image.loading = 'eager' })")
    page.add_script_tag(path=AXE)
    found = {}
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
        page.wait_for_timeout(500)      # for colours that change step by step
        found[theme] = page.evaluate(OBSTACLES)
    page.close()
    assert found == {"dark": [], "light": []}


OBSTACLES = """() => axe.run(document, {resultTypes: ['violations']}).then(({violations}) => violations
    .filter(({impact}) => impact === 'serious' || impact === 'critical')
    .map(({id, nodes}) => `${id} (${nodes.length}): ${nodes[0].html.slice(0, 160)} | ${nodes[0].any[0]?.message ?? ""}`))"""


@pytest.mark.parametrize("visit", [page for page in PAGES if has_slider(page)], indirect=True)
def test_every_control_changes_picture_words_and_value(visit, size):
    page = visit.page
    figures = page.locator("figure.slider")
    assert figures.count() > 0
    # each when its box has been read, so the first one does not wait for the end of the page
    assert page.evaluate("started") == figures.count(), "a slider starts only after other scripts"
    for figure in figures.all():
        figure.scroll_into_view_if_needed()
        for control in figure.locator(".slider-control").all():
            assert name_of(control), "a control needs a name"
            start = look(figure, control)
            if control.locator("input[type=range]").count():
                by_keyboard = move_by_keyboard(page, figure, control, start)
                touch_or_click(page, control.locator("input[type=range]"), size == "phone")
                changed(page, figure, control, by_keyboard)
            elif control.locator("select").count():
                values = control.locator("option").evaluate_all("options => options.map(option => option.value)")
                now = control.locator("select").input_value()
                control.locator("select").select_option(next(value for value in values if value != now))
                changed(page, figure, control, start)
            else:
                (control.locator("label:not(:has(:checked))").first.tap if size == "phone" else
                 control.locator("label:not(:has(:checked))").first.click)()
                by_pointer = changed(page, figure, control, start)
                control.locator(":checked").focus()
                page.keyboard.press("ArrowDown")
                changed(page, figure, control, by_pointer)
    assert visit.problems == NO_PROBLEMS


@pytest.mark.parametrize("name", PAGES[:1])
def test_the_menu_opens_on_a_phone_and_folds_on_a_wide_screen(browser, address, name):
    phone, wide = Visit(browser, address, name, WIDTHS["phone"], touch=True), Visit(browser, address, name)
    menu = phone.page.locator("dialog#pst-primary-sidebar-modal")
    assert not menu.is_visible()
    phone.page.locator("button.primary-toggle").tap()
    menu.locator("a", has_text="Power EP").first.wait_for()
    sidebar = wide.page.locator("#pst-primary-sidebar")
    assert sidebar.is_visible()
    wide.page.locator("button.primary-toggle").click()
    sidebar.wait_for(state="hidden")
    for visit in (phone, wide):
        visit.page.close()


def test_a_search_shows_words_of_the_text(browser, address):
    visit = Visit(browser, address, "search", anchor="?q=natural+gradient")
    found = visit.page.locator("#search-results li", has=visit.page.locator("p.context"))
    found.first.wait_for()
    assert "Contents" not in found.first.locator("p.context").inner_text()
    visit.page.close()


def name_of(control):
    return control.locator("label[for], legend").first.inner_text().strip()


def move_by_keyboard(page, figure, control, start):
    """Press the arrow key once towards the farther end."""
    low, now, high = control.locator("input").evaluate("range => [range.min, range.value, range.max].map(Number)")
    control.locator("input").focus()
    page.keyboard.press("ArrowRight" if now - low < high - now else "ArrowLeft")
    return changed(page, figure, control, start, words=False)


def touch_or_click(page, track, by_touch):
    """Put the handle near the end that is farther away, by a finger or by the mouse."""
    low, now, high = track.evaluate("range => [range.min, range.value, range.max].map(Number)")
    box = track.bounding_box()
    assert box["height"] >= 44
    assert track.evaluate("range => getComputedStyle(range).getPropertyValue('--handle')") == ("44px" if by_touch else "24px")
    x = box["x"] + box["width"] * (0.97 if now - low < high - now else 0.03)
    (page.touchscreen.tap if by_touch else page.mouse.click)(x, box["y"] + box["height"] / 2)


@pytest.mark.parametrize("name", [page for page in PAGES if has_slider(page)][:1])
def test_an_address_opens_a_slider_at_a_value(browser, address, name):
    visit = Visit(browser, address, name)
    figure = visit.page.locator("figure.slider").first
    label = figure.get_attribute("id")
    start = look(figure, figure.locator(".slider-control").first)
    visit.page.goto(f"{address}/{name}.html#{label}?alpha=1")
    now = changed(visit.page, figure, figure.locator(".slider-control").first, start)
    assert now[0] == "α 1.00, EP"
    figure.locator("input").first.focus()
    visit.page.keyboard.press("ArrowLeft")
    visit.page.wait_for_url("**?alpha=0.95")
    assert visit.problems == NO_PROBLEMS
    visit.page.close()


@pytest.mark.parametrize("name", [page for page in PAGES if page.endswith("gp-features")])
def test_an_address_holds_values_with_a_plus(browser, address, name):
    visit = Visit(browser, address, name)
    figure = visit.page.locator("figure.slider:has([data-texts*='e+'])").first
    control = figure.locator(".slider-control:has([data-texts*='e+'])")
    output, texts = control.locator("output"), json.loads(control.locator("input").get_attribute("data-texts"))
    value = next(text for text in texts if "+" in text and text != output.inner_text())
    asked = urlencode({control.get_attribute("data-name"): value})
    visit.page.goto(f"{address}/{name}.html#{figure.get_attribute('id')}?{asked}")
    visit.page.wait_for_function("([output, value]) => output.textContent === value", arg=[output.element_handle(), value])
    visit.page.close()


@pytest.mark.parametrize("name", PAGES[:1])
def test_a_page_appears_though_its_anchor_is_nonsense(browser, address, name):
    visit = Visit(browser, address, name, anchor="#100%")
    visit.page.wait_for_selector("html:not(.settling)", state="attached")
    visit.page.close()


@pytest.mark.parametrize("name", [page for page in PAGES if has_slider(page)][:1])
def test_a_slider_without_javascript_is_its_first_picture(browser, address, name):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/{name}.html")
    figure = page.locator("figure.slider").first
    assert figure.locator("img:visible").count() == 1
    assert not figure.locator(".slider-controls").is_visible()
    context.close()


@pytest.mark.parametrize("name", PAGES[:1])
def test_a_page_without_javascript_has_the_colours_of_the_light_theme(browser, address, name):
    context = browser.new_context(java_script_enabled=False, color_scheme="dark")
    page = context.new_page()
    page.goto(f"{address}/{name}.html")
    assert page.locator("html").get_attribute("data-theme") is None         # which the style sheets take for light
    context.close()


@pytest.mark.parametrize("visit", ["chapters/sparse-ep-projection", "chapters/power-ep"], indirect=True)
def test_a_click_on_any_word_of_its_title_unfolds_a_solution(visit):
    page, start = visit.page, visit.page.url
    for solution in page.locator(".admonition.solution").all():
        title, button = solution.locator(".admonition-title"), solution.locator("button.toggle-button")
        assert button.get_attribute("aria-label").startswith("Solution to Exercise")
        inner = title.locator("mjx-container, code").first
        for part in [title, *([inner] if inner.count() else [])]:
            before = button.get_attribute("aria-expanded")
            part.click(position={"x": 5, "y": 5})
            assert button.get_attribute("aria-expanded") != before
    assert page.url == start
    assert visit.problems == NO_PROBLEMS


@pytest.mark.parametrize("visit", ["chapters/teaching"], indirect=True)
def test_paper_is_white_and_unfolded_and_the_screen_is_afterwards_as_before(visit):
    page = visit.page
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    folded = page.locator("article details:not([open])").count()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.locator("article details:not([open], .hide)").count() == 0 < folded
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator("article details:not([open])").count() == folded


@pytest.mark.parametrize("name", ["chapters/sparse-ep-projection"])
def test_controls_that_a_browser_put_back_show_their_picture(browser, address, name):
    visit = Visit(browser, address, name)
    box = visit.page.locator(".slider-box:has(input[type=radio])").first
    other = box.locator("input[type=radio]:not(:checked)").first
    before = box.get_attribute("data-shown")
    other.evaluate("button => { button.checked = true; dispatchEvent(new Event('pageshow')); }")
    visit.page.wait_for_function("([box, before]) => box.dataset.shown !== before", arg=[box.element_handle(), before])
    visit.page.close()


@pytest.mark.parametrize("name", [page for page in PAGES if has_slider(page)][:2])
def test_letters_in_figures_are_large_enough_on_a_phone(browser, address, name):
    """The book's smallest letters, in the figure as a phone shows it, are 11 pixels high or more."""
    visit = Visit(browser, address, name, WIDTHS["phone"])
    for image in visit.page.locator("img.frame:visible").all():
        shown, drawn = image.bounding_box()["width"], float(image.get_attribute("width"))
        size = min(value for key, value in style.RC.items() if key.endswith("size") and key.split(".")[0] in TEXT)
        assert size / 72 * 120 * shown / drawn >= 11
    visit.page.close()


TEXT = ("font", "axes", "xtick", "ytick", "legend")


@pytest.mark.parametrize("visit", [page for page in PAGES if has_map(page)], indirect=True)
def test_the_map_of_methods_leads_to_its_sections_by_mouse_and_by_keyboard(visit):
    page, start = visit.page, visit.page.url
    corner = page.locator(".method-map svg a").filter(has=page.locator("circle")).first
    goal = corner.get_attribute("href")
    for follow in (corner.locator("circle").click, functools.partial(corner.press, "Enter")):
        page.goto(start)
        follow()
        page.wait_for_url(f"**/{goal}")
        page.locator(f"[id='{goal.partition('#')[2]}']").wait_for()     # visible
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
