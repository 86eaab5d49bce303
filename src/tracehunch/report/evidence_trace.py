"""The part of a trace around a finding as a Chrome trace, its evidence marked on a track of its own."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracehunch.errors import TracehunchError
from tracehunch.trace.model import GPU_CATS, UNKNOWN_NS, Cat
from tracehunch.tree.nesting import NONE
from tracehunch.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.trace.model import Int64, Trace
    from tracehunch.tree import Tree
    from tracehunch.tree.model import Call
    from tracehunch.verdict import Finding, Look

_CATS: Final = {
    Cat.CPU_OP: "cpu_op",
    Cat.USER_ANNOTATION: "user_annotation",
    Cat.PYTHON_FUNCTION: "python_function",
    Cat.RUNTIME: "cuda_runtime",
    Cat.DRIVER: "cuda_driver",
    Cat.KERNEL: "kernel",
    Cat.MEMCPY: "gpu_memcpy",
    Cat.MEMSET: "gpu_memset",
    Cat.GPU_ANNOTATION: "gpu_user_annotation",
    Cat.OVERHEAD: "overhead",
    Cat.SYNC: "cuda_sync",
}
_MARGIN: Final = 0.1  # of the evidence's span, on both sides
_LEAST_MARGIN_NS: Final = 20_000
_TRACK: Final = "tracehunch"
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,18})")


def slice_of(look: Look, finding: Finding) -> bytes:
    """Return the events around the evidence of the first call of the finding's scope, as JSON.

    All that overlaps in time is in it, with launches of what runs then and what they launched; times are
    those of the whole trace.

    Raises:
        TracehunchError: the evidence has no times.

    """
    tree = look.facts.tree
    evidence = _rows(tree.trace, finding)
    first, call = _of_first_call(look, finding, evidence)
    start, end = _span(tree, first, call)
    rows = _around(tree, start, end)
    trace = tree.trace
    events = [*_tracks(trace, rows), *(_event(trace, row) for row in rows.tolist())]
    events += _arrows(tree, rows)
    events += _marks(trace, evidence[np.isin(evidence, rows)], finding)
    head = _dumped(_header(trace, finding)).removesuffix("}")
    return (f'{head}, "traceEvents": [\n' + ",\n".join(events) + "\n]}\n").encode()


def _header(trace: Trace, finding: Finding) -> dict[str, Any]:
    """Return what the whole trace says of itself; allocations are no part of the slice."""
    return {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        **trace.header.metadata,
        "profile_memory": 0,
        "traceName": f"{trace.label}: {finding.id}",
        "deviceProperties": [dict(device.properties) for device in trace.header.devices],
    }


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, default=str)


def _timed(event: dict[str, Any], start_ns: int, dur_ns: int | None = None) -> str:
    """Return an event with its times as exact decimals: floats hold no nanoseconds of absolute stamps."""
    dur = "" if dur_ns is None else f', "dur": {_us(dur_ns)}'
    return f'{_dumped(event).removesuffix("}")}, "ts": {_us(start_ns)}{dur}}}'


def _us(ns: int) -> str:
    whole, rest = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}.{rest:03d}"


def _rows(trace: Trace, finding: Finding) -> Int64:
    rows = np.flatnonzero(np.isin(trace.event, np.asarray(finding.evidence, dtype=np.int64)))
    known: Int64 = rows[(trace.start_ns[rows] != UNKNOWN_NS) & (trace.dur_ns[rows] != UNKNOWN_NS)]
    if not known.size:
        raise TracehunchError(
            f"{finding.id} has no event with a time to show",
            "its evidence is the trace as a whole",
            "open the whole trace without --evidence",
        )
    return known


def _of_first_call(look: Look, finding: Finding, evidence: Int64) -> tuple[Int64, Call | None]:
    """Keep the evidence of the first call of the scope that has any; all of it where none has."""
    scope = look.facts.scope(finding.scope)
    for call in () if scope is None else scope.scope.calls:
        owned = np.concatenate([call.gpu, call.launches, call.ops])
        here = evidence[np.isin(evidence, owned)]
        if here.size:
            return here, call
    return evidence, None


def _span(tree: Tree, rows: Int64, call: Call | None) -> tuple[int, int]:
    """Return the time around rows and the launches of those on a GPU, with a margin.

    Evidence on the host alone says little without what was around it: then it is the time of the call.
    """
    trace = tree.trace
    launches = tree.launch[rows]
    both = np.concatenate([rows, launches[launches != NONE]])
    start, end = int(trace.start_ns[both].min()), int(trace.end_ns()[both].max())
    if call is not None and not np.isin(trace.cat[rows], GPU_CATS).any():
        start, end = min(start, call.start_ns), max(end, call.end_ns)
    margin = max(int((end - start) * _MARGIN), _LEAST_MARGIN_NS)
    return start - margin, end + margin


def _around(tree: Tree, start: int, end: int) -> Int64:
    trace = tree.trace
    known = (trace.start_ns != UNKNOWN_NS) & (trace.dur_ns != UNKNOWN_NS) & np.isin(trace.cat, list(_CATS))
    overlaps = known & (trace.start_ns <= end) & (trace.end_ns() >= start)
    launch = tree.launch
    launched = known & (launch != NONE) & overlaps[np.maximum(launch, 0)]
    chosen = overlaps | launched
    launches = launch[chosen]
    chosen[launches[launches != NONE]] = True
    found: Int64 = np.flatnonzero(chosen)
    return found


def _event(trace: Trace, row: int) -> str:
    process, thread = trace.threads[int(trace.thread[row])]
    event = {
        "ph": "X",
        "cat": _CATS[Cat(int(trace.cat[row]))],
        "name": printable(trace.name_of(row)),
        "pid": _number(process),
        "tid": _number(thread),
        "args": dict(trace.args_of(row)),
    }
    return _timed(event, int(trace.start_ns[row]), int(trace.dur_ns[row]))


def _number(text: str) -> int | str:
    return int(text) if _NUMBER.fullmatch(text) else text


def _tracks(trace: Trace, rows: Int64) -> Iterator[str]:
    """Name the processes and threads."""
    on_gpu = np.isin(trace.cat, GPU_CATS)
    for process in dict.fromkeys(trace.threads[at][0] for at in np.unique(trace.thread[rows]).tolist()):
        here = [row for row in rows.tolist() if trace.threads[int(trace.thread[row])][0] == process]
        label = "GPU" if any(on_gpu[row] for row in here) else "CPU"
        yield _named("process_name", process, "0", f"{label} {process}")
    yield _named("process_name", _TRACK, "0", _TRACK)


def _named(what: str, process: str, thread: str, name: str) -> str:
    label = {"pid": _number(process), "tid": _number(thread), "args": {"name": printable(name)}}
    return _dumped({"ph": "M", "name": what, **label})


def _arrows(tree: Tree, rows: Int64) -> Iterator[str]:
    """Join launches and what they launched, as the profiler does."""
    trace = tree.trace
    shown = set(rows.tolist())
    for row in rows.tolist():
        launch = int(tree.launch[row])
        if launch == NONE or launch not in shown:
            continue
        for phase, at in (("s", launch), ("f", row)):
            process, thread = trace.threads[int(trace.thread[at])]
            made = {
                "ph": phase,
                "id": row,
                "cat": "ac2g",
                "name": "ac2g",
                "pid": _number(process),
                "tid": _number(thread),
            }
            yield _timed(made | ({"bp": "e"} if phase == "f" else {}), int(trace.start_ns[at]))


def _marks(trace: Trace, rows: Int64, finding: Finding) -> Iterator[str]:
    """Repeat the evidence on a track of its own."""
    said = {"summary": printable(finding.summary), "fix": printable(finding.fix)}
    for row in rows.tolist():
        mark = {
            "ph": "X",
            "cat": _TRACK,
            "name": f"{finding.id}: {printable(trace.name_of(row))}",
            "pid": _TRACK,
            "tid": finding.id,
            "args": said | {"event": int(trace.event[row])},
        }
        yield _timed(mark, int(trace.start_ns[row]), int(trace.dur_ns[row]))
