"""How far a study has come: what is done, missing, failed, stale or damaged, and how many hours are left."""

from collections import Counter
from dataclasses import dataclass, field

from figures.experiments import costs, inspection, runner, tables

HEADINGS = ("study", "runs", "done", "missing", "failed", "stale", "undated", "corrupt", "hours", "hours left")


@dataclass(frozen=True)
class State:
    """The state of a study.

    Attributes
    ----------
    study : Study
    rows : list of dicts, the good rows
    complaint : str, what is wrong with the file, or ""
    corrupt : int, lines that are not as they were written
    total, failed : int, runs of the grid, and rows of runs that failed
    stale : int, rows that say which code computed them, where code or data are not the present ones
    undated : int, rows from before rows said which code computed them
    hours, hours_left : float, by the clock, with one thread: what the rows took, and what the missing ones will take
    hours_stale : float, what the rows took that `run --stale` computes again: the stale and the undated ones
    missing : list of dicts, inputs of the missing runs
    readable : bool, False if nothing in the file can be read, so that nobody can say what is done
    """

    study: object
    rows: list
    complaint: str
    corrupt: int
    total: int
    missing: list = field(repr=False)
    readable: bool = True

    @property
    def failed(self):
        return sum(bool(row["error"]) for row in self.rows)

    @property
    def stale(self):
        return sum(bool(row["code"]) and runner.is_stale(self.study, row) for row in self.rows)

    @property
    def undated(self):
        return sum(not row["code"] for row in self.rows)

    @property
    def hours(self):
        return sum(float(row["seconds"]) for row in self.rows) / 3600

    @property
    def hours_stale(self):
        return sum(float(row["seconds"]) for row in self.rows if runner.is_stale(self.study, row)) / 3600

    @property
    def hours_left(self):
        if not self.missing:
            return 0.0
        inputs = {runner.key(run): run for run in self.study.runs()}
        finished = [row for row in self.rows if not row["error"]]
        return sum(costs.seconds_of([inputs[tables.row_key(self.study, row)] for row in finished],
                                    [float(row["seconds"]) for row in finished], self.missing)) / 3600

    @property
    def cells(self):
        """The numbers under `HEADINGS`, in words."""
        if not self.readable:
            return (self.study.id, str(self.total), *"?????", str(self.corrupt), *"??")
        guess = "" if self.rows or not self.missing else "?"
        return (self.study.id, str(self.total), str(len(self.rows)), str(len(self.missing)), str(self.failed), str(self.stale),
                str(self.undated), str(self.corrupt), f"{self.hours:.1f}", f"{self.hours_left:.1f}{guess}")

    def details(self):
        """Lines that say more: who runs it, what is missing and why, which runs failed, what is damaged."""
        if owner := tables.owner_of(self.study):
            yield f"being run by {owner}"
        if self.missing:
            first = self.study.inputs[0]
            counts = Counter(run[first] for run in self.missing)
            yield f"missing, by {first}: " + ", ".join(f"{value}: {count}" for value, count in counts.items())
            yield f"why: {getattr(self.study.module, 'UNFINISHED', 'nobody has said')}"
        for row in self.rows:
            if row["error"]:
                yield f"failed: {', '.join(f'{name} = {row[name]}' for name in self.study.inputs)}: {row['error']}"
        if self.complaint:
            yield self.complaint


def state_of(study):
    """How far the study has come; a damaged file is no error here, but part of the answer."""
    try:
        found = inspection.inspect(study)
    except ValueError as problem:       # the file cannot be read at all
        return State(study, [], str(problem), 1, len(study.runs()), [], readable=False)
    return State(study, found.rows, found.complaint(study), len(found.problems), len(study.runs()),
                 tables.missing_runs(study, rows=found.rows))


def in_columns(lines):
    """Lines of cells as text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join([line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))])
                     for line in lines)
