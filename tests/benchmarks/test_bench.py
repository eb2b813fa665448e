"""The harness measures what it says, and the page of the book shows what it measured."""

import csv
import json
import sys

import numpy as np
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/benchmarks"))

import bench
import cases
import report

PYTHONS = {"floor": sys.executable, "pepcore": sys.executable}
RESULTS = report.load()


def test_a_race_measures_every_entry_in_turns():
    size = (300, 2, 10)
    entries = [entry for entry in cases.regression(size) if entry.side in PYTHONS]
    workers = bench.race(entries, PYTHONS, threads=1, turns=2)
    rows = list(bench.rows_of("regression", workers, 1, {"pepcore": "0"}))
    assert [row["method"] for row in rows] == [cases.VFE, cases.PEP, "one M × N × M product"]
    assert all(row["turns"] == 2 and 0 < row["least"] <= row["seconds"] <= row["most"] for row in rows)
    vfe, pep, _ = rows
    assert vfe["values"][0] < pep["values"][0] < 0  # a bound, and a log evidence above it


def test_the_time_to_an_evidence_is_read_from_the_trace():
    def worker(*turns):
        return type("Worker", (), {"turns": [{"values": trace} for trace in turns]})()

    slow = worker([[1, -9.0], [2, -5.0], [3, -4.0]], [[1, -9.0], [4, -4.0]])
    quick = worker([[0.1, -9.0], [0.2, -2.0]])
    seconds, values = bench.times_to_evidence([slow, quick])
    assert seconds[slow] == [2, 4]
    assert seconds[quick] == [0.2]
    assert values[slow] == [-4.0, -5.0, 2]


@pytest.mark.parametrize("side", ["pepcore"])
def test_every_function_of_pepcore_takes_turns(side):
    small = {"regression": (200, 2, 10), "probit": (200, 2, 10), "classes": (3, 2, 10), "two_bases": (1500, 2, 5, 7)}
    entries = {entry.function: entry for each in cases.RACES for entry in each.entries if entry.side == side}
    assert set(entries) == {"regression", "probit", "class_step", "orthogonal_step", "learn", "stream", "estimate"}
    entries = [entry._replace(size=small.get(entry.problem, entry.size)) for entry in entries.values()]
    entries = [entry._replace(options={"evaluations": 5}) if entry.function == "learn" else entry for entry in entries]
    for worker in bench.race(entries, PYTHONS, threads=1, turns=1):
        assert worker.turns[0]["seconds"] > 0


def test_a_side_that_fails_is_named():
    broken = cases.Entry("pepcore", "no_such_function", "regression", (50, 2, 5), "none")
    with pytest.raises(RuntimeError, match="no_such_function"):
        bench.race([broken], PYTHONS, threads=1, turns=1)


def test_the_exponent_of_a_power_law_is_found():
    sizes = np.array([10.0, 20.0, 40.0, 80.0])
    assert report.exponent(sizes, 3 * sizes**1.7) == pytest.approx(1.7)


@pytest.mark.parametrize(("method", "nearest"), [
    ("VFE", "VFE"), ("FITC", "VFE"), ("EP, α = 1", "Power EP, α = 1"), ("variational, Adam", "variational, with Adam"),
    ("variational, natural gradient and Adam", "variational, with Adam"),
])
def test_a_time_is_compared_with_that_of_the_nearest_method(method, nearest):
    ours = ["VFE", "Power EP, α = 0.5", "Power EP, α = 1", "SEP, with Adam", "variational, with Adam"]
    rows = [{"package": "pepcore", "method": name} for name in ours]
    other = {"package": "GPflow", "method": method}
    assert report.counterpart(other, [*rows, other])["method"] == nearest


def test_the_page_shows_what_was_measured():
    for name, table in report.tables(RESULTS).items():
        with (report.RESULTS / f"{name}.csv").open(encoding="utf-8") as file:
            assert list(csv.reader(file)) == table, f"{name}: run tests/benchmarks/report.py"
    assert (report.RESULTS / "machine.md").read_text(encoding="utf-8") == report.machine(RESULTS)
    page = (ROOT / "chapters/benchmarks.md").read_text(encoding="utf-8")
    for name in [*report.tables(RESULTS), "growth.svg", "regression.svg", "machine.md"]:
        assert f"results/{name}" in page


def test_every_group_was_measured():
    assert {each.group for each in cases.RACES} == {row["group"] for row in RESULTS["rows"]}
    json.dumps(RESULTS, allow_nan=False)
    assert all(row["seconds"] > 0 for row in RESULTS["rows"])
