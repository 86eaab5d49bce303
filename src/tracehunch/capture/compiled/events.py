"""What Dynamo tells of its work: graph breaks, and code that was compiled again."""

from __future__ import annotations

import re
from typing import Any, Final

from tracehunch.capture.compiled.lines import of_code, of_frames
from tracehunch.predict.program.compiled import Break, Recompile

_HINT: Final = re.compile(r"^\s*Hint: (.+)$", re.MULTILINE)
_EXPLAINED: Final = re.compile(r"^\s*Explanation: (.+)$", re.MULTILINE)
_LEFT_OUT: Final = (
    "It may be possible to write Dynamo tracing rules",
    "This graph break may have been caused by",
)


class Events:
    """Reads Dynamo's own notes, from when it was made."""

    def __init__(self) -> None:
        from torch._dynamo import utils  # noqa: PLC0415  # an optional dependency

        self._breaks = utils.graph_break_reasons
        self._failures = utils.guard_failures
        self._told = 0

    def breaks(self) -> tuple[Break, ...]:
        """Return the graph breaks, each reason and line once."""
        made = [_break(one) for one in self._breaks]
        return tuple(dict.fromkeys(made))

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
    return Break(said.rstrip("."), of_frames(reason.user_stack or ()), hints[0] if hints else "")


def _plain(reason: str) -> str:
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()]
    return lines[0] if lines else ""
