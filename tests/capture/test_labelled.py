from __future__ import annotations

import pytest

from tracehunch import look
from tracehunch.capture.labelled import record_block, record_calls
from tracehunch.capture.recorder import Recording
from tracehunch.errors import CaptureError

torch = pytest.importorskip("torch")


def test_calls_are_recorded_after_those_that_are_not_and_the_last_result_comes_back(tmp_path):
    calls = []

    def function():
        calls.append(torch.ones(3).sum())
        return len(calls)

    path = tmp_path / "calls.json.gz"
    assert record_calls(function, path, "mine", Recording(skip=1, warmup=1, steps=2), first=3) == 7
    scope = look(path).facts.scope("mine")
    assert len(scope.scope.calls) == 2
    assert {call.ops.size for call in scope.scope.calls} == {scope.scope.calls[0].ops.size}


def test_a_block_is_recorded_once(tmp_path):
    path = tmp_path / "block.json"
    with record_block(path, "mine", Recording(skip=0, warmup=0, from_start=True)):
        torch.ones(3).sum()
    assert len(look(path).facts.scope("mine").scope.calls) == 1


def test_what_is_raised_goes_on_and_another_recording_can_follow(tmp_path):
    once = Recording(skip=0, warmup=0, from_start=True)
    with pytest.raises(ZeroDivisionError):
        record_calls(lambda: 1 / 0, tmp_path / "calls.json", "mine", Recording(), first=0)
    with pytest.raises(ZeroDivisionError), record_block(tmp_path / "block.json", "mine", once):
        1 / 0  # noqa: B018  # for what it raises
    with record_block(tmp_path / "block.json", "mine", once):
        pass


def test_a_second_profiler_is_refused(tmp_path):
    once = Recording(skip=0, warmup=0, from_start=True)
    with (
        record_block(tmp_path / "outer.json", "outer", once),
        pytest.raises(CaptureError),
        record_block(tmp_path / "inner.json", "inner", once),
    ):
        pass
