"""Microseconds as written in the file -> whole nanoseconds, exactly."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

import numpy as np

from tracehunch.trace.model import UNKNOWN_NS, Float64, Int64

EXACT_BELOW_US = float(2**43)
"""Below this a float64 holds microseconds with three decimals closely enough to round to the nanosecond."""

_LIMIT_NS = 2**62
"""No stamp or duration of a real run is beyond; also keeps start + duration within int64."""

_MOST_DIGITS = 20
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""Numbers as files write them; Python itself reads more as one (``1_000``, digits of other scripts)."""

_PLAIN = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,3}))?")


def whole_ns(microseconds: Float64) -> Int64:
    """Nearest nanosecond of each value; UNKNOWN_NS where it is no finite number or beyond any real run."""
    with np.errstate(over="ignore", invalid="ignore"):
        ns = np.rint(microseconds * 1000.0)
    usable = np.abs(ns) < _LIMIT_NS  # False for nan
    return np.where(usable, np.where(usable, ns, 0.0).astype(np.int64), UNKNOWN_NS)


def exact_ns(text: str) -> int:
    """Nearest nanosecond of a decimal number of microseconds; UNKNOWN_NS where the text is none."""
    text = text.strip()
    plain = _PLAIN.fullmatch(text)
    ns = int(plain[1]) * 1000 + int((plain[2] or "").ljust(3, "0")) if plain else _rounded_ns(text)
    return ns if abs(ns) < _LIMIT_NS else UNKNOWN_NS


def _rounded_ns(text: str) -> int:
    if NUMBER.fullmatch(text) is None:
        return UNKNOWN_NS
    try:
        value = Decimal(text)
    except InvalidOperation:  # an exponent beyond all bounds
        return UNKNOWN_NS
    if not value.is_finite() or value.adjusted() > _MOST_DIGITS:
        return UNKNOWN_NS
    return int((value * 1000).to_integral_value()) if value.adjusted() > -_MOST_DIGITS else 0
