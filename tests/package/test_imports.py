"""The import graph of the package: data flow one way, so a module imports from its own folder and from the floors below."""

import subprocess
import sys

import package_map
import pytest
from package_map import FLOOR, PACKAGE, imported, modules, room


def wrong_way(name, path):
    """What the module imports from a floor that is not below its own; its own folder is free."""
    others = {room(other) for other in imported(path)} - {room(name)}
    return sorted(other for other in others if FLOOR[other] >= FLOOR[room(name)])


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
    assert set(map(room, modules())) == set(FLOOR)


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


def test_the_map_shows_every_room_and_every_direct_import():
    drawn = package_map.drawing()
    assert all(f'href="#module-pepcore.{name}"' in drawn for name in FLOOR)
    assert drawn.count("<path") == sum(map(len, package_map.direct().values()))


def test_what_the_map_leaves_out_is_still_reached():
    below, drawn = package_map.foundations(), package_map.direct()

    def reached(name):
        return drawn[name].union(*map(reached, drawn[name]))

    assert all(others <= reached(name) for name, others in below.items())
    assert all(drawn[name] <= others for name, others in below.items())
    assert sum(map(len, drawn.values())) < sum(map(len, below.values())) / 2


def test_what_not_everybody_needs_is_loaded_when_it_is_asked_for():
    program = ("import sys, pepcore; before = 'pepcore.multiclass' in sys.modules; "
               "print(before, pepcore.multiclass.__name__, pepcore.decoupled.__name__, pepcore.estimators.__name__, "
               "'multiclass' in dir(pepcore), hasattr(pepcore, 'nothing'))")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False pepcore.multiclass pepcore.decoupled pepcore.estimators True False\n", done.stderr
