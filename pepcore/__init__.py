"""Power expectation propagation for sparse Gaussian processes, in NumPy and SciPy.

`features` turns a kernel and M pseudo-inputs into features A (M, N) and residual variances h (N,); everything else
works on those. Begin with `power_ep.regression`, `exact.infer` or `training.fit`. `pepcore.decoupled`, `pepcore.multiclass` and
`pepcore.estimators`, which not everybody needs, are loaded when they are first asked for.
"""

import importlib
from typing import Any

from pepcore import datasets, exact, metrics, online, power_ep, training
from pepcore.gaussian import NotPositiveDefiniteError
from pepcore.kernels import Blurred, Matern52, SquaredExponential, Sum
from pepcore.likelihoods import Gaussian, Logit, Poisson, Probit, StudentT
from pepcore.results import Fit, Model, leave_one_out
from pepcore.sites import ImproperCavityError, Sites
from pepcore.threads import keep_freed_memory

keep_freed_memory()

__version__ = "0.1.0"
_ON_DEMAND = ("decoupled", "estimators", "multiclass")
__all__ = [
    "Blurred", "Fit", "Gaussian", "ImproperCavityError", "Logit", "Matern52", "Model", "NotPositiveDefiniteError", "Poisson",
    "Probit", "Sites", "SquaredExponential", "StudentT", "Sum",
    "datasets", "exact", "leave_one_out", "metrics", "online", "power_ep", "training",
]


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return importlib.import_module(f"pepcore.{name}")
    raise AttributeError(f"module 'pepcore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ON_DEMAND])
