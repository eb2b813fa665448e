"""Time and memory of sparse classification to convergence, beside GPy's EPDTC with parallel updates in the same run.

    python tests/benchmarks/classification.py [--repeats 5] [--without-gpy]

For each size and power both packages iterate in turns from flat sites at fixed hyper-parameters until no site moves by
more than 1e-5. GPy looks at the mean square of the moves: it gets 1e-10. Its power is not Power EP's (it matches moments
with the likelihood to the power 1), nor is its model (it drops h), so the times are compared and not the values; it has
no α = 0. At α = 1, where moments are cheap, pepcore moves the means twice a sweep. Printed are the medians of the
processor time, sweeps, the peak resident memory of each process, and the ratios. The largest size is too slow for GPy.
Nothing here is a test.
"""

import argparse

from beside_gpy import gpy_python, race, work

SIZES = [(1_000, 2, 50), (10_000, 8, 100), (100_000, 8, 100)]
LARGEST_FOR_GPY = 10_000
TOLERANCE = 1e-5


def problem(N, D, M):
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = np.sign(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=N))
    return X, y, X[:M].copy(), np.full(D, 1.0 if D < 3 else 2.5)


def pepcore_evaluation(N, D, M, percent):
    from pepcore import power_ep
    from pepcore.kernels import SquaredExponential
    from pepcore.likelihoods import Probit

    X, y, Z, lengthscales = problem(N, D, M)

    def evaluate(step):
        kernel = SquaredExponential(1.5 + step, lengthscales)
        schedule = "alternating" if percent == 100 else "parallel"
        fit = power_ep.infer(kernel, Z, X, y, Probit(), alpha=percent / 100, schedule=schedule, tolerance=TOLERANCE)
        return fit.log_evidence, fit.sweeps

    return evaluate


def gpy_evaluation(N, D, M, percent):
    import GPy
    from GPy.inference.latent_function_inference.expectation_propagation import EPDTC
    from paramz import ObsAr

    X, y, Z, lengthscales = problem(N, D, M)
    kernel = GPy.kern.RBF(D, variance=1.5, lengthscale=lengthscales, ARD=True)
    labels, likelihood = ObsAr((y[:, None] + 1) / 2), GPy.likelihoods.Bernoulli()

    def evaluate(step):
        kernel.variance = 1.5 + step
        method = EPDTC(epsilon=TOLERANCE**2, eta=percent / 100, always_reset=True, parallel_updates=True)
        _, log_evidence, _ = method.inference(kernel, X, Z, likelihood, labels)
        return float(log_evidence), 0

    return evaluate


def compare(size, percent, repeats, gpy):
    """One line of the table."""
    workers, medians = race(__file__, (*size, percent), repeats, gpy)
    line = f"{size!s:>18} {percent / 100:5.2f} {workers[0].values[1]:7.0f}"
    line += "".join(f"{t:10.4f} s {w.megabytes:7.0f} MB" for t, w in zip(medians, workers))
    if gpy:
        line += f"{medians[1] / medians[0]:9.1f} {workers[0].megabytes / workers[1].megabytes:9.2f}"
    print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--without-gpy", action="store_true")
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        sides = {"pepcore": pepcore_evaluation, "gpy": gpy_evaluation}
        work(sides[options.worker[0]](*map(int, options.worker[1:])))
        return
    gpy = None if options.without_gpy else gpy_python()
    print(f"{'(N, D, M)':>18} alpha  sweeps{'pepcore':>22}" + (f"{'GPy EPDTC':>22}{'faster':>9}{'memory':>10}" if gpy else ""))
    for size in SIZES:
        for percent in (100, 50, 0):
            rival = gpy if percent and size[0] <= LARGEST_FOR_GPY else None
            compare(size, percent, options.repeats, rival)


if __name__ == "__main__":
    main()
