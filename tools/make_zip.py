"""Pack the book for a machine without a network, into _build/pepcore-book.zip: site, notebooks, and packages that they need.

The packages are wheels for this platform and this version of Python. On the other machine, `python3 start.py` makes an
environment from them and opens the first notebook.
"""

import hashlib
import shutil
import sys
import sysconfig
import zipfile
from pathlib import Path

import build_book
import set_up

TARGET = build_book.BUILD / "pepcore-book.zip"
WHEELS = build_book.BUILD / "zip-wheels"
LOCK = build_book.ROOT / "requirements.txt"
BOOK = ["chapters", "figures", "pepcore", "data", "references.bib", "pyproject.toml", "README.md", "LICENSE", "LICENSE-text",
        "CITATION.cff"]
NEEDED = ["numpy", "scipy", "threadpoolctl", "tqdm", "joblib", "filelock", "pooch", "scikit-learn", "pandas", "matplotlib",
          "pillow", "ipywidgets", "ipykernel", "jupyterlab", "jupyterlab-myst", "nbconvert", "setuptools>=77"]
README = """Expectation Propagation for Sparse Gaussian Processes
======================================================

site/     the book to read: open site/index.html in a browser. Nothing else is needed.
book/     its notebooks with all that they import.
wheels/   the packages that they need, for Python {python} on {platform} only.
slides/   slides for each chapter, if they were made: open slides/index.html.

To run the notebooks you need Python {python} on {platform}, and no network. In this folder, type

    python{python} start.py

This makes an environment in .venv (about {installed} MB, a minute or two) and opens JupyterLab in your browser. The same
command opens it again the next day. If you move the folder, delete .venv first.

With another system or another Python, the site and the slides work all the same. For the notebooks, install the packages
that wheels/requirements.txt names from a package index.
"""
ROOM = 5        # an installed package takes about this many times the size of its wheel


def main():
    download()
    slides, index = build_book.BUILD / "slides", build_book.BUILD / "slides/index.html"
    fresh = index.exists() and build_book.STAMP.exists() and index.stat().st_mtime > build_book.STAMP.stat().st_mtime
    if index.exists() and not fresh:
        print("the slides are older than the site, and are left out: `make slides` renews them")
    folders = {"site": build_book.SITE} | ({"slides": slides} if fresh else {})
    part = TARGET.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
        for name, text in texts().items():
            packed.writestr(f"pepcore-book/{name}", text)
        for name, folder in folders.items():
            for path in build_book.files(folder) if folder.exists() else []:
                packed.write(path, f"pepcore-book/{name}/{path.relative_to(folder)}")
        for path in (path for name in BOOK for path in build_book.files(build_book.ROOT / name)):
            packed.write(path, f"pepcore-book/book/{path.relative_to(build_book.ROOT)}")
        for path in sorted(WHEELS.glob("*.whl")):
            packed.write(path, f"pepcore-book/wheels/{path.name}", zipfile.ZIP_STORED)
    part.replace(TARGET)
    print(f"The book for machines without a network, {TARGET.stat().st_size / 1e6:.0f} MB: {TARGET}")


def texts():
    """The files that say or do how the notebooks are started: dict of name -> text."""
    python, platform = "{}.{}".format(*sys.version_info), sysconfig.get_platform()
    installed = round(ROOM * sum(path.stat().st_size for path in WHEELS.glob("*.whl")) / 1e6, -2)
    return {"README.txt": README.format(python=python, platform=platform, installed=f"{installed:.0f}"),
            "start.py": (build_book.ROOT / "tools/start_offline.py").read_text(encoding="utf-8"),
            "wheels/made-for.txt": f"{python} {platform}\n",
            "wheels/requirements.txt": "\n".join(NEEDED) + "\n"}


def download():
    """Fetch the wheels that are needed, in the versions of the lock, unless they are there."""
    wanted = hashlib.sha256(LOCK.read_bytes() + Path(__file__).read_bytes() + sys.version.encode()).hexdigest()
    stamp = WHEELS / ".made-from"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print("fetching the packages that the notebooks need", flush=True)
    shutil.rmtree(WHEELS, ignore_errors=True)
    WHEELS.mkdir(parents=True)
    set_up.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--dest", str(WHEELS),
                "--only-binary", ":all:", "--constraint", str(LOCK), *NEEDED])
    stamp.write_text(wanted)


if __name__ == "__main__":
    main()
