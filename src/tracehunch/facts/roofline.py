"""FLOPs and bytes of scopes, the rates that they reach, and what limits them."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tracehunch.facts.activities import is_doubtful, multiplies
from tracehunch.facts.column import Bool, Column
from tracehunch.facts.context import Context
from tracehunch.facts.model import Fact, KernelUse
from tracehunch.facts.summary import summaries
from tracehunch.facts.vocabulary import KEYS

NEGLIGIBLE: Final = 0.01
"""Share of the GPU time whose bytes need not be known, and whose kernels' names need not tell anything."""

MOSTLY_IDLE: Final = 0.5
"""Share of the wall time from which on an idle GPU makes a scope overhead-bound."""

_PERCENT: Final = 100.0
_ORDER: Final = {key: number for number, key in enumerate(KEYS)}


def columns(context: Context) -> list[Column]:
    """Return FLOPs and bytes per call, and both over the GPU time."""
    if not context.gpu.row.size:
        return []
    time, work = context.gpu_time[0], context.work
    found = []
    for key, rate, worth, known in (
        ("flops", "achieved_flops", work.flops, _flops_known(context)),
        ("hbm_bytes", "achieved_bandwidth", work.bytes, _bytes_known(context)),
    ):
        total, own = context.ownership.gpu.sums(worth)
        found.append(Column(key, total, own, known, context.gpu_rows(worth > 0)))
        per_second = np.rint(total * (1e9 / np.maximum(time, 1))).astype(np.int64)
        found.append(Column(rate, per_second, None, known & (time > 0)))
    return found


def percents(context: Context) -> list[dict[str, float]]:
    """Return per scope how much of the GPU's peaks its rates are, in percent; by call, then the median."""
    found: list[dict[str, float]] = [{} for _ in context.scopes]
    if context.model is None or not context.gpu.row.size:
        return found
    work, time = context.work, context.gpu_time[0]
    computing = work.flops > 0
    at_peak = np.divide(work.flops, work.peak, out=np.zeros(work.flops.size), where=computing)
    no_peak = context.ownership.gpu.sums(np.isnan(at_peak))[0] > 0
    for key, seconds, known in (
        ("achieved_flops", np.nan_to_num(at_peak), _flops_known(context) & ~no_peak),
        ("achieved_bandwidth", work.bytes / context.model.bandwidth, _bytes_known(context)),
    ):
        picoseconds = context.ownership.gpu.sums(np.rint(seconds * 1e12))[0]
        percent = _PERCENT * picoseconds / 1e3 / np.maximum(time, 1)
        scope, middle, _, _ = summaries(context.scope_of_call, percent, known & (time > 0), whole=True)
        for number, value in zip(scope.tolist(), middle.tolist(), strict=True):
            found[number][key] = round(value, 3)
    return found


def with_bound(
    facts: Mapping[str, Fact], kernels: Sequence[KernelUse], *, known_gpu: bool
) -> Mapping[str, Fact]:
    """Add what limits a scope of a trace with shapes, where it can be told.

    Overhead where the GPU idles most of the wall time. Else what limits the kernels that take most of the GPU
    time, if the GPU's peaks are known and kernels of which it is not known cannot tip it.
    """
    idle = facts.get("gpu_idle")
    bound = None
    if idle is not None and isinstance(idle.value, float) and idle.value >= MOSTLY_IDLE and kernels:
        bound = "overhead"
    elif known_gpu:
        bound = _leading(kernels)
    if bound is None:
        return facts
    more = {**facts, "bound": Fact("bound", bound, KEYS["bound"].unit)}
    return dict(sorted(more.items(), key=lambda fact: _ORDER[fact[0]]))


def _leading(kernels: Sequence[KernelUse]) -> str | None:
    time = {"compute": 0.0, "memory": 0.0, "": 0.0}
    for kernel in kernels:
        time[bound_of(kernel) or ""] += kernel.total_us
    lead, other = sorted(("compute", "memory"), key=lambda which: time[which], reverse=True)
    return lead if time[lead] > time[other] + time[""] else None


def bound_of(kernel: KernelUse) -> str | None:
    """Return what limits a kernel; of one whose bytes are not known, memory if its name says what it does.

    A kernel that multiplies nothing has no FLOPs to be limited by; a collective waits for others.
    """
    identity = kernel.identity
    if kernel.work.bound is not None or kernel.kind != "kernel":
        return kernel.work.bound
    open_ = multiplies(identity) or is_doubtful(identity) or identity.algorithm == "collective"
    return None if open_ else "memory"


def _flops_known(context: Context) -> Bool:
    """Tell in which calls all kernels that multiply are known; doubtful ones may be a negligible part."""
    unknown, doubtful = ~context.work.flops_known, context.work.doubtful
    sums = context.ownership.gpu.sums
    little = sums(np.where(unknown & doubtful, context.gpu.dur_ns, 0))[0] <= NEGLIGIBLE * context.gpu_time[0]
    known: Bool = context.gpu_known & (sums(unknown & ~doubtful)[0] == 0) & little
    return known


def _bytes_known(context: Context) -> Bool:
    unknown = np.where(context.work.bytes_known, 0, context.gpu.dur_ns)
    known: Bool = context.gpu_known & (
        context.ownership.gpu.sums(unknown)[0] <= NEGLIGIBLE * context.gpu_time[0]
    )
    return known
