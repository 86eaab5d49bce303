"""Reports over time: they fit, tell the same in all formats, and let no text through that is hostile."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tracehunch.compare.over_time import Unread, cycle_of, over_time
from tracehunch.report import (
    over_time_github,
    over_time_json,
    over_time_markdown,
    over_time_quiet,
    over_time_terminal,
)
from tracehunch.report.layout import View
from tracehunch.report.sparkline import sparkline
from tracehunch.trace import read
from tracehunch.trace.model import Notice

RUNS = Path(__file__).parents[1] / "data" / "over_time"
HOSTILE = "\x1b[31m|<b>`x`\n::error::"


@pytest.fixture(scope="module")
def cycles():
    return [cycle_of(read(path), f"runs/{path.name}") for path in sorted((RUNS / "backend").iterdir())]


@pytest.fixture(scope="module")
def report(cycles):
    return over_time(cycles)


def test_what_when_how_much_and_why(report):
    text = over_time_terminal.render(report, sources=["runs"])
    for told in (
        "attention: slower from between steps 35 and 39 (cycle 4 of 6) on",
        "sdpa.backend",
        "flash -> math",
        "attention moved from the flash to the math backend",
        "came: sdpa-math-fallback",
        "seen in forward",
        "Next: tracehunch diff runs/",
    ):
        assert told in text
    assert "Nothing changed" not in text


def test_next_command_names_the_cycles_beside_the_change(report, cycles):
    last = over_time_terminal.render(report).splitlines()[-1]
    assert last.split()[-2:] == [cycles[2].source, cycles[3].source]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit(report, width):
    view = View(width=width, interactive=True)
    lines = over_time_terminal.render(report, view=view, sources=["runs"]).splitlines()
    assert max(len(line) for line in lines if not line.startswith("Next")) <= width


def test_ascii_where_the_output_takes_no_more(report):
    text = over_time_terminal.render(report, view=View(unicode=False))
    assert text.isascii()
    assert "\\u" not in text
    assert "____" in text


def test_json_tells_the_change(report):
    made = json.loads(over_time_json.render(report))
    assert made["schema"] == "tracehunch/1"
    (run,) = made["over_time"]["runs"]
    (change,) = run["changes"]
    assert (change["scope"], change["from"]["step"], change["from"]["cycle"]) == ("attention", 39, 4)
    assert change["facts"][0]["key"] == "sdpa.backend"
    assert change["cost_us"] == pytest.approx(
        change["facts"][-2]["levels"][1]["value"] - change["facts"][-2]["levels"][0]["value"], abs=0.01
    ) or any(fact["key"] == "wall_time_us" for fact in change["facts"])
    assert "forward" in run["constant"] or "load" in run["constant"]
    assert over_time_json.render(report) == over_time_json.render(report)


def test_markdown_has_the_same_change(report):
    text = over_time_markdown.render(report, sources=["runs"])
    assert text.startswith("<!--")
    assert "**warning** attention: slower from between steps 35 and 39" in text
    assert "why: attention moved from the flash to the math backend" in text


def test_github_has_a_command_a_change_and_tells_what_was_lost(report):
    notice = Notice("truncated", "a file breaks off", lossy=True)
    made = replace(report, notices=(notice,), unread=(Unread("a", "a.json", "no trace"),), left_out=("b",))
    told = over_time_github.render(made, sources=["runs"]).splitlines()
    heads = [line.partition("::")[2].partition("::")[0] for line in told[:-1]]
    assert (
        heads[0]
        == "warning title=over time%3A attention%3A slower from between steps 35 and 39 (cycle 4 of 6) on"
    )
    assert heads[1:] == ["warning title=truncated", "warning title=not read", "notice title=left-out"]
    assert "%0Awhy: attention moved from the flash to the math backend%0A" in told[0]
    assert told[-1] == "tracehunch: runs: changes over time: 1 warning"


def _ranks(report, ratios):
    """The run as that of several ranks, whose later times are so many times those recorded."""
    (run,) = report.runs
    return replace(
        report,
        runs=tuple(
            replace(run, rank=rank, label=f"rank {rank}", shifts=tuple(_scaled(s, ratio) for s in run.shifts))
            for rank, ratio in enumerate(ratios)
        ),
    )


def _scaled(shift, ratio):
    def scale(drift):
        first, *middle, last = drift.levels
        if drift.key != "wall_time":
            return drift
        later = replace(last, value=last.value * ratio)
        return replace(drift, levels=(first, *middle, later), share=later.value / first.value - 1)

    drifts = tuple(scale(drift) for drift in shift.drifts)
    return replace(shift, drifts=drifts, cost_us=shift.cost_us * ratio)


def _times_of(text):
    return [line for line in text.splitlines() if "wall_time" in line]


def test_ranks_that_differ_have_a_line_each(report):
    made = _ranks(report, [1.0, 1.5])
    (alike,) = _times_of(over_time_terminal.render(_ranks(report, [1.0, 1.0])))
    assert "rank" not in alike
    text = over_time_terminal.render(made)
    lines = _times_of(text)
    walls = [
        next(one for one in run.shifts[0].drifts if one.key == "wall_time").levels[-1].value / 1e3
        for run in made.runs
    ]
    assert len(lines) == 2
    for rank, wall in enumerate(walls):
        (mine,) = [line for line in lines if f"rank {rank} " in line]
        assert f"-> {wall:.3f} ms" in mine
    assert len([line for line in text.splitlines() if "sdpa.backend" in line]) == 1
    costs = [run.shifts[0].cost_us for run in made.runs]
    assert f"+{costs[0]:.1f} us (rank 0)" in text
    assert f"+{costs[1] / 1e3:.3f} ms (rank 1)" in text
    assert len(_times_of(over_time_markdown.render(made))) == 2
    told = json.loads(over_time_json.render(made))["over_time"]["runs"]
    assert [one["changes"][0]["cost_us"] for one in told] == costs


def test_many_ranks_are_told_as_a_range(report):
    text = over_time_terminal.render(_ranks(report, [1 + rank / 8 for rank in range(9)]))
    (line,) = _times_of(text)
    assert "9 ranks" in line
    assert "over 9 ranks" in text
    assert max(map(len, text.splitlines()[:-1])) <= 80


def test_ranks_that_go_opposite_ways_are_two_changes(report):
    text = over_time_terminal.render(_ranks(report, [1.0, -1.0]))
    assert "rank 0: attention: slower" in text
    assert "rank 1: attention: faster" in text


def test_hostile_names_stay_text(cycles):
    renamed = [
        replace(
            cycle,
            label=HOSTILE,
            scopes={
                HOSTILE if name == "attention" else name: replace(one, name=HOSTILE)
                if name == "attention"
                else one
                for name, one in cycle.scopes.items()
            },
        )
        for cycle in cycles
    ]
    made = over_time(renamed)
    terminal, markdown = over_time_terminal.render(made), over_time_markdown.render(made)
    commands = over_time_github.render(made, sources=[HOSTILE]).splitlines()
    assert [line.split(" ")[0] for line in commands if line.startswith("::")] == ["::warning"]
    assert not any("\x1b" in line for line in commands)
    assert "\x1b" not in terminal + markdown
    assert not any(line.startswith("::") for line in (terminal + markdown).splitlines())
    assert "<b>" not in markdown


def test_nothing_changed_is_said(cycles):
    text = over_time_terminal.render(over_time(cycles[:3]))
    assert "Nothing changed over time." in text
    assert "Nothing can be compared" in over_time_terminal.render(
        over_time([replace(cycles[0], scopes={"x": _one_call(cycles[0])})])
    )


def test_counts_that_vary_are_not_said_to_be_constant(cycles):
    few = over_time(cycles[:1])
    text = "too few calls to tell whether times"
    assert f"Counts did not change over time; there are {text} did" in over_time_quiet.verdict(few)
    (run,) = few.runs
    varies = replace(run, drifts=(replace(run.drifts[0], kind="varies"), *run.drifts[1:]))
    said = over_time_quiet.verdict(replace(few, runs=(varies,)))
    assert said == f"Some counts vary, in no order that can be told; there are {text} changed."


def test_many_ranks_are_named_by_stretches(report):
    text = over_time_terminal.render(_ranks(report, [1.0] * 9))
    assert "ranks 0-8: attention: slower" in text


def _one_call(cycle):
    from tracehunch.compare.over_time.runs import part  # noqa: PLC0415  # a helper of one test

    return part(cycle.scopes["forward"], cycle.scopes["forward"].start_ns[:1].argsort())


def test_sparkline_keeps_peaks():
    assert sparkline([0, 0, 9, 0, 0, 0], 3) == "▁█▁"
    assert sparkline([1, None, 2], 3, unicode=False) == "_ #"
    assert sparkline([], 5) == ""
    assert sparkline([3, 3], 5) == "▁▁"
