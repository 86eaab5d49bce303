"""What Dynamo tells of its work: graph breaks, and code that was compiled again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from tracehunch.capture.compiled.frames import FOLDER
from tracehunch.capture.compiled.lines import of_code, of_frames
from tracehunch.predict.program.compiled import Break, Recompile

_HINT: Final = re.compile(r"^\s*Hint: (.+)$", re.MULTILINE)
_EXPLAINED: Final = re.compile(r"^\s*Explanation: (.+)$", re.MULTILINE)
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
_LEFT_OUT: Final = (
    "It may be possible to write Dynamo tracing rules",
    "This graph break may have been caused by",
)


_PACKAGE: Final = "tracehunch"
_DEVICE_MODE: Final = str(Path("torch", "utils", "_device.py"))


class Events:
    """Reads Dynamo's own notes, from when it was made."""

    def __init__(self) -> None:
        from torch._dynamo import utils  # noqa: PLC0415  # an optional dependency

        self._breaks = utils.graph_break_reasons
        self._failures = utils.guard_failures
        self._told = 0

    def breaks(self) -> tuple[Break, ...]:
        """Return the program's graph breaks, each reason and line once."""
        made = [_break(one) for one in self._breaks if not _is_ours(one)]
        return tuple(dict.fromkeys(made))

    def notes(self) -> tuple[str, ...]:
        """Say where graphs are cut by what stands in for the GPU, and would not be on one."""
        ours = len(dict.fromkeys(_break(one) for one in self._breaks if _is_ours(one)))
        if not ours:
            return ()
        places = "one place" if ours == 1 else f"{ours} places"
        return (f"in {places} graphs are cut by what stands in for the GPU: there more may be merged on one",)

    def recompiles(self, call: int) -> tuple[Recompile, ...]:
        """Return what was compiled again since this was asked last."""
        found = [
            Recompile(code.co_name, call, _plain(reason), of_code(code))
            for code, reasons in self._failures.items() for reason in reasons
        ]  # fmt: skip
        new = found[self._told :]
        self._told = len(found)
        return tuple(dict.fromkeys(new))


def _break(reason: Any) -> Break:
    text = str(reason.reason).strip()
    title = text.splitlines()[0] if text else "not said"
    explained = _EXPLAINED.search(text)
    said = title if explained is None else f"{title}: {explained[1].strip()}"
    hints = [hint.strip() for hint in _HINT.findall(text) if not hint.startswith(_LEFT_OUT)]
    return Break(
        _ADDRESS.sub("", said).rstrip("."), of_frames(reason.user_stack or ()), hints[0] if hints else ""
    )


def _is_ours(reason: Any) -> bool:
    """Whether Dynamo stopped at a stand-in: in this package, or only in torch's device mode."""
    files = [frame.filename for frame in reason.user_stack or ()]
    others = [file for file in files if not file.endswith(_DEVICE_MODE)]
    if f"'{_PACKAGE}." in str(reason.reason) or (files and not others):
        return True
    return bool(others) and others[-1].startswith(FOLDER)


def _plain(reason: str) -> str:
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()]
    return lines[0] if lines else ""
