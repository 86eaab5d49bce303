"""The fitting script, which lies beside the package and not in it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "attention_fit.py"


@pytest.fixture(scope="session")
def attention_fit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("attention_fit", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["attention_fit"] = module
    spec.loader.exec_module(module)
    return module
