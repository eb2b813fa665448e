"""Rows that are run again: what differs is said, by how much, and whether code and machine are the same."""

import contextlib
import itertools
import math

import pytest
from made_up import here, missing

from figures import __main__ as command_line
from figures.experiments import runner, tables, verification
from pepcore import datasets

pytest_plugins = ["study_fixtures"]

CHEAPEST = 4        # rows of villacampa_whole, of less than a second each
DRIFT = 1e-2        # relative: rows that say so were computed by older code


def test_rows_of_the_same_code_are_equal_to_the_last_digit(listed, capsys, monkeypatch):
    monkeypatch.setattr(runner.executors, "on_this_machine", lambda jobs: here)
    runner.run(listed, execute=here)
    assert command_line.main(["verify", listed.id, "--sample", "5"]) == 0
    said = capsys.readouterr().out
    assert said.count("equal to the last digit; the same code, the same machine") == 5
    assert "5 runs computed again, 5 equal to the last digit; largest relative difference 0.0e+00" in said


def test_a_run_is_computed_again_as_its_study_says(listed, monkeypatch):
    runner.run(listed, execute=here)
    asked, compute = [], listed.module.compute
    monkeypatch.setattr(listed.module, "again", lambda row: {"ended": float(row["product"])}, raising=False)
    monkeypatch.setattr(listed.module, "compute", lambda ended, **inputs: asked.append((ended, inputs)) or compute(**inputs))
    found = list(verification.verify(listed, sample=3, execute=here))
    assert len(asked) == 3 and all(one.equal for one in found)
    assert [ended for ended, _ in asked] == [inputs["split"] * inputs["alpha"] for _, inputs in asked]


def test_what_differs_is_said(listed):
    runner.run(listed, execute=here)
    rows = [row | {"product": repr(1.01 * float(row["product"]) + 1), "code": "0123456789ab"} if row["split"] == "1" else row
            for row in runner.read_rows(listed)]
    tables.write_rows(listed, rows)
    found = sorted(verification.verify(listed, sample=12, execute=here), key=lambda one: -one.largest)
    assert [one.equal for one in found] == [False] * 4 + [True] * 8
    assert found[0].column == "product" and 0.01 < found[0].largest <= 1
    assert not found[0].same_code and found[-1].same_code
    assert "differs by" in str(found[0]) and "another code" in str(found[0])


def test_a_row_of_the_present_code_that_differs_makes_the_command_fail(listed, capsys, monkeypatch):
    monkeypatch.setattr(runner.executors, "on_this_machine", lambda jobs: here)
    runner.run(listed, execute=here)
    tables.write_rows(listed, [row | {"product": "7.0"} for row in runner.read_rows(listed)])
    assert command_line.main(["verify", listed.id, "--sample", "2"]) == 1
    tables.write_rows(listed, [row | {"code": ""} for row in runner.read_rows(listed)])
    assert command_line.main(["verify", listed.id, "--sample", "2"]) == 0
    assert capsys.readouterr().out.count("; unrecorded code, the same machine") == 2


def test_a_file_that_is_no_toml_is_named_before_the_first_run(listed, tmp_path, capsys, monkeypatch):
    runner.run(listed, execute=here)
    file = tmp_path / "verify.toml"
    file.write_text("<<<<<<< HEAD\n")
    monkeypatch.setattr(verification.kept, "__defaults__", (file,))
    monkeypatch.setattr(verification, "verify", None)
    assert command_line.main(["verify", listed.id, "--keep"]) == 2
    assert f"error: {file}: Invalid statement (at line 1, column 1); mend that line" in capsys.readouterr().err


def test_how_a_search_ended_is_no_distance():
    budget = runner.load("uci_budget")
    row = tables.read_rows(budget)[0]
    ended = row | {"converged": str(row["converged"] != "True"), "evaluations": "1"}
    found = verification.difference(budget, row, ended)
    assert ": equal but for how its search ended; " in str(found)
    assert (found.largest, found.equal) == (0.0, False)


def test_a_run_of_which_only_times_are_kept_counts_neither_as_equal_nor_as_other(tmp_path):
    of_book, file = runner.load("gp_scaling"), tmp_path / "verify.toml"
    row = tables.read_rows(of_book)[0]
    found = verification.difference(of_book, row, row | {"fastest": "999"})
    assert ": has only times and the like, which are not compared; " in str(found)
    verification.keep(of_book, [found], file)
    entry = verification.kept(file)[of_book.id]
    assert (entry["rows"], entry["compared"], entry["equal"]) == (1, 0, 0)


@pytest.mark.parametrize(("study_id", "data", "column", "rate"), [
    ("salimbeni_tables", "shuttle", "mae", True), ("salimbeni_tables", "kin40k", "mae", False),
    ("csa_order", "pima", "error_ep", True), ("csa_order", "boston", "error_ep", False),
    ("csa_size", "pima", "error_online", True), ("csa_sweeps", "pima", "error_8", True)])
def test_an_error_is_an_error_rate_for_labels_only(study_id, data, column, rate):
    of_book = runner.load(study_id)
    row = next(row for row in tables.read_rows(of_book) if row["data"] == data)
    same, other = (verification.difference(of_book, row, row | changed) for changed in ({}, {column: "0.5"}))
    assert (same.rated, same.rates_equal) == (rate, rate)
    assert (other.rated, other.rates_equal) == (rate, False)


def test_rows_with_error_rates_are_counted_apart(tmp_path):
    of_book, file = runner.load("salimbeni_tables"), tmp_path / "verify.toml"
    rows = {row["data"]: row for row in tables.read_rows(of_book)}
    found = [verification.difference(of_book, rows[data], rows[data] | {column: "0.5"})
             for data, column in (("shuttle", "mae"), ("letter", "bound"), ("kin40k", "mae"))]
    verification.keep(of_book, found, file)
    entry = verification.kept(file)[of_book.id]
    assert (entry["rows"], entry["rated"], entry["rates_equal"]) == (3, 2, 1)


def test_a_run_that_fails_now_differs_without_end(listed, monkeypatch):
    runner.run(listed, execute=here)
    monkeypatch.setenv("STUDY_FAILS", "1")
    assert max(one.largest for one in verification.verify(listed, sample=12, execute=here)) == math.inf


def test_why_a_run_fails_now_is_said(listed, monkeypatch, capsys):
    runner.run(listed, execute=here)
    monkeypatch.setenv("STUDY_FAILS", "1")
    assert command_line.main(["verify", listed.id, "--sample", "12", "--jobs", "1"]) == 1
    assert capsys.readouterr().out.count(": failed: RuntimeError: first line second, line") == 4


@pytest.mark.parametrize(("first", "second", "expected"), [
    ("1.0", "1.0", 0), ("1.0", "1.1", 0.1 / 1.1), ("nan", "nan", 0), ("nan", "1.0", math.inf), ("1.0", "nan", math.inf),
    ("0.1", "0.11", 0.01 / 0.11), ("1e-9", "2e-9", 1e-3), ("True", "False", math.inf),
    ("0.0", "-0.0", 0), ("2.0", "", math.inf), ("1,2;0,0|4,-1", "1,2;0,0|5,-1", 0.2), ("1,2", "1,2|3", math.inf)])
def test_numbers_are_apart_by_their_share_and_texts_by_infinity(first, second, expected):
    assert verification.apart(first, second) == pytest.approx(expected)


def test_failed_runs_are_not_verified(listed, monkeypatch):
    monkeypatch.setenv("STUDY_FAILS", "1")
    runner.run(listed, execute=here)
    failed = sum(bool(row["error"]) for row in runner.read_rows(listed))
    monkeypatch.delenv("STUDY_FAILS")
    assert failed == 4 and len(list(verification.verify(listed, sample=12, execute=here))) == 8


def test_nothing_to_verify(listed, capsys):
    assert command_line.main(["verify", listed.id]) == 2
    assert "has no finished runs that could be verified" in capsys.readouterr().err


def test_what_was_found_is_kept(listed, tmp_path):
    runner.run(listed, execute=here)
    file = tmp_path / "verify.toml"
    verification.keep(listed, list(verification.verify(listed, sample=3, execute=here)), file)
    kept = verification.kept(file)[listed.id]
    assert (kept["rows"], kept["equal"], kept["same_code"], kept["largest"]) == (3, 3, 3, 0.0)


def test_an_interrupt_loses_no_row_that_was_computed_again(listed, tmp_path, monkeypatch, capsys):
    runner.run(listed, execute=here)

    def interrupted(function, items):
        yield from itertools.islice(here(function, items), 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner.executors, "on_this_machine", lambda jobs: interrupted)
    monkeypatch.setattr(verification.keep, "__defaults__", (tmp_path / "verify.toml",))
    with contextlib.suppress(KeyboardInterrupt):
        command_line.main(["verify", listed.id, "--keep"])
    assert capsys.readouterr().out.count("equal to the last digit") == 2
    assert verification.kept(tmp_path / "verify.toml")[listed.id]["rows"] == 2


def test_runs_that_fail_this_time_are_said_and_not_kept(listed, tmp_path, monkeypatch, capsys):
    def half_failing(function, items):
        for count, row in enumerate(here(function, items)):
            yield row | {"error": "ValueError: no"} if count % 2 else row

    runner.run(listed, execute=here)
    monkeypatch.setattr(runner.executors, "on_this_machine", lambda jobs: half_failing)
    monkeypatch.setattr(verification.keep, "__defaults__", (tmp_path / "verify.toml",))
    assert command_line.main(["verify", listed.id, "--sample", "4", "--keep"]) == 1
    assert capsys.readouterr().out.count("failed: ValueError: no") == 2
    kept = verification.kept(tmp_path / "verify.toml")[listed.id]
    assert (kept["rows"], kept["equal"]) == (2, 2)


def test_a_data_set_that_is_missing_stops_it_before_the_first_run(listed, monkeypatch):
    runner.run(listed, execute=here)
    monkeypatch.setattr(listed.module, "READS", ("kin40k",), raising=False)
    monkeypatch.setattr(datasets, "load", missing)
    with pytest.raises(datasets.DataNotFoundError, match="kin40k"):
        next(verification.verify(listed, execute=here))


def test_what_is_kept_speaks_of_studies_that_are_there():
    kept = verification.kept()
    assert set(kept) <= set(runner.studies()) and kept
    for study_id, entry in kept.items():
        assert 0 < entry["rows"] <= len(tables.read_rows(runner.load(study_id)))
        assert entry["equal"] <= entry["compared"] <= entry["rows"]
        assert entry["rates_equal"] <= entry["rated"] <= entry["rows"]
        assert (entry["compared"] == 0) == (study_id == "gp_scaling")


def test_rows_of_the_tables_of_many_classes_come_out_again():
    table = runner.load("villacampa_whole")
    cheapest = sorted(tables.read_rows(table), key=lambda row: float(row["seconds"]))[:CHEAPEST]
    inputs = {runner.key(run): run for run in table.runs()}
    for row in cheapest:
        again = runner.Run(table.module.__name__)(inputs[tables.row_key(table, row)])
        found = verification.difference(table, row, again)
        assert found.rates_equal and found.largest < DRIFT, found
