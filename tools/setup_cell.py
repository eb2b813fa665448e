"""The first cell of an assignment: what its exercises need from the chapter, without the folder of the book.

Code that needs no more than `pepcore` stays code. What the chapter takes from `figures`, such as tables of results, is
computed here, and goes to a file that the cell reads: students get the values and not the code, in which some exercises
are solved.
"""

import importlib
import inspect
import pickle
import re
from types import ModuleType, SimpleNamespace

import slicing

VALUES = "values.pickle"
IMPORTS = """import sys

sys.path.append("../helpers")  # pepcore, where it is not installed
"""
LOAD = """import pickle

with open("{file}", "rb") as file:
    globals().update(pickle.load(file))  # {names}: as computed in the chapter
"""


def setup(chapter):
    """The code of the cell, and name -> value of what it reads from the file."""
    statements = chapter.setup()
    own, from_figures = sorted_out(statements)
    wanted = {name for exercise in chapter.exercises
              for name in exercise.mentions | slicing.names(chapter.places(exercise)[1])}
    wanted |= set().union(*(part.uses | part.uses_later for part in own + chapter.solving()))
    names = {name for statement in from_figures for name in statement.binds} & wanted
    both = names & {name for statement in own for name in statement.binds}
    if both:
        raise ValueError(f"{chapter.stem}: {both} are bound with and without `figures`")
    text = "\n".join([*(exercise.text for exercise in chapter.exercises), *(part.source for part in chapter.solving())])
    values = computed(statements, names, text)
    load = LOAD.format(file=VALUES, names=", ".join(values)) + "\n" if values else ""
    return IMPORTS + load + joined(own), values


def sorted_out(statements):
    """Statements that do without `figures`, and those that need it or something that was made with it."""
    own, from_figures, made = [], [], set()
    for statement in statements:
        needs = bool(made & (statement.uses | statement.uses_later)) or imports_figures(statement)
        (from_figures if needs else own).append(statement)
        made = made | statement.binds if needs else made - statement.binds
    return own, from_figures


def imports_figures(statement):
    return statement.is_import and statement.source.startswith("from figures")


def computed(statements, names, text):
    """Values of the names after the statements; for a module, only what the text uses of it."""
    scope = {}
    if names:
        exec("\n".join(statement.source for statement in statements), scope)
    values = {name: scope[name] for name in sorted(names)}
    for name, value in values.items():
        if isinstance(value, ModuleType):
            called = sorted(set(re.findall(rf"\b{name}\.(\w+)", text)))
            values[name] = SimpleNamespace(**{attribute: getattr(value, attribute) for attribute in called})
    return values


def without_figures(source):
    """Code in which the definitions that it imports from `figures` stand in place of the import."""
    statements = []
    for statement in slicing.statements(source):
        statements += definitions(statement) if imports_figures(statement) else [statement]
    return joined(statements)


def definitions(statement):
    """The statements of a module that make what is imported from it."""
    module = importlib.import_module(statement.tree.body[0].module)
    program = slicing.statements(inspect.getsource(module))
    return [program[place] for place in slicing.needed(program, statement.binds, len(program))]


def joined(statements):
    """Statements as code, with space around functions."""
    text = ""
    for before, after in zip([None, *statements], statements):
        apart = before and any(part.source.startswith(("def ", "@", "class ")) for part in (before, after))
        text += ("\n\n\n" if apart else "\n" if before else "") + after.source
    return text


def dumped(values):
    return pickle.dumps(values, protocol=4)
