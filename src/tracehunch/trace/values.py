"""Decoding one JSON value whatever it holds: numbers beyond all bounds and half surrogate pairs included."""

from __future__ import annotations

from typing import Any

import msgspec

from tracehunch.trace.repair import repair

_by_key = msgspec.json.Decoder(dict[str, msgspec.Raw])


def decode(raw: bytes | msgspec.Raw) -> Any:
    """Return the value of sound JSON; a number beyond all bounds (or its list) comes as its text."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.ValidationError:  # a number out of range
        return _piecewise(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):  # half a surrogate pair
        fixed = repair(bytes(raw))
        return decode(fixed[0]) if fixed and fixed[0] != bytes(raw) else _text(raw)


def _piecewise(raw: bytes | msgspec.Raw) -> Any:
    try:
        return {key: decode(value) for key, value in _by_key.decode(raw).items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _text(raw)


def _text(raw: bytes | msgspec.Raw) -> str:
    return bytes(raw).decode("utf-8", "replace")
