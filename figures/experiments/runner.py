"""Run the studies behind the book's figures, and never lose a finished run.

Each finished run is appended to `figures/results/ID.csv` at once, a failed one with its error, and a run that stands in
the file is not computed again. So a study that was interrupted, in whatever way, continues where it stopped.
"""

import contextlib
import importlib
import platform
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from threadpoolctl import threadpool_limits

from figures.experiments import executors, inspection, provenance, tables
from figures.experiments.studies import Study, key, load, studies
from figures.experiments.tables import read_rows, results
from figures.progress import progress

__all__ = ["Run", "Study", "is_stale", "key", "load", "read_rows", "results", "run", "studies", "versions"]


def run(study, splits=None, retry=False, stale=False, budget_minutes=None, execute=None):
    """Compute what is missing; returns the number of runs computed and the number of those that failed.

    Parameters
    ----------
    study : Study
    splits : int, optional      only the first `splits` splits
    retry, stale : bool
        Compute again also the runs that failed, or those that are stale, see `is_stale`; an old row stays until the new one is
        there.
    budget_minutes : float, optional
        Start no more runs after this time; those under way are finished.
    execute : an executor as in `figures.experiments.executors`; a process for each core of this machine if not given

    Raises
    ------
    ValueError
        If another process is running the study, or its file or grid is not what a study's must be.
    """
    execute = execute or executors.on_this_machine()
    deadline = time.monotonic() + 60 * budget_minutes if budget_minutes is not None else float("inf")
    computed = failures = 0
    with tables.held(study):
        rows = read_rows(study)
        old = {tables.row_key(study, row) for row in rows if (retry and row["error"]) or (stale and is_stale(study, row))}
        again = [inputs for inputs in study.runs(splits) if key(inputs) in old]
        runs = tables.missing_runs(study, splits, rows) + again
        if runs:
            study.find_data()
        tables.write_rows(study, rows)      # mends a last line that was cut off, or writes the header
        write = tables.put if again else tables.append
        for row in progress(execute(Run(study.module.__name__), _until(deadline, runs)), study.id, len(runs)):
            write(study, row)
            computed += 1
            if row["error"]:        # of a run that has an old row the file does not say it
                failures += 1
                print(f"{study.id}: {', '.join(f'{name} = {row[name]}' for name in study.inputs)}: failed: {row['error']}",
                      file=sys.stderr)
        tables.sort(study)
    return computed, failures


def is_stale(study, row):
    """Whether code or data other than the present ones gave the row, or the row does not say which."""
    inputs = {name: row[name] for name in study.inputs}
    return (row["code"] != provenance.code(study.module.__name__)
            or row["data_hash"] != provenance.data_hash(study.module, inputs))


def _until(deadline, items):
    for item in items:
        if time.monotonic() >= deadline:
            return
        yield item


@dataclass(frozen=True)
class Run:
    """Computes one run of the study in a module and returns its row; it can be sent to other processes."""

    module: str

    def __call__(self, inputs):
        study, origin = importlib.import_module(self.module), self._origin(inputs)   # now: the files may be edited meanwhile
        start = time.perf_counter()
        try:
            # these problems are small: more BLAS threads make them slower
            with threadpool_limits(1), _ended_by_interrupt():
                outputs = study.compute(**inputs)
            if set(outputs) != set(study.OUTPUTS):
                raise ValueError(f"compute returned {sorted(outputs)}, OUTPUTS are {sorted(study.OUTPUTS)}")
            if problem := inspection.problem_of_outputs(outputs, getattr(study, "GAPS", ())):
                raise ValueError(problem)
        except Exception as problem:
            return self.failed(inputs, problem, time.perf_counter() - start, origin)
        return {**inputs, **outputs, "seconds": _rounded(time.perf_counter() - start), "error": "", **origin}

    def failed(self, inputs, problem, seconds=0.0, origin=None):
        """The row of a run that raised `problem`; `origin` if the run has found it out."""
        error = f"{type(problem).__name__}: {problem}"
        if problem.__traceback__:
            where = traceback.extract_tb(problem.__traceback__)[-1]
            error += f" ({Path(where.filename).name}, line {where.lineno})"
        error = " ".join(error.split()).encode("utf-8", "backslashreplace").decode()      # a file's name need not be UTF-8
        return {**inputs, "seconds": _rounded(seconds), "error": error, **(origin or self._origin(inputs))}

    def _origin(self, inputs):
        """Which packages, code, data and machine compute the run."""
        return {"versions": versions(), **provenance.provenance(importlib.import_module(self.module), inputs)}


@contextlib.contextmanager
def _ended_by_interrupt():
    """Let Ctrl-C end a run although `compute` takes it for the wish to stop learning and returns: half a run is no result."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield       # no Ctrl-C arrives here
        return
    pressed = []

    def press(number, frame):
        pressed.append(number)
        handler(number, frame)

    signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if pressed:
        raise KeyboardInterrupt


def _rounded(seconds):
    return float(f"{seconds:.3g}")


def versions():
    """The packages that compute a row, and their versions."""
    packages = [f"{name} {version(name)}" for name in ("pepcore", "numpy", "scipy")]
    return "; ".join([*packages, f"python {platform.python_version()}"])
