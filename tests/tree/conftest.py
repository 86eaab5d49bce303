"""Traces made of a few events."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tracehunch.trace import read_bytes
from tracehunch.trace.model import Trace

Event = dict[str, Any]
PID, TID = 100, 100


class Events(list[Event]):
    """Events in file order; times are microseconds."""

    def host(self, cat: str, name: str, ts: float, dur: float, **args: Any) -> "Events":
        place = {key: args.pop(key) for key in ("pid", "tid") if key in args}
        self.append(
            {"ph": "X", "cat": cat, "name": name, "pid": PID, "tid": TID, "ts": ts, "dur": dur, "args": args}
            | place
        )
        return self

    def op(self, name: str, ts: float, dur: float, **args: Any) -> "Events":
        return self.host("cpu_op", name, ts, dur, **args)

    def note(self, name: str, ts: float, dur: float, **args: Any) -> "Events":
        return self.host("user_annotation", name, ts, dur, **args)

    def launch(
        self, ts: float, correlation: int, *, name: str = "cudaLaunchKernel", dur: float = 1, **args: Any
    ) -> "Events":
        return self.host("cuda_runtime", name, ts, dur, correlation=correlation, **args)

    def kernel(
        self, ts: float, correlation: int, *, name: str = "k", dur: float = 5, device: int = 0, **args: Any
    ) -> "Events":
        stream = args.pop("stream", 7)
        found = {"device": device, "stream": stream, "correlation": correlation, **args}
        self.append(
            {
                "ph": "X",
                "cat": "kernel",
                "name": name,
                "pid": device,
                "tid": stream,
                "ts": ts,
                "dur": dur,
                "args": found,
            }
        )
        return self


@pytest.fixture
def trace_of() -> Callable[[list[Event]], Trace]:
    """Events -> Trace."""
    return lambda events: read_bytes(json.dumps({"traceEvents": events}).encode(), "made.json")


@pytest.fixture
def events() -> "Events":
    """An empty list of events."""
    return Events()
