"""What one reader made of a stretch of the events, as another takes it over: every number counted anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehunch.trace.columns import Batch, join

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.trace.events import End, EventReader, Instants, Piece
    from tracehunch.trace.notes import Trouble


@dataclass(frozen=True, slots=True)
class Part:
    """Whole pieces that follow each other: positions of events and codes count from its own beginning."""

    start: int
    """Where its first event begins in the text."""
    end: int
    """Where the next event after its last one begins."""
    before: int
    """Pieces that stand before it."""
    batch: Batch
    names: Sequence[str | None]
    threads: Sequence[tuple[Any, Any]]
    pieces: Sequence[Piece]
    instants: Instants
    begins: Sequence[int]
    ends: Sequence[End]
    n_entries: int
    troubles: Mapping[Trouble, int]
    flags: tuple[bool, bool, bool]


def part_of(reader: EventReader, start: int, end: int, before: int) -> Part | None:
    """Return all that a reader has taken between two places; None where it is nothing."""
    if not reader.batches:
        return None
    return Part(
        start,
        end,
        before,
        batch=join(reader.batches),
        names=list(reader.tables.names),
        threads=list(reader.tables.threads),
        pieces=reader.pieces,
        instants=reader.instants,
        begins=reader.begins,
        ends=reader.ends,
        n_entries=reader.n_entries,
        troubles=reader.notes.counted(),
        flags=(reader.has_shapes, reader.has_stacks, reader.has_epoch_fractions),
    )


def take_over(reader: EventReader, part: Part) -> None:
    """Add a part to a reader that has read all before it, as if it had read the part itself."""
    first, batch, tables = reader.n_entries, part.batch, reader.tables
    names = np.array([tables.names[name] for name in part.names], dtype=np.int32)
    threads = np.array([tables.threads[thread] for thread in part.threads], dtype=np.int32)
    batch.event += first
    batch.name = names[batch.name]
    batch.thread = threads[batch.thread]
    reader.batches.append(batch)
    reader.pieces += [replace(piece, first_event=piece.first_event + first) for piece in part.pieces]
    reader.begins += [first + begin for begin in part.begins]
    reader.ends += [replace(e, event=first + e.event, thread=int(threads[e.thread])) for e in part.ends]
    reader.instants.add_all(part.instants, first)
    reader.n_entries += part.n_entries
    for trouble, n in part.troubles.items():
        reader.notes.count(trouble, n)
    shapes, stacks, fractions = part.flags
    reader.has_shapes |= shapes
    reader.has_stacks |= stacks
    reader.has_epoch_fractions |= fractions
