"""The kernels of each scope: how often and how long each distinct one ran per call."""

import math

import numpy as np

from tracehunch.facts.activities import KINDS
from tracehunch.facts.context import Context
from tracehunch.facts.kernel_work import kernel_work
from tracehunch.facts.model import KernelUse
from tracehunch.trace.model import Int64
from tracehunch.tree.keys import stable_order


def kernel_uses(context: Context) -> list[tuple[KernelUse, ...]]:
    """Per scope its distinct GPU activities, longest first; calls whose activities were lost do not count."""
    pairs, gpu = context.ownership.gpu.pairs, context.gpu
    use = gpu.use[pairs.item]
    group = context.pair_scope * max(len(gpu.uses), 1) + use
    order = stable_order(group)  # pairs are sorted by call and item
    bounds = np.flatnonzero(np.diff(group[order], prepend=-1, append=-1))
    call, item = pairs.call[order], pairs.item[order]
    found: list[list[KernelUse]] = [[] for _ in context.scopes]
    n_known = np.bincount(context.scope_of_call[context.gpu_known], minlength=len(context.scopes))
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        scope, number = divmod(int(group[order[first]]), len(gpu.uses))
        part = slice(first, last)
        found[scope].append(_use(context, number, int(n_known[scope]), call[part], item[part]))
    return [tuple(sorted(uses, key=lambda u: (-u.gpu_time_us, -u.total_us, u.name, u.op))) for uses in found]


def _use(context: Context, number: int, n_calls: int, call: Int64, item: Int64) -> KernelUse:
    gpu, use = context.gpu, context.gpu.uses[number]
    length = gpu.dur_ns[item]
    at = np.flatnonzero(np.diff(call, prepend=-1))
    counts = np.diff(np.append(at, call.size))
    count, _ = _middle(counts, n_calls)
    time = sum(_middle(np.add.reduceat(length, at), n_calls)) / 2
    total_ns = int(length.sum())
    per_call = (
        _per_call(context.work.flops[item], at, n_calls),
        _per_call(context.work.bytes[item], at, n_calls),
    )
    return KernelUse(
        name=use.name,
        kind=KINDS[use.kind],
        op=use.op,
        identity=use.identity,
        per_call=count or round(item.size / n_calls, 3),
        total=item.size,
        gpu_time_us=round(time / 1000, 3),
        total_us=round(total_ns / 1000, 3),
        occupancy_percent=_mean(gpu.occupancy[item], length),
        recorded_occupancy_percent=_mean(context.trace.gpu.occupancy_percent[item], length),
        rows=tuple(context.gpu_row_numbers[item].tolist()),
        work=kernel_work(context.work, context.model, use, item, time_ns=total_ns, per_call=per_call),
    )


def _per_call(values: Int64, at: Int64, n_calls: int) -> int:
    return _middle(np.add.reduceat(values, at), n_calls)[0]


def _middle(values: Int64, n: int) -> tuple[int, int]:
    """Return the two values in the middle of ``n``, of which those that are not given are 0."""
    ordered = np.sort(values)
    low, high = (n - 1) // 2 - (n - values.size), n // 2 - (n - values.size)
    return int(ordered[low]) if low >= 0 else 0, int(ordered[high]) if high >= 0 else 0


def _mean(percent: np.ndarray[tuple[int, ...], np.dtype[np.float64]], weight: Int64) -> float | None:
    """Mean by time; None unless all are known."""
    if percent.size == 1 or (percent == percent[0]).all():
        return None if math.isnan(percent[0]) else round(float(percent[0]), 3)
    if np.isnan(percent).any():
        return None
    total = weight.sum()
    return round(float((percent * weight).sum() / total if total else percent.mean()), 3)
