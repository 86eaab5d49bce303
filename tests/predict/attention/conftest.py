"""Calls that were run on an H200 (torch 2.11, cuDNN 9.19), and how their activities are counted."""

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tracehunch.predict.activities import Activities
from tracehunch.predict.environment import environment

TRUTH = Path(__file__).parents[2] / "data" / "truth"


@dataclass(frozen=True)
class Counts:
    """Kernels, copies and memsets; None where a prediction cannot tell."""

    kernels: int | None
    copies: int | None
    memsets: int | None

    @classmethod
    def of_names(cls, names):
        copies = sum(name.startswith("Memcpy") for name in names)
        memsets = sum(name.startswith("Memset") for name in names)
        return cls(len(names) - copies - memsets, copies, memsets)

    @classmethod
    def of(cls, found: Activities):
        return cls(found.kernel_count, found.copy_count, found.memsets)


@cache
def _rows(name):
    with gzip.open(TRUTH / f"{name}_h200.jsonl.gz", "rt", encoding="utf-8") as file:
        return tuple(json.loads(line) for line in list(file)[1:])


@pytest.fixture(scope="session")
def truth():
    """Rows of a truth file."""
    return _rows


@pytest.fixture(scope="session")
def counts():
    return Counts


@pytest.fixture(scope="session")
def measured_env():
    """Where the truth was recorded."""
    return environment("h200", torch="2.11", cudnn=91900)
