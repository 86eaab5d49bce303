"""host-stall: the GPU waits while the host is busy with something that is not PyTorch.

## What it means
For a long stretch the thread that launches was in no op and no call of the driver, and meanwhile the GPU
ran out of work. It was in Python code of the program (preparing data, tokenizing, logging, sleeping),
waiting for input, a lock or another process, or the system had taken its CPU away.

## Why it costs
All of the time that the GPU stands still. Unlike the small gaps of `overhead-bound` it does not shrink with
fewer launches.

## How to confirm
Look for the blank in the CPU's row of the trace at the cited event. Record with `with_stack=True`: the
Python frame that fills the blank is the culprit. `py-spy dump` on a process that seems to hang shows the
same.

## How to fix
Do it elsewhere or ahead of time. Data: `DataLoader(num_workers=..., pin_memory=True, prefetch_factor=...)`,
so that the next batch is ready before it is asked for. Logging, metrics and checkpoints: less often, or in
another thread, from values copied back with `non_blocking=True`. If launches run far enough ahead of the
GPU (no `.item()` in the loop), a short pause costs nothing.

## When it is fine
Once, before the first step. Where the GPU has work queued the pause costs nothing and is not reported.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._idle import Idle, IdleCause, idle_of
from tracehunch.checks._idle_frames import are_in_pytorch, frame_during
from tracehunch.checks._idle_rows import is_data_loading
from tracehunch.checks._idle_scopes import most_specific
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE
from tracehunch.tree.keys import groups_of, packed
from tracehunch.tree.names import names_that
from tracehunch.units import join, plural, printable, time_range_us, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "host-stall"
_WARNING: Final = 0.05
_WORD: Final = 0.01
"""Parts of the time of the whole trace: a long pause in a short scope is a short pause."""
_NAMED: Final = 3


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Report idle time in which the host was outside PyTorch, by scope, data loading apart."""
    idle = idle_of(facts)
    if not len(idle):
        return
    yield from _untold(facts, idle)
    pieces = _outside_pytorch(facts, idle)
    scopes = most_specific(facts, idle, pieces)
    data = _is_loading(facts, idle, pieces)
    placed = np.flatnonzero(scopes != NONE)
    for group in groups_of(packed(scopes[placed], ~data[placed])):
        mine = placed[group]
        stall = _stall(facts, idle, facts.scopes[scopes[mine[0]]], pieces[mine])
        if stall.part >= _WORD:
            yield _finding(facts, idle, stall, loading=bool(data[mine[0]]))


def _untold(facts: Facts, idle: Idle) -> Iterable[CannotTell]:
    """Say so where the launches are known and the ops are not: nobody knows whether a thread was in one."""
    pieces = idle.of(IdleCause.UNKNOWN)
    long = float(idle.length_us[pieces[idle.thread[pieces] != NONE]].sum())
    if long >= _WARNING * facts.tree.window.recorded_ns / 1e3:
        reason = (
            f"for {time_us(long)} the GPU had nothing to do and the host called nothing, but whether it was "
            "in an op was not recorded"
        )
        yield CannotTell(ID, "whole", reason, "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]")


def _outside_pytorch(facts: Facts, idle: Idle) -> Int64:
    """Find the stalls; where Python frames were recorded, those that are not PyTorch's own code."""
    tree, pieces = facts.tree, idle.of(IdleCause.STALL)
    if not tree.trace.header.recorded.stacks:
        return pieces
    least = _WORD * tree.window.recorded_ns / 1e3 / max(pieces.size, 1)
    long = pieces[idle.length_us[pieces] >= least]
    loading = _is_loading(facts, idle, long)
    other = long[~loading]
    return np.union1d(long[loading], other[~are_in_pytorch(tree, idle, other)])


def _is_loading(facts: Facts, idle: Idle, pieces: Int64) -> NDArray[np.bool_]:
    """Tell which pieces are the making of a batch."""
    rows = idle.host_row[pieces]
    names = names_that(facts.tree.trace, is_data_loading)
    loading: NDArray[np.bool_] = (rows != NONE) & names[facts.tree.trace.name[rows]]
    return loading


@dataclass(frozen=True, slots=True)
class _Stall:
    """The pieces of one scope."""

    scope: ScopeFacts
    pieces: Int64
    us: float  # a call
    part: float  # of the trace's time


def _stall(facts: Facts, idle: Idle, scope: ScopeFacts, pieces: Int64) -> _Stall:
    total = float(idle.within_us(scope, pieces).sum()) / max(idle.n_devices, 1)
    recorded = facts.tree.window.recorded_ns / 1e3
    return _Stall(scope, pieces, total / len(scope.scope.calls), total / recorded if recorded > 0 else 0.0)


def _finding(facts: Facts, idle: Idle, stall: _Stall, *, loading: bool) -> Finding:
    trace = facts.tree.trace
    rows = idle.host_row[stall.pieces]
    names = list(dict.fromkeys(trace.name_of(int(row)) for row in rows if row != NONE))
    return Finding(
        id=ID,
        scope=stall.scope.scope.name,
        severity="warning" if stall.part >= _WARNING else "note",
        confidence="medium" if facts.tree.skewed else "high",
        time_at_stake_us=stall.us,
        summary=_summary(facts, idle, stall, names, loading=loading),
        cause=_cause(names, loading=loading, stacks=trace.header.recorded.stacks),
        fix=_LOADING_FIX if loading else _FIX,
        evidence=trace.events(_cited(facts, idle, stall.pieces)),
        subject=", ".join(sorted(names)),
        per_call=round(_stretches(idle, stall.pieces).size / len(stall.scope.scope.calls), 1),
        idle=tuple(stall.pieces.tolist()),
    )


def _cited(facts: Facts, idle: Idle, pieces: Int64) -> Int64:
    """Rows that follow the stretches, or that they are in; where none does, the last before."""
    rows = np.unique(idle.host_row[pieces])
    rows = rows[rows != NONE]
    return rows if rows.size else facts.tree.launches[-1:]


def _stretches(idle: Idle, pieces: Int64) -> Int64:
    """Lengths of the stretches in nanoseconds: pieces that are to blame on the same row are one."""
    order = pieces[np.lexsort((idle.start_ns[pieces], idle.device[pieces]))]
    first = idle.device[order] == idle.device[order[0]]
    rows, where = np.unique(idle.host_row[order[first]], return_inverse=True)
    lengths = np.zeros(rows.size, dtype=np.int64)
    np.add.at(lengths, where.reshape(-1), (idle.end_ns - idle.start_ns)[order[first]])
    return lengths


def _summary(facts: Facts, idle: Idle, stall: _Stall, names: list[str], *, loading: bool) -> str:
    lengths = _stretches(idle, stall.pieces) / 1e3
    lengths = lengths[lengths >= lengths.max() / 10]
    each = time_range_us(float(lengths.min()), float(lengths.max()))
    times = f"{plural(lengths.size, 'time')}, for {each}" if lengths.size > 1 else "once"
    how_long = f"for {time_us(stall.us)} a call while the GPU had nothing to do: {times}"
    if loading:
        return f"the host made the next batch ({_named(names, 'and')}) {how_long}"
    longest = int(stall.pieces[np.argmax(idle.length_us[stall.pieces])])
    return f"the host was outside PyTorch {how_long}{frame_during(facts.tree, idle, longest)}"


def _named(names: list[str], last: str) -> str:
    return join([printable(name) for name in names[:_NAMED]], last)


def _cause(names: list[str], *, loading: bool, stacks: bool) -> str:
    saving = "At stake is the part of it in which the GPU had run out of work."
    if loading:
        return f"The thread that launches makes the batch itself, or waits for a worker to make it. {saving}"
    before = f" Each stretch ends with {_named(names, 'or')}." if names else ""
    more = "" if stacks else " Which line it was, with_stack=True would show."
    return (
        "The thread that launches was in no op and no call of the driver: in Python code of the program, or "
        f"waiting for something else than the GPU.{before}{more} {saving}"
    )


_FIX: Final = (
    "Move the host's other work to another thread or process, or do it ahead of time: data in DataLoader "
    "workers (num_workers=..., pin_memory=True), logging and checkpoints less often or in the background, no "
    "sleeping in the loop."
)
_LOADING_FIX: Final = (
    "DataLoader(num_workers=..., prefetch_factor=..., persistent_workers=True, pin_memory=True): more "
    "workers until the next batch is ready when it is asked for; move slow transforms to the GPU or out of "
    "the loop."
)
