"""Run the studies behind the book's figures, and never lose a finished run.

A study is a module of this folder; the name of the module is its identifier. It holds

    grid()               an iterable of dicts, the inputs of one run each: strings, whole numbers, floats
    compute(**inputs)    computes one run and returns a dict
    OUTPUTS              the names in that dict
    prepare()            optional: called once before the runs, e.g. to fetch data; stops the study if it raises

Runs are independent. Each finished one is appended to `figures/results/ID.csv` at once, a failed one with its error,
and a run that stands in the file is not computed again. So a study that was interrupted, in whatever way, continues
where it stopped.
"""

import contextlib
import csv
import importlib
import io
import os
import pkgutil
import platform
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from figures.progress import progress

RESULTS = Path(__file__).parent / "results"
PACKAGE = "figures"
BOOKKEEPING = ("seconds", "error", "versions")


@dataclass(frozen=True)
class Study:
    """A module of runs and the file of its results."""

    module: ModuleType
    folder: Path = RESULTS

    @property
    def id(self):
        return self.module.__name__.rpartition(".")[2]

    @property
    def title(self):
        return (self.module.__doc__ or "").strip().partition("\n")[0]

    @property
    def file(self):
        return Path(self.folder) / f"{self.id}.csv"

    def runs(self, splits=None):
        """The inputs of all runs, or of those on the first `splits` splits, as a list of dicts."""
        runs = [dict(inputs) for inputs in self.module.grid()]
        if not runs:
            raise ValueError(f"study {self.id}: grid() is empty")
        if len({tuple(inputs) for inputs in runs}) > 1:
            raise ValueError(f"study {self.id}: all runs must have the same inputs, in the same order")
        if len({key(inputs) for inputs in runs}) < len(runs):
            raise ValueError(f"study {self.id}: grid() gives the same inputs more than once")
        if splits is None:
            return runs
        if "split" not in runs[0]:
            raise ValueError(f"study {self.id} has no splits; leave out --splits")
        return [inputs for inputs in runs if inputs["split"] < splits]

    @cached_property
    def inputs(self):
        """Names of the inputs of a run."""
        return tuple(self.runs()[0])

    @property
    def columns(self):
        return (*self.inputs, *self.module.OUTPUTS, *BOOKKEEPING)


def studies():
    """Identifiers of all studies, in alphabetical order."""
    return [name for name in _modules() if _is_study(importlib.import_module(f"{PACKAGE}.{name}"))]


def load(study_id):
    """The study called `study_id`."""
    if study_id in _modules():
        module = importlib.import_module(f"{PACKAGE}.{study_id}")
        if _is_study(module):
            return Study(module)
    raise ValueError(f"there is no study {study_id!r}; choose one of: {', '.join(studies())}")


def _modules():
    found = pkgutil.iter_modules(importlib.import_module(PACKAGE).__path__)
    return sorted(module.name for module in found if not module.name.startswith("_"))


def _is_study(module):
    return hasattr(module, "grid") and hasattr(module, "compute")


def key(inputs):
    """What identifies a run: its inputs as they are written in the file."""
    return tuple(_cell(value) for value in inputs.values())


# Computing ------------------------------------------------------------------------------------------------------

def run(study, jobs=None, splits=None, retry=False, execute: Callable | None = None):
    """Compute what is missing; returns the number of runs computed and the number of those that failed.

    Parameters
    ----------
    study : Study
    jobs : int, optional        processes at a time; as many as there are cores if not given
    splits : int, optional      only the first so many splits
    retry : bool                compute failed runs again
    execute : function (f, items) -> iterable of f(item), in any order, each as soon as it is there
        Where the runs are computed; `joblib_executor(jobs)` if not given.
    """
    execute = execute or joblib_executor(jobs)
    rows = read_rows(study)
    if retry:
        rows = [row for row in rows if not row["error"]]
        write_rows(study, rows)
    runs = study.runs(splits)
    done = {_row_key(study, row) for row in rows}
    missing = [inputs for inputs in runs if key(inputs) not in done]
    if missing and hasattr(study.module, "prepare"):
        study.module.prepare()
    failures = 0
    finished = execute(_Run(study.module.__name__), missing)
    with _appender(study) as append:
        for row in progress(finished, study.id, len(missing)):
            append(row)
            failures += bool(row["error"])
    _sort(study)
    return len(missing), failures


def joblib_executor(jobs=None):
    """Runs in parallel processes on this machine."""
    def execute(function, items):
        parallel = Parallel(n_jobs=jobs or os.cpu_count(), return_as="generator_unordered")
        return parallel(delayed(function)(item) for item in items)
    return execute


@dataclass(frozen=True)
class _Run:
    """One run of the study in the module of that name, as a row; it travels to other processes."""

    module: str

    def __call__(self, inputs):
        study = importlib.import_module(self.module)
        start = time.perf_counter()
        outputs, error = {}, ""
        try:
            with threadpool_limits(1):      # these problems are small: more BLAS threads make them slower
                outputs = study.compute(**inputs)
            if set(outputs) != set(study.OUTPUTS):
                raise ValueError(f"compute returned {sorted(outputs)}, OUTPUTS are {sorted(study.OUTPUTS)}")
        except Exception as problem:
            where = traceback.extract_tb(problem.__traceback__)[-1]
            error = f"{type(problem).__name__}: {problem} ({Path(where.filename).name}, line {where.lineno})"
            outputs = {}
        return {**inputs, **outputs, "seconds": float(f"{time.perf_counter() - start:.3g}"),
                "error": " ".join(error.split()), "versions": versions()}


def versions():
    """What computed a row."""
    packages = [f"{name} {version(name)}" for name in ("pepcore", "numpy", "scipy")]
    return "; ".join([*packages, f"python {platform.python_version()}"])


# The file of results --------------------------------------------------------------------------------------------

def results(study_id):
    """The results of a study as a pandas DataFrame, one row per run that succeeded."""
    import pandas as pd  # only those who draw need it

    table = pd.read_csv(load(study_id).file)
    return table[table["error"].isna()].drop(columns="error").reset_index(drop=True)


def read_rows(study):
    """The rows of a study's file as dicts of strings; a last line that was cut off in mid-writing is left out."""
    if not study.file.exists():
        return []
    text = study.file.read_text(encoding="utf-8")
    table = csv.DictReader(io.StringIO(text[:text.rfind("\n") + 1]))
    if table.fieldnames and tuple(table.fieldnames) != study.columns:
        raise ValueError(f"{study.file} has the columns {', '.join(table.fieldnames)}, but the study now writes "
                         f"{', '.join(study.columns)}; move the old file away to start afresh")
    return list(table)


def write_rows(study, rows):
    """Replace the file; whoever reads it meanwhile sees the old one or the new one, whole."""
    text = io.StringIO()
    table = csv.DictWriter(text, study.columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    study.file.parent.mkdir(parents=True, exist_ok=True)
    draft = study.file.with_suffix(".draft")
    with draft.open("w", encoding="utf-8", newline="") as stream:
        stream.write(text.getvalue())
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(study.file)


@contextlib.contextmanager
def _appender(study):
    """A function that adds one row to the file and returns when it is on the disk."""
    write_rows(study, read_rows(study))      # mends a last line that was cut off, writes the header if there is none
    columns = study.columns

    def append(row):
        # opened anew for every row: the file may have been replaced meanwhile, for example by a version control system
        with study.file.open("a", encoding="utf-8", newline="") as stream:
            table = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
            table.writerow({name: _cell(value) for name, value in row.items()})
            stream.flush()
            os.fsync(stream.fileno())

    yield append


def _sort(study):
    """Put the rows into the order of the study's runs, so that the file does not depend on who finished first."""
    place = {key(inputs): i for i, inputs in enumerate(study.runs())}
    write_rows(study, sorted(read_rows(study), key=lambda row: place.get(_row_key(study, row), len(place))))


def _row_key(study, row):
    return tuple(row[name] for name in study.inputs)


def _cell(value):
    """A value as it is written: floats with all digits that matter, so that they can be read back exactly."""
    if hasattr(value, "item"):
        value = value.item()        # NumPy's scalars
    return repr(value) if isinstance(value, float) else str(value)
