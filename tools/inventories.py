"""Write small intersphinx inventories of the foreign names that our docstrings mention, so that a build needs no network.

To link to one more name, add it here, run `python tools/inventories.py` and commit the .inv files.
"""

import zlib
from pathlib import Path

# project -> lines "name domain:role priority address $": a "$" at the end of an address stands for the name
NAMES = {
    "python": [
        *[f"{name} py:exception 1 library/exceptions.html#$ -" for name in
          ["ValueError", "TypeError", "KeyError", "RuntimeError", "KeyboardInterrupt", "FileNotFoundError"]],
        *[f"{name} py:class 1 library/stdtypes.html#$ -" for name in ["dict", "list", "tuple", "str"]],
        *[f"{name} py:class 1 library/functions.html#$ -" for name in ["int", "float", "bool", "object"]],
    ],
    "numpy": [
        "numpy.ndarray py:class 1 reference/generated/numpy.ndarray.html#$ -",
        "numpy.random.Generator py:class 1 reference/random/generator.html#$ -",
    ],
    "scipy": [
        f"{name} py:function 1 reference/generated/{name}.html#$ -" for name in
        ["scipy.optimize.minimize", "scipy.linalg.solve_triangular", "scipy.linalg.cholesky", "scipy.special.log_ndtr"]
    ],
}


def main():
    folder = Path(__file__).with_name("inventories")
    folder.mkdir(exist_ok=True)
    for project, lines in NAMES.items():
        header = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
        header += "# The remainder of this file is compressed using zlib.\n"
        (folder / f"{project}.inv").write_bytes(header.encode() + zlib.compress("\n".join(lines).encode() + b"\n", 9))


if __name__ == "__main__":
    main()
