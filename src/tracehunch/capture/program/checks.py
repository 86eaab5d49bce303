"""Checks by values that are not known: `assert (ids < vocab).all()`, `if torch.any(var < 0): raise`.

A run of which there is a trace passed them. Which way that is, the bytecode around the decision tells: one of
its two ways ends in an error before it decides anything else.
"""

from __future__ import annotations

import dis
import sys
from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

_OWN: Final = str(Path(__file__).parent)
_BETWEEN: Final = (
    "_python_dispatch.py", "_stats.py", "_compile.py", "_ops.py", "eval_frame.py", "fake_tensor.py",
)  # fmt: skip
"""Files of torch that lie between an operation and what called it."""

_ON_THE_WAY: Final = ("TO_BOOL", "COMPARE_OP", "CACHE", "NOP", "NOT_TAKEN", "EXTENDED_ARG")
"""Instructions between a value and the jump that it decides."""

_LEAVES: Final = ("RETURN_VALUE", "RETURN_CONST", "YIELD_VALUE", "RETURN_GENERATOR")


def passing() -> bool | None:
    """Return the truth with which the decision under way raises nothing; None where that is not told."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # the standard library has no other way
    while frame is not None and _is_between(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else _passing(frame)


def _is_between(file: str) -> bool:
    return file.startswith(_OWN) or file.endswith(_BETWEEN)


def _passing(frame: FrameType) -> bool | None:
    steps = list(dis.get_instructions(frame.f_code))
    places = {one.offset: index for index, one in enumerate(steps)}
    at = bisect_right(list(places), frame.f_lasti) - 1  # may point into what follows a call
    if at < 0:
        return None
    if steps[at].opname == "PRECALL":
        at += 1
    if "CALL" in steps[at].opname:  # done by then
        at += 1
    while at < len(steps) and steps[at].opname in _ON_THE_WAY:
        at += 1
    if at >= len(steps) or "POP_JUMP" not in steps[at].opname or "NONE" in steps[at].opname:
        return None
    on_jump = "IF_TRUE" in steps[at].opname
    jumped, fell = _raises(steps, places.get(steps[at].argval)), _raises(steps, at + 1)
    if jumped == fell:
        return None
    return on_jump if fell else not on_jump


def _raises(steps: list[dis.Instruction], at: int | None) -> bool:
    """Whether what runs from here raises before it decides or leaves."""
    while at is not None and at < len(steps):
        name = steps[at].opname
        if name == "RAISE_VARARGS":
            return True
        if "JUMP" in name or name in _LEAVES or name.startswith("FOR_"):
            return False
        at += 1
    return False
