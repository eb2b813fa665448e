"""The chapters in JupyterLab: what the page hides is collapsed, and nothing pops up."""

import json

import build_book
import collapse_hidden
import lab
import pytest


def test_what_the_page_hides_is_collapsed():
    notebook = {"cells": [
        {"cell_type": "code", "metadata": {"tags": ["hide-input"]}},
        {"cell_type": "code", "metadata": {"jupyter": {"source_hidden": True}}},
        {"cell_type": "markdown", "metadata": {}},
    ]}
    assert collapse_hidden.collapse(notebook)
    assert [cell["metadata"].get("jupyter", {}) for cell in notebook["cells"]] == [{"source_hidden": True}, {}, {}]
    assert not collapse_hidden.collapse(notebook)


@pytest.mark.xfail(strict=True, reason="run tools/collapse_hidden.py when the chapters stand, then take this line away")
def test_every_chapter_is_collapsed_where_the_page_hides():
    notebooks = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in build_book.chapters()}
    assert [name for name, notebook in notebooks.items() if collapse_hidden.collapse(notebook)] == []


def test_no_news_pops_up(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    lab.write_settings()
    settings = json.loads((tmp_path / "share/jupyter/lab/settings/overrides.json").read_text())
    assert settings["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"
