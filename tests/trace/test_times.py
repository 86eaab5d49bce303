"""Durations and stamps that cannot be true, begin/end pairs, and exact arithmetic."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehunch.trace import read_bytes
from tracehunch.trace.model import UNKNOWN_NS
from tracehunch.trace.times import exact_ns, whole_ns


@given(st.integers(-(2**43) * 1000 + 1, 2**43 * 1000 - 1))
def test_doubles_below_the_limit_round_to_the_nanosecond(ns):
    assert whole_ns(np.array([float(Decimal(ns) / 1000)])).tolist() == [ns]


@given(st.integers(-(2**62) + 1, 2**62 - 1))
def test_text_is_exact_at_any_size(ns):
    assert exact_ns(f"{Decimal(ns) / 1000:f}") == ns


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1.0005", 1000),
        ("1.00051", 1001),
        ("1e3", 1_000_000),
        ("-0.001", -1),
        ("1e-400", 0),
        ("", UNKNOWN_NS),
        ("nan", UNKNOWN_NS),
        ("inf", UNKNOWN_NS),
        ("1e30", UNKNOWN_NS),
        ("9" * 5000, UNKNOWN_NS),
        ("1e999999999999", UNKNOWN_NS),
        ("12 us", UNKNOWN_NS),
        ("1_000", UNKNOWN_NS),
        ("\uff11\uff12", UNKNOWN_NS),
        ("0x10", UNKNOWN_NS),
        ("+1.5", 1500),
        (" 1.5\n", 1500),
    ],
)
def test_texts(text, ns):
    assert exact_ns(text) == ns


def _codes(data: bytes) -> list[str]:
    return [n.code for n in read_bytes(data, "x").notices if n.lossy]


def test_every_reason_for_an_unusable_duration_is_told_apart(made):
    entries = [
        made.complete(dur=dur) for dur in (1.0, -1, None, "x", "nan", 1e20, "1_0", "\uff11\uff12", "-inf")
    ]
    del entries[0]["dur"]
    trace = read_bytes(made.compact(entries), "x")
    assert (trace.dur_ns == UNKNOWN_NS).all()
    messages = [n.message for n in trace.notices if n.code == "bad-duration"]
    for word in ("missing", "negative", "not a number", "NaN", "implausible"):
        assert sum(word in message for message in messages) == 1, word
    assert trace.end_ns().tolist() == trace.start_ns.tolist()


def test_a_kernel_that_outlasts_everything_is_distrusted(made):
    kernels = [made.kernel(1000.0 * i, 20.0) for i in range(20)]
    kernels[5]["dur"] = 1_600_000.0
    kernels[9]["dur"] = 4_294_967.0
    trace = read_bytes(made.compact(kernels), "x")
    assert np.flatnonzero(trace.dur_ns == UNKNOWN_NS).tolist() == [5, 9]
    assert _codes(made.compact(kernels)) == ["bad-duration"]


@pytest.mark.parametrize(
    "change",
    [
        {"at": 19, "dur": 80_000.0},  # the last on its stream: a long kernel, nothing contradicts it
        {"at": 5, "dur": 1_005.0},  # overlaps the next one slightly (programmatic dependent launch)
        {"at": 5, "dur": 2_010.0},  # and two
        {"at": 5, "dur": 150.0},  # not ten times as long as the others
        {
            "at": 5,
            "dur": 80_000.0,
            "args": {"device": 0, "stream": 9, "correlation": 99},
        },  # alone on its stream
        {"at": 5, "dur": 12_000.0, "args": {"device": 0, "correlation": 99}, "tid": ""},  # of no known stream
    ],
)
def test_long_kernels_that_may_be_true_are_believed(change, made):
    change = dict(change)
    kernels = _stream(made)
    at = change.pop("at")
    kernels[at] |= change
    assert _codes(made.compact(kernels)) == []


def _stream(made) -> list[dict]:
    return [made.kernel(1000.0 * i, 20.0, args={"correlation": i + 1}) for i in range(20)]


def test_a_kernel_that_outlasts_several_later_ones_on_its_stream_is_distrusted(made):
    kernels = _stream(made)
    kernels[5]["dur"] = 3_500.0
    trace = read_bytes(made.compact(kernels), "x")
    assert np.flatnonzero(trace.dur_ns == UNKNOWN_NS).tolist() == [5]
    assert _codes(made.compact(kernels)) == ["bad-duration"]


def test_branches_of_one_graph_launch_may_outlast_each_other(made):
    kernels = _stream(made)
    for kernel in kernels[5:12]:
        kernel["args"]["correlation"] = 6
    kernels[5]["dur"] = 6_500.0
    assert _codes(made.compact(kernels)) == []


def test_kernels_that_all_outlast_others_share_a_queue_with_them(made):
    kernels = _stream(made)
    for at in (2, 8, 14):
        kernels[at] |= {"name": "persistent", "dur": 4_500.0}
    assert _codes(made.compact(kernels)) == []
    kernels[8]["name"] = kernels[14]["name"] = "k"
    assert _codes(made.compact(kernels)) == ["bad-duration"]


def test_streams_of_several_processes_are_not_one(made):
    kernels = _stream(made)
    kernels[5]["dur"] = 3_500.0
    ops = [made.complete(pid=pid, tid=pid) for pid in (1, 2)]
    assert _codes(made.compact([*ops[:1], *kernels])) == ["bad-duration"]
    assert _codes(made.compact([*ops, *kernels])) == []


@pytest.mark.parametrize("stream", [7, 9])
def test_a_last_kernel_that_ends_far_behind_all_else_is_distrusted(made, stream):
    kernels = _stream(made)
    kernels[19] |= {"dur": 1_600_000.0, "tid": stream, "args": {"stream": stream, "correlation": 20}}
    wait = made.complete(cat="cuda_runtime", name="cudaDeviceSynchronize", ts=19_000.0, dur=1_600_001.0)
    assert _codes(made.compact([made.complete(), *kernels])) == ["bad-duration"]
    assert _codes(made.compact([made.complete(), *kernels, wait])) == []
    window = made.complete(cat="Trace", name="PyTorch Profiler (0)", ts=0.0, dur=1_600_000.0)
    assert _codes(made.compact([made.complete(), *kernels, window])) == []


@pytest.mark.parametrize("lost", [1.0, -5.0, 0.0, 77.0, 9e15 / 1000])
def test_a_lost_stamp_need_not_be_zero(made, lost):
    host = [made.complete(ts=5e12 + i) for i in range(3)]
    kernels = [made.kernel(5e12 + i, 1.0) for i in range(3)]
    trace = read_bytes(made.compact([made.kernel(lost, 1.0), *host, *kernels]), "x")
    assert [n.code for n in trace.notices if n.lossy] == ["lost-timestamp"]
    assert np.flatnonzero(trace.start_ns == UNKNOWN_NS).tolist() == [0]


def test_a_gpu_whose_clock_is_another_has_not_lost_its_stamps(made):
    host = [made.complete(ts=5e12 + i) for i in range(3)]
    kernels = [made.kernel(9e12 + i, 1.0) for i in range(3)]
    assert _codes(made.compact([*host, *kernels])) == []


def test_a_stamp_of_zero_is_lost_only_where_all_else_is_far_away(made):
    far = [made.kernel(5e12 + i, 1.0) for i in range(3)]
    trace = read_bytes(made.compact([made.kernel(0, 0), *far]), "x")
    assert trace.start_ns.tolist()[0] == UNKNOWN_NS
    assert [n.code for n in trace.notices if n.lossy] == ["lost-timestamp"]
    ops = [made.complete(ts=0.0), made.complete(ts=2e6)]  # the host's clock may begin at 0
    assert read_bytes(made.compact(ops), "x").start_ns.tolist() == [0, 2_000_000_000]
    near = [made.kernel(float(i), 1.0) for i in range(3)]
    assert read_bytes(made.compact(near), "x").start_ns.tolist() == [0, 1000, 2000]


def test_pairs_are_joined_innermost_first_by_thread(made):
    marks = [
        ("B", "outer", 1, 0.0),
        ("B", "outer", 2, 1.0),
        ("B", "inner", 1, 2.0),
        ("E", "inner", 1, 3.0),
        ("E", None, 2, 5.0),
        ("E", "outer", 1, 9.0),
    ]
    entries = [{"ph": p, "name": n, "cat": "cpu_op", "pid": 1, "tid": t, "ts": ts} for p, n, t, ts in marks]
    trace = read_bytes(made.compact(entries), "x")
    assert [trace.name_of(r) for r in range(3)] == ["outer", "outer", "inner"]
    assert trace.dur_ns.tolist() == [9000, 4000, 1000]
    assert trace.event.tolist() == [0, 1, 2]
    assert trace.notices == ()


def test_unmatched_begins_and_ends_are_counted(made):
    marks = [("E", "a", 0.0), ("B", "b", 1.0), ("B", "c", 2.0), ("E", "c", 3.0), ("E", "d", 4.0)]
    entries = [{"ph": p, "name": n, "cat": "cpu_op", "pid": 1, "tid": 1, "ts": ts} for p, n, ts in marks]
    trace = read_bytes(made.compact(entries), "x")
    said = {n.code: n.message for n in trace.notices if n.lossy}
    assert said["unmatched-begin"].startswith("1 begin event")
    assert said["unmatched-end"].startswith("2 end events")
    assert trace.dur_ns.tolist() == [UNKNOWN_NS, 1000]


@given(st.recursive(st.just([]), lambda inner: st.lists(inner, max_size=3), max_leaves=12))
def test_any_nesting_of_pairs_comes_back(made, tree):
    entries, wanted, clock = [], {}, [0]

    def write(children: list, name: str) -> None:
        clock[0] += 1
        start = clock[0]
        entries.append({"ph": "B", "name": name, "pid": 1, "tid": 1, "ts": start})
        for i, child in enumerate(children):
            write(child, f"{name}.{i}")
        clock[0] += 1
        entries.append({"ph": "E", "pid": 1, "tid": 1, "ts": clock[0]})
        wanted[name] = (clock[0] - start) * 1000

    write(tree, "r")
    trace = read_bytes(made.compact(entries), "x")
    assert {trace.name_of(r): int(trace.dur_ns[r]) for r in range(len(trace))} == wanted
