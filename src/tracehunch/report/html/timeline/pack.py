"""Columns as text: little-endian numbers, deflated, in base64."""

from __future__ import annotations

import zlib
from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KINDS: Final = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "i32": "<i4", "f32": "<f4", "f64": "<f8"}
_LEVEL: Final = 6


def packed(values: NDArray[Any], kind: str) -> dict[str, object]:
    """Return a column for a script: its kind, how many numbers, and the numbers.

    Raises:
        OverflowError: a number does not fit the kind.

    """
    wanted = np.dtype(_KINDS[kind])
    if values.size and wanted.kind != "f":
        limits = np.iinfo(wanted)
        if values.min() < limits.min or values.max() > limits.max:
            raise OverflowError(f"numbers from {values.min()} to {values.max()} do not fit {kind}")
    raw = np.ascontiguousarray(values, dtype=wanted).tobytes()
    return {"kind": kind, "n": int(values.size), "data": b64encode(zlib.compress(raw, _LEVEL)).decode()}
