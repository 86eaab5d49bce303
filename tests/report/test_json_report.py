"""The JSON that others may rely on, held against the schema as it is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracehunch.facts.vocabulary import KEYS
from tracehunch.judge import examine
from tracehunch.report import json_report
from tracehunch.trace import read, read_bytes

H200 = Path(__file__).parents[1] / "data" / "h200"
TRACES = [
    "seeds/naive",
    "seeds/shapes_sdpa_math",
    "models/llama_sdpa_train",
    "ops/cudagraph_flash",
    "ranks/tp/rank1",
]
JSON_NAMES = {key.json_name for key in KEYS.values()}


def looked_at(name: str) -> Any:
    return json.loads(json_report.render(examine(read(H200 / f"{name}.json.gz"))))


@pytest.fixture(scope="module", params=TRACES)
def report(request: pytest.FixtureRequest) -> Any:
    return looked_at(request.param)


def test_top_level(report: Any) -> None:
    assert list(report) == ["schema", "trace", "scopes", "findings", "verdict"]
    assert report["schema"] == "tracehunch/1"


def test_trace(report: Any) -> None:
    trace = report["trace"]
    assert set(trace) - {"torch"} == {
        "events",
        "gpu_activities",
        "outside_window",
        "unattributed_gpu_time_us",
        "devices",
        "environment",
        "recorded",
        "counts",
        "warnings",
    }
    assert trace["events"] == trace["counts"]["n_events"]
    assert trace["gpu_activities"] == trace["counts"]["n_gpu_ops"]
    assert set(trace["recorded"]) == {"shapes", "stacks", "memory"}
    assert all(set(warning) == {"code", "message"} for warning in trace["warnings"])
    assert trace["devices"][0] == {"name": "NVIDIA H200", "compute_capability": "9.0", "sms": 132}
    assert trace["environment"]["versions"]["cuda_runtime"] == "13.0"
    assert trace["environment"]["machine"]["memory_bytes"] == 150109880320


def test_scopes(report: Any) -> None:
    for scope in report["scopes"]:
        expected = {"name", "kind", "calls", "own_thread", "facts", "spread", "kernels"}
        assert set(scope) - {"percent_of_peak"} == expected
        assert set(scope.get("percent_of_peak", {})) <= {"achieved_flops", "achieved_bandwidth"}
        assert scope["kind"] in ("annotation", "framework", "step", "module", "whole")
        assert set(scope["facts"]) <= JSON_NAMES
        assert set(scope["own_thread"]) <= JSON_NAMES
        assert set(scope["spread"]) <= set(scope["facts"])
        assert all(low < high for low, high in scope["spread"].values())


def test_kernels(report: Any) -> None:
    work = {"flops", "hbm_bytes", "achieved_flops", "achieved_bandwidth", "bound", "percent_of_peak"}
    needed = {"name", "kind", "library", "algorithm", "unit", "per_call", "gpu_time_us"}
    for scope in report["scopes"]:
        for kernel in scope["kernels"]:
            assert needed <= set(kernel) <= needed | {"op", "dtype", "occupancy_percent"} | work
            assert kernel.get("bound") in ("compute", "memory", None)
            assert kernel["kind"] in ("kernel", "memcpy", "memset")


def test_findings_and_verdict(report: Any) -> None:
    for finding in report["findings"]:
        assert list(finding) == [
            "id",
            "scope",
            "severity",
            "confidence",
            "time_at_stake_us",
            "summary",
            "cause",
            "fix",
            "evidence",
        ]
        assert all(isinstance(event, int) for event in finding["evidence"])
    assert report["verdict"] == {"held": [], "surprises": [], "cannot_tell": []}


def test_nothing_is_null(report: Any) -> None:
    def values(at: Any) -> Any:
        yield at
        for inner in at.values() if isinstance(at, dict) else at if isinstance(at, list) else ():
            yield from values(inner)

    assert all(value is not None for value in values(report))


def test_the_numbers_of_the_naive_seed() -> None:
    report = looked_at("seeds/naive")
    scope = next(scope for scope in report["scopes"] if scope["name"] == "attn_fwd")
    facts = scope["facts"]
    assert (facts["kernels"], facts["copies"], facts["copies.dtod"], facts["memsets"]) == (5, 1, 1, 1)
    assert facts["gpu_time_us"] == pytest.approx(1063.5, rel=1e-3)
    assert report["trace"]["outside_window"] == 2
    assert sum(kernel["per_call"] for kernel in scope["kernels"]) == 7
    assert sum(kernel["gpu_time_us"] for kernel in scope["kernels"]) == pytest.approx(1063.5, rel=1e-2)


def test_the_same_input_gives_the_same_bytes() -> None:
    data = (H200 / "seeds" / "naive.json.gz").read_bytes()
    first, second = (json_report.render(examine(read_bytes(data, "x"))) for _ in range(2))
    assert first == second


def test_only_the_scopes_asked_for() -> None:
    seen = examine(read(H200 / "seeds" / "naive.json.gz"))
    report = json.loads(json_report.render(seen, scopes=("attn_fwd",)))
    assert [scope["name"] for scope in report["scopes"]] == ["attn_fwd"]
    assert {finding["scope"] for finding in report["findings"]} <= {"attn_fwd"}


def test_control_characters_never_stand_raw() -> None:
    encoded = json_report.encode({"a": "\x1b\x7f\x9b\u202e\u200b 模"})
    assert encoded.decode() == '{\n  "a": "\\u001b\\u007f\\u009b\\u202e\\u200b 模"\n}\n'
    assert json.loads(encoded) == {"a": "\x1b\x7f\x9b\u202e\u200b 模"}
