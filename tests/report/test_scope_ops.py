"""The ops of scopes without GPU work, against a count made another way."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tracehunch.judge import examine
from tracehunch.report import json_report, markdown, terminal
from tracehunch.report.layout import View
from tracehunch.report.summary import Selection
from tracehunch.trace import read, read_bytes

CPU = Path(__file__).parents[1] / "data" / "cpu"
SCOPES = [("naive", "attn_fwd"), ("sdpa_math", "sdpa_fwd"), ("sdpa_flash", "ProfilerStep")]


def plain_count(name: str, scope: str) -> dict[str, tuple[int, float, float]]:
    """Calls, self and total time of each op by loops over the raw events; outermost of a name in total."""
    events = json.loads(gzip.decompress((CPU / f"{name}.json.gz").read_bytes()))["traceEvents"]
    spans = [
        event
        for event in events
        if event.get("ph") == "X" and event.get("cat") in ("cpu_op", "user_annotation")
    ]
    ops = [event for event in spans if event["cat"] == "cpu_op"]

    def inside(one: dict[str, Any], other: dict[str, Any]) -> bool:
        return bool(
            one is not other
            and one["tid"] == other["tid"]
            and other["ts"] <= one["ts"]
            and one["ts"] + one["dur"] <= other["ts"] + other["dur"]
        )

    per_call: dict[str, list[list[float]]] = {}
    calls = [event for event in spans if event["name"].split("#")[0] == scope]
    for at, call in enumerate(calls):
        mine = [event for event in ops if inside(event, call)]
        for event in mine:
            around = [other for other in mine if inside(event, other)]
            within = [other for other in mine if inside(other, event)]
            direct = [one for one in within if not any(inside(one, two) for two in within)]
            sums = per_call.setdefault(event["name"], [[0, 0, 0] for _ in calls])[at]
            sums[0] += 1
            sums[1] += event["dur"] - sum(one["dur"] for one in direct)
            sums[2] += 0 if any(other["name"] == event["name"] for other in around) else event["dur"]
    return {
        op: (
            sorted(one[0] for one in sums)[1],
            median(one[1] for one in sums),
            median(one[2] for one in sums),
        )
        for op, sums in per_call.items()
    }


@pytest.mark.parametrize(("name", "scope"), SCOPES)
def test_counts_and_times_agree_with_a_plain_count(name: str, scope: str) -> None:
    report = json.loads(json_report.render(examine(read(CPU / f"{name}.json.gz"))))
    ops = next(one for one in report["scopes"] if one["name"] == scope)["ops"]
    seen = {op["name"]: (op["per_call"], op["self_cpu_time_us"], op["cpu_time_us"]) for op in ops}
    expected = plain_count(name, scope)
    assert seen.keys() == expected.keys()
    for op, values in expected.items():
        assert seen[op] == pytest.approx(values, abs=0.002), op
    assert [op["self_cpu_time_us"] for op in ops] == sorted(
        (op["self_cpu_time_us"] for op in ops), reverse=True
    )


def test_an_op_inside_one_of_its_own_name_counts_its_time_once() -> None:
    def op(start: float, dur: float, name: str = "aten::x") -> dict[str, object]:
        return {
            "ph": "X",
            "cat": "cpu_op",
            "name": name,
            "pid": 1,
            "tid": 1,
            "ts": start,
            "dur": dur,
            "args": {},
        }

    document = json.dumps({"traceEvents": [op(0, 10), op(1, 8), op(2, 3, "aten::y")]}).encode()
    report = json.loads(json_report.render(examine(read_bytes(document, "made"))))
    whole = next(one for one in report["scopes"] if one["name"] == "whole")["ops"]
    assert {one["name"]: (one["per_call"], one["self_cpu_time_us"], one["cpu_time_us"]) for one in whole} == {
        "aten::x": (2, 7.0, 10.0),
        "aten::y": (1, 3.0, 3.0),
    }


def test_scopes_with_gpu_work_have_no_ops_in_json() -> None:
    h200 = CPU.parent / "h200" / "seeds" / "naive.json.gz"
    report = json.loads(json_report.render(examine(read(h200))))
    assert all("ops" not in scope for scope in report["scopes"])


def test_a_selected_scope_shows_its_own_ops_and_findings_only() -> None:
    look = examine(read(CPU / "naive.json.gz"))
    assert any(finding.id == "hidden-copy" for finding in look.checked.findings)
    text = terminal.render(look, view=View(), selection=Selection(scopes=("whole",)), source="naive.json.gz")
    assert "Findings  none" in text
    assert "Next: tracehunch guess --from naive.json.gz" in text
    text = terminal.render(look, view=View(), selection=Selection(scopes=("attn_fwd",)))
    assert "Ops in attn_fwd  by CPU time in themselves, per call, 3 calls" in text
    assert "Ops in the whole trace" not in text
    assert "Next: tracehunch explain unfused-attention" in text
    text = markdown.render(look, selection=Selection(scopes=("attn_fwd",)))
    assert "### Ops in <code>attn_fwd</code>" in text
