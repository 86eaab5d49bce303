"""Small traces, in the layouts in which the world writes them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

HEADER = '"schemaVersion": 1,\n  "deviceProperties": [\n  ],\n  "record_shapes": 1,\n  '


def kineto(events: list[dict[str, Any]]) -> bytes:
    """As libkineto's writer indents."""
    body = ",\n".join("  " + _event(event) for event in events)
    return f'\n{{\n  {HEADER}"traceEvents": [\n{body}\n  ],\n  "traceName": "a]b}}"\n}}\n'.encode()


def _event(event: dict[str, Any]) -> str:
    plain = ", ".join(f"{json.dumps(k)}: {_number(v)}" for k, v in event.items() if k != "args")
    arguments = (
        f',\n    "args": {{\n      {json.dumps(event["args"])[1:-1]}\n    }}' if "args" in event else ""
    )
    return f"{{\n    {plain}{arguments}\n  }}"


def _number(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else json.dumps(value)


def compact(events: list[dict[str, Any]]) -> bytes:
    """As json.dumps without spaces."""
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, separators=(",", ":")).encode()


def exported(events: list[dict[str, Any]]) -> bytes:
    """As json.dump with an indent, keys before and after."""
    return json.dumps({"schemaVersion": 1, "traceEvents": events, "traceName": "x"}, indent=2).encode()


def array(events: list[dict[str, Any]]) -> bytes:
    """The array form."""
    return json.dumps(events, ensure_ascii=False).encode()


def open_array(events: list[dict[str, Any]]) -> bytes:
    """The array form without its closing bracket, one event a line."""
    return ("[\n" + ",\n".join(json.dumps(event) for event in events)).encode()


def complete(**changes: Any) -> dict[str, Any]:
    """A complete event, with changes."""
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::mm",
        "pid": 1,
        "tid": 1,
        "ts": 10.0,
        "dur": 5.0,
        **changes,
    }


def kernel(ts: float, dur: float, **changes: Any) -> dict[str, Any]:
    """A kernel on device 0, stream 7."""
    arguments = {"device": 0, "stream": 7, "correlation": 1, **changes.pop("args", {})}
    place = {"pid": 0, "tid": 7, **changes}
    return complete(**{"cat": "kernel", "name": "k", "ts": ts, "dur": dur, **place, "args": arguments})


@pytest.fixture(scope="session")
def made() -> SimpleNamespace:
    """The makers above: layouts by name, and events."""
    return SimpleNamespace(
        kineto=kineto,
        compact=compact,
        exported=exported,
        array=array,
        open_array=open_array,
        complete=complete,
        kernel=kernel,
    )
