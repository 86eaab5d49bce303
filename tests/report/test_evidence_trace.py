from __future__ import annotations

import gzip
import json
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

import tracehunch
from tracehunch.errors import TracehunchError
from tracehunch.judge import examine
from tracehunch.report.evidence_trace import slice_of
from tracehunch.trace import read_bytes

if TYPE_CHECKING:
    from pathlib import Path

TRACES = [
    "h200/seeds/naive", "h200/seeds/sdpa_math", "h200/faults/sync_item",
    "h200/faults/h2d_pageable", "h200/models/llama_sdpa_train", "cpu/masked_fill", "cpu/train_mlp",
]  # fmt: skip


def parsed(data: bytes) -> Any:
    return json.loads(data, parse_float=Decimal)


@pytest.mark.parametrize("name", TRACES)
def test_finding_is_seen_again_in_its_slice(h200: Path, name: str) -> None:
    look = tracehunch.look(h200.parent / f"{name}.json.gz")
    assert look.checked.findings
    for finding in look.checked.findings:
        again = examine(read_bytes(slice_of(look, finding), "slice"))
        assert finding.id in {one.id for one in again.checked.findings}, finding.id
        assert again.facts.tree.trace.n_events <= look.facts.tree.trace.n_events + 200


def test_slices_of_an_amd_gpu(public_traces: Path) -> None:
    look = tracehunch.look(public_traces / "tl_mi300_bert_small.json.gz")
    for finding in look.checked.findings:
        again = examine(read_bytes(slice_of(look, finding), "slice"))
        assert finding.id in {one.id for one in again.checked.findings}


def test_events_are_those_of_the_file_to_the_nanosecond(h200: Path) -> None:
    path = h200 / "seeds" / "naive.json.gz"
    look = tracehunch.look(path)
    finding = next(one for one in look.checked.findings if one.id == "hidden-copy")
    raw = parsed(gzip.decompress(path.read_bytes()))["traceEvents"]
    whole = {(one["name"], one["ts"], one["dur"]) for one in raw if one.get("ph") == "X"}
    events = parsed(slice_of(look, finding))["traceEvents"]
    shown = [one for one in events if one["ph"] == "X" and one["cat"] != "tracehunch"]
    assert 20 < len(shown) < len(whole)
    assert {(one["name"], one["ts"], one["dur"]) for one in shown} <= whole
    marks = [one for one in events if one.get("cat") == "tracehunch"]
    assert {one["name"] for one in marks} >= {"hidden-copy: Memcpy DtoD (Device -> Device)"}
    assert {raw[one["args"]["event"]]["ts"] for one in marks} == {one["ts"] for one in marks}
    starts = {one["id"]: one for one in events if one["ph"] == "s"}
    ends = {one["id"]: one for one in events if one["ph"] == "f"}
    assert starts.keys() == ends.keys()
    ids = {one["args"]["correlation"] for one in raw if one.get("cat") in ("cuda_runtime", "cuda_driver")}
    on_gpu = [one for one in shown if one["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    assert len(starts) == sum(one["args"]["correlation"] in ids for one in on_gpu) > 10


def test_absolute_stamps_keep_their_nanoseconds(h200: Path, tmp_path: Path) -> None:
    shift = Decimal("1700000000000000.001")

    def moved(event: dict[str, Any]) -> dict[str, Any]:
        return event | {"ts": str(event["ts"] + shift)} if "ts" in event else event

    raw = parsed(gzip.decompress((h200 / "seeds" / "naive.json.gz").read_bytes()))
    raw["traceEvents"] = [moved(one) for one in raw["traceEvents"]]
    text = json.dumps(raw, default=str)
    for one in raw["traceEvents"]:
        if "ts" in one:
            text = text.replace(f'"{one["ts"]}"', str(one["ts"]))
    path = tmp_path / "absolute.json"
    path.write_text(text)
    look = tracehunch.look(path)
    finding = next(one for one in look.checked.findings if one.id == "hidden-copy")
    wanted = {Decimal(one["ts"]) for one in raw["traceEvents"] if one.get("ph") == "X"}
    events = parsed(slice_of(look, finding))["traceEvents"]
    assert {one["ts"] for one in events if one["ph"] == "X"} <= wanted


def test_evidence_without_times_is_told(h200: Path) -> None:
    look = tracehunch.look(h200 / "seeds" / "naive.json.gz")
    [first, *_] = look.checked.findings
    raw = parsed(gzip.decompress((h200 / "seeds" / "naive.json.gz").read_bytes()))["traceEvents"]
    label = next(at for at, one in enumerate(raw) if one.get("ph") == "M")
    with pytest.raises(TracehunchError, match="has no event with a time"):
        slice_of(look, replace(first, evidence=(label,)))


def test_hostile_names_stay_text(h200: Path, tmp_path: Path) -> None:
    raw = gzip.decompress((h200 / "seeds" / "naive.json.gz").read_bytes()).decode()
    path = tmp_path / "hostile.json"
    path.write_text(raw.replace("attn_fwd", '\\u001b[2J</script>\\" ::error::x'))
    look = tracehunch.look(path)
    for finding in look.checked.findings:
        data = slice_of(look, finding)
        assert data.isascii()
        names = {one["name"] for one in json.loads(data)["traceEvents"]}
        assert '\\x1b[2J</script>" ::error::x' in names


@pytest.mark.parametrize("thread", ["--5", "007", "9" * 5000, "\u0663", "</script>"])
def test_threads_keep_names_that_are_no_numbers(h200: Path, thread: str) -> None:
    raw = json.loads(gzip.decompress((h200 / "seeds" / "naive.json.gz").read_bytes()))
    for event in raw["traceEvents"]:
        if event.get("cat") in ("cpu_op", "cuda_runtime", "cuda_driver", "user_annotation"):
            event["tid"] = thread
    look = examine(read_bytes(json.dumps(raw).encode(), "named"))
    sliced = json.loads(slice_of(look, look.checked.findings[0]))["traceEvents"]
    assert {one["tid"] for one in sliced if one.get("cat") == "cpu_op"} == {thread}
