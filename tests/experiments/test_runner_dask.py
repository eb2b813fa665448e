"""The runner on a real Dask cluster: two worker processes, one of which dies in mid-run."""

import importlib
import os
import signal
import sys
from unittest.mock import Mock

import pytest

from figures.experiments import executors, runner

distributed = pytest.importorskip("distributed")

STUDY = '''
"""A study for a cluster."""
import os, pathlib, time

OUTPUTS = ("square", "worker")

def grid():
    return [{"number": number} for number in range(30)]

def compute(number):
    time.sleep(0.1)
    if number == 7:
        raise ValueError("seven")
    if number == 11 and os.environ.get("STUDY_KILLS"):
        os.kill(os.getpid(), 9)
    return {"square": number * number, "worker": os.getpid()}
'''


@pytest.fixture
def study(tmp_path, monkeypatch):
    (tmp_path / "study_for_dask.py").write_text(STUDY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.setattr(executors, "SECONDS_TO_CONNECT", 60)
    yield runner.Study("study_for_dask", importlib.import_module("study_for_dask"), tmp_path / "results")
    del sys.modules["study_for_dask"]


def cluster(**options):
    """Two worker processes with a thread each, on this machine."""
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "processes": True}
    return distributed.LocalCluster(**{**settings, **options})


def test_a_worker_that_dies_loses_and_doubles_nothing(study):
    def kill_one_after_four_rows(function, items):
        for count, row in enumerate(executors.on_dask(workers.scheduler_address)(function, items)):
            if count == 4:
                os.kill(row["worker"], signal.SIGKILL)
            yield row

    with cluster() as workers:
        assert runner.run(study, execute=kill_one_after_four_rows) == (30, 1)
    rows = runner.read_rows(study)
    assert [row["number"] for row in rows] == [str(number) for number in range(30)]
    assert [row["square"] for row in rows] == ["" if number == 7 else str(number**2) for number in range(30)]
    assert len({row["worker"] for row in rows} - {""}) >= 2, "one worker did everything"
    assert rows[7]["error"].startswith("ValueError: seven (study_for_dask.py, line")
    assert str(os.getpid()) not in {row["worker"] for row in rows}


def test_a_run_that_kills_its_worker_is_a_failed_run(study, monkeypatch):
    """One death is enough here, so that the other worker is left for the rest: a busy machine may start no new one in time."""
    monkeypatch.setenv("STUDY_KILLS", "1")
    with cluster() as workers, distributed.Client(workers.scheduler_address) as client:
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
        assert runner.run(study, execute=executors.on_dask(workers.scheduler_address)) == (30, 2)
    rows = runner.read_rows(study)
    assert len(rows) == 30
    assert rows[11]["error"].startswith("KilledWorker:")


def test_workers_with_several_threads_are_refused(study):
    with (cluster(n_workers=1, threads_per_worker=2, processes=False) as workers,
          pytest.raises(ValueError, match=r"more than one thread.*--nthreads 1")):
        runner.run(study, execute=executors.on_dask(workers.scheduler_address))
    assert runner.read_rows(study) == []


def test_workers_that_cannot_import_the_study_are_refused():
    with (cluster(n_workers=1, processes=False) as workers,
          pytest.raises(ValueError, match=r"cannot import no_such_study: .* in the folder of this repository")):
        list(executors.on_dask(workers.scheduler_address)(runner.Run("no_such_study"), [{"number": 1}]))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "no address"])
def test_no_scheduler(study, monkeypatch, address):
    monkeypatch.setattr(executors, "SECONDS_TO_CONNECT", 1)
    with pytest.raises(ValueError, match=r"no Dask scheduler.*dask scheduler"):
        runner.run(study, execute=executors.on_dask(address))


def test_a_scheduler_without_workers_is_left(study, monkeypatch):
    client = Mock(wait_for_workers=Mock(side_effect=TimeoutError("no worker")))
    monkeypatch.setattr(distributed, "Client", lambda address, timeout: client)
    with pytest.raises(ValueError, match=r"no Dask scheduler with a worker"):
        runner.run(study, execute=executors.on_dask("tcp://127.0.0.1:1"))
    client.close.assert_called_once_with()


def test_without_the_package(study, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match="pip install distributed"):
        runner.run(study, execute=executors.on_dask("tcp://127.0.0.1:1"))
