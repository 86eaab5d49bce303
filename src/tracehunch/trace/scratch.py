"""An unnamed temporary file on a disk, for text too large to lie in memory beside what is read from it.

It has no name, is readable by nobody else, and is gone with the process, however that ends. A folder that is
itself in memory (tmpfs) is no disk and is not taken.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import BinaryIO, Final

_OTHER_FOLDERS: Final = ("/var/tmp",)  # noqa: S108  # a disk by convention, where /tmp often is none
_MOUNTS: Final = Path("/proc/self/mountinfo")
_IN_MEMORY: Final = ("tmpfs", "ramfs", "devtmpfs")
_KEPT_FREE_BYTES: Final = 256 << 20


def open_scratch(n_bytes: int) -> BinaryIO | None:
    """Open a file that can take as much; None where there is no disk, or not the room."""
    for folder in _folders():
        try:
            if free_bytes(folder) < n_bytes + _KEPT_FREE_BYTES:
                continue
            return tempfile.TemporaryFile(buffering=0, dir=folder)
        except OSError:
            continue
    return None


def has_scratch(n_bytes: int) -> bool:
    """Whether as much would find a place."""
    file = open_scratch(n_bytes)
    if file is not None:
        file.close()
    return file is not None


def free_bytes(folder: str) -> int:
    """Return what may still be written there; OSError where nothing can be told."""
    import shutil  # noqa: PLC0415  # slow to import for what it is

    return shutil.disk_usage(folder).free


def _folders() -> list[str]:
    try:
        first = [tempfile.gettempdir()]
    except OSError:  # nowhere can be written
        first = []
    kinds = _kinds_of_mounts()
    return [folder for folder in (*first, *_OTHER_FOLDERS) if _kind(folder, kinds) not in _IN_MEMORY]


def _kinds_of_mounts() -> dict[str, str]:
    """Return the file system of every mount point (Linux); nothing elsewhere."""
    try:
        lines = _MOUNTS.read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    fields = [line.split(" ") for line in lines]
    return {one[4]: one[one.index("-") + 1] for one in fields if "-" in one[:-1]}


def _kind(folder: str, kinds: dict[str, str]) -> str:
    path = os.path.realpath(folder)
    while path not in kinds and path != os.path.dirname(path):  # noqa: PTH120  # as realpath gave it
        path = os.path.dirname(path)  # noqa: PTH120  # as above
    return kinds.get(path, "")
