"""Do EP and α = 0.8 overfit where they over-estimate the evidence? Errors on both halves of the toy data, bui2017 section 5.

The data, the sizes and the way of learning are those of `fig3`, at the numbers of pseudo-points between few and all.
"""

from figures.experiments.bui2017 import fig3
from pepcore import metrics

SIZES = (20, 50, 100, 200)
ALPHAS = (0.8, 1.0)
OUTPUTS = ("smse", "smll", "smse_train", "smll_train", "evaluations", "converged")


def grid():
    """All runs, data set by data set."""
    return [{"data": data, "M": M, "alpha": alpha} for data in fig3.SETS for M in SIZES for alpha in ALPHAS]


def compute(data, M, alpha):
    """One run: learn on the training half, measure on both."""
    model, training_half, test_half = fig3.learn(data, "sparse", M, alpha)
    result = {"evaluations": model.evaluations, "converged": model.converged}
    for part, (inputs, targets) in (("", test_half), ("_train", training_half)):
        mean, variance = model.predict_y(inputs)
        result[f"smse{part}"] = metrics.smse(targets, mean, training_half[1])
        result[f"smll{part}"] = metrics.smll(targets, mean, variance, training_half[1])
    return result


def ratios(results):
    """SMSE on the test half over that on the training half: a Series by data set, mean over sizes and powers."""
    return (results["smse"] / results["smse_train"]).groupby(results["data"]).mean()


def differences(results):
    """SMLL on the test half minus that on the training half in nats: a Series by data set, mean over sizes and powers."""
    return (results["smll"] - results["smll_train"]).groupby(results["data"]).mean()
