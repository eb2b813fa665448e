"""How long runs take, learnt from those that are finished.

The logarithm of a run's seconds is fitted by least squares: a constant for each value of an input in words, a slope in the
logarithm of each number, and such a slope for each value in words. Inputs that only count repetitions are left out: if
the first ones ran on a busy machine, they would inflate the rest. Ridge regression: a value without a finished run is
treated as an average one.
"""

import numpy as np

RIDGE = 0.1
SECONDS = 60.0      # of a run where no run of the study is finished
REPETITIONS = ("split", "seed")


def seconds_of(finished, seconds, runs):
    """The expected seconds of runs.

    Parameters
    ----------
    finished : list of dicts, the inputs of finished runs
    seconds : their seconds
    runs : list of dicts, the inputs of the runs that are asked for

    Returns
    -------
    (len(runs),) array
    """
    if not finished:
        return np.full(len(runs), SECONDS)
    target = np.log(np.maximum(seconds, 1e-3))
    mean = target.mean()
    known, asked = _features([*finished, *runs], len(finished))
    weights = np.linalg.solve(known.T @ known + RIDGE * np.eye(known.shape[1]), known.T @ (target - mean))
    spread = np.exp(target - mean - known @ weights).mean()       # the mean of a logarithm is below the logarithm of a mean
    # nothing is taken to last ten times longer, or shorter, than what was seen
    return np.clip(np.exp(mean + asked @ weights) * spread, np.min(seconds) / 10, np.max(seconds) * 10)


def _features(runs, known):
    """A matrix for the first `known` runs and one for the rest, each with a column for each thing that may matter."""
    words, numbers = [], []
    for name, value in runs[0].items():
        if name in REPETITIONS:
            continue
        column = [run[name] for run in runs]
        if isinstance(value, str):
            words += [np.array([text == level for text in column], float) for level in sorted(set(column))]
        else:
            size = np.sign(column) * np.log1p(np.abs(np.array(column, float)))
            numbers.append((size - size[:known].mean()) / (size[:known].std() or 1.0))
    columns = [*words, *numbers, *(word * number for word in words for number in numbers)]
    matrix = np.stack(columns, axis=1) if columns else np.zeros((len(runs), 1))
    return matrix[:known], matrix[known:]
