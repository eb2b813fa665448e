"""Sphinx extension: show the sections of our docstrings as lists.

A section is a title underlined with dashes. Each entry begins a line, a continuation is indented, and shapes such as
(M, N) are text (napoleon, Sphinx's own reader of such docstrings, takes them for names of types and looks for them):

    Parameters
    ----------
    Z : (M, D) pseudo-inputs
    jitter : float              relative to the kernel's variance

A paragraph that begins with "Source:" ends the sections.
"""

import re

SECTION = re.compile(r"(Parameters|Attributes|Returns|Yields|Raises|Warns)$")
ENTRY = re.compile(r"(?P<name>[^:`]+?) : (?P<text>.*)$")                        # "jitter : float"
EXCEPTION = re.compile(r"(?P<name>[A-Z]\w*(Error|Warning|Interrupt)) ?(?P<text>.*)$")


def as_field_lists(lines):
    """The same docstring in reStructuredText: each section a field, its entries a bullet list."""
    result, section, entries = [], None, []

    def close():
        if section:
            result.extend(["", f":{section}:", *(f"    * {_bullet(*entry)}" for entry in entries), ""])

    for i, line in enumerate(lines):
        if SECTION.match(line) and i + 1 < len(lines) and re.match(r"-{3,}$", lines[i + 1]):
            close()
            section, entries = line.strip(), []
        elif section and line.startswith("Source:"):
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
                entries[-1][2] += " " + line.strip()
    close()
    return result


def _head(section, line):
    """Name and text of the entry that this line begins, or None for a line that goes on with the last one."""
    match = (EXCEPTION if section in ("Raises", "Warns") else ENTRY).match(line)
    return match and (match["name"].strip(), match["text"].strip())


def _bullet(name, text, more):
    """One entry as one line."""
    parts = [re.sub(r"\s{2,}", " – ", text), more.strip()]
    return " – ".join(part for part in [f"``{name}``" if name else "", *parts] if part)


def escape_bars(line):
    """|x| is an absolute value or a determinant, not a substitution of reStructuredText."""
    return re.sub(r"(`+).*?\1|\|", lambda match: match[0] if match[1] else r"\|", line)


def process(app, what, name, obj, options, lines):
    lines[:] = [escape_bars(line) for line in as_field_lists(lines)]


def setup(app):
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}
