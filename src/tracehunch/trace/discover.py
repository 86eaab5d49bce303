"""Paths, folders, globs and URLs -> the files that may be traces, and what was passed over."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from tracehunch.errors import ReadError
from tracehunch.trace import remote, remote_folder, sniff
from tracehunch.trace.model import Notice
from tracehunch.trace.text import count_of, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_GLOB: Final = re.compile(r"[*?\[]")
_NUMBERS: Final = re.compile(r"([0-9]{1,18})")
_NAME: Final = 4096
_MOST_MISSED: Final = 8  # of one reason; the others are counted


@dataclass(frozen=True, slots=True)
class Source:
    """A file that may be a trace."""

    place: str
    """What opens it, from any folder: an absolute path, or a URL."""
    shown: str
    """How it was found, for people: printable, without passwords."""
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """What was asked for and cannot be had, in the words of a ReadError."""

    shown: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Discovered:
    """All that was found, by name, numbers in names taken as numbers: rank 2 before rank 10."""

    sources: tuple[Source, ...]
    missed: tuple[Missed, ...]
    notices: tuple[Notice, ...]


@dataclass(slots=True)
class _Found:
    sources: dict[str, Source] = field(default_factory=dict)
    missed: list[Missed] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)
    looked_at: int = 0
    twice: int = 0
    folders: set[tuple[int, int]] = field(default_factory=set)

    def take(self, source: Source) -> None:
        """Take a file, once."""
        key = source.place if remote.is_url(source.place) else os.path.realpath(source.place)
        self.twice += key in self.sources
        self.sources.setdefault(key, source)

    def miss(self, shown: str, what: str, why: str) -> None:
        """Note what cannot be had."""
        self.missed.append(Missed(printable(shown, _NAME), what, printable(why, _NAME)))


def discover(paths: Sequence[str | os.PathLike[str]]) -> Discovered:
    """Find the files that may be traces. Nothing raises: what cannot be had is in ``missed``.

    A file that is named is taken whatever it holds, for the reader says best what it is. In folders and
    behind URLs of folders, names and first kilobytes decide.
    """
    found = _Found()
    names = [os.fspath(path) for path in paths]
    urls = [name for name in names if _is_url(name)]
    behind = dict(zip(urls, remote.ask_all([(url, partial(_listed, url)) for url in urls]), strict=True))
    for name in names:
        if name in behind:
            _url(name, behind[name], found)
        else:
            _one(name, found)
    sources = sorted(found.sources.values(), key=lambda source: natural(source.shown))
    missed, folded = _folded(found.missed)
    return Discovered(tuple(sources), missed, (*_told(found), *folded))


def natural(name: str) -> tuple[list[tuple[str, int]], str]:
    """Return the key that puts ``rank2`` before ``rank10``."""
    parts = _NUMBERS.split(name)
    pairs = zip(parts[::2], [*map(int, parts[1::2]), -1], strict=True)
    return list(pairs), name


def _one(path: str, found: _Found) -> None:
    local = remote.local_path(path) or path
    if path == "-":
        found.miss("-", "standard input is not read here", "it holds one trace; give files or a folder")
    elif not path:
        found.miss("''", "the path is empty", "give traces, or a folder of them")
    elif os.path.isdir(local):  # noqa: PTH112  # a string, as the user wrote it
        _folder(local, found)
    elif _GLOB.search(local) and not os.path.lexists(local):
        _pattern(local, found)
    else:
        _file(local, found)


def _is_url(path: str) -> bool:
    local = remote.local_path(path) or path
    return remote.is_url(local) and not os.path.lexists(local)


def _pattern(pattern: str, found: _Found) -> None:
    matches = sorted(glob.glob(_folder_as_named(pattern), recursive=True))  # noqa: PTH207  # patterns may be absolute
    files = [match for match in matches if not os.path.isdir(match)]  # noqa: PTH112  # as above
    for match in files:
        _file(match, found)
    for match in matches if not files else ():  # a pattern of folders, such as run-*
        _folder(match, found)
    if not matches:
        found.miss(pattern, "no file matches", "nothing there has such a name")


def _folder_as_named(pattern: str) -> str:
    """Take the folder of a pattern by its name where there is such a folder: ``run [1]/*.json``."""
    folder, name = os.path.split(pattern)
    return os.path.join(glob.escape(folder), name) if os.path.isdir(folder) else pattern  # noqa: PTH112, PTH118  # as above


def _file(path: str, found: _Found) -> None:
    """Take a file that was named."""
    try:
        status = os.stat(path)  # noqa: PTH116  # as above
    except (OSError, ValueError) as error:
        found.miss(path, "cannot be opened", _reason(error))
        return
    if not stat.S_ISREG(status.st_mode):
        found.miss(path, "is no regular file", "a pipe or a device can be read once only")
        return
    found.take(_source(path, status.st_size))


def _source(path: str, size: int) -> Source:
    return Source(os.path.abspath(path), printable(path, _NAME), size)  # noqa: PTH100  # as above


def _folder(top: str, found: _Found) -> None:
    """Take what may be traces in a folder and below it; a folder that links lead to again is read once."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            status = os.stat(folder)  # noqa: PTH116  # a string, as above
            if (status.st_dev, status.st_ino) in found.folders:
                continue
            found.folders.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                waiting += [inner for entry in entries if (inner := _entry(entry, found))]
        except OSError as error:
            found.miss(folder, "the folder cannot be read", _reason(error))


def _entry(entry: os.DirEntry[str], found: _Found) -> str:
    """Take or pass over one entry; return a folder's path, "" for anything else."""
    if entry.name.startswith("."):
        found.looked_at += 1
        found.passed_over["hidden"] += 1
        return ""
    try:
        if entry.is_dir():
            return entry.path
        found.looked_at += 1
        if not sniff.has_trace_suffix(entry.name):
            found.passed_over["not named *.json"] += 1
        elif not stat.S_ISREG(entry.stat().st_mode):
            found.passed_over["not regular files"] += 1
        elif _may_be_trace(entry, found):
            found.take(_source(entry.path, entry.stat().st_size))
    except OSError as error:
        found.miss(entry.path, "cannot be opened", _reason(error))
    return ""


def _may_be_trace(entry: os.DirEntry[str], found: _Found) -> bool:
    with open(entry.path, "rb") as file:  # noqa: PTH123  # as above; also shows whether it may be read
        kind = sniff.kind_of_head(b"" if sniff.is_profilers_name(entry.name) else file.read(sniff.HEAD_BYTES))
    return _counted(entry.name, kind, found)


def _counted(name: str, kind: sniff.Kind, found: _Found) -> bool:
    wanted = sniff.is_wanted(name, kind)
    if not wanted:
        found.passed_over["empty" if kind == "empty" else "JSON without a trace"] += 1
    return wanted


def _listed(url: str) -> list[remote_folder.Listed]:
    return list(remote_folder.listed(url))


def _url(url: str, listed: list[remote_folder.Listed] | ReadError, found: _Found) -> None:
    """Take what is behind a URL, or note why that cannot be had."""
    if isinstance(listed, ReadError):
        why = "; ".join(filter(None, (listed.why, listed.todo)))
        found.miss(remote.shown_url(url), listed.what, why)
        return
    for one in listed:
        found.looked_at += bool(one.kind or one.passed_over)
        if one.passed_over:
            found.passed_over[one.passed_over] += 1
        elif one.kind is None or _counted(remote.name_of(one.url), one.kind, found):
            found.take(Source(one.url, remote.shown_url(one.url), one.bytes))


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "permission denied"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _told(found: _Found) -> Iterator[Notice]:
    if count := sum(found.passed_over.values()):
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in sorted(found.passed_over.items()))
        whole = count_of(found.looked_at, "file")
        yield Notice("passed-over", f"{count:,} of {whole} passed over as no traces: {reasons}")
    if found.twice:
        yield Notice(
            "named-twice", f"{count_of(found.twice, 'file')} named more than once: each is read once"
        )


def _folded(missed: Sequence[Missed]) -> tuple[tuple[Missed, ...], list[Notice]]:
    """Keep a few of what was missed for the same reason, and count the others."""
    kept: list[Missed] = []
    seen: Counter[tuple[str, str]] = Counter()
    for one in missed:
        seen[one.what, one.why] += 1
        if seen[one.what, one.why] <= _MOST_MISSED:
            kept.append(one)
    more = [
        Notice("not-read", f"{what} ({why}): {n - _MOST_MISSED:,} more", lossy=True)
        for (what, why), n in seen.items()
        if n > _MOST_MISSED
    ]
    return tuple(kept), more
