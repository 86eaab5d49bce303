"""The damaged and odd files: what their expected.json says, as far as reading decides it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tracehunch.errors import ReadError
from tracehunch.trace import Cat, Trace, read
from tracehunch.trace.model import UNKNOWN_NS

CASES = Path(__file__).parents[1] / "data" / "cases" / "public"
EXPECTED: dict[str, dict[str, Any]] = {
    name: entry
    for name, entry in json.loads((CASES / "expected.json").read_text()).items()
    if name != "_schema"
}
# What these must say is decided when events are linked, not when they are read.
LINKING = {
    "orphans",
    "duplicate_correlation",
    "correlation_zero",
    "correlation_missing",
    "clock_skew",
    "overlap_ops",
    "missing_kernels",
    "steps_without_gpu",
    "merged_processes",
    "two_cycles",
    "no_profiler_step",
    "cpu_only",
    "launches_no_kernels",
    "several_gpus",
    "cuda_graph",
    "nccl",
    "rank_in_name",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_case(name, tmp_path):
    entry = EXPECTED[name]
    path = tmp_path / entry["as"]
    shutil.copy(CASES / name, path)
    outcomes = {entry["load"], *entry.get("also_accept", [])}
    trace = _read(path)
    if isinstance(trace, ReadError):
        assert "error" in outcomes
        assert "\n" not in str(trace)
        _says(str(trace), entry["must_say" if entry["load"] == "error" else "must_say_if_error"], entry)
        return
    assert outcomes & {"ok", "warn"}
    _facts_hold(trace, entry)
    if entry["kind"] in LINKING:
        return
    said = "\n".join(notice.message for notice in trace.notices)
    _says(said, [] if "ok" in outcomes else entry["must_say"], entry)
    if "ok" not in outcomes:
        assert any(notice.lossy for notice in trace.notices)
    if outcomes == {"ok"}:
        assert not any(notice.lossy for notice in trace.notices)


def _read(path: Path) -> Trace | ReadError:
    try:
        return read(path)
    except ReadError as error:
        return error


def _says(text: str, wanted: list[str], entry: dict[str, Any]) -> None:
    lowered = text.lower().replace(entry["as"].lower(), "")
    for choice in wanted:
        assert any(word.lower() in lowered for word in choice.split("|")), f"{choice!r} not in {text!r}"
    for word in entry.get("must_not_say", []):
        assert word.lower() not in lowered


def _facts_hold(trace: Trace, entry: dict[str, Any]) -> None:
    facts = entry["facts"]
    seen = {name: value for name, value in _counted(trace).items() if name in facts}
    if entry["load"] != "error" and "error" not in entry.get("also_accept", []):
        assert seen == pytest.approx({name: facts[name] for name in seen}, abs=0.0011)
    for name in entry.get("names_verbatim", []):
        assert name in trace.names


def _counted(trace: Trace) -> dict[str, Any]:
    kernel_ns = trace.dur_ns[trace.rows(Cat.KERNEL)]
    annotations = trace.rows(Cat.USER_ANNOTATION)
    op_ns = trace.dur_ns[trace.rows(Cat.CPU_OP)]
    kernel_sum_us = int(kernel_ns[kernel_ns != UNKNOWN_NS].sum()) / 1000
    return {
        "n_events": trace.n_events,
        "n_good_events": trace.n_events,
        "n_complete": len(trace),
        "n_kernels": len(kernel_ns),
        "n_gpu_ops": len(trace.gpu.row),
        "kernel_sum_us": kernel_sum_us,
        "kernel_sum_us_of_the_others": kernel_sum_us,
        "cpu_op_sum_us": int(op_ns[op_ns != UNKNOWN_NS].sum()) / 1000,
        "n_bad_dur": int((trace.dur_ns == UNKNOWN_NS).sum()),
        "n_bad_ts": int((trace.start_ns == UNKNOWN_NS).sum()),
        "n_steps": sum(trace.name_of(int(row)).startswith("ProfilerStep#") for row in annotations),
        "n_cpu_ops": len(op_ns),
        "n_overhead": len(trace.rows(Cat.OVERHEAD)),
        "n_op_threads": len({int(trace.thread[row]) for row in trace.rows(Cat.CPU_OP)}),
        "longest_name": max(map(len, trace.names), default=0),
        "rank": trace.header.rank,
        "world_size": trace.header.world_size,
    }


def test_epoch_times_are_exact(cases):
    trace = read(cases / "epoch_us_gaps.json")
    kernels = trace.rows(Cat.KERNEL)
    gaps = trace.start_ns[kernels][1:] - trace.end_ns()[kernels][:-1]
    assert gaps.tolist() == EXPECTED["epoch_us_gaps.json"]["facts"]["gaps_ns"]


@pytest.mark.parametrize("name", ["epoch_us_gaps.json", "base_time_number.json"])
def test_wall_clock_start(name, cases):
    trace = read(cases / name)
    start_ns = int(trace.start_ns[trace.cat != Cat.SPAN].min())
    wall_ns = start_ns + trace.header.base_time_ns
    assert wall_ns == EXPECTED[name]["facts"]["wall_clock_start_ns"]


def test_lost_stamps_stay_out_of_the_window(cases):
    trace = read(cases / "ts_zero_two.json")
    known = trace.start_ns[trace.start_ns != UNKNOWN_NS]
    assert known.max() - known.min() < 1_000_000_000


def test_two_ranks_in_one_file_are_not_mixed(cases):
    trace = read(cases / "interleaved_overrun.json")
    facts = EXPECTED["interleaved_overrun.json"]["facts"]
    assert trace.n_events == facts["n_whole_events_before"]
    message = next(n.message for n in trace.notices if n.code == "interleaved")
    assert int(message.split("byte ")[1].split()[0].replace(",", "")) <= facts["seam_byte"]


def test_repairs_are_counted(cases):
    said = {n.code: n.message for n in read(cases / "bad_escape_win.json").notices}
    assert said["invalid-escape"].startswith("8 invalid escapes")
    said = {n.code: n.message for n in read(cases / "nan_inf_args_inf.json").notices}
    assert said["non-finite"].startswith("3 values")
    said = {n.code: n.message for n in read(cases / "odd_names_null.json").notices}
    assert said["odd-names"].startswith("4 events")
