"""Files that are no trace, named for what they are. Nothing is ever unpickled or run."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Any, Final

from tracehunch.errors import ReadError
from tracehunch.trace.repair import is_sound
from tracehunch.trace.scan import Text, skip_blank, value_end
from tracehunch.trace.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEAD = 1 << 16
GIVE_TRACE: Final = (
    "give the trace that torch.profiler exported (export_chrome_trace or tensorboard_trace_handler)"
)
_SNAPSHOT = "a CUDA memory snapshot of PyTorch"
_VIEW_SNAPSHOT = f"view it at pytorch.org/memory_viz, or {GIVE_TRACE}"

_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"SQLite format 3\0", "an SQLite database", f"an nsys export cannot be read; {GIVE_TRACE}"),
    (b"NVR\0", "an Nsight Compute report", GIVE_TRACE),
    (b"\x7fELF", "an ELF binary", GIVE_TRACE),
    (b"MZ", "a Windows binary", GIVE_TRACE),
    (b"\x89HDF", "an HDF5 file", GIVE_TRACE),
    (b"\x93NUMPY", "a NumPy array", GIVE_TRACE),
    (b"\x89PNG", "a picture (PNG)", GIVE_TRACE),
    (b"\xff\xd8\xff", "a picture (JPEG)", GIVE_TRACE),
    (b"%PDF", "a PDF document", GIVE_TRACE),
    (b"PAR1", "a Parquet file", GIVE_TRACE),
    (b"ARROW1", "an Arrow file", GIVE_TRACE),
    (b"\x5d\0\0", "LZMA-compressed (.lzma)", "unpack it with xz -d --format=lzma"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it and give the trace inside"),
    (b"Rar!", "a RAR archive", "unpack it and give the trace inside"),
    (b"\x04\x22\x4d\x18", "lz4-compressed", "unpack it with lz4 -d"),
    (b"\x1f\x9d", "compressed with compress (.Z)", "unpack it with uncompress"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself", "fetch it with: git lfs pull"),
    (b"# ", "a text file", GIVE_TRACE),
)
_PICKLE = re.compile(
    rb"\x80[\x02-\x05]"
    rb"|\((?:dp|lp)\d+\n|[}\]]q\0|\(?c[\w.]+\n\w+\n"  # protocols 0 and 1, of a dict, a list or an object
)
_PACKET = re.compile(rb"\n(?P<size>[\x80-\xff]{0,4}[\x01-\x7f])(?P<field>[^\0-\x07])", re.DOTALL)
_WIRE_TYPES = (0, 1, 2, 5)  # of protobuf
_PACKETS = 64  # so many are looked at
_SUFFIXES = {
    ".nsys-rep": "a report of Nsight Systems (nsys)",
    ".qdrep": "a report of Nsight Systems (nsys)",
    ".qdstrm": "a report of Nsight Systems (nsys)",
    ".ncu-rep": "a report of Nsight Compute (ncu)",
}


def refuse_suffix(label: str) -> ReadError | None:
    """Return the error for a name that says what it is; None for all others."""
    kind = next((kind for suffix, kind in _SUFFIXES.items() if label.lower().endswith(suffix)), None)
    return ReadError(f"this is {kind}, not a trace of torch.profiler", "", GIVE_TRACE) if kind else None


def refuse_text(text: Text) -> ReadError:
    """Return the error for content that is not JSON's ``{`` or ``[``; it names what it looks like."""
    pos = skip_blank(text, 0)
    if pos >= len(text):
        what = (
            "empty (0 bytes)" if len(text) == 0 else f"empty: {len(text):,} bytes of white space, no content"
        )
        return ReadError(
            f"the file is {what}", "the disk was full, or the job died before the export", "export it again"
        )
    head = bytes(text[:_HEAD])
    return _by_magic(text, head) or _by_look(head) or _other_text(text, pos)


def _by_magic(text: Text, head: bytes) -> ReadError | None:
    for magic, kind, todo in _MAGIC:
        if head.startswith(magic):
            return _not_a_trace(kind, todo)
    if _PICKLE.match(head):
        return _pickle(text, head)
    if _is_zlib(head):
        return _not_a_trace("zlib-compressed", "unpack it (it has a zlib header) and give the trace inside")
    if _is_perfetto(text):
        return _not_a_trace("a trace of Perfetto in its own format (protobuf)", GIVE_TRACE)
    return None


def _is_zlib(head: bytes) -> bool:
    if head[:1] != b"x" or int.from_bytes(head[:2], "big") % 31:  # RFC 1950
        return False
    try:
        return bool(zlib.decompressobj().decompress(head, 1))
    except zlib.error:
        return False


def _is_perfetto(text: Text) -> bool:
    """Whether this is a list of packets: field 1 with a length, and fields of a known type inside each."""
    pos = 0
    for _ in range(_PACKETS):
        match = _PACKET.match(text, pos)
        if match is None or int(match["field"][0]) & 7 not in _WIRE_TYPES:
            return False
        size = sum((byte & 127) << 7 * i for i, byte in enumerate(match["size"]))
        pos = match.end("size") + size
        if pos >= len(text):
            break
    return pos <= len(text)


def _by_look(head: bytes) -> ReadError | None:
    lowered = head[:1024].lstrip().lower()
    if lowered.startswith((b"<!doctype html", b"<html", b"<?xml", b"<head", b"<body")):
        return _not_a_trace(
            "an HTML or XML page (an error page saved in place of the file?)", "download the file again"
        )
    if b"QuadD" in head or b"Nsight Systems" in head:
        return _not_a_trace("a report of Nsight Systems (nsys)", GIVE_TRACE)
    if b"\0" in head:
        return _not_a_trace(f"a binary file (begins {head[:8].hex(' ')})", GIVE_TRACE)
    return None


def _other_text(text: Text, pos: int) -> ReadError:
    start = _visible(printable(bytes(text[pos : pos + 24]).decode("utf-8", "replace").split("\n")[0], 24))
    if value_end(text, pos) is not None and is_sound(bytes(text[:_HEAD])):
        return ReadError(
            "not a trace",
            f"the file holds the JSON value {start.strip()}, no object with traceEvents",
            GIVE_TRACE,
        )
    return ReadError(
        f'not JSON: unexpected "{start}" at byte {pos:,}',
        "a trace begins with a brace or a bracket",
        GIVE_TRACE,
    )


def _visible(text: str) -> str:
    """Show spaces of other kinds, and what has no shape, as escapes: they may be why the file is not JSON."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _pickle(text: Text, head: bytes) -> ReadError:
    if b"segments" in head or re.search(b"device_traces", text):  # which may come after all segments
        return _not_a_trace(f"{_SNAPSHOT} (a pickle)", _VIEW_SNAPSHOT)
    return _not_a_trace("a Python pickle, which is never loaded because it can run code", GIVE_TRACE)


def _not_a_trace(kind: str, todo: str) -> ReadError:
    return ReadError(f"not a trace: this is {kind}, not JSON", "", todo)


def refuse_keys(keys: Mapping[str, Any], *, only_early: bool = False) -> None:
    """Raise for JSON of another tool, told by its top-level keys; ``only_early``: if no doubt remains."""
    kind, todo = _kind_of_keys(keys)
    if kind and (not only_early or not {"deviceProperties", "displayTimeUnit"} & keys.keys()):
        raise ReadError(f"not a trace: this is {kind} (no traceEvents in it)", "", todo)


def _kind_of_keys(keys: Mapping[str, Any]) -> tuple[str, str]:
    if "nodes" in keys and ("schema" in keys or "start_ts" in keys):
        return "an execution trace (ExecutionTraceObserver, Chakra)", GIVE_TRACE
    if "segments" in keys and ("device_traces" in keys or "allocator_settings" in keys):
        return f"{_SNAPSHOT} as JSON", _VIEW_SNAPSHOT
    if "speedscope" in str(keys.get("$schema", "")):
        return "a speedscope profile", GIVE_TRACE
    return "", ""
