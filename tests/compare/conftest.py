"""Looks at real traces, and counts over their raw JSON made without tracehunch."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from tracehunch.compare import diff
from tracehunch.judge import examine
from tracehunch.trace import read

DATA = Path(__file__).parents[1] / "data"
GPU = {"kernel", "gpu_memcpy", "gpu_memset"}


@cache
def look(name: str):
    return examine(read(DATA / f"{name}.json.gz"))


@cache
def compared(before: str, after: str):
    return diff(look(before), look(after))


@pytest.fixture(scope="session")
def seen():
    """A look at a trace of tests/data, such as h200/seeds/naive; each is read once."""
    return look


@pytest.fixture(scope="session")
def changed():
    """Two traces compared."""
    return compared


@cache
def raw(name: str) -> list[dict]:
    with gzip.open(DATA / f"{name}.json.gz") as file:
        return [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]


def raw_activities(name: str, scope: str) -> list[list[dict]]:
    """GPU events of each call of an annotation: by the launch with their correlation, and its thread."""
    events = raw(name)
    calls = [e for e in events if e.get("cat") == "user_annotation" and e["name"] == scope]
    launches = {
        e["args"]["correlation"]: e
        for e in events
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})
    }
    found = [[] for _ in calls]
    for event in events:
        launch = launches.get(event.get("args", {}).get("correlation")) if event.get("cat") in GPU else None
        for number, call in enumerate(calls) if launch else ():
            inside = call["ts"] <= launch["ts"] <= call["ts"] + call["dur"]
            if inside and launch["tid"] == call["tid"]:
                found[number].append(event)
    return found


def raw_median(name: str, scope: str, wanted) -> tuple[float, float]:
    """Median over the calls of how many activities satisfy ``wanted``, and of the sum of their times."""
    calls = raw_activities(name, scope)
    chosen = [[event for event in call if wanted(event)] for call in calls]
    counts = median([len(call) for call in chosen])
    return counts, median([sum(event["dur"] for event in call) for call in chosen])


@pytest.fixture(scope="session")
def counted():
    """``raw_median``."""
    return raw_median


@pytest.fixture(scope="session")
def raw_events():
    """Complete events of a trace as the file has them."""
    return raw


@pytest.fixture(scope="session")
def by_name():
    """Times a call of an annotation by the name of the GPU event, from the raw JSON."""

    def _by_name(name: str, scope: str) -> dict[str, float]:
        calls = raw_activities(name, scope)
        found = defaultdict(lambda: [0.0] * len(calls))
        for number, call in enumerate(calls):
            for event in call:
                found[event["name"]][number] += event["dur"]
        return {key: median(times) for key, times in found.items()}

    return _by_name
