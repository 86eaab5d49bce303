"""What is behind a URL: one file, or the files of a folder or pattern, each with what its head says."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tracehunch.errors import ReadError
from tracehunch.trace import remote, sniff

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    if _is_http(url):
        yield from _of_pages(url, system, path)
    elif re.search(r"[*?\[]", path):
        yield from _looked_at(system, remote.ask(url, lambda: system.glob(path, detail=True)))
    elif str(remote.ask(url, lambda: system.info(path)).get("type")) == "directory":
        yield from _looked_at(system, remote.ask(url, lambda: system.find(path, detail=True), times=_LONGER))
    else:
        yield Listed(url, _size(remote.ask(url, lambda: system.info(path))))


def _is_http(url: str) -> bool:
    return url.lower().startswith(("http://", "https://"))


def _of_pages(url: str, system: Any, path: str) -> Iterator[Listed]:
    """HTTP knows no folders: a URL with a slash at its end is a page of links."""
    if "*" in path:
        names = remote.ask(url, lambda: system.glob(path), times=_LONGER)
        yield from _sized(system, _looked_at(system, {name: {} for name in names}))
    elif path.partition("?")[0].endswith("/"):
        yield from _sized(system, _looked_at(system, {name: {} for name in _linked(system, path)}))
    else:
        yield Listed(url, _size(remote.ask(url, lambda: system.info(path))))


def _linked(system: Any, top: str) -> Iterator[str]:
    """Yield the files that pages link to, at ``top`` and below it. A page below that fails is a file."""
    waiting, seen = [top], {top}
    while waiting:
        page = waiting.pop()
        try:
            links = remote.ask(page, partial(system.ls, page, detail=False))
        except ReadError:
            if page == top:
                raise
            yield page.rstrip("/")  # whoever reads it will say what is wrong
            continue
        for link in links:
            if "?" in link or link in seen or not link.startswith(top):  # ?: the same page, sorted
                continue
            seen.add(link)
            if link.endswith("/"):
                waiting.append(link)
            else:
                yield link


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
    if _is_http(files[0][1]):
        heads: Sequence[object] = remote.ask_all([(name, partial(_first, system, name)) for name in names])
    else:
        ends = [sniff.HEAD_BYTES if size is None else min(size, sniff.HEAD_BYTES) for _, _, size in files]
        heads = remote.ask(
            files[0][1], lambda: system.cat_ranges(names, [0] * len(names), ends, on_error="return")
        )
    for (_, url, size), head in zip(files, heads, strict=True):
        yield Listed(url, size, sniff.kind_of_head(head) if isinstance(head, bytes) else "packed")


def _first(system: Any, name: str) -> bytes:
    """Return the first kilobytes; the rest is not fetched also where the server knows no ranges."""
    return remote.ask(name, partial(_read_first, system, name))


def _read_first(system: Any, name: str) -> bytes:
    head = b""
    with system.open(name, "rb", block_size=0) as stream:
        while len(head) < sniff.HEAD_BYTES and (more := stream.read(sniff.HEAD_BYTES - len(head))):
            head += more
    return head


def _sized(system: Any, files: Iterable[Listed]) -> list[Listed]:
    """Ask for the sizes of files that may be traces: pages do not tell them."""
    found = list(files)
    wanted = [at for at, one in enumerate(found) if one.kind and sniff.is_wanted(_name(one), one.kind)]
    infos = remote.ask_all([(found[at].url, partial(_info, system, found[at].url)) for at in wanted])
    for at, info in zip(wanted, infos, strict=True):
        found[at] = replace(found[at], bytes=None if isinstance(info, ReadError) else _size(info))
    return found


def _info(system: Any, url: str) -> Mapping[str, Any]:
    info: Mapping[str, Any] = remote.ask(url, partial(system.info, url))
    return info


def _name(one: Listed) -> str:
    return remote.name_of(one.url)


def _size(info: Mapping[str, Any]) -> int | None:
    size = info.get("size")
    return size if isinstance(size, int) else None
