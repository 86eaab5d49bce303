"""Memory that columns of a trace leave behind is used again."""

from typing import Final

import numpy as np

_LARGEST_BYTES: Final = 31 << 20
"""Just below what the C library of Linux still takes for its own heap."""


def reuse_freed() -> None:
    """Let the C library keep what columns of some megabytes free, for the next ones.

    That of Linux asks the kernel for each block that is larger than any it saw freed, and gives it back: then
    every column is paid for anew, page by page, which can take longer than the arithmetic. One large block
    that comes and goes, never touched, teaches it. Elsewhere it does nothing.
    """
    np.empty(_LARGEST_BYTES, dtype=np.uint8)
