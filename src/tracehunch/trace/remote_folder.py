"""What is behind a URL: one file, or the files of a folder or pattern, each with what its head says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tracehunch.trace import remote, sniff

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_LONGER: Final = 10  # the listing of a large bucket takes its time, and this one has answered before
_AT_ONCE: Final = 64  # heads asked for together


@dataclass(frozen=True, slots=True)
class Listed:
    """A file behind a URL."""

    url: str
    bytes: int | None
    kind: sniff.Kind | None = None
    """What its head says; None where it was not looked at, for it was named or its name says enough."""
    passed_over: str = ""
    """Why its name rules it out."""


def listed(url: str) -> Iterator[Listed]:
    """Yield the file of a URL, or what is in its folder or matches its pattern. Raises ReadError."""
    if "::" in url:  # one file system inside another: its listing has no URLs of its own
        yield Listed(url, None)
        return
    system, path = remote.place(url)
    http = url.lower().startswith(("http://", "https://"))
    if re.search(r"[*]" if http else r"[*?\[]", path):
        yield from _looked_at(system, remote.ask(url, lambda: system.glob(path, detail=True)))
    elif _is_folder(url, system, path, http=http):
        times = 1 if http else _LONGER
        yield from _looked_at(system, remote.ask(url, lambda: system.find(path, detail=True), times=times))
    else:
        info = remote.ask(url, lambda: system.info(path))
        yield Listed(url, _size(info))


def _is_folder(url: str, system: Any, path: str, *, http: bool) -> bool:
    """HTTP knows no folders: a URL with a slash at its end is a page of links."""
    if http:
        return path.partition("?")[0].endswith("/")
    return str(remote.ask(url, lambda: system.info(path)).get("type")) == "directory"


def _looked_at(system: Any, found: Mapping[str, Mapping[str, Any]]) -> Iterator[Listed]:
    files = {name: info for name, info in sorted(found.items()) if info.get("type") != "directory"}
    unsure = []
    for name, info in files.items():
        url, last = system.unstrip_protocol(name), remote.name_of(name)
        if last.startswith("."):
            yield Listed(url, _size(info), passed_over="hidden")
        elif not sniff.has_trace_suffix(last):
            yield Listed(url, _size(info), passed_over="not named *.json")
        elif sniff.is_profilers_name(last):
            yield Listed(url, _size(info), "trace")
        else:
            unsure.append((name, url, _size(info)))
    for at in range(0, len(unsure), _AT_ONCE):
        yield from _heads(system, unsure[at : at + _AT_ONCE])


def _heads(system: Any, files: Sequence[tuple[str, str, int | None]]) -> Iterator[Listed]:
    """Look at the first kilobytes of several files at once; what cannot be had is left to the reader."""
    names = [name for name, _, _ in files]
    ends = [sniff.HEAD_BYTES if size is None else min(size, sniff.HEAD_BYTES) for _, _, size in files]
    heads = remote.ask(
        files[0][1], lambda: system.cat_ranges(names, [0] * len(names), ends, on_error="return")
    )
    for (_, url, size), head in zip(files, heads, strict=True):
        yield Listed(url, size, sniff.kind_of_head(head) if isinstance(head, bytes) else "packed")


def _size(info: Mapping[str, Any]) -> int | None:
    size = info.get("size")
    return size if isinstance(size, int) else None
