"""Which findings can be the cause of a broken claim, and which of them are, in its scope."""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from tracehunch.facts.model import Facts
from tracehunch.guess.model import Claim
from tracehunch.judge.amounts import amount_of, counts_toward
from tracehunch.tree import Scope
from tracehunch.verdict import Finding

EXPERT: Final = "expert-guess"
"""Stands for a finding's id where nothing but the expert guess, which held, explains a surprise."""

_COPIES: Final = frozenset({"hidden-copy", "layout-copy", "bias-copy", "dtype-round-trip"})
_EXTRA_KERNELS: Final = _COPIES | {
    "sdpa-math-fallback", "mask-rebuilt", "safe-softmax", "unfused-attention", "fusion-missed",
    "for-loop-indexing", "unfused-optimizer", "recompile", "compile-overhead",
}  # fmt: skip
_SLOW_GPU: Final = _EXTRA_KERNELS | {
    "tensor-cores-idle", "fp32-matmul", "pageable-copy", "copy-not-overlapped", "clock-jitter", "cold-start",
}  # fmt: skip
_SLOW_HOST: Final = frozenset({
    "overhead-bound", "sync-stall", "host-stall", "pageable-copy", "cpu-plan-cost", "allocation-churn",
    "cold-start", "compile-overhead", "recompile", "for-loop-indexing", "unfused-optimizer",
    "profiler-artifact",
})  # fmt: skip
_IDLE: Final = _SLOW_HOST | {"gpu-gap", "copy-not-overlapped", "straggler", "exposed-communication"}

MORE: Final[Mapping[str, frozenset[str]]] = {
    "gpu_activities": _EXTRA_KERNELS,
    "kernels": _EXTRA_KERNELS,
    "leaf_ops": _EXTRA_KERNELS - {"unfused-attention"},
    "launches": _EXTRA_KERNELS,
    "copies": _COPIES | {"pageable-copy", "copy-not-overlapped", "sync-stall"},
    "copies.dtod": _COPIES,
    "copies.htod": frozenset({"pageable-copy", "copy-not-overlapped"}),
    "copies.dtoh": frozenset({"pageable-copy", "copy-not-overlapped", "sync-stall"}),
    "copy_kernels": _COPIES | {"sdpa-math-fallback"},
    "any_copies": _COPIES | {"sdpa-math-fallback", "pageable-copy", "copy-not-overlapped", "sync-stall"},
    "copy_time": _COPIES | {"pageable-copy", "copy-not-overlapped", "sync-stall"},
    "copy_bytes": _COPIES | {"pageable-copy", "copy-not-overlapped"},
    "gpu_time": _SLOW_GPU,
    "gpu_busy": _SLOW_GPU,
    "wall_time": _SLOW_GPU | _IDLE,
    "cpu_time": _SLOW_HOST,
    "launch_time": _EXTRA_KERNELS | {"overhead-bound", "cpu-plan-cost", "cold-start"},
    "queue_delay": frozenset({"copy-not-overlapped", "profiler-artifact"}),
    "gpu_idle": _IDLE,
    "syncs": frozenset({"sync-stall", "pageable-copy"}),
    "sync_time": frozenset({"sync-stall", "pageable-copy"}),
    "allocations": frozenset({"allocation-churn", "hidden-copy"}),
    "compiled": frozenset({"fusion-missed"}),
    "compiled.kernels": _EXTRA_KERNELS - {"recompile", "compile-overhead"},  # trial runs are not counted
    "compiled.graph_breaks": frozenset({"fusion-missed", "sync-stall"}),
    "compiled.last_compile": frozenset({"recompile", "compile-overhead"}),
    "compiled.last_recompile": frozenset({"recompile"}),
    "compiled.recompiles": frozenset({"recompile"}),
    "compiled.compile_time": frozenset({"recompile", "compile-overhead"}),
}
"""Key of a number that came out above its claim -> findings that name a cause."""

OTHER: Final[Mapping[str, frozenset[str]]] = {
    "sdpa.backend": frozenset({"sdpa-math-fallback", "unfused-attention", "sdpa-known-hazard"}),
    "dtype": frozenset({"fp32-matmul", "dtype-round-trip", "sdpa-math-fallback"}),
    "tensor_cores": frozenset({"tensor-cores-idle", "fp32-matmul", "sdpa-math-fallback"}),
    "bound": frozenset({"overhead-bound", "fp32-matmul", "tensor-cores-idle", "sdpa-math-fallback"}),
    "fused": frozenset({"fusion-missed"}),
}
"""Key of a text that came out different -> findings that name a cause."""

LESS: Final[Mapping[str, frozenset[str]]] = {
    "occupancy": frozenset({"occupancy-explained", "profiler-artifact"}),
    "achieved_flops": _SLOW_GPU,
    "achieved_bandwidth": _SLOW_GPU,
    "compiled": frozenset({"fusion-missed"}),
}
"""Key of a number that came out below its claim -> findings that name a cause. Fewer kernels have none."""


def explaining(
    claim: Claim, more: float, scope: Scope, facts: Facts, findings: Iterable[Finding]
) -> tuple[tuple[Finding, float], ...]:
    """Return the findings that name a cause for a broken claim, and how often each occurs in a call.

    ``more`` is by how much the value exceeds the claim (negative below it, 0 for text). A finding counts
    where it was made in the claim's scope, in a scope that runs inside it, or about events that the claim's
    scope owns; of a count only if some of what was counted is among its evidence.
    """
    causes = (MORE if more > 0 else LESS if more < 0 else OTHER).get(claim.key, frozenset())
    possible = [
        one
        for one in findings
        if one.id in causes
        and counts_toward(claim.key, one, facts)
        and not _too_much(claim, more, one, facts)
    ]
    found = [(one, _times_inside(one, scope, facts)) for one in possible]
    return tuple((one, times) for one, times in found if times > 0 and not _too_many(claim, more, one, times))


def _too_many(claim: Claim, more: float, finding: Finding, times: float) -> bool:
    """Tell whether a finding has more copies than a baseline's count grew by: then not all are new.

    That the baseline does not know it need not mean that it is new: it may have been too small to tell.
    """
    counted = claim.who == "baseline" and claim.unit == "count" and finding.id in _COPIES
    return counted and finding.per_call * times > more + _ROUNDING


def _too_much(claim: Claim, more: float, finding: Finding, facts: Facts) -> bool:
    """Tell whether a count exceeds its claim by less than attention by hand adds to a fused one's one kernel.

    Then whoever claimed it knew of the attention, and it is no cause.
    """
    amount = amount_of(claim.key, finding, facts) if finding.id == "unfused-attention" else None
    scope = facts.scope(finding.scope)
    if amount is None or scope is None:
        return False
    return amount / max(len(scope.scope.calls), 1) - finding.per_call > more + _ROUNDING


_ROUNDING: Final = 0.5


def _times_inside(finding: Finding, scope: Scope, facts: Facts) -> float:
    """How often a finding occurs in one call of a scope: 1 where it is the finding's own, 0 elsewhere."""
    if finding.scope == scope.name:
        return 1.0
    inner = facts.scope(finding.scope)
    if inner is None or not len(scope.calls):
        return 0.0
    calls = inner.scope.calls
    if scope.kind == "whole":
        return float(len(calls))
    inside = 0
    if inner.scope.kind != "whole":
        inside = _n_inside(inner.scope, scope)
    if not inside and _owns_evidence(scope, finding, facts):
        inside = len(calls)
    return inside / len(scope.calls)


def _n_inside(inner: Scope, outer: Scope) -> int:
    """How many calls of one scope run within calls of the other."""
    inner_span, outer_span = (
        np.array([(c.start_ns, c.end_ns) for c in one.calls]).T for one in (inner, outer)
    )
    order = np.argsort(outer_span[0], kind="stable")
    at = np.searchsorted(outer_span[0][order], inner_span[0], side="right") - 1
    reach = np.maximum.accumulate(outer_span[1][order])
    return int(((at >= 0) & (inner_span[1] <= reach[at])).sum())


def _owns_evidence(scope: Scope, finding: Finding, facts: Facts) -> bool:
    """Whether a scope inside the finding's (an op, a module) owns some of the events that it rests on."""
    owned = [rows for call in scope.calls for rows in (call.gpu, call.launches, call.ops)]
    events = facts.tree.trace.event[np.concatenate(owned)]
    return bool(np.isin(events, finding.evidence).any())
