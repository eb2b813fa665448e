"""Where the other packages live: each has an environment of its own, named by a setting; one that is not set is left out."""

import os
import sys
from typing import NamedTuple

ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}


class Environment(NamedTuple):
    """What a reader needs to know of an environment."""

    package: str
    setting: str  # variable that names the interpreter
    install: str  # what to install there


ENVIRONMENTS = {
    "pepcore": Environment("pepcore", "PEPCORE_BENCH_PEPCORE", "."),
    "gpflow": Environment("GPflow", "PEPCORE_BENCH_GPFLOW", "gpflow==2.11.2"),
    "gpy": Environment("GPy", "PEPCORE_BENCH_GPY", "GPy==1.15.0"),
    "gpytorch": Environment("GPyTorch", "PEPCORE_BENCH_GPYTORCH", "torch==2.13.0 gpytorch==1.15.2"),
    "sklearn": Environment("scikit-learn", "PEPCORE_BENCH_SKLEARN", "scikit-learn"),
}
HERE = ("pepcore", "sklearn")  # the book's own environment has these


def python_of(name):
    """The interpreter of an environment, or None if it is not set."""
    return os.environ.get(ENVIRONMENTS[name].setting) or (sys.executable if name in HERE else None)
