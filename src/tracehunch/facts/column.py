"""Column: one key for all calls of all scopes, before it is summed up per scope."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import Float64, Int64

Bool = NDArray[np.bool_]
Rows = Callable[[Int64], list[tuple[int, ...]]]
"""Calls -> the rows that the value of each rests on."""


@dataclass(frozen=True, slots=True)
class Column:
    """Values per call: counts, nanoseconds and bytes as int64, ratios as float64.

    ``known`` masks the calls whose value is known, None where all are; ``own`` are the values for the call's
    own thread, None where the key does not depend on threads.
    """

    key: str
    values: Int64 | Float64
    own: Int64 | Float64 | None = None
    known: Bool | None = None
    rows: Rows | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """A key whose value is text, per scope; scopes that are not in ``values`` do not have it."""

    key: str
    values: dict[int, str | tuple[str, ...]]
    rows: Rows | None = None
