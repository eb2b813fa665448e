"""Power EP behind scikit-learn's interface, for pipelines, grid searches and cross-validation.

`PowerEPRegressor` and `PowerEPClassifier` learn at one power; `PowerEPRegressorCV` and `PowerEPClassifierCV` choose it, too.
`model_` is the result of `training.fit` or `multiclass.fit`. It belongs to the standardised data: inputs and real targets of
mean 0 and variance 1. So do kernel, noise and likelihood, given or learnt, and the log evidence. `Z`, `Z_` and all
predictions are in the units of X and y. Counts and labels are never standardised. `standardise=False` leaves everything in
the units of X and y.
"""

try:
    import sklearn.utils.validation
except ImportError as missing:
    raise ImportError('pepcore.estimators needs scikit-learn 1.6 or newer: pip install "pepcore[sklearn]"') from missing
if not hasattr(sklearn.utils.validation, "validate_data"):
    raise ImportError('pepcore.estimators needs scikit-learn 1.6 or newer: pip install "pepcore[sklearn]"')

from pepcore.estimators.classifier import PowerEPClassifier
from pepcore.estimators.regressor import PowerEPRegressor
from pepcore.estimators.search import PowerEPClassifierCV, PowerEPRegressorCV

__all__ = ["PowerEPClassifier", "PowerEPClassifierCV", "PowerEPRegressor", "PowerEPRegressorCV"]
