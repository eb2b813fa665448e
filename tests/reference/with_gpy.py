"""Regression and full EP by GPy (https://github.com/SheffieldML/GPy), for the inputs and parameters that are stored.

Run it in an environment of its own: `pip install GPy==1.15.0`.
"""

import GPy
import numpy as np
from compare import report, stored
from GPy.inference.latent_function_inference import EP, EPDTC, FITC, PEP, VarDTC

SPARSE = {"pep_1.0": PEP(1.0), "pep_0.8": PEP(0.8), "pep_0.5": PEP(0.5), "pep_0.1": PEP(0.1), "fitc": FITC(),
          "vardtc": VarDTC()}


class Copying(GPy.kern.RBF):
    """GPy adds its jitter to the kernel matrix in place, which its cache then takes for the kernel: give copies."""

    def K(self, X, X2=None):
        return np.array(super().K(X, X2))


def kernel(data, kind=Copying):
    return kind(data["X"].shape[1], variance=float(data["s2"]), lengthscale=data["ls"], ARD=True)


def sparse_regression(data, method):
    """Evidence, predictions and derivatives of one sparse method."""
    noise = float(data["noise"])

    def model(kind):
        return GPy.core.SparseGP(data["X"], data["y"], data["Z"], kernel(data, kind), GPy.likelihoods.Gaussian(variance=noise),
                                 inference_method=method)

    fit, stock = model(Copying), model(GPy.kern.RBF)
    mean, variance = fit.predict_noiseless(data["Xs"])
    return {"lml": fit.log_likelihood(), "mean": mean, "var_f": variance, "var_y": variance + noise,
            "ds2": fit.kern.variance.gradient, "dls": fit.kern.lengthscale.gradient,
            "dnoise": fit.likelihood.variance.gradient, "dZ": fit.Z.gradient, "ds2_raw_gpy": stock.kern.variance.gradient}


def full_regression(data):
    fit = GPy.models.GPRegression(data["X"], data["y"], kernel(data), noise_var=float(data["noise"]))
    mean, variance = fit.predict_noiseless(data["Xs"])
    return {"lml": fit.log_likelihood(), "mean": mean, "var_f": variance}


def classification(data, eta, sparse):
    """EP with a probit likelihood; at eta other than 1 this is GPy's fractional EP, which is not Power EP."""
    labels, likelihood = (data["y_pm1"] + 1) / 2, GPy.likelihoods.Bernoulli()
    if sparse:
        fit = GPy.core.SparseGP(data["X"], labels, data["Z"], kernel(data), likelihood,
                                inference_method=EPDTC(epsilon=1e-14, eta=eta, delta=1.0))
    else:
        fit = GPy.core.GP(data["X"], labels, kernel(data), likelihood,
                          inference_method=EP(epsilon=1e-14, eta=eta, delta=1.0))
    mean, variance = fit.predict_noiseless(data["Xs"])
    values = {"lml": fit.log_likelihood(), "mean_f": mean, "var_f": variance, "p1": fit.predict(data["Xs"])[0]}
    if not sparse:
        values |= {"ds2": fit.kern.variance.gradient, "dls": fit.kern.lengthscale.gradient}
    return values


def named(prefix, values):
    return {f"{prefix}__{name}": value for name, value in values.items()}


def main():
    for size in ("small", "mid"):
        file = f"gpy_regression_{size}.npz"
        data, values = stored(file), {}
        for name, method in SPARSE.items():
            values |= named(name, sparse_regression(data, method))
        report(file, values | named("fullgp", full_regression(data)))
    data, values = stored("classification_small.npz"), {}
    for eta in (1.0, 0.5):
        values |= named(f"gpy_ep_full_eta{eta}", classification(data, eta, sparse=False))
        values |= named(f"gpy_epdtc_eta{eta}", classification(data, eta, sparse=True))
    report("classification_small.npz", values)


if __name__ == "__main__":
    main()
