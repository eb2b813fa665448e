"""Tests that need a large data set are left out with one line, and fail where the sets were said to be there."""

import os
import subprocess
import sys

import pytest
from conftest import NEEDS_DATA, ROOT, is_large

from pepcore.datasets import DataNotFoundError

LARGE = "tests/package/test_datasets.py::test_real_file_is_the_registered_one"


def outcome(tmp_path, **variables):
    """Status and words of a run of two tests, of which one needs a large set, on a machine without any."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PEPCORE_DATA", "CI")}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)} | variables
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"{LARGE}[mnist]", f"{LARGE}[yacht]"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("variables", [{}, {"CI": "true"}, {"PEPCORE_DATA": ""}])
def test_one_line_says_how_many_and_what_would_bring_them_back(tmp_path, variables):
    status, said = outcome(tmp_path, **variables)
    assert status == 0 and "1 passed, 1 skipped" in said
    assert [line for line in said.splitlines() if "left out" in line or "SKIPPED" in line] == [f"left out: 1 {NEEDS_DATA}"]


def test_a_large_set_in_the_cache_of_the_user_makes_no_difference(tmp_path):
    place = tmp_path / "pepcore/large/mnist.npz"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")
    status, said = outcome(tmp_path)
    assert status == 0 and "1 passed, 1 skipped" in said


def test_where_the_folder_is_named_a_missing_set_is_an_error(tmp_path):
    status, said = outcome(tmp_path, PEPCORE_DATA=str(tmp_path))
    assert status == 1 and "1 failed, 1 passed" in said
    assert "'mnist' is not on this machine" in said


@pytest.mark.parametrize(("name", "large"), [("mnist", True), ("yacht", False)])
def test_only_a_set_that_is_not_in_the_repository_may_be_missing(name, large):
    assert is_large(DataNotFoundError(f"the data set {name!r} is not on this machine and could not be fetched")) is large
