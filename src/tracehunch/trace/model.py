"""The Trace: the events of one file in columns, and what was recorded on what.

A *row* is one complete event (``ph`` X, or a B/E pair joined). Rows keep the order of the file. ``event``
holds the position of a row in the file's ``traceEvents``, which is what reports cite as evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracehunch.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Int8 = NDArray[np.int8]
Float64 = NDArray[np.float64]

UNKNOWN_NS = -(2**63)
"""Start or duration of an event whose stamp cannot be used (absent, no number, negative, lost)."""

ABSENT = -1
"""Correlation, External id, stream ... that the event does not carry."""


class Cat(IntEnum):
    """What kind of event a row is, whatever the PyTorch version or vendor called it."""

    OTHER = 0
    CPU_OP = 1
    USER_ANNOTATION = 2
    PYTHON_FUNCTION = 3
    RUNTIME = 4  # cuda_runtime, hip calls, xpu_runtime ...: host calls that carry a correlation
    DRIVER = 5  # cuda_driver
    KERNEL = 6
    MEMCPY = 7
    MEMSET = 8
    GPU_ANNOTATION = 9  # gpu_user_annotation: spans over kernels, no work of their own
    OVERHEAD = 10  # the profiler's own work
    SYNC = 11  # cuda_sync, xpu_sync
    SPAN = 12  # the profiler's own window ("PyTorch Profiler (0)")


GPU_CATS = (Cat.KERNEL, Cat.MEMCPY, Cat.MEMSET)
LAUNCH_CATS = (Cat.RUNTIME, Cat.DRIVER)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something about the file that a reader must know: damage, loss, doubt.

    ``code`` is stable (kebab-case). ``lossy``: the file is damaged or data was lost, so ``--strict`` fails.
    """

    code: str
    message: str
    lossy: bool = False


@dataclass(frozen=True, slots=True)
class Device:
    """One entry of ``deviceProperties``; numbers are None where the header lacks them."""

    id: int
    name: str
    compute_major: int | None = None
    compute_minor: int | None = None
    sms: int | None = None
    memory_bytes: int | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    """The raw entry, for occupancy limits."""

    @property
    def compute_capability(self) -> str | None:
        """Such as ``"9.0"``; None where not recorded."""
        return None if self.compute_major is None else f"{self.compute_major}.{self.compute_minor or 0}"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the profiler was asked to record, from the header's flags or else from what is there."""

    shapes: bool
    stacks: bool
    memory: bool
    modules: bool


@dataclass(frozen=True, slots=True)
class Environment:
    """Versions, machine, PyTorch's flags and environment variables; what the file does not say is absent.

    ``cuda`` is what torch was built for, ``cuda_runtime`` what ran, ``cuda_driver`` what the driver supports
    and ``driver`` its own version.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str | int | float] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Header:
    """What the file says about itself outside ``traceEvents``."""

    devices: tuple[Device, ...] = ()
    torch: str | None = None
    recorded: Recorded = Recorded(shapes=False, stacks=False, memory=False, modules=False)
    base_time_ns: int = 0
    rank: int | None = None
    rank_in_name: int | None = None
    world_size: int | None = None
    trace_name: str | None = None
    environment: Environment = Environment()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Every other top-level key, decoded."""


@dataclass(frozen=True, slots=True)
class GpuTable:
    """One entry per GPU activity (kernel, memcpy, memset), in file order; ABSENT (or nan): not recorded."""

    row: Int32
    device: Int32
    stream: Int64
    bytes: Int64  # memcpy and memset
    registers: Int32  # per thread
    shared_memory: Int32  # bytes a block
    grid: Int64  # (k, 3), ABSENT throughout where not recorded
    block: Int64  # (k, 3)
    blocks_per_sm: Float64
    occupancy_percent: Float64  # as recorded ("est. achieved occupancy %")
    graph_id: Int64  # torch 2.13 and later
    graph_node_id: Int64


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """Allocator instants (``[memory]``), with profile_memory."""

    event: Int64
    start_ns: Int64
    bytes: Int64  # negative: freed
    device_type: Int32  # 0 CPU, 1 CUDA


@dataclass(frozen=True, slots=True)
class OpInputs:
    """What an op was called with: lists by position as the file has them, None for what was not recorded."""

    dims: Any
    types: Any
    strides: Any
    values: Any


@dataclass(frozen=True, slots=True)
class Trace:
    """The events of one file in columns, one entry a row; times in whole nanoseconds since its base."""

    label: str
    cat: Int8
    name: Int32  # index into names
    process: Int32  # index into processes (pid as text)
    thread: Int32  # index into threads: one number per (pid, tid) pair
    start_ns: Int64
    dur_ns: Int64
    correlation: Int64
    external_id: Int64
    sequence: Int64  # autograd sequence number
    forward_thread: Int64  # "Fwd thread id"
    event: Int64  # position in traceEvents (of the B event for pairs)

    names: tuple[str, ...]
    processes: tuple[str, ...]
    threads: tuple[tuple[str, str], ...]  # (pid, tid) as text

    gpu: GpuTable
    memory: MemoryTable
    header: Header
    n_events: int  # entries of traceEvents of any phase
    notices: tuple[Notice, ...]
    args_of: Callable[[int], Mapping[str, Any]]
    """Row -> its ``args``, decoded on demand; {} where absent or unreadable. Neighbouring rows are cheap."""
    inputs_of: Callable[[Int64], tuple[Int64, tuple[OpInputs, ...]]]
    """Rows of ops -> for each which of the distinct inputs it had, and those: for many rows at once."""
    input_of: Callable[[int], OpInputs]
    """Row of an op -> its inputs: cheap for neighbouring rows, and for those that were read before."""
    _ends: list[Int64] = field(default_factory=list, init=False, repr=False, compare=False)
    masks: dict[Hashable, NDArray[np.bool_]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Memory of ``tree.names.names_that``: masks over ``names`` by what they were asked for."""

    def __len__(self) -> int:
        return len(self.cat)

    def __repr__(self) -> str:
        gpu = plural(len(self.gpu.row), "GPU activity", "GPU activities")
        return f"<Trace of {self.label}: {plural(self.n_events, 'event')}, {gpu}>"

    def name_of(self, row: int) -> str:
        """Return the name of a row, exactly as recorded."""
        return self.names[int(self.name[row])]

    def end_ns(self) -> Int64:
        """End of every row; equals the start where the duration is unknown."""
        if not self._ends:
            self._ends.append(self.start_ns + np.where(self.dur_ns == UNKNOWN_NS, 0, self.dur_ns))
            self._ends[0].flags.writeable = False  # everybody gets the same one
        return self._ends[0]

    def rows(self, *cats: Cat) -> Int64:
        """Rows of the given kinds, in file order."""
        mask = np.zeros(len(self.cat), dtype=bool)
        for cat in cats:
            mask |= self.cat == cat
        return np.flatnonzero(mask)

    def events(self, rows: Any) -> tuple[int, ...]:
        """Rows as positions in the file's ``traceEvents``, for evidence."""
        return tuple(self.event[np.asarray(rows, dtype=np.int64)].tolist())
