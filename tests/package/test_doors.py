"""Calls that can be read: after what a function is about, its settings are given by name."""

import importlib
import inspect
import pkgutil

import pytest

import pepcore
from pepcore import decoupled, estimators, exact, likelihoods, multiclass, online, power_ep, training
from pepcore.online import fixed_basis

MOST = 6  # positional arguments


def public_functions():
    """name -> function, for all functions and methods of the package whose names and modules are public."""
    found = {}
    for info in pkgutil.walk_packages(pepcore.__path__, "pepcore."):
        module = importlib.import_module(info.name)
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", None) != info.name:
                continue
            if inspect.isclass(thing):
                methods = {key: getattr(value, "__func__", value) for key, value in vars(thing).items()}
                public = {key: value for key, value in methods.items() if not key.startswith("_") and inspect.isfunction(value)}
                found |= {f"{info.name}.{name}.{key}": value for key, value in public.items()}
            elif inspect.isfunction(thing):
                found[f"{info.name}.{name}"] = thing
    return found


def positional(function):
    """How many arguments the function takes without their names, `self` and `cls` not counted."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [name for name, parameter in inspect.signature(function).parameters.items() if parameter.kind in kinds]
    return len([name for name in names if name not in ("self", "cls")])


FUNCTIONS = public_functions()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_takes_many_arguments_without_their_names(name):
    assert positional(FUNCTIONS[name]) <= MOST


def test_all_doors_are_looked_at():
    methods = {"pepcore.results.Result.predict_f", "pepcore.features.Basis.build", "pepcore.kernels.base.Sum.diagonal"}
    functions = {"pepcore.exact.infer", "pepcore.online.sparse_ep.infer", "pepcore.training.lbfgs.fit"}
    assert methods | functions <= set(FUNCTIONS)


def test_arguments_are_counted():
    class Example:
        def of_two(self, a, b=0, *, c=0):
            """A method."""

    assert positional(Example.of_two) == 2
    assert positional(lambda a, b, c, /, d, e, f, g=0, *args, h=0, **rest: None) == 7


DEFAULTS = [
    (exact.regression, {"noise": 0.1, "jitter": 1e-10}),
    (exact.infer, {"alpha": 1.0, "step": 1.0, "tolerance": 1e-8, "max_sweeps": 200, "jitter": 1e-10}),
    (power_ep.regression, {"noise": 0.1, "alpha": 0.5, "jitter": 1e-6}),
    (power_ep.infer, {"alpha": 0.5, "step": 1.0, "tolerance": 1e-8, "max_sweeps": 200, "jitter": 1e-6}),
    (online.start, {"budget": None, "novelty": 1e-6}),
    (online.infer, {"budget": None, "novelty": 1e-6, "max_sweeps": 1, "rho": 1.0, "tolerance": 1e-8}),
    (fixed_basis.infer, {"rho": 1.0, "step": 1.0, "tolerance": 1e-8, "max_sweeps": 200, "jitter": 1e-6}),
    (fixed_basis.nystrom, {"noise": 0.1, "jitter": 1e-6}),
    (multiclass.infer, {"alpha": None, "noise": 0.1, "epsilon": None, "step": 1.0, "tolerance": 1e-8, "jitter": 1e-6}),
    (multiclass.fit, {"M": 50, "noise": 0.1, "iterations": 250, "rate": 0.05, "step": 0.5, "tolerance": 1e-4, "seed": 0}),
    (multiclass.fit_minibatch, {"noise": 0.1, "batch": 200, "epochs": 1, "rate": 0.01, "step": None, "seed": 0}),
    (decoupled.infer, {"steps": 1000, "step": 0.005, "rate": 0.001, "batch": None, "jitter": 1e-6, "seed": 0}),
    (training.fit, {"M": 50, "alpha": 0.5, "noise": None, "restarts": 1, "max_evaluations": 500, "tolerance": 1e-9, "seed": 0}),
    (training.fit_minibatch, {"M": 50, "alpha": 0.5, "batch": 200, "epochs": 20, "rate": 0.02, "jitter": 1e-6, "seed": 0}),
    (estimators.PowerEPRegressor, {"M": 50, "alpha": 0.5, "noise": None, "restarts": 1, "max_evaluations": 500, "tol": 0.03,
                                   "batch": None, "standardise": True}),
    (estimators.PowerEPClassifier, {"M": 50, "alpha": 0.5, "approximation": "ep", "noise": 0.1, "restarts": 1,
                                    "max_evaluations": 250, "tol": 0.03, "standardise": True}),
    (estimators.PowerEPRegressorCV, {"alphas": None, "cv": None, "M": 50, "max_evaluations": 500, "tol": 0.03}),
    (estimators.PowerEPClassifierCV, {"alphas": None, "cv": None, "M": 50, "noise": 0.1, "max_evaluations": 250, "tol": 0.03}),
    (likelihoods.Gaussian, {"noise": 0.1}),
    (likelihoods.StudentT, {"degrees": 4.0, "scale": 1.0}),
    (multiclass.RobustMax, {"epsilon": 1e-3, "noise": 0.0}),
]


@pytest.mark.parametrize(("door", "expected"), DEFAULTS, ids=lambda part: getattr(part, "__qualname__", ""))
def test_what_is_not_given_has_the_usual_value(door, expected):
    parameters = inspect.signature(door).parameters
    assert {name: parameters[name].default for name in expected} == expected
