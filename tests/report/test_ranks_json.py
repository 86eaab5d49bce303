"""Many ranks as JSON: every number against a count of its own, and nothing where nothing is known."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch.report import ranks_json
from tracehunch.report.ranks_lateness import lateness

if TYPE_CHECKING:
    from collections.abc import Callable


DOCS = Path(__file__).parents[1] / "docs" / "schema.py"
DATA = Path(__file__).parents[1] / "data" / "h200" / "ranks" / "tp"
PAGE = Path(__file__).parents[2] / "docs" / "json.md"
OBJECTS = (
    "Ranks", "RankJob", "RankFinding", "Rank", "RankCollective", "LateRank", "MatchedCollective", "Lateness",
    "RankClock", "OddFact", "UnreadFile",
)  # fmt: skip


def schema() -> Any:
    spec = importlib.util.spec_from_file_location("docs_schema", DOCS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["docs_schema"] = module
    spec.loader.exec_module(module)
    return module.read(PAGE.read_text(encoding="utf-8"))


def told(ranks: Any) -> Any:
    return json.loads(ranks_json.render(ranks))


@pytest.mark.parametrize("n_ranks", [2, 256])
def test_the_parts_of_each_rank_add_up_to_its_window(made_ranks: Callable[..., Any], n_ranks: int) -> None:
    rows = told(made_ranks(n_ranks))["ranks"]
    assert [row["rank"] for row in rows] == list(range(n_ranks))
    for row in rows:
        parts = row["compute_us"] + row["exposed_communication_us"] + row["copy_us"]
        assert parts + sum(row["idle_us"].values()) == pytest.approx(row["window_us"], abs=1e-6)


def test_collectives_are_counted_by_kind_and_size(made_ranks: Callable[..., Any]) -> None:
    ranks = made_ranks(4, collectives=61)
    report = told(ranks)
    assert sum(row["count"] for row in report["collectives"]) == len(ranks.matched) == len(report["matched"])
    for row in report["collectives"]:
        mine = [one for one in report["matched"] if one["bytes"] == row["least_bytes"] == row["most_bytes"]]
        assert row["count"] == len(mine)
        assert row["median_us"] == median(one["took_us"] for one in mine)
        assert row["median_skew_us"] == median(one["skew_us"] for one in mine)
        assert row["most_skew_us"] == max(one["skew_us"] for one in mine)
        assert row["last_rank"] == 1
        assert row["last_count"] == sum(one["last_rank"] == 1 for one in mine)
        assert row["bus_bytes_per_s"] == pytest.approx(1.5 * row["least_bytes"] / row["median_us"] * 1e6)


def test_collectives_of_unknown_size_are_a_row_of_their_own(
    made_ranks: Callable[..., Any], replaced: Callable[..., Any]
) -> None:
    ranks = made_ranks(4)
    ranks = replaced(ranks, matched=(*ranks.matched, replaced(ranks.matched[0], bytes=None, number=60)))
    (unknown,) = [row for row in told(ranks)["collectives"] if "least_bytes" not in row]
    assert unknown["count"] == 1
    assert "bus_bytes_per_s" not in unknown
    assert unknown["median_us"] == 40.0


def test_a_time_below_zero_is_not_told(made_ranks: Callable[..., Any], replaced: Callable[..., Any]) -> None:
    """The sender of a broadcast is done before the last rank comes."""
    ranks = made_ranks(4)
    early = [replaced(one, kind="broadcast", end_ns=one.last_start_ns - 5_000) for one in ranks.matched]
    for row in told(replaced(ranks, matched=tuple(early)))["collectives"]:
        assert row["kind"] == "broadcast"
        assert "median_us" not in row


def test_arrivals_within_the_clocks_error_have_no_last_rank(
    made_ranks: Callable[..., Any], replaced: Callable[..., Any]
) -> None:
    ranks = made_ranks(4)
    unsure = tuple(replaced(one, error_ns=400_000 if one.rank else 0) for one in ranks.clocks)
    report = told(replaced(ranks, clocks=unsure))
    assert all("last_rank" not in row and "last_count" not in row for row in report["collectives"])
    assert not any(one["beyond_clock_error"] for one in report["late"])
    assert [one["rank"] for one in told(ranks)["late"] if one["beyond_clock_error"]] == [1]


def test_who_waits_for_whom_sums_to_what_the_rows_say(made_ranks: Callable[..., Any]) -> None:
    report = told(made_ranks(16))
    rows = {row["rank"]: row for row in report["ranks"]}
    waited = dict.fromkeys(rows, 0.0)
    for late in report["late"]:
        assert late["waited_us"] == pytest.approx(rows[late["rank"]]["made_wait_us"])
        assert late["waited_us"] == pytest.approx(sum(late["by_rank_us"].values()))
        assert late["collectives"] == sum(one["last_rank"] == late["rank"] for one in report["matched"])
        for rank, us in late["by_rank_us"].items():
            waited[int(rank)] += us
    for rank, us in waited.items():
        assert us == pytest.approx(rows[rank]["waited_us"])


def test_cells_of_lateness_hold_the_latest_arrival(made_ranks: Callable[..., Any]) -> None:
    ranks = made_ranks(20, collectives=70, since=30)
    cells = lateness(ranks, columns=9, rows=6)
    assert cells is not None
    assert [last for _, last in cells.collectives][-1] == 69
    for (low, high), row in zip(cells.ranks, cells.late_us, strict=True):
        for (first, last), seen in zip(cells.collectives, row, strict=True):
            inside = ranks.matched[first : last + 1]
            late = [
                one.last_start_ns - one.waited_ns[rank] - one.first_start_ns
                for one in inside
                for rank in range(low, high + 1)
            ]
            assert seen == max(late) / 1e3
    whole = told(ranks)["lateness"]
    assert len(whole["late_us"]) == 20
    assert len(whole["late_us"][0]) == len(whole["collectives"]) == len(whole["steps"]) == 70
    assert all(a == b for a, b in (*whole["ranks"], *whole["collectives"]))


def test_a_rank_that_takes_no_part_has_an_empty_cell(
    made_ranks: Callable[..., Any], replaced: Callable[..., Any]
) -> None:
    ranks = made_ranks(4)
    first = ranks.matched[0]
    alone = replaced(first, waited_ns={rank: ns for rank, ns in first.waited_ns.items() if rank != 3})
    cells = told(replaced(ranks, matched=(alone, *ranks.matched[1:])))["lateness"]["late_us"]
    assert [row[0] is None for row in cells] == [False, False, False, True]


def test_what_cannot_be_told_is_absent(
    made_ranks: Callable[..., Any], untold_ranks: Callable[[Any], Any]
) -> None:
    report = told(untold_ranks(made_ranks(4)))
    assert "null" not in ranks_json.render(untold_ranks(made_ranks(4))).decode()
    assert "world_size" not in report["job"]
    assert "lateness" not in report
    assert set(report["ranks"][0]) == {"rank", "rank_from", "files", "steps"}
    assert report["clocks"][1:] == [{"rank": rank, "collectives": 0} for rank in (1, 2, 3)]


def test_no_path_of_this_machine_is_in_it(made_ranks: Callable[..., Any]) -> None:
    ranks = made_ranks(4)
    assert ranks.rows[0].sources == ("run/rank0.json.gz",)
    assert b"run/" not in ranks_json.render(ranks)
    assert ranks_json.render(ranks) == ranks_json.render(made_ranks(4))


def test_real_ranks_by_a_count_of_their_own(real_ranks: Callable[[str], Any]) -> None:
    """The recorded data-parallel job: rank 0 comes last to every collective, and rank 1 waits."""
    report = told(real_ranks("ddp"))
    assert {one["last_rank"] for one in report["matched"]} == {0}
    first, second = report["ranks"]
    assert first["waited_us"] == 0
    assert second["waited_us"] == pytest.approx(first["made_wait_us"])
    assert second["waited_us"] == pytest.approx(sum(one["skew_us"] for one in report["matched"]), rel=0.01)


def test_the_step_of_the_job_is_about_the_same_on_all_ranks(real_ranks: Callable[[str], Any]) -> None:
    """What the raw files say: from the first step to the last activity, over the steps."""
    rows = told(real_ranks("tp"))["ranks"]
    assert [row["job_step_us"] for row in rows] == [
        pytest.approx(row["window_us"] / 3, abs=1e-3) for row in rows
    ]
    for row in rows:
        path = DATA / f"rank{row['rank']}.json.gz"
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        steps = [one["ts"] for one in events if str(one.get("name")).startswith("ProfilerStep#")]
        ends = [
            one["ts"] + one["dur"]
            for one in events
            if one.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
        ]
        assert row["job_step_us"] == pytest.approx((max(ends) - min(steps)) / 3, rel=0.05)


def test_every_field_is_documented_and_every_documented_one_is_met(
    made_ranks: Callable[..., Any],
    untold_ranks: Callable[[Any], Any],
    real_ranks: Callable[[str], Any],
    replaced: Callable[..., Any],
) -> None:
    page = schema()
    drifting = [replaced(one, drift_ppm=1.5 if one.rank else 0.0) for one in made_ranks(4).clocks]
    jobs = (
        replaced(made_ranks(4), clocks=tuple(drifting)),
        untold_ranks(made_ranks(2)),
        real_ranks("ddp"),
        real_ranks("tp"),
    )
    for ranks in jobs:
        assert list(page.errors(told(ranks), "Ranks")) == []
    assert {(name, one) for name, one in page.unmet() if name in OBJECTS} == set()


def test_findings_stand_worst_first_and_name_their_rank(made_ranks: Callable[..., Any]) -> None:
    first, second = told(made_ranks(4))["findings"]
    assert (first["id"], first["severity"], first["rank"]) == ("straggler", "warning", 1)
    assert (second["id"], second["severity"]) == ("exposed-communication", "note")
    assert "rank" not in second
