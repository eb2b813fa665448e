"""Tables 2 and 3 of villacampa2017 with 20 splits of every set, as in the paper, all by one version of the code.

The rows of `villacampa_tables` come from several versions, and its two largest sets have ten splits. Once this grid is whole
it takes that study's place; until then no figure and no verdict reads it.
"""

from figures.experiments.villacampa2017 import tables
from figures.experiments.villacampa2017.tables import prepare

__all__ = ["OUTPUTS", "UNFINISHED", "compute", "grid", "prepare"]

OUTPUTS = tables.OUTPUTS
UNFINISHED = "the whole grid takes some eight hours of one processor, and is computed split by split"


def grid():
    """All runs, split by split, so that an interrupted grid has whole ones."""
    return [{"data": data, "split": split, "percent": percent, "method": method}
            for split in tables.SPLITS for data in tables.DATA for percent in tables.PERCENT for method in tables.METHODS]


def compute(data, split, percent, method):
    """One run, as in `tables`."""
    return tables.compute(data, split, percent, method)
