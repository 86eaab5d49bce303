"""tracehunch's own files, as they are installed here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

_BYTECODE: Final = (".pyc", ".pyo")


def own_files() -> dict[str, bytes]:
    """Return path -> content of the package, without bytecode; with the licence, where that is installed."""
    found = dict(_below(files("tracehunch"), "tracehunch"))
    licence = _licence()
    return {**found, "tracehunch/LICENSE": licence} if licence else found


def _below(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.name.startswith((".", "__pycache__")):
            continue
        inside = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _below(entry, inside)
        elif not entry.name.endswith(_BYTECODE):
            yield inside, entry.read_bytes()


def _licence() -> bytes | None:
    try:
        listed = distribution("tracehunch").files or []
    except PackageNotFoundError:  # a copy beside a script
        return None
    found = next((Path(one.locate()) for one in listed if one.name == "LICENSE"), None)
    return found.read_bytes() if found is not None and found.is_file() else None
