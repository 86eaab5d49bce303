"""How a critical path reads: within its columns, the same numbers in every format, hostile names escaped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.compare.critical.made import Made

from tracehunch.compare.critical import critical_path
from tracehunch.judge import examine
from tracehunch.report import critical_json, critical_markdown, critical_terminal
from tracehunch.report.html import look_page
from tracehunch.report.layout import View
from tracehunch.trace import read, read_bytes

RANK = Path(__file__).parents[1] / "data" / "h200" / "ranks" / "ddp" / "rank1.json.gz"


@pytest.fixture(scope="module")
def pair():
    made = Made()
    made.step(1, 0, 320)
    for at in range(3):
        made.op("my::op\x1b[31m<b>|`", 10 * at, 10 * at + 10)
        made.launch(10 * at, 10 * at + 10, "void gemm<" + "x" * 200 + ">", 15 + 100 * at, 115 + 100 * at)
    made.call("cudaDeviceSynchronize", 30, 320)
    look = examine(read_bytes(json.dumps({"traceEvents": made.events}).encode(), label="made"))
    return look, critical_path(look.facts)


@pytest.mark.parametrize("width", [80, 120])
def test_terminal(pair, width):
    shown = critical_terminal.render(*pair, view=View(width=width))
    assert max(map(len, shown.splitlines())) <= width
    assert "\x1b" not in shown
    assert "The GPU bounds it: 94% of the path is its work." in shown
    assert "-88%" in shown


def test_a_rank_that_waits_for_others_is_not_the_one_to_look_at():
    look = examine(read(RANK))
    path = critical_path(look.facts)
    shown = critical_terminal.render(look, path, view=View(width=100))
    assert "Other ranks or the network bound it: 73% of the path is collectives" in " ".join(shown.split())
    assert shown.rstrip().endswith("Next: tracehunch ranks FOLDER")
    assert "Next: <code>tracehunch ranks FOLDER</code>" in critical_markdown.render(look, path)


def test_json(pair):
    found = json.loads(critical_json.render(*pair))["critical_path"]
    assert found["duration_us"] == 320.0 == sum(found["kinds_us"].values())
    faster = next(one for one in found["what_if"] if one["id"] == "gpu")
    assert (faster["duration_us"], faster["change"]) == (40.0, -0.875)


def test_markdown_and_page(pair):
    markdown, page = critical_markdown.render(*pair), look_page.render(pair[0], path=pair[1]).decode()
    assert "| 94% | 300.0 us | kernel | kernels |" in markdown
    assert "<b>" not in markdown
    assert "\x1b" not in markdown + page
    assert "Critical path" in page
    assert "op\x1b[31m<b>" not in page
