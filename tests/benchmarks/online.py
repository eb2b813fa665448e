"""Time and memory of online learning from a stream.

    python tests/benchmarks/online.py [--rows 100000] [--budget 100]

For each likelihood a process of its own, with one BLAS thread, learns from a stream of 8 inputs with a budget of basis
vectors. Printed after every tenth of the rows: processor time, which on one thread is the time on the clock of an idle
machine, the peak resident memory, and the error on rows to come. Nothing here is a test.
"""

import argparse
import os
import resource
import subprocess
import sys
import time

LIKELIHOODS = ("gaussian", "probit")
ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}


def learn(name, rows, budget):
    import numpy as np

    from pepcore import Gaussian, Probit, SquaredExponential, online
    from pepcore.datasets import generators

    classes = name == "probit"
    state = online.start(SquaredExponential(1.0, 2.0), Probit() if classes else Gaussian(0.1), budget=budget)
    report, seconds = max(rows // 10, 1), 0.0
    for block in generators.stream(seed=0, rows=rows, block=report):
        y = np.where(block.y > 0, 1.0, -1.0) if classes else block.y
        error = "-"
        if state.seen:
            mean, _ = state.predict_f(block.X[:2000])
            error = f"{np.mean(np.sign(mean) != y[:2000]) if classes else np.mean((mean - y[:2000]) ** 2):.4f}"
        start = time.process_time()
        state = online.update(state, block.X, y)
        seconds += time.process_time() - start
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name:>10}{state.seen:>10}{seconds:>10.1f} s{megabytes:>8.0f} MB{error:>10}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--worker", choices=LIKELIHOODS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        learn(options.worker, options.rows, options.budget)
        return
    print(f"{'likelihood':>10}{'rows':>10}{'time':>12}{'memory':>11}{'error':>10}")
    for name in LIKELIHOODS:
        command = [sys.executable, __file__, "--worker", name]
        command += ["--rows", str(options.rows), "--budget", str(options.budget)]
        subprocess.run(command, check=True, env={**os.environ, **ONE_THREAD})


if __name__ == "__main__":
    main()
