"""Power expectation propagation for sparse Gaussian processes, in NumPy and SciPy.

`features` turns a kernel and M pseudo-inputs into features A (M, N) and residual variances h (N,); everything else
works on those. Begin with `power_ep.regression`, `exact.infer` or `training.fit`. `pepcore.decoupled`, `pepcore.multiclass` and
`pepcore.estimators`, which not everybody needs, are loaded when they are first asked for.

Docstrings cite their sources by key; labels such as :eq:`pep-step` are equations of the book that comes with this package.

    bui2017          Bui, Yan and Turner, JMLR 18(104), 2017
    villacampa2017   Villacampa-Calvo and Hernández-Lobato, ICML 2017
    csato2002        Csató, Gaussian Processes: Iterative Sparse Approximations, PhD thesis, Aston University, 2002
    salimbeni2018    Salimbeni, Cheng, Boots and Deisenroth, NeurIPS 2018
    rasmussen2006    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006
    hensman2013      Hensman, Fusi and Lawrence, UAI 2013
    lazaro2009       Lázaro-Gredilla and Figueiras-Vidal, NeurIPS 2009
    snelson2006      Snelson and Ghahramani, NeurIPS 2006 (for 2005)
    kingma2015       Kingma and Ba, ICLR 2015
"""

import importlib
from typing import TYPE_CHECKING, Any

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


if TYPE_CHECKING:
    from pepcore import decoupled, estimators, multiclass  # noqa: F401
else:  # a type checker would take every name for one that `__getattr__` knows
    def __getattr__(name: str) -> Any:
        if name in _ON_DEMAND:
            return importlib.import_module(f"pepcore.{name}")
        raise AttributeError(f"module 'pepcore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_DEMAND})
