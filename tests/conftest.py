"""What all tests share, and which tests may be left out.

A test that needs a large data set is left out where $PEPCORE_DATA is not set; where it is set, the set must be there. One
that needs a browser, or anything else that a machine may lack, is left out where that is missing; in CI (the variable CI
is set) that is a failure. One line at the end says how many were left out, and what would bring them back.
"""

import os
import re
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import built_outputs
import pytest

ROOT = Path(__file__).resolve().parent.parent

NEEDS_DATA = ("need a large data set (set PEPCORE_DATA to a folder whose subfolder large holds the sets that the page The data "
              "sets calls large)")
NEEDS_BROWSER = "need a browser (install Chromium or Chrome)"

# before NumPy is imported: these problems are small, and processes run in parallel
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")


def pytest_addoption(parser):
    parser.addoption("--nbval-built", action="store_true", help="compare notebooks with what `make book` computed")


def pytest_configure(config):
    config.pluginmanager.register(built_outputs)        # the hooks of a conftest.py see no files outside its folder
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


@pytest.fixture
def small_digits(monkeypatch):
    """In the place of MNIST the small images of digits that scikit-learn brings: 1400 to learn from, 397 for the test."""
    import numpy as np

    from figures.experiments import mnist
    from figures.experiments.villacampa2017 import fig5, fig5_prior
    from pepcore import datasets

    dataset = datasets.load("digits")
    X, y = dataset.X / dataset.X.max(), dataset.y.astype(int)
    train, test = np.split(np.random.default_rng(1).permutation(len(X)), [1400])
    for module in (mnist, fig5, fig5_prior):
        monkeypatch.setattr(module, "digits", lambda: (X[train], y[train], X[test], y[test]))


def checker_tests(right, wrong, also_right=()):
    """Two tests for the checkers of a chapter: right answers pass, and each usual mistake is named.

    A right answer is also given with lists in the place of arrays and tuples. Mistakes of a declared exercise stand in its
    declaration, and test_exercises.py tries them; any other exercise needs at least three here, with hints of their own.

    Parameters
    ----------
    right : dict of exercise -> right answer
    wrong : list of (exercise, wrong answer, what the checker must say of it)
    also_right : list of (exercise, right answer in another form)
    """
    from exercises import check, declarations

    for name in set(right) - set(declarations()):
        hints = {hint for exercise, _, hint in wrong if exercise == name}
        assert len(hints) >= 3, f"{name}: only {len(hints)} mistakes are tried"

    other_form = [(name, with_lists(answer)) for name, answer in right.items()]

    @pytest.mark.parametrize(("name", "answer"), [*right.items(), *other_form, *also_right])
    def right_answer_passes(name, answer, capsys):
        passed, said = check(name, answer), capsys.readouterr().out
        assert passed, said
        assert said.startswith("Correct")

    @pytest.mark.parametrize(("name", "answer", "hint"), wrong)
    def usual_mistake_is_named(name, answer, hint, capsys):
        assert check(name, answer) is False
        assert hint in " ".join(capsys.readouterr().out.split())

    return right_answer_passes, usual_mistake_is_named


def with_lists(answer):
    """The same answer with lists in the place of arrays and tuples, or a function that returns it so."""
    import numpy as np

    if isinstance(answer, tuple | list):
        return [with_lists(part) if isinstance(part, tuple | list | np.ndarray) else part for part in answer]
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    if not callable(answer):
        return answer
    return lambda *given: with_lists(answer(*given))


def changed(function, place, change):
    """`function` with one of the things that it returns changed: a mistake for a checker to find."""
    def wrong(*given):
        found = list(function(*given))
        found[place] = change(found[place])
        return tuple(found)

    return wrong


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Cells of notebooks count as tests of the book; asking for them and finding none is an error."""
    cells = [item for item in items if item.path.suffix == ".ipynb"]
    for cell in cells:
        cell.add_marker("book")
    if (config.getoption("nbval") or config.getoption("nbval_built")) and not cells:
        raise pytest.UsageError("notebooks were asked for, but no cell of one was found")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    with _without_large_sets():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    with _without_large_sets():
        return (yield)


@contextmanager
def _without_large_sets():
    """Leave a test out that needs a data set which is not here, where nobody has said that it is."""
    from pepcore.datasets import DataNotFoundError

    try:
        yield
    except DataNotFoundError as missing:
        if os.environ.get("PEPCORE_DATA") or not is_large(missing):
            raise
        pytest.skip(NEEDS_DATA)


def is_large(missing):
    """Whether the data set that the error names is one of those that are not in the repository."""
    from pepcore.datasets import registry

    named = re.search(r"the data set '(\w+)'", str(missing))
    return bool(named) and registry[named[1]].folder == "large"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and _must_run(report):
        _fail(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    if report.skipped and _must_run(report):
        _fail(report)
    return report


def _must_run(report):
    """Whether CI asks for this test. Large sets have a switch of their own, $PEPCORE_DATA."""
    return os.environ.get("CI", "") not in ("", "0", "false") and _reason(report) != NEEDS_DATA


def _reason(report):
    """Why a test was skipped, without pytest's own prefix."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def _fail(report):
    """Turn the report of a skip into one of a failure with the same reason."""
    report.longrepr = f"{_reason(report)}\nIn CI nothing may be left out: what the test needs is missing there."
    report.outcome = "failed"


def pytest_terminal_summary(terminalreporter):
    """One line for everything that was left out."""
    reasons = Counter(_reason(report) for report in terminalreporter.getreports("skipped"))
    if reasons:
        parts = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"left out: {parts}", yellow=True)


@pytest.fixture(scope="session", autouse=True)
def no_downloads(tmp_path_factory):
    """Let no test fetch a data set, nor find one in the cache of whoever runs the tests: what is missing is left out."""
    import pooch
    import sklearn.datasets

    def refuse(*arguments, **options):
        raise OSError("tests fetch no data")

    empty = tmp_path_factory.mktemp("no cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooch, "os_cache", lambda project: empty / project)
        patch.setattr(pooch, "retrieve", refuse)
        patch.setattr(sklearn.datasets, "fetch_openml", refuse)
        yield


@pytest.fixture(scope="session")
def site():
    """The folder of the built site; skipped where it was not built from the sources as they stand."""
    import build_book

    if not build_book.is_current():
        pytest.skip("the site was not built from the present sources: run `make book` first")
    return build_book.SITE


def reference(name):
    """Values computed by other software; `tests/reference/README.md` says by which, and how."""
    import numpy as np

    return np.load(ROOT / "tests" / "reference" / name)
