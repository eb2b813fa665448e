"""What all tests share. In CI (the variable CI is set) a skipped test has failed, unless it is marked `may_skip`."""

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# before NumPy is imported: these problems are small, and processes run in parallel
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")


def pytest_configure(config):
    try:
        from hypothesis import settings
    except ImportError:
        return
    # the same examples on every run, and no time limit: a busy machine is no mistake in the code
    settings.register_profile("book", deadline=None, derandomize=True, print_blob=True)
    settings.load_profile("book")


@pytest.fixture
def small_variance(monkeypatch):
    """A context in which K_uu has a Cholesky factor only for kernels of less than the variance given."""
    from pepcore import features, gaussian

    @contextmanager
    def below(variance):
        def safe_cholesky(K, scale=1.0, **options):
            if scale >= variance:
                raise gaussian.NotPositiveDefiniteError("K_uu is not positive definite")
            return gaussian.safe_cholesky(K, scale=scale, **options)

        with monkeypatch.context() as patch:
            patch.setattr(features, "safe_cholesky", safe_cholesky)
            yield

    return below


def checker_tests(right, wrong, also_right=()):
    """Two tests for the checkers of a chapter: right answers pass, and each usual mistake is named.

    Parameters
    ----------
    right : dict of exercise -> right answer
    wrong : list of (exercise, wrong answer, what the checker must say of it)
    also_right : list of (exercise, right answer in another form)
    """
    from exercises import check

    @pytest.mark.parametrize(("name", "answer"), [*right.items(), *also_right])
    def right_answer_passes(name, answer, capsys):
        passed, said = check(name, answer), capsys.readouterr().out
        assert passed, said
        assert said.startswith("Correct")

    @pytest.mark.parametrize(("name", "answer", "hint"), wrong)
    def usual_mistake_is_named(name, answer, hint, capsys):
        assert check(name, answer) is False
        assert hint in " ".join(capsys.readouterr().out.split())

    return right_answer_passes, usual_mistake_is_named


def changed(function, place, change):
    """`function` with one of the things that it returns changed: a mistake for a checker to find."""
    def wrong(*given):
        found = list(function(*given))
        found[place] = change(found[place])
        return tuple(found)

    return wrong


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Cells that nbval collects count as tests of the book; asking for nbval and finding no cell is an error."""
    cells = [item for item in items if item.path.suffix == ".ipynb"]
    for cell in cells:
        cell.add_marker("book")
    if config.getoption("nbval", False) and not cells:
        raise pytest.UsageError("--nbval was given, but no cell of a notebook was found")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A test whose data are neither here nor to be had is skipped."""
    from pepcore.datasets import DataNotFoundError

    try:
        return (yield)
    except DataNotFoundError as problem:
        pytest.skip(f"needs the data: {problem}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if _ran_in_ci() and report.skipped and not hasattr(report, "wasxfail") and not item.get_closest_marker("may_skip"):
        _fail(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    if _ran_in_ci() and report.skipped:
        _fail(report)
    return report


def _ran_in_ci():
    return os.environ.get("CI", "") not in ("", "0", "false")


def _fail(report):
    """Turn the report of a skip into one of a failure with the same reason."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"{reason}\nIn CI nothing may be skipped: what the test needs is missing there."


@pytest.fixture(scope="session")
def site():
    """The folder of the built site; skipped where it was not built from the sources as they stand."""
    import build_book

    if not build_book.is_current():
        pytest.skip("the site was not built from the present sources: run `make book` first")
    return build_book.SITE


def reference(name):
    """Values computed by other software, from the folder PEPCORE_REFERENCE or beside that of the data sets."""
    import numpy as np

    folder = os.environ.get("PEPCORE_REFERENCE")
    if folder is None and "PEPCORE_DATA" in os.environ:
        folder = Path(os.environ["PEPCORE_DATA"]).parent / "reference"
    path = Path(folder or "reference") / name
    if not path.exists():
        pytest.skip(f"no file {path}: set PEPCORE_REFERENCE to the folder of reference values")
    return np.load(path)
