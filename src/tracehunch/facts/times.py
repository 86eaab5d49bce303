"""How long: GPU time, wall time, host time, waiting."""

import numpy as np

from tracehunch.facts.activities import Activities
from tracehunch.facts.column import Column
from tracehunch.facts.context import Context
from tracehunch.facts.counts import waits
from tracehunch.facts.intervals import Cover, union_by_group
from tracehunch.trace.model import UNKNOWN_NS, Float64, Int64
from tracehunch.tree import NONE, Tree, work_of
from tracehunch.tree.keys import numbered, sorted_within


def columns(context: Context) -> list[Column]:
    """Return the times per call, in nanoseconds."""
    wall = _wall(context)
    gpu_time, own = context.gpu_time
    everything = np.ones(context.gpu.row.size, dtype=bool)
    busy = busy_ns(context, own_only=False)
    own_busy = busy if context.ownership.gpu.pairs.own.all() else busy_ns(context, own_only=True)
    found = [
        Column("gpu_time", gpu_time, own, context.gpu_known, context.gpu_rows(everything)),
        Column("gpu_busy", busy, own_busy, context.gpu_known),
        Column("wall_time", wall),
        Column("gpu_idle", _idle(wall, busy), None, context.gpu_known & context.nothing_lost & (wall > 0)),
    ]
    if context.has_ops:
        found.append(Column("cpu_time", _host_time(context)))
    if context.has_calls:
        found += [
            _summed(context, "launch_time", context.tree.launches),
            _summed(context, "sync_time", waits(context)),
        ]
        found += _queue_delay(context)
    return found


def _wall(context: Context) -> Int64:
    spans = context.ownership.spans
    return spans.end_ns - spans.start_ns - context.tree.window.unrecorded_ns(spans.start_ns, spans.end_ns)


def _idle(wall: Int64, busy: Int64) -> Float64:
    idle: Float64 = np.maximum(wall - busy, 0) / np.maximum(wall, 1)
    return idle


def busy_ns(context: Context, *, own_only: bool) -> Int64:
    """Time in which at least one activity of a call ran: per device, the mean over the devices used."""
    pairs = context.ownership.gpu.pairs
    gpu = context.gpu
    chosen = (gpu.start_ns[pairs.item] != UNKNOWN_NS) & (pairs.own if own_only else True)
    call, item = pairs.call[chosen], pairs.item[chosen]
    devices = numbered(gpu.device)
    n_devices = max(devices.keys.size, 1)
    group = call * n_devices + devices.number[item] if n_devices > 1 else call
    groups, lengths = union_by_group(group, gpu.start_ns, gpu.start_ns + gpu.dur_ns, item)
    of_call = groups // n_devices
    total = np.bincount(of_call, weights=lengths, minlength=context.n_calls)
    used = np.bincount(of_call, minlength=context.n_calls)
    return np.rint(total / np.maximum(used, 1)).astype(np.int64)


def device_busy_ns(gpu: Activities) -> dict[int, int]:
    """Per device the union of all its activities."""
    known = np.flatnonzero(gpu.start_ns != UNKNOWN_NS)
    devices, lengths = union_by_group(gpu.device[known], gpu.start_ns, gpu.start_ns + gpu.dur_ns, known)
    return dict(zip(devices.tolist(), lengths.tolist(), strict=True))


def _host_time(context: Context) -> Int64:
    """Union of the ops of the call's own thread; for the whole trace that of all threads."""
    trace, spans, ops = context.trace, context.ownership.spans, context.tree.ops
    ops = _not_inside_others(context.tree, ops[trace.start_ns[ops] != UNKNOWN_NS])
    start, end, thread = trace.start_ns[ops], trace.end_ns()[ops], trace.thread[ops]
    inside = np.zeros(context.n_calls, dtype=np.int64)
    for number in np.unique(spans.thread).tolist():
        calls = spans.thread == number
        mine = slice(None) if number == NONE else thread == number
        cover = Cover(start[mine], end[mine])
        inside[calls] = cover.until(spans.end_ns[calls]) - cover.until(spans.start_ns[calls])
    return inside


def _not_inside_others(tree: Tree, ops: Int64) -> Int64:
    """Leave out ops that end within an op right around them: they add nothing to the time of both."""
    above, end = tree.parent[ops], tree.trace.end_ns()
    covered = (above != NONE) & (tree.op[above] == above) & (end[above] >= end[ops])
    outermost: Int64 = ops[~covered]
    return outermost


def _summed(context: Context, key: str, rows: Int64) -> Column:
    lengths = context.trace.dur_ns[rows]
    layout = context.ownership.layout(work_of(context.trace, rows, context.tree.engine))
    everywhere, own = layout.sums(np.where(lengths == UNKNOWN_NS, 0, lengths))
    return Column(key, everywhere, own, None, context.work_rows(layout, rows))


def _queue_delay(context: Context) -> list[Column]:
    """From the end of a launch to the start of the first activity it launched: the median in each call."""
    tree, trace, gpu = context.tree, context.trace, context.gpu
    launch = tree.launch[gpu.row].astype(np.int64)
    usable = np.flatnonzero((launch != NONE) & (gpu.start_ns != UNKNOWN_NS))
    if tree.skewed or not usable.size:
        return []
    order = usable[np.lexsort((gpu.start_ns[usable], launch[usable]))]
    firsts = order[np.r_[True, np.diff(launch[order]) != 0]]
    delay = np.zeros(gpu.row.size, dtype=np.int64)
    delay[firsts] = np.maximum(gpu.start_ns[firsts] - trace.end_ns()[launch[firsts]], 0)
    is_first = np.zeros(gpu.row.size, dtype=bool)
    is_first[firsts] = True
    pairs = context.ownership.gpu.pairs
    counted = is_first[pairs.item]
    call, value = pairs.call[counted], delay[pairs.item[counted]]
    n = np.bincount(call, minlength=context.n_calls)
    middle = np.cumsum(n) - n + np.maximum(n - 1, 0) // 2
    known = n > 0
    median = np.zeros(context.n_calls, dtype=np.int64)
    median[known] = sorted_within(call, value)[middle[known]]
    return [Column("queue_delay", median, None, known)]
