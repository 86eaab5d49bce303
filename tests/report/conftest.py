"""Jobs of many ranks made by hand, whose every number is known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch.compare.ranks import compare
from tracehunch.compare.ranks.examine import examine
from tracehunch.compare.ranks.model import Bandwidth, Clock, Matched, Odd, RankRow, Ranks, Unread
from tracehunch.trace.model import Notice
from tracehunch.verdict import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).parents[1] / "data"
MS = 1_000_000
_SIZES = (64 << 10, 25 << 20)


def _row(rank: int, late: int | None, matched: list[Matched]) -> RankRow:
    compute = 60 * MS + 1_000 * rank + (8 * MS if rank == late else 0)
    exposed = 20 * MS - (7 * MS if rank == late else 0)
    copy = 500_000
    idle = {"launch": 12 * MS, "device": 100 * MS - compute - exposed - copy - 12 * MS}
    return RankRow(
        rank=rank,
        labels=(f"rank{rank}.json.gz",),
        rank_from="distributedInfo",
        steps=3,
        step_us=33_000.0 + rank,
        window_ns=100 * MS,
        compute_ns=compute,
        exposed_communication_ns=exposed,
        copy_ns=copy,
        idle_ns=idle,
        communication_ns=exposed + 15 * MS,
        overlapped_ns=15 * MS,
        waited_ns=sum(one.waited_ns[rank] for one in matched),
        made_wait_ns=sum(sum(one.waited_ns.values()) for one in matched if one.last_rank == rank),
        sources=(f"run/rank{rank}.json.gz",),
        job_step_us=100_000 / 3,
    )


def _matched(number: int, n_ranks: int, late: int | None, since: int) -> Matched:
    """One collective: ranks arrive 10 ns apart; the late rank, from some collective on, 300 us after them."""
    start = number * MS
    arrivals = {rank: start + 10 * ((rank * 7 + number) % n_ranks) for rank in range(n_ranks)}
    if late is not None and number >= since:
        arrivals[late] = start + 300_000
    last = max(arrivals, key=lambda rank: (arrivals[rank], rank))
    return Matched(
        group="0",
        kind="allreduce",
        number=number,
        dtype="Float",
        bytes=_SIZES[number % 2],
        group_size=n_ranks,
        step=number // 20,
        rows=dict.fromkeys(range(n_ranks), number),
        first_start_ns=min(arrivals.values()),
        last_start_ns=arrivals[last],
        end_ns=arrivals[last] + (40_000, 120_000)[number % 2],
        last_rank=last,
        exposed_ns=dict.fromkeys(range(n_ranks), 5_000),
        waited_ns={rank: arrivals[last] - at for rank, at in arrivals.items()},
    )


def _findings(late: int | None) -> tuple[Finding, ...]:
    exposed = Finding(
        "exposed-communication", "ProfilerStep", "note", "medium", 900.0,
        "20% of the window is communication alone.", "Buckets are reduced one after the other.",
        "Overlap it with compute.", (),
    )  # fmt: skip
    if late is None:
        return (exposed,)
    straggler = Finding(
        "straggler", "ProfilerStep", "warning", "high", 2_400.0,
        f"rank {late} comes last to 100% of the collectives since step 1.",
        "aten::mm takes longer there.", "Compare its trace with another rank's.", (3, 80), f"rank {late}",
    )  # fmt: skip
    return (exposed, straggler)


def made(n_ranks: int = 4, *, late: int | None = 1, collectives: int = 60, since: int = 20) -> Ranks:
    """Return a job in which one rank is late from some collective on."""
    matched = [_matched(number, n_ranks, late, since) for number in range(collectives)]
    bus = 2 * (n_ranks - 1) / n_ranks
    bandwidth = [
        Bandwidth("allreduce", n_ranks, size, size, collectives // 2, took, bus * size / took * 1e6)
        for size, took in zip(_SIZES, (40.0, 120.0), strict=True)
    ]  # fmt: skip
    clocks = [Clock(0, 0, 0, collectives)] + [
        Clock(rank, 0 if rank < 8 else 1_200_000 + 100 * (rank % 8), 400, collectives)
        for rank in range(1, n_ranks)
    ]  # fmt: skip
    return Ranks(
        world_size=n_ranks,
        missing=(),
        rows=tuple(_row(rank, late, matched) for rank in range(n_ranks)),
        clocks=tuple(clocks),
        matched=tuple(matched),
        unmatched=2,
        bandwidth=tuple(bandwidth),
        odd=(Odd(n_ranks - 1, "train_step", "copies", 40, 4, n_ranks - 1),),
        findings=_findings(late),
        notices=(Notice("missing-ranks", "no file of rank 9"), Notice("truncated", "cut short", lossy=True)),
        unread=(Unread("run/x.json", "x.json", "no trace", "it holds no traceEvents", 1_234),),
        torch=("2.11.0+cu130",),
        devices=("NVIDIA H200",),
        other_jobs=("ranks 0-1 of 2, recorded an hour before",),
    )


def untold(ranks: Ranks) -> Ranks:
    """Return the job as if no GPU activity and no collective had been recorded."""
    rows = [
        replace(
            row, step_us=None, job_step_us=None, steps=0, window_ns=0, compute_ns=0,
            exposed_communication_ns=0, copy_ns=0, idle_ns={}, communication_ns=0, overlapped_ns=0,
            waited_ns=None, made_wait_ns=None, rank_from="order",
        )
        for row in ranks.rows
    ]  # fmt: skip
    clocks = [replace(one, offset_ns=0, error_ns=0, collectives=0) for one in ranks.clocks]
    return replace(
        ranks, world_size=None, rows=tuple(rows), clocks=tuple(clocks), matched=(), bandwidth=(), odd=(),
        findings=(), unmatched=0,
    )  # fmt: skip


@pytest.fixture(scope="session")
def made_ranks() -> Callable[..., Any]:
    return made


@pytest.fixture(scope="session")
def untold_ranks() -> Callable[[Any], Any]:
    return untold


@pytest.fixture(scope="session")
def replaced() -> Callable[..., Any]:
    return replace


@cache
def real(name: str) -> Ranks:
    """Return the report of a job that was recorded on two GPUs."""
    return compare([examine(path) for path in sorted((DATA / "h200" / "ranks" / name).glob("*.json.gz"))])


@pytest.fixture(scope="session")
def real_ranks() -> Callable[[str], Any]:
    return real
