"""Spelling and grammar of everything that is read: `make lint` calls this, and it takes a few seconds.

codespell knows the common misspellings; the words that it may not touch stand in pyproject.toml. What it cannot know,
the patterns below look for in prose: doubled words, "a" before a vowel, and what tests and readers found in this book.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
READ = {".md", ".py", ".toml", ".js", ".cjs", ".css", ".ipynb"}
FOREIGN = ("data/", "figures/results/", "figures/published/")   # not our words
MADE = {"node_modules", "build", "dist", "__pycache__"}     # by tools

# (pattern, what is wrong). In prose only: formulas, code and the targets of links are taken out first.
PATTERNS = [
    (r"\b(\w{2,}) \1\b(?<!\bhad had)(?<!\bthat that)", "a word stands twice"),
    (r"(?<![Aa]ppendix )(?<!ppendices )\b[Aa] (?=(?!(?:one|once|use|uni|eu)\w*\b)[aeio]\w)", '"a" before a vowel: "an"'),
    (r"\b[Aa]n (?=(?!(?:hour|honest|heir)\w*\b)[bcdfghjklmnpqrstvwxz][a-z]{2})", '"an" before a consonant: "a"'),
    (r"\w ,|\w \.(?=\s|$)", "a space before the comma or the full stop"),
    (r"\ban evidence\b|(?<!\b[Ll]og )\bevidences\b", '"evidence" is not counted: "an estimate of the evidence"'),
    (r"\binformations\b|\bdatas\b|\badvices\b|\bsoftwares\b", "a word without a plural"),
    (r"\b(?:[Cc]learly|[Oo]bviously|[Tt]rivially)\b|\bit is easy to see\b", "discourages readers who do not see it"),
    (r"\b(?:allows?|permits?|enables?) to\b", '"allow" needs an object: "allows us to"'),
    (r"\b(?:can not|in difference to|different as|more better|on the one side)\b", "not an English idiom"),
    (r"\bdepends? from\b|\bconsists? in of\b|\bindependent from\b|\bdifferent than\b", "a wrong preposition"),
]
NO_PROSE = [r"(?ms)^(`{3,})(?!\{).*?^\1", r"\$\$.*?\$\$", r"\$[^$]*\$", r"\{[\w:]+\}`[^`]*`", r"`[^`]*`", r"\]\([^)]*\)",
            r"https?://\S+", r"<[^>]*>", r"(?m)^:[\w-]+:.*$"]


def files():
    """The files of the project that hold words of ours; also where it was unpacked from an archive, without git."""
    found = []
    for folder, inside, names in os.walk(ROOT):
        inside[:] = [name for name in inside if not name.startswith((".", "_build", "_vendor")) and name not in MADE]
        found += [Path(folder, name).relative_to(ROOT).as_posix() for name in names
                  if Path(name).suffix in READ or name == "Makefile"]
    return sorted(name for name in found if not name.startswith(FOREIGN))


def cells(notebook):
    """(name, source, whether it is prose) of every cell; outputs are not ours to spell."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        yield cell["id"], "".join(cell["source"]), cell["cell_type"] == "markdown"


def misspelt(names):
    """What codespell says, one line each."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            copy = Path(folder, name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            source = ROOT / name
            text = source.read_text(encoding="utf-8")
            if source.suffix == ".ipynb":
                text = "".join(f"{code}\n\n" for _, code, _ in cells(source))
            copy.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "codespell_lib", "--toml", ROOT / "pyproject.toml", "."]
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if said.stderr:
        raise RuntimeError(said.stderr)
    return said.stdout.splitlines()


def prose(text):
    """Text without formulas, code and links, so that the words on either side of them are not one phrase."""
    for pattern in NO_PROSE:
        text = re.sub(pattern, " § ", text, flags=re.DOTALL)
    return text


def mistakes(text):
    """(the words, what is wrong) for each pattern that a piece of prose matches."""
    plain = prose(text)
    return [(plain[max(found.start() - 20, 0):found.end() + 20].replace("\n", " ").strip(), wrong)
            for pattern, wrong in PATTERNS for found in re.finditer(pattern, plain)]


def ungrammatical(names):
    """What the patterns find in the book's pages, one line each."""
    lines = []
    for name in names:
        page = ROOT / name
        if page.suffix == ".ipynb":
            pieces = [(f"{name}, cell {cell}", text) for cell, text, is_prose in cells(page) if is_prose]
        else:
            pieces = [(name, page.read_text(encoding="utf-8"))] if page.suffix == ".md" else []
        lines += [f"{place}: “{words}”: {wrong}" for place, text in pieces for words, wrong in mistakes(text)]
    return lines


def main():
    names = files()
    found = misspelt(names) + ungrammatical(names)
    print("\n".join(found) or f"{len(names)} files: spelling and grammar are in order.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
