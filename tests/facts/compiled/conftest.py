"""Facts of recorded traces of compiled code, each measured once."""

import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tracehunch.facts import measure
from tracehunch.facts.model import Facts
from tracehunch.trace import read, read_bytes
from tracehunch.tree import link

DATA = Path(__file__).parents[2] / "data"


@cache
def _facts(name: str) -> Facts:
    return measure(link(read(DATA / f"{name}.json.gz")))


@cache
def _events(name: str) -> list[dict[str, Any]]:
    document = json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))
    return [event for event in document["traceEvents"] if event.get("ph") == "X"]


@pytest.fixture(scope="session")
def facts_of() -> Callable[[str], Facts]:
    """Facts of a recorded trace, such as ``h200/ops/geglu_compiled``."""
    return _facts


@pytest.fixture(scope="session")
def events_of() -> Callable[[str], list[dict[str, Any]]]:
    """Its complete events as they are in the file, to count by other means."""
    return _events


@pytest.fixture(scope="session")
def facts_from() -> Callable[[list[dict[str, Any]]], Facts]:
    """Facts of a constructed trace."""
    return lambda events: measure(link(read_bytes(json.dumps({"traceEvents": events}).encode(), "made")))
