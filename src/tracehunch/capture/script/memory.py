"""How much memory a recording takes: PyTorch does not tell its events, so the process is measured.

An event takes some 0.5 KiB while it is recorded, and ten times that for a moment when the recording ends.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any, Final

LIMIT_BYTES: Final = 512 << 20
"""About a million events."""

_STATUS: Final = Path("/proc/self/status")
_PAGES: Final = Path("/proc/self/statm")  # one short line: it is read four times a second


class Growth:
    """Measures from when it is made."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._peak = _status("VmHWM") - _status("RssFile") - _status("RssShmem")
        self._tensors = _tensor_bytes(torch)

    def exceeds_limit(self) -> bool:
        """Whether the process has grown by more than the limit, over the most it had before, tensors aside.

        Never where the system does not tell (other than Linux).
        """
        grown = _own_bytes() - self._peak
        if grown <= LIMIT_BYTES:
            return False
        return grown - max(_tensor_bytes(self._torch) - self._tensors, 0) > LIMIT_BYTES


def _own_bytes() -> int:
    """Return this process's memory without files, and what is shared with workers or a GPU; 0: unknown."""
    try:
        _, resident, shared, *_ = _PAGES.read_bytes().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def _status(name: str) -> int:
    """Return an entry of this process's status in bytes, 0 if there is none."""
    try:
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    found = [line.split() for line in lines if line.startswith(f"{name}:")]
    return int(found[0][1]) << 10 if found else 0


def _tensor_bytes(torch: Any) -> int:
    """Return what the tensors in the CPU's memory take that Python knows of."""
    kinds = (torch.Tensor, torch.nn.Parameter)  # exactly: others may not have a storage
    sizes = {}
    for one in gc.get_objects():
        if type(one) in kinds and one.device.type == "cpu" and one.layout is torch.strided:
            storage = one.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())
