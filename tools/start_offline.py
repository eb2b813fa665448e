"""Make an environment from the packages in wheels/, without a network, and open the book's first notebook in JupyterLab.

Arguments are handed to JupyterLab, for example --no-browser or another notebook.
"""

import os
import subprocess
import sys
import sysconfig

HERE = os.path.dirname(os.path.abspath(__file__))
WHEELS = os.path.join(HERE, "wheels")
BOOK = os.path.join(HERE, "book")
VENV = os.path.join(HERE, ".venv")
PYTHON = os.path.join(VENV, "Scripts" if os.name == "nt" else "bin", "python")
READY = os.path.join(VENV, "ready")


def main():
    if not os.path.exists(READY):
        check()
        install()
    first = sys.argv[1:] or [os.path.join(BOOK, "chapters", "start-here.ipynb")]
    sys.exit(subprocess.call([PYTHON, "-m", "jupyterlab", *first], cwd=os.path.join(BOOK, "chapters")))


def check():
    """End with a sentence if the packages are for another Python or another system."""
    with open(os.path.join(WHEELS, "made-for.txt")) as stream:
        python, platform = stream.read().split()
    here, system = f"{sys.version_info[0]}.{sys.version_info[1]}", sysconfig.get_platform()
    if (here, system) != (python, platform):
        sys.exit(f"The packages are for Python {python} on {platform}, and this is Python {here} on {system}: see README.txt.")


def install():
    """Make the environment; the book's own code is used in place."""
    print("making an environment in .venv, once ...", flush=True)
    subprocess.check_call([sys.executable, "-m", "venv", "--clear", VENV])
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index"]
    subprocess.check_call(pip + ["--find-links", WHEELS, "--requirement", os.path.join(WHEELS, "requirements.txt")])
    subprocess.check_call(pip + ["--no-deps", "--no-build-isolation", "--editable", BOOK])
    open(READY, "w").close()


if __name__ == "__main__":
    main()
