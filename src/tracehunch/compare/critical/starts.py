"""What the start of each activity waits for: its launch, the one before it on its stream, other streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.critical.edges import EdgeKind
from tracehunch.tree import NONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracehunch.compare.critical.gpu import Activities, Usual
    from tracehunch.compare.critical.streams import StreamWait
    from tracehunch.trace.model import Int64

    Bool = NDArray[np.bool_]

KINDS: Final = (EdgeKind.LAUNCH, EdgeKind.STREAM, EdgeKind.EVENT)
_LEAST_LATENCY_NS: Final = 20_000
_LEAST_GAP_NS: Final = 10_000
_TIMES: Final = 4
"""A latency, or a gap on a stream, is what the device needs up to so much, or so many times the usual one."""


@dataclass(frozen=True, slots=True)
class Starts:
    """One entry a constraint: ``source`` is the activity (for a launch, its own) that it comes from."""

    kind: Int64
    activity: Int64
    source: Int64
    base_ns: Int64  # when the source was over, as recorded
    in_call: Bool  # the call itself saw the activity through: its start follows the call's begin

    def __len__(self) -> int:
        return self.kind.size

    def only(self, chosen: Bool) -> Starts:
        """Leave out all others."""
        return Starts(*(getattr(self, name)[chosen] for name in Starts.__slots__))


def starts_of(gpu: Activities, streams: Sequence[StreamWait], in_call: Bool) -> Starts:
    """Collect them; ``in_call`` masks the activities whose call did not return before their end."""
    launched = np.flatnonzero(gpu.launch != NONE)
    followed = np.flatnonzero(gpu.previous != NONE)
    events = np.array([(w.activity, w.target) for w in streams], dtype=np.int64).reshape(-1, 2)
    after = np.r_[gpu.previous[followed], events[:, 1]]
    begun = np.where(in_call, gpu.called_ns, gpu.launched_ns)[launched]
    held = np.zeros(launched.size + after.size, dtype=bool)
    held[: launched.size] = in_call[launched]
    return Starts(
        kind=np.repeat(np.array(KINDS, dtype=np.int64), [launched.size, followed.size, len(events)]),
        activity=np.r_[launched, followed, events[:, 0]],
        source=np.r_[launched, after],
        base_ns=np.r_[begun, gpu.end_ns[after]],
        in_call=held,
    )


def weights_of(starts: Starts, gpu: Activities, usual: Usual) -> tuple[Int64, Int64]:
    """Return what each takes, and how much of that the device usually needs.

    The latest gets all of the time that it took, the others the least that they can have needed.
    """
    start = gpu.start_ns[starts.activity]
    took = start - starts.base_ns
    is_launch = starts.kind == EdgeKind.LAUNCH
    typical = np.where(is_launch, usual.latency_ns, usual.gap_ns)
    ready = np.minimum(starts.base_ns + typical, start)
    order = np.lexsort((starts.base_ns, ready, starts.activity))
    last = order[np.r_[np.diff(starts.activity[order]) != 0, True][: order.size]]
    weight = np.minimum(typical, took)
    weight[last] = took[last]
    least = np.where(is_launch, _LEAST_LATENCY_NS, _LEAST_GAP_NS)
    allowed = np.minimum(np.maximum(_TIMES * typical, least), weight)
    return weight, allowed
