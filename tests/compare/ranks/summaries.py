"""Ranks made in memory: their collectives, steps and facts, as ``examine`` would give them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tracehunch.compare.ranks.model import Breakdown, Collectives, Group, RankSummary, Step

EPOCH = 1_790_000_000_000_000_000
PERIOD = 10_000_000  # of a step
EVERY = 1_000_000  # from one collective to the next
TRANSFER = 200_000


def collectives(
    ends: Any,
    *,
    ranks: tuple[int, ...],
    late: Any = 0,
    transfer: int = TRANSFER,
    step: Any = None,
    first: int = 0,
    kind: str = "allreduce",
    bytes_: Any = 1 << 25,
    group: str = "0",
    sequence: Any = None,
) -> Collectives:
    """All-reduces of one group that end at ``ends``; ``late``: how much shorter than all others each is."""
    ends = np.asarray(ends, dtype=np.int64)
    size = ends.size
    start = ends - transfer - np.zeros(size, dtype=np.int64) + np.asarray(late)
    zero = np.zeros(size, dtype=np.int32)
    sizes = np.broadcast_to(np.asarray(bytes_, dtype=np.int64), size).copy()
    steps = np.full(size, -1) if step is None else np.asarray(step)
    return Collectives(
        kind=zero, group=zero, dtype=zero, op=zero,
        number=np.arange(size) + first,
        sequence=np.full(size, -1) if sequence is None else np.asarray(sequence, dtype=np.int64),
        in_bytes=sizes, out_bytes=sizes, launch_ns=start - 20_000, start_ns=start, end_ns=ends,
        exposed_ns=ends - start, device=zero, step=steps.astype(np.int32), event=np.arange(size) + 100,
        kinds=(kind,), groups=(Group(group, "", ranks, len(ranks)),), dtypes=("BFloat16",),
        ops=("c10d::allreduce_",),
    )  # fmt: skip


def rank(number: int | None, calls: Collectives, world: int | None = 2, **changes: Any) -> RankSummary:
    """One rank with such collectives."""
    start = int(calls.start_ns.min()) if len(calls) else EPOCH
    end = int(calls.end_ns.max()) if len(calls) else EPOCH + PERIOD
    window = end - start
    exposed = int(calls.exposed_ns.sum())
    made = RankSummary(
        source=f"rank{number}.json", label=f"rank{number}.json", file_bytes=1, rank=number,
        rank_from="order" if number is None else "distributedInfo", world_size=world, backend="nccl",
        groups=(),
        torch="2.11.0", devices=("NVIDIA H200",), trace_id=None, host=None, start_ns=start, end_ns=end,
        breakdown=(Breakdown(0, window, window - exposed, exposed, 0, {}, exposed, 0),),
        collectives=calls, steps=(), facts={}, gpu_time_us_by_op={}, findings=(), notices=(), events=1,
        fingerprint=f"{number} {start} {end}",
    )  # fmt: skip
    return replace(made, **changes)


def steps(
    number: int, first: int = 0, *, busy: Any = 2_000_000, host: Any = 3_000_000, at: int = EPOCH
) -> Any:
    """Steps one after the other: of each how long the GPU was busy and what the host needed of it."""
    busy, host = (np.broadcast_to(np.asarray(one), number).tolist() for one in (busy, host))
    return tuple(
        Step(first + i, at + i * PERIOD, at + (i + 1) * PERIOD, busy[i], PERIOD - host[i])
        for i in range(number)
    )


def shifted(one: RankSummary, by_ns: int) -> RankSummary:
    """The same rank by a clock that is ahead."""
    calls = one.collectives
    moved = replace(
        calls, start_ns=calls.start_ns + by_ns, end_ns=calls.end_ns + by_ns, launch_ns=calls.launch_ns + by_ns
    )
    later = tuple(replace(s, start_ns=s.start_ns + by_ns, end_ns=s.end_ns + by_ns) for s in one.steps)
    return replace(
        one, start_ns=one.start_ns + by_ns, end_ns=one.end_ns + by_ns, collectives=moved, steps=later
    )


def job(
    ranks: int,
    number: int = 8,
    *,
    each: int = 4,
    late_ns: Any = None,
    busy: Any = 2_000_000,
    host: Any = 3_000_000,
    jitter: int = 2_000,
    seed: int = 0,
) -> list[RankSummary]:
    """A job of so many steps with ``each`` collectives a step.

    ``late_ns[rank][step]``: how late a rank comes to the second collective of a step; ``busy`` and ``host``:
    by rank and step what its GPU and its host need.
    """
    noise = np.random.default_rng(seed)
    late = np.zeros((ranks, number), dtype=np.int64) if late_ns is None else np.asarray(late_ns)
    busy, host = (np.broadcast_to(np.asarray(one), (ranks, number)) for one in (busy, host))
    worst = late.max(axis=0)
    ends = np.concatenate([EPOCH + s * PERIOD + (np.arange(each) + 1) * EVERY for s in range(number)])
    ends = ends + noise.integers(-200_000, 200_000, ends.size)
    of_step = np.repeat(np.arange(number), each)
    second = np.arange(ends.size) % each == 1
    made = []
    for one in range(ranks):
        waits = np.where(second, (worst - late[one])[of_step], 0)
        calls = collectives(
            ends + noise.integers(-jitter, jitter + 1, ends.size),
            ranks=tuple(range(ranks)),
            late=-waits + noise.integers(0, 2_000, ends.size),
            step=of_step,
        )
        waiting = np.bincount(of_step, waits, number)
        made.append(
            rank(
                one,
                calls,
                ranks,
                steps=steps(number, busy=busy[one] + waiting.astype(np.int64), host=host[one]),
            )
        )
    return made
