"""A stream of up to five million rows: what memory and time stochastic EP needs for it.

Three classes, eight inputs, M = 100 pseudo-inputs that the classes share, batches of 500 that are generated when they are asked
for; kernel, pseudo-inputs and noises are learnt on the way, one step for each batch. Every run is a process of its own, whose
memory is that of its interpreter and libraries too.
"""

import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from pepcore.kernels import SquaredExponential
from pepcore.multiclass.minibatch import fit_minibatch

ROWS, CLASSES, INPUTS, M, BATCH, TEST = (50_000, 500_000, 5_000_000), 3, 8, 100, 500, 10_000
OUTPUTS = ("peak_megabytes", "learning_seconds", "error_rate")


def grid():
    """The short streams first."""
    return [{"rows": rows} for rows in ROWS]


def compute(rows, size=M):
    """Peak memory of the process, processor seconds of learning, and the error on further rows."""
    command = [sys.executable, "-m", "figures.experiments.villacampa2017.rows", str(rows), str(size)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


class Stream:
    """Batches of rows whose class is the largest of three waves with a little noise, the same in every pass."""

    def __init__(self, rows, batch=BATCH, seed=0):
        self.rows, self.batch, self.seed = rows, batch, seed

    def __iter__(self):
        directions = np.random.default_rng(0).standard_normal((INPUTS, CLASSES)) / np.sqrt(INPUTS)
        rng = np.random.default_rng([1, self.seed])
        for _ in range(self.rows // self.batch):
            X = rng.standard_normal((self.batch, INPUTS))
            yield X, np.argmax(np.sin(2 * X @ directions) + 0.1 * rng.standard_normal((self.batch, CLASSES)), axis=1)


def _measured(rows, size):
    Z = np.random.default_rng(2).standard_normal((size, INPUTS))
    start = time.process_time()
    model = fit_minibatch(SquaredExponential(1.0, np.full(INPUTS, 2.0)), Z, Stream(rows), size=rows, classes=CLASSES,
                          spread=np.ones(INPUTS))
    seconds = time.process_time() - start
    ((X, y),) = Stream(TEST, TEST, seed=1)
    return {"error_rate": float(np.mean(model.predict_y(X).argmax(axis=1) != y)), "learning_seconds": float(f"{seconds:.3g}"),
            "peak_megabytes": round(_peak_megabytes())}


def _peak_megabytes():
    """Of this process. On Linux ru_maxrss may be that of the process which started it, so the kernel's own mark is read."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text()).group(1)) / 1024
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    print(json.dumps(_measured(*map(int, sys.argv[1:]))))
