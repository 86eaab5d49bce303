"""Batches, header and notes -> Trace."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehunch.trace.arguments import arguments_of
from tracehunch.trace.columns import Batch, batch_of, join
from tracehunch.trace.durations import distrust_durations
from tracehunch.trace.header import header_of
from tracehunch.trace.inputs import Inputs
from tracehunch.trace.model import UNKNOWN_NS, Cat, GpuTable, Header, Int32, MemoryTable, Recorded, Trace
from tracehunch.trace.notes import Notes, Trouble
from tracehunch.trace.pairs import join_pairs
from tracehunch.trace.stamps import distrust_stamps
from tracehunch.trace.text import count_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.trace.events import EventReader
    from tracehunch.trace.packed import Kept

UNNAMED = "(unnamed)"
"""Stands for a name that the event does not have."""

_COLLECTIVE = re.compile(r"(?:nccl|rccl|gloo:|c10d::)", re.IGNORECASE)


def assemble(text: Kept, label: str, reader: EventReader, keys: Mapping[str, Any], notes: Notes) -> Trace:
    """Make the trace of everything that was read."""
    batch = join(reader.batches) if reader.batches else _nothing(reader)
    names = tuple(UNNAMED if name is None else name for name in reader.tables.names)
    _count_unnamed(reader, batch, notes)
    join_pairs(batch, reader.begins, reader.ends, names, notes)
    distrust_stamps(batch, notes)
    steps = np.array([name.startswith("ProfilerStep#") for name in names], dtype=bool)
    batch.cat[(batch.cat == Cat.CPU_OP) & steps[batch.name]] = Cat.USER_ANNOTATION
    thread, threads = _as_text(reader, batch)
    processes: dict[str, int] = {}
    process_of_thread = np.array(
        [processes.setdefault(pid, len(processes)) for pid, _ in threads], dtype=np.int32
    )
    process = process_of_thread[thread]
    distrust_durations(batch, process, notes)
    header = header_of(keys, label, _seen(reader, batch, names))
    _say_about_whole(reader, batch, header, names, notes)
    own = [f.name for f in fields(Batch) if f.name not in ("gpu", "thread")]
    inputs = Inputs(text, reader.pieces, batch.event)
    return Trace(
        label=label,
        **{name: getattr(batch, name) for name in own},
        thread=thread,
        process=process,
        names=names,
        processes=tuple(processes),
        threads=threads,
        gpu=_gpu_table(batch),
        memory=_memory_table(reader),
        header=header,
        n_events=reader.n_events,
        notices=notes.notices(),
        args_of=arguments_of(text, reader.pieces, batch.event),
        inputs_of=inputs.of_rows,
        input_of=inputs.of_row,
    )


def _nothing(reader: EventReader) -> Batch:
    none = np.zeros(0, dtype=np.int64)
    return batch_of([], none, none, none, reader.tables)


def _count_unnamed(reader: EventReader, batch: Batch, notes: Notes) -> None:
    code = reader.tables.names.get(None)
    if code is not None:
        notes.count(Trouble.ODD_NAME, int((batch.name == code).sum()))


def _as_text(reader: EventReader, batch: Batch) -> tuple[Int32, tuple[tuple[str, str], ...]]:
    """Threads as text; 7 and "7" are the same one."""
    codes: dict[tuple[str, str], int] = {}
    renumbered = [codes.setdefault((str(pid), str(tid)), len(codes)) for pid, tid in reader.tables.threads]
    return np.array(renumbered, dtype=np.int32)[batch.thread], tuple(codes)


def _seen(reader: EventReader, batch: Batch, names: Sequence[str]) -> Recorded:
    return Recorded(
        shapes=reader.has_shapes,
        stacks=reader.has_stacks or bool((batch.cat == Cat.PYTHON_FUNCTION).any()),
        memory=bool(reader.instants.event),
        modules=any(name.startswith("nn.Module: ") for name in names),
    )


def _gpu_table(batch: Batch) -> GpuTable:
    columns = {f.name: getattr(batch.gpu, f.name) for f in fields(GpuTable)}
    return GpuTable(**{**columns, "row": batch.gpu.row.astype(np.int32)})


def _memory_table(reader: EventReader) -> MemoryTable:
    instants = reader.instants
    return MemoryTable(
        event=np.array(instants.event, dtype=np.int64),
        start_ns=np.array(instants.start_ns, dtype=np.int64),
        bytes=np.array(instants.bytes, dtype=np.int64),
        device_type=np.array(instants.device_type, dtype=np.int64).astype(np.int32),
    )


def _say_about_whole(
    reader: EventReader, batch: Batch, header: Header, names: Sequence[str], notes: Notes
) -> None:
    """Remarks that only the whole file allows."""
    if reader.n_events == 0:
        notes.say(
            "no-events", "the trace is empty: it has no events, so there is nothing to judge", lossy=True
        )
    if reader.has_epoch_fractions:
        notes.say(
            "epoch-times",
            "timestamps are absolute epoch microseconds, where a double loses precision (steps of 0.25 us): "
            "they were read exactly, from the text",
            lossy=False,
        )
    overhead = batch.dur_ns[batch.cat == Cat.OVERHEAD]
    if len(overhead):
        spent = overhead[overhead != UNKNOWN_NS].sum() / 1000
        what = count_of(len(overhead), "overhead event")
        notes.say("overhead", f"{what} in the window: the profiler's own work, {spent:,.1f} us", lossy=False)
    _say_about_rank(header, names, notes)


def _say_about_rank(header: Header, names: Sequence[str], notes: Notes) -> None:
    if header.rank is not None and header.rank_in_name is not None and header.rank != header.rank_in_name:
        notes.say(
            "rank-conflict",
            f"the file's name says rank {header.rank_in_name}, its distributedInfo rank {header.rank}: "
            "the content is believed",
            lossy=True,
        )
    if header.rank is None and any(_COLLECTIVE.match(name) for name in names):
        notes.say(
            "rank-unknown",
            "there are collectives, but neither distributedInfo nor the file's name tells the rank: unknown",
            lossy=True,
        )
