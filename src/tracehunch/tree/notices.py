"""What a reader must know about how rows hang together: what was lost, is doubtful, or is unusual."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracehunch.trace.model import GPU_CATS, UNKNOWN_NS, Int8, Int64, Notice, Trace
from tracehunch.tree.apis import Api
from tracehunch.tree.host import Host
from tracehunch.tree.launches import Launches
from tracehunch.tree.model import Link
from tracehunch.tree.nesting import NONE
from tracehunch.tree.ownership import Ownership
from tracehunch.tree.processes import host_processes
from tracehunch.tree.window import Window
from tracehunch.units import count, join, percent, plural, printable, time_us

_SHOWN = 6  # names in a list


@dataclass(frozen=True, slots=True)
class Linked:
    """All that notices are made of."""

    trace: Trace
    host: Host
    api: Int8
    launches: Launches
    ownership: Ownership
    step_calls: Int64  # which calls of the ownership are profiler steps
    window: Window
    named_ops: Int64  # per GPU activity: the op that its External id names
    n_replayed_ops: int  # activities of graph replays whose op the capture tells


def notices(linked: Linked) -> tuple[Notice, ...]:
    """Everything there is to say, most important first."""
    makers = (
        _not_recorded, _outside_window, _unlinked, _duplicates, _without_gpu, _steps_without_gpu, _skew,
        _crossing, _processes, _external_ids, _cycles, _devices, _graphs, _no_steps,
    )  # fmt: skip
    return tuple(notice for make in makers for notice in make(linked))


def gpu_time_ns(trace: Trace, rows: Int64) -> int:
    """Sum up durations; rows without a usable one count for nothing."""
    lengths = trace.dur_ns[rows]
    return int(lengths[lengths != UNKNOWN_NS].sum())


def _amount(trace: Trace, rows: Int64) -> str:
    """``2 GPU activities (367.6 us, 11.3% of the GPU time)``."""
    total = gpu_time_ns(trace, trace.rows(*GPU_CATS))
    mine = gpu_time_ns(trace, rows)
    share = f", {percent(100 * mine / total)} of the GPU time" if total else ""
    return f"{plural(rows.size, 'GPU activity', 'GPU activities')} ({time_us(mine / 1e3)}{share})"


def _rows_with(linked: Linked, state: int) -> Int64:
    gpu = linked.trace.gpu.row.astype(np.int64)
    rows: Int64 = gpu[linked.launches.link[gpu] == state]
    return rows


def _not_recorded(linked: Linked) -> Iterator[Notice]:
    trace, n_launches = linked.trace, linked.launches.rows.size
    if trace.gpu.row.size or not linked.host.rows.size:
        return
    if n_launches:
        said = (
            f"{plural(n_launches, 'launch', 'launches')} but no kernel, copy or memset: GPU activity was not"
        )
        why = "recorded (permissions, another profiler, a wrong schedule). The GPU was not seen, not idle"
        yield Notice("gpu-not-recorded", f"{said} {why}", lossy=True)
    else:
        yield Notice(
            "cpu-only",
            "no GPU activity and no launches: a run on the CPU only, so nothing is said about a GPU",
        )


def _outside_window(linked: Linked) -> Iterator[Notice]:
    trace, rows = linked.trace, _rows_with(linked, Link.OUTSIDE_WINDOW)
    if not rows.size:
        return
    ids = trace.correlation[linked.launches.rows]
    ids = ids[ids > 0]
    early = int(np.count_nonzero(trace.correlation[rows] < ids.min())) if ids.size else 0
    when = "before or after the window"
    if early == rows.size:
        when = "before the window (the GPU runs behind the CPU, so warm-up work reaches into it)"
    amount = _amount(trace, rows)
    said = f"{amount} without a launch in the file: launched {when}. They count for the whole trace only"
    yield Notice("outside-window", said, lossy=True)


def _unlinked(linked: Linked) -> Iterator[Notice]:
    trace, rows = linked.trace, _rows_with(linked, Link.UNLINKED)
    if not rows.size:
        return
    named = linked.named_ops[linked.launches.link[trace.gpu.row] == Link.UNLINKED]
    known = int(np.count_nonzero(named != NONE))
    said = f"{_amount(trace, rows)} unlinked: no usable correlation id, so no launch is known"
    yield Notice("unlinked", f"{said}; the External id still names the op of {count(known)}", lossy=True)


def _duplicates(linked: Linked) -> Iterator[Notice]:
    settled = linked.launches.settled
    rows = _rows_with(linked, Link.AMBIGUOUS)
    if not settled.n_ids and not rows.size:
        return
    ids = plural(settled.n_ids, "correlation id")
    said = (
        f"{ids} shared by {plural(settled.n_launches, 'launch', 'launches')} (duplicates within one process)"
    )
    left = (
        f"{_amount(linked.trace, rows)} stay ambiguous"
        if rows.size
        else "External id or order in time settled all"
    )
    yield Notice("duplicate-correlation", f"{said}: {left}", lossy=True)


def _without_gpu(linked: Linked) -> Iterator[Notice]:
    lost = linked.launches.rows[linked.launches.n_gpu == 0]
    if not lost.size or not linked.trace.gpu.row.size:
        return
    kinds = linked.api[lost]
    if (kinds == Api.MEMSET).all():
        said = (
            f"{plural(lost.size, 'memset call')} without a GPU activity (calls on empty tensors, or filtered)"
        )
        yield Notice("memsets-without-gpu", said)
        return
    n, total = plural(lost.size, "launch", "launches"), count(linked.launches.rows.size)
    said = f"{n} of {total} without a kernel, copy or memset: dropped by the profiler"
    yield Notice("launches-without-gpu", f"{said}. GPU time is a lower bound", lossy=True)


def _steps_without_gpu(linked: Linked) -> Iterator[Notice]:
    steps = linked.step_calls
    if not linked.trace.gpu.row.size or not steps.size:
        return
    launched = linked.ownership.launches.sums(linked.api[linked.launches.rows] != Api.MEMSET)[0][steps]
    seen = linked.ownership.gpu.sums()[0][steps]
    lost = int(np.count_nonzero((launched > 0) & (seen == 0)))
    if lost:
        said = (
            f"{count(lost)} of {plural(steps.size, 'step')} without GPU activity, though they launched some"
        )
        yield Notice("steps-without-gpu", f"{said}: lost by the profiler, left out of GPU facts", lossy=True)


def early_rows(linked: Linked) -> Int64:
    """GPU rows that start before their launch, by more than stamps are rounded."""
    trace = linked.trace
    gpu = trace.gpu.row.astype(np.int64)
    gpu = gpu[(linked.launches.launch[gpu] != NONE) & (trace.start_ns[gpu] != UNKNOWN_NS)]
    resolution = linked.host.resolution_ns
    early: Int64 = gpu[_ahead_ns(linked, gpu) > (2 * resolution if resolution > 1 else 0)]
    return early


def _ahead_ns(linked: Linked, gpu: Int64) -> Int64:
    return linked.trace.start_ns[linked.launches.launch[gpu]] - linked.trace.start_ns[gpu]


def _skew(linked: Linked) -> Iterator[Notice]:
    early = early_rows(linked)
    if early.size:
        n = plural(early.size, "GPU activity starts before its", "GPU activities start before their")
        most = time_us(int(_ahead_ns(linked, early).max()) / 1e3)
        said = f"{n} launch, by up to {most}: the clocks of GPU and CPU are skewed"
        yield Notice(
            "clock-skew",
            f"{said}. Durations hold; launch delays and the order of CPU and GPU do not",
            lossy=True,
        )


def _crossing(linked: Linked) -> Iterator[Notice]:
    rows = linked.host.crossing
    if not rows.size:
        return
    names = [printable(linked.trace.name_of(row), 60) for row in rows[:_SHOWN].tolist()]
    n = plural(rows.size, "span crosses", "spans cross")
    said = f"{n} another on its thread in place of nesting (overlap: {join(list(dict.fromkeys(names)))})"
    yield Notice("crossing-ops", f"{said}; every event is kept, self times there are uncertain", lossy=True)


def _processes(linked: Linked) -> Iterator[Notice]:
    trace, found = linked.trace, host_processes(linked.trace).tolist()
    if len(found) > 1:
        pids = join([printable(trace.processes[number], 40) for number in found[:_SHOWN]])
        said = (
            f"{count(len(found))} processes in one file (pids {pids}): ids, hence links, hold only within one"
        )
        yield Notice("several-processes", said, lossy=True)


def _external_ids(linked: Linked) -> Iterator[Notice]:
    trace = linked.trace
    gpu = trace.gpu.row.astype(np.int64)
    gpu = gpu[linked.launches.launch[gpu] != NONE]
    own, other = trace.external_id[gpu], trace.external_id[linked.launches.launch[gpu]]
    wrong = gpu[(own > 0) & (other > 0) & (own != other)]
    if wrong.size:
        said = f"{_amount(trace, wrong)} with another External id than their launch: the launch's op is used"
        yield Notice("external-id-mismatch", said)


def _cycles(linked: Linked) -> Iterator[Notice]:
    gaps = linked.window.gaps
    if gaps:
        lengths = join([time_us((end - start) / 1e3) for start, end in gaps[:_SHOWN]])
        said = f"{count(len(gaps) + 1)} recording cycles in one file, with a gap of {lengths} between them"
        yield Notice("recording-gap", f"{said}: unrecorded time, neither idle nor part of a step")


def _devices(linked: Linked) -> Iterator[Notice]:
    devices = np.unique(linked.trace.gpu.device)
    if devices.size > 1:
        numbers = join([str(number) for number in devices[:_SHOWN].tolist()])
        said = (
            f"{devices.size} GPUs in one file (devices {numbers}): busy time is per device and never added up"
        )
        yield Notice("several-devices", said)


def _graphs(linked: Linked) -> Iterator[Notice]:
    launches = linked.launches
    replays = (linked.api[launches.rows] == Api.GRAPH) | (launches.n_gpu > 1)
    if not replays.any():
        return
    sizes = launches.n_gpu[replays]
    each = (
        count(int(sizes.min()))
        if sizes.min() == sizes.max()
        else f"{count(int(sizes.min()))} to {count(int(sizes.max()))}"
    )
    n = plural(int(np.count_nonzero(replays)), "graph launch", "graph launches")
    ops = (
        "the capture in the file tells their ops"
        if linked.n_replayed_ops
        else "what ops they were captured from is not in the file"
    )
    yield Notice("cuda-graph", f"{n} with {each} GPU activities each: {ops}")


def _no_steps(linked: Linked) -> Iterator[Notice]:
    if not linked.step_calls.size and linked.host.rows.size:
        yield Notice(
            "no-steps",
            "no ProfilerStep in the file: the whole window is judged, per-step numbers do not exist",
        )
