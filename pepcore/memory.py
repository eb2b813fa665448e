"""Freed memory stays with the process, for the next array of the same size.

The C library of Linux returns large freed blocks to the system at once, and gets them back page by page, at the first
touch of each. A fit frees and allocates the same few arrays again and again: fits of 1000 data spent up to a third of
their time on new pages. The threshold above which blocks are returned grows with the largest one that was ever freed, up to
32 MiB; other C libraries take no notice.
"""

import numpy as np

LARGEST_BLOCK = 31 * 2**20  # bytes; anything above 32 MiB leaves the threshold as it is


def keep_freed_memory():
    """Free one large block, whose pages are never touched, so that up to 62 MiB of freed memory is kept from now on."""
    np.empty(LARGEST_BLOCK, dtype=np.uint8)
