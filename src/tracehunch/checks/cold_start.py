"""cold-start: one call, mostly the first, took much longer because things were done for the first time.

## What it means
One call of a scope took at least twice as long as any other, though it did about the same, and the time went
into what PyTorch and its libraries do once: loading CUDA modules and kernels at their first launch (`Lazy
Function Loading`), creating handles and workspaces, choosing algorithms, allocating memory. The finding names
the ops and events.

## Why it costs
A program that runs long does not notice. A measurement does: means, sums, and the profiler's own table take
the slow call in. Medians over three calls or more, which the reports here show, leave it out.

## How to confirm
Compare the call with the next one, op by op: the same ops, some of them hundreds of times longer. With
`CUDA_MODULE_LOADING=EAGER` in the environment, loading moves to the start of the process.

## How to fix
Warm up before measuring: `torch.profiler.schedule(wait=1, warmup=3, active=3)`, or a few steps before the
profiler starts, with the shapes that will be measured. In a service, send requests of each size through it
before traffic arrives.

## When it is fine
In the first steps of any process. It is always a note; at stake is only the time of loading in which the GPU
idled, spread over the calls. A call that is slow throughout, or in an op that ran before, is noise and not
reported. Compilations by torch.compile belong to `compile-overhead`, plans of a library
that come back with new shapes to `cpu-plan-cost`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import on_cpu_alone
from tracehunch.checks._first_use import Excess, excess_of
from tracehunch.checks._idle import IdleCause, idle_of
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.units import join, printable, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "cold-start"
_CALLS: Final = 3
_TIMES_OTHERS: Final = 2.0
_TIMES_OF_TWO: Final = 5.0
_LEAST_US: Final = 1_000.0
"""Shorter excesses of a first call are there in any trace: the profiler itself starts up."""
_EXPLAINED: Final = 0.5
"""Part of the excess that things done for the first time have to account for."""
_ON_CPU: Final = 5.0
"""On a CPU other processes stretch any op: a first call has to be so many times as long as any other."""
_NESTED: Final = 0.9
_SHOWN: Final = 3
_AT_STAKE: Final = " At stake is the time of loading in which the GPU idled, spread over the calls."


@dataclass(frozen=True, slots=True)
class _Slow:
    """The slow call of a scope, and what made it slow."""

    scope: ScopeFacts
    at: int  # number of the call
    wall_us: NDArray[np.float64]  # of each call
    excess: Excess

    @property
    def others_us(self) -> NDArray[np.float64]:
        return np.delete(self.wall_us, self.at)

    @property
    def span(self) -> tuple[int, int]:
        call = self.scope.scope.calls[self.at]
        return call.start_ns, call.end_ns


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find scopes with a call that did things for the first time."""
    slow = [found for scope in facts.scopes for found in _slow(facts, scope)]
    for found in _without_nested(slow):
        if found.wall_us.size < _CALLS:
            yield _untold(found)
        else:
            yield _finding(facts, found)


def _slow(facts: Facts, scope: ScopeFacts) -> Iterator[_Slow]:
    """Yield a scope's slowest call if it is much slower than all others, for reasons of first use."""
    if scope.scope.kind not in ("annotation", "step") or len(scope.scope.calls) < 2:
        return
    spans = np.array([(call.start_ns, call.end_ns) for call in scope.scope.calls], dtype=np.int64)
    wall = (spans[:, 1] - spans[:, 0] - facts.tree.window.unrecorded_ns(spans[:, 0], spans[:, 1])) / 1e3
    at = int(np.argmax(wall))
    others = np.delete(wall, at)
    if wall[at] < _least_ratio(facts, wall.size) * others.max() or wall[at] - np.median(others) < _LEAST_US:
        return
    excess = excess_of(facts, scope, at)
    if excess.did_more:
        return
    unexplained = wall[at] - excess.profilers_us - float(np.median(others))
    if excess.told_us >= _EXPLAINED * unexplained:
        yield _Slow(scope, at, wall, excess)


def _least_ratio(facts: Facts, n_calls: int) -> float:
    if on_cpu_alone(facts):
        return _ON_CPU
    return _TIMES_OTHERS if n_calls >= _CALLS else _TIMES_OF_TWO


def _without_nested(slow: Sequence[_Slow]) -> list[_Slow]:
    """Of calls inside each other keep the innermost that holds nearly all of the excess."""
    kept: list[_Slow] = []
    for found in sorted(slow, key=lambda one: one.span[1] - one.span[0]):
        inner = [one for one in kept if found.span[0] <= one.span[0] and one.span[1] <= found.span[1]]
        held = max((one.excess.more_us for one in inner), default=0.0)
        if held < _NESTED * found.excess.more_us:
            kept = [one for one in kept if one not in inner] + [found]
    return kept


def _untold(found: _Slow) -> CannotTell:
    first, second = (time_us(float(one)) for one in (found.wall_us[found.at], found.others_us[0]))
    reason = f"one of two calls took {first}, the other {second}: which is typical, two do not say"
    return CannotTell(ID, found.scope.scope.name, reason, "schedule(wait=1, warmup=3, active=3)")


def _finding(facts: Facts, found: _Slow) -> Finding:
    tree, scope = facts.tree, found.scope
    call, others = scope.scope.calls[found.at], found.others_us
    median = float(np.median(others))
    idle = idle_of(facts)
    pieces = idle.inside(scope, IdleCause.FIRST_USE)
    pieces = pieces[(idle.end_ns[pieces] > call.start_ns) & (idle.start_ns[pieces] < call.end_ns)]
    stake = float(idle.by_call_us(scope, IdleCause.FIRST_USE)[found.at]) / found.wall_us.size
    return Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note",
        confidence="high" if found.excess.loading else "medium",
        time_at_stake_us=stake,
        summary=f"{_which(found)} took {time_us(float(found.wall_us[found.at]))}, the others "
        f"{time_us(median)} (median): {_most(found.excess)}{at_source(tree, call.row)}",
        cause=f"{_events(found.excess)} Read times without this call: their median is then {time_us(median)}."
        f"{_AT_STAKE if stake else ''}",
        fix="Warm up with the shapes that count before measuring: torch.profiler.schedule(wait=1, warmup=3, "
        "active=3), or some steps before the profiler starts.",
        evidence=tree.trace.events(np.union1d([call.row], found.excess.rows)),
        subject=join([name for name, _ in found.excess.leading[:1]]),
        per_call=round(1 / found.wall_us.size, 3),
        idle=tuple(pieces.tolist()),
    )


def _which(found: _Slow) -> str:
    number = found.wall_us.size
    return f"the first of {number} calls" if found.at == 0 else f"call {found.at + 1} of {number}"


def _most(excess: Excess) -> str:
    """Name what took most of the excess."""
    first, *rest = excess.leading[:_SHOWN]
    shown = [f"{time_us(first[1])} more in {printable(first[0], 60)}"]
    return join(shown + [f"{time_us(us)} in {printable(name, 60)}" for name, us in rest])


def _events(excess: Excess) -> str:
    said = "Things are done for the first time there, inside ops that need little time in the other calls."
    seen = [f"{number} x {printable(name, 60)} ({time_us(us)})" for name, number, us in excess.loading[:4]]
    return f"{said} It contains {join(seen)}." if seen else said
