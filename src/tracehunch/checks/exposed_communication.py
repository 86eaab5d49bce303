"""exposed-communication: collectives run while the GPU computes nothing.

## What it means
Kernels of NCCL or RCCL (all-reduce, all-gather, reduce-scatter, send and receive) ran on the GPU without any
kernel that computes beside them on the same device. The part of a collective that compute overlaps is hidden
and not counted.

## Why it costs
While a collective is exposed the GPU waits for the network, and for the other ranks: a collective ends when
the slowest rank has joined it. Data-parallel training hides nearly all of it behind the backward, tensor
parallelism exposes what comes between two products unless it is cut into pieces.

## How to confirm
In the timeline no kernel runs above or below the collective. One rank's trace cannot tell transfer from
waiting for another rank: compare the same collective on all ranks; where one rank's kernel is much shorter,
the others waited for it.

## How to fix
DistributedDataParallel: smaller buckets (`bucket_cap_mb`), `gradient_as_bucket_view=True`, `no_sync()` while
accumulating gradients. FSDP: prefetching (`backward_prefetch`, `forward_prefetch`). Tensor parallelism:
asynchronous tensor parallelism, or the batch split in two. By hand: `async_op=True`, and `wait()` just before
the result is needed. If the ranks differ, balance them first.

## When it is fine
At the ends of a step something is always exposed. If the host cannot keep the GPU busy anyway the collective
falls into time that would have been idle, and it is a note.

At stake is the exposed time, at most the time in which the scope's other kernels ran without a collective
beside them, for no more can hide it. Where the sizes of messages are recorded, what a collective took above
the quickest of its kind and size is taken to be waiting and left out. The scope is the smallest that owns the
collectives; it is a warning from a tenth of the scope's own duration.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import launched, on_gpu, uses
from tracehunch.checks._once import once
from tracehunch.checks._overlap import alone_ns, union_ns
from tracehunch.checks._scopes import durations_us, gpu_rows, sums_by_call
from tracehunch.checks._weight import on_average
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, KernelUse, ScopeFacts
from tracehunch.trace.model import Cat, Int64, Trace
from tracehunch.tree.names import names_that
from tracehunch.units import plural, share, time_us
from tracehunch.verdict import CannotTell, Finding, Severity

ID: Final = "exposed-communication"
_WARNING: Final = 0.1
_NOTE: Final = 0.01
"""Of the scope's own duration."""
_MOSTLY_IDLE: Final = 0.5
_NEARLY_ALL: Final = 0.95
_MOST: Final = 0.5
_ANNOTATED: Final = ("nccl:", "rccl:")


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find collectives that no compute kernel overlaps, by scope."""
    if not on_gpu(facts):
        if names_that(facts.tree.trace, lambda name: name.startswith(_ANNOTATED)).any():
            reason = "collectives were called, but no GPU activity was recorded"
            yield CannotTell(ID, "whole", reason, "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]")
        return
    rows = collectives(facts)
    if rows.size:
        linked = np.intersect1d(rows, launched(facts, is_collective))
        yield from _findings(_Exposed.of(facts, *_smallest_around(facts, rows, linked)))


@once
def collectives(facts: Facts) -> Int64:
    """Kernels of collectives, whether or not their launch is recorded; ascending."""
    found = [row for use in uses(facts) if is_collective(use) for row in use.rows]
    return np.array(sorted(found), dtype=np.int64)


def _smallest_around(facts: Facts, rows: Int64, linked: Int64) -> tuple[ScopeFacts, Int64]:
    """Choose the scope of the shortest calls that owns nearly all collectives, and return those it owns.

    What could hide them is all the work of a step, not that of an annotation around one collective. Where the
    launches of most are not known (RCCL on some versions of ROCm) it is the whole trace, which owns them all.
    """
    whole = next(scope for scope in facts.scopes if scope.scope.kind == "whole")
    if linked.size < _MOST * rows.size:
        return whole, rows
    table = np.isin(facts.tree.trace.gpu.row, linked)
    owned = facts.tree.ownership.gpu.sums(table)[0]
    found = [(np.inf, whole)]
    for scope in facts.scopes:
        first, wall = scope.scope.first_call, scope.value("wall_time")
        holds = owned[first : first + len(scope.scope.calls)].sum() >= _NEARLY_ALL * linked.size
        if scope.scope.kind in ("annotation", "step") and holds and isinstance(wall, int | float):
            found.append((float(wall), scope))
    _, chosen = min(found, key=lambda pair: pair[0])
    return chosen, np.intersect1d(linked, gpu_rows(facts, chosen))


def is_collective(use: KernelUse) -> bool:
    """Whether a GPU activity is a kernel of a collective, or of a send or receive."""
    return use.kind == "kernel" and use.identity.algorithm == "collective"


@once
def computing(facts: Facts) -> Int64:
    """All kernels that are no collectives, whether or not their launch is recorded."""
    trace = facts.tree.trace
    wanted = trace.cat == Cat.KERNEL
    wanted[collectives(facts)] = False
    return np.flatnonzero(wanted)


@dataclass(frozen=True, slots=True)
class _Exposed:
    """The collectives of one scope; times are of each of its calls, or means over them."""

    facts: Facts
    scope: ScopeFacts
    rows: Int64
    exposed_us: NDArray[np.float64]
    whole_us: float  # of the collectives
    waiting_us: float  # of the exposed time: above the quickest of its kind and size
    computing_us: float  # in which nothing is communicated

    @classmethod
    def of(cls, facts: Facts, scope: ScopeFacts, rows: Int64) -> Self:
        trace, calls = facts.tree.trace, len(scope.scope.calls)
        exposed_ns = alone_ns(trace, rows, computing(facts))
        computes = np.zeros(len(trace), dtype=bool)
        computes[computing(facts)] = True
        owned = gpu_rows(facts, scope)
        compute = owned[computes[owned]]
        waiting = np.minimum(_above_quickest_us(facts, rows), exposed_ns / 1e3)
        return cls(
            facts,
            scope,
            rows,
            sums_by_call(facts, scope, rows, exposed_ns / 1e3),
            float(union_ns(trace, rows, np.zeros(rows.size), 1)[0]) / 1e3 / calls,
            float(waiting.sum()) / calls,
            float(alone_ns(trace, compute, rows).sum()) / 1e3 / calls,
        )

    @property
    def stake_us(self) -> float:
        return min(max(float(self.exposed_us.mean()) - self.waiting_us, 0.0), self.computing_us)


def _above_quickest_us(facts: Facts, rows: Int64) -> NDArray[np.float64]:
    """How much longer each collective took than the quickest of its name and size; 0 without sizes."""
    trace = facts.tree.trace
    lengths = durations_us(trace, rows)
    quickest: dict[tuple[int, str], float] = {}
    sizes = [(int(trace.name[row]), _message(trace.args_of(row))) for row in rows.tolist()]
    for key, length in zip(sizes, lengths.tolist(), strict=True):
        quickest[key] = min(length, quickest.get(key, length))
    least = np.array([quickest[key] if key[1] else np.inf for key in sizes])
    above: NDArray[np.float64] = np.maximum(lengths - least, 0)
    return above


def _message(args: Mapping[str, Any]) -> str:
    """Say what a collective moves; empty where it was not recorded."""
    parts = [args.get(key) for key in ("Collective name", "In msg nelems", "Out msg nelems", "dtype")]
    return "" if parts[1] is None else " ".join(map(str, parts))


def _findings(found: _Exposed) -> Iterator[Finding]:
    tree = found.facts.tree
    severity = _severity(found)
    if severity is None:
        return
    mean = float(found.exposed_us.mean())
    number = round(found.rows.size / len(found.scope.scope.calls), 1)
    longest = int(found.rows[np.argmax(durations_us(tree.trace, found.rows))])
    yield Finding(
        id=ID,
        scope=found.scope.scope.name,
        severity=severity,
        confidence="medium",
        time_at_stake_us=found.stake_us,
        summary=f"{plural(number, 'collective')} a call took {time_us(found.whole_us)}, of which no compute "
        f"kernel overlapped {time_us(mean)} ({share(mean, found.whole_us)}){on_average(found.exposed_us)}"
        f"{at_source(tree, longest)}",
        cause=_cause(found),
        fix=f"{_fix(tree.trace)} `tracehunch ranks` compares the ranks.",
        evidence=tree.trace.events(found.rows),
        subject=", ".join(sorted({_short(tree.trace.name_of(int(row))) for row in found.rows})),
        per_call=number,
    )


def _severity(found: _Exposed) -> Severity | None:
    """None where it is not worth a word."""
    wall = found.scope.value("wall_time")
    busy = found.scope.value("gpu_busy")
    lasts = max((value for value in (wall, busy) if isinstance(value, int | float)), default=0.0)
    if float(found.exposed_us.mean()) < _NOTE * lasts:
        return None
    idle = found.scope.value("gpu_idle")
    mostly_idle = isinstance(idle, float) and idle > _MOSTLY_IDLE
    return "warning" if found.stake_us >= _WARNING * lasts > 0 and not mostly_idle else "note"


def _cause(found: _Exposed) -> str:
    waiting = (
        f"{time_us(found.waiting_us)} of it are above the quickest collectives of the same sizes, most "
        "likely waiting for another rank, and not counted"
        if found.waiting_us >= _NOTE * found.whole_us
        else "How much of it is waiting for another rank, one rank's trace does not tell"
    )
    return (
        f"While a collective runs alone the GPU computes nothing. {waiting}. At stake is the rest, at most "
        f"the {time_us(found.computing_us)} in which other kernels run without a collective beside them."
    )


def _fix(trace: Trace) -> str:
    names = " ".join(name for name in trace.names if "Parallel" in name or "FSDP" in name)
    if "FullySharded" in names or "FSDP" in names:
        return "Prefetch: forward_prefetch=True, backward_prefetch=BackwardPrefetch.BACKWARD_PRE."
    if "DistributedDataParallel" in names:
        return (
            "Smaller buckets, so that the first all-reduce starts sooner (bucket_cap_mb), "
            "gradient_as_bucket_view=True, and no_sync() while accumulating gradients."
        )
    return (
        "Start collectives with async_op=True and wait() just before the result is used; between tensor-"
        "parallel products use asynchronous tensor parallelism, or split the batch in two."
    )


def _short(name: str) -> str:
    """Name a kernel without its parameters."""
    return name.partition("(")[0]
