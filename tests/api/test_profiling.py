import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import tracehunch  # noqa: E402  # after importorskip
from tracehunch.errors import CaptureError, GuessError  # noqa: E402  # torch is needed for what follows


def softmax(times=1):
    for _ in range(times):
        torch.ones(8, 8).softmax(-1)


def profiled(label, *arguments, **options):
    return tracehunch.profile(label, *arguments, cuda=False, **options)


def test_a_block_is_one_call_of_its_label(tmp_path):
    softmax()
    with profiled("block", {"leaf_ops": 6, "sdpa.backend": "none"}, path=tmp_path / "t.json") as p:
        softmax(2)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [one["name"] for one in events].count("aten::_softmax") == 2
    assert p.trace_path == tmp_path / "t.json"
    assert (p.facts.calls, p.facts["leaf_ops"]) == (1, 6)
    assert [one.claim.key for one in p.verdict.held] == ["leaf_ops", "sdpa.backend"]
    assert p.verdict.surprises == ()
    assert p.look.verdict is p.verdict


def test_a_path_is_of_the_folder_that_was_the_current_one(tmp_path, monkeypatch):
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path)
    with profiled("block", path="t.json") as p:
        softmax()
        monkeypatch.chdir("else")
    assert p.trace_path == tmp_path / "t.json"
    assert p.facts["leaf_ops"] == 3


def test_a_broken_claim_is_a_surprise_and_an_undecidable_one_neither():
    with profiled("block", {"leaf_ops": 1, "gpu_time": "< 1s"}) as p:
        softmax()
    assert [(one.claim.key, one.seen) for one in p.verdict.surprises] == [("leaf_ops", 3)]
    assert [(one.key, one.scope) for one in p.verdict.cannot_tell] == [("gpu_time", "block")]


def test_a_loop_is_recorded_in_its_middle_and_left_alone_after():
    detached = []
    with profiled("step", steps=3) as p:
        for step in range(1, 9):
            softmax(step)
            p.step()
            detached.append(p.detached)
    assert detached == [False] * 4 + [True] * 4
    assert (p.facts.calls, p.steps_recorded, p.reason) == (3, 3, "")
    assert p.facts["leaf_ops"] == 4 * 3  # the median of steps 3, 4 and 5


def test_a_loop_that_ends_early_has_its_first_step(tmp_path):
    with profiled("step", path=tmp_path / "t.json.gz") as p:
        for _ in range(2):
            softmax()
            p.step()
    assert (p.facts.calls, p.facts["leaf_ops"]) == (1, 3)
    assert p.reason == "only the first of 2 steps was recorded"


def test_what_ends_within_the_steps_to_skip_has_no_trace():
    with profiled("step", skip=5) as p:
        softmax()
        p.step()
    assert p.trace_path is None
    with pytest.raises(CaptureError, match="no trace of step: it ended after 1 step"):
        _ = p.verdict


@pytest.mark.parametrize("kind", ["mapping", "file", "guess"])
def test_the_guess_is_sealed_before_the_block(tmp_path, kind):
    claims, hunch = {"leaf_ops": 3}, tmp_path / "hunch.toml"
    hunch.write_text('[[guess]]\nscope = "block"\nleaf_ops = 3\n')
    guess = tracehunch.Guess.of(claims, scope="block")
    p = profiled("block", {"mapping": claims, "file": hunch, "guess": guess}[kind])
    claims["leaf_ops"] = 99
    hunch.write_text("not toml any more")
    with p:
        softmax()
    assert p.guess.seal == guess.seal
    assert len(p.verdict.held) == 1


@pytest.mark.parametrize(
    ("guess", "said"),
    [
        ({"kernel": 5}, "did you mean kernels"),
        ({}, "claims nothing"),
        (7, "cannot be int"),
        ([{"kernels": 5}, 3], "cannot be list"),
        ("no such file.toml", "cannot read"),
        ({"scope": 3, "kernels": 5}, "names no scope"),
    ],
)
def test_a_guess_that_makes_no_sense_stops_before_the_block(guess, said):
    with pytest.raises(GuessError, match=said):
        profiled("block", guess)


def test_claims_may_name_other_scopes():
    guess = [{"leaf_ops": 3}, {"scope": "aten::softmax", "leaf_ops": 1}]
    with profiled("block", guess) as p:
        softmax()
    assert [one.claim.scope for one in p.verdict.held] == ["block", "aten::softmax"]


def test_what_the_block_raises_goes_on_and_the_trace_is_there():
    p = profiled("block", {"leaf_ops": 3})
    with pytest.raises(ZeroDivisionError):
        divide(p)
    assert len(p.verdict.held) == 1


def divide(p):
    with p:
        softmax()
        return 1 / 0


def test_a_label_that_no_trace_can_hold_is_written_otherwise():
    with profiled('a "b" \\ c\n', {"leaf_ops": 3}) as p:
        softmax()
    assert p.scope == "a 'b' / c?"
    assert len(p.verdict.held) == 1
    with pytest.raises(CaptureError, match="label ' ' names nothing"):
        profiled(" ")


def test_nothing_is_written_before_the_block_and_nothing_printed_ever(tmp_path, capfd):
    p = profiled("block", {"leaf_ops": 1}, path=tmp_path / "made" / "t.json")
    assert list(tmp_path.iterdir()) == []
    assert "nothing was recorded yet" in repr(p)
    assert p._repr_html_() is None
    with p:
        assert p.trace_path is None
        softmax()
    assert "1 surprise" in repr(p.verdict)
    printed = capfd.readouterr()
    assert printed.out == ""
    p.print(width=80)
    assert "leaf_ops in block" in capfd.readouterr().out
    assert json.loads(p.to_json())["verdict"]["surprises"][0]["seen"] == 3
    assert "leaf_ops" in p._repr_html_()


def test_a_profile_is_used_once_and_within_no_other():
    p = profiled("block")
    with pytest.raises(CaptureError, match="outside the with block"):
        p.step()
    with p:
        with pytest.raises(CaptureError, match="already running"), profiled("inner"):
            pass
        softmax()
    assert p.facts["leaf_ops"] == 3
    with pytest.raises(CaptureError, match="profiled before"), p:
        pass


def test_ranks_of_a_job_write_files_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with profiled("block", path=tmp_path / "t.json.gz") as p:
        softmax()
    assert p.trace_path == tmp_path / "t_rank3.json.gz"


def test_a_profiler_within_the_block_takes_the_trace_and_that_is_told():
    with profiled("outer", {"leaf_ops": 3}) as p:
        softmax()
        with torch.profiler.profile() as other:
            softmax()
        softmax()
    assert p.trace_path is None
    assert "another profiler was started while it ran" in p.reason
    with pytest.raises(CaptureError, match="no trace of outer"):
        _ = p.verdict
    assert any(one.name == "aten::softmax" for one in other.events())
    with profiled("after", {"leaf_ops": 3}) as p:
        softmax()
    assert len(p.verdict.held) == 1


def test_a_label_that_kineto_would_lose_is_written_in_ascii():
    with profiled("Maß ✓", {"leaf_ops": 3}) as p:
        softmax()
    assert p.scope == "Ma? ?"
    assert (p.facts.calls, len(p.verdict.held)) == (1, 1)


@pytest.mark.parametrize("label", ["", "*", None, 5])
def test_a_label_that_names_nothing_is_refused(label):
    with pytest.raises(CaptureError, match="the label"):
        profiled(label)


@pytest.mark.parametrize(
    "options", [{"steps": 0}, {"steps": "3"}, {"steps": 2.5}, {"warmup": -1}, {"skip": -1}]
)
def test_a_schedule_that_makes_no_sense_is_refused(options):
    with pytest.raises(CaptureError, match="record at least one step"), profiled("block", **options):
        pass


def test_code_that_is_not_compiled_is_told_where_it_was_claimed():
    with profiled("block", {"compiled": 1}) as p:
        softmax()
    assert [(one.claim.key, one.seen) for one in p.verdict.surprises] == [("compiled", 0)]
    assert "compiled" not in p.facts


@pytest.mark.parametrize(
    ("led", "holds"),
    [("matmul", True), ("mm", True), (["aten::mm"], True), ("relu", False), (["relu", "mm"], False)],
)
def test_on_a_cpu_ops_lead_by_the_names_that_people_use(led, holds):
    big = torch.ones(1024, 1024)  # its product takes longer than a small op that has to wait for a processor
    (big @ big)[0, 0].relu()
    with profiled("block", {"dominant": led}) as p:
        (big @ big)[0, 0].relu()
    assert bool(p.verdict.held) is holds


_LEFT_OPEN = """
import sys, torch, tracehunch
p = tracehunch.profile("left", path=sys.argv[1], cuda=False)
p.start()
torch.ones(3).relu()
"""


def test_what_is_never_stopped_is_when_the_program_ends(tmp_path):
    path = tmp_path / "t.json.gz"
    subprocess.run([sys.executable, "-c", _LEFT_OPEN, str(path)], check=True, timeout=600)
    assert tracehunch.look(path).scopes["left"]["leaf_ops"] == 3


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # from Python 3.12 on, of threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_within_the_block_neither_stops_nor_writes(tmp_path):
    with profiled("block", path=tmp_path / "t.json.gz") as p:
        torch.ones(3).relu()
        child = os.fork()
        if child == 0:
            code = 2
            try:
                p.stop()
                code = 0 if p.trace_path is None and p.detached else 1
            finally:
                os._exit(code)  # whatever happened: it must not run the tests that follow
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert p.facts["leaf_ops"] == 3
