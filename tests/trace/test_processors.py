"""A container's share of the processors counts, whatever the machine has."""

import os

import pytest

from tracehunch.trace import processors as module
from tracehunch.trace.processors import processors


@pytest.mark.parametrize(
    ("quota", "found"),
    [("max 100000", 4), ("250000 100000", 2), ("50000 100000", 1), ("900000 100000", 4), ("", 4)],
)
def test_of_four_processors_a_container_may_have_fewer_but_never_none(quota, found, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(module, "_QUOTA", tmp_path / "cpu.max")
    (tmp_path / "cpu.max").write_text(quota)
    assert processors() == found
    (tmp_path / "cpu.max").unlink()
    assert processors() == 4
