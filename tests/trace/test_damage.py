"""Damage stays where it is: what is whole is read, what is lost is said, and nothing raises but ReadError."""

from __future__ import annotations

import gzip
import json
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracehunch.errors import ReadError
from tracehunch.trace import Trace, read_bytes

DATA = Path(__file__).parents[1] / "data"
TEXT = (DATA / "cases" / "public" / "two_streams.json").read_bytes()
ENTRIES = json.loads(TEXT)["traceEvents"]
EVENTS_FROM = TEXT.index(b'"traceEvents"') + 16
EVENTS_TO = TEXT.rindex(b"]")


def _event_ends(text: bytes) -> list[int]:
    """Where each event of TEXT ends, by decoding one after the other."""
    decoder, ends, pos = json.JSONDecoder(), [], EVENTS_FROM
    plain = text.decode()
    while (pos := plain.find("{", pos)) != -1:
        try:
            _, pos = decoder.raw_decode(plain, pos)
        except ValueError:
            break
        ends.append(pos)
    return ends


ENDS = _event_ends(TEXT)


def _read(data: bytes) -> Trace | ReadError:
    try:
        return read_bytes(data, "x")
    except ReadError as error:
        return error


def _codes(trace: Trace) -> set[str]:
    return {notice.code for notice in trace.notices if notice.lossy}


@settings(max_examples=250, deadline=None)
@given(st.integers(0, len(TEXT) - 2))
def test_truncated_anywhere_keeps_the_whole_events_and_no_half_one(length):
    whole = sum(end <= length for end in ENDS)
    if whole == 0:
        with pytest.raises(ReadError):
            read_bytes(TEXT[:length], "x")
        return
    trace = read_bytes(TEXT[:length], "x")
    assert trace.n_events == whole
    assert "truncated" in _codes(trace)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["replace", "insert", "delete"]),
    st.integers(EVENTS_FROM, EVENTS_TO - 1),
    st.sampled_from([*b'{}[],:"\\ \nx0', 0, 255]),
    st.sampled_from([300, 1 << 19]),
)
def test_one_bad_byte_costs_at_most_two_events_and_is_said(how, at, byte, piece_bytes):
    kept = at if how == "insert" else at + 1
    data = TEXT[:at] + (b"" if how == "delete" else bytes([byte])) + TEXT[kept:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracehunch.trace.events.PIECE_BYTES", piece_bytes)
        trace = read_bytes(data, "x")
    lost = len(ENTRIES) - trace.n_events
    assert lost <= 2
    assert not lost or _codes(trace)
    rows = [(trace.name_of(r), int(trace.start_ns[r])) for r in range(len(trace))]
    sound = {(e["name"], round(e["ts"] * 1000)) for e in ENTRIES if e["ph"] == "X"}
    assert sum(row not in sound for row in rows) <= 1  # the damaged one itself may have been changed


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(TEXT) - 1), st.integers(0, 255)), max_size=30), st.booleans())
def test_random_flips_raise_nothing_but_read_errors(flips, packed):
    data = bytearray(gzip.compress(TEXT, mtime=0) if packed else TEXT)
    for at, byte in flips:
        data[at % len(data)] = byte
    got = _read(bytes(data))
    if isinstance(got, ReadError):
        assert str(got).isprintable()
        return
    assert all(notice.message.isprintable() for notice in got.notices)
    for row in range(len(got)):
        got.args_of(row)


@settings(max_examples=250, deadline=None)
@given(st.binary(max_size=300) | st.text('{}[]",:\\0a ', max_size=200).map(str.encode))
def test_arbitrary_bytes_raise_nothing_but_read_errors(data):
    got = _read(data)
    assert isinstance(got, Trace) or str(got).isprintable()


def test_an_event_lost_in_the_middle_leaves_its_neighbours_and_their_args():
    data = TEXT.replace(b'"cat": "kernel"', b'"cat": "ker"nel"', 1)
    trace = read_bytes(data, "x")
    assert trace.n_events == len(ENTRIES) - 1
    by_start = {round(e["ts"] * 1000): e for e in ENTRIES if e["ph"] == "X"}
    for row in range(len(trace)):
        assert trace.args_of(row) == by_start[int(trace.start_ns[row])].get("args", {})


def test_a_list_of_objects_inside_a_lost_event_yields_no_events(made):
    bad = made.complete(args={"list": [{"name": "x"}, {"name": "y", "ts": 1}], "z": 1})
    data = made.compact([made.complete(), bad, made.complete()]).replace(
        b'"cpu_op","name":"aten::mm"', b'"cpu"op"', 2
    )
    data = data.replace(b'"cpu"op"', b'"cpu_op","name":"aten::mm"', 1)
    trace = read_bytes(data, "x")
    assert trace.n_events == 2
    assert "damaged-event" in _codes(trace)


def test_offsets_are_where_the_damage_is():
    at = TEXT.index(b'"cat": "kernel"')
    trace = read_bytes(TEXT.replace(b'"cat": "kernel"', b'"cat": "ker"nel"', 1), "x")
    message = next(n.message for n in trace.notices if n.code == "damaged-event")
    offset = int(message.split("byte ")[1].rstrip(")").replace(",", ""))
    assert at - 40 < offset <= at


@pytest.mark.parametrize(
    ("find", "put", "code"),
    [
        (b'"dur": 1', b'"dur": NaN, "x": 1', "non-finite"),
        (b'"dur": 1', b'"dur": N/A, "x": 1', "bare-token"),
        (b'"ProfilerStep#', b'"C:\\Profiler', "invalid-escape"),
        (b'"ProfilerStep#', b'"a\x07b', "control-character"),
        (b'"ProfilerStep#', b'"\xff', "invalid-utf8"),
        (b'"ph": "X"', b'"y": [1,], "ph": "X"', "extra-comma"),
        (b"  },\n  {", b"  }\n  {", "missing-comma"),
        (b"  },\n  {", b"  },,\n  {", "extra-comma"),
        (b'"ph": "X"', b'"y": ' + b"[" * 2000 + b"]" * 2000 + b', "ph": "X"', "deep-nesting"),
        (b'"traceEvents": [', b'"traceEvents": [null, 5, "x", {}, [1],', "not-events"),
    ],
)
def test_what_can_be_repaired_loses_no_event(find, put, code):
    trace = read_bytes(TEXT.replace(find, put, 1), "x")
    assert trace.n_events == len(ENTRIES)
    assert _codes(trace) >= {code}


def test_positions_count_every_entry_of_the_file():
    trace = read_bytes(TEXT.replace(b'"traceEvents": [', b'"traceEvents": [null, 5,', 1), "x")
    plain = read_bytes(TEXT, "x")
    assert (trace.event - 2).tolist() == plain.event.tolist()
    assert trace.args_of(3) == plain.args_of(3)


def test_a_missing_closing_bracket_is_told_from_truncation():
    data = TEXT[:EVENTS_TO] + TEXT[EVENTS_TO + 1 :]
    trace = read_bytes(data, "x")
    assert trace.n_events == len(ENTRIES)
    assert _codes(trace) >= {"missing-bracket"}


def test_a_text_that_was_cut_and_goes_on_in_the_same_process_is_read_on():
    data = TEXT[: ENDS[20] - 60] + TEXT[ENDS[22] - 60 :]
    trace = read_bytes(data, "x")
    assert len(ENTRIES) - 3 <= trace.n_events < len(ENTRIES)


def test_reading_many_damaged_events_takes_time_in_proportion(made):
    def seconds(n: int) -> float:
        data = made.kineto([made.complete(ts=float(i)) for i in range(n)]).replace(b'"aten::mm"', b'"a"b"')
        start = time.thread_time()
        with pytest.raises(ReadError):
            read_bytes(data, "x")
        return time.thread_time() - start

    least = min(seconds(1000) for _ in range(3))
    assert any(seconds(4000) < 12 * least + 0.2 for _ in range(5))  # a busy machine disturbs some of them


@pytest.mark.parametrize("end", [b"", b"}]}", b'"a":[{}]' * 1000 + b"}]}"])
@pytest.mark.parametrize(
    "start", [b'{"ph":"X",', b'{"ph":"X","args":{"a":"', b'[1,{"ph":"X"},', b'{"a":[{"ph":"X"},']
)
def test_hostile_nesting_takes_time_in_proportion(start, end):
    begun = time.thread_time()
    _read(b'{"traceEvents":[' + start * 20_000 + end)
    assert time.thread_time() - begun < 60  # by the square of the length it would be minutes


def test_odd_values_of_the_header_are_repaired_and_said_in_words():
    trace = read_bytes(TEXT.replace(b'"traceEvents"', b'"note": "a\x07b", "traceEvents"', 1), "x")
    (message,) = [n.message for n in trace.notices if n.code == "damaged-header"]
    assert "control character" in message


def test_event_ends_are_ascending():
    assert len(ENDS) == len(ENTRIES)
    assert all(a < b for a, b in pairwise(ENDS))
