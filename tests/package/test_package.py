"""The package as others meet it: quick to import, installable on its own, and free of what is not its business."""

import ast
import hashlib
import json
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT
from problems import python

PACKAGE = ROOT / "pepcore"
PATHS = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]
MODULES = sorted(".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__") for path in PATHS)
# what pip says when no package index answers
UNREACHABLE = re.compile("No matching distribution found|Could not find a version|ProxyError|Connection(Error|Refused)")
OVERLAPPING_CALLS = """
from threading import Event, Thread
from threadpoolctl import threadpool_info
from pepcore.threads import one_blas_thread

begun, end = Event(), Event()

def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

@one_blas_thread
def first():
    begun.set()
    end.wait(60)

@one_blas_thread
def last():
    end.set()
    other.join()
    return blas_threads()

before, other = blas_threads(), Thread(target=first)
other.start()
begun.wait(60)
print(last() == {1}, blas_threads() == before)
"""
COUNTED_IMPORTS = """
import sys

def calls(code):
    count = [0]
    def called(frame, event, argument):
        count[0] += 1
    sys.setprofile(called)
    exec(code)
    sys.setprofile(None)
    return count[0]

print(calls("import numpy, scipy.linalg, scipy.special"), calls("import pepcore"))
"""
LARGE_BLOCKS = """
import ctypes
import numpy as np

class Counts(ctypes.Structure):
    names = "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"
    _fields_ = [(name, ctypes.c_int) for name in names]

mallinfo = ctypes.CDLL(None).mallinfo
mallinfo.restype = Counts
large_block = lambda: np.empty(24 * 2**20, dtype=np.uint8)

start = mallinfo()
first = large_block()       # kept: freeing a mapped block is what changes the threshold
mapped = mallinfo()
import pepcore
imported = mallinfo()
second = large_block()
used = mallinfo()
del second
freed = mallinfo()
print(mapped.hblks - start.hblks, used.hblks - imported.hblks, used.arena - imported.arena, freed.arena - imported.arena)
"""
NOTEBOOK_AND_PLOTTING = {"matplotlib", "IPython", "ipywidgets", "sklearn", "pandas", "joblib", "PIL"}


def test_import_is_quick_and_loads_no_plotting():
    """Counted in calls of functions: seconds say more about the machine than about the package."""
    underneath, ours = map(int, python(COUNTED_IMPORTS).split())
    assert 0 < ours < 0.25 * underneath
    everything = "; ".join(f"import pepcore.{module}" for module in MODULES if not module.startswith("estimators"))
    loaded = set(python(f"import sys; {everything}; print(*sys.modules)").split())
    assert not loaded & NOTEBOOK_AND_PLOTTING
    assert "pepcore.power_ep" in loaded


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep freed memory in their own way")
def test_after_the_import_large_blocks_come_from_memory_that_is_kept():
    """Without it each large block is mapped anew, and unmapped when it is freed."""
    mapped_before, mapped_after, heap_in_use, heap_freed = map(int, python(LARGE_BLOCKS).split())
    assert (mapped_before, mapped_after) == (1, 0)
    assert heap_freed == heap_in_use > 20 * 2**20      # of 24; the heap has some room of its own after the import


def test_overlapping_calls_leave_blas_as_they_found_it():
    assert python(OVERLAPPING_CALLS, OPENBLAS_NUM_THREADS="2") == "True True\n"


def test_package_imports_only_its_declared_dependencies():
    allowed = {*sys.stdlib_module_names, "pepcore", "numpy", "scipy", "threadpoolctl", "tqdm", "pooch"}
    optional = {"sklearn", "joblib"}       # extras [data] and [sklearn], imported only where used; joblib comes with them
    for module in PATHS:
        tree = ast.parse(module.read_text(encoding="utf-8"))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {alias.name.split(".")[0] for node in imports if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module.split(".")[0] for node in imports if isinstance(node, ast.ImportFrom) and not node.level}
        assert names <= allowed | optional, module


def test_the_version_is_the_same_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))["version"] == version
    assert f'__version__ = "{version}"' in (ROOT / "pepcore/__init__.py").read_text(encoding="utf-8")


def test_reference_lists_every_module():
    documented = re.findall(r"automodule:: pepcore\.([\w.]+)", (ROOT / "chapters/api.md").read_text())
    assert sorted(documented) == MODULES


@pytest.fixture(scope="module")
def wheels():
    """A folder with all that building and using the package needs, fetched once: later runs need no package index."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    folder = ROOT / "_build/wheels" / hashlib.sha256(f"{sys.version} {needed}".encode()).hexdigest()[:12]
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=folder.parent))
        fetched = run([sys.executable, "-m", "pip", "download", "--quiet", "--dest", draft, *needed])
        if fetched.returncode:
            shutil.rmtree(draft)
            if UNREACHABLE.search(fetched.stderr):
                pytest.skip("need the package index, once")
            pytest.fail(fetched.stderr)
        draft.rename(folder)
    return folder


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of the checkout: building the package leaves files beside its sources."""
    copy = tmp_path_factory.mktemp("a checkout") / "source"
    ignored = shutil.ignore_patterns(".*", "_build", "_vendor", "build", "node_modules", "*.egg-info", "__pycache__")
    return shutil.copytree(ROOT, copy, ignore=ignored)


@pytest.mark.parametrize("kind", ["folder", "sdist"])
def test_package_installs_on_its_own(kind, source, wheels, tmp_path):
    """`pip install .` in a fresh environment brings all that is needed to fit a model, and nothing of the book."""
    run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    interpreter = tmp_path / "venv/bin/python"
    install = [interpreter, "-m", "pip", "install", "--quiet", "--no-index", "--find-links", wheels]
    if kind == "sdist":
        run([*install, "setuptools>=77"], check=True)
        run([interpreter, "-c", "import setuptools.build_meta as b; b.build_sdist('dist')"], cwd=source, check=True)
        (archive,) = (source / "dist").glob("pepcore-*.tar.gz")
        with tarfile.open(archive) as files:
            names = {name.split("/", 1)[-1] for name in files.getnames()}
        assert {"LICENSE", "README.md", "pepcore/datasets/registry.toml"} <= names
        assert not [name for name in names if name.startswith(("data", "figures", "chapters"))]
    installed = run([*install, archive if kind == "sdist" else source], cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    done = run([interpreter, "-I", "-c", FIT], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) in done.stdout


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, **{"check": False} | options)


FIT = """
import importlib.metadata, importlib.util, pathlib
import numpy as np
import pepcore
from pepcore import datasets, exact, kernels, metrics, power_ep, training

X = np.linspace(0, 1, 20)[:, None]
kernel = kernels.SquaredExponential(1.0, [0.3])
sparse = power_ep.regression(kernel, X, X, np.sin(6 * X[:, 0]), noise=0.1, alpha=0.5)
full = exact.regression(kernel, X, np.sin(6 * X[:, 0]), noise=0.1)
assert abs(sparse.log_evidence - full.log_evidence) < 1e-3
assert importlib.metadata.version("pepcore") == pepcore.__version__
assert not [name for name in ("figures", "data", "tests", "tools") if importlib.util.find_spec(name)]
files = [path for path in pathlib.Path(pepcore.__file__).parent.rglob("*") if path.suffix != ".pyc"]
assert sum(path.stat().st_size for path in files if path.is_file()) < 1_000_000       # the data stay in the checkout
assert "diabetes" in datasets.registry      # the registry's own file came along
print(pepcore.__file__)
"""


def test_repository_names_nothing_outside_itself():
    """Data come from $PEPCORE_DATA; only .ci/ may know where that is."""
    listed = run(["git", "ls-files"], cwd=ROOT)
    if listed.returncode:
        pytest.skip("need a git checkout")
    outside = re.compile(r"\.\./share" + r"d|/wor" + r"k/|/hom" + r"e/\w|/roo" + r"t/|/Users/\w")
    files = [name for name in listed.stdout.splitlines() if not name.startswith(".ci/") and (ROOT / name).is_file()]
    assert len(files) > 30
    found = []
    for name in files:
        text = (ROOT / name).read_bytes().decode("utf-8", errors="ignore")
        found += [f"{name}: {match[0]}" for match in outside.finditer(text)]
    assert found == []


def test_locks_name_no_package_host():
    assert not re.search(r"https?://|file:|--index|--find-links", (ROOT / "requirements.txt").read_text())
    assert '"resolved"' not in (ROOT / "package-lock.json").read_text()


def test_every_source_that_a_docstring_cites_is_named_in_that_of_the_package():
    files = (ROOT / "pepcore").rglob("*.py")
    cited = {key for file in files for key in re.findall(r"\b[a-z]+(?:19|20)\d\d\b", file.read_text(encoding="utf-8"))}
    named = set(re.findall(r"^    ([a-z]+\d{4})  ", (ROOT / "pepcore" / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE))
    assert cited and cited == named
