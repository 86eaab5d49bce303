"""The fitting scripts, which lie beside the package and not in it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

BENCHMARKS = str(Path(__file__).parents[3] / "benchmarks")


def _script(name: str) -> ModuleType:
    sys.path.insert(0, BENCHMARKS)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(BENCHMARKS)


@pytest.fixture(scope="session")
def attention_truth() -> ModuleType:
    return _script("attention_truth")


@pytest.fixture(scope="session")
def attention_fit() -> ModuleType:
    return _script("attention_fit")
