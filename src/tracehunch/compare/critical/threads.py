"""Which thread works for which: autograd's engine runs the backward while the thread that called it waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.critical.segments import Part, Segments

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tracehunch.trace.model import Int64

_IDLE: Final = (Part.OUTSIDE, Part.LOADING)
_NEARLY_ALL: Final = 0.9
_SLACK_NS: Final = 1_000  # stamps may be rounded to the microsecond


@dataclass(frozen=True, slots=True)
class Handover:
    """The caller stops at ``called_ns`` and goes on at ``resumed_ns``; in between another thread works."""

    thread: int
    called_ns: int
    begun_ns: int
    done_ns: int
    resumed_ns: int


def handovers(caller: Segments, others: Mapping[int, Segments], engines: Collection[int]) -> list[Handover]:
    """Find when other threads worked for the caller: while that was in no op and no call.

    Those are autograd's ``engines``, and any thread that does nearly all of its work in such a time.
    """
    opens, closes = _stretches(caller, busy=False)
    found = []
    for thread, segments in others.items() if opens.size else ():
        begun, done = _stretches(segments, busy=True)
        gap = np.maximum(np.searchsorted(opens, begun + _SLACK_NS, "right") - 1, 0)
        inside = (begun >= opens[gap] - _SLACK_NS) & (done <= closes[gap] + _SLACK_NS)
        worked = (done - begun)[inside].sum()
        if thread not in engines and worked < _NEARLY_ALL * (done - begun).sum():
            continue
        for number in np.unique(gap[inside]).tolist():
            mine = inside & (gap == number)
            found.append(
                Handover(
                    thread,
                    called_ns=int(opens[number]),
                    begun_ns=max(int(begun[mine].min()), int(opens[number])),
                    done_ns=min(int(done[mine].max()), int(closes[number])),
                    resumed_ns=int(closes[number]),
                )
            )
    return sorted(found, key=lambda one: (one.begun_ns, one.thread))


def without_idle(segments: Segments, handed: Sequence[Handover]) -> Segments:
    """Mark as idle what a thread that works for others does outside ops, unless it is known to work."""
    begun = np.array([one.begun_ns for one in handed], dtype=np.int64)
    done = np.array([one.done_ns for one in handed], dtype=np.int64)
    at = np.searchsorted(begun, segments.start_ns, "right") - 1
    works = (at >= 0) & (segments.end_ns <= done[np.maximum(at, 0)]) if begun.size else at > at + 1
    part = np.where((segments.part == Part.OUTSIDE) & ~works, Part.IDLE, segments.part)
    return Segments(segments.start_ns, segments.end_ns, segments.row, part)


def _stretches(segments: Segments, *, busy: bool) -> tuple[Int64, Int64]:
    """Longest stretches in which a thread was in ops and calls, or (not busy) in none."""
    inside = ~np.isin(segments.part, _IDLE)
    wanted = inside if busy else ~inside
    edges = np.diff(np.r_[False, wanted, False].astype(np.int8))
    first, last = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return segments.start_ns[first], segments.end_ns[last]
