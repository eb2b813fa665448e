"""The studies behind the book's figures.

A study is a module of this folder; the name of the module is its identifier. It holds

    grid()               an iterable of dicts, the inputs of one run each: strings, whole numbers, floats;
                         what teaches most for its time first, for a grid may be stopped anywhere
    compute(**inputs)    computes one run and returns a dict
    OUTPUTS              the names in that dict
    prepare()            optional: called once before the runs, e.g. to fetch data; stops the study if it raises
    UNFINISHED           optional: why runs of the grid are missing from the committed results
    FIGURES              optional: {name: (draw, (width, height))}, draw(figure, results) and its size in inches

Runs are independent of each other.
"""

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

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
        names = (*self.inputs, *self.module.OUTPUTS, *BOOKKEEPING)
        if len(set(names)) < len(names):
            raise ValueError(f"study {self.id}: two columns would have one name: {', '.join(names)}")
        return names


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
    return tuple(cell(value) for value in inputs.values())


def cell(value):
    """A value as it is written: floats with all digits that matter, so that they can be read back exactly."""
    if hasattr(value, "item"):
        value = value.item()        # NumPy's scalars
    return repr(value) if isinstance(value, float) else str(value)
