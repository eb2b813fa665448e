"""No corrupt row passes: every kind of damage is found, with file and line, and nothing that is good is lost."""

import errno
import os
import re

import pytest
from made_up import here

from figures import __main__ as command_line
from figures.experiments import inspection, runner, seals, tables

pytest_plugins = ["study_fixtures"]


def row(lines, number, **changes):
    """The lines with cells of one row changed and its check made to fit again, as somebody does who means to deceive."""
    names, cells = lines[0].split(","), next(inspection.csv.reader([lines[number]]))
    changed = dict(zip(names, cells)) | changes
    changed["check"] = inspection.check(changed)
    line = ",".join(f'"{text}"' if "," in text else text for text in changed.values())
    return [*lines[:number], line, *lines[number + 1:]]


def at(number, change):
    """A function that changes one line of the file."""
    return lambda lines: [*lines[:number], change(lines[number]), *lines[number + 1:]]


# what happens to the file as a list of lines, the names of the columns first; the line that must be named; what is said of it
DAMAGES = {
    "a line cut off in mid-file": (at(3, lambda line: line[:12]), 4, "cells for 13 columns"),
    "two lines in one": (lambda lines: [*lines[:3], lines[3] + lines[4], *lines[5:]], 4, "cells for 13 columns"),
    "an empty line": (lambda lines: [*lines[:5], "", *lines[5:]], 6, "0 cells for 13 columns"),
    "a quote that does not end": (at(3, lambda line: '"' + line), 4, "cells for 13 columns"),
    "an altered number": (at(4, lambda line: line.replace("0.", "0.9", 1)), 5, "its check is"),
    "an altered check": (at(4, lambda line: line[:-8] + "deadbeef"), 5, "its check is deadbeef"),
    "text in a number": (lambda lines: row(lines, 7, product="0.3x"), 8, "product is '0.3x', where a number must stand"),
    "a blank number": (lambda lines: row(lines, 7, product=""), 8, "product is '', where a number must stand"),
    "a number out of its range": (lambda lines: row(lines, 7, seconds="-1.0"), 8, "seconds is -1.0, and must be from 0"),
    "a number that is none": (lambda lines: row(lines, 7, seconds="nan"), 8, "seconds is nan, and must be"),
    "a doubled row": (lambda lines: [*lines, lines[2]], 14, "line 3 holds the same run, name = a, split = 0"),
    "a row off the grid": (lambda lines: row(lines, 2, split="7"), 3, "no run with name = a, split = 7"),
    "a commit that is none": (lambda lines: row(lines, 2, commit="yesterday"), 3, "commit is 'yesterday'"),
    "a fingerprint that is none": (lambda lines: row(lines, 2, code="123"), 3, "code is '123'"),
    "a row taken out": (lambda lines: [*lines[:4], *lines[5:]], 12, "ends here with 11 rows, but 12 were written"),
    "the last row taken out": (lambda lines: lines[:-1], 12, "ends here with 11 rows, but 12 were written"),
    "an altered number whose check fits": (lambda lines: row(lines, 4, product="0.5"), 13, "not those that were written"),
    "rows moved": (lambda lines: [lines[0], *lines[:0:-1]], 13, "not those that were written"),
    "nothing left": (lambda lines: [], 1, "ends here with 0 rows, but 12 were written"),
}


@pytest.fixture
def whole(listed):
    runner.run(listed, execute=here)
    return listed


def damage(study, change):
    text = study.file.read_text(encoding="utf-8")
    study.file.write_text("".join(line + "\n" for line in change(text.splitlines())), encoding="utf-8")


def every_command_says(study, expected, capsys, file=None):
    """Whoever reads the table fails, and names the file with what is expected."""
    expected = rf"{re.escape(str(file or study.file))}, {expected}"
    for command in ("run", "status", "verify"):
        assert command_line.main([command, study.id]) != 0
        output = capsys.readouterr()
        assert re.search(expected, output.out + output.err), (command, output)
    with pytest.raises(ValueError, match=expected):
        runner.read_rows(study)


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_named_with_file_line_and_remedy_and_can_be_mended(whole, kind, capsys):
    change, line, said = DAMAGES[kind]
    before = runner.read_rows(whole)
    damage(whole, change)
    damaged = whole.file.read_bytes()
    expected = rf"line {line}: .*{re.escape(said)}.*restore the .* from the version control"
    every_command_says(whole, expected, capsys)
    assert whole.file.read_bytes() == damaged, "nobody has changed the file"

    assert command_line.main(["mend", whole.id]) == 0
    capsys.readouterr()
    kept = runner.read_rows(whole)
    deceived = kind.endswith("check fits")
    assert deceived or all(row in before for row in kept)
    assert len(kept) >= (0 if kind == "nothing left" else 10)
    runner.run(whole, execute=here)
    assert [r["split"] for r in runner.read_rows(whole)] == [r["split"] for r in before]


def test_what_is_set_aside_is_kept(whole):
    bad = whole.file.read_bytes().split(b"\n")[5][:15]
    damage(whole, at(5, lambda line: line[:15]))
    aside, number = tables.mend(whole)
    assert (aside.read_bytes(), number) == (bad + b"\n", 1)
    assert len(runner.read_rows(whole)) == 11


def test_a_last_row_that_only_lacks_its_end_of_line_is_kept(whole):
    before = runner.read_rows(whole)
    whole.file.write_bytes(whole.file.read_bytes().rstrip(b"\n"))
    assert runner.read_rows(whole) == before
    assert runner.run(whole, execute=here) == (0, 0)
    assert runner.read_rows(whole) == before


@pytest.mark.parametrize("failed_first", [True, False])
def test_of_a_run_that_a_merge_doubled_the_good_row_stays(whole, failed_first):
    good = runner.read_rows(whole)[3]

    def double(lines):
        failed = row(lines, 4, product="", threads="", error="RuntimeError: no")[4]
        pair = [failed, lines[4]] if failed_first else [lines[4], failed]
        return [*lines[:4], *pair, *lines[5:]]

    damage(whole, double)
    assert tables.mend(whole)[1] == 1
    assert runner.read_rows(whole)[3] == good


def test_a_table_without_its_seal(whole, capsys):
    seals.file_of(whole.file).unlink()
    damage(whole, lambda lines: [*lines[:4], *lines[6:]])
    every_command_says(whole, r"line 11: the table has rows but no seal \(.*\.seal\)", capsys)
    tables.mend(whole)
    assert runner.run(whole, execute=here) == (2, 0)


@pytest.mark.parametrize("wrong", [b"\xff\xfe", "é".encode("latin-1"), b"\x80"])
def test_another_encoding(whole, wrong, capsys):
    whole.file.write_bytes(whole.file.read_bytes().replace(b"\na,1", b"\na" + wrong + b",1", 1))
    every_command_says(whole, r"line \d+: this line is not UTF-8 \(byte 2 is 0x", capsys)


def test_another_encoding_of_the_whole_file(whole, capsys):
    whole.file.write_bytes(whole.file.read_text(encoding="utf-8").encode("utf-16"))
    every_command_says(whole, "line 1: the file has the columns", capsys)


def test_several_problems_are_all_said(whole):
    damage(whole, lambda lines: [lines[0], *(line[:9] for line in lines[1:])])
    with pytest.raises(ValueError, match=r"(?s)line 2: .*line 6: .*and 7 more"):
        runner.read_rows(whole)


def test_only_an_output_that_may_have_gaps_may_be_nan():
    numeric, row = {"noise": (0, 1)}, {"noise": "nan", "error": "", "commit": "", "code": "", "data_hash": ""}
    assert "noise is nan" in inspection._problem_of_cells(row, numeric, gaps=())
    assert inspection._problem_of_cells(row, numeric, gaps=("noise",)) == ""


@pytest.mark.parametrize("text", ["twelve\n", ""])
def test_a_seal_that_is_none(whole, text, capsys):
    seals.file_of(whole.file).write_text(text)
    every_command_says(whole, "line 1: this is no seal of a table; restore the file", capsys, seals.file_of(whole.file))


@pytest.mark.parametrize(("count", "whole_to_it"), [(12, True), (11, True), (10, False), (0, False)])
def test_one_row_may_not_be_sealed_yet_but_not_more(whole, capsys, count, whole_to_it):
    checks = [row["check"] for row in runner.read_rows(whole)]
    seals.file_of(whole.file).write_text(f"{count} {seals.digest(checks[:count])}\n")
    if whole_to_it:
        assert len(runner.read_rows(whole)) == 12
    else:
        every_command_says(whole, rf"line 13: the table has 12 rows, but {count} were written .*older than the table", capsys)


def test_while_a_table_is_replaced_its_seal_fits_the_old_one_and_the_new_one(tmp_path):
    table, old, new = tmp_path / "table.csv", ["a", "b", "c"], ["c", "a", "b"]
    for check in old:
        seals.extend(table, check)
    with seals.replaced(table, new):
        known = seals.read(table)
        assert seals.problem(table, old, known) == seals.problem(table, new, known) == ""
    known = seals.read(table)
    assert seals.problem(table, new, known) == "" and seals.problem(table, old, known)


@pytest.mark.parametrize(("write", "known"), [(tables.append, 11), (tables.put, 12)])
def test_a_table_is_whole_to_whoever_reads_it_while_a_row_is_written(whole, monkeypatch, write, known):
    """A row is added, or put in the place of another, after the reader has seen the seal and before it sees the table."""
    rows = runner.read_rows(whole)
    tables.write_rows(whole, rows[:known])
    look, meanwhile = inspection._inspected, [rows[-1] | {"seconds": "7.0"}]

    def looks_late(study, sealed):
        if meanwhile:
            write(study, meanwhile.pop())
        return look(study, sealed)

    monkeypatch.setattr(inspection, "_inspected", looks_late)
    found = inspection.inspect(whole)
    assert found.problems == [] and found.rows[-1]["seconds"] == "7.0" and len(found.rows) == 12


def test_a_table_that_is_gone_is_missed(whole, capsys):
    whole.file.unlink()
    every_command_says(whole, "line 1: the table is gone, and 12 rows were written .*; restore the file", capsys)
    assert seals.read(whole.file)[-1][0] == 12


def test_a_row_that_cannot_be_appended_says_what_to_do(whole):
    rows = runner.read_rows(whole)
    whole.file.unlink()
    with pytest.raises(OSError, match="what was finished before is kept"):
        tables.append(whole, rows[0])


@pytest.mark.parametrize("value", [None, ""])
def test_an_output_without_a_value_fails_its_run_alone(listed, monkeypatch, value):
    compute = listed.module.compute
    broken = lambda name, split, alpha: compute(name, split, alpha) | ({"product": value} if split == 1 else {})
    monkeypatch.setattr(listed.module, "compute", broken)
    assert runner.run(listed, execute=here) == (12, 4)
    said = f"ValueError: product is {value!r}; return a number, nan where there is none, or a text"
    assert all(row["error"].startswith(said) for row in runner.read_rows(listed) if row["split"] == "1")


def test_a_seal_that_a_merge_left_is_made_anew(whole):
    seals.file_of(whole.file).write_text("<<<<<<< HEAD\n12 ab\n=======\n12 cd\n>>>>>>> theirs\n")
    _, number = tables.mend(whole)
    assert number == 0 and len(runner.read_rows(whole)) == 12


def test_a_table_that_cannot_be_read_is_not_called_empty(whole, capsys):
    whole.file.write_text("nothing of this is a column\n")
    assert command_line.main(["status", whole.id]) == 2
    said = capsys.readouterr().out
    assert "the table cannot be read" in said and "missing, by" not in said and "0 of" not in said


def test_a_folder_that_may_not_be_written_to_names_the_file(whole, monkeypatch):
    def refused(self, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tables.filelock.FileLock, "acquire", refused)
    with pytest.raises(OSError, match=r"\.lock could not be written: Permission denied; .* may be written to"):
        tables.mend(whole)


def test_a_file_that_may_not_be_written_is_not_called_a_full_disk(tmp_path):
    with pytest.raises(OSError, match=r"could not be written: No such file.*See that .*gone is there"):
        seals.replace(tmp_path / "gone" / "table.csv", "")


def full_disk(descriptor):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_names_the_file_and_loses_nothing(study, monkeypatch):
    def filled(function, items):
        for count, item in enumerate(items):
            if count == 5:
                monkeypatch.setattr(os, "fsync", full_disk)
            yield function(item)

    with pytest.raises(OSError, match=rf"{study.file.name} could not be written: No space left.*Make room"):
        runner.run(study, execute=filled)
    assert sorted(path.suffix for path in study.folder.iterdir()) == [".csv", ".lock", ".seal"]      # and no draft
    assert len(runner.read_rows(study)) == 5
    with pytest.raises(OSError, match=r"\.owner could not be written: No space left.*Make room"):     # full before it begins
        runner.run(study, execute=here)
    monkeypatch.undo()
    assert len(runner.read_rows(study)) == 5


@pytest.mark.parametrize("study_id", runner.studies())
def test_every_committed_table_is_as_it_was_written_and_sealed_whole(study_id):
    table = runner.load(study_id)
    found = inspection.inspect(table)
    assert not found.problems, found.complaint(table)
    if found.rows:
        (line,) = seals.file_of(table.file).read_text(encoding="utf-8").splitlines()
        assert line == f"{len(found.rows)} {seals.digest([row['check'] for row in found.rows])}"
