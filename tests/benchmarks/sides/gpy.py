"""What GPy does in the benchmarks."""

import itertools
import time

import GPy
from GPy.inference.latent_function_inference import FITC, PEP, VarDTC
from GPy.inference.latent_function_inference.expectation_propagation import EPDTC
from paramz import ObsAr

METHODS = {"vfe": VarDTC, "pep": lambda: PEP(alpha=0.5), "fitc": FITC}


def sparse(X, y, Z, method):
    likelihood = GPy.likelihoods.Gaussian(variance=0.1)
    kernel = GPy.kern.RBF(X.shape[1], ARD=True)
    return GPy.core.SparseGP(X, y[:, None], Z.copy(), kernel, likelihood, inference_method=METHODS[method]())


def regression(X, y, Z, done, method):
    model = sparse(X, y, Z, method)
    for count in itertools.count():
        model.kern.variance = 1.0 + 1e-7 * count  # sets off inference and every gradient
        done([float(model.log_likelihood().item()), float(model.likelihood.variance.gradient.item())])


def probit(X, y, Z, done, power):
    """EPDTC with parallel updates to a mean square move of 1e-10. Its power is not that of Power EP, and it drops h."""
    D = X.shape[1]
    kernel = GPy.kern.RBF(D, variance=1.5, lengthscale=[1.0 if D < 3 else 2.5] * D, ARD=True)
    labels, likelihood = ObsAr((y[:, None] + 1) / 2), GPy.likelihoods.Bernoulli()
    for count in itertools.count():
        kernel.variance = 1.5 + 1e-7 * count
        method = EPDTC(epsilon=1e-10, eta=power, always_reset=True, parallel_updates=True)
        _, log_evidence, _ = method.inference(kernel, X, Z, likelihood, labels)
        done([float(log_evidence)])


def learn(X, y, Z, done, evaluations):
    while True:
        begun, trace = time.perf_counter(), []
        model = sparse(X, y, Z, "vfe")
        evaluate = model._objective_grads

        def traced(x):
            value, gradient = evaluate(x)  # noqa: B023 - used within this fit only
            trace.append((time.perf_counter() - begun, -float(value)))  # noqa: B023
            return value, gradient

        model._objective_grads = traced
        model.optimize("lbfgsb", max_iters=evaluations)
        done(trace)
