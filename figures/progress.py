"""A progress bar for those who watch, nothing for those who read the output later.

The bar is shown in a terminal and in a notebook that somebody has open in Jupyter. While the book is built or a
notebook is executed in the background there is none, so that no trace of it is ever saved. `PEPCORE_PROGRESS=0`
turns it off everywhere, `PEPCORE_PROGRESS=1` on.
"""

import os
import sys

from tqdm.auto import tqdm


def watched():
    """True if a person is likely to see a progress bar."""
    wish = os.environ.get("PEPCORE_PROGRESS")
    if wish in ("0", "1"):
        return wish == "1"
    in_open_notebook = "JPY_SESSION_NAME" in os.environ     # Jupyter's server sets it, nbconvert and the book do not
    return in_open_notebook or sys.stderr.isatty()


def progress(items, description, total=None):
    """Iterate over `items` with a bar that disappears when it is full."""
    return tqdm(items, desc=description, total=total, leave=False, disable=not watched())
