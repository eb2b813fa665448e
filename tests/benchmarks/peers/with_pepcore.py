"""The models of the page "From GPflow, GPy, GPyTorch or scikit-learn", written for pepcore."""

# ruff: noqa: E402 - each snippet shows its own imports

from record import show

import pepcore
from data import X, Xs, Z, Z_mean, classes, labels, y, ys

values = {}

# [kernel]
from pepcore import SquaredExponential

kernel = SquaredExponential(variance=1.0, lengthscales=[0.5, 0.7])
# [end]

# [exact]
from pepcore import exact

fit = exact.regression(kernel, X, y, noise=0.1)
evidence = fit.log_evidence
# [end]
values["exact"] = evidence
values["exact_mean"] = fit.predict_y(Xs)[0]
values["exact_variance_y"] = fit.predict_y(Xs)[1]

# [fitc]
from pepcore import power_ep

fit = power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=1.0)
evidence = fit.log_evidence
# [end]
values["fitc"] = evidence

# [pep]
fit = power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=0.5)
evidence = fit.log_evidence
# [end]
values["pep"] = evidence

# [vfe]
from pepcore import power_ep

fit = power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=0.0)
evidence = fit.log_evidence
# [end]
values["vfe"] = evidence

# [predict]
mean, variance = fit.predict_f(Xs)
mean_y, variance_y = fit.predict_y(Xs)
log_density = fit.log_density(Xs, ys)
# [end]
values |= {"mean": mean, "variance": variance, "variance_y": variance_y, "log_density": log_density}

# [learn]
from pepcore import training

model = training.fit(
    kernel, X, y, infer=power_ep.regression, Z=Z, noise=0.1, alpha=0.0,
    optimise=("kernel", "noise"), tolerance=1e-14,
)
evidence = model.log_evidence
# [end]
values["learn"] = evidence
model = training.fit(kernel, X, y, infer=exact.regression, noise=0.1, tolerance=1e-14)
values["learn_exact"] = model.log_evidence

fit = power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=0.0, jitter=0.0)
_, h = fit.posterior.basis.features(Xs)
values |= {"vfe_bare": fit.log_evidence, "mean_bare": fit.predict_f(Xs)[0]}
values["variance_without_h"] = fit.predict_f(Xs)[1] - h
model = training.fit(
    kernel, X, y, infer=power_ep.regression, Z=Z, noise=0.1, alpha=0.0,
    optimise=("kernel", "noise"), tolerance=1e-14, jitter=0.0,
)
values["learn_bare"] = model.log_evidence
fit = power_ep.regression(kernel, Z, X, y, noise=0.1, alpha=1.0, jitter=0.0)
values["corrected_mean"] = fit.predict_f(Xs)[0]

# [classify]
from pepcore import Probit

fit = power_ep.infer(kernel, Z, X, labels, Probit(), alpha=0.0)
bound = fit.log_evidence
probability = fit.predict_y(Xs)
# [end]
values |= {"vi_probit": bound, "vi_probability": probability}

# [ep]
fit = exact.infer(kernel, X, labels, Probit(), alpha=1.0)
evidence = fit.log_evidence
probability = fit.predict_y(Xs)
# [end]
values |= {"ep_probit": evidence, "ep_probability": probability}

# [natural]
from pepcore import Gaussian

fit = power_ep.infer(
    kernel, Z, X, y, Gaussian(0.1), alpha=0.0, step=1.0
)
bound = fit.history[1]["log_evidence"]  # after one step
# [end]
values["natural_gaussian"] = bound

fit = power_ep.infer(kernel, Z, X, labels, Probit(), alpha=0.0, step=0.5)
values["natural_probit"] = [record["log_evidence"] for record in fit.history[1:4]]

# [classes]
from pepcore import decoupled, multiclass

likelihood = multiclass.RobustMax(3, epsilon=0.05)
fit = decoupled.infer(
    kernel, Z, None, X, classes, likelihood,
    basis="coupled", natural=True, step=0.3, steps=400,
)
bound = fit.log_evidence
probabilities = fit.predict_y(Xs)
# [end]
values |= {"classes": bound, "classes_probabilities": probabilities}

# [decoupled]
fit = decoupled.infer(
    kernel, Z, Z_mean, X, y, Gaussian(0.1), basis="orthogonal",
    step=0.02, gamma_rule="exact", steps=500,
)
bound = fit.log_evidence
# [end]
values["decoupled"] = bound

show("pepcore", pepcore.__version__, values)
