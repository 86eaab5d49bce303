"""The page of many ranks: its numbers are those of the JSON, and it reads on any screen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch.report import ranks_json
from tracehunch.report.html import ranks_page
from tracehunch.units import bandwidth, count, percent, time_us

if TYPE_CHECKING:
    from collections.abc import Callable

MARKUP = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


@pytest.fixture(scope="module")
def eight(made_ranks: Callable[..., Any]) -> Any:
    return made_ranks(8)


@pytest.mark.parametrize("n_ranks", [2, 8, 256])
def test_every_number_of_the_tables_is_that_of_the_json(
    made_ranks: Callable[..., Any], parse: type[Any], n_ranks: int
) -> None:
    ranks = made_ranks(n_ranks)
    found = parse(ranks_page.render(ranks, sources=["run"]).decode())
    report = json.loads(ranks_json.render(ranks))
    assert not found.wrong
    rows = report["ranks"]
    for heading, key in (
        ("compute", "compute_us"),
        ("exposed", "exposed_communication_us"),
        ("copies", "copy_us"),
    ):
        shares = [row[key] / row["window_us"] for row in rows]
        column = found.column("Ranks", heading)
        assert [shown for shown, _ in column] == [percent(100 * share) for share in shares]
        assert [value for _, value in column] == pytest.approx(shares)
    overlap = [row["overlapped_us"] / row["communication_us"] for row in rows]
    assert [value for _, value in found.column("Ranks", "overlap")] == pytest.approx(overlap)
    for heading, key, steps in (
        ("waits", "waited_us", 3),
        ("delays", "made_wait_us", 3),
        ("host step", "step_us", 1),
    ):
        column = found.column("Ranks", heading)
        assert [shown for shown, _ in column] == [time_us(row[key] / steps) for row in rows]
        assert [value for _, value in column] == pytest.approx([row[key] / steps for row in rows])
    collectives = report["collectives"]
    told = [shown for shown, _ in found.column("Collectives", "bus bandwidth")]
    assert told == [bandwidth(row["bus_bytes_per_s"]) for row in collectives]
    told = [shown for shown, _ in found.column("Collectives", "count")]
    assert told == [count(row["count"]) for row in collectives]
    assert json.loads(found.blocks["data-skew"]) == report["lateness"]


def test_bars_add_up_to_the_window(eight: Any, parse: type[Any]) -> None:
    tags = parse(ranks_page.render(eight).decode()).tags
    for css, ns in (
        ("compute", [row.compute_ns for row in eight.rows]),
        ("exposed", [row.exposed_communication_ns for row in eight.rows]),
        ("idle", [sum(row.idle_ns.values()) for row in eight.rows]),
    ):
        wide = [float(one["width"]) for tag, one in tags if tag == "rect" and one.get("class") == css][-8:]
        assert wide == pytest.approx([840 * one / 100e6 for one in ns], abs=0.01)


def test_without_scripts_it_says_who_comes_late(eight: Any, visit: Callable[..., Any]) -> None:
    seen = visit(ranks_page.render(eight, sources=["run"]), java_script_enabled=False)
    assert "The picture needs JavaScript" in seen.page.inner_text("#skew")
    assert "rank 1 came last to" in seen.page.inner_text("#collectives")
    assert "tracehunch diff" in seen.page.inner_text("footer")
    assert seen.misdeeds == []


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("n_ranks", [2, 256])
def test_it_fits_its_screen(
    made_ranks: Callable[..., Any], visit: Callable[..., Any], n_ranks: int, width: int
) -> None:
    seen = visit(ranks_page.render(made_ranks(n_ranks, collectives=600)), width=width)
    assert seen.eval("document.documentElement.scrollWidth") == width
    if width == 1280:
        frame = "document.querySelector('#ranks .frame')"
        assert seen.eval(f"{frame}.scrollWidth - {frame}.clientWidth") == 0
    assert seen.eval("document.getElementById('skew-cells').getBoundingClientRect().height") < 640
    assert seen.eval("document.querySelector('#ranks .frame').getBoundingClientRect().height") < 700
    assert seen.misdeeds == []


def test_cells_are_told_by_keys_and_pointer(eight: Any, visit: Callable[..., Any]) -> None:
    seen = visit(ranks_page.render(eight))
    report = json.loads(ranks_json.render(eight))["lateness"]
    seen.page.focus("#skew-cells")

    def said() -> str:
        return str(seen.page.inner_text("#skew-said"))

    seen.page.keyboard.press("ArrowDown")
    assert said().startswith("rank 0, collective 0, step 0: ")
    seen.page.keyboard.press("ArrowDown")
    seen.page.keyboard.press("End")
    assert report["late_us"][1][59] == 300.0
    assert said() == "rank 1, collective 59, step 2: 300 us after the first rank"
    seen.page.keyboard.press("ArrowRight")
    assert "collective 59" in said()
    seen.page.keyboard.press("Escape")
    assert said() == ""
    canvas = seen.page.locator("#skew-cells")
    canvas.hover(position={"x": canvas.bounding_box()["width"] - 3, "y": 28 * 1.5})
    assert said() == "rank 1, collective 59, step 2: 300 us after the first rank"
    assert seen.misdeeds == []


def test_a_cell_shows_lateness_by_its_strength(eight: Any, visit: Callable[..., Any]) -> None:
    script = """([row, column]) => {
      const canvas = document.getElementById('skew-cells'), scale = canvas.width / canvas.clientWidth;
      const x = 44 + (column + 0.5) * (canvas.clientWidth - 45) / 60, y = (row + 0.5) * 28;
      return canvas.getContext('2d').getImageData(x * scale, y * scale, 1, 1).data[3];
    }"""
    seen = visit(ranks_page.render(eight))
    late, early, before = (seen.eval(script, place) for place in ([1, 40], [3, 40], [1, 5]))
    assert late == 255
    assert max(early, before) < 100


def test_ranks_are_sorted_by_a_heading(eight: Any, visit: Callable[..., Any]) -> None:
    seen = visit(ranks_page.render(eight))
    seen.page.click("#ranks th:has-text('delays') button")
    assert seen.page.inner_text("#ranks table.sortable tbody tr:first-child td:first-child") == "1"
    assert seen.misdeeds == []


def test_text_of_files_is_shown_and_not_run(
    eight: Any, replaced: Callable[..., Any], visit: Callable[..., Any]
) -> None:
    rows = tuple(replaced(row, labels=(MARKUP,), idle_ns={MARKUP: 1}) for row in eight.rows)
    hostile = replaced(
        eight,
        rows=rows,
        matched=tuple(replaced(one, kind=MARKUP, group=MARKUP) for one in eight.matched),
        bandwidth=tuple(replaced(one, kind=MARKUP) for one in eight.bandwidth),
        odd=tuple(replaced(one, scope=MARKUP, key=MARKUP, seen=MARKUP) for one in eight.odd),
        findings=tuple(replaced(one, scope=MARKUP, summary=MARKUP) for one in eight.findings),
        notices=tuple(replaced(one, message=MARKUP) for one in eight.notices),
        unread=tuple(replaced(one, label=MARKUP, why=MARKUP) for one in eight.unread),
        devices=(MARKUP,),
        other_jobs=(MARKUP,),
    )
    seen = visit(ranks_page.render(hostile, sources=[MARKUP]))
    assert seen.page.query_selector("main img") is None
    assert "<img src=x onerror=alert(1)>" in seen.page.inner_text("#collectives")
    assert seen.misdeeds == []


def test_where_nothing_can_be_told_the_page_says_so(
    eight: Any, untold_ranks: Callable[[Any], Any], parse: type[Any]
) -> None:
    html = ranks_page.render(untold_ranks(eight)).decode()
    assert not parse(html).wrong
    assert 'id="skew"' not in html
    assert "where the time went cannot be told" in html
    assert "<svg" not in html


def test_real_ranks(real_ranks: Callable[[str], Any], visit: Callable[..., Any]) -> None:
    seen = visit(ranks_page.render(real_ranks("tp"), sources=["tp"]))
    seen.page.focus("#skew-cells")
    seen.page.keyboard.press("ArrowDown")
    assert "after the first rank" in seen.page.inner_text("#skew-said")
    assert seen.misdeeds == []
