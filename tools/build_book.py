"""Build the site into _build/html: execute the chapters in parallel, then run Jupyter Book with warnings as errors.

Nothing is done when no source has changed since the last good build. The outputs of the chapters are
cached; Jupyter Book notices a changed cell, but not a change in what the cells import, so the cache is thrown
away when `pepcore/`, `figures/`, the exercises or the lock have changed.

Set BOOK_REPOSITORY to the address of the book's public repository (on GitHub, GitLab or Bitbucket) for links to it and
buttons that launch Binder, and BOOK_SITE to the address at which the site will stand (see `way_in.py`).
"""

import contextlib
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import filelock
import joblib
import yaml

from figures.experiments import executors

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "_build"
SITE = BUILD / "html"
BEFORE, FAILED = BUILD / "html-before", BUILD / "html-failed"     # the last good site while a new one is built; half a site
CACHE = BUILD / ".jupyter_cache"
FRAMES = BUILD / "frames"                # pictures that the cached chapters drew
STAMP = BUILD / ".built-from"            # what the present site was built from
CACHE_STAMP = BUILD / ".executed-with"   # what the cached outputs were computed with

IMPORTED = ["pepcore", "figures", "chapters/exercises.py", "chapters/checks", "requirements.txt"]
SOURCES = [*IMPORTED, "chapters", "tools", "_static", "_config.yml", "_toc.yml", "references.bib", "package-lock.json",
           "tests/benchmarks"]


def fingerprint(names, setting=""):
    """A hash of the files and folders of these names, of the Python that runs, and of a setting."""
    digest = hashlib.sha256(f"{platform.python_version()} {setting}".encode())
    for path in sorted({path for name in names for path in files(ROOT / name)}):
        digest.update(f"\0{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def files(path):
    """The files in a folder, or the file itself, without what editors and Python leave beside them."""
    paths = path.rglob("*") if path.is_dir() else [path]
    hidden = {"__pycache__", ".ipynb_checkpoints", ".part", ".lock", ".owner", ".draft", ".bad"}
    return [p for p in paths if p.is_file() and not hidden.intersection([*p.parts, p.suffix])]


def site_fingerprint():
    """What the site would be built from now."""
    return fingerprint(SOURCES, " ".join(os.environ.get(name, "") for name in ("BOOK_REPOSITORY", "BOOK_SITE")))


def is_current():
    """Whether the site exists and was built from the sources as they are now."""
    return (SITE / "index.html").exists() and STAMP.exists() and STAMP.read_text() == site_fingerprint()


def pages():
    """The pages of the table of contents, in order, as paths from the root without a suffix."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    return [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]


def chapters():
    """The notebooks among the pages."""
    return [path for path in (ROOT / f"{page}.ipynb" for page in pages()) if path.exists()]


def execute(scripts):
    """Run all notebooks that are not in the cache, as many at a time as there are processors, the largest first.

    `scripts` is the process that fetches JavaScript. No more notebooks are started once it has failed.
    """
    from jupyter_cache import get_cache

    # the first import of matplotlib on a machine reports on its font cache, which must not end up in a chapter
    subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], check=True, capture_output=True)
    cache = get_cache(CACHE)
    for path in chapters():
        cache.add_nb_to_project(str(path))
    uncached = [Path(record.uri) for record in cache.list_unexecuted(filter_uris=[str(path) for path in chapters()])]
    if not uncached:
        return
    uncached.sort(key=lambda path: -path.stat().st_size)        # no long one is left for the end
    print(f"executing {len(uncached)} notebooks; the whole book takes about three minutes on two cores", flush=True)
    started = time.perf_counter()
    with errors_to(BUILD / "execution.log"):
        pool = ProcessPoolExecutor(joblib.cpu_count(), initializer=executors.end_with, initargs=[os.getpid()])
        try:
            runs = [pool.submit(execute_one, path) for path in uncached]
            for number, run in enumerate(as_completed(runs), start=1):
                print(f"{number:4} of {len(runs)}: {run.result()}", flush=True)
                if scripts.poll():
                    return
        finally:        # not `with`: who interrupts shall not wait for the notebooks that have not begun
            pool.shutdown(cancel_futures=True)
    print(f"executed in {time.perf_counter() - started:.0f} s", flush=True)


def execute_one(path):
    """Run one notebook and keep its outputs; returns its name, and how long it took or that it failed, in words."""
    from jupyter_cache import get_cache
    from jupyter_cache.executors import load_executor

    started, executor = time.perf_counter(), load_executor("local-serial", get_cache(CACHE))
    found = executor.run_and_cache(filter_uris=[str(path)], timeout=configuration()["execute"]["timeout"])
    return f"{path.name}, " + (f"{time.perf_counter() - started:.0f} s" if found.succeeded else "failed")


@contextlib.contextmanager
def errors_to(path):
    """Collect in a file what kernels write to stderr. Jupyter Book itself reports the chapters that failed."""
    sys.stderr.flush()
    terminal = os.dup(2)
    with path.open("w") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


def configuration():
    """The contents of `_config.yml`, with links to the public repository where its address is known."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    extensions = config["sphinx"]["local_extensions"]
    extensions.update(dict.fromkeys(extensions, str(ROOT / "tools")))       # the copy lies in another folder
    address = os.environ.get("BOOK_REPOSITORY")
    if address:
        config["repository"] = {"url": address, "branch": "main"}
        config["html"] |= {"use_repository_button": True, "use_issues_button": True}
        config["launch_buttons"] = {"notebook_interface": "jupyterlab", "binderhub_url": "https://mybinder.org"}
    return config


def build():
    """Run Jupyter Book on everything; False when it gave a warning."""
    config = BUILD / "config.yml"
    config.write_text(yaml.safe_dump(configuration(), sort_keys=False))
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    options = ["-W", "-n", "--keep-going", "--all", "--quiet", "--config", config, "--toc", ROOT / "_toc.yml"]
    return subprocess.run([jupyter_book, "build", ROOT, *options]).returncode == 0


def move_aside(site, place):
    """Keep a site under another name, in the place of what was there."""
    shutil.rmtree(place, ignore_errors=True)
    site.rename(place)


def main():
    if "--check" in sys.argv:
        sys.exit(not is_current())
    BUILD.mkdir(exist_ok=True)
    with filelock.FileLock(BUILD / ".lock"):        # two builds at once would write the same files
        make_current()


def make_current():
    """Build the site unless it is current, and say where it is."""
    if not is_current():
        computed_with = fingerprint(IMPORTED)
        if not CACHE_STAMP.exists() or CACHE_STAMP.read_text() != computed_with:
            shutil.rmtree(CACHE, ignore_errors=True)
            shutil.rmtree(FRAMES, ignore_errors=True)
            CACHE_STAMP.write_text(computed_with)
        os.environ["BOOK_FRAMES"] = str(FRAMES)
        built_from = site_fingerprint()
        scripts = subprocess.Popen([sys.executable, ROOT / "tools/vendor_js.py"])    # npm waits for the network meanwhile
        execute(scripts)
        if scripts.wait():
            sys.exit("The book was not built, since its scripts are missing.")
        print("building the pages, which takes about a minute", flush=True)
        if SITE.exists():
            move_aside(SITE, BEFORE if STAMP.exists() else FAILED)      # without a stamp it is what a killed build left
        STAMP.unlink(missing_ok=True)
        good = False
        try:
            good = build()
        finally:
            if not good and SITE.exists():      # nobody shall take half a site for the book
                move_aside(SITE, FAILED)
        if not good:
            before = f" The last good site is in {BEFORE}." if BEFORE.exists() else ""
            sys.exit(f"The book was not built: mend what the messages above name, then run `make book` again.{before}")
        shutil.rmtree(BEFORE, ignore_errors=True)
        STAMP.write_text(built_from)
    print(f"\nThe book is at {SITE / 'index.html'}\nmake serve shows it at http://localhost:8000")


if __name__ == "__main__":
    main()
