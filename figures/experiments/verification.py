"""Run rows again, and report how far the new results are from those kept.

`python -m figures verify ID --sample N` prints it. With --keep, it also goes into `figures/results/verify.toml`, from which
the page of the studies shows how well each study was reproduced.
"""

import math
import random
import re
from dataclasses import dataclass

import filelock

from figures.experiments import provenance, runner, seals, tables, toml
from figures.experiments.inspection import NUMBER
from figures.experiments.studies import RESULTS, cell

FILE = RESULTS / "verify.toml"
SMALL = 1e-6        # differences of smaller numbers are rounding
SAME = 1e-9         # relative difference of error rates that is rounding: one label in a million is more
LIST = re.compile("[,;|]")       # what stands between the numbers of a list in one cell
MEASURED = ("fastest", "peak_megabytes", "blas")       # these depend on the machine, as all seconds do
SAID = {True: "the same", False: "another", None: "unrecorded"}
ENDING = ("converged", "evaluations", "map")       # how a search ended, and what is only drawn: equal or not


@dataclass(frozen=True)
class Difference:
    """What one run gave when it was computed again.

    Attributes
    ----------
    run : str, its inputs in words
    compared : bool, it has outputs that can be compared; times and the like cannot
    equal : bool, it has, and every one has the same digits
    largest : float, the largest relative difference of an output, 0 if all are equal, inf if one is no number or has failed;
        whether a search converged, and after how many evaluations, is not compared
    column : str, the output with that difference
    rated, rates_equal : bool, it has error rates, and all of them are the same
    same_code, same_machine : bool, code and machine are those that computed the kept row; None if that row does not say
    error : str, why the run failed this time, or ""
    """

    run: str
    compared: bool
    equal: bool
    largest: float
    column: str
    rated: bool
    rates_equal: bool
    same_code: bool | None
    same_machine: bool | None
    error: str = ""

    def __str__(self):
        if self.error:
            return f"{self.run}: failed: {self.error}"
        said = ("has only times and the like, which are not compared" if not self.compared else
                "equal to the last digit" if self.equal else
                f"differs by {self.largest:.1e} of {self.column}" if self.largest else "equal but for how its search ended")
        code, machine = (SAID[same] for same in (self.same_code, self.same_machine))
        return f"{self.run}: {said}; {code} code, {machine} machine"


def verify(study, sample=5, seed=0, execute=None):
    """Compute a random sample of the finished runs again; yields the difference of each as soon as it is there.

    Raises
    ------
    ValueError
        If the study has no finished runs, or its file is damaged.
    DataNotFoundError
        If the study needs a data set that is not there.
    """
    kept = {tables.row_key(study, row): row for row in tables.read_rows(study) if not row["error"]}
    if not kept:
        raise ValueError(f"study {study.id} has no finished runs that could be verified; start it with: "
                         f"python -m figures run {study.id}")
    study.find_data()
    runs = [inputs for inputs in study.runs() if runner.key(inputs) in kept]
    chosen = random.Random(seed).sample(runs, min(sample, len(runs)))
    again = getattr(study.module, "again", lambda row: {})
    settled = [inputs | again(kept[runner.key(inputs)]) for inputs in chosen]
    for row in (execute or map)(runner.Run(study.module.__name__), settled):
        yield difference(study, kept[runner.key({name: row[name] for name in study.inputs})], row)


def difference(study, kept, again):
    """How far the outputs of a run computed again are from the row that is kept."""
    run = ", ".join(f"{name} = {kept[name]}" for name in study.inputs)
    now = {name: cell(value) for name, value in again.items()}
    names = [name for name in study.module.OUTPUTS if "seconds" not in name and name not in MEASURED]
    far = {name: apart(kept[name], now.get(name, "")) for name in names if name not in ENDING}
    column = max(far, key=far.get, default="")
    rates = [far[name] for name in _error_rates(study, kept, names)]
    equal = bool(far) and all(kept[name] == now.get(name) for name in names)
    return Difference(run, bool(far), equal, far.get(column, 0.0), column,
                      bool(rates), bool(rates) and max(rates) < SAME,
                      *(kept[name] == now[name] if kept[name] else None for name in ("code", "machine")), again["error"])


def _error_rates(study, row, names):
    """Those of the outputs that are error rates in this row: what a study says, or else all of that name."""
    said = getattr(study.module, "error_rates", None)
    return said(row) if said else [name for name in names if name.startswith("error_rate")]


def apart(first, second):
    """The relative difference of two cells: 0 if they are equal, inf if they differ and one is no number.

    Differences of numbers below `SMALL` are taken relative to `SMALL`: that of 1e-15 and 2e-15 tells nothing. Of lists such
    as "1,2;3,4|5,6" it is the largest among their numbers.
    """
    if first == second:
        return 0.0
    parts = LIST.split(first), LIST.split(second)
    if len(parts[0]) != len(parts[1]) or not all(NUMBER.fullmatch(text) for part in parts for text in part):
        return math.inf
    return max(_relative(float(a), float(b)) for a, b in zip(*parts))


def _relative(a, b):
    """The relative difference of two numbers, inf if one of them is not finite and they are not the same."""
    return 0.0 if a == b else abs(a - b) / max(abs(a), abs(b), SMALL) if math.isfinite(a - b) else math.inf


def keep(study, differences, file=FILE):
    """Put what was found into the file, in the place of what it said of the study."""
    farthest = max(differences, key=lambda one: one.largest)
    found = {
        "commit": provenance.commit(), "machine": provenance.machine(), "rows": len(differences),
        "compared": sum(one.compared for one in differences), "equal": sum(one.equal for one in differences),
        "rated": sum(one.rated for one in differences), "rates_equal": sum(one.rates_equal for one in differences),
        "largest": farthest.largest, "column": farthest.column,
        "same_code": sum(one.same_code is True for one in differences),
        "same_machine": sum(one.same_machine is True for one in differences)}
    text = "# Rows that were run again: python -m figures verify ID --sample N --keep\n"
    with filelock.FileLock(file.with_suffix(".lock")):      # another study may be verified at the same time
        for study_id, entry in sorted((kept(file) | {study.id: found}).items()):
            text += toml.table(f"[{study_id}]", entry)
        seals.replace(file, text)


def kept(file=FILE):
    """What the file says: study -> a dict.

    Raises
    ------
    ValueError
        If it is no TOML, as a merge leaves it.
    """
    return toml.read(file) if file.exists() else {}

