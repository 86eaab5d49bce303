import gc
import gzip
import json
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

from tracehunch.capture.export import UNFINISHED  # noqa: E402  # after importorskip
from tracehunch.capture.recorder import Recorder, Recording  # noqa: E402  # torch is needed for what follows
from tracehunch.errors import CaptureError  # noqa: E402  # torch is needed for what follows

CPU = torch.profiler.ProfilerActivity.CPU


def rows(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)["traceEvents"]


def named(path, category="user_annotation"):
    return [event["name"] for event in rows(path) if event.get("cat") == category]


def record(path, n_steps, **options):
    """Run ``n_steps`` steps, each with as many ops of its own size as its number says."""
    recorder = Recorder(path, Recording(cuda=False, **options))
    recorder.start()
    for step in range(1, n_steps + 1):
        torch.ones(step)
        recorder.step()
    recorder.stop()
    return recorder


def sizes(path):
    """The steps that are in a trace, by the size that each fills."""
    return [event["args"]["Input Dims"][0][0] for event in rows(path) if event["name"] == "aten::fill_"]


def test_the_schedule_is_skip_warmup_steps_and_then_nothing(tmp_path):
    recorder = record(tmp_path / "t.json.gz", 9, skip=2, warmup=1, steps=3)
    assert sizes(tmp_path / "t.json.gz") == [4, 5, 6]
    assert (recorder.detached, recorder.steps_recorded, recorder.reason) == (True, 3, "")
    assert recorder.trace_path == tmp_path / "t.json.gz"


def test_a_detached_recorder_holds_no_profiler_and_leaves_the_file_alone(tmp_path):
    recorder = record(tmp_path / "t.json", 3, skip=0, warmup=0, steps=1)
    before = (tmp_path / "t.json").stat()
    for _ in range(3):
        torch.ones(5)
        recorder.step()
    recorder.stop()
    assert recorder._profiler is None
    assert not torch.autograd._profiler_enabled()
    assert (tmp_path / "t.json").stat() == before


@pytest.mark.parametrize(
    ("n_steps", "recorded", "reason"),
    [
        (0, None, "it ended after 0 steps, and the first 2 steps only warm up"),
        (1, None, "it ended after 1 step, and the first 2 steps only warm up"),
        (2, None, "it ended after 2 steps, and the first 2 steps only warm up"),
        (3, [3], "ended after 1 of 3 steps"),
        (4, [3, 4], "ended after 2 of 3 steps"),
    ],
)
def test_an_early_end_keeps_the_steps_there_were_and_says_what_is_missing(
    tmp_path, n_steps, recorded, reason
):
    path = tmp_path / "t.json"
    recorder = record(path, n_steps, label="label")
    assert (sizes(path) if recorder.trace_path else None) == recorded
    assert path.exists() == (recorded is not None)
    assert (recorder.reason, recorder.steps_recorded) == (reason, len(recorded or []))


@pytest.mark.parametrize(
    ("n_steps", "recorded", "reason"),
    [
        (0, [], ""),
        (1, [1], "it ended after 1 step, which is what was recorded"),
        (2, [1], "only the first of 2 steps was recorded"),
        (3, [3], "ended after 1 of 2 steps"),
        (4, [3, 4], ""),
        (7, [3, 4], ""),
    ],
)
def test_from_start_keeps_the_first_step_until_better_ones_are_there(tmp_path, n_steps, recorded, reason):
    recorder = record(tmp_path / "t.json", n_steps, from_start=True, skip=0, warmup=1, steps=2, label="label")
    assert sizes(tmp_path / "t.json") == recorded
    assert recorder.reason == reason
    assert recorder.steps_recorded == (len(recorded))


def test_what_had_not_ended_is_no_step_and_no_call(tmp_path):
    path = tmp_path / "t.json"
    record(path, 4, skip=1, warmup=1, steps=9, label='la"bel\\')
    assert named(path).count("la'bel/") == 2
    assert sum(name.startswith("ProfilerStep") for name in named(path)) == 2
    assert named(path, UNFINISHED) == ["ProfilerStep#4", "la'bel/"]


def test_an_exception_goes_on_and_leaves_what_was_recorded(tmp_path):
    recorder = Recorder(tmp_path / "t.json", Recording(skip=0, warmup=0, steps=5, cuda=False, label="label"))
    with pytest.raises(KeyboardInterrupt):
        interrupted(recorder)
    assert sizes(tmp_path / "t.json") == [1, 2]
    assert named(tmp_path / "t.json").count("label") == 1


def interrupted(recorder):
    recorder.start()
    try:
        torch.ones(1)
        recorder.step()
        torch.ones(2)
        raise KeyboardInterrupt
    finally:
        recorder.stop()


def test_nothing_lies_beside_the_trace(tmp_path):
    record(tmp_path / "made" / "t.json.gz", 4, skip=0, warmup=0)
    assert [one.name for one in (tmp_path / "made").iterdir()] == ["t.json.gz"]


def test_a_trace_that_cannot_be_written_is_told_and_not_raised(tmp_path):
    folder = tmp_path / "gone"
    recorder = Recorder(folder / "t.json", Recording(skip=0, warmup=0, steps=1, cuda=False))
    recorder.start()
    folder.rmdir()
    folder.write_text("a file where the folder was")
    torch.ones(1)
    recorder.step()
    assert recorder.detached
    assert recorder.trace_path is None
    assert "could not be written" in recorder.reason


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("t.txt", {}, "ends neither in .json nor in .json.gz"),
        ("folder.json", {}, "it is a folder"),
        ("t.json", {"steps": 0}, "at least one step"),
        ("t.json", {"skip": -1}, "skip and warm up none or more"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(tmp_path, name, options, said):
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(CaptureError, match=said):
        Recorder(tmp_path / name, Recording(cuda=False, **options)).start()


def test_making_a_recorder_touches_nothing(tmp_path):
    Recorder(tmp_path / "made" / "t.json")
    assert not (tmp_path / "made").exists()


def test_a_recorder_records_once(tmp_path):
    recorder = record(tmp_path / "t.json", 1)
    with pytest.raises(CaptureError, match="started before"):
        recorder.start()


def test_a_profiler_that_records_or_warms_up_is_not_disturbed(tmp_path):
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1)
    own = torch.profiler.profile(activities=[CPU], schedule=schedule)
    own.start()
    refused = []
    for step in range(3):
        torch.ones(step + 1)
        try:
            recorder = Recorder(tmp_path / "t.json", Recording(cuda=False))
            recorder.start()
            recorder.stop()
            refused.append(False)
        except CaptureError as error:
            refused.append("already running" in str(error))
        own.step()
    own.stop()
    assert refused == [False, True, True]
    assert any(event.name == "aten::ones" for event in own.events())


def test_a_profiler_in_another_thread_counts(tmp_path):
    begun, ended = threading.Event(), threading.Event()

    def other():
        with torch.profiler.profile(activities=[CPU]):
            begun.set()
            ended.wait(120)

    thread = threading.Thread(target=other)
    thread.start()
    assert begun.wait(120)
    try:
        with pytest.raises(CaptureError, match="already running"):
            Recorder(tmp_path / "t.json", Recording(cuda=False)).start()
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("during", ["skip", "warmup"])
def test_a_profiler_that_the_program_starts_goes_first(tmp_path, during):
    recorder = Recorder(tmp_path / "t.json", Recording(cuda=False))
    recorder.start()
    if during == "warmup":
        recorder.step()
    with torch.profiler.profile(activities=[CPU]) as own:
        torch.ones(3)
        if during == "skip":
            recorder.step()
            recorder.step()
    recorder.step()
    recorder.stop()
    assert recorder.reason == "another profiler was started in the program"
    assert recorder.trace_path is None
    assert [event.name for event in own.events()].count("aten::ones") == 1
    assert sizes(record(tmp_path / "next.json", 5).trace_path) == [3, 4, 5]


def test_options_reach_the_profiler(tmp_path):
    path = tmp_path / "t.json"
    record(path, 1, skip=0, warmup=0, steps=1, shapes=False, stacks=True, memory=True, metadata={"run": "7"})
    whole = json.loads(path.read_text())
    assert whole["run"] == "7"
    assert whole["with_stack"] == 1
    assert whole["profile_memory"] == 1
    assert not whole.get("record_shapes")
    assert "versions" in whole["tracehunch_environment"]
    assert whole["host_name"] == ""


def test_the_environment_is_that_of_the_recorded_steps(tmp_path):
    recorder = Recorder(tmp_path / "t.json", Recording(skip=1, warmup=0, steps=1, cuda=False))
    recorder.start()
    before = torch.backends.cuda.flash_sdp_enabled()
    try:
        torch.backends.cuda.enable_flash_sdp(not before)
        recorder.step()
        recorder.step()
    finally:
        torch.backends.cuda.enable_flash_sdp(before)
    flags = json.loads((tmp_path / "t.json").read_text())["tracehunch_environment"]["flags"]
    assert flags["sdp_flash"] == str(not before)


def test_pytorch_warns_of_nothing_that_was_asked_for(tmp_path, recwarn):
    record(tmp_path / "t.json", 9, from_start=True, skip=0, warmup=0)
    assert [str(one.message) for one in recwarn] == []


def test_a_step_after_the_end_runs_no_code_of_torch(tmp_path):
    recorder = record(tmp_path / "t.json", 9)
    called = []
    gc.disable()  # what it finalizes may be Python code of others
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    recorder.step()
    sys.setprofile(None)
    gc.enable()
    assert called == ["step"]
