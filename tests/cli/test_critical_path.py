"""``tracehunch look --critical-path``: what it takes, and what it refuses."""

import json
from pathlib import Path

import pytest

from tracehunch.cli import main

TRACE = Path(__file__).parents[1] / "data" / "h200/faults/sync_item.json.gz"


@pytest.fixture
def run(capsys):
    def _run(*args):
        with pytest.raises(SystemExit) as stop:
            main(["look", "--critical-path", *map(str, args)])
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return _run


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--scope", "ProfilerStep#99"], "the trace has ProfilerStep#2 to ProfilerStep#4"),
        (["--scope", "nonsense"], "no scope 'nonsense'"),
        (["--scope", "Seq*"], "means 30: Sequential_0, "),
        (["--scope", "step", "--scope", "whole"], "one --scope apart"),
        (["--over-time"], "--over-time goes with neither"),
        (["--table"], "exclude each other"),
        (["--format", "github"], "exclude each other"),
        ([TRACE], "2 traces: give one"),
    ],
)
def test_what_is_refused_and_how(run, args, said):
    code, out, err = run(TRACE, *args)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("tracehunch") <= 4


@pytest.mark.parametrize(
    "scope", ["ProfilerStep#3", "ProfilerStep*", "ProfilerStep", "Sequential_0/LayerNorm_0"]
)
def test_one_step_or_scope_is_taken_apart(run, scope):
    code, out, _ = run(TRACE, "--scope", scope, "--format", "json")
    path = json.loads(out)["critical_path"]
    assert code == 0
    assert path["call"].endswith("#3") or path["scope"].endswith("LayerNorm_0")
    assert sum(path["kinds_us"].values()) == pytest.approx(path["duration_us"])


def test_top_is_how_many_are_listed(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = run(TRACE, "--top", "2")[1]
    listed = out.partition("Longest on it")[2].partition("What if")[0].splitlines()
    assert len([line for line in listed[2:] if line.strip()]) == 3  # two, and how many more
    assert max(map(len, out.splitlines()[1:])) <= 80
    assert "\x1b" not in out
