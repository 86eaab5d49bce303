"""Pieces of time in which a GPU had nothing to do, by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracehunch.checks._idle import IdleCause, idle_of

if TYPE_CHECKING:
    from tracehunch.report.html.timeline.window import Window
    from tracehunch.verdict import Look

_WORDS: Final = {
    IdleCause.PROFILER: "the profiler's own work",
    IdleCause.COMPILE: "torch.compile at work",
    IdleCause.FIRST_USE: "loading code, first use",
    IdleCause.ALLOCATION: "memory allocation",
    IdleCause.LIBRARY: "an op computed on the host, or a library planned",
    IdleCause.STALL: "host code outside PyTorch",
    IdleCause.COPY: "a pageable copy held the host",
    IdleCause.SYNC: "the host waited for the GPU",
    IdleCause.LAUNCH: "waiting for launches",
    IdleCause.DEVICE: "between two activities, or another stream",
    IdleCause.UNKNOWN: "cause not recorded",
}
_MOST: Final = 20_000
"""Pieces that are drawn; of more, the longest."""


def gaps_of(look: Look, window: Window, unit: int) -> dict[str, Any]:
    """Return the pieces in the window by device, and the words of the causes."""
    if not len(look.facts.tree.trace.gpu.row):
        return {"causes": [], "pieces": [], "totals": [], "left_out": 0}
    idle = idle_of(look.facts)
    inside = np.flatnonzero((idle.end_ns > window.start_ns) & (idle.start_ns < window.end_ns))
    length = np.minimum(idle.end_ns[inside], window.end_ns) - np.maximum(
        idle.start_ns[inside], window.start_ns
    )
    totals = np.bincount(idle.cause[inside], weights=length, minlength=len(IdleCause)) / unit
    left_out = max(inside.size - _MOST, 0)
    if left_out:
        longest = np.argsort(-(idle.end_ns - idle.start_ns)[inside], kind="stable")[:_MOST]
        inside = inside[np.sort(longest)]
    start = (np.maximum(idle.start_ns[inside], window.start_ns) - window.start_ns) // unit
    end = (np.minimum(idle.end_ns[inside], window.end_ns) - window.start_ns) // unit
    return {
        "causes": [_WORDS[cause] for cause in IdleCause],
        "pieces": np.column_stack([idle.device[inside], start, end, idle.cause[inside]]).tolist(),
        "totals": [round(one) for one in totals.tolist()],
        "left_out": left_out,
    }
