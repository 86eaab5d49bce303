"""``traceEvents`` -> batches of columns, a piece of the text at a time.

A piece is cut where one event most likely ends and the next begins, and decoded in one call. Damage and odd
types are confined to the piece that holds them, which then goes event by event.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import compress, islice
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tracehunch.trace.columns import Batch, Tables, batch_of, number
from tracehunch.trace.loose import ROW_PHASES, Parsed, parse
from tracehunch.trace.model import UNKNOWN_NS, Int64
from tracehunch.trace.notes import Notes, Trouble
from tracehunch.trace.part import take_over
from tracehunch.trace.scan import ARRAY_END, EVENT_END, Text, let_go, skip_blank
from tracehunch.trace.splitter import CLOSED, Ending, Splitter
from tracehunch.trace.structs import NOTHING, Event
from tracehunch.trace.times import EXACT_BELOW_US, exact_ns, whole_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracehunch.trace.second import Second

PIECE_BYTES = 1 << 19
_ENDS_TRIED = 8
_HELD_PIECES = 32
_Events = msgspec.json.Decoder(list[Event])
_Raws = msgspec.json.Decoder(list[msgspec.Raw])
_SLOWLY = frozenset(b"BE")
"""Phases that are not taken in one call: pairs."""

MEMORY_INSTANT = "[memory]"
_STACKS_LOOKED_FOR = 32  # pieces; every op has a stack, or none has
_PID = re.compile(rb'"pid"\s*+:\s*+(\d{1,10})\b')
_DEVICES = 64  # smaller "process ids" are GPUs
_NEARBY_BYTES = 1 << 16
_NEXT_BYTES = 1 << 12


class _Stamp(msgspec.Struct, gc=False):
    ts: msgspec.Raw = NOTHING


_Stamps = msgspec.json.Decoder(list[_Stamp])


@dataclass(frozen=True, slots=True)
class Piece:
    """Where some consecutive entries stand in the text; ``whole``: they decode in one call."""

    start: int
    end: int
    first_event: int
    whole: bool


@dataclass(slots=True)
class Instants:
    """Allocator instants, in file order."""

    event: list[int] = field(default_factory=list)
    start_ns: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    device_type: list[int] = field(default_factory=list)

    def add(self, position: int, event: Event, start_ns: int) -> None:
        """Keep an event if it is an allocator instant."""
        if event.name == MEMORY_INSTANT and event.ph in ("i", "I"):
            self.event.append(position)
            self.start_ns.append(start_ns)
            self.bytes.append(number(event.args.allocated))
            self.device_type.append(number(event.args.device_type))

    def add_all(self, others: Instants, first_event: int) -> None:
        """Add those that were found where positions are counted from ``first_event``."""
        self.event += [first_event + position for position in others.event]
        self.start_ns += others.start_ns
        self.bytes += others.bytes
        self.device_type += others.device_type


@dataclass(frozen=True, slots=True)
class End:
    """The end (ph E) of a begin/end pair."""

    event: int
    thread: int
    time_ns: int
    name: str


class EventReader:
    """Collects the events of a text; ``array`` may be called for several arrays.

    ``second`` reads a later part of the same text meanwhile.
    """

    def __init__(
        self,
        text: Text,
        notes: Notes,
        progress: Callable[[float], None] | None = None,
        *,
        second: Second | None = None,
        piece_bytes: int | None = None,
    ) -> None:
        self.text = text
        self._second = second
        self._piece_bytes = piece_bytes or PIECE_BYTES
        self.n_before = 0  # pieces before the first one that is read here
        self.base = 0  # where ``text`` begins in the whole one
        self.notes = notes
        self.tables = Tables()
        self.batches: list[Batch] = []
        self.pieces: list[Piece] = []
        self.instants = Instants()
        self.begins: list[int] = []  # positions of begin events (ph B)
        self.ends: list[End] = []
        self.n_entries = 0
        self.has_shapes = self.has_stacks = self.has_epoch_fractions = False
        self._progress = progress
        self._processes_of_block: dict[int, set[int]] = {}

    @property
    def n_events(self) -> int:
        """Entries that are events, of any phase."""
        return self.n_entries - self.notes.number(Trouble.NOT_EVENT)

    def array(self, start: int) -> tuple[int, Ending]:
        """Read the array whose first entry stands at or behind ``start``; where it ended, and how."""
        pos = start
        while True:
            if self.is_elsewhere(pos):
                pos = self.take_over(pos)
            cut = self._cut_behind(pos)
            if cut is not None and self._take(pos, cut.start() + 1):
                pos = cut.end()
            elif cut is None and (closed := self._take_last(pos)) is not None:
                return closed, Ending.CLOSED
            else:
                goal = min(pos + self._piece_bytes, len(self.text)) if cut is None else cut.start() + 1
                pos, ending = self._split(pos, goal)
                if ending is not Ending.GOAL:
                    return pos, ending
            if len(self.pieces) % _HELD_PIECES == 0:
                let_go(self.text)
            if self._progress:
                self._progress(min(pos / (self._second.goal if self._second else len(self.text)), 1.0))

    def whole_pieces(self, start: int) -> tuple[int, bool]:
        """Take pieces as ``array`` would, as far as the text is sound and surely goes on behind them.

        Returns where the next begins, and False where it is to be read another way.
        """
        pos = start
        while pos + 2 * self._piece_bytes <= len(self.text) and not self.is_elsewhere(pos):
            cut = self._cut_behind(pos)
            if cut is None or not self._take(pos, cut.start() + 1):
                return pos, False
            pos = cut.end()
            if len(self.pieces) % _HELD_PIECES == 0:
                let_go(self.text)
        return pos, True

    def skip(self, start: int, goal: int) -> tuple[int, int]:
        """Pass over pieces until one begins at ``goal`` or behind: where it does, and how many those were.

        It begins before ``goal`` if the text ends, or has nothing that looks like pieces.
        """
        pos, n_pieces = start, 0
        while pos < goal and pos + 2 * self._piece_bytes <= len(self.text):
            cut = self._cut_behind(pos)
            if cut is None:
                break
            pos, n_pieces = cut.end(), n_pieces + 1
        return pos, n_pieces

    def is_elsewhere(self, pos: int) -> bool:
        """Whether the second process was asked to read from here on."""
        return self._second is not None and self.base + pos >= self._second.goal

    def take_over(self, pos: int) -> int:
        """Add what the second process has read from ``pos`` on; where it is to be gone on."""
        part = self._second.part() if self._second is not None else None
        self._second = None
        if part is None or (part.start, part.before) != (self.base + pos, len(self.pieces)):
            return pos  # here the pieces are others, after damage
        take_over(self, part)
        return part.end - self.base

    def _cut_behind(self, pos: int) -> re.Match[bytes] | None:
        """Find what ends the piece that begins at ``pos``."""
        return EVENT_END.search(self.text, pos + self._piece_bytes, pos + 2 * self._piece_bytes)

    def _take_last(self, start: int) -> int | None:
        """Take the rest of the array in one call; the position behind its bracket, None where that fails."""
        candidates = ARRAY_END.finditer(self.text, start, start + 2 * self._piece_bytes)
        for cut in islice(candidates, _ENDS_TRIED):
            if self._take(start, cut.start() + 1):
                return cut.end() + 1
        pos = skip_blank(self.text, start)
        return pos + 1 if CLOSED.match(self.text, pos) else None

    def _take(self, start: int, end: int) -> bool:
        """Decode a piece in one call; False where that fails, and then nothing is changed."""
        data = b"".join((b"[", self.text[start:end], b"]"))
        try:
            if not data.isascii():
                data.decode()
            try:
                taken = self._add(_Events.decode(data), data)
            except (msgspec.ValidationError, OverflowError):
                taken = 0
            if not taken:
                taken = self._add_parsed([(None, parse(raw)) for raw in _Raws.decode(data)])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        self.pieces.append(Piece(self.base + start, self.base + end, self.n_entries, whole=True))
        self.n_entries += taken
        return True

    def _add(self, events: Sequence[Event], data: bytes) -> int:
        """Add events as Kineto writes them; how many, 0 if some must go one by one."""
        phases = "".join([e.ph for e in events]).encode()
        if len(phases) != len(events) or not _SLOWLY.isdisjoint(phases):
            return 0
        is_row = np.frombuffer(phases, dtype=np.uint8) == ord("X")
        rows, at = list(compress(events, is_row.tolist())), np.flatnonzero(is_row)
        start_us = np.fromiter([e.ts for e in rows], np.float64, len(rows))  # twice as fast as np.array
        dur_us = np.fromiter([e.dur for e in rows], np.float64, len(rows))
        start_ns = whole_ns(start_us)
        if np.nanmax(np.abs(start_us), initial=0.0) >= EXACT_BELOW_US:
            start_ns = self._exact_starts(data)[at]
        dur_ns = whole_ns(dur_us)
        self.batches.append(batch_of(rows, at + self.n_entries, start_ns, dur_ns, self.tables))
        if b"i" in phases or b"I" in phases:
            self._add_instants(events)
        missing = int(np.isnan(dur_us).sum())
        self.notes.count(Trouble.DUR_MISSING, missing)
        self.notes.count(Trouble.DUR_HUGE, int((dur_ns == UNKNOWN_NS).sum()) - missing)
        self.notes.count(Trouble.ODD_STAMP, int((start_ns == UNKNOWN_NS).sum()))
        self._see_args(rows)
        return len(events)

    def _add_instants(self, events: Sequence[Event]) -> None:
        for position, event in enumerate(events, self.n_entries):
            if event.name == MEMORY_INSTANT:
                self.instants.add(position, event, int(whole_ns(np.array([event.ts]))[0]))

    def _exact_starts(self, data: bytes) -> Int64:
        texts = [bytes(stamp.ts).decode() for stamp in _Stamps.decode(data)]
        self.has_epoch_fractions = self.has_epoch_fractions or any("." in text for text in texts)
        return np.array([exact_ns(text) for text in texts], dtype=np.int64)

    def _see_args(self, rows: Sequence[Event]) -> None:
        self.has_shapes = self.has_shapes or any(e.args.input_dims is not NOTHING for e in rows)
        if not self.has_stacks and self.n_before + len(self.batches) <= _STACKS_LOOKED_FOR:
            self.has_stacks = any(
                e.args.call_stack is not NOTHING and bytes(e.args.call_stack) != b'""' for e in rows
            )

    def _split(self, start: int, goal: int) -> tuple[int, Ending]:
        splitter = Splitter(self.text, start, goal, self.notes, self._is_other_text)
        entries = []
        for element in splitter:
            for trouble, n in element.troubles.items():
                self.notes.count(trouble, n, element.offset)
            entries.append((element.offset, parse(element.text)))
        self.pieces.append(Piece(start, splitter.pos, self.n_entries, whole=False))
        self.n_entries += self._add_parsed(entries)
        assert splitter.ending is not None
        return splitter.pos, splitter.ending

    def _is_other_text(self, start: int, end: int) -> bool:
        """Whether none of the processes before a damaged stretch goes on behind it, but others do."""
        near = self._processes(max(start - _NEXT_BYTES, 0), start)
        if near and not near.isdisjoint(self._processes(end, end + _NEXT_BYTES)):
            return False
        before = self._processes(max(start - _NEARBY_BYTES, 0), start)
        behind = self._processes(end, end + _NEARBY_BYTES)
        return bool(before) and bool(behind) and before.isdisjoint(behind)

    def _processes(self, start: int, end: int) -> set[int]:
        """Process ids between two places; whole blocks of text are searched once only."""
        first, last = -(-start // _NEXT_BYTES), min(end, len(self.text)) // _NEXT_BYTES
        if first >= last:
            return self._find_processes(start, end)
        found = self._find_processes(start, first * _NEXT_BYTES)
        for block in range(first, last):
            if block not in self._processes_of_block:
                at = block * _NEXT_BYTES
                self._processes_of_block[block] = self._find_processes(at, at + _NEXT_BYTES)
            found |= self._processes_of_block[block]
        return found | self._find_processes(last * _NEXT_BYTES, end)

    def _find_processes(self, start: int, end: int) -> set[int]:
        return {pid for match in _PID.findall(self.text, start, end) if (pid := int(match)) >= _DEVICES}

    def _add_parsed(self, entries: Sequence[tuple[int | None, Parsed | None]]) -> int:
        """Add events that came one by one, with their offsets where known; how many entries."""
        rows, positions = [], []
        for position, (offset, parsed) in enumerate(entries, self.n_entries):
            if parsed is None or not parsed.event.ph:
                self.notes.count(Trouble.NOT_EVENT, 1, offset)
                continue
            for trouble, n in parsed.troubles.items():
                self.notes.count(trouble, n, offset)
            event = parsed.event
            if event.ph in ROW_PHASES:
                rows.append(parsed)
                positions.append(position)
                if event.ph == "B":
                    self.begins.append(position)
            elif event.ph == "E":
                thread = self.tables.threads[event.pid, event.tid]
                self.ends.append(End(position, thread, parsed.start_ns, event.name or ""))
            else:
                self.instants.add(position, event, parsed.start_ns)
        events = [p.event for p in rows]
        start_ns = np.array([p.start_ns for p in rows], dtype=np.int64)
        dur_ns = np.array([p.dur_ns for p in rows], dtype=np.int64)
        self.batches.append(
            batch_of(events, np.array(positions, dtype=np.int64), start_ns, dur_ns, self.tables)
        )
        self._see_args(events)
        return len(entries)
