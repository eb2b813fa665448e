"""Time and memory of stochastic EP for many classes, on batches.

    python tests/benchmarks/multiclass.py

Each line is a process of its own with one BLAS thread: steps on batches of the size of MNIST (10 classes, 784 inputs,
M = 200, batches of 200, shared kernel and Z): seconds per step, all of it or the sites alone, the median over steps of
processor time, which on one thread is the time on the clock of an idle machine. A busy machine slows that too, so the step
is also given in units of one product of matrices (200 x 10 000) and (10 000 x 200), timed in turns with it. What a stream
of five million rows takes is a study of its own, `python -m figures run vil_rows`. Nothing here is a test.
"""

import argparse
import os
import resource
import subprocess
import sys
import time

ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}


def step(approximation):
    import numpy as np

    from pepcore.kernels import SquaredExponential
    from pepcore.multiclass.minibatch import fit_minibatch

    rng = np.random.default_rng(0)
    X, y = rng.random((2000, 784)), rng.integers(0, 10, 2000)
    for rate in (0.01, 0.0):
        spent, units, left, right = [], [], rng.random((200, 10_000)), rng.random((10_000, 200))
        start = [time.process_time()]

        def after(_, spent=spent, units=units, start=start, left=left, right=right):
            spent.append(time.process_time() - start[0])
            start[0] = time.process_time()
            left @ right
            units.append(time.process_time() - start[0])
            start[0] = time.process_time()

        arguments = {"approximation": approximation, "classes": 10, "epochs": 5, "rate": rate}
        kernel = SquaredExponential(1.0, np.full(784, 10.0))
        fit_minibatch(kernel, X[:200], (X, y), **arguments, callback=after)
        what = "a step" if rate else "sites alone"
        ratio = np.median(np.array(spent) / units)
        print(f"{approximation:>6} {what:>12}: median {np.median(spent):.4f} s, least {min(spent):.4f} s, {ratio:.2f} products, "
              f"{peak():.0f} MB", flush=True)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        step(options.worker)
        return
    for worker in ("sep", "ep", "vi"):
        command = [sys.executable, __file__, "--worker", worker]
        subprocess.run(command, check=True, env={**os.environ, **ONE_THREAD})


if __name__ == "__main__":
    main()
