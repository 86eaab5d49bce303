"""sync-stall: the host waits for the GPU in the middle of its work.

## What it means
The program needed a value that was still on the GPU: `.item()`, `if tensor:`, `.cpu()`, `.tolist()`, the
text of a tensor, `nonzero`, indexing by a boolean mask, `torch.where` with one argument. Or it called
`torch.cuda.synchronize()`. Then the host stops until the GPU has done all that was queued before.

The wait looks like the cost of the op in which it happens, and mostly is not: it lasts as long as the
kernels that were queued before, and the finding says which those are.

## Why it costs
While the host waits it launches nothing, so at the end of the wait the queue is empty and the GPU idles
until the next launch arrives, 30 to 100 us later. A program that was slow at launching anyway loses the time
of the waits themselves. Work between two waits cannot become a CUDA graph either.

## How to confirm
Look for `cudaStreamSynchronize` under the op, with a gap on the GPU after it. Record with `with_stack=True`
to get the line of code. `torch.cuda.set_sync_debug_mode("warn")` prints each such line as it runs.

## How to fix
Keep values on the GPU and sizes fixed, as the finding says for its op. Read metrics once every so many steps.

## When it is fine
Once a step, where the GPU has much work queued for the next one: it is a note then. Between two steps, to
time them: `torch.cuda.synchronize()` is right there. The wait in which the profiler collects what it
recorded, at the end of the trace, is no finding.

At stake is the idle GPU time that the waits lead to, at most the time waited; of tensors that are printed
also that in which the GPU waits for the printing's launches, as far as stacks were recorded. It is a warning
from 1 % of the time recorded, or half of that where a call of the scope waits four times or more. Copies of
more than 64 KiB from or to pageable memory belong to `pageable-copy`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks import _sync_fixes as fixes
from tracehunch.checks._activities import on_cpu_alone
from tracehunch.checks._ancestry import called_op
from tracehunch.checks._blocked import Blame, part_of_trace, typical_us
from tracehunch.checks._idle import IdleCause
from tracehunch.checks._scopes import by_call_us, durations_us, place_rows
from tracehunch.checks._waits import WaitKind, Waits, printing
from tracehunch.checks._weight import on_average
from tracehunch.checks._words import at_source
from tracehunch.facts.intervals import Cover
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import LAUNCH_CATS, UNKNOWN_NS, Cat, Int64
from tracehunch.tree import NONE
from tracehunch.units import count, elide, plural, printable, time_us
from tracehunch.verdict import CannotTell, Finding, Severity

ID: Final = "sync-stall"
_WARNING: Final = 0.01
_WARNING_OF_MANY: Final = 0.005
_MANY: Final = 4
_NOTE: Final = 0.001
_NOTE_BETWEEN_STEPS: Final = 0.05
_MISREAD: Final = 0.1
"""Part of the time spent waiting from which a wait is worth explaining even if nothing is lost by it."""
_MOSTLY_AT_WORK: Final = 0.5
_CALLED: Final = (WaitKind.OP, WaitKind.PRINT, WaitKind.CALL)


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find waits by what causes them, in the scope where it does."""
    tree = facts.tree
    if not tree.trace.rows(*LAUNCH_CATS).size:
        if not on_cpu_alone(facts):
            reason = "no calls to the GPU's runtime were recorded"
            yield CannotTell(ID, "whole", reason, "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]")
        return
    waits = Waits.of(facts)
    if not waits.rows.size:
        return
    if tree.skewed:
        reason = "GPU activities start before their launches, so idle time cannot be laid to waits"
        yield CannotTell(ID, "whole", reason)
        return
    n_names = len(tree.trace.names)
    name = np.where(waits.kind == WaitKind.PRINT, 0, tree.trace.name[waits.source])
    key = (waits.kind * n_names + name)[waits.rows]
    for scope, code, rows in place_rows(facts, waits.rows).groups(waits.rows, key):
        yield from _findings(_Stall.of(facts, scope, WaitKind(code // n_names), rows, waits.source))


@dataclass(frozen=True, slots=True)
class _Stall:
    """The waits of one cause in one scope; times are of each call of the scope."""

    facts: Facts
    scope: ScopeFacts
    kind: WaitKind
    rows: Int64
    longest: int  # of the waits
    source: int  # the row that makes the longest
    waited_us: NDArray[np.float64]
    blame: Blame

    @classmethod
    def of(cls, facts: Facts, scope: ScopeFacts, kind: WaitKind, rows: Int64, source: Int64) -> Self:
        longest = int(rows[np.argmax(durations_us(facts.tree.trace, rows))])
        waited = by_call_us(facts, scope, rows)
        blame = Blame.of(facts, scope, rows, IdleCause.SYNC, IdleCause.COPY)
        if kind == WaitKind.PRINT:
            blame = blame.and_launches_in(facts, scope, printing(facts.tree))
        return cls(facts, scope, kind, rows, longest, int(source[longest]), waited, blame)

    @property
    def per_call(self) -> float:
        """How often a call waits; a copy and the wait that follows it in the same op are one."""
        op = self.facts.tree.op[self.rows]
        number = int(np.unique(op[op != NONE]).size + (op == NONE).sum())
        return round(number / len(self.scope.scope.calls), 1)

    @property
    def name(self) -> str:
        """What makes the waits."""
        return (
            "text of tensors" if self.kind == WaitKind.PRINT else self.facts.tree.trace.name_of(self.source)
        )

    def part(self, time_us: float) -> float:
        """Return a time per call as part of the recorded time."""
        return part_of_trace(self.facts, self.scope, time_us)


def _findings(stall: _Stall) -> Iterator[Finding]:
    severity = _severity(stall)
    if severity is None:
        return
    tree = stall.facts.tree
    advice = _advice(stall)
    yield Finding(
        id=ID,
        scope=stall.scope.scope.name,
        severity=severity,
        confidence="high" if stall.kind in _CALLED else "medium",
        time_at_stake_us=float(stall.blame.by_call_us.mean()),
        summary=f"{stall.name}{_via(stall)} makes the host wait for the GPU {_how_often(stall)}"
        f"{at_source(tree, stall.longest)}{_other_lines(stall)}",
        cause=f"{advice.cause}. {_attribution(stall)}At stake is the idle time of the GPU that follows from "
        f"the waits, at most the time waited{_and(stall)}.",
        fix=advice.fix,
        evidence=tree.trace.events(_cited(stall)),
        subject=stall.name,
        per_call=stall.per_call,
        idle=tuple(stall.blame.pieces.tolist()),
    )


def _severity(stall: _Stall) -> Severity | None:
    """None where it is not worth a word."""
    stake, typical = (
        stall.part(float(stall.blame.by_call_us.mean())),
        stall.part(typical_us(stall.blame.by_call_us)),
    )
    steps_known = stall.scope.scope.kind != "whole"
    if stall.kind == WaitKind.EDGE:
        return "note" if steps_known and typical >= _NOTE_BETWEEN_STEPS else None
    if stall.kind == WaitKind.LIBRARY:
        return "note" if typical >= _WARNING else None
    least = _WARNING_OF_MANY if stall.per_call >= _MANY else _WARNING
    if typical >= least and (steps_known or stall.kind != WaitKind.CALL):
        return "warning"
    misread = stall.part(float(stall.waited_us.mean())) >= _MISREAD
    return "note" if stake >= _NOTE or misread else None


def _cited(stall: _Stall) -> Int64:
    """Return the waits, the ops that the program called around them, and the copies they wait for."""
    tree, trace = stall.facts.tree, stall.facts.tree.trace
    called, inner = called_op(tree, stall.rows), tree.op[stall.rows]
    copies = trace.rows(Cat.MEMCPY)
    awaited = copies[np.isin(tree.op[copies], inner[inner != NONE])]
    return np.unique(np.concatenate([stall.rows, called[called != NONE], awaited]))


def _advice(stall: _Stall) -> fixes.Remedy:
    by_kind = {
        WaitKind.PRINT: fixes.PRINTING,
        WaitKind.CALL: fixes.SYNCHRONISE,
        WaitKind.EDGE: fixes.EDGE,
        WaitKind.LIBRARY: fixes.LIBRARY,
    }
    return by_kind.get(stall.kind) or fixes.remedy(stall.facts.tree, stall.source, stall.longest)


def _and(stall: _Stall) -> str:
    """Say what else the fix saves."""
    return ", and that in which it waits for the printing's launches" if stall.kind == WaitKind.PRINT else ""


def _via(stall: _Stall) -> str:
    """Name the op inside the one that was called that waits."""
    tree = stall.facts.tree
    inner = int(tree.op[stall.longest])
    if stall.kind != WaitKind.OP or inner == NONE or tree.trace.name[inner] == tree.trace.name[stall.source]:
        return ""
    return f" (through {tree.trace.name_of(inner)})"


def _how_often(stall: _Stall) -> str:
    times = {1.0: "once", 2.0: "twice"}.get(stall.per_call, f"{count(stall.per_call)} times")
    varying = on_average(stall.waited_us)
    in_all = "" if stall.per_call == 1 or varying else " in all"
    return f"{times} a call, {time_us(float(stall.waited_us.mean()))}{in_all}{varying}"


def _other_lines(stall: _Stall) -> str:
    """Say how many other lines of code do the same."""
    lines = {at_source(stall.facts.tree, row) for row in stall.rows.tolist()} - {""}
    return f" and {plural(len(lines) - 1, 'other place')}" if len(lines) > 1 else ""


def _attribution(stall: _Stall) -> str:
    """Say, where most of the waits is the GPU at work, which activity took most of it."""
    trace = stall.facts.tree.trace
    start = trace.start_ns[stall.rows]
    cover = Cover(start, trace.end_ns()[stall.rows])
    gpu = trace.gpu.row[trace.start_ns[trace.gpu.row] != UNKNOWN_NS].astype(np.int64)
    inside = cover.until(trace.end_ns()[gpu]) - cover.until(trace.start_ns[gpu])
    busy = float(inside.sum()) / 1e3 / len(stall.scope.scope.calls)
    if busy < _MOSTLY_AT_WORK * float(stall.waited_us.mean()):
        return ""
    most = trace.names[int(np.bincount(trace.name[gpu], weights=inside).argmax())]
    return (
        f"For most of the wait the GPU was at work on what was queued before ({elide(printable(most), 50)} "
        "above all), which is no cost of the wait. "
    )
