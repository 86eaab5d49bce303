"""Where in the user's code a call comes from: the innermost line, and the path of the module around it."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

_Origin = Literal["user", "library", "hidden"]

_HERE: Final = str(Path(__file__).parents[2])  # all of tracehunch
_ROOTS: Final = tuple(str(Path(__file__).parents[1] / part / "record.py") for part in ("program", "compiled"))
"""Files whose functions call the program: what is around them calls the recording, not the program."""

INSTALLED: Final = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
"""Folders of what is installed: Python's own library and packages."""


def line() -> str:
    """Return the innermost line of the user's code on the stack, as "model.py:12".

    Where the program is library code all through it is the innermost line outside torch; "" for none.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # far cheaper than inspect.stack
    library = ""
    while frame is not None:
        name = frame.f_code.co_filename
        if name in _ROOTS:
            break
        origin = _origin(name)
        if origin == "user":
            return f"{Path(name).name}:{frame.f_lineno}"
        if origin == "library" and not library:
            library = f"{Path(name).name}:{frame.f_lineno}"
        frame = frame.f_back
    return library


@cache
def _origin(name: str) -> _Origin:
    if not name or name.startswith(("<", _HERE)):
        return "hidden"
    parts = Path(name).parts
    if ("torch" in parts and "site-packages" in parts) or ("dist-packages" in parts and "torch" in parts):
        return "hidden"
    if name.startswith(INSTALLED) or "site-packages" in parts or "dist-packages" in parts:
        return "library" if "site-packages" in parts or "dist-packages" in parts else "hidden"
    return "user"


class Modules:
    """The modules that are being called, outermost first, and their names.

    `names` are paths by the identity of a module, as `named_modules` gives them; a module without one is told
    by its class.
    """

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names
        self._stack: list[tuple[str, str]] = []

    def enter(self, module: Any) -> None:
        """Note that a module's call begins."""
        kind = type(module).__name__
        self._stack.append((self._names.get(id(module), kind), kind))

    def leave(self) -> None:
        """Note that the innermost call has ended."""
        self._stack.pop()

    @property
    def innermost(self) -> tuple[str, str]:
        """Path and class of the innermost module being called; "" and "" for none."""
        return self._stack[-1] if self._stack else ("", "")
