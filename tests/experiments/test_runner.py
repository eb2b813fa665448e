"""The runner of studies: nothing finished is lost, nothing is computed twice."""

import contextlib
import importlib
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import filelock
import numpy as np
import pandas as pd
import pytest
import threadpoolctl
from made_up import COUNTING, STUDY, calls, here, missing, values

from figures import __main__ as command_line
from figures.experiments import executors, provenance, runner, tables
from pepcore import datasets

pytest_plugins = ["study_fixtures"]


def test_rows_hold_inputs_outputs_and_how_they_came_about(study):
    assert runner.run(study, execute=here) == (12, 0)
    rows = runner.read_rows(study)
    assert list(rows[0]) == ["name", "split", "alpha", "product", "threads", "seconds", "error", "versions",
                             "commit", "code", "data_hash", "machine", "check"]
    assert [runner.key(inputs) for inputs in study.runs()] == [(r["name"], r["split"], r["alpha"]) for r in rows]
    for row in rows:
        assert float(row["product"]) == int(row["split"]) * float(row["alpha"])      # every digit is kept
        assert float(row["seconds"]) >= 0
        assert f"numpy {np.__version__}" in row["versions"] and "pepcore" in row["versions"]


def test_a_row_names_the_code_that_ran_though_its_file_was_edited_meanwhile(study, monkeypatch):
    file, compute, later = Path(study.module.__file__), study.module.compute, STUDY.replace("split * alpha", "split + alpha")

    def edited(**inputs):
        file.write_text(later)
        return compute(**inputs)

    def code_of(text):
        file.write_text(text)
        for known in (provenance.code, provenance._definitions, provenance._actions, provenance._imports, provenance._tree):
            known.cache_clear()
        return provenance.code(study.id)

    monkeypatch.setattr(study.module, "compute", edited)
    runner.run(study, execute=here)
    assert {row["code"] for row in runner.read_rows(study)} == {code_of(STUDY)} != {code_of(later)}


def test_parallel_equals_serial(study, fresh_workers, tmp_path):
    runner.run(study, execute=here)
    parallel = runner.Study(study.id, study.module, tmp_path / "parallel")
    runner.run(parallel, execute=executors.on_this_machine(2))
    assert values(parallel) == values(study)


def test_one_blas_thread_per_run(study):
    with threadpoolctl.threadpool_limits(2):
        runner.run(study, execute=here)
    assert {row["threads"] for row in runner.read_rows(study)} == {"1"}


def test_finished_runs_are_not_computed_again(study):
    runner.run(study, splits=1, execute=here)
    assert calls(study) == 4
    assert runner.run(study, execute=here) == (8, 0)
    assert calls(study) == 12
    assert runner.run(study, execute=here) == (0, 0)
    assert calls(study) == 12


def test_a_row_is_on_the_disk_as_soon_as_it_is_finished(study):
    seen = []

    def watch(function, items):
        for item in items:
            yield function(item)
            seen.append(len(runner.read_rows(study)))

    runner.run(study, execute=watch)
    assert seen == list(range(1, 13))


def test_an_interrupt_keeps_what_is_finished(study):
    def interrupted(function, items):
        for _, item in zip(range(5), items):
            yield function(item)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.run(study, execute=interrupted)
    assert len(runner.read_rows(study)) == 5
    assert runner.run(study, execute=here) == (7, 0)


def test_ctrl_c_ends_a_run_that_takes_it_for_the_wish_to_stop_there(study, monkeypatch):
    whole = study.module.compute

    def stopped(**inputs):
        with contextlib.suppress(KeyboardInterrupt):    # as the learners of pepcore do
            signal.raise_signal(signal.SIGINT)
        return whole(**inputs)

    monkeypatch.setattr(study.module, "compute", stopped)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)       # a shell's background job ignores Ctrl-C
    try:
        with pytest.raises(KeyboardInterrupt):
            runner.run(study, execute=here)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert runner.read_rows(study) == []


def test_killed_in_mid_run(study, tmp_path, monkeypatch):
    """kill -9, with two workers that have begun new runs, then resume: the table of an undisturbed run."""
    whole = runner.Study(study.id, study.module, tmp_path / "whole")
    runner.run(whole, execute=here)
    (tmp_path / "calls").unlink()

    script = textwrap.dedent(f"""
        import pathlib, {study.module.__name__} as module
        from figures.experiments import executors, runner
        kept = runner.Study({study.id!r}, module, pathlib.Path({str(study.folder)!r}))
        runner.run(kept, execute=executors.on_this_machine(2))
    """)
    process = subprocess.Popen([sys.executable, "-c", script], start_new_session=True,
                               env={**os.environ, "STUDY_HOLDS": "yes", "PEPCORE_PROGRESS": "0"})
    while len(runner.read_rows(study)) < 4:         # all of the first split; those of the second wait to be killed
        assert process.poll() is None, "the study ended before it could be killed"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()

    assert len(runner.read_rows(study)) == calls(study) == 4
    assert runner.run(study, execute=here) == (8, 0)
    assert calls(study) == 12
    assert values(study) == values(whole)


def killed_at(count, function, last_act=lambda *given, **named: None):
    """`function`, but its process is killed when it is called for the count-th time, after a last act."""
    called = itertools.count(1)

    def mortal(*given, **named):
        if next(called) == count:
            last_act(*given, **named)
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given, **named)

    return mortal


def half_a_row(study, row):
    with study.file.open("a", encoding="utf-8") as stream:
        stream.write(f"{row['number']},0.5")


def half_a_table(study, rows):
    study.file.with_suffix(".csv.draft").write_text(study.file.read_text()[:20] if study.file.exists() else "num")


def test_killed_twenty_times_at_random_events(tmp_path, monkeypatch):
    """Before a run and after it, before its row is written, in mid-write and after it, and while the table is replaced."""
    (tmp_path / "counting_study.py").write_text(COUNTING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("STUDY_CALLS", str(tmp_path / "calls"))
    module = importlib.import_module("counting_study")
    whole = runner.Study(module.__name__, module, tmp_path / "whole")
    study = runner.Study(module.__name__, module, tmp_path / "results")
    runner.run(whole, execute=in_order)
    (tmp_path / "calls").unlink()
    # where it is killed, what it does last, and the runs and rows that this adds to those of the calls before
    events = [(module, "compute", None, 0, 0), (module, "compute", module.compute, 1, 0), (tables, "append", None, 1, 0),
              (tables, "append", half_a_row, 1, 0), (tables, "append", tables.append, 1, 1),
              (tables, "write_rows", half_a_table, 0, 0)]
    rng, runs, rows = np.random.default_rng(0), 0, 0
    for event in [*range(len(events)), *rng.integers(len(events), size=20 - len(events))]:
        place, name, last_act, more_runs, more_rows = events[event]
        count = 1 if name == "write_rows" else int(rng.integers(1, 8))
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):        # whatever happens, this process ends here
                setattr(place, name, killed_at(count, getattr(place, name), *filter(None, [last_act])))
                runner.run(study, execute=in_order)
            os._exit(0)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        runs, rows = runs + count - 1 + more_runs, rows + count - 1 + more_rows
        assert (calls(study), len(runner.read_rows(study))) == (runs, rows), events[event]
    assert rows < 150
    runner.run(study, execute=in_order)
    assert calls(study) == 150 + runs - rows
    assert values(study) == values(whole)


def in_order(function, items):
    return map(function, items)


def test_a_line_that_was_cut_off_is_computed_again(study, tmp_path):
    whole = runner.Study(study.id, study.module, tmp_path / "whole")
    runner.run(whole, execute=here)

    def cut_off(function, items):
        for count, item in enumerate(items):
            if count == 5:
                with study.file.open("a") as stream:
                    stream.write("b, c,1,0.")       # and then the power failed
                raise KeyboardInterrupt
            yield function(item)

    with pytest.raises(KeyboardInterrupt):
        runner.run(study, execute=cut_off)
    assert len(runner.read_rows(study)) == 5
    assert runner.run(study, execute=here) == (7, 0)
    assert values(study) == values(whole)


def test_results_before_the_first_run_are_an_empty_table(study, monkeypatch):
    monkeypatch.setattr(tables, "load", lambda study_id: study)
    empty = runner.results(study.id)
    assert len(empty) == 0
    runner.run(study, execute=here)
    assert len(runner.results(study.id)) == 12
    assert list(empty.columns) == list(runner.results(study.id).columns)


def test_failures_are_rows(study, monkeypatch):
    monkeypatch.setenv("STUDY_FAILS", "1")
    assert runner.run(study, execute=here) == (12, 4)
    failed = [row for row in runner.read_rows(study) if row["error"]]
    assert {row["split"] for row in failed} == {"1"}
    assert failed[0]["error"].startswith("RuntimeError: first line second, line (study_")
    assert failed[0]["product"] == ""
    assert runner.run(study, execute=here) == (0, 0)        # not again unless asked
    monkeypatch.delenv("STUDY_FAILS")
    assert runner.run(study, retry=True, execute=here) == (4, 0)
    assert not any(row["error"] for row in runner.read_rows(study))


def test_a_failed_run_keeps_its_row_until_it_is_computed_again(study, monkeypatch):
    monkeypatch.setenv("STUDY_FAILS", "1")
    runner.run(study, execute=here)
    kept = runner.read_rows(study)
    assert runner.run(study, retry=True, budget_minutes=0, execute=here) == (0, 0)
    assert runner.read_rows(study) == kept


def test_failed_runs_that_are_not_asked_for_keep_their_rows(study, monkeypatch):
    monkeypatch.setattr(study.module, "OUTPUTS", ("product",))
    assert runner.run(study, execute=here) == (12, 12)
    assert runner.run(study, splits=1, retry=True, execute=here) == (4, 4)
    assert len(runner.read_rows(study)) == 12


def test_wrong_outputs_are_a_failure(study, monkeypatch):
    monkeypatch.setattr(study.module, "OUTPUTS", ("product",))
    assert runner.run(study, execute=here) == (12, 12)
    assert "OUTPUTS are ['product']" in runner.read_rows(study)[0]["error"]


@pytest.mark.parametrize(("outputs", "said"), [
    ({"rmse": float("nan")}, "ValueError: rmse is nan, and must be from 0 to inf"),
    ({"error_rate_3": 1.5}, "ValueError: error_rate_3 is 1.5, and must be from 0 to 1"),
    ({"note": "two\nlines"}, "ValueError: note has more than one line")])
def test_outputs_that_could_not_be_read_again_are_a_failure(study, monkeypatch, outputs, said):
    monkeypatch.setattr(study.module, "OUTPUTS", tuple(outputs))
    monkeypatch.setattr(study.module, "compute", lambda **inputs: dict(outputs))
    assert runner.run(study, execute=here) == (12, 12)
    assert all(row["error"].startswith(said) for row in runner.read_rows(study))
    assert runner.run(study, execute=here) == (0, 0)


def test_a_long_cell_is_read_again(study, monkeypatch):
    monkeypatch.setattr(study.module, "compute", lambda **inputs: {"product": "x" * 200_000, "threads": 1})
    assert runner.run(study, execute=here) == (12, 0)
    assert len(runner.read_rows(study)[0]["product"]) == 200_000


def test_words_of_an_error_need_not_be_utf_8(study, monkeypatch):
    def no_such_file(**inputs):
        raise FileNotFoundError(os.fsdecode(b"pi\xf1a.csv"))

    monkeypatch.setattr(study.module, "compute", no_such_file)
    assert runner.run(study, execute=here) == (12, 12)
    assert "FileNotFoundError: pi" in runner.read_rows(study)[0]["error"]


def test_a_data_set_that_is_missing_stops_a_study_before_it_starts(study, monkeypatch):
    monkeypatch.setattr(study.module, "READS", ("kin40k",), raising=False)
    monkeypatch.setattr(datasets, "load", missing)
    with pytest.raises(datasets.DataNotFoundError, match="kin40k"):
        runner.run(study, execute=here)
    assert not study.file.exists()


def test_a_file_with_other_columns_is_left_alone(study):
    study.folder.mkdir()
    study.file.write_text("other,columns\n1,2\n")
    with pytest.raises(ValueError, match="has the columns other, columns, but the study now writes name, split"):
        runner.run(study, execute=here)
    assert study.file.read_text() == "other,columns\n1,2\n"


@pytest.mark.parametrize(("grid", "message"), [
    ([], "is empty"),
    ([{"a": 1}, {"a": 1}], "same inputs more than once"),
    ([{"a": 1}, {"b": 1}], "the same inputs, in the same order"),
])
def test_wrong_grids(study, monkeypatch, grid, message):
    monkeypatch.setattr(study.module, "grid", lambda: grid)
    with pytest.raises(ValueError, match=message):
        runner.run(study, execute=here)


def test_outputs_that_are_called_like_another_column(study, monkeypatch):
    monkeypatch.setattr(study.module, "OUTPUTS", ("product", "error"))
    with pytest.raises(ValueError, match=r"two columns would have one name: name, split, alpha, product, error, seconds, error"):
        runner.run(study, execute=here)


def test_splits_of_a_study_without_splits(study, monkeypatch):
    monkeypatch.setattr(study.module, "grid", lambda: [{"alpha": 0.5}])
    with pytest.raises(ValueError, match="has no splits"):
        study.runs(splits=2)


def test_no_run_is_started_after_the_budget(study, monkeypatch):
    """By a clock that each run puts on by 0.1 s: neither the disk nor a busy machine takes part."""
    clock = [0.0]
    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=lambda: clock[0], perf_counter=time.perf_counter))

    def ticking(function, items):
        for item in items:
            yield function(item)
            clock[0] += 0.1

    assert runner.run(study, budget_minutes=0.25 / 60, execute=ticking) == (3, 0)       # begun at 0, 0.1 and 0.2 s
    assert [row["split"] for row in values(study)] == ["0"] * 3       # the beginning of the grid
    assert runner.run(study, execute=here) == (9, 0)


def test_parallel_processes_keep_to_the_budget(study, fresh_workers, monkeypatch):
    """By a clock that passes the deadline as soon as one run has begun: two processes have taken two runs at most."""
    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=lambda: float(calls(study) > 0)))
    computed, failures = runner.run(study, execute=executors.on_this_machine(2), budget_minutes=0.5 / 60)
    assert 1 <= computed <= 2 and failures == 0


def test_two_runners_on_one_study(study):
    def second(function, items):
        with pytest.raises(ValueError, match=f"is being run by process {os.getpid()} on .* since 20"):
            runner.run(study, execute=here)
        assert f"process {os.getpid()}" in tables.owner_of(study)
        return here(function, items)

    assert runner.run(study, execute=second) == (12, 0)
    assert tables.owner_of(study) == ""


def test_who_only_asks_for_the_owner_stops_nobody(study, monkeypatch):
    monkeypatch.setattr(tables, "MOMENT", 10.0)     # on a busy machine the timer may come late
    tables.write_rows(study, [])
    lock = filelock.FileLock(tables._lock_file(study), thread_local=False)
    lock.acquire()
    threading.Timer(0.2, lock.release, [True]).start()
    assert runner.run(study, execute=here) == (12, 0)


def test_the_lock_of_a_killed_runner_stops_nobody(study):
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):        # whatever happens, this process ends here
            runner.run(study, execute=lambda function, items: os.kill(os.getpid(), signal.SIGKILL))
        os._exit(0)
    os.waitpid(child, 0)
    assert study.file.with_suffix(".owner").exists()        # it could not tidy up
    assert tables.owner_of(study) == ""
    assert runner.run(study, execute=here) == (12, 0)


def test_a_killed_worker_process_is_reported(fresh_workers):
    def killed(inputs):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RuntimeError, match="worker process was killed"):
        list(executors.on_this_machine(2)(killed, [1, 2, 3]))


# The command line -----------------------------------------------------------------------------------------------

def test_the_command_runs_a_study_and_says_what_is_done(listed, capsys):
    assert command_line.main(["run", listed.id, "--jobs", "1", "--splits", "2"]) == 0
    assert "computed 8 runs, 0 of them failed; 8 of 12 runs done" in capsys.readouterr().out


def test_the_command_lists_the_studies_with_their_titles(listed, capsys):
    assert command_line.main(["list"]) == 0
    assert " ".join(capsys.readouterr().out.split()) == f"{listed.id} A study for the tests."


def test_the_command_says_how_many_runs_are_done(listed, capsys):
    runner.run(listed, splits=2, execute=here)
    assert command_line.main(["status", listed.id]) == 0
    assert "8 of 12 runs done" in capsys.readouterr().out


def test_a_terminal_without_greek_letters_still_shows_the_rest():
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([sys.executable, "-m", "figures", "list"], env=environment, cwd=Path(__file__).parents[2],
                          capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert [line.split()[0] for line in done.stdout.decode("latin-1").splitlines()] == runner.studies()


def test_failed_runs_are_shown_and_make_the_command_fail(listed, capsys, monkeypatch):
    monkeypatch.setenv("STUDY_FAILS", "1")
    monkeypatch.setattr(executors, "on_this_machine", lambda jobs: here)
    assert command_line.main(["run", listed.id]) == 1
    assert f"computed again with `python -m figures run {listed.id} --retry`" in capsys.readouterr().err
    assert command_line.main(["status", listed.id]) == 0
    assert "failed: name = a, split = 1, alpha = 0.1: RuntimeError: first line" in capsys.readouterr().out


def test_why_a_run_failed_is_said_though_its_old_row_is_kept(listed, capsys, monkeypatch):
    runner.run(listed, execute=here)
    kept = runner.read_rows(listed)
    monkeypatch.setattr(runner, "is_stale", lambda study, row: True)
    monkeypatch.setenv("STUDY_FAILS", "1")
    assert runner.run(listed, stale=True, execute=here) == (12, 4)
    assert f"{listed.id}: name = a, split = 1, alpha = 0.1: failed: RuntimeError: first line" in capsys.readouterr().err
    assert [row for row in runner.read_rows(listed) if row["split"] == "1"] == [row for row in kept if row["split"] == "1"]


def test_status_says_what_is_missing_and_why(listed, capsys, monkeypatch):
    runner.run(listed, splits=2, execute=here)
    command_line.main(["status", listed.id])
    assert "missing, by name: a: 2, b, c: 2\nwhy: nobody has said" in capsys.readouterr().out
    monkeypatch.setattr(listed.module, "UNFINISHED", "it takes days", raising=False)
    command_line.main(["status", listed.id])
    assert "why: it takes days" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--jobs", "0"], ["--splits", "-1"], ["--budget-minutes", "0"],
                                     ["--budget-minutes", "nan"], ["--jobs", "2", "--scheduler", "tcp://here:1"]])
def test_wrong_options(listed, capsys, options):
    with pytest.raises(SystemExit):
        command_line.main(["run", listed.id, *options])
    assert "must be" in (message := capsys.readouterr().err) or "not allowed with" in message


def line(fig, results):
    fig.add_subplot().plot(results["product"].astype(float))


FIGURES = {"a": (line, (4, 3)), "b": (line, (3, 3))}


@pytest.fixture
def drawable(listed, tmp_path, monkeypatch):
    """A study with figures and results, in a folder in which nothing has been drawn."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(listed.module, "FIGURES", FIGURES, raising=False)
    runner.run(listed, execute=here)
    monkeypatch.setattr(runner, "results", lambda _: pd.DataFrame(runner.read_rows(listed)))
    return listed


def test_a_study_without_figures_is_refused(listed, capsys):
    assert command_line.main(["draw", listed.id]) == 2
    assert "has no figures of its own" in capsys.readouterr().err


def test_a_study_without_results_is_refused(listed, capsys, monkeypatch):
    monkeypatch.setattr(listed.module, "FIGURES", FIGURES, raising=False)
    assert command_line.main(["draw", listed.id]) == 2
    assert "has no results yet" in capsys.readouterr().err


def test_every_figure_is_drawn_and_may_be_drawn_again(drawable, capsys):
    for _ in range(2):      # what no one named may be replaced
        assert command_line.main(["draw", drawable.id]) == 0
        assert capsys.readouterr().out.split() == [f"_build/figures/{drawable.id}-{name}.png" for name in "ab"]


def test_one_figure_does_not_replace_another(drawable, capsys):
    for name in "ab":
        assert command_line.main(["draw", drawable.id, "--figure", name]) == 0
    assert capsys.readouterr().out.split() == [f"_build/figures/{drawable.id}-{name}.png" for name in "ab"]


def test_a_figure_goes_where_it_is_told(drawable, tmp_path):
    assert command_line.main(["draw", drawable.id, "--figure", "b", "--output", "mine.svg"]) == 0
    assert (tmp_path / "mine.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(("options", "words"), [(["--figure", "b", "--output", "mine.svg"], "there already: mine.svg"),
                                                (["--figure", "c"], "choose one of: a, b"),
                                                (["--output", "x.txt"], "must end in one of .png")])
def test_what_may_not_be_drawn_says_why(drawable, tmp_path, capsys, options, words):
    (tmp_path / "mine.svg").write_text("not to be lost")
    assert command_line.main(["draw", drawable.id, *options]) == 2
    assert words in capsys.readouterr().err
    assert (tmp_path / "mine.svg").read_text() == "not to be lost"


def test_a_reader_that_has_read_enough_is_no_error():
    """As `head` is, which closes the pipe."""
    lines = "import sys; from figures.__main__ import main; sys.exit(main(['claims']))"
    process = subprocess.Popen([sys.executable, "-c", lines], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == (b"", 141)


def test_the_help_of_a_command_explains_its_columns_and_exit_codes(capsys):
    with pytest.raises(SystemExit):
        command_line.main(["status", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "Undated: from before rows said which code computed them." in said and "130 interrupted" in said


def test_unknown_study(capsys):
    assert command_line.main(["run", "no_such_study"]) == 2
    assert "there is no study 'no_such_study'; choose one of" in capsys.readouterr().err


def test_every_study_of_the_book_can_be_loaded():
    assert runner.studies(), "no study was found"
    for study_id in runner.studies():
        study = runner.load(study_id)
        assert study.title and study.columns
