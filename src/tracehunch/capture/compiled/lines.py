"""Lines of the user's code in what torch's compiler says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture.compiled.frames import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable

_AROUND: Final = tuple(
    str(Path("torch", *place)) for place in (("_dynamo", "external_utils.py"), ("utils", "_contextlib.py"))
)
"""What torch puts around a function: no line of it says anything."""

_FRAME: Final = re.compile(r'File "([^"]+)", line (\d+)')


def innermost(trace: str) -> str:
    """Return the innermost line of a written stack outside installed packages, else the innermost one."""
    return _chosen([(name, int(number)) for name, number in _FRAME.findall(trace)])


def own_innermost(trace: str) -> str:
    """Return the innermost line of a written stack outside installed packages, "" for none."""
    return _named(_own([(name, int(number)) for name, number in _FRAME.findall(trace)]))


def of_frames(frames: Iterable[Any]) -> str:
    """Return the same of frame summaries, outermost first."""
    return _chosen([(frame.filename, frame.lineno or 0) for frame in frames])


def own_of_frames(frames: Iterable[Any]) -> str:
    """Return the innermost line of frame summaries outside installed packages, "" for none."""
    return _named(_own([(frame.filename, frame.lineno or 0) for frame in frames]))


def of_code(code: Any) -> str:
    """Return where a function begins."""
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}"


def _chosen(frames: list[tuple[str, int]]) -> str:
    return _named(_own(frames) or [frame for frame in frames if not frame[0].endswith(_AROUND)])


def _own(frames: list[tuple[str, int]]) -> list[tuple[str, int]]:
    others = ("site-packages", "dist-packages", FOLDER)
    return [frame for frame in frames if not any(other in frame[0] for other in others)]


def _named(frames: list[tuple[str, int]]) -> str:
    return f"{Path(frames[-1][0]).name}:{frames[-1][1]}" if frames else ""
