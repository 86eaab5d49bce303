"""Small traces whose critical path is known: what the host does, what it launches, what it waits for."""

from __future__ import annotations

import json
from typing import Any

from tracehunch.compare.critical import CriticalPath, critical_path
from tracehunch.judge import examine
from tracehunch.trace import read_bytes

MAIN, ENGINE = 100, 101


class Made:
    """Events in microseconds, by begin and end; a launch and its activity share a number."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._number = 0

    def add(self, cat: str, name: str, begin: float, end: float, tid: int = MAIN, **args: Any) -> int:
        """Add any row of the host; return its position."""
        row = {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": begin, "dur": end - begin}
        self.events.append({**row, "args": args})
        return len(self.events) - 1

    def step(self, number: int, begin: float, end: float) -> int:
        """Add a profiler step."""
        return self.add("user_annotation", f"ProfilerStep#{number}", begin, end)

    def op(self, name: str, begin: float, end: float, tid: int = MAIN, **args: Any) -> int:
        """Add an op."""
        return self.add("cpu_op", name, begin, end, tid, **args)

    def call(self, name: str, begin: float, end: float, tid: int = MAIN) -> int:
        """Add a runtime call that launches nothing; return its correlation."""
        self._number += 1
        self.add("cuda_runtime", name, begin, end, tid, correlation=self._number)
        return self._number

    def gpu(
        self,
        name: str,
        begin: float,
        end: float,
        *,
        stream: int = 7,
        of: int = 0,
        cat: str = "kernel",
        device: int = 0,
        **more: int,
    ) -> None:
        """Add an activity of a launch."""
        row = {"ph": "X", "cat": cat, "name": name, "pid": device, "tid": stream, "ts": begin}
        row["dur"] = end - begin
        args = {"device": device, "stream": stream, "correlation": of, **more}
        self.events.append({**row, "args": args})

    def launch(  # a call and its kernel
        self,
        begin: float,
        end: float,
        kernel: str,
        start: float,
        stop: float,
        *,
        stream: int = 7,
        tid: int = MAIN,
    ) -> None:
        """Add a launch and its kernel."""
        self.gpu(kernel, start, stop, stream=stream, of=self.call("cudaLaunchKernel", begin, end, tid))

    def sync(self, kind: str, begin: float, end: float, **args: Any) -> None:
        """Add what the profiler records about synchronisation."""
        row = {
            "ph": "X",
            "cat": "cuda_sync",
            "name": kind,
            "pid": 0,
            "tid": -1,
            "ts": begin,
            "dur": end - begin,
        }
        self.events.append({**row, "args": {"cuda_sync_kind": kind, "device": 0, **args}})

    def path(self, scope: str | None = None) -> CriticalPath:
        """Return the critical path."""
        look = examine(read_bytes(json.dumps({"traceEvents": self.events}).encode(), label="made"))
        return critical_path(look.facts, scope)


def kinds(path: CriticalPath) -> dict[str, float]:
    """Microseconds by kind."""
    return {kind.value: time / 1e3 for kind, time in path.kinds}


def after(path: CriticalPath) -> dict[str, float | None]:
    """Microseconds by what-if."""
    return {one.id: None if one.after_ns is None else one.after_ns / 1e3 for one in path.what_ifs}
