"""Spelling and grammar: the project passes, and what should be found is found."""

import pytest
import spelling


def test_the_project_is_spelt_well():
    names = spelling.files()
    assert len(names) > 200
    assert spelling.misspelt(names) + spelling.ungrammatical(names) == []


def test_a_misspelt_word_is_found_in_a_cell_but_not_in_its_output(monkeypatch, tmp_path):
    wrong = "reci" + "eve"
    cell = '{"cells": [{"id": "a", "cell_type": "%s", "source": ["%s"], "outputs": [{"text": ["%s"]}]}]}'
    (tmp_path / "pyproject.toml").write_text('[tool.codespell]\nignore-words-list = "nd"\n', encoding="utf-8")
    (tmp_path / "one.ipynb").write_text(cell % ("markdown", f"We {wrong} it.", ""), encoding="utf-8")
    (tmp_path / "two.ipynb").write_text(cell % ("code", "1", wrong), encoding="utf-8")
    monkeypatch.setattr(spelling, "ROOT", tmp_path)
    found = spelling.misspelt(["one.ipynb", "two.ipynb"])
    assert len(found) == 1 and "one.ipynb" in found[0] and wrong in found[0]


@pytest.mark.parametrize("text", [
    "We see the the bound.", "a estimate of it", "an bound", "the bound , and", "an evidence", "two evidences",
    "This is clearly so.", "it allows to compute", "we can not say", "independent from it", "good advi" "ces",
])
def test_a_slip_is_found(text):
    assert len(spelling.mistakes(text)) == 1


@pytest.mark.parametrize("text", [
    "a one-dimensional unit", "an EP step, an hour, an LU factor", "the log evidences of two models", "Appendix A of the paper",
    "`the the` and $a , b$", "It had had its day.", "a uniform prior", "a use",
])
def test_what_is_right_passes(text):
    assert spelling.mistakes(text) == []
