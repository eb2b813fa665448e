"""Studies that are made up for the tests, and ways to run them and to read their rows."""

from figures.experiments import runner
from pepcore import datasets

STUDY = '''
"""A study for the tests."""
import os, time, pathlib
from threadpoolctl import threadpool_info
import numpy

OUTPUTS = ("product", "threads")
CALLS = os.environ.get("STUDY_CALLS")

def grid():
    return [{"name": name, "split": split, "alpha": alpha}
            for split in range(3) for name in ("a", "b, c") for alpha in (0.1, 1 / 3)]

def compute(name, split, alpha):
    while split and os.environ.get("STUDY_HOLDS"):      # until it is killed
        time.sleep(1)
    if CALLS:
        with open(CALLS, "a") as stream:
            stream.write("x")
    if os.environ.get("STUDY_FAILS") and split == 1:
        raise RuntimeError("first line\\nsecond, line")
    threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    return {"product": numpy.float64(split * alpha), "threads": threads}
'''
COUNTING = '''
"""Many short runs."""
import os

OUTPUTS = ("root",)

def grid():
    return [{"number": number} for number in range(150)]

def compute(number):
    with open(os.environ["STUDY_CALLS"], "a") as stream:
        stream.write("x")
    return {"root": number ** 0.5}
'''


def here(function, items):
    """Runs in this process, the last first: an executor may take any order."""
    return (function(item) for item in reversed(list(items)))


def calls(study):
    file = study.folder.parent / "calls"
    return len(file.read_text()) if file.exists() else 0


def values(study):
    """The file without what differs between two machines or days."""
    return [{name: text for name, text in row.items() if name not in ("seconds", "check")}
            for row in runner.read_rows(study)]


def missing(name):
    raise datasets.DataNotFoundError(name)
