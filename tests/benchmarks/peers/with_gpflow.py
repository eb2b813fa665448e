"""The models of the page "From GPflow, GPy, GPyTorch or scikit-learn", written for GPflow."""

# ruff: noqa: E402 - each snippet shows its own imports

from record import show

from data import X, Xs, Z, classes, labels, y, ys

values = {}


# [kernel]
import gpflow


def kernel():
    return gpflow.kernels.SquaredExponential(variance=1.0, lengthscales=[0.5, 0.7])


data = (X, y[:, None])
# [end]

# [exact]
model = gpflow.models.GPR(data, kernel(), noise_variance=0.1)
evidence = model.log_marginal_likelihood()
# [end]
values["exact"] = evidence

# [fitc]
model = gpflow.models.GPRFITC(data, kernel(), inducing_variable=Z, noise_variance=0.1)
evidence = model.fitc_log_marginal_likelihood()
# [end]
values["fitc"] = evidence

# [vfe]
model = gpflow.models.SGPR(data, kernel(), inducing_variable=Z, noise_variance=0.1)
evidence = model.elbo()
# [end]
values["vfe"] = evidence

# [predict]
mean, variance = model.predict_f(Xs)
mean_y, variance_y = model.predict_y(Xs)
log_density = model.predict_log_density((Xs, ys[:, None]))
# [end]
values |= {"mean": mean[:, 0], "variance": variance[:, 0], "variance_y": variance_y[:, 0], "log_density": log_density}

# [learn]
gpflow.utilities.set_trainable(model.inducing_variable, False)
gpflow.optimizers.Scipy().minimize(
    model.training_loss,
    model.trainable_variables,
    options={"maxiter": 500, "ftol": 1e-14},
)
evidence = model.elbo()
# [end]
values["learn"] = evidence

# [classify]
import numpy as np
import tensorflow as tf

probit = gpflow.likelihoods.Bernoulli(
    # the default mixes in 0.001
    invlink=lambda f: 0.5 * tf.math.erfc(-f / np.sqrt(2))
)
zero_one = ((labels + 1) / 2)[:, None]
model = gpflow.models.SVGP(kernel(), probit, inducing_variable=Z, whiten=True)
gpflow.utilities.set_trainable(model.q_mu, False)
gpflow.utilities.set_trainable(model.q_sqrt, False)
natural = gpflow.optimizers.NaturalGradient(gamma=0.5)
loss = model.training_loss_closure((X, zero_one))
for _ in range(60):
    natural.minimize(loss, [(model.q_mu, model.q_sqrt)])
bound = model.elbo((X, zero_one))
probability, _ = model.predict_y(Xs)
# [end]
values |= {"vi_probit": bound, "vi_probability": probability[:, 0]}

model = gpflow.models.SVGP(kernel(), probit, inducing_variable=Z, whiten=True)
loss = model.training_loss_closure((X, zero_one))
trace = []
for _ in range(3):
    natural.minimize(loss, [(model.q_mu, model.q_sqrt)])
    trace.append(model.elbo((X, zero_one)).numpy())
values["natural_probit"] = trace

# [natural]
model = gpflow.models.SVGP(
    kernel(), gpflow.likelihoods.Gaussian(0.1), inducing_variable=Z
)
natural = gpflow.optimizers.NaturalGradient(gamma=1.0)
loss = model.training_loss_closure(data)
natural.minimize(loss, [(model.q_mu, model.q_sqrt)])
bound = model.elbo(data)
# [end]
values["natural_gaussian"] = bound

# [classes]
robust = gpflow.likelihoods.MultiClass(
    3, invlink=gpflow.likelihoods.RobustMax(3, epsilon=0.05)
)
model = gpflow.models.SVGP(
    kernel(), robust, inducing_variable=Z, num_latent_gps=3
)
gpflow.optimizers.Scipy().minimize(
    model.training_loss_closure((X, classes[:, None])),
    [model.q_mu.unconstrained_variable, model.q_sqrt.unconstrained_variable],
    options={"maxiter": 3000, "ftol": 1e-14},
)
bound = model.elbo((X, classes[:, None]))
probabilities, _ = model.predict_y(Xs)
# [end]
values |= {"classes": bound, "classes_probabilities": probabilities}

show("GPflow", gpflow.__version__, values)
