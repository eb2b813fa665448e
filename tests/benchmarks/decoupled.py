"""Time of a step with decoupled bases on a mini-batch.

    python tests/benchmarks/decoupled.py [--gamma 700] [--beta 300] [--rows 10000] [--batch 1024] [--steps 20]

For each basis and rule a process of its own, with one BLAS thread, takes steps that learn q, the kernel, both sets of
points and the noise, 64 columns of K_gamma each. Printed: processor time a step (on one thread the time on the clock of an
idle machine), minimum and median, and the peak resident memory. Nothing here is a test.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

CASES = ("coupled-adam", "coupled-natural", "hybrid-adam", "orthogonal-adam", "orthogonal-natural", "decoupled-adam")
ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
INPUTS = 8


def measure(case, options):
    import numpy as np

    from pepcore import Gaussian, SquaredExponential, decoupled

    basis, rule = case.split("-")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((options.rows, INPUTS))
    y = np.sin(X[:, 0]) + np.cos(X[:, 1]) + 0.3 * rng.standard_normal(options.rows)
    places = rng.permutation(options.rows)
    beta, gamma = X[places[: options.beta]], X[places[options.beta : options.beta + options.gamma]]
    gamma = {"coupled": None, "decoupled": np.vstack([gamma, beta])}.get(basis, gamma)
    moments = []
    decoupled.infer(
        SquaredExponential(1.0, np.full(INPUTS, 2.0)), beta, gamma, X, y, Gaussian(0.1),
        basis=basis, natural=rule == "natural", steps=options.steps + 2, batch=options.batch, columns=64,
        optimise=("kernel", "beta", "gamma", "likelihood"), callback=lambda _: moments.append(time.process_time()),
    )  # fmt: skip
    seconds = [after - before for before, after in zip(moments[1:-1], moments[2:], strict=True)]  # the first one warms up
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{case:>20}{min(seconds):>10.4f}{statistics.median(seconds):>10.4f} s{megabytes:>8.0f} MB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in {"gamma": 700, "beta": 300, "rows": 10_000, "batch": 1024, "steps": 20}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--worker", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        measure(options.worker, options)
        return
    print(f"{'basis and rule':>20}{'least':>10}{'median':>10}{'memory':>13}")
    for case in CASES:
        command = [sys.executable, __file__, "--worker", case, *sys.argv[1:]]
        subprocess.run(command, check=True, env={**os.environ, **ONE_THREAD})


if __name__ == "__main__":
    main()
