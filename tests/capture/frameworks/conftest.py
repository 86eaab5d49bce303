"""What a written trace holds, counted over its raw JSON, and a recorder that always ends."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch.capture.frameworks import training

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def names_in(path: Path) -> Counter[str]:
    """How often each annotation and op stands in a trace."""
    document = json.loads(gzip.decompress(path.read_bytes()))
    kinds = {"user_annotation", "cpu_op"}
    return Counter(one["name"] for one in document["traceEvents"] if one.get("cat") in kinds)


def profiler_steps(names: Counter[str]) -> list[str]:
    return sorted(name for name in names if name.startswith("ProfilerStep#"))


@pytest.fixture
def count() -> Callable[[Path], Counter[str]]:
    return names_in


@pytest.fixture
def steps() -> Callable[[Counter[str]], list[str]]:
    return profiler_steps


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """No profiler, no hook and no recorder survives a test."""
    yield
    left = list(training._open)
    for one in left:
        one.end()
    assert left == []
    assert not _torch_is_recording()


def _torch_is_recording() -> Any:
    torch = pytest.importorskip("torch")
    return torch.autograd.profiler._is_profiler_enabled
