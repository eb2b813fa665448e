"""The numbers that other packages share with pepcore: theirs as stored with their version, ours computed again."""

import csv
import json
import subprocess
import sys

import pytest
from conftest import ROOT

PEERS = ROOT / "tests/benchmarks/peers"
sys.path.insert(0, str(PEERS))

import collect  # noqa: E402

STORED = json.loads(collect.VALUES.read_text())
SHARED = list(collect.rows(STORED))


@pytest.fixture(scope="module")
def ours():
    """What with_pepcore.py prints now."""
    done = subprocess.run([sys.executable, "with_pepcore.py"], cwd=PEERS, capture_output=True, text=True, check=True,
                          env={**collect.os.environ, "PYTHONPATH": str(ROOT)})
    assert "Warning" not in done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])["values"]


@pytest.mark.parametrize(("key", "package", "bound"), SHARED, ids=[f"{key}-{package}" for key, package, _ in SHARED])
def test_our_value_is_theirs(ours, key, package, bound):
    assert bound <= 1e-4
    assert collect.relative_difference(STORED[package]["values"][key], ours[key]) < bound


def test_every_package_shares_numbers_and_names_its_version():
    assert {package for _, package, _ in SHARED} == {"gpflow", "gpy", "gpytorch", "sklearn"}
    assert len(SHARED) >= 30
    assert all(entry["version"][0].isdigit() for entry in STORED.values())


def test_a_wrong_value_is_found(ours):
    assert collect.relative_difference(STORED["gpflow"]["values"]["vfe"], ours["vfe"] * (1 + 2e-10)) > 1e-10


def test_the_page_shows_what_is_stored():
    for table, lines in {collect.SHARED: collect.shared(STORED), collect.DECOUPLED: collect.decoupled(STORED)}.items():
        with table.open(encoding="utf-8") as file:
            assert list(csv.reader(file)) == [list(line) for line in lines], table.name


def test_our_bound_of_the_decoupled_model_is_above_that_of_gpytorch(ours):
    theirs = STORED["gpytorch"]["values"]
    assert theirs["decoupled_slope"] < 1e-6  # it has converged
    assert theirs["decoupled"] < theirs["decoupled_of_paper"] < ours["decoupled"]
    assert ours["decoupled"] == pytest.approx(STORED["pepcore"]["values"]["decoupled"], rel=1e-8)


def test_the_estimators_run_as_the_page_shows():
    done = subprocess.run([sys.executable, "with_estimators.py"], cwd=PEERS, capture_output=True, text=True, check=False,
                          env={**collect.os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr


def test_the_page_shows_snippets_that_exist():
    """A marker that is missing would show nothing, or all of a script."""
    page = (ROOT / "chapters/from-other-packages.md").read_text(encoding="utf-8").split("```{literalinclude} ")[1:]
    assert len(page) >= 35
    for block in page:
        script, _, options = block.partition("\n")
        marker = options.split(':start-after: "')[1].split('"')[0]
        after = (ROOT / "chapters" / script).read_text(encoding="utf-8").split(marker + "\n")
        assert len(after) == 2, (script, marker)
        assert "# [end]" in after[1]
        assert "values" not in after[1].split("# [end]")[0], "the bookkeeping is no part of a snippet"
