"""A study that is made up for the tests, as the module, the folder and the command line know it."""

import os
import sys

import pytest
from joblib.externals.loky import get_reusable_executor
from made_up import STUDY

from figures.experiments import runner


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study of twelve runs in a folder of its own, importable by worker processes too."""
    name = f"study_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(STUDY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("STUDY_CALLS", str(tmp_path / "calls"))
    module = __import__(name)
    yield runner.Study(module.__name__, module, tmp_path / "results")
    del sys.modules[name]


@pytest.fixture
def listed(study, monkeypatch):
    monkeypatch.setattr(runner, "studies", lambda: [study.id])
    monkeypatch.setattr(runner, "load", lambda study_id: study)
    return study


@pytest.fixture
def fresh_workers():
    """joblib keeps its worker processes, which know only the folders and the settings of when they were started."""
    get_reusable_executor().shutdown(wait=True)
    yield
    get_reusable_executor().shutdown(wait=True)
