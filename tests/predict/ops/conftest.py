"""Operations that were run on an H200 (torch 2.11), and the scripts that read what else was measured."""

import gzip
import json
import sys
from functools import cache
from pathlib import Path

import pytest

from tracehunch.predict.environment import environment

ROOT = Path(__file__).parents[3]
TRUTH = ROOT / "tests" / "data" / "truth"
sys.path.insert(0, str(ROOT / "benchmarks"))


@cache
def _rows(name):
    with gzip.open(TRUTH / f"{name}_h200.jsonl.gz", "rt", encoding="utf-8") as file:
        return tuple(json.loads(line) for line in list(file)[1:])


@pytest.fixture(scope="session")
def truth():
    return _rows


@pytest.fixture(scope="session")
def h200():
    return environment("h200", "2.11")


@pytest.fixture(scope="session")
def a100():
    return environment("a100-80-sxm", "2.13")


def counts_of(names):
    memsets = sum(name.startswith("Memset") for name in names)
    copies = sum(name.startswith("Memcpy") for name in names)
    return len(names) - memsets - copies, copies, memsets


def counts(found):
    return found.kernel_count, found.copy_count, found.memsets


@pytest.fixture(scope="session")
def seen():
    """Return the function that counts kernels, copies and memsets of names."""
    return counts_of


@pytest.fixture(scope="session")
def guessed():
    """Return the function that counts them in a prediction."""
    return counts
