"""What of the facts of one rank is kept for comparison with others: small, and without the trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.ranks.host import held_ns
from tracehunch.compare.ranks.model import Step
from tracehunch.facts.intervals import union_by_group
from tracehunch.trace.model import UNKNOWN_NS
from tracehunch.tree.names import step_number
from tracehunch.units import NAME_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tracehunch.facts.model import Fact, Facts, KernelUse, ScopeFacts, Value
    from tracehunch.trace.model import Int64
    from tracehunch.tree import Tree
    from tracehunch.verdict import Finding

_KINDS: Final = ("step", "annotation", "whole")
_MOST_SCOPES: Final = 200
_MOST_OPS: Final = 1_000
_MOST_STEPS: Final = 20_000
_MOST_EVIDENCE: Final = 20
_UNLAUNCHED: Final = ""


def facts_of(facts: Facts) -> Mapping[str, Mapping[str, Value]]:
    """Return the values per call of steps, annotations and the whole, with the keys of look's JSON.

    Of hundreds of annotations those with the most calls are kept, as the ones that other ranks have, too.
    """
    chosen = [scope for scope in facts.scopes if scope.scope.kind in _KINDS]
    if len(chosen) > _MOST_SCOPES:
        chosen.sort(key=lambda scope: (_KINDS.index(scope.scope.kind) == 1, -len(scope.scope.calls)))
    return {scope.scope.name[:NAME_LIMIT]: _values(scope) for scope in chosen[:_MOST_SCOPES]}


def _values(scope: ScopeFacts) -> Mapping[str, Value]:
    return {_key(fact): fact.value for fact in scope.facts.values()}


def _key(fact: Fact) -> str:
    return f"{fact.key}_us" if fact.unit == "us" and not fact.key.endswith("_us") else fact.key


def gpu_time_us_by_op(facts: Facts) -> Mapping[str, float]:
    """Return the GPU time of the whole file by the innermost op that launched it, the longest first.

    What no op in the file launched is under "".
    """
    totals: dict[str, float] = {}
    for use in _uses(facts):
        op = use.op[:NAME_LIMIT] or _UNLAUNCHED
        totals[op] = totals.get(op, 0.0) + use.total_us
    longest = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:_MOST_OPS]
    return {op: round(time_us, 3) for op, time_us in longest}


def _uses(facts: Facts) -> Iterable[KernelUse]:
    return next((scope.kernels for scope in facts.scopes if scope.scope.kind == "whole"), ())


def findings_of(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings without what only stands for itself beside the trace, and with little evidence."""
    return tuple(replace(one, evidence=one.evidence[:_MOST_EVIDENCE], idle=()) for one in findings)


def steps_of(tree: Tree, base_ns: int) -> tuple[Step, ...]:
    """Return the profiler's steps in order of time; ``gpu_busy_ns`` adds up the devices."""
    trace = tree.trace
    numbers = in_order(tree, calls_of_steps(tree))
    busy, held = _busy_ns(tree, numbers), held_ns(tree)
    spans = tree.ownership.spans
    return tuple(
        Step(
            number=step_number(trace.name_of(int(spans.row[call]))),
            start_ns=base_ns + int(spans.start_ns[call]),
            end_ns=base_ns + int(spans.end_ns[call]),
            gpu_busy_ns=busy.get(call) if trace.gpu.row.size else None,
            held_ns=int(held[call]) if tree.launches.size else None,
        )
        for call in numbers.tolist()
    )


def calls_of_steps(tree: Tree) -> Int64:
    """Return the numbers, in ``Tree.ownership``, of the calls that are profiler steps."""
    parts = [
        np.arange(scope.first_call, scope.first_call + len(scope.calls))
        for scope in tree.scopes
        if scope.kind == "step"
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def in_order(tree: Tree, calls: Int64) -> Int64:
    """Return the first of these calls of steps in order of time, then of their numbers."""
    spans = tree.ownership.spans
    calls = calls[:_MOST_STEPS]
    numbers = [step_number(tree.trace.name_of(row)) for row in spans.row[calls].tolist()]
    ordered: Int64 = calls[np.lexsort((np.array(numbers, dtype=np.int64), spans.start_ns[calls]))]
    return ordered


def _busy_ns(tree: Tree, calls: Int64) -> Mapping[int, int]:
    """For each call how long its activities kept a device busy, devices added up; 0 where it has none."""
    trace = tree.trace
    rows = trace.gpu.row.astype(np.int64)
    layout = tree.ownership.gpu
    devices, device = np.unique(trace.gpu.device, return_inverse=True)
    busy = dict.fromkeys(calls.tolist(), 0)
    for call in calls.tolist():
        items, _ = layout.items_of(call)
        items = items[trace.start_ns[rows[items]] != UNKNOWN_NS]
        _, lengths = union_by_group(device[items], trace.start_ns, trace.end_ns(), rows[items])
        busy[call] = int(lengths.sum()) if devices.size else 0
    return busy
