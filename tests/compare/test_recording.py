"""What recording costs on the host, and when a difference is real in spite of it."""

from dataclasses import replace

import pytest

from tracehunch.compare.recording import host_compares, is_real, recorded_text
from tracehunch.trace.model import Recorded


@pytest.fixture
def trace(seen):
    def _trace(**flags):
        recorded = Recorded(**{"shapes": False, "stacks": False, "memory": False, "modules": False, **flags})
        base = seen("h200/seeds/naive").facts.tree.trace
        return replace(base, header=replace(base.header, recorded=recorded))

    return _trace


def test_the_same_recording_compares(trace):
    assert host_compares(trace(shapes=True), trace(shapes=True))
    assert is_real(trace(), trace(), 1.0)
    assert is_real(trace(), trace(), -1.0)


def test_slower_although_less_was_recorded_is_real_and_the_other_way_round(trace):
    assert not host_compares(trace(stacks=True), trace())
    assert is_real(trace(stacks=True), trace(), 1.0)
    assert not is_real(trace(stacks=True), trace(), -1.0)
    assert is_real(trace(), trace(stacks=True), -1.0)
    assert not is_real(trace(), trace(stacks=True), 1.0)


def test_neither_more_nor_less_tells_nothing(trace):
    assert not is_real(trace(stacks=True), trace(memory=True), 1.0)
    assert not is_real(trace(stacks=True), trace(memory=True), -1.0)


def test_words(trace):
    assert recorded_text(trace(shapes=True, memory=True)) == "shapes and memory"
    assert recorded_text(trace()) == "neither shapes nor stacks"


def test_a_stall_in_a_trace_that_recorded_less_is_a_regression(changed):
    found = changed("h200/faults/clean", "h200/faults/cpu_stall")
    assert any(
        one.severity == "warning" and "step is slower: wall time" in one.text for one in found.regressions
    )
