"""Run the scripts of this folder and compare what they print.

    python tests/benchmarks/peers/collect.py          run all, each in its own environment; write values.json and shared.csv

The environments are named by the settings of `environments.py`; the values of a package that is absent stay as they are.
`shared.csv` and `decoupled.csv` are tables of the page. The first holds each number that two packages share, its value in both
and a bound on the relative difference, a power of ten at least three times what was found. The second holds the three
bounds of the orthogonally decoupled model.
"""

import csv
import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
VALUES, SHARED, DECOUPLED = HERE / "values.json", HERE / "shared.csv", HERE / "decoupled.csv"
sys.path.insert(0, str(HERE.parent))

from environments import ENVIRONMENTS, ONE_THREAD, python_of  # noqa: E402

QUANTITIES = {
    "exact": "exact regression, log evidence",
    "exact_mean": "exact regression, predictive mean of y",
    "exact_variance_y": "exact regression, predictive variance of y",
    "fitc": "FITC, log evidence",
    "pep": "Power EP, α = 0.5, log evidence",
    "vfe": "VFE, log evidence",
    "mean": "VFE, mean of f",
    "vfe_bare": "VFE without jitter, log evidence",
    "mean_bare": "VFE without jitter, mean of f",
    "variance_without_h": "VFE without jitter, variance of f less h",
    "corrected_mean": "FITC without jitter, mean of f; GPyTorch's default after VFE",
    "variance": "VFE, variance of f",
    "log_density": "VFE, log density of new y",
    "learn": "VFE, log evidence after learning kernel and noise",
    "learn_bare": "VFE without jitter, log evidence after learning",
    "learn_exact": "exact regression, log evidence after learning",
    "vi_probit": "sparse probit, variational bound",
    "vi_probability": "sparse probit, probabilities",
    "ep_probit": "exact probit, log evidence of EP",
    "ep_probability": "exact probit, probabilities of EP",
    "natural_gaussian": "one natural step of length 1, Gaussian noise, bound",
    "natural_probit": "three natural steps of length 0.5, probit, bounds",
    "classes": "three classes, robust-max, bound",
    "classes_probabilities": "three classes, robust-max, probabilities",
}


def run(script, python):
    """What a script prints of itself, as a dict with "version" and "values"."""
    done = subprocess.run(
        [python, script], cwd=HERE, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{script} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def collect():
    """Renew values.json with every package whose environment is here."""
    stored = json.loads(VALUES.read_text()) if VALUES.exists() else {}
    for name, environment in ENVIRONMENTS.items():
        python = python_of(name)
        if python is None:
            print(f"{name}: left out, set {environment.setting} to its interpreter")
            continue
        found = run(f"with_{name}.py", python)
        stored[name] = {key: found[key] for key in ("package", "version", "values")}
        print(f"{found['package']} {found['version']}: {len(found['values'])} values")
    VALUES.write_text(json.dumps(stored, indent=1) + "\n")
    return stored


def relative_difference(theirs, ours):
    """Largest difference of two numbers or arrays over the largest of the first in absolute value."""
    theirs, ours = np.asarray(theirs), np.asarray(ours)
    return float(np.max(np.abs(theirs - ours)) / np.max(np.abs(theirs)))


def bound_of(difference):
    """The smallest power of ten that is at least three times `difference`, and not below 1e-10."""
    return 10.0 ** max(-10, math.ceil(math.log10(3 * difference + 1e-300)))


def rows(stored):
    """(quantity, package, bound) for every number that a package shares with pepcore."""
    ours = stored["pepcore"]["values"]
    for key in QUANTITIES:
        for name, entry in stored.items():
            if name != "pepcore" and key in entry["values"]:
                yield key, name, bound_of(relative_difference(entry["values"][key], ours[key]))


def shared(stored):
    """The lines of shared.csv: one number of each quantity, the first if there are several, with the digits that it shares."""
    yield ["Quantity", "Package", "Its value", "pepcore", "Difference below"]
    for key, name, bound in rows(stored):
        digits = min(10, max(2, round(-math.log10(bound)) + 1))
        values = [np.ravel(stored[package]["values"][key])[0] for package in (name, "pepcore")]
        yield [QUANTITIES[key], stored[name]["package"], *(f"{value:.{digits}g}" for value in values), f"{bound:.0e}"]


def decoupled(stored):
    """The lines of decoupled.csv."""
    theirs, ours = stored["gpytorch"]["values"], stored["pepcore"]["values"]
    yield ["What", "Value"]
    yield ["what GPyTorch reports at its optimum", f"{theirs['decoupled']:.3f}"]
    yield ["the paper's bound for the q of GPyTorch", f"{theirs['decoupled_of_paper']:.3f}"]
    yield ["the paper's bound for the q of pepcore", f"{ours['decoupled']:.3f}"]


def as_csv(lines):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


if __name__ == "__main__":
    found = collect()
    SHARED.write_text(as_csv(shared(found)), encoding="utf-8")
    DECOUPLED.write_text(as_csv(decoupled(found)), encoding="utf-8")
