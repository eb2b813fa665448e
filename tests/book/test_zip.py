"""The book for machines without a network: what is in the zip, and what starts it there."""

import ast
import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib.metadata import packages_distributions

import build_book
import make_zip
import pytest
import start_offline

OWN = {"pepcore", "figures", "exercises", "checks"}
OF_JUPYTER = {"IPython"}        # comes with ipykernel


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A zip of a small site and of a wheel that is only a name, with the book's own files."""
    site, wheels = tmp_path / "site", tmp_path / "wheels"
    for folder in (site, wheels):
        folder.mkdir()
    (site / "index.html").write_text("the first page")
    (wheels / "numpy-9-py3-none-any.whl").write_bytes(b"wheel" * 200_000)
    monkeypatch.setattr(make_zip, "WHEELS", wheels)
    monkeypatch.setattr(make_zip, "TARGET", tmp_path / "book.zip")
    monkeypatch.setattr(make_zip, "download", lambda: None)
    monkeypatch.setattr(build_book, "SITE", site)
    monkeypatch.setattr(build_book, "BUILD", tmp_path)
    make_zip.main()
    with zipfile.ZipFile(tmp_path / "book.zip") as packed:
        packed.extractall(tmp_path / "there")
    return tmp_path / "there/pepcore-book"


def test_the_zip_holds_site_notebooks_what_they_import_and_wheels(small):
    assert (small / "site/index.html").read_text() == "the first page"
    assert (small / "wheels/numpy-9-py3-none-any.whl").exists()
    for path in build_book.chapters():
        assert (small / "book" / path.relative_to(build_book.ROOT)).read_bytes() == path.read_bytes()
    for folder in ("pepcore", "figures", "data", "chapters/checks"):
        assert {path.relative_to(build_book.ROOT) for path in build_book.files(build_book.ROOT / folder)} == {
            path.relative_to(small / "book") for path in (small / "book" / folder).rglob("*") if path.is_file()}
    assert not list(small.rglob("__pycache__")) and not list(small.rglob(".git"))


def test_the_zip_says_for_whom_it_is_and_how_to_start(small):
    said, made_for = (small / "README.txt").read_text(), (small / "wheels/made-for.txt").read_text().split()
    assert made_for == ["{}.{}".format(*sys.version_info), sysconfig.get_platform()]
    assert all(part in said for part in (*made_for, "start.py", "site/index.html"))
    assert "{" not in said


def test_the_packed_code_is_imported_from_where_it_was_unpacked(small):
    code = "import pepcore, figures.drawing.slider, exercises; print(pepcore.__file__, figures.__file__, exercises.__file__)"
    settings = dict(os.environ, PYTHONPATH=str(small / "book"))
    done = subprocess.run([sys.executable, "-c", code], cwd=small / "book/chapters", env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(str(small) in place for place in done.stdout.split())


def test_what_the_book_imports_is_packed():
    sources = [path.read_text(encoding="utf-8") for name in ("pepcore", "figures", "chapters")
               for path in (build_book.ROOT / name).rglob("*.py")]
    for path in build_book.chapters():
        sources += ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    names = set()
    for node in (node for source in sources for node in ast.walk(ast.parse(source))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module.split(".")[0])
    names -= set(sys.stdlib_module_names) | OWN | OF_JUPYTER
    assert {"numpy", "scipy", "sklearn"} <= names
    offered = packages_distributions()
    optional = {"distributed"}      # only where a cluster is asked for
    missing = {name for name in names if not {one.lower() for one in offered.get(name, [name])} & set(make_zip.NEEDED)}
    assert missing <= optional


@pytest.mark.parametrize(("made_for", "works"), [
    ("{here} {system}", True), ("2.7 {system}", False), ("{here} another-system", False)])
def test_another_python_or_system_gets_a_sentence(tmp_path, monkeypatch, made_for, works):
    here, system = "{}.{}".format(*sys.version_info), sysconfig.get_platform()
    (tmp_path / "made-for.txt").write_text(made_for.format(here=here, system=system))
    monkeypatch.setattr(start_offline, "WHEELS", str(tmp_path))
    if works:
        start_offline.check()
    else:
        with pytest.raises(SystemExit, match=r"see README\.txt"):
            start_offline.check()


def test_what_installs_the_packages_code_is_packed():
    project = tomllib.loads((build_book.ROOT / "pyproject.toml").read_text())
    assert set(project["build-system"]["requires"]) <= set(make_zip.NEEDED)
