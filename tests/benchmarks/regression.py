"""Time and memory of sparse regression, beside GPy's Power EP in the same run.

    python tests/benchmarks/regression.py [--repeats 7] [--without-gpy]

For each size both packages evaluate log evidence and full gradient in turns. Printed are the medians of the processor
time, the peak resident memory of each process, their ratios, and the relative difference of the two log evidences. Then
comes a complete fit of the boston data. Nothing here is a test.
"""

import argparse
import os
import subprocess
import sys
import time

from beside_gpy import ONE_THREAD, gpy_python, race, work

SIZES = [(1_000, 5, 50), (10_000, 8, 200), (100_000, 8, 200)]


# --- the two sides: each returns a function that evaluates once more, at slightly other parameters --------------------


def problem(N, D, M):
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = np.sin(X.sum(1)) + 0.1 * rng.normal(size=N)
    return X, y, X[rng.choice(N, M, replace=False)].copy()


def pepcore_evaluation(N, D, M):
    import numpy as np

    from pepcore import power_ep
    from pepcore.kernels import SquaredExponential

    X, y, Z = problem(N, D, M)

    def evaluate(step):
        kernel = SquaredExponential(1.0 + step, np.ones(D))
        fit = power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=0.5)
        return fit.log_evidence, fit.gradient["noise"]

    return evaluate


def gpy_evaluation(N, D, M):
    import GPy
    from GPy.inference.latent_function_inference.pep import PEP

    X, y, Z = problem(N, D, M)
    likelihood = GPy.likelihoods.Gaussian(variance=0.1)
    kernel = GPy.kern.RBF(D, ARD=True)
    model = GPy.core.SparseGP(X, y[:, None], Z, kernel, likelihood, inference_method=PEP(alpha=0.5))

    def evaluate(step):
        model.kern.variance = 1.0 + step  # sets off inference and every gradient
        return float(model.log_likelihood().item()), float(model.likelihood.variance.gradient.item())

    return evaluate


def boston_fit():
    from pepcore import datasets, training

    data = datasets.load("boston")
    X, _ = datasets.standardise(data.X, data.X)
    y, _ = datasets.standardise(data.y, data.y)
    start = time.process_time()
    model = training.fit(None, X, y, M=50, alpha=0.5, max_evaluations=500, tolerance=0.0)
    return time.process_time() - start, model.evaluations, model.fit.log_evidence


# --- the race ---------------------------------------------------------------------------------------------------------


def compare(size, repeats, gpy):
    """One line of the table."""
    workers, medians = race(__file__, size, repeats, gpy)
    line = f"{size!s:>18}" + "".join(f"{t:10.4f} s {w.megabytes:7.0f} MB" for t, w in zip(medians, workers))
    if gpy:
        ours, theirs = workers
        difference = abs(ours.values[0] - theirs.values[0]) / abs(theirs.values[0])
        line += f"{medians[0] / medians[1]:9.2f} {ours.megabytes / theirs.megabytes:9.2f} {difference:12.1e}"
    print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--without-gpy", action="store_true")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--boston", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        sides = {"pepcore": pepcore_evaluation, "gpy": gpy_evaluation}
        work(sides[options.worker[0]](*map(int, options.worker[1:])))
    elif options.boston:
        print("boston, M = 50: {:.2f} s for {} evaluations, log evidence {:.2f}".format(*boston_fit()))
    else:
        gpy = None if options.without_gpy else gpy_python()
        print(
            f"{'(N, D, M)':>18}{'pepcore':>22}"
            + (f"{'GPy PEP':>22}{'time':>9}{'memory':>10}{'evidence':>13}" if gpy else "")
        )
        for size in SIZES:
            compare(size, options.repeats, gpy)
        subprocess.run([sys.executable, __file__, "--boston"], check=True, env={**os.environ, **ONE_THREAD})


if __name__ == "__main__":
    main()
