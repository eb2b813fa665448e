"""Open the book in JupyterLab at its first page, with nothing that pops up."""

import json
import os
import sys
from pathlib import Path

import build_book

SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},      # otherwise text far below stays raw for a while
}


def write_settings():
    """Write settings that hold unless the reader has some of their own."""
    path = Path(sys.prefix) / "share/jupyter/lab/settings/overrides.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(SETTINGS, indent=1) + "\n")


def main():
    write_settings()
    first = f"{build_book.pages()[0]}.ipynb"
    program = Path(sys.executable).with_name("jupyter")
    os.execv(program, [str(program), "lab", str(build_book.ROOT / first), *sys.argv[1:]])


if __name__ == "__main__":
    main()
