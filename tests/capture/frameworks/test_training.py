"""What all callbacks have in common: recorded, told, and gone; whatever happens to the training."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch.capture.frameworks.training import Plan, TrainingRecorder, silent
from tracehunch.capture.recorder import Recording
from tracehunch.errors import CaptureError, TracehunchError

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")

_BRIEF = Recording(skip=1, warmup=1, steps=2, metadata={}, from_start=True)


def _work() -> None:
    (torch.ones(4, 4) @ torch.ones(4, 4)).relu()


def _train(training: TrainingRecorder, steps: int, said: list[str]) -> None:
    training.begin(said.append)
    for _ in range(steps):
        _work()
        training.step()


def test_records_the_steps_asked_for_then_does_nothing(tmp_path: Path, count: Any, steps: Any) -> None:
    said: list[str] = []
    training = TrainingRecorder(Plan(tmp_path / "t.json.gz", _BRIEF))
    _train(training, 9, said)
    names = count(tmp_path / "t.json.gz")
    assert (len(steps(names)), names["aten::mm"]) == (2, 2)
    assert not training.records
    assert training.trace_path == tmp_path / "t.json.gz"
    assert said == []


def test_a_training_that_ends_early_leaves_its_first_step_and_says_so(
    tmp_path: Path, count: Any, steps: Any
) -> None:
    said: list[str] = []
    training = TrainingRecorder(Plan(tmp_path / "t.json.gz", _BRIEF))
    _train(training, 2, said)
    training.end()
    assert steps(count(tmp_path / "t.json.gz")) == ["ProfilerStep#0"]
    assert len(said) == 1
    assert "first" in said[0]


def test_who_looks_is_called_once_with_the_finished_trace(tmp_path: Path) -> None:
    seen: list[tuple[Path, bool]] = []

    def examine(path: Path) -> tuple[object, str]:
        seen.append((path, path.exists()))
        return "a look", "the report"

    said: list[str] = []
    training = TrainingRecorder(Plan(tmp_path / "t.json.gz", _BRIEF, examine))
    _train(training, 9, said)
    training.end()
    assert seen == [(tmp_path / "t.json.gz", True)]
    assert training.look == "a look"
    assert said == ["the report"]


def test_a_process_that_is_not_the_main_one_neither_looks_nor_speaks(tmp_path: Path) -> None:
    def examine(_: Path) -> tuple[object, str]:
        pytest.fail("looked")

    training = TrainingRecorder(Plan(tmp_path / "t.json.gz", _BRIEF, examine))
    training.begin(silent)
    for _ in range(6):
        training.step()
    assert training.trace_path is not None


def test_trouble_with_the_look_is_told_and_not_raised(tmp_path: Path) -> None:
    def examine(_: Path) -> tuple[object, str]:
        raise TracehunchError("it is odd")

    said: list[str] = []
    _train(TrainingRecorder(Plan(tmp_path / "t.json.gz", _BRIEF, examine)), 9, said)
    assert len(said) == 1
    assert "it is odd" in said[0]


def test_beside_another_profiler_nothing_is_recorded_and_the_training_goes_on(tmp_path: Path) -> None:
    said: list[str] = []
    training = TrainingRecorder(Plan(tmp_path / "t.json.gz", _BRIEF))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        _train(training, 5, said)
    training.end()
    assert len(said) == 1
    assert "already running" in said[0]
    assert training.trace_path is None


def test_the_next_training_ends_one_that_raised(tmp_path: Path) -> None:
    first = TrainingRecorder(Plan(tmp_path / "first.json.gz", _BRIEF))
    _train(first, 1, [])
    second = TrainingRecorder(Plan(tmp_path / "second.json.gz", _BRIEF))
    _train(second, 9, [])
    assert first.trace_path is not None
    assert second.trace_path is not None


def test_each_rank_writes_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    training = TrainingRecorder(Plan(tmp_path / "t.json.gz", _BRIEF))
    _train(training, 9, [])
    assert [path.name for path in tmp_path.iterdir()] == ["t_rank3.json.gz"]


def test_one_process_has_no_rank_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    _train(TrainingRecorder(Plan(tmp_path / "t.json.gz", _BRIEF)), 9, [])
    assert [path.name for path in tmp_path.iterdir()] == ["t.json.gz"]


@pytest.mark.parametrize(
    ("path", "recording"),
    [("t.txt", Recording()), ("t.json", Recording(steps=0)), ("t.json", Recording(skip=-1))],
)
def test_what_makes_no_sense_is_refused_before_the_training(
    tmp_path: Path, path: str, recording: Recording
) -> None:
    with pytest.raises(CaptureError):
        Plan(tmp_path / path, recording)


_RAISES = """
import sys, torch
from pathlib import Path
from tracehunch.capture.frameworks.training import Plan, TrainingRecorder
from tracehunch.capture.recorder import Recording
training = TrainingRecorder(Plan(Path(sys.argv[1]), Recording(1, 1, 9, metadata={}, from_start=True)))
training.begin(print)
for number in range(9):
    if number == 5:
        raise ValueError("no more data")
    torch.ones(4, 4) @ torch.ones(4, 4)
    training.step()
"""


def test_when_the_program_dies_the_trace_is_whole(tmp_path: Path, count: Any) -> None:
    path = tmp_path / "t.json.gz"
    done = subprocess.run([sys.executable, "-c", _RAISES, path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no more data" in done.stderr
    names = count(path)
    assert names["aten::mm"] == 2
    assert "ended after 2 of 9 steps" in done.stdout


def test_a_training_without_a_step_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    training = TrainingRecorder(Plan(tmp_path / "t.json.gz", _BRIEF))
    training.begin(said.append)
    _work()
    training.end()
    assert said == ["tracehunch: no step ended, so all that ran counts as one"]
