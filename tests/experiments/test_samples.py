"""A sample of each table that no other test computes again; what takes too long is computed as far as its first checkpoints."""

import pytest

from figures.experiments import runner, tables, verification
from figures.experiments.bui2017 import uci_learning
from pepcore import datasets

ROUNDING, SEARCH = 1e-6, 1e-2     # relative; a search that is stopped makes rounding and the changes of later code larger


class FirstOf(tuple):
    """Checkpoints of which the last ends the learning, as Ctrl-C would."""

    def __contains__(self, number):
        if number > self[-1]:
            raise KeyboardInterrupt
        return super().__contains__(number)


WHOLE = [
    ("bui_fig8", {"data": 9, "N": 500}, SEARCH),
    ("bui_gap", {"data": 26, "M": 20, "alpha": 0.8}, SEARCH),
    ("choose_alpha", {"data": "iris", "split": 7, "M": 20, "search": "six times as long", "alpha": 0.5}, SEARCH),
    ("salimbeni_landscape", {"data": "kin40k", "rows": 36000, "basis": "orthogonal"}, ROUNDING),
    ("start_here", {"data": "wine", "split": 1, "alpha": 0.5}, SEARCH),
    ("uci_budget", {"data": "power", "split": 1, "M": 10, "alpha": 0.0}, SEARCH),
    ("vil_fig5_prior", {"step": 0.0, "seed": 2}, ROUNDING),
    ("vil_length", {"data": "wine", "split": 0, "method": "ep", "iterations": 15}, SEARCH),
    ("vil_path", {"twin": "start", "split": 12, "update": "inner"}, SEARCH),
    ("vil_rows", {"rows": 50000}, ROUNDING),
]
BEGINNINGS = [
    ("bui_fig31", {"M": 100, "alpha": 1.0, "seed": 0}, FirstOf((10, 30))),
    ("salimbeni_fig2", {"data": "kin40k", "basis": "Orth"}, (0, 10, 100)),
    ("vil_fig5", {"method": "sep", "pseudo_inputs": "shared"}, FirstOf((10, 30))),
]


def row_of(table, inputs):
    return next(row for row in tables.read_rows(table) if tables.row_key(table, row) == runner.key(inputs))


@pytest.mark.parametrize(("study", "inputs", "tolerance"), WHOLE, ids=[study for study, *_ in WHOLE])
def test_a_row_comes_out_again(study, inputs, tolerance):
    table = runner.load(study)
    table.find_data()
    if "data" in inputs and inputs["data"] in datasets.registry:
        datasets.load(inputs["data"])       # without it the test is left out
    found = verification.difference(table, row_of(table, inputs), runner.Run(table.module.__name__)(inputs))
    assert found.compared and found.largest < tolerance, found


@pytest.mark.parametrize(("study", "inputs", "steps"), BEGINNINGS, ids=[study for study, *_ in BEGINNINGS])
def test_the_beginning_of_a_row_comes_out_again(study, inputs, steps):
    table = runner.load(study)
    table.find_data()
    kept, found = row_of(table, inputs), table.module.compute(**inputs, checkpoints=steps)
    measured = [name for name in found if name.endswith(tuple(f"_{step}" for step in steps)) and "seconds" not in name]
    assert len(measured) >= 2 * len(steps)
    for name in measured:
        assert found[name] == pytest.approx(float(kept[name]), rel=ROUNDING), name


def test_the_losses_along_a_search_come_out_again():
    """To one per cent: later code searches and infers otherwise, and a single label is six per cent of the error."""
    table = runner.load("uci_learning")
    inputs = {"data": "pima", "optimiser": "lbfgs", "alpha": 0.0, "split": 19}
    kept, found = row_of(table, inputs), table.module.compute(**inputs)
    for number in uci_learning.CHECKPOINTS:
        assert found[f"nll_{number}"] == pytest.approx(float(kept[f"nll_{number}"]), rel=SEARCH), number
