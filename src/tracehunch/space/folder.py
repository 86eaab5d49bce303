"""The folder of a Space: written whole or not at all, over nothing but what was written before."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracehunch.errors import TracehunchError

if TYPE_CHECKING:
    from collections.abc import Mapping

MANIFEST: Final = ".tracehunch-space.json"
"""Lists what was written, path -> hash, so that it, and nothing else, can be written over."""

_NOT_OURS: Final = ".git"
"""The Space's own repository, which stays as it is."""


def write(folder: Path, contents: Mapping[str, bytes], *, force: bool) -> None:
    """Write the files into a folder that is new or empty, or with ``force`` holds what this wrote before.

    Raises:
        TracehunchError: the folder holds something else, or cannot be written.

    """
    try:
        old = _replaceable(folder, force=force)
        written = {path: sha256(data).hexdigest() for path, data in contents.items()}
        manifest = json.dumps({"files": written}, indent=1, sort_keys=True) + "\n"
        _put(folder, {**contents, MANIFEST: manifest.encode()}, old)
    except OSError as failure:
        why = failure.strerror or str(failure)
        raise TracehunchError(f"cannot write {folder}", why, "choose another folder") from failure


def _replaceable(folder: Path, *, force: bool) -> list[str]:
    """Return the names of the entries that will be replaced."""
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise TracehunchError(f"{folder} is no folder", "", "name a new one")
    entries = sorted(one.name for one in folder.iterdir() if one.name != _NOT_OURS)
    if not entries:
        return []
    foreign = _foreign(folder)
    if foreign is None:
        raise TracehunchError(f"{folder} is not empty", f"it holds {entries[0]}", "name a new folder")
    if not force:
        raise TracehunchError(f"{folder} holds a Space already", "", "--force writes it again")
    if foreign:
        raise TracehunchError(
            f"will not write over {folder / foreign[0]}",
            "it is not as it was written" + (f", nor are {len(foreign) - 1} more" if foreign[1:] else ""),
            "move it away, or name a new folder",
        )
    return entries


def _foreign(folder: Path) -> list[str] | None:
    """Return the files that are not as they were written; None if nothing was written here."""
    try:
        written = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    there = [path for path in _files(folder) if path != MANIFEST]
    return [path for path in there if _hash(folder / path) != written.get(path)]


def _files(folder: Path) -> list[str]:
    """Return the files below, bytecode aside, which running the app leaves behind."""
    found = []
    for here, folders, names in os.walk(folder):
        top = Path(here) == folder
        folders[:] = sorted(one for one in folders if one != "__pycache__" and not (top and one == _NOT_OURS))
        linked = [one for one in folders if (Path(here) / one).is_symlink()]
        found += [(Path(here) / one).relative_to(folder).as_posix() for one in (*linked, *sorted(names))]
    return [one for one in found if one != _NOT_OURS]


def _hash(path: Path) -> str:
    return "" if path.is_symlink() or not path.is_file() else sha256(path.read_bytes()).hexdigest()


def _put(folder: Path, contents: Mapping[str, bytes], old: list[str]) -> None:
    """Write all beside its place, then move it there."""
    new = not folder.exists()
    staging = Path(tempfile.mkdtemp(prefix=".tracehunch-space-", dir=folder.parent if new else folder))
    try:
        ready = staging / "new"
        for path, data in contents.items():
            target = ready / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        if new:
            ready.rename(folder)
        else:
            _swap(folder, ready, staging / "old", old)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _swap(folder: Path, ready: Path, aside: Path, old: list[str]) -> None:
    """Move the old entries aside and the new ones in; all back where one of them fails."""
    aside.mkdir()
    moves = [(folder / name, aside / name) for name in old]
    moves += [(entry, folder / entry.name) for entry in sorted(ready.iterdir())]
    done: list[tuple[Path, Path]] = []
    try:
        for source, target in moves:
            source.rename(target)
            done.append((source, target))
    except BaseException:
        for source, target in reversed(done):
            target.rename(source)
        raise
