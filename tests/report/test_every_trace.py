"""Every trace there is gives every report; what holds for all of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tracehunch.judge import examine
from tracehunch.report import json_report, markdown, table, terminal
from tracehunch.report.layout import View
from tracehunch.report.origin import gpu_shares
from tracehunch.trace import read, read_bytes
from tracehunch.tree import link

DATA = Path(__file__).parents[1] / "data"
RECORDED = sorted(path.relative_to(DATA).as_posix() for path in DATA.glob("h200/**/*.json.gz"))
NVIDIA = re.compile(r"tensor cores?|\bSMs?\b|NVIDIA|compute capability|\bwarps?\b")


def check(path: Path) -> str:
    look = examine(read(path))
    for width in (60, 80, 120, 200):
        text = terminal.render(look, view=View(width=width), source=path.name)
        wide = [
            line
            for line in text.splitlines()
            if len(line) > width and not line.startswith(("  ! ", "Next: "))
        ]
        assert wide == []
    assert "nan" not in re.findall(r"\b(nan|inf)\b", text)
    report: Any = json.loads(json_report.render(look))
    shares = gpu_shares(look.facts.tree)
    assert report["trace"]["unattributed_gpu_time_us"] == shares.unattributed_us
    assert report["trace"]["gpu_activities"] == report["trace"]["counts"]["n_gpu_ops"]
    assert markdown.render(look).startswith("<!-- tracehunch:look -->\n\n## tracehunch look ")
    assert "Self CPU time total: " in table.render(look.facts.tree)
    return terminal.render(
        look, view=View(width=100), selection=terminal.Selection(top=1000, all_scopes=True)
    )


@pytest.mark.parametrize("name", RECORDED)
def test_recorded(name: str) -> None:
    assert "NVIDIA H200, 132 SMs" in check(DATA / name)


@pytest.mark.shared
def test_other_projects_traces(public_traces: Path) -> None:
    for path in sorted(public_traces.glob("*.json.gz")):
        check(path)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["tl_mi300_bert_small", "tl_sglang_qwen3_decode", "hta_mi250_rocm62"])
def test_no_nvidia_wording_for_amd(name: str, public_traces: Path) -> None:
    path = public_traces / f"{name}.json.gz"
    assert NVIDIA.findall(check(path)) == []
    assert "Self Device" in table.render(link(read(path)))


def test_xpu_and_hip_tables_say_device() -> None:
    for name in ("xpu_ur", "rocm_hip"):
        text = table.render(link(read(DATA / "cases" / "public" / f"{name}.json")))
        assert "Self Device" in text
        assert "CUDA time total" not in text


def test_a_cpu_trace_says_so_and_speaks_of_ops() -> None:
    text = terminal.render(examine(read(DATA / "cases" / "public" / "cpu_only_no_dev.json")))
    assert "no GPU in this trace (CPU only)" in text
    assert "leaf ops" in text
    assert "Ops in the whole trace" in text
    assert "GPU time" not in text


def test_several_gpus_are_counted_once_with_their_number() -> None:
    text = terminal.render(examine(read(DATA / "cases" / "public" / "several_gpus_4.json")))
    assert "4 GPUs, each " in text


def test_an_empty_scope_list_and_unknown_gpu_are_no_failure() -> None:
    kernel = {
        "ph": "X",
        "cat": "kernel",
        "name": "k",
        "pid": 0,
        "tid": 7,
        "ts": 1,
        "dur": 2,
        "args": {"stream": 7},
    }
    text = terminal.render(examine(read_bytes(json.dumps({"traceEvents": [kernel]}).encode(), "made")))
    assert "a GPU whose name was not recorded" in text
    assert "100% unattributed (1 activity)" in text
    assert "(no launch)" in text
    assert "unclassified: 100% of GPU time" in text
