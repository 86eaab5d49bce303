"""straggler: collectives last longer than what they move explains: another rank is late, and this one waits.

## What it means
A collective's kernel starts when its own rank is ready and ends when the last rank has joined and the data
has moved. Which rank is late takes the traces of all ranks to say, so the word is used of two ranks:

* In `tracehunch look`, of one rank's trace: another rank is late, and this one waits. The kernels of some
  collectives take far longer than others of this trace need for each byte. Which rank is late, this trace
  does not show.
* In `tracehunch ranks`, of the traces of all ranks: the finding names the late rank. It says what that rank
  does besides, since when, and what it costs the job.

## Why it costs
All ranks go at the speed of the slowest. While a rank waits, its GPU holds a kernel that does nothing.

## How to confirm
`tracehunch ranks FOLDER` on the traces of all ranks. Then `tracehunch diff RANK_THAT_WAITS RANK_THAT_IS_LATE`
shows what the late one has before its short collectives: more compute, copies, host work or idle time.

## How to fix
Find what the late rank does besides: uneven batches or lengths, logging and checkpoints on rank 0, a data
loader that is shared, a slower or hotter GPU, another job on its host. There is nothing to mend on a rank
that waits.

## When it is fine
In the first call, where connections are set up. With pipeline stages, whose ranks wait by design.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import launched
from tracehunch.checks._scopes import durations_us, place
from tracehunch.checks.exposed_communication import is_collective
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.units import plural, share, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "straggler"
ELEMENT_BYTES: Final[Mapping[str, int]] = {
    "BFloat16": 2, "Half": 2, "Float": 4, "Double": 8, "Int": 4, "Long": 8, "Short": 2, "Char": 1, "Byte": 1,
    "Bool": 1, "Float8_e4m3fn": 1, "Float8_e5m2": 1, "Float8_e4m3fnuz": 1, "Float8_e5m2fnuz": 1, "UInt16": 2,
    "UInt32": 4, "UInt64": 8, "ComplexHalf": 4, "ComplexFloat": 8, "ComplexDouble": 16,
}  # fmt: skip
"""Element sizes, as Kineto names the types of collectives."""

_FEWEST: Final = 4
"""Collectives of known size that are needed to see what a byte costs."""
_MUCH: Final = 0.3
"""Part of the collectives' time that has to be waiting."""
_LEAST_US: Final = 300.0
"""So long a collective has to wait on average: middling messages move at half the rate of large ones."""
_LATENCY_US: Final = 200.0
"""What a collective takes at most without moving anything."""
_PART: Final = 0.05
"""Part of a scope's time that the waiting has to be worth a word."""


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find scopes whose collectives mostly wait."""
    rows = launched(facts, is_collective)
    if not rows.size:
        return
    where = place(facts)
    found = False
    for scope, mine in where.by_scope(rows):
        waits = _Waits.of(facts, mine)
        if waits is None:
            continue
        found = True
        if waits.part >= _MUCH and waits.each_us >= _LEAST_US and _material(scope, waits.waited_us):
            yield _finding(facts, scope, waits)
    if not found:
        reason = "what the collectives move was not recorded, so their waiting cannot be told from their work"
        yield CannotTell(ID, "whole", reason, "a torch that records collectives (2.3 or newer)")


@dataclass(frozen=True, slots=True)
class _Waits:
    """Collectives of one scope and how much of their time their sizes do not explain, all calls together."""

    rows: Int64
    whole_us: float
    waited_us: float
    quickest_bytes_per_s: float

    @property
    def part(self) -> float:
        return self.waited_us / self.whole_us if self.whole_us else 0.0

    @property
    def each_us(self) -> float:
        return self.waited_us / self.rows.size

    @classmethod
    def of(cls, facts: Facts, rows: Int64) -> Self | None:
        """Hold each against the one that moved its bytes the fastest; None with too few of known size.

        Links are never faster than that one was, as far as this trace knows: the waiting is the least there
        can have been if it did not wait, and less if it did.
        """
        trace = facts.tree.trace
        moved = np.array([_bytes(trace.args_of(int(row))) for row in rows])
        lengths = durations_us(trace, rows)
        known = (moved > 0) & (lengths > 0)
        if known.sum() < _FEWEST:
            return None
        rows, moved, lengths = rows[known], moved[known], lengths[known]
        rate = float((moved / lengths).max())
        needed = np.maximum(moved / rate, _latency_us(lengths))
        waited = np.maximum(lengths - needed, 0)
        return cls(rows, float(lengths.sum()), float(waited.sum()), rate * 1e6)


def _latency_us(lengths: NDArray[np.float64]) -> float:
    """Return what the shortest collective takes, if that can be latency: none is quicker."""
    return min(float(lengths.min()), _LATENCY_US)


def _bytes(args: Mapping[str, Any]) -> float:
    """Return what a collective moves, the larger of in and out; 0 where it is not recorded."""
    size = ELEMENT_BYTES.get(str(args.get("dtype")), 0)
    elements = [args.get(key) for key in ("In msg nelems", "Out msg nelems")]
    return float(size * max((one for one in elements if isinstance(one, int)), default=0))


def _material(scope: ScopeFacts, waited_us: float) -> bool:
    wall = scope.value("wall_time")
    calls = len(scope.scope.calls)
    return isinstance(wall, int | float) and waited_us / calls >= _PART * wall


def _finding(facts: Facts, scope: ScopeFacts, waits: _Waits) -> Finding:
    trace, calls = facts.tree.trace, len(scope.scope.calls)
    number = round(waits.rows.size / calls, 1)
    waited, whole = waits.waited_us / calls, waits.whole_us / calls
    return Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note",
        confidence="low",
        time_at_stake_us=0.0,
        summary=f"another rank is late: this one waits; {plural(number, 'collective')} a call took "
        f"{time_us(whole)}, of which {time_us(waited)} ({share(waited, whole)}) is more than what they move "
        "explains; tracehunch ranks FOLDER names the late rank",
        cause="The quickest collective of this trace moved its bytes at "
        f"{waits.quickest_bytes_per_s / 1e9:.3g} GB/s; at that rate the others end so much earlier. "
        "What it costs, only the traces of the other ranks can tell: nothing is put at stake here.",
        fix="Look at the late rank, not at this one: with the traces of all ranks in a folder, tracehunch "
        "ranks FOLDER names it and says what it does besides, since when, and what that costs.",
        evidence=trace.events(waits.rows),
        subject=", ".join(sorted({_short(trace.name_of(int(row))) for row in waits.rows})),
        per_call=number,
    )


def _short(name: str) -> str:
    return name.partition("(")[0]
