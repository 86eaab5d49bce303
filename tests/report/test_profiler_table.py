"""The table against the one that the profiler printed when the trace was recorded."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tracehunch.report import table
from tracehunch.report.layout import View
from tracehunch.report.profiler_table import profiler_table
from tracehunch.trace import read, read_bytes
from tracehunch.tree import link

H200 = Path(__file__).parents[1] / "data" / "h200"
PRINTED = sorted(path.relative_to(H200).as_posix() for path in H200.glob("*/*.txt"))
COLUMNS = (
    "Self CPU %",
    "Self CPU",
    "CPU total %",
    "CPU total",
    "CPU time avg",
    "Self CUDA",
    "Self CUDA %",
    "CUDA total",
    "CUDA time avg",
    "# of Calls",
)
WIDE = View(width=200)


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def printed(path: Path) -> tuple[list[tuple[str, ...]], list[str]]:
    """Name and COLUMNS of each row that the profiler printed, and its totals."""
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("---")]
    heads = cells(lines[0])
    at = [heads.index(column) for column in COLUMNS]
    rows = [
        (row[0], *(row[i] for i in at)) for row in map(cells, lines[1:]) if not row[0].startswith("Self C")
    ]
    return rows, [line for line in lines if re.match(r"Self C\w+ time total: ", line)]


def ours(trace: Path) -> tuple[set[tuple[str, ...]], list[str]]:
    text = table.render(link(read(trace)), view=WIDE, top=100_000)
    lines = text.splitlines()
    assert tuple(cells(lines[0])) == ("Name", *COLUMNS)
    rows = {tuple(cells(line)) for line in lines[1:] if not line.startswith("Self C")}
    return rows, [line for line in lines if re.match(r"Self C\w+ time total: ", line)]


def same(theirs: tuple[str, ...], our: tuple[str, ...]) -> bool:
    """To the last digit; an average between two (the profiler adds up floats) may be rounded either way."""
    for column, a, b in zip(COLUMNS, theirs, our, strict=True):
        if a != b and not (
            column.endswith("avg") and a[-2:] == b[-2:] and abs(float(a[:-2]) - float(b[:-2])) < 0.00101
        ):
            return False
    return True


def test_there_is_something_to_hold_it_against() -> None:
    assert len(PRINTED) >= 67


@pytest.mark.parametrize("name", PRINTED)
def test_every_printed_row_and_total_agrees_to_the_last_digit(name: str) -> None:
    rows, totals = printed(H200 / name)
    our_rows, our_totals = ours((H200 / name).with_suffix(".json.gz"))
    assert totals == our_totals
    by_name = defaultdict(list)
    for row in our_rows:
        by_name[row[0].removesuffix("...")[:52]].append(row[1:])
    assert rows
    for row in rows:
        assert any(same(row[1:], other) for other in by_name[row[0].removesuffix("...")[:52]]), row


def test_rows_come_by_self_device_time() -> None:
    computed = profiler_table(link(read(H200 / "seeds" / "naive.json.gz")))
    times = [row.self_device_ns for row in computed.rows]
    assert times == sorted(times, reverse=True)


def test_a_narrow_output_keeps_the_columns_that_matter_most() -> None:
    text = table.render(link(read(H200 / "seeds" / "naive.json.gz")), view=View(width=80), top=5)
    assert cells(text.splitlines()[0]) == [
        "Name",
        "Self CPU",
        "CPU total",
        "Self CUDA",
        "CUDA total",
        "# of Calls",
    ]
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "more rows; --top" in text


def event(name: str, start: float, dur: float, cat: str = "cpu_op", **args: object) -> dict[str, object]:
    on = {"pid": 0, "tid": 7} if cat == "kernel" else {"pid": 1, "tid": 1}
    return {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": dur, **on, "args": args}


def made(*events: dict[str, object]) -> dict[str, tuple[int, int, int, int, int]]:
    document = json.dumps({"traceEvents": events, "deviceProperties": []}).encode()
    rows = profiler_table(link(read_bytes(document, "made"))).rows
    return {
        row.name: (row.self_cpu_ns, row.cpu_ns, row.self_device_ns, row.device_ns, row.calls) for row in rows
    }


def test_an_only_child_of_its_own_name_is_one_call() -> None:
    rows = made(event("a", 0, 10), event("a", 2, 6), event("b", 3, 1))
    assert rows["a"] == (9_000, 10_000, 0, 0, 1)
    assert rows["b"] == (1_000, 1_000, 0, 0, 1)


def test_two_children_of_their_parents_name_are_three_calls() -> None:
    assert made(event("a", 0, 10), event("a", 1, 2), event("a", 4, 2))["a"] == (10_000, 14_000, 0, 0, 3)


def test_what_only_partly_overlaps_is_not_inside() -> None:
    rows = made(event("a", 0, 10), event("b", 5, 10))
    assert rows["a"][0] == 10_000
    assert rows["b"][0] == 10_000


def test_device_time_goes_to_the_op_of_the_external_id_and_to_all_around_it() -> None:
    rows = made(
        event("outer", 0, 10, **{"External id": 1}),
        event("inner", 1, 5, **{"External id": 2}),
        event("cudaLaunchKernel", 2, 1, "cuda_runtime", **{"External id": 2, "correlation": 9}),
        event("k", 20, 7, "kernel", **{"External id": 2, "correlation": 9, "device": 0, "stream": 7}),
    )
    assert rows["inner"][2:4] == (7_000, 7_000)
    assert rows["outer"][2:4] == (0, 7_000)
    assert rows["k"] == (0, 0, 7_000, 7_000, 1)


def test_without_external_ids_the_launch_decides() -> None:
    rows = made(
        event("op", 0, 10),
        event("cudaLaunchKernel", 2, 1, "cuda_runtime", correlation=9),
        event("k", 20, 7, "kernel", correlation=9, device=0, stream=7),
    )
    assert rows["op"][2] == 7_000


def test_the_profilers_helpers_are_left_out() -> None:
    assert list(made(event("aten::is_leaf", 0, 1), event("aten::mm", 2, 1))) == ["aten::mm"]
