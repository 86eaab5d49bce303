"""gpu-gap: a single long gap in which the GPU had nothing to do.

## What it means
Somewhere the GPU stood still for a material time, for a reason that no other finding reports: an op that
computed on the host while the GPU waited for its result or its turn; a run of ops that launched nothing; or
work that had been launched in time, but waited for an event of another stream or device, or for the driver.

## Why it costs
The whole gap, each time.

## How to confirm
Zoom in on the cited GPU activity: what did the thread that launched it do just before? If it had launched
it long ago, look at the other streams (`cudaStreamWaitEvent`, collectives) for what ended just before it
started.

## How to fix
Host ops: move the tensors and the op to the GPU, or make them ahead of time in another thread. Runs of ops
that launch nothing (masks, position ids, optimizer bookkeeping built on the host in each step): build them
once. Waiting for another stream: fewer events between streams, or issue the work of the other stream
earlier.

## When it is fine
Once, at the start: before the first launch the GPU has nothing to do. Gaps between all kernels are
`overhead-bound`; gaps behind waits, copies, allocations, loading of code, compilation and other host code
are those findings' own, and are not repeated here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.checks._idle import Idle, IdleCause, idle_of
from tracehunch.checks._idle_scopes import most_specific, outermost
from tracehunch.checks._words import at_source
from tracehunch.checks.cpu_plan_cost import has_plans
from tracehunch.checks.overhead_bound import overhead_bound_scopes
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE
from tracehunch.tree.names import names_that
from tracehunch.units import plural, printable, shorten, time_us
from tracehunch.verdict import Finding, Severity

ID: Final = "gpu-gap"
_LEAST_US: Final = {IdleCause.LIBRARY: 200.0, IdleCause.DEVICE: 200.0, IdleCause.LAUNCH: 1000.0}
"""Up to the last there are gaps between the steps of any loop."""
_MATERIAL: Final = 0.01
_WARNING: Final = 0.05
"""Parts of the time of the whole trace: of one gap, and of the gaps of one reason and scope together."""
_RECURRING: Final = 0.5
"""Gaps a call from which on it is no accident, or a first step's."""


def check(facts: Facts) -> Iterable[Finding]:
    """Report long gaps that are nobody else's, by scope and cause."""
    idle = idle_of(facts)
    pieces = _long(facts, idle)
    if not pieces.size:
        return
    scopes = most_specific(facts, idle, pieces)
    for number in np.unique(scopes[scopes != NONE]).tolist():
        for cause in np.unique(idle.cause[pieces[scopes == number]]).tolist():
            mine = pieces[(scopes == number) & (idle.cause[pieces] == cause)]
            yield _finding(facts, idle, facts.scopes[number], mine, IdleCause(cause))


def _long(facts: Facts, idle: Idle) -> Int64:
    """Find the pieces that are worth a word each, and that no other check speaks of."""
    trace = facts.tree.trace
    recorded = facts.tree.window.recorded_ns / 1e3
    pieces = idle.of(*_LEAST_US)
    least = np.array([_LEAST_US.get(cause, np.inf) for cause in IdleCause])[idle.cause[pieces]]
    starting = idle.start_ns[pieces] == idle.window[0]
    long = (idle.length_us[pieces] >= np.maximum(least, _MATERIAL * recorded)) & ~starting
    pieces = pieces[long]
    if not pieces.size:
        return idle.of()[:0]
    plans = names_that(trace, has_plans)[trace.name[idle.host_row[pieces]]]
    others = (idle.cause[pieces] == IdleCause.LIBRARY) & plans
    launches = np.flatnonzero(idle.cause[pieces] == IdleCause.LAUNCH)
    for scope, _ in overhead_bound_scopes(facts, idle) if launches.size else ():
        others[launches] |= idle.within_us(scope, pieces[launches]) > 0
    left: Int64 = pieces[~others]
    return left


def _finding(facts: Facts, idle: Idle, scope: ScopeFacts, pieces: Int64, cause: IdleCause) -> Finding:
    trace = facts.tree.trace
    total = float(idle.within_us(scope, pieces).sum()) / idle.n_devices
    longest = int(pieces[np.argmax(idle.length_us[pieces])])
    said = _SAY[cause](facts, idle, longest)
    return Finding(
        id=ID,
        scope=scope.scope.name,
        severity=_severity(facts, total, pieces.size / _times_around(facts, scope)),
        confidence="high" if cause == IdleCause.LIBRARY else "medium",
        time_at_stake_us=total / len(scope.scope.calls),
        summary=f"the GPU had nothing to do for up to {time_us(float(idle.length_us[longest]))} "
        f"({plural(pieces.size, 'gap')}), {said.what}",
        cause=f"{said.why} At stake are these gaps, averaged over the calls of the scope.",
        fix=said.fix,
        evidence=trace.events(_cited(idle, pieces)),
        subject=said.subject,
        per_call=round(pieces.size / len(scope.scope.calls), 1),
        idle=tuple(pieces.tolist()),
    )


def _severity(facts: Facts, total_us: float, per_call: float) -> Severity:
    material = total_us >= _WARNING * facts.tree.window.recorded_ns / 1e3
    return "warning" if material and per_call >= _RECURRING else "note"


def _times_around(facts: Facts, scope: ScopeFacts) -> int:
    """How often the program went round: what lies in no call of anything is to be held against that."""
    steps = [one for one in facts.scopes if one.scope.kind == "step"] or outermost(facts)
    around = [scope] if scope.scope.kind != "whole" else [scope, *steps]
    return max(len(one.scope.calls) for one in around)


def _cited(idle: Idle, pieces: Int64) -> Int64:
    rows = idle.host_row[pieces]
    return np.unique(rows[rows != NONE])


@dataclass(frozen=True, slots=True)
class _Said:
    what: str  # completes "the GPU had nothing to do for 2 ms, ..."
    why: str
    fix: str
    subject: str


def _in_an_op(facts: Facts, idle: Idle, piece: int) -> _Said:
    tree = facts.tree
    row = int(idle.host_row[piece])
    name = tree.trace.name_of(row)
    return _Said(
        f"the longest while {printable(name)} was busy on the host{at_source(tree, row)}",
        f"Nothing recorded inside {printable(name)} explains its time: it computed on the host, loaded "
        "something, or waited for a lock.",
        f"If {printable(name)} works on CPU tensors, move the tensors and the op to the GPU, or run the op "
        "ahead of time in another thread.",
        name,
    )


def _behind_launches(facts: Facts, idle: Idle, piece: int) -> _Said:
    tree, trace = facts.tree, facts.tree.trace
    start, end = int(idle.start_ns[piece]), int(idle.end_ns[piece])
    ops = tree.ops[trace.thread[tree.ops] == idle.thread[piece]]
    inside = ops[(trace.start_ns[ops] >= start) & (trace.start_ns[ops] < end)]
    row = int(idle.host_row[piece])
    return _Said(
        f"the longest while the host ran {plural(inside.size, 'op')} that launched nothing"
        f"{at_source(tree, row)}",
        "The host was busy with small ops and Python between one launch and the next.",
        "Build once what does not change from step to step (masks, position ids, constants), and launch "
        "kernels before small work on the host rather than after it.",
        "" if tree.op[row] == NONE else trace.name_of(int(tree.op[row])),
    )


def _on_the_device(facts: Facts, idle: Idle, piece: int) -> _Said:
    trace = facts.tree.trace
    launch, following = int(idle.host_row[piece]), int(idle.next_row[piece])
    name = "" if following == NONE else trace.name_of(following)
    if NONE in {launch, following}:
        return _Said("before work launched earlier", "Its launch was not recorded.", _STREAMS, name)
    waited = (int(trace.start_ns[following]) - int(trace.end_ns()[launch])) / 1e3
    return _Said(
        f"the longest before {shorten(printable(name), 60)}, launched {time_us(max(waited, 0.0))} before it "
        "started",
        "The work was there, but did not start: it waited for an event of another stream or device, for "
        "another process on the GPU, or for the driver.",
        _STREAMS,
        name,
    )


_STREAMS: Final = (
    "Look for what ends on other streams, devices or ranks just before the work after the gap starts, and "
    "issue it earlier; leave out events between streams that nothing needs."
)
_SAY: Final = {
    IdleCause.LIBRARY: _in_an_op,
    IdleCause.LAUNCH: _behind_launches,
    IdleCause.DEVICE: _on_the_device,
}
