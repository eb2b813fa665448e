"""The studies behind the book's figures.

A new study is a module in the folder of its paper, or in `book` if it belongs to no paper, and a line in `STUDIES`, which
gives its identifier. The module holds

    grid()               an iterable of dicts, the inputs of one run each: strings, whole numbers, floats;
                         the runs that teach most for their time first, since it may be stopped anywhere
    compute(**inputs)    computes one run and returns a dict
    OUTPUTS              the names in that dict
    error_rates(row)     optional: the outputs that are error rates in this row; those named error_rate... if not given
    again(row)           optional: what more `compute` must be given to do what it did for this row, such as the number of
                         steps if a clock ended it
    GAPS                 optional: names of outputs with a range that are NaN where there is nothing to measure
    READS                optional: names of data sets that every run reads and that are not among its inputs; all sets that the
                         runs read are looked for before the first one
    BUNDLED              optional: names among the inputs of sets that come from scikit-learn, and not from the registry
    UNFINISHED           optional: why runs of the grid are missing from the committed results
    FIGURES              optional: {name: (draw, (width, height))}, draw(figure, results) and its size in inches

Runs are independent of each other.
"""

import importlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

from figures import FOLDER
from figures.experiments import provenance
from pepcore import datasets

RESULTS = FOLDER / "results"
# identifier of a study, which names its table of results -> folder.module
STUDIES = {
    "choose_alpha": "book.choose_alpha",
    "choose_alpha_unseen": "book.choose_alpha_unseen",
    "gp_scaling": "book.gp_scaling",
    "learnt_powers": "book.learnt_powers",
    "sampling_truth": "book.sampling_truth",
    "start_here": "book.start_here",
    "bui_fig23": "bui2017.fig23",
    "bui_fig3": "bui2017.fig3",
    "bui_fig31": "bui2017.fig31",
    "bui_fig33": "bui2017.fig33",
    "bui_fig8": "bui2017.fig8",
    "bui_gap": "bui2017.gap",
    "refits": "bui2017.refits",
    "refits_classification": "bui2017.refits_classification",
    "reruns": "bui2017.reruns",
    "uci_budget": "bui2017.uci_budget",
    "uci_classification": "bui2017.uci_classification",
    "uci_classification_whole": "bui2017.uci_classification_whole",
    "uci_learning": "bui2017.uci_learning",
    "uci_regression": "bui2017.uci_regression",
    "uci_whole": "bui2017.uci_whole",
    "csa_fitc": "csato2002.fitc",
    "csa_nystrom": "csato2002.nystrom",
    "csa_order": "csato2002.order",
    "csa_size": "csato2002.size",
    "csa_sweeps": "csato2002.sweeps",
    "kuss_landscape": "kuss2005.landscape",
    "magic_splits": "salimbeni2018.magic_splits",
    "salimbeni_ard": "salimbeni2018.ard",
    "salimbeni_fig2": "salimbeni2018.fig2",
    "salimbeni_fig2_long": "salimbeni2018.fig2_long",
    "salimbeni_landscape": "salimbeni2018.landscape",
    "salimbeni_magic": "salimbeni2018.magic",
    "salimbeni_tables": "salimbeni2018.tables",
    "vil_fig1": "villacampa2017.fig1",
    "vil_fig3": "villacampa2017.fig3",
    "vil_fig4": "villacampa2017.fig4",
    "vil_fig5": "villacampa2017.fig5",
    "vil_fig5_long": "villacampa2017.fig5_long",
    "vil_fig5_prior": "villacampa2017.fig5_prior",
    "vil_length": "villacampa2017.length",
    "vil_path": "villacampa2017.path",
    "vil_rows": "villacampa2017.rows",
    "villacampa_whole": "villacampa2017.tables",
}
BOOKKEEPING = ("seconds", "error", "versions", *provenance.COLUMNS, "check")


@dataclass(frozen=True)
class Study:
    """A module of runs and the file of its results."""

    id: str
    module: ModuleType
    folder: Path = RESULTS

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

    def find_data(self):
        """Load every data set that the runs read, so that one that is missing stops the study before its first run."""
        for name in sorted({name for inputs in self.runs() for name in provenance.data_sets(self.module, inputs)}):
            datasets.load(name)

    @property
    def columns(self):
        names = (*self.inputs, *self.module.OUTPUTS, *BOOKKEEPING)
        if len(set(names)) < len(names):
            raise ValueError(f"study {self.id}: two columns would have one name: {', '.join(names)}")
        return names


def studies():
    """Identifiers of all studies, in alphabetical order."""
    return sorted(STUDIES)


def load(study_id):
    """The study called `study_id`."""
    if study_id in STUDIES:
        return Study(study_id, importlib.import_module(f"figures.experiments.{STUDIES[study_id]}"))
    raise ValueError(f"there is no study {study_id!r}; choose one of: {', '.join(studies())}")


def key(inputs):
    """What identifies a run: its inputs as they are written in the file."""
    return tuple(cell(value) for value in inputs.values())


def cell(value):
    """A value as it is written: floats with all digits that matter, so that they can be read back exactly."""
    if hasattr(value, "item"):
        value = value.item()        # NumPy's scalars
    return repr(value) if isinstance(value, float) else str(value)
