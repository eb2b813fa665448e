"""Three tasks that the study `choose_alpha` did not have: the power that cross-validation chooses, beside one half.

Their rows are those of its sets nuclei, wine and diabetes, with all inputs and other targets.

Rules that were fixed before the first row:

* Data: diabetes (real targets), breast_cancer (two classes) and wine (three), as scikit-learn brings them along; ten random
  splits, a tenth of the rows for the test, the same shares of the classes in both parts.
* `PowerEPRegressor` and `PowerEPClassifier` with M = 20 at each of the powers of `PowerEPRegressorCV`, and the two estimators
  that choose among these powers; all other settings are the defaults. (`tol` came after the rows; 0 is as if it were not there.)
* The loss is the mean negative log density of the test targets, in nats. The regret is the loss above that of the best of the
  five powers on the same split. A difference of the mean regrets is called one if it exceeds twice its standard error over
  the splits.
"""

import time
import warnings

import numpy as np
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from pepcore.estimators import PowerEPClassifier, PowerEPClassifierCV, PowerEPRegressor, PowerEPRegressorCV
from pepcore.estimators.search import ALPHAS

DATA = BUNDLED = ("diabetes", "breast_cancer", "wine")
REAL = ("diabetes",)
SPLITS = range(10)
CHOSEN = "chosen"
POWERS = (*(f"{alpha:g}" for alpha in ALPHAS), CHOSEN)
M = 20
OUTPUTS = ("nll", "score", "alpha", "fit_seconds")


def grid():
    """All runs, one split of all sets after the other."""
    return [{"data": data, "split": split, "power": power} for split in SPLITS for data in DATA for power in POWERS]


def compute(data, split, power):
    """Test loss, `score` of the estimator (R² or accuracy), the power, and seconds of the processor."""
    X, y = getattr(datasets, f"load_{data}")(return_X_y=True)
    labels = None if data in REAL else y
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.1, random_state=split, stratify=labels)
    one, search = (PowerEPRegressor, PowerEPRegressorCV) if data in REAL else (PowerEPClassifier, PowerEPClassifierCV)
    settings = {"M": M, "tol": 0.0, "random_state": split}
    model = search(**settings) if power == CHOSEN else one(**settings, alpha=float(power))
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    seconds = float(f"{time.process_time() - begun:.3g}")
    return {"nll": -float(model.log_density(X_test, y_test).mean()), "score": model.score(X_test, y_test),
            "alpha": model.alpha_ if power == CHOSEN else float(power), "fit_seconds": seconds}


def regrets(results):
    """One row per set: mean regret of the choice and of one half, their difference and its standard error, the mean cost.

    The cost is in fits at one half.
    """
    rows = {}
    for data, own in results.groupby("data"):
        loss, seconds = (own.pivot(index="split", columns="power", values=name).dropna() for name in ("nll", "fit_seconds"))
        best = loss.drop(columns=CHOSEN).min(axis=1)
        difference = loss[CHOSEN] - loss["0.5"]
        rows[data] = {
            "splits": len(loss), "chosen": (loss[CHOSEN] - best).mean(), "one half": (loss["0.5"] - best).mean(),
            "difference": difference.mean(), "error": difference.std(ddof=1) / np.sqrt(len(loss)),
            "fits": seconds[CHOSEN].mean() / seconds["0.5"].mean()}
    return rows
