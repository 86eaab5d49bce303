"""What ops were called with, each distinct combination once: far fewer than there are calls."""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tracehunch.trace.arguments import raws
from tracehunch.trace.columns import Codes
from tracehunch.trace.model import OpInputs
from tracehunch.trace.scan import let_go
from tracehunch.trace.structs import NOTHING
from tracehunch.trace.values import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.trace.events import Piece
    from tracehunch.trace.model import Int64
    from tracehunch.trace.packed import Kept


_NAMES = {
    "dims": "Input Dims",
    "types": "Input type",
    "strides": "Input Strides",
    "values": "Concrete Inputs",
}


class _Args(msgspec.Struct, gc=False, frozen=True, rename=_NAMES):
    dims: msgspec.Raw = NOTHING
    types: msgspec.Raw = NOTHING
    strides: msgspec.Raw = NOTHING
    values: msgspec.Raw = NOTHING


_NO_ARGS = _Args()


class _Holder(msgspec.Struct, gc=False):
    args: _Args = _NO_ARGS


_Holders = msgspec.json.Decoder(list[_Holder])
_One = msgspec.json.Decoder(_Args)
_BETWEEN = b"\0"  # no byte of JSON
_UNREAD = -1
_KEPT_PIECES = 8
_HELD_PIECES = 32


class Inputs:
    """``Trace.inputs_of`` and ``Trace.input_of`` for a text's pieces; what was read once is kept.

    ``event``: each row's position in traceEvents.
    """

    def __init__(self, text: Kept, pieces: Sequence[Piece], event: Int64) -> None:
        self._text, self._pieces, self._event = text, pieces, event
        self._firsts = [piece.first_event for piece in pieces]
        self._codes = Codes()
        self._given: list[OpInputs] = []
        self._code = np.full(event.size, _UNREAD, dtype=np.int32)  # row -> position in given
        self._kept: dict[int, Sequence[_Holder]] = {}  # of the last pieces that were read for single rows

    def of_rows(self, rows: Int64) -> tuple[Int64, tuple[OpInputs, ...]]:
        """Return for each row which of the distinct inputs it had, and those by their first position."""
        self._read_all(rows)
        code = self._code[rows]
        first = np.full(len(self._given), rows.size, dtype=np.int64)
        order = np.argsort(self._event[rows], kind="stable")
        first[code[order[::-1]]] = np.arange(rows.size)[::-1]
        some = np.argsort(first, kind="stable")[: np.count_nonzero(first < rows.size)]
        number = np.empty(first.size, dtype=np.int64)
        number[some] = np.arange(some.size)
        return number[code], tuple(self._given[at] for at in some.tolist())

    def of_row(self, row: int) -> OpInputs:
        """Return the inputs of one op."""
        if self._code[row] == _UNREAD:
            number = bisect_right(self._firsts, self._event[row]) - 1
            if number not in self._kept:
                if len(self._kept) == _KEPT_PIECES:
                    del self._kept[next(iter(self._kept))]
                self._kept[number] = _holders(self._text, self._pieces[number])
            self._note(self._kept[number], number, np.array([row]))
        return self._given[int(self._code[row])]

    def _read_all(self, rows: Int64) -> None:
        """Read the inputs of those rows that are not known, piece by piece."""
        unread = rows[self._code[rows] == _UNREAD]
        unread = unread[np.argsort(self._event[unread], kind="stable")]
        piece = np.searchsorted(self._firsts, self._event[unread], side="right") - 1
        for start, end in pairwise(np.flatnonzero(np.diff(piece, prepend=-1, append=-1)).tolist()):
            number = int(piece[start])
            self._note(_holders(self._text, self._pieces[number]), number, unread[start:end])
            if isinstance(self._text, memoryview) and number % _HELD_PIECES == 0:
                let_go(self._text)

    def _note(self, holders: Sequence[_Holder], number: int, rows: Int64) -> None:
        """Keep what rows of a piece were called with."""
        args = [holders[at].args for at in (self._event[rows] - self._firsts[number]).tolist()]
        keys = [_BETWEEN.join((a.dims, a.types, a.strides, a.values)) for a in args]
        self._code[rows] = [self._codes[key] for key in keys]
        new = list(islice(reversed(self._codes), len(self._codes) - len(self._given)))
        self._given += map(_decoded, reversed(new))


def _holders(text: Kept, piece: Piece) -> Sequence[_Holder]:
    """Return the inputs of every entry of a piece."""
    if piece.whole:
        try:
            return _Holders.decode(b"".join((b"[", text[piece.start : piece.end], b"]")))
        except msgspec.ValidationError:  # entries, or their arguments, that are no objects
            pass
    return [_Holder(_one(raw)) for raw in raws(text, piece)]


def _one(raw: msgspec.Raw) -> _Args:
    try:
        return _NO_ARGS if raw is NOTHING else _One.decode(raw)
    except msgspec.DecodeError:
        return _NO_ARGS


def _decoded(key: bytes) -> OpInputs:
    return OpInputs(*(decode(part) if part else None for part in key.split(_BETWEEN)))
