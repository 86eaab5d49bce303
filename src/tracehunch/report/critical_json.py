"""A critical path as JSON: the object ``critical_path`` in what ``look --critical-path`` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracehunch.report.json_report import Object, encode, json_text, look_object

if TYPE_CHECKING:
    from tracehunch.compare.critical import Contributor, CriticalPath, WhatIf
    from tracehunch.verdict import Look

_CONTRIBUTORS: Final = 100


def render(look: Look, path: CriticalPath) -> bytes:
    """Return the Look's JSON with the path in it."""
    return encode({**look_object(look), "critical_path": path_object(path)})


def path_object(path: CriticalPath) -> Object:
    """Return times in microseconds; ``kinds_us`` sums to ``duration_us``. What cannot be told is absent."""
    event: Object = {} if path.event is None else {"event": path.event}
    return {
        "scope": json_text(path.scope),
        "call": json_text(path.name),
        "chosen": path.chosen,
        "calls": path.calls,
        **event,
        "start_us": path.start_ns / 1e3,
        "duration_us": path.length_ns / 1e3,
        "host_us": path.host_ns / 1e3,
        "begins_after_us": path.before_ns / 1e3,
        "residual_us": path.residual_ns / 1e3,
        "kinds_us": {kind.value: time / 1e3 for kind, time in path.kinds},
        "longest": [_contributor(one) for one in path.contributors[:_CONTRIBUTORS]],
        "what_if": [_what_if(one, path) for one in path.what_ifs],
        "notes": list(path.notes),
    }


def _contributor(one: Contributor) -> Object:
    detail: Object = {"detail": json_text(one.detail)} if one.detail else {}
    return {
        "kind": one.kind.value,
        "name": json_text(one.name),
        **detail,
        "time_us": one.time_ns / 1e3,
        "times": one.stretches,
        "evidence": list(one.events),
    }


def _what_if(one: WhatIf, path: CriticalPath) -> Object:
    found: dict[str, Any] = {"id": json_text(one.id), "if": json_text(one.title)}
    if one.after_ns is None:
        return {**found, "cannot_tell": one.why}
    found |= {"duration_us": one.after_ns / 1e3}
    if path.length_ns:
        found["change"] = (one.after_ns - path.length_ns) / path.length_ns
    return {**found, "then": one.then.value} if one.then else found
