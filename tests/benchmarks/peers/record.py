"""What a script prints of itself: one JSON object with the version of the package and its values."""

import json

import numpy as np


def show(package, version, values):
    """Print `values`, a dict of numbers and arrays, with all their digits."""
    plain = {name: np.asarray(value, dtype=float).tolist() for name, value in values.items()}
    print(json.dumps({"package": package, "version": version, "values": plain}))
