"""The tables of results, one CSV file for each study: a row that was written is never lost, and never written twice."""

import contextlib
import csv
import io
import os
import socket
import time

import filelock

from figures.experiments import inspection, seals
from figures.experiments.inspection import row_key
from figures.experiments.studies import BOOKKEEPING, cell, key, load

MOMENT = 1.0        # seconds; whoever asks who holds a table holds it for less


def results(study_id):
    """The results of a study as a pandas DataFrame, one row per run that succeeded; no rows before its first run."""
    import pandas as pd  # only those who draw need it

    study = load(study_id)
    text = io.StringIO()
    csv.writer(text).writerows([study.columns, *(row.values() for row in read_rows(study))])
    text.seek(0)
    table = pd.read_csv(text, dtype=dict.fromkeys(BOOKKEEPING[2:], str))
    return table[table["error"].isna()].drop(columns="error").reset_index(drop=True)


def read_rows(study):
    """The rows of a study's file as dicts of strings; a last line that was cut off in mid-writing is left out.

    Raises
    ------
    ValueError
        If the file has other columns than the study, or something in it is not as it was written; the message says in
        which lines, and what to do.
    """
    found = inspection.inspect(study)
    if found.problems:
        raise ValueError(found.complaint(study))
    return found.rows


def mend(study):
    """Set aside lines that are not as they were written, and seal the others; returns the file they went to and their number.

    Nothing is deleted: the lines are added to a file beside the table, and their runs count as missing.
    """
    aside = study.file.with_suffix(".bad")
    with held(study):
        seals.discard_unreadable(study.file)
        found = inspection.inspect(study)
        if found.bad_lines:
            _set_aside(aside, found.bad_lines)
        write_rows(study, found.rows)
    return aside, len(found.bad_lines)


def _set_aside(file, lines):
    """Add lines to a file, and return when they are on the disk: only then may the table lose them."""
    try:
        with file.open("ab") as stream:
            stream.write(b"".join(line + b"\n" for line in lines))
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as problem:
        raise seals.not_written(file, problem) from problem


def _sealed(study, row):
    """The cells of a row, in the order of the columns, and their check."""
    cells = {name: cell(row.get(name, "")) for name in study.columns}
    return cells | {"check": inspection.check(cells)}


def missing_runs(study, splits=None, rows=None):
    """The inputs of the runs that have no row, among those given or else in the file, in the order of the grid."""
    done = {row_key(study, row) for row in (read_rows(study) if rows is None else rows)}
    return [inputs for inputs in study.runs(splits) if key(inputs) not in done]


def write_rows(study, rows):
    """Replace the file; whoever reads it meanwhile sees the old one or the new one, whole."""
    text, sealed = io.StringIO(), [_sealed(study, row) for row in rows]
    table = csv.DictWriter(text, study.columns, lineterminator="\n")
    table.writeheader()
    table.writerows(sealed)
    study.file.parent.mkdir(parents=True, exist_ok=True)
    with seals.replaced(study.file, [row["check"] for row in sealed]):
        seals.replace(study.file, text.getvalue())


def append(study, row):
    """Add one row to the file, and return when it is on the disk.

    Raises
    ------
    OSError
        If the disk is full; a half-written row is removed again.
    """
    sealed, before = _sealed(study, row), None
    try:
        before = study.file.stat().st_size
        # opened anew for every row: the file may have been replaced meanwhile, for example by a version control system
        with study.file.open("a", encoding="utf-8", newline="") as stream:
            csv.DictWriter(stream, study.columns, lineterminator="\n").writerow(sealed)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as problem:
        with contextlib.suppress(OSError):      # what stopped the writing may stop this; a half line is left out when it is read
            if before is not None:
                os.truncate(study.file, before)
        raise seals.not_written(study.file, problem) from problem
    seals.extend(study.file, sealed["check"])


def put(study, row):
    """Write one row in the place of the one that holds the same run, or else at the end; a failed run replaces no good one."""
    new = _sealed(study, row)
    rows = {row_key(study, old): old for old in read_rows(study)}
    old = rows.get(row_key(study, new))
    if old is None or old["error"] or not new["error"]:
        write_rows(study, (rows | {row_key(study, new): new}).values())


def sort(study):
    """Put the rows into the order of the study's runs, so that the file does not depend on who finished first."""
    place = {key(inputs): i for i, inputs in enumerate(study.runs())}
    write_rows(study, sorted(read_rows(study), key=lambda row: place.get(row_key(study, row), len(place))))


@contextlib.contextmanager
def held(study):
    """Inside, nobody else can write the study's table.

    The operating system frees the lock when its process ends, in whatever way: what a dead process leaves behind
    stops nobody.

    Raises
    ------
    ValueError
        If another process holds the table; the message says which one.
    """
    study.file.parent.mkdir(parents=True, exist_ok=True)
    lock, owner = filelock.FileLock(_lock_file(study)), _owner_file(study)
    try:
        lock.acquire(timeout=MOMENT, poll_interval=MOMENT / 10)
    except filelock.Timeout:
        raise ValueError(f"{study.id} is being run by {owner_of(study) or 'another process'}; wait for it, or stop it: "
                         "what it has finished is kept") from None
    except OSError as problem:
        raise seals.not_written(_lock_file(study), problem) from problem
    try:
        seals.replace(owner, f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M')}")
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()


def owner_of(study):
    """Who holds the study's table, in words; "" if nobody."""
    with contextlib.suppress(FileNotFoundError):
        owner = _owner_file(study).read_text()
        try:
            with filelock.FileLock(_lock_file(study), blocking=False):
                return ""       # its process was killed and could not take the note away
        except filelock.Timeout:
            return owner
        except OSError:
            return ""       # a folder that may not be written to: nobody runs a study in it
    return ""


def _lock_file(study):
    return study.file.with_suffix(".lock")


def _owner_file(study):
    return study.file.with_suffix(".owner")
