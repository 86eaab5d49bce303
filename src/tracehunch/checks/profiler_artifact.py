"""profiler-artifact: a gap that would not be there without the profiler.

## What it means
The profiler itself held up the thread that launches: it asked for another buffer to record into (`Activity
Buffer Request`), flushed one, or instrumented code (`Instrumentation`, `Resource`), and the GPU ran out of
work meanwhile. PyTorch records such work as events of the category `overhead`.

## Why it costs
Nothing, without the profiler. It costs those who take the gap for their program's: one of some milliseconds
at the start of a recording, or now and then in a long one.

## How to confirm
The cited events lie where nothing else happens on the launching thread. Record again: the gap is elsewhere,
or gone.

## How to fix
Leave the steps that it falls into out, as medians do. Let the profiler warm up (`schedule(wait=1, warmup=1,
active=3)`) so that the first buffers are there when recording begins, and record few steps at a time. The
time is counted in no other finding; `wall_time`, `cpu_time` and `gpu_idle` of the calls that it falls into
contain it.

## When it is fine
Always. It is a note, with nothing at stake. Overhead on another thread, or while the GPU had work, holds
nothing up and is not reported; nor is the wait at the end of a recording in which the profiler collects
what the GPU did.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from tracehunch.checks._idle import Idle, IdleCause, idle_of
from tracehunch.checks._idle_scopes import most_specific
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE
from tracehunch.units import join, plural, printable, time_range_us, time_us
from tracehunch.verdict import Finding

ID: Final = "profiler-artifact"
_WORD: Final = 0.001
"""Part of the time of the whole trace."""


def check(facts: Facts) -> Iterable[Finding]:
    """Report idle time that is the profiler's own doing, by scope."""
    idle = idle_of(facts)
    pieces = idle.of(IdleCause.PROFILER)
    if idle.total_us(IdleCause.PROFILER) < _WORD * facts.tree.window.recorded_ns / 1e3 or not pieces.size:
        return
    scopes = most_specific(facts, idle, pieces)
    for number in np.unique(scopes[scopes != NONE]).tolist():
        yield _finding(facts, idle, facts.scopes[number], pieces[scopes == number])


def _finding(facts: Facts, idle: Idle, scope: ScopeFacts, pieces: Int64) -> Finding:
    trace = facts.tree.trace
    rows = np.unique(idle.host_row[pieces])
    names = list(dict.fromkeys(printable(trace.name_of(int(row))) for row in rows))
    lengths = trace.dur_ns[rows] / 1e3
    each = time_range_us(float(lengths.min()), float(lengths.max()))
    times = f"{plural(rows.size, 'time')}, for {each}" if rows.size > 1 else f"once, for {each}"
    return Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note",
        confidence="high",
        time_at_stake_us=0.0,
        summary=f"the profiler's own work ({join(names)}) held up the launches {times}; the GPU had nothing "
        f"to do for {time_us(float(idle.length_us[pieces].sum()))}",
        cause="What records for the profiler needed the thread while it was in a call of the driver. The "
        "program has no part in it: this time is in no other finding, but it is in wall_time, cpu_time and "
        "gpu_idle of the calls that it fell into.",
        fix="Read medians, or leave out the calls that the profiler held up. schedule(wait=1, warmup=1, "
        "active=3) has the first buffers ready before recording begins.",
        evidence=trace.events(rows),
        subject=", ".join(sorted(names)),
        per_call=round(rows.size / len(scope.scope.calls), 1),
        idle=tuple(pieces.tolist()),
    )
