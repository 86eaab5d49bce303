"""One file of one rank -> its RankSummary: read, linked, measured, checked, and forgotten but for that."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.ranks.breakdown import breakdowns
from tracehunch.compare.ranks.collectives import collectives_of
from tracehunch.compare.ranks.host import host_time_us_by_op
from tracehunch.compare.ranks.model import RankSummary
from tracehunch.compare.ranks.op_steps import gpu_steps, host_steps
from tracehunch.compare.ranks.origin import (
    backend_of,
    fingerprint_of,
    groups_of,
    host_of,
    rank_of,
)
from tracehunch.compare.ranks.summary import facts_of, findings_of, gpu_time_us_by_op, steps_of
from tracehunch.judge import examine as look_at
from tracehunch.trace.read import read
from tracehunch.trace.text import printable

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]  # where there is none (Windows)

if TYPE_CHECKING:
    from tracehunch.trace.model import Trace
    from tracehunch.verdict import Look

_LABEL: Final = 120
_LATEST_NS: Final = 2**62


def examine(source: str | os.PathLike[str], *, read_as: Trace | None = None) -> RankSummary:
    """Return what one file of one rank gives, without the trace.

    ``source`` is a path, or a folder, whose newest trace is taken; ``read_as`` is the trace where it was read
    before, and ``source`` only says where it came from. A rank that recorded no GPU activity (gloo, or a
    profiler without CUDA) has steps, facts and findings, but no breakdown and no collectives.

    Raises:
        ReadError: it cannot be read as a trace.

    """
    began = time.perf_counter()
    name = os.fspath(source)
    trace = read(source) if read_as is None else read_as
    look = look_at(trace)
    return replace(_summary(name, trace, look), seconds=time.perf_counter() - began, peak_bytes=_peak_bytes())


def _summary(source: str, trace: Trace, look: Look) -> RankSummary:
    header, tree = trace.header, look.facts.tree
    base = base_of(trace)
    rank, rank_from = rank_of(header)
    by_gpu, by_host = gpu_time_us_by_op(look.facts), host_time_us_by_op(look.facts)
    trace_id = header.metadata.get("trace_id")
    return RankSummary(
        source=source,
        label=printable(trace.label, _LABEL),
        file_bytes=_size(source, trace),
        rank=rank,
        rank_from=rank_from,
        world_size=header.world_size,
        backend=backend_of(header),
        groups=groups_of(header),
        torch=header.torch,
        devices=_devices(trace),
        trace_id=trace_id if isinstance(trace_id, str) and trace_id else None,
        host=host_of(trace, trace.label),
        start_ns=base + tree.window.start_ns,
        end_ns=base + tree.window.end_ns,
        breakdown=breakdowns(look.facts),
        collectives=collectives_of(look.facts, base),
        steps=steps_of(tree, base),
        facts=facts_of(look.facts),
        gpu_time_us_by_op=by_gpu,
        host_time_us_by_op=by_host,
        gpu_steps=gpu_steps(look.facts, by_gpu),
        host_steps=host_steps(look.facts, by_host),
        findings=findings_of(look.checked.findings),
        notices=(*trace.notices, *tree.notices),
        events=trace.n_events,
        fingerprint=fingerprint_of(trace),
    )


def base_of(trace: Trace) -> int:
    """Return what makes a stamp of the trace absolute; 0 where the header's cannot be that."""
    base = trace.header.base_time_ns
    return base if base < _LATEST_NS else 0


def _size(source: str, trace: Trace) -> int | None:
    path = Path(source)
    try:
        return (path / trace.label if path.is_dir() else path).stat().st_size
    except (OSError, ValueError):  # standard input, an address, a file that has gone
        return None


def _devices(trace: Trace) -> tuple[str, ...]:
    """Return the names of the GPUs that ran something, in order; none where the header does not name them."""
    names = {device.id: device.name for device in trace.header.devices}
    used = np.unique(trace.gpu.device).tolist()
    return tuple(printable(names[number], _LABEL) for number in used if number in names)


def _peak_bytes() -> int | None:
    """Return the most memory that this process ever held; None where the system does not tell."""
    if resource is None:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
