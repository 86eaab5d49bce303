"""The graph of a window of time: moments, and what lies between them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from tracehunch.compare.critical.segments import Part
from tracehunch.tree import NONE

if TYPE_CHECKING:
    from tracehunch.trace.model import Int64


class EdgeKind(IntEnum):
    """Why one moment cannot be before another."""

    HOST = 0  # a thread does one thing after the other
    RETURN = 1  # a call returns after what it waited for has ended
    WORK = 2  # an activity takes its time
    LAUNCH = 3  # it starts after its launch
    STREAM = 4  # and after the one before it on its stream
    EVENT = 5  # and after what its stream waits for
    HANDOVER = 6  # a thread works for another one


@dataclass(frozen=True, slots=True)
class Edges:
    """One entry an edge. ``weight_ns``: the destination is at least so long after the source."""

    kind: Int64
    source: Int64
    target: Int64
    weight_ns: Int64
    owner_ns: Int64  # when the host did, or launched, what the edge stands for
    row: Int64  # of the trace: the call, or the activity; NONE
    thread: Int64  # whose time it is; NONE for the GPU's
    usual_ns: Int64  # of the weight, what such an edge usually takes; the rest nothing explains
    parts: Int64  # (edges, parts): what the weight consists of on the host

    def __len__(self) -> int:
        return self.kind.size


class EdgeList:
    """Edges as they are found; one array a column at the end."""

    def __init__(self) -> None:
        self._found: list[tuple[Int64, ...]] = []
        self._parts: list[Int64] = []

    def add(  # one argument a column
        self,
        kind: EdgeKind,
        source: Int64,
        target: Int64,
        weight_ns: Int64,
        owner_ns: Int64,
        *,
        row: Int64 | None = None,
        thread: int = NONE,
        usual_ns: Int64 | None = None,
        parts: Int64 | Part | None = None,
    ) -> None:
        """Add edges of one kind."""
        n = source.size
        none = np.full(n, NONE, dtype=np.int64)
        self._found.append(
            (
                np.full(n, kind, dtype=np.int64),
                source,
                target,
                weight_ns,
                owner_ns,
                none if row is None else row,
                np.full(n, thread, dtype=np.int64),
                weight_ns if usual_ns is None else usual_ns,
            )
        )
        self._parts.append(_parts_of(weight_ns, parts))

    def joined(self) -> Edges:
        """Return all edges."""
        columns: list[Int64] = [np.concatenate(column) for column in zip(*self._found, strict=True)]
        return Edges(*[*columns, np.concatenate(self._parts)])


def _parts_of(weight_ns: Int64, parts: Int64 | Part | None) -> Int64:
    if isinstance(parts, np.ndarray):
        return parts
    found = np.zeros((weight_ns.size, len(Part)), dtype=np.int64)
    if parts is not None:
        found[:, parts] = weight_ns
    return found
