"""Every public function and method says of what type its arguments are, and what it returns."""

import inspect

import pytest
from test_doors import FUNCTIONS


def unannotated(function):
    """Names of the arguments without a type, `self` and `cls` not counted, and "return" if the result has none."""
    signature = inspect.signature(function)
    arguments = {name: value for name, value in signature.parameters.items() if name not in ("self", "cls")}
    missing = [name for name, value in arguments.items() if value.annotation is inspect.Parameter.empty]
    return missing + ["return"] * (signature.return_annotation is inspect.Signature.empty)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_and_result_has_a_type(name):
    assert unannotated(FUNCTIONS[name]) == []


def test_what_has_no_type_is_named():
    class Example:
        def half(self, a: int, b, *rest, c: int = 0, **options: int):
            """A method."""

    assert unannotated(Example.half) == ["b", "rest", "return"]
