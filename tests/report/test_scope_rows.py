"""Which scopes a report lists: what the user named is not folded for what was named automatically."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tracehunch.judge import examine
from tracehunch.report import summary, terminal
from tracehunch.report.layout import View
from tracehunch.report.scope_rows import scope_rows, shown_scopes
from tracehunch.report.summary import Selection
from tracehunch.trace import read, read_bytes

if TYPE_CHECKING:
    from tracehunch.verdict import Look

H200 = Path(__file__).parents[1] / "data" / "h200"


def event(name: str, start: float, dur: float, cat: str) -> dict[str, object]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": dur, "args": {}}


def made(*, optimizer_us: float, annotations: int = 3, modules: int = 40) -> Look:
    """One step of 1000 us: many heavy modules, light annotations, an optimizer step."""
    events = [event("ProfilerStep#1", 0, 1000, "user_annotation")]
    for at in range(modules):
        row = event(f"nn.Module: Layer_{at}", at * 10, 9, "python_function")
        row["args"] = {"Python id": at + 1, "Python module id": at}
        events += [row, event("aten::mm", at * 10 + 1, 7, "cpu_op")]
    for at in range(annotations):
        events.append(event(f"mine_{at}", 500 + at, 0.5, "user_annotation"))
    events.append(event("Optimizer.step#SGD.step", 700, optimizer_us, "user_annotation"))
    return examine(read_bytes(json.dumps({"traceEvents": events}).encode(), "made"))


def names(look: Look) -> list[str]:
    return [scope.scope.name for scope in shown_scopes(look, Selection())[0]]


def test_annotations_are_kept_before_modules() -> None:
    shown = names(made(optimizer_us=1, annotations=14))
    assert [name for name in shown if name.startswith("mine_")] == [f"mine_{at}" for at in range(14)]
    assert sum(name.startswith("Layer_") for name in shown) == 4
    assert shown[-1] == "whole"


def test_framework_scopes_are_shown_from_a_tenth_of_the_steps_on() -> None:
    assert "Optimizer.step#SGD.step" in names(made(optimizer_us=110))
    assert "Optimizer.step#SGD.step" not in names(made(optimizer_us=90))


def test_what_is_folded_is_told_by_kind() -> None:
    assert shown_scopes(made(optimizer_us=1), Selection())[1] == (
        "34 scopes folded (33 modules and 1 of frameworks); --all-scopes lists them"
    )


def test_names_that_begin_alike_are_cut_in_the_middle() -> None:
    look = examine(read(H200 / "models" / "llama_sdpa_train_stack.json.gz"))
    text = terminal.render(look, view=View(width=80))
    rows = [line.split()[0] for line in text.splitlines() if line.lstrip().startswith("Llam")]
    assert len(rows) > 3
    assert len(set(rows)) == len(rows)


def test_a_column_of_times_has_one_unit() -> None:
    look = examine(read(H200 / "models" / "llama_sdpa_train.json.gz"))
    rows = scope_rows(look, shown_scopes(look, Selection())[0])
    assert len({row.wall_time.split()[1] for row in rows}) == 1


def idle(path: str) -> str:
    return dict(summary.recorded_on(examine(read(H200 / f"{path}.json.gz")))).get("GPU idle", "")


def test_idle_time_is_said_in_the_header() -> None:
    assert idle("models/llama_sdpa_train") == "73% of the steps (46.83 ms wall, 12.67 ms busy a step)"


def test_where_the_gpu_runs_behind_idle_time_is_that_of_the_whole() -> None:
    assert idle("seeds/naive").startswith("1.1% of the recorded window (3.600 ms wall")


def test_without_a_gpu_nothing_is_said_of_idle_time() -> None:
    look = examine(read(H200.parent / "cpu" / "naive.json.gz"))
    assert "GPU idle" not in dict(summary.recorded_on(look))
