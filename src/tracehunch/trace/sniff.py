"""Whether a file may be a trace, from its name and its first kilobytes: for folders of thousands of files."""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import Final, Literal

from tracehunch.trace.header import rank_of_name

HEAD_BYTES: Final = 1 << 14
"""So much of a file is looked at."""

SUFFIXES: Final = (".json", ".json.gz", ".json.xz", ".json.bz2", ".json.zst", ".json.zip")
"""What the name of a trace ends with."""

Kind = Literal["trace", "json", "empty", "other", "packed"]
"""``json``: of something else; ``packed``: cannot be looked into, or is damaged."""

_TEXT_BYTES: Final = 1 << 16
_KEYS: Final = (
    b'"traceEvents"',
    b'"deviceProperties"',
    b'"distributedInfo"',
    b'"baseTimeNanoseconds"',
    b'"displayTimeUnit"',
)
_BLANK: Final = b"\xef\xbb\xbf\xff\xfe \t\r\n"


def has_trace_suffix(name: str) -> bool:
    """Whether a file's name ends as those of traces do."""
    return name.lower().endswith(SUFFIXES)


def is_profilers_name(name: str) -> bool:
    """Whether PyTorch's own handlers name their traces so: these are taken without a look."""
    return ".pt.trace.json" in name.lower()


def is_wanted(name: str, kind: Kind) -> bool:
    """Whether to read a file of this name and kind.

    What is named like one rank's trace is read where it is damaged, empty or no JSON: a rank that is lost
    must be said. A file of another name is passed over.
    """
    if kind == "trace" or is_profilers_name(name):
        return True
    named = ".trace.json" in name.lower() or rank_of_name(name) is not None
    return kind == "packed" or (named and kind != "json")


def kind_of_head(head: bytes) -> Kind:
    """Tell what a file is from its first ``HEAD_BYTES``, compressed or not."""
    if not head:
        return "empty"
    text = _unpacked(head)
    if text is None:
        return "packed"
    text = text.replace(b"\0", b"").lstrip(_BLANK)  # zeros: UTF-16, or padding
    if text[:1] not in (b"{", b"["):
        return "other" if text else "empty"
    if any(key in text for key in _KEYS) or (text[:1] == b"[" and b'"ph"' in text):
        return "trace"
    cut_early = len(text) < _KEYS_WITHIN and b'"schemaVersion"' in text
    return "trace" if cut_early else "json"


_KEYS_WITHIN: Final = 64  # bytes after which a trace of PyTorch has said more than its schema's version


def _unpacked(head: bytes) -> bytes | None:
    """Return the first part of the text; None where that cannot be had."""
    try:
        if head.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(31).decompress(head, _TEXT_BYTES) or None
        if head.startswith(b"\xfd7zXZ\0"):
            return lzma.LZMADecompressor().decompress(head, _TEXT_BYTES) or None
        if head.startswith(b"BZh"):
            # a block is up to 900 kB of text: the head holds none that is whole
            return bz2.BZ2Decompressor().decompress(head, _TEXT_BYTES) or None
    except (zlib.error, lzma.LZMAError, OSError, EOFError):
        return None
    return None if head.startswith((b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"PK\x05\x06")) else head
