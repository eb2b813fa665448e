"""How much do errors on magic depend on the rows that are the test's? A support vector machine on eight splits.

It is quick and has nothing to do with our methods, so it can tell easy test rows from hard ones before these are run.
"""

from figures.experiments.salimbeni2018.problems import problem

DATA, SPLITS = "magic", 8
PENALTY = 10.0  # scikit-learn's C; its kernel is a squared exponential
READS = (DATA,)
OUTPUTS = ("error_rate",)


def grid():
    return [{"split": split} for split in range(SPLITS)]


def compute(split):
    """The rate of wrong labels."""
    from sklearn.svm import SVC  # imported on demand: it is slow to load

    task = problem(DATA, split)
    return {"error_rate": float((SVC(C=PENALTY).fit(task.X, task.y).predict(task.X_test) != task.y_test).mean())}
