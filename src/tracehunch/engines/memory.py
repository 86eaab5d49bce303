"""How much memory examining a file will take, foreseen cheaply from its size; and how much there is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from tracehunch.engines.task import unread
from tracehunch.errors import ReadError
from tracehunch.trace import remote
from tracehunch.trace.foresee import free_memory, refuse_too_large
from tracehunch.trace.source import load

if TYPE_CHECKING:
    from tracehunch.compare.ranks.model import Unread
    from tracehunch.trace.discover import Source

_BASE_BYTES: Final = 120 << 20  # of a process that read the smallest trace
_PER_TEXT_BYTE: Final = 1.0  # benchmarks/ranks.py measures it
_SHRUNK: Final = 15  # how many times smaller compressed traces are, where the file does not say
_PLAUSIBLE: Final = range(3, 60)
_UNKNOWN_BYTES: Final = 64 << 20
_PACKED: Final = (".gz", ".xz", ".bz2", ".zst", ".zip")
_SHARE: Final = 0.8  # of what is free: others live here, too
_DOUBT: Final = 2  # a file so many times smaller than what is allowed fits, surely


def foreseen_bytes(source: Source) -> int:
    """Return about how much examining a file will take; no file's content is looked into."""
    return int(_BASE_BYTES + _PER_TEXT_BYTE * text_bytes(source))


def budget_bytes(max_memory: int | None) -> int | None:
    """Return what all workers together may take: as the user said, else most of what is free, if known."""
    if max_memory is not None:
        return max_memory
    free = free_memory()
    return None if free is None else int(free * _SHARE)


def refusal(source: Source, allowed: int | None) -> Unread | None:
    """Return the entry of a file that will not fit, so that nobody waits for it to fail; None if it may."""
    if allowed is None or remote.is_url(source.place) or foreseen_bytes(source) * _DOUBT <= allowed:
        return None
    try:
        refuse_too_large(load(source.place)[0], allowed)
    except ReadError as error:
        return unread(source, error.what, "; ".join(filter(None, (error.why, error.todo))))
    return None


def text_bytes(source: Source) -> int:
    """Return about how much text a file holds."""
    size, name = source.bytes or _UNKNOWN_BYTES, source.place.lower()
    if not name.endswith(_PACKED):
        return size
    stated = _stated_bytes(source.place) if name.endswith(".gz") and not remote.is_url(source.place) else 0
    return stated if stated // size in _PLAUSIBLE else size * _SHRUNK


def _stated_bytes(path: str) -> int:
    """Return the size of the text as the end of a gzip file has it, up to 4 GiB; 0 where there is none."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  # a string, as it was found
            file.seek(-4, os.SEEK_END)
            return int.from_bytes(file.read(4), "little")
    except OSError:
        return 0
