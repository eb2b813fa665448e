"""The pages for teachers and for self-study: what they name exists, their times fit, and their exams have right answers."""

import math
import re
from itertools import pairwise

import numpy as np
import pytest
import reading
import teaching
from bs4 import BeautifulSoup
from conftest import ROOT
from visits import NO_PROBLEMS, WIDTHS, Visit

from figures.drawing import chapter_map
from pepcore import SquaredExponential, datasets, exact, power_ep
from pepcore.features import feature_map
from pepcore.likelihoods import Gaussian, Probit
from pepcore.online import fixed_basis

pytest_plugins = ["browser_fixtures"]

PAGE = (ROOT / "chapters/teaching.md").read_text(encoding="utf-8")
SELF_STUDY = (ROOT / "chapters/self-study.md").read_text(encoding="utf-8")
ROUTES = [route["name"] for route in teaching.kept()["route"]]
LESSONS = [lesson["chapter"] for lesson in teaching.kept()["lesson"]]


def test_each_exercise_of_the_book_tests_one_goal():
    named = [label for goal in teaching.kept()["goal"] for label in goal["exercises"]]
    assert sorted(named) == sorted(teaching.exercises())
    for goal in teaching.kept()["goal"]:
        assert goal["exercises"], goal
        assert {teaching.Task(label).stem for label in goal["exercises"]} == {goal["chapter"]}


@pytest.mark.parametrize("name", ROUTES)
def test_a_route_names_what_exists_and_nothing_twice(name):
    parts = teaching.route(name)
    texts = [text for part in parts for text in part["read"]]
    tasks = [task for part in parts for task in part["exercises"]]
    assert len(texts) == len(set(texts)) > 0 and len(tasks) == len(set(tasks)) > 0
    assert all(teaching.Material(text).minutes > 0 for text in texts)
    assert all(teaching.Task(task).minutes > 0 for task in tasks)


@pytest.mark.parametrize("name", ROUTES)
def test_exercises_come_after_their_chapter(name):
    read = set()
    for part in teaching.route(name):
        read |= {teaching.Material(text).stem for text in part["read"]}
        assert {teaching.Task(task).stem for task in part["exercises"]} <= read


@pytest.mark.parametrize("name", ["four-weeks", "course", "self-study"])
def test_a_long_route_reads_no_chapter_before_what_it_needs(name):
    read = []
    for part in teaching.route(name):
        for text in part["read"]:
            stem = teaching.Material(text).stem
            if not text.endswith("#Recommendation"):        # the result of a study needs no derivation
                assert set(teaching.needs(stem)) <= {stem, *read}, (stem, read)
            read.append(stem)


def test_every_route_is_on_the_page():
    shown = re.findall(r"```\{route\} (\S+)", PAGE)
    assert sorted([*shown, "self-study"]) == sorted(ROUTES)
    weeks = re.findall(r"^## (Week \d+):.*?\{checklist\} self-study (\d+)$", SELF_STUDY, re.MULTILINE | re.DOTALL)
    assert weeks == [(part["when"], str(number)) for number, part in enumerate(teaching.route("self-study"), start=1)]
    assert re.findall(r"```\{lesson\} (\S+)", PAGE) == LESSONS and len(LESSONS) >= 2


def minutes_of(name):
    """The minutes of something to read or of an exercise, by its name."""
    return (teaching.Task if name in teaching.exercises() else teaching.Material)(name).minutes


def test_the_lecture_fits_into_its_90_minutes():
    part = next(part for part in teaching.route("lecture") if part["when"] == "Lecture")
    minutes = sum(map(minutes_of, part["read"] + part["exercises"]))
    assert 70 <= minutes <= 80          # the page says "about 75"


def test_a_week_of_self_study_takes_the_hours_that_the_page_says():
    weeks = [sum(map(minutes_of, part["read"] + part["exercises"])) / 60 for part in teaching.route("self-study")]
    assert "two and a half to three and a half hours" in SELF_STUDY
    assert round(min(weeks), 1) >= 2.4 and round(max(weeks), 1) <= 3.6, weeks


@pytest.mark.parametrize("chapter", LESSONS)
def test_a_class_fits_its_minutes_and_leaves_no_section_out(chapter):
    plan = teaching.lesson(chapter)
    assert sum(step["minutes"] for step in plan["step"]) == plan["minutes"] == 90
    for step in plan["step"]:
        needed = teaching.Task(step["exercise"]) if "exercise" in step else teaching.Material(f"{chapter}#{step['section']}")
        assert step["minutes"] >= needed.minutes, step
        assert needed.stem == chapter
    taught = [step["section"] for step in plan["step"] if "section" in step]
    assert sorted(plan["before"] + taught + plan["after"]) == sorted(s.title for s in reading.chapters()[chapter].sections)


def test_the_table_of_needs_follows_the_arrows_of_the_map():
    for chapter in chapter_map.CHAPTERS:
        assert set(teaching.needs(chapter)) <= set(teaching.all_needs(chapter))
        assert all(set(teaching.all_needs(first)) < set(teaching.all_needs(chapter)) for first in teaching.needs(chapter))
    said = teaching.map_in_words()
    assert all(reading.chapters()[chapter].title in said for chapter in chapter_map.CHAPTERS)


def test_minutes_are_shown_for_every_section():
    page = BeautifulSoup(teaching.minutes_html(), "html.parser")
    assert len(page.select("details")) == len(reading.chapters())
    sections = sum(len(chapter.sections) - 1 for chapter in reading.chapters().values())
    assert len(page.select("tbody tr")) == sections > 100
    assert all(int(cell.get_text()) >= 1 for cell in page.select("tbody td"))


def test_data_sets_of_the_projects_can_be_had():
    rows = re.findall(r"^\| (?!project|---).* \|$", PAGE, re.MULTILINE)
    assert len(rows) >= 8
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert int(cells[3]) > 0
        names = re.findall(r"`(\w+)`", cells[2])
        assert names or "your own" in cells[2] or "study" in cells[2]
        for name in names:
            assert name in datasets.registry or callable(getattr(datasets, name))


def test_points_of_the_exams_add_up():
    for exam in "AB":
        points = [int(found) for found in re.findall(rf"^\*\*{exam}\d \((\d+) points\)", PAGE, re.MULTILINE)]
        assert sum(points) == 60 and len(points) == 5
        assert len(re.findall(rf"^\*\*{exam}\d\.\*\*", PAGE, re.MULTILINE)) == len(points)


def solution(question):
    """What the marking scheme says of a question."""
    return re.search(rf"^\*\*{question}\.\*\*(.*?)(?=^\*\*|^```)", PAGE, re.MULTILINE | re.DOTALL)[1].replace("−", "-")


def says(question, *numbers):
    """Whether the marking scheme gives these numbers, to three digits."""
    text = solution(question)
    missing = [number for number in numbers if not re.search(rf"(?<![\d.]){re.escape(f'{number:#.3g}'.rstrip('.'))}(?!\d)", text)]
    assert missing == [], text


def test_exam_a_has_right_answers():
    kernel = SquaredExponential(1.0, [1.0])
    one = exact.regression(kernel, np.zeros((1, 1)), np.ones(1), noise=0.25)
    mean, variance = one.predict_f(np.ones((1, 1)))
    says("A1", mean[0], variance[0])

    basis = feature_map(SquaredExponential(2.0, [1.0]), np.zeros((1, 1)), np.ones((1, 1)), jitter=0.0)
    a, h, noise = basis.A[0, 0], basis.h[0], 0.5
    says("A2", a, h, h + noise, h / 2 + noise, h / (2 * noise), 0.5 * math.log1p(0.5 * h / noise))

    log_z, d1, d2 = (np.ravel(part)[0] for part in Probit().log_moment(np.ones(1), np.zeros(1), np.ones(1), 1.0)[:3])
    says("A3", log_z, d1, d2, 1 + d2, -d2 / (1 + d2), d1 / (1 + d2))

    slow = [abs(1 - step * 4) for step in (0.5, 0.4999)]
    assert slow[0] == pytest.approx(1) and slow[1] < 1
    steps = np.linspace(0.01, 0.5, 100_001)
    worst = np.maximum(abs(1 - 4 * steps), abs(1 - steps / 2))
    says("A5", steps[worst.argmin()], worst.min())


def test_the_evidence_of_regression_never_falls_with_the_power():
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 5, (30, 1))
    fits = [power_ep.regression(SquaredExponential(1.0, [1.0]), X[:4], X, np.sin(3 * X[:, 0]), noise=0.1, alpha=alpha)
            for alpha in np.linspace(0, 1, 6)]
    assert "It never falls" in solution("A4")
    assert all(second.log_evidence > first.log_evidence for first, second in pairwise(fits))


def test_exam_b_has_right_answers():
    def Phi(z):
        return 0.5 * math.erfc(-z / math.sqrt(2))

    says("B1", Phi(-1 / 3), Phi(-1), Phi(2 / 3), Phi(2))

    tau = math.exp(0.5)
    says("B2", tau, 3 - tau, 1 / (1 + tau), (3 - tau) / (1 + tau))

    C, N, M = 10, 10_000, 100
    ep, sep, triangle = 4 * (C - 1) * N, C * (M**2 + M), C * (M * (M + 1) // 2 + M)
    text = solution("B3")
    for number in (ep, sep, triangle):
        assert f"{number:,}".replace(",", " ") in text
    for number in (sep, triangle):
        assert str(math.ceil(number / (4 * (C - 1)))) in text

    ratio = 1 / 9
    corrected = [1 / math.sqrt(1 / splits + ratio) for splits in (10, 100)]
    says("B4", math.sqrt(10), *corrected)
    assert max(1 / math.sqrt(1 / splits + ratio) for splits in (10, 1000, 10**9)) < 3

    there = np.array([[math.sqrt(-math.log(0.6))]])     # its novelty is 0.4
    for rho, precision in ((0, 2), (1, 10), (0.75, 5)):
        fit = fixed_basis.infer(SquaredExponential(1.0, [1.0]), np.zeros((1, 1)), there, np.ones(1), Gaussian(0.1), rho=rho,
                                jitter=0.0)
        assert fit.sites.tau == pytest.approx([precision])
    precisions = re.findall(r"= (\d+)\$", solution("B5"))
    assert precisions == ["2", "10", "5"] and "FITC, and DTC" in solution("B5")


@pytest.mark.book
def test_the_goals_and_routes_of_the_built_page_lead_to_exercises(site):
    page = BeautifulSoup((site / "chapters/teaching.html").read_text(encoding="utf-8"), "html.parser")
    led_to = {link["href"].partition("#")[2] for link in page.select("article dl a[href*='#']")}
    assert set(teaching.exercises()) <= led_to
    assert page.select_one("article img.frame")["alt"] == teaching.map_in_words()


@pytest.fixture
def plan(browser, address):
    visit = Visit(browser, address, "chapters/self-study", WIDTHS["phone"], touch=True)
    yield visit
    visit.page.close()


@pytest.mark.book
def test_ticks_stay_in_the_browser_until_they_are_cleared(plan):
    page, said = plan.page, plan.page.locator(".checklist-progress [role=status]")
    boxes = page.locator(".checklist input")
    whole = sum(len(part["read"]) + len(part["exercises"]) for part in teaching.route("self-study"))
    assert boxes.count() == whole
    assert said.inner_text().startswith(f"0 of {whole} done.")
    page.get_by_label("Read “EP, step by step”").tap()
    boxes.first.focus()
    page.keyboard.press("Space")
    assert said.inner_text().startswith(f"2 of {whole} done.")
    page.reload()
    assert said.inner_text().startswith(f"2 of {whole} done.")
    assert page.get_by_label("Read “EP, step by step”").is_checked() and boxes.first.is_checked()
    boxes.first.uncheck()
    assert said.inner_text().startswith(f"1 of {whole} done.")
    page.get_by_role("button", name="Clear all ticks").tap()
    page.reload()
    assert said.inner_text().startswith(f"0 of {whole} done.")
    assert page.locator(".checklist input:checked").count() == 0
    assert all(line.bounding_box()["height"] >= 44 for line in page.locator(".checklist li").all())
    assert plan.problems == NO_PROBLEMS


@pytest.mark.book
def test_a_browser_that_keeps_nothing_can_still_tick(plan):
    page = plan.page
    page.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('refused'); }})")
    page.reload()
    page.locator(".checklist input").first.check()
    assert page.locator(".checklist-progress [role=status]").inner_text().startswith("1 of")


@pytest.mark.book
def test_without_javascript_the_plan_is_a_list(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/chapters/self-study.html")
    assert page.locator(".checklist input:visible").count() == 0 and not page.locator(".checklist-progress").is_visible()
    assert page.locator(".checklist li:visible").count() == page.locator(".checklist li").count() > 40
    context.close()
