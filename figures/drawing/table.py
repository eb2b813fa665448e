"""Tables of results, for the page, for JupyterLab and as text.

`table(rows, caption=...)` shows rows of numbers as an HTML table with names for rows and columns, equal decimals and the
best value marked. Make it the last line of a cell. Its text, which the tests compare, holds the same characters.
"""

import html
import numbers
import re

import numpy as np
import pandas as pd

MARK = "★"
MISSING = "–"
SORTABLE_FROM = 16      # rows: from this many on, the reader can sort a table
SIGN = re.compile(r"(?<![\w.)\]])-(?=\.?\d)")     # the hyphen of "-0.3 (-0.2)", but not of "5-10", "1e-5" or "x-3"


def table(rows, caption="", decimals=None, best=None, units=None, sort=None):
    """Show rows of results as a table.

    Parameters
    ----------
    rows : DataFrame, or list of dicts with the same keys
        The first column names the rows. The index of a DataFrame is that column, unless it only counts the rows.
    caption : str
        One sentence: what the table shows.
    decimals : int or dict column -> int
        Decimals of the numbers that are not integers; 2 if not given.
    best : "min" or "max", "row min" or "row max", or dict column -> "min" or "max", optional
        Marks the best number of every column, of every row, or of the columns named.
    units : dict column -> str, optional
        Stands after the name of the column, e.g. {"seconds": "s"}.
    sort : str, optional
        The column to sort by, with a minus in front for the largest number first.

    Returns
    -------
    Table
    """
    frame = _frame(rows)
    if sort:
        column = sort if sort in frame else sort.removeprefix("-")
        _known(frame, [column], "sort")
        frame = frame.sort_values(column, ascending=column == sort, kind="stable")
    given = decimals if isinstance(decimals, dict) else {}
    _known(frame, given, "decimals")
    _known(frame, units or {}, "units")
    usual = 2 if decimals is None or given else decimals
    texts = {name: [_text(value, given.get(name, usual)) for value in frame[name]] for name in frame}
    return Table(frame, texts, caption, _best(frame, texts, best), _legend(best), units or {})


class Table:
    """What `table` returns: the same cells as HTML and as text.

    Parameters
    ----------
    frame : DataFrame           the values; the first column names the rows
    texts : dict of column -> list of str
        How each value is written.
    caption, legend : str       what the table shows; what the mark means
    best : set of (row, column) that are marked
    units : dict of column -> str
    """

    def __init__(self, frame, texts, caption, best, legend, units):
        self.frame, self.texts, self.caption, self.legend = frame, texts, caption, legend
        self.best, self.units = best, units
        self.numeric = {name for name in list(frame)[1:] if _is_numeric(frame[name])}

    def _repr_html_(self):
        kind = "results sortable" if len(self.frame) >= SORTABLE_FROM else "results"
        name = html.escape(self.caption or "results", quote=True)
        legend = f' <span class="legend">{self.legend}</span>' if self.legend else ""
        text = f'<span class="text">{html.escape(self.caption)}{legend}</span>'
        caption = f"<caption>{text}</caption>" if self.caption or legend else ""
        heads = "".join(f'<th scope="col"{self._align(column)}>{html.escape(self._heading(column))}</th>'
                        for column in self.frame)
        body = "\n".join(f"<tr>{''.join(self._cell(row, column) for column in self.frame)}</tr>"
                         for row in range(len(self.frame)))
        return (f'<div class="results-scroll" role="region" tabindex="0" aria-label="{name}">\n<table class="{kind}">'
                f"{caption}\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>")

    def __repr__(self):
        columns = []
        for column in self.frame:
            cells = [self._heading(column), *(text + (f" {MARK}" if (row, column) in self.best else "")
                                              for row, text in enumerate(self.texts[column]))]
            if column in self.numeric and any(where == column for _, where in self.best):
                cells = [cells[0], *(cell if cell.endswith(MARK) else cell + "  " for cell in cells[1:])]
            width = max(map(len, cells))
            columns.append([cell.rjust(width) if column in self.numeric else cell.ljust(width) for cell in cells])
        lines = ["  ".join(cells).rstrip() for cells in zip(*columns)]
        return "\n".join([*([self.caption] if self.caption else []), *lines, *([self.legend] if self.legend else [])])

    def _heading(self, column):
        unit = self.units.get(column)
        return f"{column} ({unit})" if unit else str(column)

    def _align(self, column):
        return ' class="number"' if column in self.numeric else ""

    def _cell(self, row, column):
        text = html.escape(self.texts[column][row])
        if column == self.frame.columns[0]:
            return f'<th scope="row">{text}</th>'
        if (row, column) in self.best:
            text = f'<strong>{text}</strong> <span class="best" role="img" aria-label="best">{MARK}</span>'
        elif text == MISSING:
            text = f'<span role="img" aria-label="no value">{MISSING}</span>'
        return f"<td{self._align(column)}>{text}</td>"


def true_minus(text):
    """The text with a true minus sign before each negative number."""
    return SIGN.sub("\N{MINUS SIGN}", text)


def _frame(rows):
    """The rows as a DataFrame whose first column names them."""
    frame = rows.copy() if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
    if isinstance(frame.columns, pd.MultiIndex):
        frame.columns = [", ".join(str(part) for part in parts if str(part)) for parts in frame.columns]
    if not isinstance(frame.index, pd.RangeIndex):
        names = [name if name is not None else "" for name in frame.index.names]
        frame = frame.reset_index(names=names)
    frame.columns = [str(name) for name in frame.columns]
    repeated = sorted(set(frame.columns[frame.columns.duplicated()]))
    if repeated:
        raise ValueError(f"table: several columns are called {', '.join(repeated)}; give each a name of its own")
    if frame.empty:
        raise ValueError("table: got no rows; give at least one")
    return frame.reset_index(drop=True)


def _known(frame, names, what):
    unknown = [name for name in names if name not in frame]
    if unknown:
        raise ValueError(f"table: {what} names {', '.join(map(repr, unknown))}, and the columns are "
                         f"{', '.join(map(repr, frame))}")


def _is_numeric(column):
    """Whether all values are numbers, or missing."""
    found = [value for value in column if not _is_missing(value)]
    return bool(found) and all(isinstance(value, numbers.Number) and not isinstance(value, bool | np.bool_)
                               for value in found)


def _is_missing(value):
    return value is None or (isinstance(value, numbers.Real | type(pd.NA) | type(pd.NaT)) and bool(pd.isna(value)))


def _text(value, decimals):
    """How a value is written: numbers with their decimals and a true minus sign, never as minus zero."""
    if _is_missing(value):
        return MISSING
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, numbers.Integral):
        return true_minus(str(int(value)))
    if isinstance(value, numbers.Real):
        return true_minus(f"{float(value):z.{decimals}f}")
    return true_minus(str(value))


def _best(frame, texts, best):
    """The places of the best numbers. Those that are written like the best one are the best as well."""
    if best is None:
        return set()
    columns = [name for name in list(frame)[1:] if _is_numeric(frame[name])]
    if isinstance(best, dict):
        _known(frame, best, "best")
        lines = [([(row, name) for row in range(len(frame))], goal) for name, goal in best.items()]
    elif best.startswith("row "):
        lines = [([(row, name) for name in columns], best.removeprefix("row ")) for row in range(len(frame))]
    else:
        lines = [([(row, name) for row in range(len(frame))], best) for name in columns]
    return {place for places, goal in lines for place in _best_of(frame, texts, places, goal)}


def _best_of(frame, texts, places, goal):
    """The places among these that are written like the smallest, or largest, number."""
    if goal not in ("min", "max"):
        raise ValueError(f'table: best must be "min" or "max", in a row "row min" or "row max", got {goal!r}')
    places = [(row, name) for row, name in places if not _is_missing(frame[name][row])]
    if not places:
        return []
    row, name = (min if goal == "min" else max)(places, key=lambda place: frame[place[1]][place[0]])
    return [place for place in places if texts[place[1]][place[0]] == texts[name][row]]


def _legend(best):
    """What the mark means."""
    if not best:
        return ""
    along = "row" if isinstance(best, str) and best.startswith("row ") else "column"
    return f"{MARK} best of its {along}"
