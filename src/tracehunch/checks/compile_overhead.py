"""compile-overhead: what torch.compile puts around compiled code costs more than the work inside it.

## What it means
Each call of a compiled function evaluates guards (`TorchDynamo Cache Lookup`), enters a
`Torch-Compiled Region`, goes through the wrappers of AOTAutograd (`AOTDispatcher Runtime Wrapper`) and
then runs the generated code (`## Call CompiledFxGraph`). Here guards and wrappers take the host longer than
the GPU works on what the generated code launches, and the GPU waits for them. A first compilation in the
recorded window is reported under this id, too, as a note; for repeated ones see `recompile`.

## Why it costs
Guards and wrappers take 20 to 100 us a call, under the profiler somewhat more, whatever the size of the work.
For a function of a few small ops that is more than the launches that fusing them saves. Every graph break
adds another look-up and region.

## How to confirm
Compare the bars of `TorchDynamo Cache Lookup` and of `Torch-Compiled Region` less `## Call CompiledFxGraph`
with the kernels below. Time the function without the profiler, compiled and not.

## How to fix
Compile a larger part, best the whole model, so that one look-up serves more work; remove graph breaks
(`fullgraph=True` names the first one). `mode="reduce-overhead"` replays the generated code as a CUDA graph,
which helps against launches, not against guards. Do not compile functions of a few small ops.

## When it is fine
Where the host is ahead of the GPU all the same, so that nothing waits. A single compilation in warm-up.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import on_gpu
from tracehunch.checks._compiled import cover_of, wrapper_spans
from tracehunch.checks._idle import IdleCause, idle_of
from tracehunch.checks._recompilations import Compiled, compiled_by_scope, idle_pieces, saved_us, stake_words
from tracehunch.checks._scopes import by_call_us, place, place_rows
from tracehunch.checks._spans import Spans
from tracehunch.checks._words import at_source
from tracehunch.facts.column import Bool
from tracehunch.facts.compiled.compilations import compiling
from tracehunch.facts.compiled.rows import annotated, is_lookup, is_region
from tracehunch.facts.compiler import innermost, is_autotuning
from tracehunch.facts.intervals import Cover
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE, Link
from tracehunch.units import plural, time_us
from tracehunch.verdict import CannotTell, Finding, Severity

ID: Final = "compile-overhead"
_WARNING: Final = 0.1
_WORD: Final = 0.02
"""Parts of a call that guards and wrappers have to keep the GPU waiting for."""
_TIMES_WORK: Final = 2.0
"""What a warning needs: guards and wrappers that take so many times as long as the work."""
_EVIDENCE: Final = 64
_ALSO_COMPILES: Final = " Every call compiles as well (see recompile): the compiler's own time is not in it."
_LEAST_US: Final = 1_000.0
"""Shorter host work of compiled code is not worth a cannot-tell."""


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Report guards and wrappers that outweigh the work, and first compilations."""
    for compiled in compiled_by_scope(facts):
        if compiled.first:
            yield _first_compilation(facts, compiled)
    tree = facts.tree
    regions = annotated(tree, is_region)
    if not regions.size:
        return
    overhead = _Overhead(facts)
    for scope, rows in place_rows(facts, regions).by_scope(regions):
        if not on_gpu(facts):
            yield from _untold(overhead, scope)
        else:
            cost = overhead.cost(scope, rows)
            if cost.host_us > cost.gpu_us and cost.part >= _WORD:
                yield _finding(facts, scope, cost)


@dataclass(frozen=True, slots=True)
class _Cost:
    """Guards and wrappers in one scope: medians over those of its calls that compile nothing.

    Where every call compiles, they are over all calls, without the compiler's own time.
    """

    rows: Int64  # regions
    host_us: float
    gpu_us: float
    waited_us: float  # of the GPU for them
    part: float  # of a call
    steady: bool  # whether there was a call that compiled nothing
    pieces: Int64  # of idle time


class _Overhead:
    """The time of guards and wrappers in a trace, against what they launch."""

    def __init__(self, facts: Facts) -> None:
        self._facts, tree = facts, facts.tree
        spans = wrapper_spans(tree)
        compilers = compiling(tree)
        own = spans.outside(
            Spans.of(tree.trace.start_ns[compilers], tree.trace.end_ns()[compilers], compilers)
        )
        self._wrappers = Cover(own.start_ns, own.end_ns)
        self._compiler = cover_of(tree, compilers)
        rows = tree.trace.gpu.row.astype(np.int64)
        rows = rows[tree.link[rows] == Link.LINKED]
        self._launched = rows[(innermost(tree, rows, is_region) != NONE) & ~is_autotuning(tree, rows)]
        self._placed = place(facts).scope[self._launched]

    def host_us(self, scope: ScopeFacts) -> NDArray[np.float64]:
        """Time of guards and wrappers in each call that compiles nothing, in all if there is none."""
        start, end = _bounds(scope)
        found: NDArray[np.float64] = _within(self._wrappers, start, end)[self._ready(start, end)]
        return found

    def _ready(self, start: Int64, end: Int64) -> Bool:
        ready: Bool = _within(self._compiler, start, end) == 0
        return ready if ready.any() else np.ones_like(ready)

    def cost(self, scope: ScopeFacts, rows: Int64) -> _Cost:
        """Measure the scope that some regions are in."""
        start, end = _bounds(scope)
        compiler_us = _within(self._compiler, start, end)
        mine = self._launched[self._placed == self._facts.scopes.index(scope)]
        gpu = by_call_us(self._facts, scope, mine)[self._ready(start, end)]
        host = self.host_us(scope)
        idle = idle_of(self._facts)
        pieces = idle.inside(scope, IdleCause.LAUNCH)
        waited = _within(self._wrappers, idle.start_ns[pieces], idle.end_ns[pieces])
        host_us = float(np.median(host)) if host.size else 0.0
        steady = bool((compiler_us == 0).any())
        waited_us = min(float(waited.sum()) / start.size, host_us)
        span_us = (end - start) / 1e3
        part = waited_us / max(float(span_us.mean()), 1e-3)
        if not steady:  # then the GPU's idle time is all laid to the compiler, and so is most of the call
            part = host_us / max(float((span_us - compiler_us).mean()), 1e-3)
        return _Cost(
            rows=rows,
            host_us=host_us,
            gpu_us=float(np.median(gpu)) if gpu.size else 0.0,
            waited_us=waited_us,
            part=part,
            steady=steady,
            pieces=pieces[_as_much_as(waited, idle.length_us[pieces])],
        )


def _as_much_as(part_us: NDArray[np.float64], length_us: NDArray[np.float64]) -> Int64:
    """Pick pieces, those that are most concerned first, which are together as long as all parts are."""
    order = np.argsort(-part_us / np.maximum(length_us, 1e-3), kind="stable")
    within = np.cumsum(length_us[order]) <= part_us.sum()
    return np.sort(order[within])


def _bounds(scope: ScopeFacts) -> tuple[Int64, Int64]:
    calls = scope.scope.calls
    return (
        np.array([call.start_ns for call in calls], dtype=np.int64),
        np.array([call.end_ns for call in calls], dtype=np.int64),
    )


def _within(cover: Cover, start_ns: Int64, end_ns: Int64) -> NDArray[np.float64]:
    """Covered microseconds between two moments each."""
    return (cover.until(end_ns) - cover.until(start_ns)) / 1e3


def _finding(facts: Facts, scope: ScopeFacts, cost: _Cost) -> Finding:
    tree = facts.tree
    runs = round(cost.rows.size / len(scope.scope.calls), 1)
    return Finding(
        id=ID,
        scope=scope.scope.name,
        severity=_severity(cost),
        confidence="medium",
        time_at_stake_us=cost.waited_us,
        summary=f"guards and wrappers of {plural(runs, 'compiled region')} a call take "
        f"{time_us(cost.host_us)} of host time, for {time_us(cost.gpu_us)} of GPU work"
        f"{at_source(tree, int(cost.rows[0]))}",
        cause="Looking up the compiled code and entering it takes the host longer than its kernels take the "
        "GPU. At stake is the time in which the GPU waited for that; the profiler lengthens it somewhat."
        + ("" if cost.steady else _ALSO_COMPILES),
        fix="Compile a larger part of the model, so that one look-up serves more work, and remove graph "
        "breaks (fullgraph=True names the first); leave functions of a few small ops uncompiled.",
        evidence=tree.trace.events(np.concatenate([cost.rows[:_EVIDENCE], _lookups(facts)[:_EVIDENCE]])),
        subject="torch.compile",
        per_call=runs,
        idle=tuple(cost.pieces.tolist()),
    )


def _severity(cost: _Cost) -> Severity:
    heavy = cost.steady and cost.host_us >= _TIMES_WORK * cost.gpu_us
    return "warning" if heavy and cost.part >= _WARNING else "note"


def _lookups(facts: Facts) -> Int64:
    return annotated(facts.tree, is_lookup)


def _untold(overhead: _Overhead, scope: ScopeFacts) -> Iterable[CannotTell]:
    """Without GPU activities there is no work to hold the overhead against."""
    host = overhead.host_us(scope)
    if host.size and float(host.sum()) >= _LEAST_US:
        reason = (
            f"guards and wrappers of compiled code take {time_us(float(np.median(host)))} a call, but no GPU "
            "work was recorded to hold against them"
        )
        record = "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
        yield CannotTell(ID, scope.scope.name, reason, record)


def _first_compilation(facts: Facts, compiled: Compiled) -> Finding:
    tree, scope = facts.tree, compiled.scope
    part = 1.0 - compiled.again_part
    spent = float(compiled.host_us.sum()) * part
    rows = np.array([one.row for one in compiled.first], dtype=np.int64)
    number = plural(len(compiled.first), "function")
    return Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note",
        confidence="high",
        time_at_stake_us=saved_us(facts, compiled) * part,
        summary=f"torch.compile compiled {number} for the first time in the recorded window: "
        f"{time_us(spent)} of host time in {plural(len(scope.scope.calls), 'call')}"
        f"{at_source(tree, int(rows[0]))}",
        cause="A first compilation belongs to warm-up; in a measurement it is no part of the steady state. "
        f"At stake is {stake_words(facts)}, spread over the calls.",
        fix="Run each compiled function once, with the shapes that will follow, before the recording starts.",
        evidence=tree.trace.events(rows),
        subject="torch.compile",
        per_call=round(len(compiled.first) / len(scope.scope.calls), 1),
        idle=idle_pieces(facts, compiled) if not compiled.again else (),
    )
