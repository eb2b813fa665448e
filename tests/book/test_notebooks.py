"""The notebooks as committed: executed in order, with printed outputs that nbval can compare, and nothing to strip.

Whether their outputs still come out is tested by nbval's comparison with what the build computed: see `built_outputs`.
"""

import json
import re
import subprocess
import sys

import build_book
import pytest
from conftest import ROOT

NOTEBOOKS = build_book.chapters()


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return json.loads(request.param.read_text(encoding="utf-8"))


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]


def test_every_notebook_is_a_page_of_the_book():
    on_disk = {path.relative_to(ROOT) for path in (ROOT / "chapters").rglob("*.ipynb")
               if ".ipynb_checkpoints" not in path.parts}
    assert on_disk == {path.relative_to(ROOT) for path in NOTEBOOKS}
    assert len(on_disk) >= 12


def test_nbval_collects_every_notebook_and_cell():
    """A run of nbval that finds nothing would pass: count what it finds."""
    options = ["--nbval-built", "--collect-only", "-q", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, "tests/book/test_notebooks.py", "chapters"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for path in NOTEBOOKS:
        found = sum(line.startswith(f"chapters/{path.name}::") for line in done.stdout.splitlines())
        assert found == len(code_cells(json.loads(path.read_text(encoding="utf-8")))) > 0, path.name


@pytest.mark.book
def test_a_changed_output_is_noticed(site, tmp_path):
    """Of two copies of a chapter, one with another number in an output, the comparison fails for that cell only."""
    notebook = json.loads(min(NOTEBOOKS, key=lambda path: path.stat().st_size).read_text(encoding="utf-8"))
    (tmp_path / "same.ipynb").write_text(json.dumps(notebook))
    cell, output = next((cell, output) for cell in code_cells(notebook) for output in cell["outputs"]
                        if re.search(r"\d\.\d", "".join(output.get("text", ""))))
    output["text"] = re.sub(r"(\d\.)(\d)", lambda found: found[1] + str((int(found[2]) + 1) % 10), "".join(output["text"]),
                            count=1)
    (tmp_path / "other.ipynb").write_text(json.dumps(notebook))
    settings = ["--nbval-built", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *settings, f"--rootdir={ROOT}", "-c", ROOT / "pyproject.toml", "-m", "book",
               "-k", "ipynb", ROOT / "tests/book/test_notebooks.py", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    cells = code_cells(notebook)
    assert f"1 failed, {2 * len(cells) - 1} passed" in done.stdout, done.stdout
    assert re.search(rf"FAILED .*other.ipynb::Cell {cells.index(cell)}\b", done.stdout), done.stdout


def test_notebook_was_executed_from_top_to_bottom(notebook):
    counts = [cell["execution_count"] for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


def test_notebook_shows_no_error_and_no_warning(notebook):
    outputs = [output for cell in code_cells(notebook) for output in cell["outputs"]]
    assert [output for output in outputs if output["output_type"] == "error"] == []
    assert [output["text"] for output in outputs if output.get("name") == "stderr"] == []


def test_notebook_prints_numbers(notebook):
    """nbval compares text, not pictures: a chapter without printed numbers would not be tested at all."""
    printed = ["".join(output.get("text", output.get("data", {}).get("text/plain", "")))
               for cell in code_cells(notebook) for output in cell["outputs"]]
    assert sum(any(character.isdigit() for character in text) for text in printed) >= 1


def test_no_difference_is_printed_that_exceeds_its_limit(notebook):
    """The chapters' `below` prints whether a difference stays below a limit; nbval would be content with either answer."""
    lines = [line for cell in code_cells(notebook) for output in cell["outputs"]
             for line in "".join(output.get("text", "")).splitlines()]
    assert [line for line in lines if re.search(r"below [\d.e+-]+: False", line)] == []


def test_no_cell_ends_with_a_semicolon(notebook):
    """nbval executes without storing history, so that such a cell shows its value after all."""
    ends = ["".join(cell["source"]).rstrip().splitlines()[-1] for cell in code_cells(notebook)]
    assert [end for end in ends if end.endswith(";")] == []


def test_every_figure_has_alt_text_and_every_skip_a_reason(notebook):
    for cell in code_cells(notebook):
        tags = cell["metadata"].get("tags", [])
        assert "nbval-skip" not in tags or "#" in "".join(cell["source"]), "say in a comment why nbval must skip this"
        data = [output["data"] for output in cell["outputs"] if output["output_type"] == "display_data"]
        if any("image/png" in kinds and "application/vnd.jupyter.widget-view+json" not in kinds for kinds in data):
            assert cell["metadata"].get("mystnb", {}).get("image", {}).get("alt"), "".join(cell["source"])[:300]


def test_notebook_is_stripped(notebook):
    """Widget states and times of execution are made anew by the build; in git they would only be noise."""
    assert "widgets" not in notebook["metadata"]
    assert "version" not in notebook["metadata"].get("language_info", {})
    assert not [cell for cell in code_cells(notebook) if "execution" in cell["metadata"]]
    assert len(json.dumps(notebook)) < 2_500_000


def first_code(notebook):
    """What the first cell does before anything else: it looks for what the chapter needs."""
    return "".join(code_cells(notebook)[0]["source"]).partition("\n    )")[0] + "\n    )"


def test_a_chapter_by_itself_says_in_one_sentence_what_it_needs(notebook, tmp_path):
    """Where the book's repository is not around it, or a package is missing; and nothing where all is there."""
    def last_line(options, folder):
        done = subprocess.run([sys.executable, *options, "-c", first_code(notebook)], cwd=folder, capture_output=True,
                              text=True, check=False)
        return (done.stderr.splitlines() or [""])[-1]

    assert last_line([], ROOT / "chapters") == ""
    what_to_do = "This chapter needs the whole repository of the book. Run `make lab` there and open it from there."
    assert last_line([], tmp_path) == f"ModuleNotFoundError: not found: exercises. {what_to_do}"
    nothing_installed = last_line(["-S"], ROOT / "chapters")
    assert re.fullmatch(rf"ModuleNotFoundError: not found: [\w, ]*scipy[\w, ]*\. {what_to_do}", nothing_installed)
