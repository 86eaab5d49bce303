"""One trace of a run -> its Cycle: small, so that files can be read one at a time."""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch import checks
from tracehunch.compare.over_time.calls import OUTSIDE, calls_of
from tracehunch.compare.over_time.model import Cycle, ScopeCalls
from tracehunch.compare.ranks.jobs import largest_group
from tracehunch.compare.ranks.origin import backend_of, groups_of, rank_of
from tracehunch.facts import measure
from tracehunch.trace.model import UNKNOWN_NS, Cat
from tracehunch.tree import link

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.facts.model import Facts
    from tracehunch.trace.model import Float64, Trace

_YEAR_2001_NS: Final = 978_307_200_000_000_000
"""A stamp from here on is a date; those of files without a base time begin near 0."""

_HANDLERS_NAME: Final = re.compile(r"(?P<host>[\w.-]+)_(?P<pid>\d+)\.\d{10,}\.pt\.trace\.json")
"""As ``tensorboard_trace_handler`` writes it: host_pid.stamp.pt.trace.json."""


def cycle_of(trace: Trace, source: str, *, every_scope: bool = False, file_bytes: int | None = None) -> Cycle:
    """Take from a trace what is compared over time; the trace can be dropped afterwards."""
    facts = measure(link(trace))
    header, window = trace.header, facts.tree.window
    base = header.base_time_ns
    named = _HANDLERS_NAME.search(re.split(r"[/\\]", source)[-1])
    recorded = header.recorded
    return Cycle(
        source=source,
        label=trace.label,
        rank=rank_of(header)[0],
        world_size=header.world_size,
        process=_process(trace),
        host=named["host"] if named else "",
        torch=header.torch,
        devices=_devices(trace),
        environment=header.environment,
        start_ns=window.start_ns + base,
        end_ns=window.end_ns + base,
        is_absolute=window.start_ns + base > _YEAR_2001_NS,
        scopes=_with_outside(calls_of(facts, base, every_scope=every_scope)),
        findings=checks.run(facts).findings,
        notices=(*trace.notices, *facts.tree.notices),
        recorded=(recorded.shapes, recorded.stacks, recorded.memory),
        fingerprint=_fingerprint(facts),
        on_gpu=bool(trace.gpu.row.size),
        file_bytes=file_bytes,
        backend=backend_of(header),
        group=largest_group(groups_of(header)),
    )


def _with_outside(scopes: Mapping[str, ScopeCalls]) -> dict[str, ScopeCalls]:
    """Add the time of each call in which its thread was in no op, where both times are known."""
    return {name: replace(one, values={**one.values, **_outside(one)}) for name, one in scopes.items()}


def _outside(one: ScopeCalls) -> dict[str, Float64]:
    if one.kind == "whole" or not {"wall_time", "cpu_time"} <= one.values.keys():
        return {}
    return {OUTSIDE: np.maximum(one.values["wall_time"] - one.values["cpu_time"], 0)}


def _process(trace: Trace) -> str:
    """Return the process with most ops, annotations and runtime calls."""
    rows = trace.rows(Cat.CPU_OP, Cat.USER_ANNOTATION, Cat.RUNTIME, Cat.DRIVER)
    if not rows.size:
        return ""
    return trace.processes[int(np.bincount(trace.process[rows]).argmax())]


def _devices(trace: Trace) -> tuple[str, ...]:
    """Return the names of the GPUs that were used, each once; of those that are there if none was."""
    used = set(trace.gpu.device.tolist())
    devices = [one for one in trace.header.devices if not used or one.id in used]
    return tuple(dict.fromkeys(one.name for one in devices))


def _fingerprint(facts: Facts) -> str:
    """Hash what was recorded, when: alike for a file and its copy, compressed or not."""
    trace = facts.tree.trace
    rows = np.lexsort((trace.dur_ns, trace.start_ns))
    rows = rows[trace.start_ns[rows] != UNKNOWN_NS]
    hashed = sha256(str((trace.header.base_time_ns, trace.header.rank, _process(trace), len(trace))).encode())
    for column in (trace.start_ns, trace.dur_ns):
        hashed.update(np.ascontiguousarray(column[rows]).tobytes())
    return hashed.hexdigest()
