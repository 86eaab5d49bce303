"""Events -> columns: one batch of numpy arrays a piece of the file, joined at the end."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tracehunch.trace.kinds import kind_of
from tracehunch.trace.model import ABSENT, GPU_CATS, Cat, Float64, Int8, Int32, Int64
from tracehunch.trace.structs import NOTHING, Args, Event

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

_Triples = msgspec.json.Decoder(list[tuple[int, int, int]])
_NUMBER = re.compile(r"(?:stream\s*)?(0x[0-9a-f]{1,15}|-?[0-9]{1,18})\s*", re.IGNORECASE)
_INT64 = 2**63
_INT32 = 2**31
_MOST_DEVICES = 1024  # a larger "process id" on a GPU row is one


class Codes(dict[Any, int]):
    """Numbers things in the order in which they come up."""

    def __missing__(self, key: Hashable) -> int:
        code = self[key] = len(self)
        return code


class Kinds(dict[Any, Cat]):
    """The kind of each category that has come up."""

    def __missing__(self, category: str | None) -> Cat:
        kind = self[category] = kind_of(category)
        return kind


@dataclass(slots=True)
class GpuBatch:
    """GPU activities of one piece; ``row`` counts within the piece until joined."""

    row: Int64
    device: Int32
    stream: Int64
    bytes: Int64
    registers: Int32
    shared_memory: Int32
    grid: Int64
    block: Int64
    blocks_per_sm: Float64
    occupancy_percent: Float64
    graph_id: Int64
    graph_node_id: Int64


@dataclass(slots=True)
class Batch:
    """Complete events (and begins, which have no duration yet) of one piece."""

    event: Int64
    cat: Int8
    name: Int32
    thread: Int32
    start_ns: Int64
    dur_ns: Int64
    correlation: Int64
    external_id: Int64
    sequence: Int64
    forward_thread: Int64
    gpu: GpuBatch


class Tables:
    """What rows refer to by number, over the whole file."""

    def __init__(self) -> None:
        self.names = Codes()
        self.kinds = Kinds()
        self.threads = Codes()


def batch_of(events: Sequence[Event], event: Int64, start_ns: Int64, dur_ns: Int64, tables: Tables) -> Batch:
    """Columns of the given rows (``event``: their positions).

    Raises OverflowError where an integer does not fit. Each argument is looked at only on the kinds of events
    that have it.
    """
    names, threads, kinds = tables.names, tables.threads, tables.kinds
    cat = np.frombuffer(bytearray([kinds[e.cat] for e in events]), dtype=np.int8)
    n = len(events)
    args = [e.args for e in events]
    with_ids, with_correlation, ops = (np.flatnonzero(have[cat]) for have in _KINDS_WITH)
    op_args = _at(args, ops)
    return Batch(
        event=event,
        cat=cat,
        name=np.array([names[e.name] for e in events], dtype=np.int32),
        thread=np.array([threads[e.pid, e.tid] for e in events], dtype=np.int32),
        start_ns=start_ns,
        dur_ns=dur_ns,
        correlation=_spread(n, with_correlation, [a.correlation for a in _at(args, with_correlation)]),
        external_id=_spread(n, with_ids, _external_ids(_at(args, with_ids))),
        sequence=_spread(n, ops, [a.sequence for a in op_args]),
        forward_thread=_spread(n, ops, [a.forward_thread for a in op_args]),
        gpu=_gpu_batch(events, np.flatnonzero(_IS_GPU[cat])),
    )


def _kinds(*kinds: Cat) -> NDArray[np.bool_]:
    """Tabulate, by Cat, whether it is one of these."""
    return np.isin(np.arange(max(Cat) + 1), kinds)


_IS_GPU = _kinds(*GPU_CATS)
_KINDS_WITH = (
    ~_kinds(Cat.PYTHON_FUNCTION),  # External id
    ~_kinds(Cat.PYTHON_FUNCTION, Cat.CPU_OP, Cat.USER_ANNOTATION),  # correlation
    _kinds(Cat.CPU_OP),  # sequence number and forward thread
)


def _at(args: Sequence[Args], rows: Int64) -> list[Args]:
    return [args[row] for row in rows.tolist()]


def _spread(n: int, rows: Int64, values: Sequence[int]) -> Int64:
    """Make a column of ``n`` with values at ``rows``, ABSENT elsewhere."""
    column = np.full(n, ABSENT, dtype=np.int64)
    column[rows] = np.array(values, dtype=np.int64)
    return column


def _external_ids(args: Sequence[Args]) -> list[int]:
    ids = [a.external_id for a in args]
    if ids.count(ABSENT) == len(ids):
        return [a.old_external_id for a in args]
    return ids


def _gpu_batch(events: Sequence[Event], rows: Int64) -> GpuBatch:
    chosen = [events[row] for row in rows.tolist()]
    args = [e.args for e in chosen]
    return GpuBatch(
        row=rows,
        device=_devices(chosen),
        stream=_streams(chosen),
        bytes=_sizes(args),
        registers=_narrow([a.registers for a in args]),
        shared_memory=_narrow([a.shared_memory for a in args]),
        grid=_triples([a.grid for a in args]),
        block=_triples([a.block for a in args]),
        blocks_per_sm=np.array([a.blocks_per_sm for a in args], dtype=np.float64),
        occupancy_percent=np.array([a.occupancy_percent for a in args], dtype=np.float64),
        graph_id=np.array([a.graph_id for a in args], dtype=np.int64),
        graph_node_id=np.array([a.graph_node_id for a in args], dtype=np.int64),
    )


def _devices(events: Sequence[Event]) -> Int32:
    """Device indices: the argument, else the process id, which Kineto uses for it on GPU rows."""
    devices = _numbers([e.args.device for e in events])
    for i in np.flatnonzero(devices == ABSENT).tolist():
        pid = events[i].pid
        if isinstance(pid, int) and 0 <= pid < _MOST_DEVICES:
            devices[i] = pid
    return _narrow(devices)


def _streams(events: Sequence[Event]) -> Int64:
    """Streams: the argument, else the thread id ("stream 7" in old traces)."""
    streams = _numbers([e.args.stream for e in events])
    for i in np.flatnonzero(streams == ABSENT).tolist():
        streams[i] = number(events[i].tid)
    return streams


def _sizes(args: Sequence[Args]) -> Int64:
    sizes = _numbers([a.bytes for a in args])
    return np.where(sizes == ABSENT, _numbers([a.size for a in args]), sizes)


def _numbers(values: Sequence[float | str]) -> Int64:
    """Integers of what nearly always are integers."""
    if set(map(type, values)) <= {int}:
        return np.array(values, dtype=np.int64)
    return np.array([number(value) for value in values], dtype=np.int64)


def number(value: float | str) -> int:
    """Return a 64-bit integer from what may be text such as "stream 7" or "0x10"; ABSENT if it is none."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip())
        if match is None:
            return ABSENT
        return int(match[1], 16 if match[1][:2] in ("0x", "0X") else 10)
    fits = -_INT64 <= value < _INT64 and value == int(value)  # in this order: int() refuses nan and infinity
    return int(value) if fits else ABSENT


def _narrow(values: Sequence[int] | Int64) -> Int32:
    """32-bit integers; ABSENT where one does not fit."""
    wide = np.array(values, dtype=np.int64)
    return np.where(np.abs(wide) < _INT32, wide, ABSENT).astype(np.int32)


def _triples(raws: Sequence[msgspec.Raw]) -> Int64:
    missing = b"[-1,-1,-1]"
    texts = [missing if raw is NOTHING else raw for raw in raws]
    try:
        values = _Triples.decode(b"[" + b",".join(texts) + b"]")
        return np.array(values, dtype=np.int64).reshape(-1, 3)
    except (msgspec.ValidationError, OverflowError):  # a grid of another shape: as if not recorded
        return np.array([_triple(bytes(text)) for text in texts], dtype=np.int64).reshape(-1, 3)


def _triple(text: bytes) -> tuple[int, int, int]:
    try:
        x, y, z = msgspec.json.decode(text, type=tuple[int, int, int])
    except msgspec.ValidationError:
        return (ABSENT, ABSENT, ABSENT)
    return (number(x), number(y), number(z))


def join(batches: Sequence[Batch]) -> Batch:
    """All batches as one, GPU rows counted over the whole file."""
    offsets = np.cumsum([0, *(len(b.cat) for b in batches[:-1])])
    for batch, offset in zip(batches, offsets, strict=True):
        batch.gpu.row = batch.gpu.row + offset
    gpu = GpuBatch(
        **{f.name: np.concatenate([getattr(b.gpu, f.name) for b in batches]) for f in fields(GpuBatch)}
    )
    own = [f.name for f in fields(Batch) if f.name != "gpu"]
    return Batch(**{name: np.concatenate([getattr(b, name) for b in batches]) for name in own}, gpu=gpu)
