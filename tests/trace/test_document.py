"""The top level of a file: where the events are, what stands beside them, and what follows."""

from __future__ import annotations

import json

import pytest

from tracehunch.errors import ReadError
from tracehunch.trace import read_bytes

EVENT = '{"ph": "X", "name": "a", "cat": "cpu_op", "ts": 1, "dur": 1, "pid": 1, "tid": 1}'


def _codes(text: str) -> list[str]:
    return [notice.code for notice in read_bytes(text.encode(), "x").notices]


def test_brackets_and_key_names_in_strings_fool_nobody():
    header = {"a": '"traceEvents": [{"ph": "X"}]', "b": {"traceEvents": [1]}, "c": "]}"}
    text = json.dumps(header)[:-1] + f', "traceEvents": [{EVENT}], "d": "]]}}"}}'
    trace = read_bytes(text.encode(), "x")
    assert trace.n_events == 1
    assert trace.header.metadata["d"] == "]]}"
    assert trace.header.metadata["b"] == {"traceEvents": [1]}
    assert trace.notices == ()


def test_both_of_two_arrays_are_read():
    trace = read_bytes(
        f'{{"traceEvents": [{EVENT}], "x": 1, "traceEvents": [{EVENT}, {EVENT}]}}'.encode(), "x"
    )
    assert trace.n_events == 3
    assert trace.event.tolist() == [0, 1, 2]
    assert [n.code for n in trace.notices] == ["duplicate-events"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f'{{"traceEvents": [{EVENT}]}} {{"traceEvents": [{EVENT}]}}', "trailing-content"),
        (f'{{"traceEvents": [{EVENT}]}} garbage', "trailing-content"),
        (f"[{EVENT}] [{EVENT}]", "trailing-content"),
        (f'{{"traceEvents": [{EVENT}],}}', "extra-comma"),
        (f'{{"a": 1 "traceEvents": [{EVENT}]}}', "missing-comma"),
        (f'{{"a": nan, "traceEvents": [{EVENT}]}}', "damaged-header"),
        (f'{{"a": "x"y", "traceEvents": [{EVENT}]}}', "damaged-header"),
        (f'{{"traceEvents": [{EVENT}], "a": "x', "truncated"),
        (f'{{"traceEvents": [{EVENT}]', "truncated"),
        (f'{{"traceEvents": [{EVENT}], "a": "x"y"}}', "damaged-footer"),
        (f'{{"traceEvents": [{EVENT}]], {EVENT}]}}', "damaged-footer"),
        (f'{{"traceEvents": [{EVENT}], {EVENT}]}}', "extra-bracket"),
        ('{"traceEvents": []}', "no-events"),
    ],
)
def test_oddities_of_the_top_level_are_said(text, code):
    trace = read_bytes(text.encode(), "x")
    assert code in [n.code for n in trace.notices if n.lossy]
    assert trace.n_events == (2 if code == "extra-bracket" else 0 if code == "no-events" else 1)


def test_padding_behind_the_trace_is_nothing():
    assert _codes(f'{{"traceEvents": [{EVENT}]}}\n\0\0\0') == []


def test_a_damaged_file_with_nothing_to_read_is_refused_with_its_offset():
    with pytest.raises(ReadError, match="byte"):
        read_bytes(b'{"traceEvents": [{"ph": "X", "name": "a"b"}]}', "x")


@pytest.mark.parametrize("part", [-30, 3, 8, 20])
def test_what_another_process_wrote_over_the_end_is_not_mixed_in(part, made):
    ours = made.kineto([made.complete(pid=1000, ts=float(i), dur=1.0, args={"x": 1}) for i in range(8)])
    theirs = made.kineto([made.complete(pid=2000, ts=float(i), dur=1.0, args={"x": 1}) for i in range(16)])
    mixed = ours[: ours.rindex(b'"dur"') + part] + theirs[theirs.index(b'"dur"', len(ours)) :]
    trace = read_bytes(mixed, "x")
    assert {pid for pid, _ in trace.threads} == {"1000"}
    assert "interleaved" in [n.code for n in trace.notices if n.lossy]
