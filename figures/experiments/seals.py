"""The seal of a table: a small file beside it that knows how many rows were written, and what they held.

Each row has a check of its own. The seal binds them together: it notices a row that was taken out, and a number that
was altered together with its check. It holds lines "rows digest". The table fits if its first rows give one of the digests.
There may be one row more, which was written just before its process was killed and is not sealed yet. While a table is
replaced there are two lines, for the old one and for the new one, so that the seal fits whenever the process is killed.
"""

import contextlib
import errno
import hashlib
import os

START = "0" * 16


def file_of(table):
    """The seal of a table."""
    return table.with_suffix(".seal")


def digest(checks, start=START):
    """A fingerprint of the checks of rows, in their order; it continues that of the rows before."""
    for check in checks:
        start = hashlib.sha256(f"{start} {check}".encode()).hexdigest()[:len(START)]
    return start


def problem(table, checks, known):
    """What is wrong with a table whose rows have these checks, in words; "" if it fits the lines `known` of its seal."""
    if not known and checks:
        return f"the table has rows but no seal ({file_of(table).name}): nobody can know whether all are there"
    fits = [count for count, sealed in known if count <= len(checks) and digest(checks[:count]) == sealed]
    if not known or any(len(checks) <= count + 1 for count in fits):
        return ""
    count = known[-1][0]
    if count > len(checks):
        return (f"the table ends here with {len(checks)} rows, but {count} were written ({file_of(table).name}): "
                f"{count - len(checks)} or more are missing")
    if fits:
        return (f"the table has {len(checks)} rows, but {max(fits)} were written ({file_of(table).name}): others were added, "
                "or the seal is older than the table")
    return f"the rows are not those that were written ({file_of(table).name}): one was taken out, moved or altered"


def extend(table, check):
    """Seal one more row, which was added to the end of the table."""
    count, sealed = (read(table) or [(0, START)])[-1]
    _write(table, [(count + 1, digest([check], sealed))])


@contextlib.contextmanager
def replaced(table, checks):
    """Inside, the table may be the old one or one with rows of these checks; afterwards it is the new one."""
    new = len(checks), digest(checks)
    _write(table, [*read(table), new])
    yield
    _write(table, [new])


def discard_unreadable(table):
    """Delete a seal that is none, as a merge leaves it, so that the table can be sealed anew."""
    try:
        read(table)
    except ValueError:
        file_of(table).unlink()


def read(table):
    """The lines of a table's seal, pairs (rows, digest); none if there is no seal."""
    file = file_of(table)
    if not file.exists():
        return []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        if not lines:
            raise ValueError
        return [(int(count), sealed) for count, sealed in map(str.split, lines)]
    except ValueError:
        raise ValueError(f"{file}, line 1: this is no seal of a table; restore the file from the version control, or delete it "
                         f"and write a new one with `python -m figures mend {table.stem}`") from None


def _write(table, sealed):
    replace(file_of(table), "".join(f"{count} {digest}\n" for count, digest in sealed))


def replace(file, text):
    """Write a file anew; whoever reads it meanwhile sees the old one or the new one, whole.

    Raises
    ------
    OSError
        If the disk is full, or the file cannot be written; the old file is left as it is.
    """
    draft = file.with_suffix(f"{file.suffix}.draft")
    try:
        with draft.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(file)
    except OSError as problem:
        with contextlib.suppress(OSError):      # what stopped the writing may stop this
            draft.unlink(missing_ok=True)
        raise not_written(file, problem) from problem


def not_written(file, problem):
    """The error that says which file could not be written, and what to do."""
    full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "Make room on the disk" if full else f"See that {file.parent} is there and may be written to"
    return OSError(problem.errno, f"{file} could not be written: {problem.strerror}; what was finished before is kept. "
                   f"{remedy}, and the same command continues")
