"""What a chapter says in words: its Markdown, and the captions and descriptions of its figures."""

import json

from conftest import ROOT


def prose(chapter):
    """The words of a chapter, with single spaces."""
    cells = json.loads((ROOT / "chapters" / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
    shown = [cell["metadata"].get("mystnb", {}) for cell in cells]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    texts += [text for figure in shown for part in ("figure", "image") for text in figure.get(part, {}).values()]
    return " ".join(" ".join(map(str, texts)).split())
