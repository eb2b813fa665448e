"""Calls that can be read: after what a function is about, its settings are given by name."""

import importlib
import inspect
import pkgutil

import pytest

import pepcore

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
