"""How much memory a trace will take, told before it is read: from its size, and from its first megabytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracehunch.errors import ReadError
from tracehunch.trace.coding import GZIP, beginning
from tracehunch.units import size

if TYPE_CHECKING:
    from tracehunch.trace.model import Trace
    from tracehunch.trace.scan import Text

_SAMPLE_BYTES: Final = 4 << 20
_BASE_BYTES: Final = 100 << 20  # Python with what a look imports
_EVENT_BYTES: Final = 270  # columns, links and what facts and checks hold of each: docs/speed.md
_EVENTS_PER_BYTE: Final = 3.2e-3  # of Kineto's text, where the sample shows none
_PHASE: Final = b'"ph"'
_PACKED: Final = 0.12  # of the text, which is kept compressed
_CGROUPS: Final = (  # limit, usage, and what of the usage is files that can be dropped; versions 2 and 1
    ("/sys/fs/cgroup", "memory.max", "memory.current", ("inactive_file", "active_file")),
    (
        "/sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ("total_inactive_file", "total_active_file"),
    ),
)
_WRAPPED: Final = 1 << 32
_FAR_OFF: Final = 0.4  # a size stated so far off is that of the last of several members
_UNLIMITED: Final = 1 << 60


@dataclass(frozen=True, slots=True)
class Need:
    """What a trace will be when it is read, estimated; right within a quarter for files of the profiler."""

    text_bytes: int
    events: int
    peak_bytes: int
    """Of memory of its own that one process takes to read it, to measure and to judge it."""


def need_of(data: Text) -> Need:
    """Estimate from a file's content, compressed or not, what it needs."""
    sample, consumed = beginning(data, _SAMPLE_BYTES)
    times = len(sample) / consumed if consumed else 1.0
    density = sample.count(_PHASE) / len(sample) if sample else 0.0
    text_bytes = _stated(data, int(len(data) * times))
    events = int(text_bytes * (density or _EVENTS_PER_BYTE))
    held = _PACKED * text_bytes if times > 1 else 0  # a file that is not compressed is mapped
    return Need(text_bytes, events, int(_BASE_BYTES + _EVENT_BYTES * events + held))


def _stated(data: Text, estimate: int) -> int:
    """Return the size that a gzip file's last bytes state, up to multiples of 4 GiB, if that is plausible."""
    if bytes(data[: len(GZIP)]) != GZIP:
        return estimate
    rest = int.from_bytes(data[-4:], "little")
    stated = rest + round((estimate - rest) / _WRAPPED) * _WRAPPED
    return stated if abs(stated - estimate) < _FAR_OFF * estimate else estimate


def held_bytes(trace: Trace) -> int:
    """Return what a trace that has been read goes on to hold, with what is measured of it."""
    return _EVENT_BYTES * trace.n_events


def refuse_too_large(data: Text, max_memory: int) -> None:
    """Raise ReadError where a trace needs more than so many bytes."""
    need = need_of(data)
    if need.peak_bytes <= max_memory:
        return
    enough = -(-need.peak_bytes * 5 // 4 >> 30)
    raise ReadError(
        f"reading it takes about {size(need.peak_bytes)} of memory, and {size(max_memory)} may be used",
        f"it has {size(need.text_bytes)} of text, some {_rounded(need.events)} events",
        f"record fewer steps or leave out stacks, or allow more: --max-memory {enough}GiB",
    )


def _rounded(n: int) -> str:
    """Return a number with two digits that mean something."""
    step = 10 ** max(len(str(n)) - 2, 0)
    return f"{round(n / step) * step:,}"


def free_memory() -> int | None:
    """Return what the machine, and the container that this runs in, can still give; None: unknown."""
    found = [*_of_machine(), *_of_container()]
    return min(found, default=None)


def _of_machine() -> list[int]:
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except (OSError, ValueError):
        return []
    return [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]


def _of_container() -> list[int]:
    found = []
    for folder, limit_file, usage_file, droppable in _CGROUPS:
        try:
            limit = int(Path(folder, limit_file).read_text("ascii"))
            usage = int(Path(folder, usage_file).read_text("ascii"))
            parts = dict(line.split() for line in Path(folder, "memory.stat").read_text("ascii").splitlines())
        except (OSError, ValueError):  # no such cgroup, or no limit ("max")
            continue
        cached = sum(int(parts.get(key, 0)) for key in droppable)
        if limit < _UNLIMITED:
            found.append(max(limit - usage + cached, 0))
    return found
