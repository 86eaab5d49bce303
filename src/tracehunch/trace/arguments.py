"""``args`` on demand: the piece that holds the event is decoded again, and kept for its neighbours."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from tracehunch.trace.notes import Notes
from tracehunch.trace.splitter import Splitter
from tracehunch.trace.structs import NOTHING
from tracehunch.trace.values import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracehunch.trace.events import Piece
    from tracehunch.trace.model import Int64
    from tracehunch.trace.packed import Kept

_KEPT_PIECES = 8


class _Holder(msgspec.Struct, gc=False):
    args: msgspec.Raw = NOTHING


_Holders = msgspec.json.Decoder(list[_Holder])
_Entries = msgspec.json.Decoder(list[msgspec.Raw])
_One = msgspec.json.Decoder(_Holder)


def arguments_of(text: Kept, pieces: Sequence[Piece], event: Int64) -> Callable[[int], Mapping[str, Any]]:
    """Make ``Trace.args_of`` for a text's pieces, given each row's position in traceEvents."""
    firsts = [piece.first_event for piece in pieces]

    @lru_cache(maxsize=_KEPT_PIECES)
    def raws_of(index: int) -> list[msgspec.Raw]:
        return raws(text, pieces[index])

    def args_of(row: int) -> Mapping[str, Any]:
        position = int(event[row])
        index = bisect_right(firsts, position) - 1
        return _decoded(raws_of(index)[position - firsts[index]])

    return args_of


def raws(text: Kept, piece: Piece) -> list[msgspec.Raw]:
    """Return the raw args of every entry of a piece."""
    if not piece.whole and isinstance(text, memoryview):  # what is packed is sound throughout
        entries = Splitter(text, piece.start, piece.end, Notes(), lambda *_: False)
        return [_raw(element.text) for element in entries]
    data = b"".join((b"[", text[piece.start : piece.end], b"]"))
    try:
        return [holder.args for holder in _Holders.decode(data)]
    except msgspec.ValidationError:  # entries that are no objects
        return [_raw(raw) for raw in _Entries.decode(data)]


def _raw(entry: bytes | msgspec.Raw) -> msgspec.Raw:
    try:
        return _One.decode(entry).args
    except msgspec.ValidationError:
        return NOTHING


def _decoded(raw: msgspec.Raw) -> Mapping[str, Any]:
    value = {} if raw is NOTHING else decode(raw)
    return value if isinstance(value, dict) else {}
