"""Two processes that evaluate in turns, one with pepcore and one with GPy: what the benchmarks share.

Each has one BLAS thread, and while one works the other sleeps, so that both see the same machine. Each keeps to a core of
its own where there are several, so that neither finds the other's data in its cache, as no user would. A turn lasts at least a
tenth of a second and counts by its mean, as in `timeit`: right after a pause a fit of a few milliseconds takes half as long
again. Processor time on one thread is the time on the clock of an idle machine. GPy is installed once, into an environment
of its own in the user's cache.
"""

import os
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path

GPY = "GPy==1.15.0"
TURN = 0.1  # seconds
ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}


def work(evaluate):
    """A turn for each line on the standard input; prints seconds for one evaluation, peak megabytes and what came out."""
    import resource

    count = 0
    for _ in sys.stdin:
        before, start = count, time.process_time()
        while count == before or time.process_time() - start < TURN:
            values = evaluate(1e-7 * count)
            count += 1
        seconds = (time.process_time() - start) / (count - before)
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(seconds, megabytes, *values, flush=True)


class Worker:
    """A process that evaluates when asked: `script` with the arguments --worker side, size ..."""

    def __init__(self, script, python, side, size, core):
        command = [python, script, "--worker", side, *map(str, size)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **ONE_THREAD}
        )
        if core is not None:
            os.sched_setaffinity(self.process.pid, {core})
        self.seconds, self.megabytes, self.values = [], 0.0, ()

    def ask(self):
        print("again", file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker ended early: {self.process.args}")
        seconds, self.megabytes, *self.values = map(float, line.split())
        self.seconds.append(seconds)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def gpy_python():
    """The interpreter of an environment with GPy, made at first use."""
    import pooch

    folder = Path(pooch.os_cache("pepcore")) / "benchmarks" / GPY.replace("==", "-")
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"installing {GPY} into {folder}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", GPY], check=True)
        (folder / "complete").touch()
    return python


def race(script, size, repeats, gpy):
    """The workers, after one round to warm up and `repeats` rounds in turns, and the median seconds of each."""
    sides = [(sys.executable, "pepcore")] + ([(gpy, "gpy")] if gpy else [])
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [None]  # Linux only
    workers = [Worker(script, python, side, size, cores[-1 - i % len(cores)]) for i, (python, side) in enumerate(sides)]
    for _ in range(repeats + 1):
        for worker in workers:
            worker.ask()
    for worker in workers:
        worker.close()
    return workers, [statistics.median(worker.seconds[1:]) for worker in workers]
