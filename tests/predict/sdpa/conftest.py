"""Calls and environments for the tests of the dispatcher's rules."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from tracehunch.predict.environment import Environment, environment
from tracehunch.predict.sdpa import SdpaCall, sdpa_call

TRUTH = Path(__file__).parents[2] / "data" / "truth"


@pytest.fixture(scope="session")
def grid() -> list[str]:
    """Lines of the calls that PyTorch answered on an H200; the first one names the machine."""
    with gzip.open(TRUTH / "sdpa_grid_h200.jsonl.gz", "rt", encoding="utf-8") as file:
        return file.read().splitlines()


@pytest.fixture
def on():
    """Make the environment of a GPU, with changes."""

    def make(gpu: str, torch: str = "2.13", **changes) -> Environment:
        return replace(environment(gpu, torch), **changes)

    return make


@pytest.fixture
def call():
    """Make a bfloat16 call of (2, 8, 1024, 128), with changes."""

    def make(**changes) -> SdpaCall:
        given = {"batch": 2, "heads": 8, "length": 1024, "head_dim": 128} | changes
        return sdpa_call(**given)

    return make


@pytest.fixture(scope="session")
def tensors() -> list[str]:
    """Lines of calls with the strides and offsets of their tensors, answered and executed on an H200."""
    with gzip.open(TRUTH / "sdpa_tensors_h200.jsonl.gz", "rt", encoding="utf-8") as file:
        return file.read().splitlines()
