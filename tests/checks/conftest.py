"""Traces through the whole way to facts, once a session."""

import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tracehunch.facts import Facts, measure
from tracehunch.trace import read, read_bytes
from tracehunch.tree import link

DATA = Path(__file__).parents[1] / "data" / "h200"


@cache
def _facts(name: str) -> Facts:
    return measure(link(read(DATA / f"{name}.json.gz")))


@pytest.fixture(scope="session")
def facts_of() -> Callable[[str], Facts]:
    """Facts of a recorded trace, such as ``seeds/naive``."""
    return _facts


@pytest.fixture(scope="session")
def recorded() -> list[str]:
    """Names of all recorded traces, as ``facts_of`` takes them."""
    return sorted(
        path.relative_to(DATA).as_posix().removesuffix(".json.gz") for path in DATA.rglob("*.json.gz")
    )


@pytest.fixture(scope="session")
def raw() -> Callable[[str], dict[str, Any]]:
    """A recorded trace as plain JSON, to count by other means or to change."""
    return lambda name: json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))


@pytest.fixture(scope="session")
def facts_from() -> Callable[[dict[str, Any]], Facts]:
    """Facts of a constructed trace."""
    return lambda document: measure(link(read_bytes(json.dumps(document).encode(), "constructed")))
