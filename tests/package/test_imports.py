"""The import graph of the package: data flow one way, so a module imports from its own folder and from the floors below."""

import ast

import pytest
from conftest import ROOT

# from the ground up; whoever adds a file or a folder says on which floor it stands
FLOORS = (
    ("gaussian", "threads"),
    ("validation",),
    ("kernels", "likelihoods", "sites", "metrics"),
    ("features", "sweeps", "datasets"),
    ("normal_equations", "posterior"),
    ("results",),
    ("exact", "power_ep", "online"),
    ("training",),
    ("multiclass",),
    ("decoupled",),
    ("estimators",),
)
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
PACKAGE = ROOT / "pepcore"


def modules(package=PACKAGE):
    """name -> path of every module below the package's own __init__, "kernels.stationary" for example."""
    paths = {path.relative_to(package).with_suffix("").parts: path for path in package.rglob("*.py")}
    return {".".join(parts).removesuffix(".__init__"): path for parts, path in paths.items() if parts != ("__init__",)}


def imported(path):
    """Modules of the package that the file imports, anywhere in it; `from pepcore.online import fixed_basis` is that module."""
    known, found = modules(), set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("pepcore.") for alias in node.names if alias.name.startswith("pepcore.")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "pepcore":
            for alias in node.names:
                name = f"{node.module}.{alias.name}".removeprefix("pepcore.")
                found.add(name if name in known else node.module.removeprefix("pepcore."))
    return found - {"pepcore"}


def wrong_way(name, path):
    """What the module imports from a floor that is not below its own; its own folder is free."""
    room = name.partition(".")[0]
    others = {other.partition(".")[0] for other in imported(path)} - {room}
    return sorted(other for other in others if FLOOR[other] >= FLOOR[room])


def circle(graph):
    """A circle in a dict node -> set of nodes, as a list of nodes; [] if there is none."""
    done, way = set(), []

    def visit(node):
        if node in way:
            return [*way[way.index(node):], node]
        if node in done:
            return []
        way.append(node)
        found = next(filter(None, map(visit, sorted(graph[node]))), [])
        way.pop()
        done.add(node)
        return found

    return next(filter(None, map(visit, sorted(graph))), [])


def test_every_file_and_folder_has_a_floor():
    assert {name.partition(".")[0] for name in modules()} == set(FLOOR)


@pytest.mark.parametrize("name", modules())
def test_nothing_is_imported_from_the_same_floor_or_above(name):
    assert wrong_way(name, modules()[name]) == []


def test_no_module_imports_itself_by_way_of_others():
    assert circle({name: imported(path) & set(modules()) for name, path in modules().items()}) == []


def test_a_kernel_that_imports_sites_is_found(tmp_path):
    kernel = tmp_path / "stationary.py"
    kernel.write_text("def f():\n    from pepcore.sites import cavity\n")
    assert wrong_way("kernels.stationary", kernel) == ["sites"]


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def test_the_package_is_seen_at_one_glance():
    entries = [path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 22, sorted(entries)


@pytest.mark.parametrize("name", modules())
def test_a_module_fits_on_a_few_screens(name):
    assert len(modules()[name].read_text(encoding="utf-8").splitlines()) <= 320
