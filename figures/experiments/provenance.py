"""Where a row of results comes from: the commit, the code that decides its numbers, its data and the machine.

`code` is a fingerprint of what `compute` of a study can reach: the functions, classes and constants of the studies and of
`pepcore` that it names, directly or through others, and what their modules do when they are imported. Comments,
docstrings, the words of exceptions, and whatever only draws do not count, so two rows with one fingerprint were computed by
the same code, whatever their commits.

Rows from before all this was recorded have `<=` and the first commit that holds them, and no fingerprints: the code of
that commit or of an earlier one computed them.
"""

import ast
import copy
import functools
import hashlib
import importlib.util
import os
import platform
import re
import subprocess
from pathlib import Path

import threadpoolctl

from figures import FOLDER
from pepcore.datasets.catalogue import registry

COLUMNS = ("commit", "code", "data_hash", "machine")
DIGITS = 12
QUOTES = ("'", '"', "'''", '"""')


def provenance(module, inputs):
    """The columns of a run of the study in that module, as a dict of strings."""
    return {"commit": commit(), "code": code(module.__name__), "data_hash": data_hash(module, inputs), "machine": machine()}


@functools.cache
def commit():
    """The commit of the code on this machine, with a + if its Python files were changed since; "" outside a repository."""
    try:
        git("ls-files", "--error-unmatch", "pyproject.toml")      # fails if the repository is that of a folder around this one
        named = git("rev-parse", f"--short={DIGITS}", "HEAD")
        return named + ("+" if git("status", "--porcelain", "--", "*.py", "pepcore", "data") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def git(*words):
    """What git says in the folder of this project, with the dates of all authors on one clock."""
    return subprocess.run(["git", *words], cwd=FOLDER.parent, capture_output=True, check=True, encoding="utf-8",
                          env={**os.environ, "TZ": "UTC"}).stdout.strip()


@functools.cache
def machine():
    """The processor and the BLAS libraries, in words."""
    libraries = {f"{'OpenBLAS' if pool['internal_api'] == 'openblas' else pool['internal_api']} {pool['version']} "
                 f"{pool.get('architecture', '')}".strip()
                 for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}
    return "; ".join([_processor(), *sorted(libraries)])


def _processor(described=Path("/proc/cpuinfo")):
    """The processor's name, and its family, model and cache where the system gives them.

    One name can stand for several kinds of processor, and the size of the cache decides in which order BLAS adds up.
    """
    text = described.read_text() if described.exists() else ""
    said = {key: " ".join(value.split()) for key, value in re.findall(r"^([\w ]+?)\s*: (.+)$", text, re.MULTILINE)}
    if "model name" not in said:
        return platform.processor() or platform.machine()
    more = [f"{key} {said[key]}" for key in ("cpu family", "model", "cache size") if key in said]
    return f"{said['model name']} ({' / '.join(more)})" if more else said["model name"]


def data_sets(module, inputs):
    """The registry's data sets that a run reads: those in the module's `READS` and among its inputs, but for its `BUNDLED`."""
    bundled = getattr(module, "BUNDLED", ())
    return [value for value in (*getattr(module, "READS", ()), *inputs.values()) if value in registry and value not in bundled]


def data_hash(module, inputs):
    """A fingerprint of the values of the data sets that a run reads; "" if all its data are generated."""
    names = data_sets(module, inputs)
    return _digest(registry[name].content for name in names) if names else ""


@functools.cache
def code(module):
    """The fingerprint of all that decides the numbers of the study in the module of that name."""
    return _digest(f"{place}: {text}" for place, text in sorted(_reach(module, "compute", {}).items()))


def _digest(texts):
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:DIGITS]


def _reach(module, name, found):
    """Add to `found` the statement that defines `name` in the module, and all that it uses."""
    if f"{module}.{name}" in found or name not in (defined := _definitions(module)):
        return found
    statement = defined[name]
    if isinstance(statement, str):
        return _reach_import(statement, found)
    for place, part in ((module, _actions(module)), (f"{module}.{name}", statement)):
        if place not in found:
            found[place] = _written(part)
            _reach_names(module, part, found)
    return found


def _written(statement):
    """The statement as text, which every Python from 3.11 on writes alike: later ones choose other quotes for f-strings."""
    strings = _FStrings()
    text = ast.unparse(strings.visit(copy.deepcopy(statement)))
    return re.sub(r"__f(\d+)__", lambda found: strings.texts[int(found[1])], text)


class _FStrings(ast.NodeTransformer):
    """Takes the f-strings out of a statement and keeps their texts."""

    def __init__(self):
        self.texts = []

    def visit_JoinedStr(self, node):
        text = ast.unparse(node)
        size = 3 if text[1:4] in QUOTES else 1
        inside = text[1 + size:-size]
        quote = next(quote for quote in QUOTES if quote not in inside)
        self.texts.append(f"f{quote}{inside}{quote}")
        return ast.Name(f"__f{len(self.texts) - 1}__", ast.Load())


def _reach_names(module, statement, found):
    """Add what the names in the statement stand for, and those that it asks of a module, such as `power_ep.infer`."""
    defined = _definitions(module)
    for part in ast.walk(statement):
        if isinstance(part, ast.Name):
            _reach(module, part.id, found)
        elif isinstance(part, ast.Attribute):
            first, _, rest = ast.unparse(part).partition(".")
            if isinstance(origin := defined.get(first), str):
                _reach_import(f"{origin}.{rest}", found)


def _reach_import(target, found):
    """Add what "module.name" is; a module alone brings nothing, since the names that are asked of it count."""
    module, _, name = target.rpartition(".")
    if _is_ours(module) and not _is_ours(target):
        _reach(module, name, found)
    return found


@functools.cache
def _definitions(module):
    """What the top level of a module defines: name -> its statement, or for an import the full name of what it is."""
    defined = {}
    for statement in _tree(module).body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            defined[statement.name] = statement
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            defined |= dict.fromkeys(_assigned(statement), statement)
    return _imports(module) | defined


def _assigned(statement):
    """The names that an assignment makes; none if it only changes an existing object.

    A comprehension in its value has names of its own, which are gone afterwards.
    """
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [part.id for target in targets for part in ast.walk(target)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]


@functools.cache
def _actions(module):
    """What a module does when it is imported, beside defining names."""
    definitions = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass)
    return ast.Module([part for part in _tree(module).body if not isinstance(part, definitions)
                       and not (isinstance(part, (ast.Assign, ast.AnnAssign)) and _assigned(part))], [])


@functools.cache
def _imports(module):
    """The names that imports anywhere in the module give, each with the full name of what it stands for."""
    names, is_package = {}, _source(module).name == "__init__.py"
    for part in ast.walk(_tree(module)):
        if isinstance(part, ast.Import):
            names |= {alias.asname or alias.name: alias.name for alias in part.names}
        elif isinstance(part, ast.ImportFrom):
            above = module.split(".")[:None if is_package and part.level == 1 else -part.level] if part.level else []
            origin = ".".join([*above, *([part.module] if part.module else [])])
            names |= {alias.asname or alias.name: f"{origin}.{alias.name}" for alias in part.names}
    return names


@functools.cache
def _tree(module):
    """The module as a syntax tree without docstrings and without the words of exceptions."""
    tree = ast.parse(_source(module).read_text(encoding="utf-8"))
    for part in ast.walk(tree):
        if isinstance(part, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(part, clean=False) is not None:
            part.body = part.body[1:] or [ast.Pass()]
        elif isinstance(part, ast.Raise):
            _silence(part)
    return tree


def _silence(statement):
    """Empty the texts in a statement, with the values that they show."""
    for part in ast.walk(statement):
        if isinstance(part, ast.JoinedStr):
            part.values = []
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            part.value = ""


def _is_ours(name):
    """Whether there is a module of that name in this project."""
    try:
        return name.partition(".")[0] in ("figures", "pepcore") and importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:     # what stands before the last point is no package
        return False


def _source(module):
    return Path(importlib.util.find_spec(module).origin)
