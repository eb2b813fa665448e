"""Collapse in JupyterLab the code that the page hides: sets `jupyter.source_hidden` in the chapters' notebooks.

Run it after cells were added or their tags changed; `--check` only lists the notebooks that it would change.
"""

import json
import sys

import build_book

HIDDEN = {"hide-input", "remove-input", "hide-cell", "remove-cell"}


def collapse(notebook):
    """Set the mark on every cell whose code the page hides, and remove it from the others; True if that changed one."""
    changed = False
    for cell in notebook["cells"]:
        metadata = cell["metadata"]
        hide = cell["cell_type"] == "code" and bool(HIDDEN.intersection(metadata.get("tags", [])))
        if metadata.get("jupyter", {}).get("source_hidden", False) != hide:
            changed = True
            if hide:
                metadata.setdefault("jupyter", {})["source_hidden"] = True
            else:
                del metadata["jupyter"]["source_hidden"]
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
