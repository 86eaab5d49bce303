"""Lines of the user's code in what torch's compiler says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_FRAME: Final = re.compile(r'File "([^"]+)", line (\d+)')


def innermost(trace: str) -> str:
    """Return the innermost line of a written stack outside installed packages, else the innermost one."""
    return _chosen([(name, int(number)) for name, number in _FRAME.findall(trace)])


def of_frames(frames: Iterable[Any]) -> str:
    """Return the same of frame summaries, outermost first."""
    return _chosen([(frame.filename, frame.lineno or 0) for frame in frames])


def of_code(code: Any) -> str:
    """Return where a function begins."""
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}"


def _chosen(frames: list[tuple[str, int]]) -> str:
    if not frames:
        return ""
    own = [frame for frame in frames if "site-packages" not in frame[0] and "dist-packages" not in frame[0]]
    name, number = (own or frames)[-1]
    return f"{Path(name).name}:{number}"
