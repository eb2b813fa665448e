"""The package as others meet it: quick to import, installable on its own, and free of what is not its business."""

import ast
import os
import platform
import re
import subprocess
import sys

import pytest
from conftest import ROOT

PACKAGE = ROOT / "pepcore"
PATHS = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]
MODULES = sorted(".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__") for path in PATHS)
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
NOTEBOOK_AND_PLOTTING = {"matplotlib", "IPython", "ipywidgets", "sklearn", "pandas", "joblib", "PIL"}


def python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT / "tests",
                          env={**os.environ, **environment}).stdout


def test_import_is_quick_and_loads_no_plotting():
    """In units of what it stands on: seconds by themselves say more about the machine, and change twofold within an hour."""
    seconds = {"import pepcore": [], "import numpy, scipy.linalg, scipy.special": []}
    for _ in range(5):
        for code, spent in seconds.items():
            before = os.times()
            python(code)
            after = os.times()
            # processor time, which is the time on the clock of an idle machine: other tests run beside this one
            spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
    ours, underneath = (min(spent) for spent in seconds.values())
    assert 0 < ours < 1.75 * underneath
    everything = "; ".join(f"import pepcore.{module}" for module in MODULES if module != "estimators")
    loaded = set(python(f"import sys; {everything}; print(*sys.modules)").split())
    assert not loaded & NOTEBOOK_AND_PLOTTING
    assert "pepcore.power_ep" in loaded


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep freed memory in their own way")
def test_fits_reuse_the_memory_of_those_before():
    code = """
import resource
import numpy as np
from pepcore import SquaredExponential, power_ep
X = np.random.default_rng(0).normal(size=(1000, 3))
fit = lambda: power_ep.regression(SquaredExponential(), X[:60], X, X[:, 0], noise=0.1).gradient
fit(), fit()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
fit(), fit()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    assert int(python(code)) < 100       # new pages; near 1000 if each fit asks for all of its memory anew


def test_overlapping_calls_leave_blas_as_they_found_it():
    assert python(OVERLAPPING_CALLS, OPENBLAS_NUM_THREADS="2") == "True True\n"


def test_package_imports_only_its_declared_dependencies():
    allowed = {*sys.stdlib_module_names, "pepcore", "numpy", "scipy", "threadpoolctl", "tqdm", "pooch"}
    optional = {"sklearn"}       # declared as the extras [data] and [sklearn], imported only where it is used
    for module in PATHS:
        tree = ast.parse(module.read_text(encoding="utf-8"))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {alias.name.split(".")[0] for node in imports if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module.split(".")[0] for node in imports if isinstance(node, ast.ImportFrom) and not node.level}
        assert names <= allowed | optional, module


def test_reference_lists_every_module():
    documented = re.findall(r"automodule:: pepcore\.([\w.]+)", (ROOT / "chapters/api.md").read_text())
    assert sorted(documented) == MODULES


@pytest.mark.slow
def test_package_installs_on_its_own(tmp_path):
    """`pip install .` in a fresh environment brings all that is needed to fit a model, and nothing of the book."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    interpreter = tmp_path / "venv/bin/python"
    installed = subprocess.run([interpreter, "-m", "pip", "install", "--quiet", ROOT], capture_output=True, text=True,
                               cwd=tmp_path, check=False)
    if "No matching distribution found for" in installed.stderr:
        pytest.skip("the package index cannot be reached, so the dependencies cannot be installed")
    assert installed.returncode == 0, installed.stderr
    done = subprocess.run([interpreter, "-c", FIT], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) in done.stdout


FIT = """
import importlib.metadata, importlib.util
import numpy as np
import pepcore
from pepcore import datasets, exact, kernels, metrics, power_ep, training

X = np.linspace(0, 1, 20)[:, None]
kernel = kernels.SquaredExponential(1.0, [0.3])
sparse = power_ep.regression(kernel, X, X, np.sin(6 * X[:, 0]), noise=0.1, alpha=0.5)
full = exact.regression(kernel, X, np.sin(6 * X[:, 0]), noise=0.1)
assert abs(sparse.log_evidence - full.log_evidence) < 1e-3
assert importlib.metadata.version("pepcore") == pepcore.__version__
assert importlib.util.find_spec("figures") is None
assert "diabetes" in datasets.registry      # the registry's own file came along
print(pepcore.__file__)
"""


def test_repository_names_nothing_outside_itself():
    """Data come from $PEPCORE_DATA; only .ci/ may know where that is."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of the repository's files")
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
