"""What ops were called with, each distinct combination once: far fewer than there are calls."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tracehunch.trace.arguments import raws
from tracehunch.trace.columns import Codes
from tracehunch.trace.model import OpInputs
from tracehunch.trace.structs import NOTHING
from tracehunch.trace.values import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracehunch.trace.events import Piece
    from tracehunch.trace.model import Int64
    from tracehunch.trace.scan import Text


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


def inputs_of(
    text: Text, pieces: Sequence[Piece], event: Int64
) -> Callable[[Int64], tuple[Int64, tuple[OpInputs, ...]]]:
    """Make ``Trace.inputs_of`` for a text's pieces, given each row's position in traceEvents."""
    firsts = [piece.first_event for piece in pieces]

    def inputs_of_rows(rows: Int64) -> tuple[Int64, tuple[OpInputs, ...]]:
        codes = Codes()
        found = np.empty(rows.size, dtype=np.int64)
        order = np.argsort(event[rows], kind="stable")
        positions = event[rows][order]
        piece = np.searchsorted(firsts, positions, side="right") - 1
        bounds = np.flatnonzero(np.diff(piece, prepend=-1, append=-1)).tolist()
        for start, end in pairwise(bounds):
            number = int(piece[start])
            holders = _holders(text, pieces[number])
            args = [holders[at].args for at in (positions[start:end] - firsts[number]).tolist()]
            found[order[start:end]] = [
                codes[_BETWEEN.join((a.dims, a.types, a.strides, a.values))] for a in args
            ]
        return found, tuple(_decoded(key) for key in codes)

    return inputs_of_rows


def _holders(text: Text, piece: Piece) -> Sequence[_Holder]:
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
