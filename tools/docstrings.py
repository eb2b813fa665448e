"""Sphinx extension: show the sections of our docstrings as lists.

A section is a title underlined with dashes. Each entry begins a line, a continuation is indented, and shapes such as
(M, N) are text (napoleon, Sphinx's own reader of such docstrings, takes them for names of types and looks for them):

    Parameters
    ----------
    Z : (M, D) pseudo-inputs
    jitter : float              relative to the kernel's variance

A continuation that begins with a capital is set off by a dash. A line that begins with "Returns", "Raises" or "Source:" and
goes on is a sentence and ends the sections. Keys of references.bib become citations. A table is written as in Markdown.
"""

import re
from pathlib import Path

SECTION = re.compile(r"(Parameters|Attributes|Returns|Yields|Raises|Warns)$")
ENTRY = re.compile(r"(?P<name>[^:`]+?) : (?P<text>.*)$")                        # "jitter : float"
SENTENCES = ("Returns ", "Raises ", "Source:")
ROW = re.compile(r"\| (.*) \|")                                                  # of a table
EXCEPTION = re.compile(r"(?P<name>[A-Z]\w*(Error|Warning|Interrupt)) ?(?P<text>.*)$")


def as_field_lists(lines):
    """The same docstring in reStructuredText: each section a field, its entries a bullet list."""
    result, section, entries = [], None, []

    def close():
        if section:
            texts = [_text(*entry) for entry in entries]
            mark = "" if len(texts) == 1 and not entries[0][0] else "* "
            result.extend(["", f":{section}:", *(f"    {mark}{text}" for text in texts), ""])

    for i, line in enumerate(lines):
        if SECTION.match(line) and i + 1 < len(lines) and re.match(r"-{3,}$", lines[i + 1]):
            close()
            section, entries = line.strip(), []
        elif section and line.startswith(SENTENCES):
            close()
            section = None
            result.append(line)
        elif section is None:
            result.append(line)
        elif line.strip() and not re.match(r"-{3,}$", line):
            head = None if line.startswith(" ") else _head(section, line)
            if head or not entries:
                entries.append([*(head or ("", line.strip())), ""])
            else:
                apart = not entries[-1][2] and line.startswith(" ") and line.strip()[0].isupper()
                entries[-1][2] += (" – " if apart else " ") + line.strip()
    close()
    return result


def _head(section, line):
    """Name and text of the entry that this line begins, or None for a line that goes on with the last one."""
    match = (EXCEPTION if section in ("Raises", "Warns") else ENTRY).match(line)
    return match and (match["name"].strip(), match["text"].strip())


def _text(name, text, more):
    """One entry as one line."""
    text = re.sub(r"\s{2,}", " – ", text + more)
    return (f"``{name}`` – " if name else "") + text.removeprefix(" – ")


BIBLIOGRAPHY = Path(__file__).resolve().parent.parent / "references.bib"
KEYS = "|".join(re.findall(r"@\w+\{(\w+),", BIBLIOGRAPHY.read_text(encoding="utf-8")))
QUOTED_BAR_OR_KEY = re.compile(rf"(?P<quoted>(`+).*?\2)|(?P<bar>\|)|\b(?P<key>{KEYS})\b")


def as_text(line):
    """Keys of the bibliography become citations; |x| is a determinant, not reStructuredText's substitution."""
    return QUOTED_BAR_OR_KEY.sub(
        lambda match: match["quoted"] or (r"\|" if match["bar"] else f":cite:`{match['key']}`"), line)


def with_tables(lines):
    """The same lines with tables in reStructuredText for those in Markdown."""
    result, inside = [], False
    for line in lines:
        row = ROW.fullmatch(line)
        if row and not inside:
            result += ["", ".. list-table::", "   :header-rows: 1", ""]
        if row and not re.fullmatch(r"[\s|:-]+", line):
            result += [f"   {mark} - {cell.strip()}" for mark, cell in zip("*" + " " * len(line), row[1].split(" | "))]
        elif not row:
            result += [""] * inside + [line]
        inside = bool(row)
    return result


def process(app, what, name, obj, options, lines):
    lines[:] = with_tables(as_field_lists(lines))
    lines[:] = [as_text(line) for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}
