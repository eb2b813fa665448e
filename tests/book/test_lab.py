"""The chapters in JupyterLab: what the page hides is collapsed, and nothing pops up."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import build_book
import collapse_hidden
import lab
import pytest
from conftest import ROOT
from visits import PATIENCE, launched

RAW = re.compile(r"^:::|\{(?:doc|eq|numref|ref|cite(?::t)?|py:\w+|term)\}`|^\([a-z]+-[\w-]+\)=$", re.MULTILINE)
RENDERED = """() => [...document.querySelectorAll('.jp-MarkdownCell')].every(
    cell => cell.querySelector('.myst, article, .jp-Placeholder-content'))"""       # set, or folded


def test_what_the_page_hides_is_collapsed():
    notebook = {"cells": [
        {"cell_type": "code", "source": "", "metadata": {"tags": ["hide-input"]}},
        {"cell_type": "code", "source": "", "metadata": {"jupyter": {"source_hidden": True}}},
        {"cell_type": "code", "source": "answer = ...", "metadata": {"tags": ["exercise", "remove-input"]}},
        {"cell_type": "markdown", "source": "```{solution-start} one\n```", "metadata": {}},
        {"cell_type": "code", "source": "1", "metadata": {}},
        {"cell_type": "markdown", "source": ["Why.\n"], "metadata": {}},
        {"cell_type": "markdown", "source": ["```{solution-end}\n", "```"], "metadata": {}},
        {"cell_type": "code", "source": "2", "metadata": {}},
    ]}
    assert collapse_hidden.collapse(notebook)
    assert [cell["metadata"].get("jupyter", {}) for cell in notebook["cells"]] == [
        {"source_hidden": True}, {}, {}, {}, {"source_hidden": True, "outputs_hidden": True}, {"source_hidden": True}, {}, {}]
    assert notebook["cells"][5]["source"][0].startswith("% ")      # all that JupyterLab shows of it
    assert not collapse_hidden.collapse(notebook)


def test_every_chapter_is_collapsed_where_the_page_hides():
    notebooks = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in build_book.chapters()}
    assert [name for name, notebook in notebooks.items() if collapse_hidden.collapse(notebook)] == []


def test_no_news_pops_up(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    lab.write_settings()
    settings = json.loads((tmp_path / "share/jupyter/lab/settings/overrides.json").read_text())
    assert settings["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"


@pytest.fixture(scope="module")
def jupyterlab(tmp_path_factory):
    """JupyterLab on a copy of the chapters, with the settings of `make lab` and none of the user's; gives its address."""
    folder = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "chapters", folder / "chapters", ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    settings = folder / "settings"
    settings.mkdir()
    (settings / "overrides.json").write_text(json.dumps(lab.SETTINGS))
    command = [Path(sys.executable).with_name("jupyter"), "lab", "--no-browser", "--allow-root", "--port=0",
               "--ServerApp.token=", "--ServerApp.password=", f"--ServerApp.root_dir={folder}",
               f"--LabServerApp.app_settings_dir={settings}", f"--LabApp.app_settings_dir={settings}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PEPCORE_PROGRESS": "1",     # somebody looks
                                "JUPYTER_CONFIG_DIR": str(folder / "config"), "JUPYTER_RUNTIME_DIR": str(folder / "runtime")}
    said = folder / "said"
    with said.open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
    try:
        yield address(server, said)
    finally:
        server.terminate()
        server.wait()


def address(server, said):
    """Where the server answers, once its words in the file say so."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not (found := re.search(r"http://(?:localhost|127\.0\.0\.1):\d+", said.read_text())):
        assert server.poll() is None and time.monotonic() < deadline, said.read_text()
        time.sleep(0.1)
    return found[0]


@pytest.fixture
def page():
    """An empty page of a browser."""
    with launched() as browser:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        yield page


@pytest.mark.parametrize("path", build_book.chapters(), ids=lambda path: path.stem)
def test_a_chapter_reads_in_jupyterlab(jupyterlab, page, path):
    """Boxes, labels and links are set, not shown as they are written, and no window covers them."""
    page.goto(f"{jupyterlab}/lab/tree/chapters/{path.name}?reset")
    page.locator(".jp-MarkdownCell").first.wait_for()
    page.wait_for_function(RENDERED)
    texts = page.locator(".jp-MarkdownCell").evaluate_all("cells => cells.map(cell => cell.innerText)")
    assert len(texts) > 3
    assert [text[max(0, found.start() - 80):found.end() + 80] for text in texts for found in RAW.finditer(text)] == []
    assert page.locator(".jp-Dialog, .Toastify__toast").count() == 0


def insist(act, expected, text):
    """Act until the text is there: on a busy machine the page may not listen yet when the keys come."""
    for left in reversed(range(6)):
        act()
        try:
            return expected(text, timeout=PATIENCE / 6)
        except AssertionError:
            if not left:
                raise


def test_sliders_and_answers_are_live_in_jupyterlab(jupyterlab, page):
    """In the first chapter, with its first cell run: its slider draws another picture, and an answer is judged in place."""
    from playwright.sync_api import expect

    page.goto(f"{jupyterlab}/lab/tree/chapters/start-here.ipynb?reset")
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()       # the kernel is there
    first, answer = page.locator(".jp-CodeCell").first, page.locator(".jp-CodeCell", has_text="start-noise").first
    first.locator(".jp-Placeholder-content").first.click()      # unfolds the code

    def run_first():
        first.locator(".cm-content").click()
        page.keyboard.press("ControlOrMeta+Enter")

    def run_answer():
        answer.locator(".cm-content").click()
        page.keyboard.press("ControlOrMeta+A")
        page.keyboard.insert_text('_ = check("start-noise", 0.9)')
        page.keyboard.press("ControlOrMeta+Enter")

    insist(run_first, expect(first.locator(".jp-InputPrompt").first).to_have_text, re.compile(r"\d"))
    insist(run_answer, expect(answer.locator(".jp-OutputArea-output").last).to_contain_text, "what is its variance")
    slider = page.locator(".jp-CodeCell .widget-slider [role=slider]").first
    picture = page.locator(".jp-CodeCell .widget-html img").first
    before = picture.get_attribute("src")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(picture).not_to_have_attribute("src", before, timeout=PATIENCE)
