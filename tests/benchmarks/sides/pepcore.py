"""What pepcore does in the benchmarks."""

import itertools
import time

import numpy as np
from scores import class_scores, regression_scores

from pepcore import Gaussian, Probit, SquaredExponential, decoupled, multiclass, online, power_ep, training


def regression(X, y, Z, done, alpha=0.5):
    """Log evidence and its gradient, at slightly other parameters each time."""
    for count in itertools.count():
        kernel = SquaredExponential(1.0 + 1e-7 * count, np.ones(X.shape[1]))
        fit = power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=alpha)
        values = [fit.log_evidence, float(fit.gradient["noise"])]
        del fit  # or the next evaluation would find two copies of the data
        done(values)


def probit(X, y, Z, done, alpha):
    """Power EP to convergence from flat sites."""
    schedule = "alternating" if alpha == 1 else "parallel"  # the faster one for each
    scale = 1.0 if X.shape[1] < 3 else 2.5
    for count in itertools.count():
        kernel = SquaredExponential(1.5 + 1e-7 * count, np.full(X.shape[1], scale))
        fit = power_ep.infer(kernel, Z, X, y, Probit(), alpha=alpha, schedule=schedule, tolerance=1e-5)
        done([fit.log_evidence, len(fit.history) - 1])


def class_step(X, y, Z, done, approximation):
    """A step of the sites and of Adam on a batch of 200 rows, kernel and pseudo-inputs shared."""
    kernel = SquaredExponential(1.0, np.full(X.shape[1], np.sqrt(X.shape[1] / 8)))
    multiclass.fit_minibatch(
        kernel, Z, (X, y), approximation=approximation, classes=int(y.max()) + 1, batch=200, epochs=10**6,
        callback=lambda record: done(),
    )


def orthogonal_step(X, y, beta, gamma, done, natural):
    """A step on q, kernel, both bases and the noise, on a batch of 1024 rows."""
    decoupled.infer(
        SquaredExponential(1.0, np.full(X.shape[1], 2.0)), beta, gamma, X, y, Gaussian(0.1), basis="orthogonal",
        natural=natural, steps=10**9, batch=1024, columns=64, optimise=("kernel", "beta", "gamma", "likelihood"),
        callback=lambda record: done(),
    )


def learn(X, y, Z, done, evaluations):
    """Complete fits of VFE; the values are seconds since the start and log evidence of every evaluation."""
    while True:
        begun, trace = time.perf_counter(), []

        def infer(kernel, Z, X, y, *, noise, alpha):
            fit = power_ep.regression(kernel, Z, X, y, noise=noise, alpha=alpha)
            _ = fit.gradient
            trace.append((time.perf_counter() - begun, fit.log_evidence))  # noqa: B023 - used within this fit only
            return fit

        kernel = SquaredExponential(1.0, np.ones(X.shape[1]))
        training.fit(kernel, X, y, infer=infer, Z=Z, noise=0.1, alpha=0.0, max_evaluations=evaluations)
        done(trace)


def stream(X, y, Z, done):
    """Online learning of blocks of 1000 rows with a budget of basis vectors."""
    state = online.start(SquaredExponential(1.0, 2.0), Gaussian(0.1), budget=len(Z))
    for rows in itertools.cycle(np.array_split(np.arange(len(X)), max(1, len(X) // 1000))):
        state = online.update(state, X[rows], y[rows])
        done()


def estimate(X, y, X_test, y_test, done):
    """Fit an estimator with its defaults and predict; the values are error and mean log density of the test data."""
    from pepcore.estimators import PowerEPClassifier, PowerEPRegressor

    while True:
        if y.dtype.kind == "f":
            mean, deviation = PowerEPRegressor().fit(X, y).predict(X_test, return_std=True)
            done(regression_scores(y_test, mean, deviation))
        else:
            done(class_scores(y_test, PowerEPClassifier().fit(X, y).predict_proba(X_test)))
