"""What scikit-learn does in the benchmarks: its exact Gaussian processes, the kernel's scales learnt."""

import numpy as np
from scores import class_scores, regression_scores
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel


def estimate(X, y, X_test, y_test, done):
    while True:
        kernel = ConstantKernel(1.0) * RBF(np.full(X.shape[1], np.sqrt(X.shape[1])))
        if y.dtype.kind == "f":
            model = GaussianProcessRegressor(kernel + WhiteKernel(0.1), alpha=0.0).fit(X, y)
            done(regression_scores(y_test, *model.predict(X_test, return_std=True)))
        else:
            done(class_scores(y_test, GaussianProcessClassifier(kernel).fit(X, y).predict_proba(X_test)))
