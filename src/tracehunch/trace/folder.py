"""A folder in place of a trace: the newest file in it that is one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracehunch.errors import ReadError
from tracehunch.trace.model import Notice, Trace
from tracehunch.trace.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

_SUFFIXES = (".json", ".json.gz", ".json.xz", ".json.bz2", ".json.zst", ".json.zip")
_OTHERS_SHOWN = 8


def read_newest(folder: Path, read_file: Callable[[Path], Trace]) -> Trace:
    """Read the newest trace in a folder, or below it if it holds none itself.

    What is named like a trace and is none (statistics, a configuration) is passed over, and named in a notice
    with the other traces. Raises ReadError where no file is a trace.
    """
    files = _files(folder.iterdir()) or _files(folder.rglob("*"))
    if not files:
        raise ReadError(
            "a folder without a trace", "no file in it is named *.json or *.json.gz", "give a trace file"
        )
    refused: list[tuple[Path, ReadError]] = []
    for at, path in enumerate(files):
        try:
            trace = read_file(path)
        except ReadError as error:
            refused.append((path, error))
            continue
        notices = (*_told(folder, path, files[at + 1 :], refused), *trace.notices)
        return replace(trace, label=printable(str(path.relative_to(folder)), 200), notices=notices)
    raise _without_trace(folder, refused)


def _files(paths: Iterable[Path]) -> list[Path]:
    """Order files that may be traces: those that the profiler named, then all that are JSON; newest first."""
    found = [path for path in paths if path.name.lower().endswith(_SUFFIXES) and path.is_file()]
    found.sort(key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)
    return sorted(found, key=lambda path: ".trace.json" not in path.name.lower())


def _told(
    folder: Path, chosen: Path, others: Sequence[Path], refused: Sequence[tuple[Path, ReadError]]
) -> list[Notice]:
    """Tell which file was taken, which others there are, and which were passed over."""
    named = [path for path in others if _is_named(path) or not _is_named(chosen)]
    what = f"{printable(chosen.name, 80)}, the newest trace in the folder, was taken"
    told = []
    if named:
        names = [printable(str(path.relative_to(folder)), 80) for path in named]
        shown = ", ".join(names[:_OTHERS_SHOWN]) + (" ..." if len(names) > _OTHERS_SHOWN else "")
        told.append(Notice("other-traces", f"{what}; the others: {shown}"))
    if refused:
        shown = "; ".join(_reason(folder, *one) for one in refused[:_OTHERS_SHOWN])
        more = f"; {len(refused) - _OTHERS_SHOWN} more" if len(refused) > _OTHERS_SHOWN else ""
        told.append(Notice("no-traces", f"{what}; passed over as no trace: {shown}{more}"))
    return told


def _without_trace(folder: Path, refused: Sequence[tuple[Path, ReadError]]) -> ReadError:
    """Return the error of the only file there is, or that none of several is a trace."""
    path, error = refused[0]
    if len(refused) == 1:
        return ReadError(f"{printable(path.name, 80)}: {error.what}", error.why, error.todo)
    why = f"none of {len(refused):,} JSON files is one; the newest, {_reason(folder, path, error)}"
    return ReadError("a folder without a trace", why, "give a trace file")


def _is_named(path: Path) -> bool:
    return ".trace.json" in path.name.lower()


def _reason(folder: Path, path: Path, error: ReadError) -> str:
    return f"{printable(str(path.relative_to(folder)), 80)} ({error.what})"
