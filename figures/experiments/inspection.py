"""Check that a table of results is as it was written: problems are reported with file, line and remedy.

A line is good if it is UTF-8, has a cell for each column, its `check` fits its cells, its run is one of the study's grid
and stands in no line before, its numbers are numbers, and those that have a range are in it. Beside the table lies its
seal, which records how many lines were written and what they held: see `figures.experiments.seals`.
"""

import csv
import math
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field

from figures.experiments import seals
from figures.experiments.studies import cell, key

OF_LINE = ("restore the line from the version control, or set it aside with `python -m figures mend {id}`, and its run will be "
           "computed again")
OF_TABLE = ("restore the file from the version control, or accept what is there with `python -m figures mend {id}`, and "
            "what is missing will be computed again")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|nan|[-+]?inf")
COMMIT = re.compile(r"(<=)?[0-9a-f]{7,40}\+?|")
FINGERPRINT = re.compile(r"[0-9a-f]{12}|")
# columns with one of these names, alone or before a _ , hold numbers in this range
RANGES = {"error": (0, math.inf), "error_rate": (0, 1), "seconds": (0, math.inf), "evaluations": (0, math.inf),
          "steps": (0, math.inf), "smse": (0, math.inf), "rmse": (0, math.inf), "mae": (0, math.inf),
          "noise": (0, math.inf), "jitter": (0, math.inf), "variance": (0, math.inf)}
csv.field_size_limit(2**31 - 1)     # a cell may hold a long list; the usual limit of 131 072 characters would stop the reading


@dataclass
class Inspection:
    """What was found in a study's table.

    Attributes
    ----------
    rows : list of dicts of strings, the good rows
    problems : list of (line, what is wrong there and what to do); line 1 holds the names of the columns
    bad_lines : list of bytes, the lines that are set aside if the table is mended
    """

    rows: list = field(default_factory=list)
    problems: list = field(default_factory=list)
    bad_lines: list = field(default_factory=list)

    def complaint(self, study):
        """The first five problems in words, one per line, and what to do."""
        lines = [f"{study.file}, line {line}: {what}" for line, what in self.problems[:5]]
        more = len(self.problems) - len(lines)
        return "\n".join([*lines, *([f"and {more} more"] if more > 0 else [])])


def check(row):
    """Eight digits that change with any cell of a row."""
    return f"{zlib.crc32(','.join(text for name, text in row.items() if name != 'check').encode()):08x}"


def inspect(study):
    """Look at every line of the study's table; a last line that was cut off in mid-writing is no problem, and no row.

    Another process may be writing. A row is on the disk before its seal, so the seal is read first; and a table that does
    not fit is read again if its seal has changed meanwhile.

    Raises
    ------
    ValueError
        If the file has other columns than the study.
    """
    while True:
        sealed = seals.read(study.file)
        found = _inspected(study, sealed)
        if not found.problems or seals.read(study.file) == sealed:
            return found


def _inspected(study, sealed):
    found = Inspection()
    if not study.file.exists():
        if sealed and sealed[-1][0]:
            found.problems.append((1, f"the table is gone, and {sealed[-1][0]} rows were written "
                                      f"({seals.file_of(study.file).name}); {OF_TABLE.format(id=study.id)}"))
        return found
    *lines, last = study.file.read_bytes().split(b"\n")
    if lines:
        _check_columns(study, lines[0])
        if last and not _read(study, last)[1]:
            lines.append(last)      # whole, although nothing ends the line
    read = [(number, line, *_read(study, line)) for number, line in enumerate(lines[1:], start=2)]
    good = [(number, row) for number, _, row, problem in read if not problem]
    grid, numeric = {key(inputs) for inputs in study.runs()}, _numeric_columns(study, [row for _, row in good])
    gaps, kept = getattr(study.module, "GAPS", ()), _kept(study, good)
    for number, line, row, problem in read:
        problem = problem or _problem_of_run(study, row, grid, number, kept) or _problem_of_cells(row, numeric, gaps)
        if problem:
            found.problems.append((number, f"{problem}; {OF_LINE.format(id=study.id)}"))
            found.bad_lines.append(line)
        else:
            found.rows.append(row)
    if not found.problems and (problem := seals.problem(study.file, [row["check"] for row in found.rows], sealed)):
        found.problems.append((max(1, len(lines)), f"{problem}; {OF_TABLE.format(id=study.id)}"))
    return found


def _check_columns(study, line):
    names = next(csv.reader([line.decode("utf-8", "replace")]), [])
    if tuple(names) != study.columns:
        raise ValueError(f"{study.file}, line 1: the file has the columns {', '.join(names)}, but the study now writes "
                         f"{', '.join(study.columns)}; restore the line from the version control, or move the old file "
                         f"and {seals.file_of(study.file).name} away to start afresh")


def _read(study, line):
    """The row in a line and "", or an empty row and what is wrong with the line."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as problem:
        return {}, f"this line is not UTF-8 (byte {problem.start + 1} is {line[problem.start]:#04x})"
    cells = next(csv.reader([text]), [])
    if len(cells) != len(study.columns):
        return {}, (f"this row is not as it was written (it has {len(cells)} cells for {len(study.columns)} columns: cut off, or "
                    "two in one)")
    row = dict(zip(study.columns, cells))
    if row["check"] != check(row):
        return {}, f"this row is not as it was written (its check is {row['check'] or 'empty'}, its cells give {check(row)})"
    return row, ""


def row_key(study, row):
    """What identifies the run of a row, as `studies.key` does for inputs."""
    return tuple(row[name] for name in study.inputs)


def _kept(study, numbered):
    """The line of each run: of two with the same run, as a merge can leave them, the one that has not failed, or the first."""
    kept = {}
    for number, row in sorted(numbered, key=lambda one: bool(one[1]["error"])):
        kept.setdefault(row_key(study, row), number)
    return kept


def _problem_of_run(study, row, grid, number, kept):
    run = row_key(study, row)
    described = ", ".join(f"{name} = {value}" for name, value in zip(study.inputs, run))
    if run not in grid:
        return f"the study has no run with {described}"
    return f"line {kept[run]} holds the same run, {described}" if kept[run] != number else ""


def _numeric_columns(study, rows):
    """Those of the outputs, and the seconds, whose cells are numbers in most rows."""
    numeric = {"seconds"}
    for name in study.module.OUTPUTS:
        kinds = Counter(bool(NUMBER.fullmatch(row[name])) for row in rows if not row["error"])
        if kinds[True] > kinds[False]:
            numeric.add(name)
    return {name: _range(name) for name in numeric}


def _range(name):
    """The range of a column's numbers, or None: `error_rate_100` has that of `error_rate`."""
    parts = name.split("_")
    beginnings = ["_".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((RANGES[beginning] for beginning in beginnings if beginning in RANGES), None)


def problem_of_outputs(outputs, gaps=()):
    """Why a row with these outputs, a dict, could not be read again, in words; "" if it can."""
    for name, value in outputs.items():
        text = cell(value)
        if value is None or text == "":
            return f"{name} is {value!r}; return a number, nan where there is none, or a text"
        if "\n" in text or "\r" in text:
            return f"{name} has more than one line: {text!r}"
        if NUMBER.fullmatch(text) and (problem := _problem_of_number(name, text, _range(name), gaps)):
            return problem
    return ""


def _problem_of_number(name, text, limits, gaps):
    if (name in gaps and text == "nan") or not limits or limits[0] <= float(text) <= limits[1]:
        return ""
    return f"{name} is {text}, and must be from {limits[0]} to {limits[1]}"


def _problem_of_cells(row, numeric, gaps):
    for name, limits in numeric.items():
        text = row[name]
        if row["error"] and not text:
            continue        # a failed run has no outputs
        if not NUMBER.fullmatch(text):
            return f"{name} is {text!r}, where a number must stand"
        if problem := _problem_of_number(name, text, limits, gaps):
            return problem
    for name, form in (("commit", COMMIT), ("code", FINGERPRINT), ("data_hash", FINGERPRINT)):
        if not form.fullmatch(row[name]):
            return f"{name} is {row[name]!r}, which is not a {name}"
    return ""
