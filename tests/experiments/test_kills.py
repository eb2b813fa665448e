"""A study that is killed with all its might: no row is lost, no worker is left behind."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import ROOT
from made_up import COUNTING
from processes import left_of, processes_of

from figures.experiments import inspection, runner

# a run takes longer than to write its row, so that few of them wait for that when the process is killed
RUNS = COUNTING.replace("    return {", "    import time; time.sleep(0.02)\n    return {")
SCRIPT = """
    import os, pathlib, random, signal, sys
    import counting_study
    from figures.experiments import executors, runner

    os.fsync = lambda descriptor: None      # a killed process loses nothing that the system holds; a slow disk must not count
    count = 0

    def kill_at(event, arguments):
        # every time the study's folder is touched is a moment to be killed at
        global count
        if event in ("open", "os.rename", "os.remove", "os.truncate") and "results" in str(arguments[0]):
            count += 1
            if count == int(sys.argv[1]):
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(kill_at)
    counting = runner.Study("counting_study", counting_study, pathlib.Path("results"))
    runner.run(counting, execute=executors.on_this_machine(int(sys.argv[2])))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "counting_study.py").write_text(RUNS)
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.setenv("STUDY_CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("PEPCORE_PROGRESS", "0")
    return tmp_path


def killed(folder, event, jobs):
    """Run the study until its process is killed at the event of that number; returns its process group."""
    process = subprocess.Popen([sys.executable, "script.py", str(event), str(jobs)], cwd=folder, start_new_session=True)
    assert process.wait() == -signal.SIGKILL
    return process.pid


@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_at_random_events(folder, jobs):
    import counting_study

    study = runner.Study("counting_study", counting_study, folder / "results")
    rng, rows = random.Random(jobs), 0
    for _ in range(10):
        group = killed(folder, rng.randrange(1, 40), jobs)
        assert left_of(group) == []
        found = inspection.inspect(study)
        assert not found.problems, found.complaint(study)
        assert len(found.rows) >= rows, "a row was lost"
        rows = len(found.rows)
    assert 0 < rows < 150
    before = {row["number"]: row for row in found.rows}
    runner.run(study, execute=map)
    after = {row["number"]: row for row in runner.read_rows(study)}
    assert list(after) == [str(number) for number in range(150)]
    assert all(after[number] == row for number, row in before.items())
    calls = len((folder / "calls").read_text())
    assert 150 <= calls <= 150 + 10 * (2 * jobs + 1), "hardly a run was computed twice"


def test_workers_that_have_no_work_end_too(folder):
    """One run under way, the other worker idle: both are gone soon after their parent."""
    (folder / "counting_study.py").write_text(RUNS.replace("range(150)", "range(1)").replace("sleep(0.02)", "sleep(600)"))
    process = subprocess.Popen([sys.executable, "script.py", "0", "2"], cwd=folder, start_new_session=True)
    while not ((folder / "calls").exists() and len(processes_of(process.pid)) >= 3):
        assert process.poll() is None
        time.sleep(0.1)
    process.kill()
    process.wait()
    assert left_of(process.pid) == []


def test_a_row_that_the_system_cuts_short_loses_nothing(folder):
    """As on a full disk, the system itself writes a part of a row and then refuses the rest."""
    import counting_study

    limited = """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
    """
    (folder / "script.py").write_text(textwrap.dedent(limited) + textwrap.dedent(SCRIPT))
    ended = subprocess.run([sys.executable, "script.py", "0", "1"], cwd=folder, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert "counting_study.csv could not be written: File too large; what was finished before is kept" in ended.stderr
    study = runner.Study("counting_study", counting_study, folder / "results")
    before = runner.read_rows(study)
    assert 10 < len(before) < 150 and study.file.read_bytes().endswith(b"\n")
    assert study.file.stat().st_size > 9_000
    runner.run(study, execute=map)
    assert runner.read_rows(study)[:len(before)] == before and len(runner.read_rows(study)) == 150
