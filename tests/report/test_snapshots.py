"""Whole reports of real traces, byte for byte. TRACEHUNCH_UPDATE_SNAPSHOTS=1 rewrites them: read the diff."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracehunch.judge import examine
from tracehunch.report import json_report, markdown, table, terminal
from tracehunch.report.layout import View
from tracehunch.trace import read
from tracehunch.tree import link

HERE = Path(__file__).parent / "snapshots"
H200 = Path(__file__).parents[1] / "data" / "h200"
UPDATE = bool(os.environ.get("TRACEHUNCH_UPDATE_SNAPSHOTS"))


def same_as(name: str, seen: str) -> None:
    path = HERE / name
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(seen.encode())
    assert seen == path.read_bytes().decode()


@pytest.mark.parametrize(
    "name", ["seeds/naive", "seeds/sdpa_cudnn", "models/llama_sdpa_train", "faults/sync_item"]
)
def test_terminal_at_80_columns(name: str) -> None:
    text = terminal.render(examine(read(H200 / f"{name}.json.gz")), view=View(), source=f"{name}.json.gz")
    same_as(f"{name.replace('/', '-')}.txt", text)


def test_terminal_at_120_columns_with_colour() -> None:
    seen = examine(read(H200 / "seeds" / "sdpa_math.json.gz"))
    same_as(
        "seeds-sdpa_math-120.ansi",
        terminal.render(seen, view=View(width=120, colour=True), source="math.json.gz"),
    )


def test_markdown() -> None:
    seen = examine(read(H200 / "seeds" / "naive.json.gz"))
    same_as("seeds-naive.md", markdown.render(seen, source="naive.json.gz"))


def test_json() -> None:
    same_as("seeds-naive.json", json_report.render(examine(read(H200 / "seeds" / "naive.json.gz"))).decode())


def test_the_profilers_table() -> None:
    tree = link(read(H200 / "seeds" / "naive.json.gz"))
    same_as("seeds-naive-table.txt", table.render(tree, view=View(width=200)))


@pytest.mark.parametrize("path", sorted(HERE.glob("*-*.txt")), ids=lambda path: path.name)
def test_no_line_is_wider_than_80_columns_but_warnings(path: Path) -> None:
    if "table" in path.name:
        pytest.skip("the table has its own width")
    lines = path.read_text().splitlines()
    assert [line for line in lines if len(line) > 80 and not line.startswith("  ! ")] == []
