"""The page of a run over time: its numbers and pictures are the JSON's, and it reads on any screen."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch.compare.over_time import cycle_of, over_time
from tracehunch.report import over_time_json
from tracehunch.report.html import over_time_page
from tracehunch.trace import read
from tracehunch.units import time_us

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = Path(__file__).parents[2] / "data" / "over_time"
MARKUP = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
EVIDENCE = "Evidence: facts before and after the change"
CYCLES = "Cycles in order of time"


def cycles_of(name: str) -> list[Any]:
    return [cycle_of(read(path), f"runs/{path.name}") for path in sorted((RUNS / name).iterdir())]


@pytest.fixture(scope="module")
def cycles() -> list[Any]:
    return cycles_of("backend")


@pytest.fixture(scope="module")
def report(cycles: list[Any]) -> Any:
    return over_time(cycles)


def ranks(report: Any, ratios: list[float]) -> Any:
    """Return the run as that of several ranks, whose times are so many times those recorded."""
    (run,) = report.runs

    def drift(one: Any, ratio: float) -> Any:
        if one.unit != "us":
            return one
        series = tuple(value and value * ratio for value in one.series)
        levels = tuple(replace(level, value=level.value * ratio) for level in one.levels)
        return replace(one, series=series, levels=levels)

    def rank_of(rank: int, ratio: float) -> Any:
        shifts = tuple(
            replace(shift, drifts=tuple(drift(one, ratio) for one in shift.drifts)) for shift in run.shifts
        )
        drifts = tuple(drift(one, ratio) for one in run.drifts)
        return replace(run, rank=rank, label=f"rank {rank}", shifts=shifts, drifts=drifts)

    return replace(report, runs=tuple(rank_of(at, ratio) for at, ratio in enumerate(ratios)))


def told(report: Any) -> Any:
    return json.loads(over_time_json.render(report))["over_time"]


def lines(html: str) -> list[list[tuple[float, float]]]:
    """Return the points of every line of every picture."""
    found = re.findall(r'<path class="line" d="M([^"H]+)"/>', html)
    return [[tuple(map(float, one.split())) for one in line.split("L")] for line in found]


def test_the_evidence_is_that_of_the_json(report: Any, parse: type[Any]) -> None:
    found = parse(over_time_page.render(report).decode())
    assert not found.wrong
    (change,) = told(report)["runs"][0]["changes"]
    facts = change["facts"]
    for heading, at in (("before", 0), ("after", -1)):
        values = [one["levels"][at]["value"] for one in facts]
        column = found.column(EVIDENCE, heading)
        assert [value for _, value in column] == [None if isinstance(one, str) else one for one in values]
    assert [value for _, value in found.column(EVIDENCE, "change")] == [one.get("share") for one in facts]
    assert [value for _, value in found.column(EVIDENCE, "by chance")] == [one.get("p") for one in facts]
    assert [value for _, value in found.column(EVIDENCE, "calls")] == [
        one["levels"][0]["calls"] for one in facts
    ]
    assert {shown for shown, _ in found.column(EVIDENCE, "from")} == {f"step {change['from']['step']}"}


def test_every_cycle_is_listed(report: Any, parse: type[Any]) -> None:
    found = parse(over_time_page.render(report).decode())
    cycles = told(report)["runs"][0]["cycles"]
    assert [shown for shown, _ in found.column(CYCLES, "file")] == [one["source"] for one in cycles]
    recorded = [(one["end_ns"] - one["start_ns"]) / 1e3 for one in cycles]
    assert [shown for shown, _ in found.column(CYCLES, "recorded")] == list(map(time_us, recorded))


def test_pictures_are_the_series_of_the_json(report: Any) -> None:
    drawn = lines(over_time_page.render(report).decode())
    series = [one["series"] for one in told(report)["runs"][0]["changes"][0]["facts"] if "series" in one]
    assert drawn
    for line in drawn:
        assert any(_is_drawn(one, line) for one in series)


def _is_drawn(series: Any, line: list[tuple[float, float]]) -> bool:
    """Whether a line is a series but for scale: both axes are linear, up is more."""
    pairs = [(series["at"], [x for x, _ in line]), (series["values"], [-y for _, y in line])]
    return all(len(told) == len(seen) and _linear(told, seen) for told, seen in pairs)


def _linear(told: list[float], seen: list[float]) -> bool:
    low, high = min(told), max(told)
    first, last = min(seen), max(seen)
    scaled = [first + (one - low) / (high - low) * (last - first) for one in told]
    return scaled == pytest.approx(seen, abs=0.11)


def test_the_step_of_the_change_is_marked_in_its_place(report: Any) -> None:
    html = over_time_page.render(report).decode()
    marks = [float(x) for x in re.findall(r'class="begins" d="M([\d.]+) ', html)]
    (change,) = told(report)["runs"][0]["changes"]
    step = change["from"]["step"]
    series = [one["series"] for one in change["facts"] if "series" in one]
    assert len(marks) == len(lines(html)) == html.count(">step 39</text>")
    for mark, line in zip(marks, lines(html), strict=True):
        (of,) = {tuple(one["at"]) for one in series if _is_drawn(one, line)}
        share = (step - of[0]) / (of[-1] - of[0])
        assert mark == pytest.approx(line[0][0] + share * (line[-1][0] - line[0][0]), abs=0.11)


def test_ranks_are_told_by_more_than_colour(report: Any) -> None:
    html = over_time_page.render(ranks(report, [1.0, 1.5])).decode()
    marks = dict(re.findall(r'<g class="(r\d)"><title>.*?<path class="mark" d="M[\d.]+ [\d.]+([^M"]+)', html))
    assert set(marks) == {"r0", "r1"}
    assert marks["r0"] != marks["r1"]
    css = re.findall(r"\.(r\d) \.line\{stroke:var\(--s\d\)(?:;stroke-dasharray:([^}]+))?\}", html)
    assert len(css) == len({dashes for _, dashes in css}) == 8
    assert html.count(">rank 1</li>") == 1
    facts = told(ranks(report, [1.0, 1.5]))["runs"][1]["changes"][0]["facts"]
    (wall,) = [one["levels"] for one in facts if one["key"] == "wall_time_us"]
    assert f"<title>rank 1: {time_us(wall[0]['value'])} -&gt; {time_us(wall[1]['value'])}</title>" in html


def test_of_many_ranks_the_range_is_drawn(report: Any, parse: type[Any]) -> None:
    many = ranks(report, [1 + rank / 8 for rank in range(12)])
    html = over_time_page.render(many).decode()
    assert not parse(html).wrong
    assert html.count('class="range"') == len(lines(html)) + 1  # and one in the legend
    assert "of 11 other ranks" in html
    (wall,) = [
        one["series"]["values"]
        for one in told(many)["runs"][-1]["changes"][0]["facts"]
        if one["key"] == "wall_time_us"
    ]
    ranges = re.findall(r'class="range" d="M([^"]+)Z', html)
    highest = [min(float(point.split()[1]) for point in path.split("L")) for path in ranges]
    assert f">{time_us(max(wall))}</text>" in html  # the axis ends at the highest rank's highest value
    assert highest == [22.0] * len(ranges)


def test_what_is_constant_is_folded_with_its_values(report: Any, parse: type[Any]) -> None:
    found = parse(over_time_page.render(report).decode())
    column = found.column("Facts that are constant, by scope", "facts")
    constant = told(report)["runs"][0]["constant"]
    assert [value for _, value in column] == [len(keys) for keys in constant.values()]
    assert {attrs.get("open") for tag, attrs in found.tags if tag == "details"} == {None}


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_its_screen_and_says_nothing(
    report: Any, visit: Callable[..., Any], width: int, scheme: str
) -> None:
    html = over_time_page.render(ranks(report, [1.0, 1.5]), sources=["runs/" + 30 * "long"])
    seen = visit(html, width=width, color_scheme=scheme)
    seen.eval("() => document.querySelectorAll('details').forEach((one) => (one.open = true))")
    assert seen.eval("() => document.documentElement.scrollWidth") <= width
    assert not seen.misdeeds


def test_keys_reach_and_open_the_evidence(report: Any, visit: Callable[..., Any]) -> None:
    seen = visit(over_time_page.render(report))
    seen.page.focus("#c-1 summary")
    seen.page.keyboard.press("Enter")
    assert seen.eval("() => document.querySelector('#c-1 details').open")
    seen.page.keyboard.press("Tab")
    seen.page.keyboard.press("Tab")
    assert seen.eval("() => document.activeElement.textContent") == "fact"
    assert not seen.misdeeds


def test_text_of_files_is_shown_and_not_run(
    cycles: list[Any], visit: Callable[..., Any], parse: type[Any]
) -> None:
    renamed = [
        replace(
            cycle,
            label=MARKUP,
            source=MARKUP,
            scopes={
                MARKUP if name == "attention" else name: replace(one, name=MARKUP)
                if name == "attention"
                else one
                for name, one in cycle.scopes.items()
            },
        )
        for cycle in cycles
    ]
    made = over_time(renamed, [], [])
    html = over_time_page.render(made, sources=[MARKUP])
    found = parse(html.decode())
    assert not found.wrong
    assert not [tag for tag, _ in found.tags if tag in {"img", "iframe", "object", "link"}]
    assert [attrs for tag, attrs in found.tags if tag == "script" and not attrs.get("type")] == [{}]
    seen = visit(html)
    assert "<img src=x" in seen.page.inner_text("#c-1 h3")
    assert not seen.misdeeds


def test_nothing_changed_is_said(parse: type[Any]) -> None:
    html = over_time_page.render(over_time(cycles_of("nothing"))).decode()
    assert "<p>Nothing changed over time.</p>" in html
    assert not lines(html)
    assert not parse(html).wrong


def test_a_policy_without_exceptions(report: Any) -> None:
    html = over_time_page.render(report).decode()
    assert "default-src 'none'" in html
    assert "unsafe-" not in html
    assert not re.search(r"<[^>]+\sstyle=", html)
