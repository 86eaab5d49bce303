import pytest

torch = pytest.importorskip("torch")

from tracehunch.capture import others  # noqa: E402  # after importorskip
from tracehunch.capture.recorder import Recorder, Recording  # noqa: E402  # torch is needed for what follows


def test_an_open_annotation_does_not_write_to_a_recording_that_has_ended(tmp_path):
    recorder = Recorder(tmp_path / "t.json", Recording(skip=0, warmup=0, steps=1, cuda=False))
    recorder.start()
    with torch.profiler.record_function("epoch") as scope:
        handle = scope.record
        recorder.step()
        assert recorder.detached
        assert scope.record is not handle


def test_a_recorder_lets_others_give_way_before_it_looks_for_them(tmp_path, monkeypatch):
    other = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    other.start()
    monkeypatch.setattr(others, "gives_way", [other.stop])
    recorder = Recorder(tmp_path / "t.json", Recording(cuda=False))
    recorder.start()
    recorder.stop()
    assert recorder.detached
