"""A build that fails, or is killed, takes no good site away; and two at once do not write the same files."""

import contextlib
import fcntl
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import build_book
import jupyter_cache
import pytest
import set_up
from conftest import ROOT
from processes import left_of, processes_of


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a good site, for builds in which nothing is executed."""
    for name, place in (("BUILD", ""), ("SITE", "html"), ("BEFORE", "html-before"), ("FAILED", "html-failed"), ("CACHE", "cache"),
                        ("FRAMES", "frames"), ("STAMP", "stamp"), ("CACHE_STAMP", "cache-stamp")):
        monkeypatch.setattr(build_book, name, tmp_path / place)
    monkeypatch.setenv("BOOK_FRAMES", "")       # a build sets it, and later tests must not find it
    monkeypatch.setattr(build_book.sys, "argv", ["build_book.py"])
    monkeypatch.setattr(build_book, "fingerprint", lambda *given: "as it is now")
    monkeypatch.setattr(build_book, "execute", lambda scripts: None)
    monkeypatch.setattr(build_book.subprocess, "Popen", lambda *given: SimpleNamespace(wait=lambda: 0))
    site(tmp_path, "good")
    (tmp_path / "stamp").write_text("as it was before")
    return tmp_path


def site(folder, words):
    (folder / "html").mkdir()
    (folder / "html/index.html").write_text(words)


def built(folder, words, good):
    """A function that builds a site of these words, and says whether it is good."""
    def build():
        site(folder, words)
        return good
    return build


def killed(folder):
    def build():
        site(folder, "half")
        os.kill(os.getpid(), signal.SIGKILL)
    return build


def read(folder, name):
    return (folder / name / "index.html").read_text()


def test_a_good_build_replaces_the_site(folder, monkeypatch):
    monkeypatch.setattr(build_book, "build", built(folder, "new", good=True))
    build_book.main()
    assert read(folder, "html") == "new" and build_book.is_current()
    assert not (folder / "html-before").exists()


def test_a_build_that_fails_keeps_the_last_good_site_and_says_where(folder, monkeypatch):
    monkeypatch.setattr(build_book, "build", built(folder, "half", good=False))
    for _ in range(2):
        with pytest.raises(SystemExit, match=r"run `make book` again\. The last good site is in .*html-before"):
            build_book.main()
    assert (read(folder, "html-before"), read(folder, "html-failed")) == ("good", "half")
    assert not (folder / "html").exists()


def test_a_build_that_is_killed_keeps_the_last_good_site(folder, monkeypatch):
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):        # else the child would go on with the rest of the tests
            build_book.build = killed(folder)
            build_book.main()
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert (read(folder, "html-before"), read(folder, "html")) == ("good", "half")
    monkeypatch.setattr(build_book, "build", built(folder, "half again", good=False))
    with pytest.raises(SystemExit):
        build_book.main()
    assert read(folder, "html-before") == "good"


@pytest.fixture
def notebooks(tmp_path, monkeypatch):
    """Forty notebooks, none of which is in the cache."""
    paths = [tmp_path / f"{number}.ipynb" for number in range(40)]
    for path in paths:
        path.write_text("{}")
    cache = SimpleNamespace(add_nb_to_project=lambda path: None,
                            list_unexecuted=lambda **options: [SimpleNamespace(uri=str(path)) for path in paths])
    monkeypatch.setattr(jupyter_cache, "get_cache", lambda folder: cache)
    monkeypatch.setattr(build_book, "BUILD", tmp_path)
    monkeypatch.setattr(build_book, "chapters", lambda: paths)
    return paths


@pytest.mark.parametrize("ends", ["interrupted", "without scripts"])
def test_notebooks_that_have_not_begun_are_not_waited_for(notebooks, monkeypatch, ends):
    monkeypatch.setattr(build_book, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(build_book.executors, "end_with", lambda parent: None)      # it is for processes
    begun = []
    monkeypatch.setattr(build_book, "execute_one", lambda path: begun.append(path) or time.sleep(0.05) or path.name)

    def poll():
        if ends == "interrupted":
            raise KeyboardInterrupt
        return 1

    with contextlib.suppress(KeyboardInterrupt):
        build_book.execute(SimpleNamespace(poll=poll))
    assert len(begun) < len(notebooks)


def work_for_long(path):
    """In place of executing a notebook."""
    path.with_suffix(".begun").touch()
    time.sleep(120)


def test_a_build_that_is_ended_takes_its_workers_along(notebooks, monkeypatch):
    monkeypatch.setattr(build_book, "execute_one", work_for_long)
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.setpgid(0, 0)        # a group of its own, to find the workers by
            build_book.execute(SimpleNamespace(poll=lambda: None))
        os._exit(0)
    while not list(notebooks[0].parent.glob("*.begun")):
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the build has ended by itself"
        time.sleep(0.05)
    assert len(processes_of(child)) >= 2
    os.kill(child, signal.SIGTERM)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM
    assert left_of(child) == []


def test_the_site_stays_where_it_is_while_its_scripts_cannot_be_fetched(folder, monkeypatch):
    monkeypatch.setattr(build_book.subprocess, "Popen", lambda *given: SimpleNamespace(wait=lambda: 1))
    with pytest.raises(SystemExit, match="scripts are missing"):
        build_book.main()
    assert read(folder, "html") == "good"


def test_the_environment_is_set_up_by_one_process_at_a_time():
    folder = os.open(ROOT, os.O_RDONLY)
    with set_up.held(), pytest.raises(BlockingIOError):
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(folder)
