"""Runs recorded on a CPU by a schedule of 6 cycles; what changes in the fourth is known."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tracehunch.compare.over_time import cycle_of, over_time
from tracehunch.trace import read

RUNS = Path(__file__).parents[2] / "data" / "over_time"


def files_of(name):
    return sorted((RUNS / name).iterdir())


@cache
def read_cycle(path):
    return cycle_of(read(path), str(path))


@cache
def reported(name):
    return over_time([read_cycle(path) for path in files_of(name)])


@pytest.fixture(scope="session")
def files():
    """The files of a run, in order of time: the handler's names rise."""
    return files_of


@pytest.fixture(scope="session")
def cycles():
    """The cycles of a run, each read once."""
    return lambda name: [read_cycle(path) for path in files_of(name)]


@pytest.fixture(scope="session")
def run_of():
    """The only run of a report on such a run."""
    return lambda name: reported(name).runs[0]


@pytest.fixture(scope="session")
def report():
    """A report on such a run."""
    return reported
