import json

import pytest

torch = pytest.importorskip("torch")

import tracehunch  # noqa: E402  # after importorskip
from tracehunch.errors import CaptureError, GuessError  # noqa: E402  # torch is needed for what follows

CPU = [torch.profiler.ProfilerActivity.CPU]


def finished():
    with torch.profiler.profile(activities=CPU, record_shapes=True) as profiler:
        torch.ones(3).exp()
    return profiler


def test_a_finished_profiler_is_looked_at_and_its_trace_kept():
    seen = tracehunch.look(finished())
    assert seen.scopes["aten::exp"].calls == 1
    assert seen.trace_path.name == "profile.json.gz"
    assert tracehunch.look(seen.trace_path).scopes["aten::exp"].calls == 1
    assert seen.facts.tree.trace.header.torch == torch.__version__
    assert not seen.facts.tree.trace.header.environment.flags  # which are not those of then any more


def test_the_older_profiler_too():
    with torch.autograd.profiler.profile(use_kineto=True) as profiler:
        torch.ones(3).exp()
    assert tracehunch.check({"scope": "whole", "leaf_ops": 3}, profiler).verdict.held


def test_in_on_trace_ready():
    seen = []
    with torch.profiler.profile(activities=CPU, on_trace_ready=lambda p: seen.append(tracehunch.look(p))):
        torch.ones(3).exp()
    assert seen[0].scopes["aten::exp"].calls == 1


def test_what_was_profiled_is_looked_at_in_its_file_and_without_one_the_reason_is_told():
    block = tracehunch.profile("block")
    with pytest.raises(CaptureError, match="no trace to look at: nothing was recorded yet"):
        tracehunch.look(block)
    with block:
        torch.ones(3).exp()
    assert tracehunch.look(block).trace_path == block.trace_path
    assert tracehunch.check({"scope": "block", "leaf_ops": 3}, block).verdict.held
    assert tracehunch.diff(block, block).new == ()


def test_a_profiler_without_a_trace_is_told_what_to_do():
    with (
        torch.profiler.profile(activities=CPU) as running,
        pytest.raises(CaptureError, match="still running"),
    ):
        tracehunch.look(running)
    assert tracehunch.look(running).facts  # it was not disturbed
    with pytest.raises(CaptureError, match="written before"):
        tracehunch.look(running)
    with pytest.raises(CaptureError, match="recorded nothing"):
        tracehunch.look(torch.profiler.profile(activities=CPU))
    with pytest.raises(CaptureError, match="cannot look at int"):
        tracehunch.look(7)


def profile_twice(folder, **options):
    ready = tracehunch.trace_ready(folder, **options)
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    with torch.profiler.profile(activities=CPU, schedule=schedule, on_trace_ready=ready) as profiler:
        for step in range(9):
            torch.ones(step + 1).exp()
            profiler.step()
    return ready


def test_each_cycle_of_a_profiler_is_a_file_with_the_environment_in_it(tmp_path):
    ready = profile_twice(tmp_path / "made", guess={"leaf_ops": 3})
    assert [one.name for one in ready.trace_paths] == ["trace_step4.json.gz", "trace_step8.json.gz"]
    assert sorted((tmp_path / "made").iterdir()) == sorted(ready.trace_paths)
    assert ready.trace_path == ready.trace_paths[-1]
    assert [one.claim.scope for one in ready.verdict.held] == ["ProfilerStep"]
    assert (ready.facts.calls, ready.facts["leaf_ops"]) == (2, 3)
    assert ready.look.facts.tree.trace.header.environment.flags


def test_no_file_is_overwritten_and_ranks_are_told_apart(tmp_path, monkeypatch):
    profile_twice(tmp_path)
    again = profile_twice(tmp_path)
    assert [one.name for one in again.trace_paths] == ["trace_step4_2.json.gz", "trace_step8_2.json.gz"]
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    ranked = profile_twice(tmp_path)
    assert ranked.trace_path.name == "trace_step8_rank1.json.gz"


def test_a_cycle_that_was_not_reached_is_told(tmp_path):
    with pytest.raises(CaptureError, match="not finished a cycle"):
        _ = tracehunch.trace_ready(tmp_path).look
    with pytest.raises(GuessError, match="unknown key"):
        tracehunch.trace_ready(tmp_path, guess={"kernls": 1})


def test_check_takes_claims_as_they_are_written(h200):
    path = h200 / "seeds/naive.json.gz"
    claims = {"kernels": 5, "copies": 0, "sdpa": {"backend": "none"}}
    for seen in (
        tracehunch.check({**claims, "scope": "attn_fwd"}, path),
        tracehunch.check(claims, path, scope="attn_fwd"),
        tracehunch.check(tracehunch.Guess.of(claims, scope="attn_fwd"), tracehunch.read(path)),
    ):
        assert [one.claim.key for one in seen.verdict.held] == ["kernels", "sdpa.backend"]
        assert [one.claim.key for one in seen.verdict.surprises] == ["copies"]
    with pytest.raises(GuessError, match="names no scope"):
        tracehunch.check(claims, path)


def test_the_file_that_was_looked_at_is_named(h200, tmp_path):
    path = h200 / "seeds/naive.json.gz"
    (tmp_path / "copy.json.gz").write_bytes(path.read_bytes())
    assert tracehunch.look(str(path)).trace_path == path
    assert tracehunch.look(tmp_path).trace_path == tmp_path / "copy.json.gz"
    assert tracehunch.look(tracehunch.read(path)).trace_path is None
    assert json.loads(tracehunch.look(path).to_json())["trace"]["gpu_activities"] == 23


def test_a_profiler_that_lost_its_trace_to_another_is_told_so():
    outer = torch.profiler.profile()
    outer.start()
    with torch.profiler.profile():
        torch.ones(3).relu()
    outer.stop()
    with pytest.raises(CaptureError, match="another profiler was started while it ran"):
        tracehunch.look(outer)


@pytest.mark.parametrize(
    ("wait", "active", "steps", "calls"),
    [(1, 2, 2, [1]), (1, 2, 3, [2]), (0, 2, 4, [2, 2]), (0, 2, 5, [2, 2, 1]), (1, 2, 1, [])],
)
def test_a_step_that_the_last_call_of_step_began_is_none(tmp_path, wait, active, steps, calls):
    ready = tracehunch.trace_ready(tmp_path, {"leaf_ops": 2})
    schedule = torch.profiler.schedule(wait=wait, warmup=0, active=active)
    with torch.profiler.profile(schedule=schedule, on_trace_ready=ready) as profiler:
        for _ in range(steps):
            torch.ones(3).relu_()
            profiler.step()
    scopes = [tracehunch.look(path).scopes["step"] for path in ready.trace_paths]
    assert [one.calls for one in scopes] == calls
    assert len({one["leaf_ops"] for one in scopes}) <= 1


def test_the_last_step_counts_where_each_begins_with_the_call_of_step(tmp_path):
    ready = tracehunch.trace_ready(tmp_path)
    schedule = torch.profiler.schedule(wait=1, warmup=0, active=2)
    with torch.profiler.profile(schedule=schedule, on_trace_ready=ready) as profiler:
        for _ in range(2):
            profiler.step()
            torch.ones(3).relu_()
    assert ready.facts.calls == 2


def test_looks_are_compared_by_identity(h200):
    path = h200 / "seeds/naive.json.gz"
    look = tracehunch.look(path)
    assert look == look  # noqa: PLR0124  # arrays in it would refuse to be compared
    assert look != tracehunch.look(path)
    assert len({look, look}) == 1
