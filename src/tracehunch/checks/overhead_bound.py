"""overhead-bound: the GPU waits for the host to launch the next kernel.

## What it means
Between kernels the GPU had nothing to do, because the next launch had not been made yet: the launch queue
was empty. Python, PyTorch's dispatcher and the driver need some 20 to 100 us for an op, whatever its size;
where the kernels take less than that, the host sets the pace and a faster GPU, or faster kernels, change
nothing.

## Why it costs
All of the time between the kernels. Making kernels faster only makes the gaps longer.

## How to confirm
In the trace the kernels stand apart, each right after its launch: a `queue_delay` of 1 to 3 us on NVIDIA,
up to 15 us on AMD, means that nothing was queued. `cpu_time` is far above `gpu_time`. The profiler adds a
few microseconds to each op, so that without it the gaps are somewhat shorter: time a few steps without a
profiler (`torch.cuda.synchronize()` before and after) and compare with `gpu_busy`.

## How to fix
Launch less, or launch ahead. `torch.compile(model, mode="reduce-overhead")` fuses elementwise kernels and
replays the rest as a CUDA graph: one launch in place of hundreds. Where shapes are fixed,
`torch.cuda.make_graphed_callables` or `torch.cuda.CUDAGraph` do so by hand; generation needs a static KV
cache for it. Larger batches give each kernel more work for the same launch. `fused=True` (or
`foreach=True`) makes an optimizer a handful of launches.

## When it is fine
Tests, warm-up, and code that runs once. A profile of a single small op is overhead-bound by nature, and is
a note: it has too few launches a call to record or to fuse.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.checks._idle import Idle, IdleCause, idle_of
from tracehunch.checks._idle_scopes import directly_inside, program_scopes
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE
from tracehunch.tree.keys import distinct, largest
from tracehunch.units import count, join, printable, share, time_us
from tracehunch.verdict import CannotTell, Finding, Severity

ID: Final = "overhead-bound"
_WARNING: Final = 0.4
_WORD: Final = 0.1
"""Parts of the time in which the GPU is at work or waits for launches."""
_CHAIN: Final = 16
"""Launches a call from which on there is a chain that a graph or fusion would shorten."""
_FEW: Final = 8
"""With fewer launches a call even a note needs more: next to nothing else than waiting."""
_NEARLY_ALL: Final = 0.9
_LEAST: Final = 2
_HELD_UP: Final = tuple(cause for cause in IdleCause if cause not in (IdleCause.LAUNCH, IdleCause.DEVICE))
_EVIDENCE: Final = 64
_NESTED: Final = 0.2
_UNTOLD: Final = 0.5
_RECORD_BOTH: Final = "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Report the GPU's waiting for launches once for the program, or once for each of its parts."""
    idle = idle_of(facts)
    yield from _untold(facts, idle)
    for scope, waiting in overhead_bound_scopes(facts, idle):
        yield _finding(facts, idle, scope, waiting)


def overhead_bound_scopes(facts: Facts, idle: Idle) -> list[tuple[ScopeFacts, "Waiting"]]:
    """Find the scopes that the check reports."""
    scopes = program_scopes(facts, idle, IdleCause.LAUNCH)
    parts = [(scope, _part(idle, scope)) for scope in scopes]
    found = [(scope, _waiting(idle, scope, part)) for scope, part in parts if part >= _WORD]
    return [(scope, waiting) for scope, waiting in found if _is_worth_a_word(waiting)]


def _is_worth_a_word(waiting: "Waiting") -> bool:
    least = _WORD if waiting.launches >= _FEW else _NEARLY_ALL
    return waiting.launches >= _LEAST and waiting.part >= least


def _untold(facts: Facts, idle: Idle) -> Iterable[CannotTell]:
    """Say so where the launches, and so the reason of idle time, or what they launched is not recorded."""
    total = idle.total_us()
    tree = facts.tree
    if tree.launches.size and not len(idle):
        reason = "work was launched, but what the GPU did was not recorded, nor when it had nothing to do"
        yield CannotTell(ID, "whole", reason, _RECORD_BOTH)
    pieces = idle.of(IdleCause.UNKNOWN)
    unknown = float(idle.length_us[pieces[idle.thread[pieces] == NONE]].sum())
    if unknown and unknown >= _UNTOLD * total and total >= _WORD * tree.window.recorded_ns / 1e3:
        reason = (
            f"the GPU was idle for {time_us(total)}, but for most of it the launch of what it ran next was "
            "not recorded"
        )
        yield CannotTell(ID, "whole", reason, _RECORD_BOTH)


@dataclass(frozen=True, slots=True)
class Waiting:
    """How much the GPU waited for launches in a scope."""

    us: float  # a call
    part: float  # of the time at work or waiting, in the middle one of the calls
    launches: int  # a call, that the GPU waited for
    pieces: Int64


def _waiting(idle: Idle, scope: ScopeFacts, part: float) -> Waiting:
    by_call = idle.by_call_us(scope, IdleCause.LAUNCH)
    pieces = idle.inside(scope, IdleCause.LAUNCH)
    awaited = distinct(idle.next_row[pieces][idle.next_row[pieces] != NONE])
    n_launches = round(awaited.size / len(scope.scope.calls))
    return Waiting(float(by_call.mean()), part, n_launches, pieces)


def _part(idle: Idle, scope: ScopeFacts) -> float:
    """Return the part that waiting has in the middle one of the calls, of the time at work or waiting."""
    middle, busy = float(np.median(idle.by_call_us(scope, IdleCause.LAUNCH))), scope.value("gpu_busy")
    return middle / (middle + busy) if isinstance(busy, int | float) and middle > 0 else 0.0


def _finding(facts: Facts, idle: Idle, scope: ScopeFacts, waiting: Waiting) -> Finding:
    rows = idle.host_row[waiting.pieces]
    longest = largest(idle.length_us[waiting.pieces], _EVIDENCE)
    return Finding(
        id=ID,
        scope=scope.scope.name,
        severity=_severity(waiting),
        confidence="medium" if facts.tree.skewed else "high",
        time_at_stake_us=waiting.us,
        summary=_summary(facts, idle, scope, waiting),
        cause=_cause(scope, waiting),
        fix=_fix(facts),
        evidence=facts.tree.trace.events(np.unique(rows[longest])),
        per_call=waiting.launches,
        idle=tuple(waiting.pieces.tolist()),
    )


def _severity(waiting: Waiting) -> Severity:
    return "warning" if waiting.part >= _WARNING and waiting.launches >= _CHAIN else "note"


def _summary(facts: Facts, idle: Idle, scope: ScopeFacts, waiting: Waiting) -> str:
    wall = float(idle.wall_us(scope).mean())
    launches, gpu_time = scope.value("launches"), scope.value("gpu_time")
    said = f"the GPU waited for launches for {time_us(waiting.us)} of {time_us(wall)} a call"
    if isinstance(launches, int) and launches and isinstance(gpu_time, int | float):
        ordinary = wall - idle.per_call_us(scope, *_HELD_UP)
        said += (
            f": {count(launches)} launches, one every {time_us(ordinary / launches)} of host time, for "
            f"{time_us(gpu_time / launches)} of work each on average"
        )
    return said + _most_of_it(facts, idle, scope, waiting)


def _most_of_it(facts: Facts, idle: Idle, scope: ScopeFacts, waiting: Waiting) -> str:
    """Name the annotations inside that hold most of it, with their parts."""
    total = waiting.us * len(scope.scope.calls)
    inner = [
        (float(idle.by_call_us(one, IdleCause.LAUNCH).sum()), one) for one in directly_inside(facts, scope)
    ]
    named = sorted((part, one.scope.name) for part, one in inner if part >= _NESTED * total)[::-1]
    parts = [f"{printable(name)} ({share(part, total)})" for part, name in named[:3]]
    return f"; most of it in {join(parts)}" if parts else ""


def _cause(scope: ScopeFacts, waiting: Waiting) -> str:
    delay, launch_time = scope.value("queue_delay"), scope.value("launch_time")
    launches = scope.value("launches")
    said = f"Before {count(waiting.launches)} launches a call the GPU had run out of work."
    if isinstance(delay, int | float):
        said += f" From the end of a launch to the start of its work it takes {time_us(delay)} (median)"
        said += ", so that nothing was queued." if delay < 20 else "."
    if isinstance(launch_time, int | float) and isinstance(launches, int) and launches:
        said += f" A launch itself takes {time_us(launch_time / launches)}; the rest is Python and PyTorch."
    return (
        f"{said} At stake is the time in which the GPU had nothing to do for this reason alone: waits, "
        "copies, allocations and other host code that held up a launch are not in it."
    )


def _fix(facts: Facts) -> str:
    compiled = any(scope.facts.get("compiled") for scope in facts.scopes)
    first = (
        'Compile with mode="reduce-overhead", which replays the compiled code as a CUDA graph'
        if compiled
        else 'torch.compile(model, mode="reduce-overhead") fuses elementwise kernels and replays the rest '
        "as a CUDA graph"
    )
    return (
        f"{first}; torch.cuda.make_graphed_callables does so for fixed shapes without compiling. Or give "
        "each launch more work: larger batches, fused=True optimizers, ops on whole tensors in place of "
        "Python loops."
    )
