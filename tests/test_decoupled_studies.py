"""The studies of decoupled bases: their grids, and one small run of each."""

import numpy as np
import pytest

from figures import salimbeni_fig2, salimbeni_problems, salimbeni_tables
from pepcore import datasets


@pytest.fixture
def data():
    def available(name):
        try:
            datasets.load(name)
        except datasets.DataNotFoundError as problem:
            pytest.skip(str(problem))
        return name

    return available


def test_grids_name_every_basis_and_method():
    assert {run["basis"] for run in salimbeni_fig2.grid()} == set(salimbeni_problems.BASES)
    assert {run["method"] for run in salimbeni_tables.grid()} == set(salimbeni_tables.METHODS)
    assert {name for name, _ in salimbeni_tables.METHODS.values()} == set(salimbeni_problems.BASES)


@pytest.mark.parametrize("basis", ["CoupledNat", "OrthNat", "Decoupled"])
def test_a_curve_climbs_to_the_optimum_and_not_over_it(data, basis):
    checkpoints = (0, 5, 20)
    run = salimbeni_fig2.compute(data("kin40k"), basis, points=20, rows=200, checkpoints=checkpoints)
    bounds = [run[f"bound_{number}"] for number in checkpoints]
    assert bounds[0] < bounds[1] < bounds[2] < run["bound_optimum"]
    assert 0 <= run["seconds_0"] <= run["seconds_5"] <= run["seconds_20"]
    assert all(np.isfinite(value) for value in run.values())


def test_a_run_of_the_tables_learns(data, monkeypatch):
    monkeypatch.setattr(salimbeni_tables, "GAMMA", 30)
    monkeypatch.setattr(salimbeni_tables, "COLUMNS", 10)
    monkeypatch.setattr(salimbeni_tables, "METHODS", {"OrthNat": ("OrthNat", 20)})
    few, more = (salimbeni_tables.compute(data("ringnorm"), "OrthNat", 0, steps=steps) for steps in (1, 60))
    assert set(few) == set(salimbeni_tables.OUTPUTS)
    assert few["bound"] < more["bound"]
    assert few["log_likelihood"] < more["log_likelihood"]
