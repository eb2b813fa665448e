"""Collapse in JupyterLab what the page hides or folds: sets `jupyter.source_hidden` and `outputs_hidden` in the notebooks.

The code of figures is collapsed, and the code, output and words of solutions. The cell for an answer stays open. Run this after
cells were added or their tags changed; `--check` only lists the notebooks that it would change.

JupyterLab still shows the first line of a collapsed cell. So words begin with a comment, which no page shows.
"""

import json
import re
import sys

import build_book

HIDDEN = {"hide-input", "remove-input", "hide-cell", "remove-cell"}
MARKS = ("source_hidden", "outputs_hidden")
WORDS = re.compile(r"(?!\s*[`:]{3,}\{)((?!\{solution-)[\s\S])*([`:]{3,}\{solution-end\}\s*[`:]{3,}\s*)?")      # nothing else
COVER = "% The solution in words\n"


def collapse(notebook):
    """Set the marks on every cell that is hidden or in a solution, and remove them from the others; True if one changed."""
    changed, in_solution = False, False
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        words = cell["cell_type"] == "markdown" and in_solution and bool(WORDS.fullmatch(text))
        if words and not text.startswith(COVER):
            cell["source"] = (COVER + text).splitlines(keepends=True)
            changed = True
        if "{solution-start}" in text or "{solution-end}" in text:
            in_solution = text.rfind("{solution-start}") > text.rfind("{solution-end}")
        tags, code = set(cell["metadata"].get("tags", [])), cell["cell_type"] == "code"
        hidden = words or (code and (in_solution or bool(HIDDEN & tags and "exercise" not in tags)))
        for mark, wanted in zip(MARKS, (hidden, code and in_solution), strict=True):
            if cell["metadata"].get("jupyter", {}).get(mark, False) != wanted:
                changed = True
                cell["metadata"].setdefault("jupyter", {})[mark] = wanted
                if not wanted:
                    del cell["metadata"]["jupyter"][mark]
    return changed


def main():
    for path in build_book.chapters():
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if collapse(notebook):
            print(path.name)
            if "--check" not in sys.argv:
                text = json.dumps(notebook, indent=1, ensure_ascii=False)
                path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
