"""The models of the page "From GPflow, GPy, GPyTorch or scikit-learn", written for scikit-learn."""

# ruff: noqa: E402 - each snippet shows its own imports

import sklearn
from record import show

from data import X, Xs, y

values = {}

# [kernel]
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    WhiteKernel,
)

kernel = ConstantKernel(1.0) * RBF([0.5, 0.7]) + WhiteKernel(0.1)
# [end]

# [exact]
from sklearn.gaussian_process import GaussianProcessRegressor

model = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None)
model.fit(X, y)
evidence = model.log_marginal_likelihood_value_
# [end]
values["exact"] = evidence

# [predict]
mean, deviation = model.predict(Xs, return_std=True)
variance_y = deviation**2  # the noise is part of the kernel
# [end]
values |= {"exact_mean": mean, "exact_variance_y": variance_y}

# [learn]
model = GaussianProcessRegressor(kernel, alpha=0.0)
model.fit(X, y)
evidence = model.log_marginal_likelihood_value_
# [end]
values["learn_exact"] = evidence

show("scikit-learn", sklearn.__version__, values)
