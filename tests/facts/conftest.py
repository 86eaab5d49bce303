"""Traces made of a few events, measured."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tracehunch.facts import measure
from tracehunch.facts.model import Facts
from tracehunch.trace import read_bytes
from tracehunch.tree import link

Row = dict[str, Any]


@pytest.fixture
def device() -> Row:
    """An H200 as a trace's header describes it."""
    memory = {
        "sharedMemPerBlock": 49152,
        "sharedMemPerBlockOptin": 232448,
        "sharedMemPerMultiprocessor": 233472,
    }
    threads = {"maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "warpSize": 32, "numSms": 132}
    registers = {"regsPerBlock": 65536, "regsPerMultiprocessor": 65536}
    name = {
        "id": 0,
        "name": "NVIDIA H200",
        "computeMajor": 9,
        "computeMinor": 0,
        "totalGlobalMem": 150109880320,
    }
    return name | threads | registers | memory


@pytest.fixture
def row() -> Callable[..., Row]:
    """An event: category, name, start, duration, arguments; ``tid`` among them is the thread."""

    def made(cat: str, name: str, ts: float, dur: float, **args: Any) -> Row:
        place = {"pid": 1, "tid": args.pop("tid", 1)}
        where = {"device": 0, "stream": 7} if cat.startswith(("kernel", "gpu_")) else {}
        return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "args": where | args} | place

    return made


@pytest.fixture
def facts_of() -> Callable[..., Facts]:
    """Events -> Facts; header keys as keyword arguments."""

    def made(events: list[Row], **header: Any) -> Facts:
        return measure(link(read_bytes(json.dumps({**header, "traceEvents": events}).encode(), "made.json")))

    return made
