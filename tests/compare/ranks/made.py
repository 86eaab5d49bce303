"""Jobs of any number of ranks, made as files from a recorded two-GPU trace, with the truth known.

Every rank is the recorded rank 0 (which waits for nobody) with its rank, world size, groups and pids
rewritten. A planted ``Straggler`` takes longer before the first collective of a step, on the GPU (a kernel is
stretched) or on the host (nothing happens); the kernels of that collective last longer on all other ranks by
as much, where the host waits in a synchronisation, and all that follows is later on every rank. Clocks of
hosts are shifted, and may drift.

    job = make(tmp_path, 8, straggler=Straggler(rank=3, extra_us=2_000, from_step=3))
    job.paths, job.late_ns[3]

256 ranks of ``base="tp"`` take some 3 seconds and 6 MB; "ddp" is ten times as large.
"""

from __future__ import annotations

import gzip
import json
import random
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

TWO_GPUS = Path(__file__).parents[2] / "data" / "h200" / "ranks"
GPU = {"kernel", "gpu_memcpy", "gpu_memset"}


@dataclass(frozen=True)
class Straggler:
    """Which rank is late, by how much, in which steps (``every`` second, third ... from ``from_step`` on)."""

    rank: int
    extra_us: float
    how: Literal["gpu", "host"] = "gpu"
    from_step: int = 0
    every: int = 1

    def is_late(self, step: int) -> bool:
        return step >= self.from_step and (step - self.from_step) % self.every == 0


@dataclass(frozen=True)
class Job:
    """The files, and what is true of them. ``late_ns``: by step, how late the stragglers made the others."""

    paths: tuple[Path, ...]
    late_ns: Mapping[int, int]
    clock_ns: Mapping[int, int]  # by rank
    steps: tuple[int, ...]
    collectives: int  # that every rank recorded


def make(
    folder: Path,
    ranks: int,
    *,
    base: Literal["tp", "ddp"] = "tp",
    straggler: Straggler | Sequence[Straggler] = (),
    ranks_per_host: int = 8,
    clock_ns: Callable[[int], int] = lambda host: 0,  # noqa: ARG005  # the host, named for callers
    drift_ppm: Callable[[int], float] = lambda host: 0.0,  # noqa: ARG005  # what takes its place needs it
    repeat: int = 1,
    groups: Callable[[int], Sequence[int]] | None = None,
    jitter_us: float = 3.0,
    leave_out: Mapping[int, int] | None = None,
    change: Callable[[int, dict[str, Any]], None] | None = None,
    packed: bool = True,
) -> Job:
    """Write a job's files. ``repeat``: its steps, so many times. ``groups``: rank -> ranks of its group.

    ``leave_out``: rank -> how many of its first collectives it did not record. ``change`` may edit a rank's
    document (the decoded JSON) before it is written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stragglers = (straggler,) if isinstance(straggler, Straggler) else tuple(straggler)
    events = _repeated(base, repeat)
    timeline = _Timeline.of(events, stragglers)
    clocks = {rank: clock_ns(rank // ranks_per_host) for rank in range(ranks)}
    paths = []
    for rank in range(ranks):
        noise = random.Random(rank)  # noqa: S311  # no secret: the same job each time
        members = list(groups(rank)) if groups else list(range(ranks))
        clock = _Clock(clocks[rank], drift_ppm(rank // ranks_per_host), timeline.calls[0].start)
        late = timeline.warp(rank, clock)
        made = [
            *_rewritten(events, rank, late, noise=noise, jitter_us=jitter_us, members=members),
            *timeline.waits(rank, late),
        ]
        made = _without_first(made, (leave_out or {}).get(rank, 0))
        document = {**_header(base), "distributedInfo": _distributed(rank, ranks), "traceEvents": made}
        document["trace_id"] = f"{rank:032X}"
        if change is not None:
            change(rank, document)
        paths.append(_written(folder / f"rank{rank}.json", document, packed=packed))
    steps = tuple(step for step, _, _ in timeline.steps)
    return Job(tuple(paths), timeline.late_ns, clocks, steps, len(timeline.calls))


@cache
def _document(base: str) -> dict[str, Any]:
    with gzip.open(TWO_GPUS / base / "rank0.json.gz") as file:
        return json.load(file)


def _header(base: str) -> dict[str, Any]:
    return {key: value for key, value in _document(base).items() if key != "traceEvents"}


def _is_collective(event: Mapping[str, Any]) -> bool:
    return event.get("cat") == "kernel" and event["name"].startswith("nccl")


def _is_step(event: Mapping[str, Any]) -> bool:
    return event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep#")


def _ns(us: float) -> int:
    return round(us * 1000)


@cache
def _repeated(base: str, times: int) -> list[dict[str, Any]]:
    """The recorded events with ``start`` and ``end`` in nanoseconds, repeated one after the other."""
    recorded = _document(base)["traceEvents"]
    spans = [(_ns(e["ts"]), _ns(e["ts"]) + _ns(e["dur"])) for e in recorded if e.get("ph") == "X"]
    inner = [s for e, s in zip([e for e in recorded if e.get("ph") == "X"], spans, strict=True)
             if e.get("cat") in GPU or _is_step(e)]  # fmt: skip
    length = max(end for _, end in inner) - min(start for start, _ in inner) + 20_000
    steps = [int(e["name"].partition("#")[2]) for e in recorded if _is_step(e)]
    number = max(steps) - min(steps) + 1
    found = []
    for turn in range(times):
        for event in recorded:
            if turn and (event.get("ph") == "M" or "PyTorch Profiler" in str(event.get("name"))):
                continue
            copy = dict(event)
            if "ts" in event:
                copy["start"] = _ns(event["ts"]) + turn * length
                copy["end"] = copy["start"] + _ns(event.get("dur", 0))
                if "PyTorch Profiler" in str(event.get("name")):
                    copy["end"] += (times - 1) * length
            if turn and _is_step(event):
                copy["name"] = f"ProfilerStep#{int(event['name'].partition('#')[2]) + turn * number}"
            if turn:
                _renumber(copy, turn)
            found.append(copy)
    return found


def _renumber(event: dict[str, Any], turn: int) -> None:
    """Keep what links events apart from that of the other turns."""
    if event.get("ph") in ("s", "f", "t"):
        event["id"] = event["id"] + turn * 10_000_000
    if args := event.get("args"):
        keys = ("correlation", "External id", "Sequence number", "cbid_correlation")
        moved = {key: args[key] + turn * 10_000_000 for key in keys if isinstance(args.get(key), int)}
        event["args"] = {**args, **moved}


@dataclass(frozen=True)
class _Call:
    start: int
    end: int
    step: int
    launch: int
    is_first: bool  # of its step


@dataclass(frozen=True)
class _Clock:
    offset_ns: int
    drift_ppm: float
    since: int

    def __call__(self, at: int) -> int:
        return at + self.offset_ns + round((at - self.since) * self.drift_ppm / 1e6)


@dataclass(frozen=True)
class _Timeline:
    """The collectives of the recording, and by how much each rank is late when it comes to them."""

    calls: list[_Call]
    steps: list[tuple[int, int, int]]
    stragglers: tuple[Straggler, ...]
    extra: list[dict[int, int]]  # by collective: rank -> time it takes longer before it
    busy: list[tuple[int, int]] = field(repr=False)  # kernels, and calls of the driver
    kernels: list[tuple[int, int]] = field(repr=False)
    thread: tuple[Any, Any]

    @classmethod
    def of(cls, events: list[dict[str, Any]], stragglers: tuple[Straggler, ...]) -> _Timeline:
        steps = sorted(
            (int(e["name"].partition("#")[2]), e["start"], e["end"]) for e in events if _is_step(e)
        )
        driver = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")]
        launched = {e["args"].get("correlation"): e["start"] for e in driver}
        calls: list[_Call] = []
        for event in sorted((e for e in events if _is_collective(e)), key=lambda e: e["start"]):
            launch = launched.get(event["args"]["correlation"], event["start"])
            step = next((n for n, start, end in steps if start <= launch <= end), steps[0][0])
            first = not calls or calls[-1].step != step
            calls.append(_Call(event["start"], event["end"], step, launch, first))
        extra = [
            {one.rank: _ns(one.extra_us) for one in stragglers if one.is_late(call.step)}
            if number and call.is_first else {}
            for number, call in enumerate(calls)
        ]  # fmt: skip
        kernels = sorted(
            (e["start"], e["end"]) for e in events if e.get("cat") in GPU and not _is_collective(e)
        )
        busy = sorted(kernels + [(e["start"], e["end"]) for e in driver])
        thread = next((e["pid"], e["tid"]) for e in events if _is_step(e))
        return cls(calls, steps, stragglers, extra, busy, kernels, thread)

    @property
    def late_ns(self) -> dict[int, int]:
        late = {step: 0 for step, _, _ in self.steps}
        for call, extra in zip(self.calls, self.extra, strict=True):
            late[call.step] += max(extra.values(), default=0)
        return late

    def moments(self, rank: int) -> tuple[list[int], list[int], list[int]]:
        """The moments at which this rank falls behind, by how much in all, and which are waits."""
        at, behind, waits, total = [0], [0], [], 0
        for number, (call, extra) in enumerate(zip(self.calls, self.extra, strict=True)):
            if not extra:
                continue
            worst, own = max(extra.values()), extra.get(rank, 0)
            if own:
                at.append(self._before(number, self._how(rank)))
                behind.append(total + own)
            total += worst
            if own < worst:
                at.append(self._free(call.start + 1, call.end - 1, latest=True))
                behind.append(total)
                waits.append(at[-1])
        return at, behind, waits

    def waits(self, rank: int, late: Callable[[int], int]) -> Iterable[dict[str, Any]]:
        """The synchronisations in which the host of a rank waits for those that are late."""
        for number, moment in enumerate(self.moments(rank)[2]):
            start, end = late(moment - 1) + 1, late(moment)
            yield {
                "ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "ts": start / 1000,
                "dur": (end - start) / 1000, "pid": self.thread[0] + 1000 * rank, "tid": self.thread[1],
                "args": {"cbid": 131, "correlation": 900_000_000 + number},
            }  # fmt: skip

    def warp(self, rank: int, clock: _Clock) -> Callable[[int], int]:
        at, behind, _ = self.moments(rank)
        return lambda moment: clock(moment + behind[bisect_right(at, moment) - 1])

    def _how(self, rank: int) -> str:
        return next(one.how for one in self.stragglers if one.rank == rank)

    def _before(self, number: int, how: str) -> int:
        """Choose a moment before a collective's launch: in the middle of a kernel, or in none."""
        call, previous = self.calls[number], self.calls[number - 1]
        low, high = previous.end, min(call.launch, call.start)
        if how == "host" and high > low:
            return self._free(low, high, latest=True)
        inside = [(s, e) for s, e in self.kernels if s > low and e < call.start]
        start, end = max(inside, key=lambda span: span[1] - span[0])
        return (start + end) // 2

    def _free(self, low: int, high: int, *, latest: bool) -> int:
        """Choose the moment in a stretch that fewest kernels and calls run across."""
        edges = sorted({low, high, *(e + 1 for _, e in self.busy if low < e < high)}, reverse=latest)
        near = [(s, e) for s, e in self.busy if s < high and e >= low]
        return min(edges, key=lambda at: sum(s < at <= e for s, e in near))


def _rewritten(
    events: Iterable[dict[str, Any]],
    rank: int,
    late: Callable[[int], int],
    *,
    noise: random.Random,
    jitter_us: float,
    members: list[int],
) -> Iterable[dict[str, Any]]:
    for event in events:
        made = dict(event)
        pid = made.get("pid")
        if isinstance(pid, int) and pid >= 100:  # a process, no GPU
            made["pid"] = pid + 1000 * rank
        if "start" not in made:
            yield made
            continue
        start, end = late(made.pop("start")), late(made.pop("end"))
        if _is_collective(event):
            start += min(round(abs(noise.gauss(0, jitter_us)) * 1000), (end - start) // 3)
            end += round(noise.uniform(-300, 300))
        made["ts"] = start / 1000
        if "dur" in made:
            made["dur"] = (end - start) / 1000
        if "Process Group Ranks" in (args := made.get("args") or {}):
            made["args"] = {**args, "Process Group Ranks": str(members), "Group size": len(members)}
        yield made


def _without_first(events: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """Take away what a recording that began later does not have: the first collectives and their ops."""
    kernels = sorted((e for e in events if _is_collective(e)), key=lambda e: e["ts"])[:number]
    gone = {e["args"]["correlation"] for e in kernels}
    ids = {e["args"]["External id"] for e in kernels if "External id" in e["args"]}
    return [
        e for e in events
        if (e.get("args") or {}).get("correlation") not in gone
        and not (e.get("name") == "record_param_comms" and (e.get("args") or {}).get("External id") in ids)
    ]  # fmt: skip


def _distributed(rank: int, world: int) -> dict[str, Any]:
    return {
        "backend": "nccl", "rank": rank, "world_size": world, "pg_count": 1, "nccl_version": "2.28.9",
        "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl",
                       "pg_size": world, "ranks": list(range(world))}],
    }  # fmt: skip


def _written(path: Path, document: dict[str, Any], *, packed: bool) -> Path:
    data = msgspec.json.encode(document)
    if not packed:
        path.write_bytes(data)
        return path
    path = path.with_name(path.name + ".gz")
    path.write_bytes(gzip.compress(data, 1, mtime=0))
    return path
