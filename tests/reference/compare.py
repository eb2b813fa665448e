"""Compare values computed anew with the stored ones, or store them: what the scripts of this folder share."""

import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent


def stored(file):
    """The arrays of a file of this folder, as a dict."""
    with np.load(FOLDER / file) as values:
        return dict(values)


def report(file, values):
    """Print the largest difference of each quantity from the stored one, relative to that one's largest entry.

    With --write on the command line the new values replace the stored ones.
    """
    old = stored(file)
    print(file)
    for name, value in values.items():
        difference = np.abs(np.asarray(value).reshape(old[name].shape) - old[name]).max() / np.abs(old[name]).max()
        print(f"    {name:32} {difference:8.1e}")
    if "--write" in sys.argv:
        shaped = {name: np.asarray(value, dtype=float).reshape(old[name].shape) for name, value in values.items()}
        np.savez_compressed(FOLDER / file, **(old | shaped))
