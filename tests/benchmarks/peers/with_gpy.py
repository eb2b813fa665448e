"""The models of the page "From GPflow, GPy, GPyTorch or scikit-learn", written for GPy."""

# ruff: noqa: E402 - each snippet shows its own imports

from record import show

from data import X, Xs, Z, labels, y, ys

values = {}


# [kernel]
import GPy


def kernel():
    return GPy.kern.RBF(2, variance=1.0, lengthscale=[0.5, 0.7], ARD=True)


def noise():
    return GPy.likelihoods.Gaussian(variance=0.1)


Y = y[:, None]
# [end]

# [exact]
model = GPy.models.GPRegression(X, Y, kernel(), noise_var=0.1)
evidence = model.log_likelihood()
# [end]
values["exact"] = evidence

# [fitc]
from GPy.inference.latent_function_inference import FITC

model = GPy.core.SparseGP(X, Y, Z, kernel(), noise(), inference_method=FITC())
evidence = model.log_likelihood()
# [end]
values["fitc"] = evidence

# [pep]
from GPy.inference.latent_function_inference import PEP

model = GPy.core.SparseGP(
    X, Y, Z, kernel(), noise(), inference_method=PEP(alpha=0.5)
)
evidence = model.log_likelihood()
# [end]
values["pep"] = evidence.item()

# [vfe]
model = GPy.models.SparseGPRegression(X, Y, kernel(), Z=Z)
model.inference_method.const_jitter = 1e-6  # as the others
model.likelihood.variance = 0.1
evidence = model.log_likelihood()
# [end]
values["vfe"] = evidence.item()

# [predict]
mean, variance = model.predict_noiseless(Xs)
mean_y, variance_y = model.predict(Xs)
log_density = model.log_predictive_density(Xs, ys[:, None])
# [end]
values |= {"mean": mean[:, 0], "variance": variance[:, 0], "variance_y": variance_y[:, 0]}
values["log_density"] = log_density[:, 0]

# [learn]
model.inducing_inputs.fix()
model.optimize("lbfgsb", max_iters=500, bfgs_factor=10)
evidence = model.log_likelihood()
# [end]
values["learn"] = evidence.item()

# [classify]
from GPy.inference.latent_function_inference.expectation_propagation import EP

zero_one = ((labels + 1) / 2)[:, None]
ep = EP(epsilon=1e-16, max_iters=500)
model = GPy.core.GP(
    X, zero_one, kernel(), GPy.likelihoods.Bernoulli(), inference_method=ep
)
evidence = model.log_likelihood()
probability, _ = model.predict(Xs)
# [end]
values |= {"ep_probit": evidence, "ep_probability": probability[:, 0]}

show("GPy", GPy.__version__, values)
