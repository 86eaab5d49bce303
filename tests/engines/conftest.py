"""The tasks must be importable by other processes, which search where this one does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracehunch.trace.discover import Source


@pytest.fixture
def tasks(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import tasks_of_engines  # noqa: PLC0415  # found only now

    return tasks_of_engines


@pytest.fixture
def sources(tmp_path):
    def make(*names):
        return [Source(str(tmp_path / name), name, 1) for name in names]

    return make
