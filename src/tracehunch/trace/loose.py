"""Events that are JSON but not as Kineto writes them: numbers as text, no names, args of another type."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tracehunch.trace.columns import number
from tracehunch.trace.model import ABSENT, UNKNOWN_NS
from tracehunch.trace.notes import Trouble
from tracehunch.trace.structs import ARG_KEYS, NO_ARGS, NOTHING, Args, Event
from tracehunch.trace.times import NUMBER, exact_ns
from tracehunch.trace.values import decode

ROW_PHASES = ("X", "B")
_INT64 = 2**63
_RAW_ARGS = ("input_dims", "call_stack", "grid", "block")
_FLOAT_ARGS = ("blocks_per_sm", "occupancy_percent")
_NON_FINITE = ("nan", "inf", "infinity")
_IDS = ("correlation", "external_id", "old_external_id")


class _Any(msgspec.Struct, gc=False):
    """One entry of traceEvents whatever the types."""

    ph: msgspec.Raw = NOTHING
    cat: msgspec.Raw = NOTHING
    name: msgspec.Raw = NOTHING
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    pid: msgspec.Raw = NOTHING
    tid: msgspec.Raw = NOTHING
    args: msgspec.Raw = NOTHING


_decoder = msgspec.json.Decoder(_Any)
_by_key = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Parsed:
    """An event, its exact times, and what was odd about it."""

    event: Event
    start_ns: int
    dur_ns: int
    troubles: Counter[Trouble] = field(default_factory=Counter)
    sample: str = ""


def parse(text: bytes | msgspec.Raw) -> Parsed | None:
    """Read an event from sound JSON; None where the entry is no object."""
    try:
        entry = _decoder.decode(text)
    except msgspec.ValidationError:
        return None
    troubles: Counter[Trouble] = Counter()
    phase = _value(entry.ph)
    name = _value(entry.name)
    event = Event(
        ph=phase if isinstance(phase, str) else "",
        cat=_text_or_none(_value(entry.cat)),
        name=_text_or_none(name),
        pid=_id(_value(entry.pid)),
        tid=_id(_value(entry.tid)),
        args=_args(entry.args, troubles),
    )
    start_ns = _ns(_value_text(entry.ts))
    dur_ns = UNKNOWN_NS
    if event.ph == "X":
        dur_ns = _duration(entry.dur, troubles)
    if event.ph in ROW_PHASES:
        troubles[Trouble.ODD_STAMP] += start_ns == UNKNOWN_NS
        troubles[Trouble.ODD_NAME] += name is not None and not isinstance(name, str)
    else:
        troubles.clear()  # nothing of the other phases is used but times and bytes of instants
    return Parsed(event, start_ns, dur_ns, +troubles)


def _value(raw: msgspec.Raw) -> Any:
    return None if raw is NOTHING else decode(raw)


def _value_text(raw: msgspec.Raw) -> str:
    """Return the text of a number, also where it stands in a string; "" where it is neither."""
    text = bytes(raw).decode().strip()
    if text.startswith('"'):
        return str(decode(raw)).strip()
    return text if text[:1] in "-0123456789" else ""


def _ns(text: str) -> int:
    return exact_ns(text) if text else UNKNOWN_NS


def _duration(raw: msgspec.Raw, troubles: Counter[Trouble]) -> int:
    text = _value_text(raw)
    dur_ns = _ns(text)
    if dur_ns == UNKNOWN_NS:
        troubles[_duration_trouble(raw, text)] += 1
    return dur_ns


def _duration_trouble(raw: msgspec.Raw, text: str) -> Trouble:
    if raw is NOTHING:
        return Trouble.DUR_MISSING
    if text.lower().lstrip("+-") in _NON_FINITE:
        return Trouble.DUR_NON_FINITE
    if NUMBER.fullmatch(text) is None:
        return Trouble.DUR_NOT_NUMBER
    return Trouble.DUR_HUGE if math.isfinite(float(text)) else Trouble.DUR_NON_FINITE


def _text_or_none(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _id(value: Any) -> int | str:
    """Return a process or thread id; text where it is no integer."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _INT64:
        return value
    return _text_or_none(value) or ""


def _args(raw: msgspec.Raw, troubles: Counter[Trouble]) -> Args:
    if raw is NOTHING:
        return NO_ARGS
    try:
        values = _by_key.decode(raw)
    except msgspec.ValidationError:
        troubles[Trouble.ODD_ARGS] += 1
        return NO_ARGS
    found: dict[str, Any] = {}
    for attribute, key in ARG_KEYS.items():
        if key in values:
            value = decode(values[key])
            found[attribute] = values[key] if attribute in _RAW_ARGS else _argument(attribute, value)
            lost = attribute in _IDS and found[attribute] == ABSENT and value not in (None, ABSENT)
            troubles[Trouble.ODD_ARGS] += lost
    return Args(**found)


def _argument(attribute: str, value: Any) -> Any:
    if attribute in _FLOAT_ARGS:
        return float(value) if isinstance(value, int | float) and abs(value) < _INT64 else math.nan
    return number(value) if isinstance(value, int | float | str) else ABSENT
