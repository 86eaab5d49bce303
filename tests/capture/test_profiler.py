import gzip
import json

import pytest

torch = pytest.importorskip("torch")

from tracehunch.capture.profiler import profile_calls  # noqa: E402  # after importorskip


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
