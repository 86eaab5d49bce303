"""Files that are no trace, named for what they are. Nothing is ever unpickled or run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.errors import ReadError
from tracehunch.trace.repair import is_sound
from tracehunch.trace.scan import Text, skip_blank, value_end
from tracehunch.trace.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEAD = 1 << 16
_GIVE_TRACE = "give the trace that torch.profiler exported (export_chrome_trace or tensorboard_trace_handler)"
_SNAPSHOT = "a CUDA memory snapshot of PyTorch"
_VIEW_SNAPSHOT = f"view it at pytorch.org/memory_viz, or {_GIVE_TRACE}"

_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"SQLite format 3\0", "an SQLite database", f"an nsys export cannot be read; {_GIVE_TRACE}"),
    (b"NVR\0", "an Nsight Compute report", _GIVE_TRACE),
    (b"\x7fELF", "an ELF binary", _GIVE_TRACE),
    (b"MZ", "a Windows binary", _GIVE_TRACE),
    (b"\x89HDF", "an HDF5 file", _GIVE_TRACE),
    (b"\x93NUMPY", "a NumPy array", _GIVE_TRACE),
    (b"\x89PNG", "a picture (PNG)", _GIVE_TRACE),
    (b"%PDF", "a PDF document", _GIVE_TRACE),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it and give the trace inside"),
    (b"Rar!", "a RAR archive", "unpack it and give the trace inside"),
    (b"\x04\x22\x4d\x18", "lz4-compressed", "unpack it with lz4 -d"),
    (b"\x1f\x9d", "compressed with compress (.Z)", "unpack it with uncompress"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself", "fetch it with: git lfs pull"),
    (b"# ", "a text file", _GIVE_TRACE),
)
_SUFFIXES = {
    ".nsys-rep": "a report of Nsight Systems (nsys)",
    ".qdrep": "a report of Nsight Systems (nsys)",
    ".qdstrm": "a report of Nsight Systems (nsys)",
    ".ncu-rep": "a report of Nsight Compute (ncu)",
}


def refuse_suffix(label: str) -> ReadError | None:
    """Return the error for a name that says what it is; None for all others."""
    kind = next((kind for suffix, kind in _SUFFIXES.items() if label.lower().endswith(suffix)), None)
    return ReadError(f"this is {kind}, not a trace of torch.profiler", "", _GIVE_TRACE) if kind else None


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
    return _by_magic(head) or _by_look(head) or _other_text(text, pos)


def _by_magic(head: bytes) -> ReadError | None:
    for magic, kind, todo in _MAGIC:
        if head.startswith(magic):
            return _not_a_trace(kind, todo)
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return _pickle(head)
    return None


def _by_look(head: bytes) -> ReadError | None:
    lowered = head[:1024].lstrip().lower()
    if lowered.startswith((b"<!doctype html", b"<html", b"<?xml", b"<head", b"<body")):
        return _not_a_trace(
            "an HTML or XML page (an error page saved in place of the file?)", "download the file again"
        )
    if b"QuadD" in head or b"Nsight Systems" in head:
        return _not_a_trace("a report of Nsight Systems (nsys)", _GIVE_TRACE)
    if b"\0" in head:
        return _not_a_trace(f"a binary file (begins {head[:8].hex(' ')})", _GIVE_TRACE)
    return None


def _other_text(text: Text, pos: int) -> ReadError:
    start = printable(bytes(text[pos : pos + 24]).decode("utf-8", "replace").split("\n")[0], 24)
    if value_end(text, pos) is not None and is_sound(bytes(text[:_HEAD])):
        return ReadError(
            "not a trace",
            f"the file holds the JSON value {start.strip()}, no object with traceEvents",
            _GIVE_TRACE,
        )
    return ReadError(
        f'not JSON: unexpected "{start}" at byte {pos:,}',
        "a trace begins with a brace or a bracket",
        _GIVE_TRACE,
    )


def _pickle(head: bytes) -> ReadError:
    if b"segments" in head or b"device_traces" in head:
        return _not_a_trace(f"{_SNAPSHOT} (a pickle)", _VIEW_SNAPSHOT)
    return _not_a_trace("a Python pickle, which is never loaded because it can run code", _GIVE_TRACE)


def _not_a_trace(kind: str, todo: str) -> ReadError:
    return ReadError(f"not a trace: this is {kind}, not JSON", "", todo)


def refuse_keys(keys: Mapping[str, Any], *, only_early: bool = False) -> None:
    """Raise for JSON of another tool, told by its top-level keys; ``only_early``: if no doubt remains."""
    kind, todo = _kind_of_keys(keys)
    if kind and (not only_early or not {"deviceProperties", "displayTimeUnit"} & keys.keys()):
        raise ReadError(f"not a trace: this is {kind} (no traceEvents in it)", "", todo)


def _kind_of_keys(keys: Mapping[str, Any]) -> tuple[str, str]:
    if "nodes" in keys and ("schema" in keys or "start_ts" in keys):
        return "an execution trace (ExecutionTraceObserver, Chakra)", _GIVE_TRACE
    if "segments" in keys and ("device_traces" in keys or "allocator_settings" in keys):
        return f"{_SNAPSHOT} as JSON", _VIEW_SNAPSHOT
    if "speedscope" in str(keys.get("$schema", "")):
        return "a speedscope profile", _GIVE_TRACE
    return "", ""
