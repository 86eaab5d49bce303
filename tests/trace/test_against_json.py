"""Every recorded trace, counted a second time from plain ``json.load``."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from tracehunch.trace import Cat, Trace, read
from tracehunch.trace.kinds import kind_of

DATA = Path(__file__).parents[1] / "data"
RECORDED = sorted((DATA / "h200").rglob("*.json.gz"))
FOREIGN = (
    "hta_cpu_only",
    "hta_event_sync",
    "hta_mi250_rocm62",
    "hta_ns_resolution",
    "hta_rank_unavailable",
    "tl_compile_triton",
    "tl_h100_bert_small",
    "tl_mi300_bert_small",
    "tl_sglang_qwen3_decode",
)
GPU_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")


def _nanoseconds(microseconds: str) -> int:
    return int((Decimal(microseconds) * 1000).to_integral_value())


def _entries(path: Path) -> list[dict]:
    """The events, numbers with a point kept as their text."""
    return json.loads(gzip.decompress(path.read_bytes()), parse_float=str)["traceEvents"]


def _agrees(trace: Trace, entries: list[dict]) -> None:
    complete = [(i, e) for i, e in enumerate(entries) if e["ph"] == "X"]
    events = [e for _, e in complete]
    arguments = [e.get("args", {}) for e in events]
    assert trace.n_events == len(entries)
    assert trace.event.tolist() == [i for i, _ in complete]
    assert [trace.names[code] for code in trace.name] == [e["name"] for e in events]
    assert trace.start_ns.tolist() == [_nanoseconds(e["ts"]) for e in events]
    assert trace.dur_ns.tolist() == [_nanoseconds(e["dur"]) for e in events]
    assert trace.correlation.tolist() == [a.get("correlation", -1) for a in arguments]
    assert trace.external_id.tolist() == [a.get("External id", -1) for a in arguments]
    assert trace.sequence.tolist() == [a.get("Sequence number", -1) for a in arguments]
    threads = [trace.threads[code] for code in trace.thread]
    assert threads == [(str(e["pid"]), str(e["tid"])) for e in events]
    assert [trace.processes[code] for code in trace.process] == [pid for pid, _ in threads]
    assert Counter(Cat(code) for code in trace.cat.tolist()) == Counter(kind_of(e.get("cat")) for e in events)
    _gpu_agrees(trace, events)


def _gpu_agrees(trace: Trace, events: list[dict]) -> None:
    rows = [i for i, e in enumerate(events) if e.get("cat") in GPU_CATEGORIES]
    arguments = [events[i]["args"] for i in rows]
    gpu = trace.gpu
    assert gpu.row.tolist() == rows
    for column, key in (("device", "device"), ("stream", "stream"), ("registers", "registers per thread")):
        assert getattr(gpu, column).tolist() == [a.get(key, -1) for a in arguments], column
    assert gpu.shared_memory.tolist() == [a.get("shared memory", -1) for a in arguments]
    assert gpu.grid.tolist() == [a.get("grid", [-1, -1, -1]) for a in arguments]
    assert gpu.block.tolist() == [a.get("block", [-1, -1, -1]) for a in arguments]
    ratio = np.array([float(a.get("blocks per SM", "nan")) for a in arguments])
    np.testing.assert_array_equal(gpu.blocks_per_sm, ratio)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_every_column_of_a_recorded_trace_equals_an_independent_count(path):
    trace = read(path)
    _agrees(trace, _entries(path))
    assert not any(notice.lossy for notice in trace.notices)


@pytest.mark.shared
@pytest.mark.parametrize("name", FOREIGN)
def test_every_column_of_another_projects_trace_equals_an_independent_count(name, public_traces):
    path = public_traces / f"{name}.json.gz"
    _agrees(read(path), _entries(path))


@pytest.mark.parametrize("name", ["seeds/shapes_naive", "ops/naive_compiled", "models/llama_sdpa_compiled"])
def test_args_of_every_row_are_those_in_the_file(name):
    path = DATA / "h200" / f"{name}.json.gz"
    trace = read(path)
    entries = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    for row in range(len(trace)):
        assert trace.args_of(row) == entries[trace.event[row]].get("args", {})


@pytest.mark.parametrize("piece_bytes", [1, 700, 20_000])
def test_the_size_of_pieces_changes_nothing(piece_bytes, monkeypatch):
    path = DATA / "h200" / "seeds" / "shapes_naive.json.gz"
    monkeypatch.setattr("tracehunch.trace.events.PIECE_BYTES", piece_bytes)
    trace = read(path)
    _agrees(trace, _entries(path))
    entries = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    assert all(trace.args_of(r) == entries[trace.event[r]].get("args", {}) for r in range(len(trace)))


def test_the_header_of_a_recorded_trace():
    header = read(DATA / "h200" / "ranks" / "ddp" / "rank1.json.gz").header
    assert (header.rank, header.rank_in_name, header.world_size) == (1, 1, 2)
    device = header.devices[0]
    assert (device.name, device.compute_capability, device.sms) == ("NVIDIA H200", "9.0", 132)
    assert header.base_time_ns == 1790857026000000000
    assert header.metadata["cuda_runtime_version"] == 13000


def test_what_was_recorded_is_told_from_flags_and_from_what_is_there():
    seen = read(DATA / "h200" / "models" / "llama_sdpa_train_stack.json.gz").header.recorded
    assert (seen.stacks, seen.modules) == (True, True)
    plain = read(DATA / "h200" / "seeds" / "naive.json.gz").header.recorded
    assert (plain.shapes, plain.stacks, plain.memory, plain.modules) == (False, False, False, False)
    assert read(DATA / "h200" / "seeds" / "shapes_naive.json.gz").header.recorded.shapes
    assert read(DATA / "h200" / "faults" / "alloc_churn.json.gz").header.recorded.shapes is False
