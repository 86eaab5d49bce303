"""Write what a finished ``torch.profiler.profile`` holds: the whole file, or none."""

from __future__ import annotations

import gzip
import json
import mmap
import os
import re
import shutil
import tempfile
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tracehunch import units
from tracehunch.capture.others import has_lost
from tracehunch.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUFFIXES: Final = (".json.gz", ".json")

GIGANTIC_BYTES: Final = 512 << 20
"""Size of a trace's JSON from which a note says so: about two million events, minutes to read."""

UNFINISHED: Final = "unfinished_annotation"
"""Category of an annotation that had not ended: a viewer shows it, and it is no call of its scope."""

OWN_DOING: Final = ("ProfilerStep", "Activity Buffer", "cuda", "hip", "[memory]")
"""What names begin with that a profiler itself leaves in a trace."""

_ANNOTATION: Final = re.compile(
    rb'"cat": "(?P<cat>(?:gpu_)?user_annotation)",\s*"name": (?P<name>"[^"]*"),'
    rb'\s*"pid": [^,]+,\s*"tid": [^,]+,\s*"ts": (?P<ts>[\d.]+)'
)
"""As Kineto writes it, in several lines or in one."""

_LEVEL: Final = 4  # of gzip: within a few percent of the smallest file, in a third of the time


def export_whole(
    profiler: Any, path: Path, unfinished: Sequence[str] = (), keys: Mapping[str, str] | None = None
) -> int:
    """Write the trace of a finished profiler to ``path``; return how many bytes its JSON has.

    Kineto writes into a folder of its own beside ``path``, and only what it finished is moved there.
    ``unfinished`` names annotations of a step that had not ended: the first, and the others from where it
    begins, get a category of their own, so that they do not count among the calls. ``keys`` (name -> JSON)
    become top-level keys, where the profiler was not told of them before it started.

    Raises:
        CaptureError: it could not be written, or holds no trace.

    """
    if has_lost(profiler):
        why = "another profiler was started while it ran, and took it"
        raise CaptureError("there is no trace", why, "keep to one profiler at a time")
    zipped = _suffix(path) == ".json.gz"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".tracehunch-", dir=path.parent) as folder:
            made = Path(folder) / "trace.json"
            profiler.export_chrome_trace(str(made))
            size = _size_if_whole(made)
            if unfinished:
                made = _marked(made, unfinished)
            if keys:
                made = _with_keys(made, keys)
            (_zipped(made) if zipped else made).replace(path)
    except (AssertionError, OSError, RuntimeError, TypeError) as error:  # TypeError: a path that is no UTF-8
        why = _first_line(error)
        if "already saved" in why:
            what = "this profiler's trace was written before"
            raise CaptureError(what, "PyTorch writes it once", "look at that file") from error
        raise CaptureError(f"the trace could not be written to {path}", why) from error
    return size


def check_place(path: Path) -> None:
    """Make sure that a trace can be written to ``path``, before there is one; makes its folder.

    Raises:
        CaptureError: its name or its folder forbids it.

    """
    _suffix(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"cannot write to {path.parent}"
        why = "it is no folder" if path.parent.exists() else _first_line(error)
        raise CaptureError(what, why, "choose another folder") from error
    if not os.access(path.parent, os.W_OK):
        raise CaptureError(f"cannot write to {path.parent}", "no permission", "choose another folder")
    if path.is_dir():
        raise CaptureError(f"cannot write {path}", "it is a folder", "name a file in it")


def gigantic(size_bytes: int, steps: int) -> str:
    """Return a note on a trace that is too large to be read with ease, "" if it is not."""
    if size_bytes < GIGANTIC_BYTES:
        return ""
    fewer = "fewer steps" if steps > 1 else "a smaller part"
    return f"the trace is {units.size(size_bytes)} of JSON, slow to read: record {fewer}, without stacks"


def _first_line(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return text.splitlines()[0] if text else type(error).__name__


def _suffix(path: Path) -> str:
    for suffix in SUFFIXES:
        if path.name.endswith(suffix):
            return suffix
    why = "its name ends neither in .json nor in .json.gz"
    raise CaptureError(f"cannot write a trace to {path}", why, "rename it")


def _size_if_whole(made: Path) -> int:
    """Return a file's size; Kineto says nothing of a disk that is full."""
    size = made.stat().st_size
    with made.open("rb") as file:
        file.seek(max(size - 64, 0))
        if not file.read().rstrip().endswith(b"}"):
            raise OSError(0, "the profiler wrote only a part of it (is the disk full?)")
    return size


def _marked(made: Path, names: Sequence[str]) -> Path:
    spelled = [json.dumps(name).encode() for name in names]
    result = made.with_name("marked.json")
    with (
        made.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text,
        result.open("wb") as target,
    ):
        found = [(one["name"], float(one["ts"]), one.span("cat")) for one in _ANNOTATION.finditer(text)]
        began = min((ts for name, ts, _ in found if name == spelled[0]), default=inf)
        at = 0
        for start, end in (span for name, ts, span in found if name in spelled and ts >= began):
            target.write(text[at:start] + UNFINISHED.encode())
            at = end
        target.write(text[at:])
    return result


def _with_keys(made: Path, keys: Mapping[str, str]) -> Path:
    """Put keys behind the brace that the file begins with."""
    result = made.with_name("described.json")
    with made.open("rb") as source, result.open("wb") as target:
        first = source.read(1 << 12)
        at = first.index(b"{") + 1
        added = "".join(f"\n  {json.dumps(name)}: {value}," for name, value in keys.items())
        target.write(first[:at] + added.encode() + first[at:])
        shutil.copyfileobj(source, target, 1 << 20)
    return result


def _zipped(made: Path) -> Path:
    result = made.with_name("trace.json.gz")
    with made.open("rb") as source, gzip.open(result, "wb", compresslevel=_LEVEL) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return result
