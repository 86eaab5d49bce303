import gzip
import itertools
import json
import signal
import sys
from collections import defaultdict

import pytest

torch = pytest.importorskip("torch")

from tracehunch.capture.others import is_alone  # noqa: E402  # after importorskip
from tracehunch.capture.profiler import profile_calls  # noqa: E402  # as above


def load(path):
    with gzip.open(path) as file:
        return json.load(file)


def annotations(trace, name):
    rows = trace["traceEvents"]
    return [
        event for event in rows if event.get("cat") == "user_annotation" and event["name"].startswith(name)
    ]


def test_only_the_active_steps_are_recorded_under_the_label(tmp_path):
    calls = []
    x = torch.ones(4)

    def forward():
        calls.append(1)
        return x + x

    path = profile_calls(forward, tmp_path / "add.json.gz", label="adding", steps=2, warmup=3)
    trace = load(path)
    assert len(calls) == 3 + 1 + 1 + 2
    assert len(annotations(trace, "adding")) == 2
    assert [step["name"] for step in annotations(trace, "ProfilerStep")] == [
        "ProfilerStep#2",
        "ProfilerStep#3",
    ]
    adds = [event for event in trace["traceEvents"] if event["name"] == "aten::add"]
    assert len(adds) == 2
    assert adds[0]["args"]["Input Dims"] == [[4], [4], []]


def test_metadata_becomes_top_level_keys_and_never_breaks_the_file(tmp_path):
    said = {"torch_version": '2.x "quoted" \\ back\nslash', "other": "ü"}
    trace = load(
        profile_calls(lambda: torch.ones(1), tmp_path / "t.json.gz", label="l", steps=1, metadata=said)
    )
    assert trace["torch_version"] == "2.x 'quoted' / back?slash"
    assert trace["other"] == "ü"


def test_what_the_function_raises_is_passed_on_and_leaves_the_profiler_usable(tmp_path):
    def fails():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        profile_calls(fails, tmp_path / "t.json.gz", label="l", steps=1)
    calls = iter(range(9))

    def fails_late():
        if next(calls) == 3:
            raise ValueError("late")

    with pytest.raises(ValueError, match="late"):
        profile_calls(fails_late, tmp_path / "t.json.gz", label="l", steps=3)
    assert profile_calls(lambda: torch.ones(1), tmp_path / "ok.json.gz", label="l", steps=1).exists()


class Interrupted:
    """Interrupts the process when that many lines of the recorder and of torch's profiler have run."""

    WHERE = ("capture/recorder.py", "capture/profiler.py", "torch/profiler/", "torch/autograd/profiler.py")

    def __init__(self, after):
        self.left = after

    def __enter__(self):
        self.handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.tracer = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_):
        sys.settrace(self.tracer)
        signal.signal(signal.SIGINT, self.handler)

    def _call(self, frame, _event, _arg):
        return self._line if any(one in frame.f_code.co_filename for one in self.WHERE) else None

    def _line(self, _frame, event, _arg):
        self.left -= event == "line"
        if not self.left:
            sys.settrace(None)
            signal.raise_signal(signal.SIGINT)
        return self._line


def test_wherever_it_is_interrupted_no_profiler_is_left_running(tmp_path, monkeypatch):
    """The trace of it would be lost, the next one refused, and the process would crash when it ends."""
    # whatever other tests have made and never ended does not count
    monkeypatch.setattr(torch.autograd.profiler.KinetoStepTracker, "_step_dict", defaultdict(int))
    path = tmp_path / "t.json"
    for after in itertools.count(17, 40):
        with Interrupted(after) as interruption:
            try:
                profile_calls(lambda: torch.ones(1), path, label="ones", steps=2)
            except KeyboardInterrupt:
                assert not torch.autograd._profiler_enabled(), after
                assert is_alone(torch), after
        if interruption.left > 0:
            break
    assert after > 500
    rows = json.loads(path.read_text())["traceEvents"]
    assert sum(one["name"] == "aten::ones" for one in rows) == 2
