"""The tables of results, one CSV file for each study: a row that was written is never lost, and never written twice."""

import contextlib
import csv
import io
import os
import socket
import time
import zlib

import filelock

from figures.experiments.studies import BOOKKEEPING, cell, key, load


def results(study_id):
    """The results of a study as a pandas DataFrame, one row per run that succeeded; no rows before its first run."""
    import pandas as pd  # only those who draw need it

    study = load(study_id)
    header = ",".join(study.columns) + "\n"
    read_rows(study)        # complains of a row that is not as it was written
    table = pd.read_csv(io.StringIO(_whole_lines(study) or header), dtype=dict.fromkeys(BOOKKEEPING[2:], str))
    return table[table["error"].isna()].drop(columns="error").reset_index(drop=True)


def read_rows(study):
    """The rows of a study's file as dicts of strings; a last line that was cut off in mid-writing is left out.

    Raises
    ------
    ValueError
        If the file has other columns than the study, or a row is not as it was written: its `check` says so.
    """
    table = csv.DictReader(io.StringIO(_whole_lines(study)))
    if table.fieldnames and tuple(table.fieldnames) != study.columns:
        raise ValueError(f"{study.file} has the columns {', '.join(table.fieldnames)}, but the study now writes "
                         f"{', '.join(study.columns)}; move the old file away to start afresh")
    return [_checked(study, table.line_num, row) for row in table]


def _checked(study, line, row):
    if None in row or None in row.values() or row["check"] != _check(row):
        raise ValueError(f"{study.file}, line {line}: this row is not as it was written (its check does not fit); restore the "
                         "line from the version control, or delete it and its run will be computed again")
    return row


def _check(row):
    """Eight digits that change with any cell of a row."""
    return f"{zlib.crc32(','.join(text for name, text in row.items() if name != 'check').encode()):08x}"


def _sealed(study, row):
    """The cells of a row, in the order of the columns, and their check."""
    cells = {name: cell(row.get(name, "")) for name in study.columns}
    return cells | {"check": _check(cells)}


def missing_runs(study, splits=None, rows=None):
    """The inputs of the runs that have no row, among those given or else in the file, in the order of the grid."""
    done = {row_key(study, row) for row in (read_rows(study) if rows is None else rows)}
    return [inputs for inputs in study.runs(splits) if key(inputs) not in done]


def write_rows(study, rows):
    """Replace the file; whoever reads it meanwhile sees the old one or the new one, whole."""
    text = io.StringIO()
    table = csv.DictWriter(text, study.columns, lineterminator="\n")
    table.writeheader()
    table.writerows(_sealed(study, row) for row in rows)
    study.file.parent.mkdir(parents=True, exist_ok=True)
    draft = study.file.with_suffix(".draft")
    with draft.open("w", encoding="utf-8", newline="") as stream:
        stream.write(text.getvalue())
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(study.file)


def append(study, row):
    """Add one row to the file, and return when it is on the disk."""
    # opened anew for every row: the file may have been replaced meanwhile, for example by a version control system
    with study.file.open("a", encoding="utf-8", newline="") as stream:
        csv.DictWriter(stream, study.columns, lineterminator="\n").writerow(_sealed(study, row))
        stream.flush()
        os.fsync(stream.fileno())


def sort(study):
    """Put the rows into the order of the study's runs, so that the file does not depend on who finished first."""
    place = {key(inputs): i for i, inputs in enumerate(study.runs())}
    write_rows(study, sorted(read_rows(study), key=lambda row: place.get(row_key(study, row), len(place))))


def row_key(study, row):
    """What identifies the run of a row, as `studies.key` does for inputs."""
    return tuple(row[name] for name in study.inputs)


@contextlib.contextmanager
def held(study):
    """Let nobody else write the study's table meanwhile.

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
        lock.acquire(blocking=False)
    except filelock.Timeout:
        raise ValueError(f"{study.id} is being run by {owner_of(study) or 'another process'}; wait for it, or stop it: "
                         "what it has finished is kept") from None
    try:
        owner.write_text(f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M')}")
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
    return ""


def _lock_file(study):
    return study.file.with_suffix(".lock")


def _owner_file(study):
    return study.file.with_suffix(".owner")


def _whole_lines(study):
    if not study.file.exists():
        return ""
    text = study.file.read_text(encoding="utf-8")
    return text[:text.rfind("\n") + 1]
