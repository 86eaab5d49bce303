"""What the profiler was asked to record, which costs time on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.units import join

if TYPE_CHECKING:
    from tracehunch.trace.model import Trace


def host_compares(before: Trace, after: Trace) -> bool:
    """Whether both recorded the same: shapes, stacks and memory cost time on the host."""
    return _flags(before) == _flags(after)


def is_real(before: Trace, after: Trace, delta_us: float) -> bool:
    """Whether a difference of host times is no artefact of recording: slower although less was recorded."""
    more, less = (
        all(a <= b for a, b in zip(one, two, strict=True))
        for one, two in ((_flags(before), _flags(after)), (_flags(after), _flags(before)))
    )
    return less if delta_us > 0 else more


def recorded_text(trace: Trace) -> str:
    """``shapes and stacks``."""
    names = [name for name, on in zip(("shapes", "stacks", "memory"), _flags(trace), strict=True) if on]
    return join(names) or "neither shapes nor stacks"


def other_ranks(before: Trace, after: Trace) -> bool:
    """Whether the two are known to be different ranks."""
    ranks = before.header.rank, after.header.rank
    return None not in ranks and ranks[0] != ranks[1]


def _flags(trace: Trace) -> tuple[bool, bool, bool]:
    recorded = trace.header.recorded
    return recorded.shapes, recorded.stacks, recorded.memory
