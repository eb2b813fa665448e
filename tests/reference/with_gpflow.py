"""Sparse regression and variational classification by GPflow, for the inputs and parameters that are stored.

Run it in an environment of its own: `pip install gpflow==2.11.2`.
"""

import gpflow
import numpy as np
import tensorflow as tf
from compare import report, stored

gpflow.config.set_default_jitter(1e-6)


def kernel(data):
    return gpflow.kernels.SquaredExponential(variance=float(data["s2"]), lengthscales=data["ls"])


def regression():
    data, values = stored("gpy_regression_mid.npz"), {}
    for name, kind in (("sgpr", gpflow.models.SGPR), ("gprfitc", gpflow.models.GPRFITC)):
        fit = kind((data["X"], data["y"]), kernel(data), data["Z"], noise_variance=float(data["noise"]))
        mean, variance = fit.predict_f(data["Xs"])
        values |= {f"{name}__lml": fit.maximum_log_likelihood_objective(), f"{name}__mean": mean, f"{name}__var_f": variance}
        if name == "sgpr":
            values["sgpr__upper_bound"] = fit.upper_bound()
    return values


def svgp(data, likelihood, whiten):
    """A model with the stored q(u), or q(v) if whitened, and the labels of its likelihood."""
    prefix = f"{likelihood}_{'white' if whiten else 'unwhite'}"
    if likelihood == "bernoulli":
        chosen, labels, latent = gpflow.likelihoods.Bernoulli(), data["y_bin"], 1
    else:
        link = gpflow.likelihoods.RobustMax(3, epsilon=1e-3)
        chosen, labels, latent = gpflow.likelihoods.MultiClass(3, invlink=link), data["y_multi"], 3
    fit = gpflow.models.SVGP(kernel(data), chosen, data["Z"], num_latent_gps=latent, whiten=whiten,
                             q_mu=data[f"{prefix}__q_mu"], q_sqrt=data[f"{prefix}__q_sqrt"])
    return prefix, fit, labels


def natural(fit):
    return gpflow.optimizers.natgrad.meanvarsqrt_to_natural(fit.q_mu, fit.q_sqrt)


def bound_and_derivatives(fit, X, labels, Xs):
    with tf.GradientTape() as tape:
        elbo = fit.elbo((X, labels))
    parameters = {"d_s2": fit.kernel.variance, "d_ls": fit.kernel.lengthscales,
                  "d_Z": fit.inducing_variable.Z, "d_qmu": fit.q_mu}
    slopes = tape.gradient(elbo, [parameter.unconstrained_variable for parameter in parameters.values()])
    values = {"elbo": elbo, "kl": fit.prior_kl()}
    for (name, parameter), slope in zip(parameters.items(), slopes):
        # d/d parameter = d/d unconstrained divided by d parameter / d unconstrained
        inner = tf.exp(parameter.bijector.forward_log_det_jacobian(parameter.unconstrained_variable, event_ndims=0))
        values[name] = (tf.convert_to_tensor(slope) / inner).numpy()
    mean, variance = fit.predict_f(X)
    values["var_exp"] = fit.likelihood.variational_expectations(X, mean, variance, labels)
    values["pred_logdens"] = fit.predict_log_density((X, labels))
    values["mean_f"], values["var_f"] = fit.predict_f(Xs)
    values["p"] = fit.predict_y(Xs)[0]
    values["nat1_before"], values["nat2_before"] = natural(fit)
    return values


def classification():
    data, values = stored("gpflow_svgp.npz"), {}
    for likelihood in ("bernoulli", "robustmax"):
        for whiten in (True, False):
            prefix, fit, labels = svgp(data, likelihood, whiten)
            found = bound_and_derivatives(fit, data["X"], labels, data["Xs"])
            for step in (0.1, 1.0) if likelihood == "bernoulli" else (0.1,):
                _, moved, _ = svgp(data, likelihood, whiten)
                gpflow.optimizers.NaturalGradient(gamma=step).minimize(
                    moved.training_loss_closure((data["X"], labels), compile=False), [(moved.q_mu, moved.q_sqrt)])
                nat1, nat2 = natural(moved)
                found |= {f"natgrad{step}_q_mu": moved.q_mu, f"natgrad{step}_q_sqrt": moved.q_sqrt,
                          f"natgrad{step}_nat1": nat1, f"natgrad{step}_nat2": nat2,
                          f"natgrad{step}_elbo": moved.elbo((data["X"], labels))}
            values |= {f"{prefix}__{name}": np.asarray(value) for name, value in found.items()}
    return values


if __name__ == "__main__":
    report("gpflow_regression_mid.npz", regression())
    report("gpflow_svgp.npz", classification())
