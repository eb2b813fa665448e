"""The estimators of the page "From GPflow, GPy, GPyTorch or scikit-learn"."""

from data import X, Xs, classes, y

# [estimators]
from pepcore.estimators import PowerEPClassifier, PowerEPRegressor

model = PowerEPRegressor(M=16, alpha=0.5).fit(X, y)
mean, deviation = model.predict(Xs, return_std=True)

model = PowerEPClassifier(M=16, alpha=1.0).fit(X, classes)
probabilities = model.predict_proba(Xs)
# [end]
