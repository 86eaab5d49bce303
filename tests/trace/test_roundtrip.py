"""What is written is read, in every layout."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracehunch.trace import read_bytes

names = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ['},{"ph":"X"', '"traceEvents": [', "a]}", 'quote " and \\', "\x00\x1f", "\u2028", "名前"]
)
_RUN_NS = 10**10
"""What lies farther apart may be distrusted."""
_NEAR_ZERO_NS = 2 * 10**6
"""A GPU's stamp nearer to 0 may be one that it never got."""
arguments = st.dictionaries(
    st.sampled_from(["correlation", "External id", "Sequence number", "x", "Call stack"]),
    st.integers(0, 2**31),
    max_size=3,
) | st.just({"list": [{"name": "x"}, {"ph": "X", "ts": 1}], "correlation": 5})


@st.composite
def events(draw: st.DrawFn) -> list[dict[str, Any]]:
    entries, base_ns = [], draw(st.integers(_NEAR_ZERO_NS, 2**43 * 1000 - 1 - _RUN_NS))
    for phase in draw(st.lists(st.sampled_from("XXXXXXisfMC"), max_size=25)):
        entry = {
            "ph": phase,
            "cat": draw(st.sampled_from(["cpu_op", "kernel", "cuda_runtime", "ac2g", "made up"])),
        }
        entry |= {"name": draw(names), "pid": draw(st.integers(0, 9) | names), "tid": draw(st.integers(0, 9))}
        entry["ts"] = (base_ns + draw(st.integers(0, _RUN_NS))) / 1000
        if phase == "X":
            long_or_usual = st.integers(1000, 9000) if entry["cat"] == "kernel" else st.integers(0, 10**12)
            entry["dur"] = draw(long_or_usual) / 1000
        if draw(st.booleans()):
            entry["args"] = draw(arguments)
        entries.append(entry)
    return entries


@settings(max_examples=150, deadline=None)
@given(
    events(),
    st.sampled_from(["kineto", "compact", "exported", "array", "open_array"]),
    st.sampled_from([1, 400, 1 << 19]),
)
def test_what_is_written_is_read(made, entries, layout, piece_bytes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracehunch.trace.events.PIECE_BYTES", piece_bytes)
        if not entries and layout == "open_array":
            return  # nothing but an opening bracket: no trace
        trace = read_bytes(getattr(made, layout)(entries), "x")
    complete_ones = [(i, e) for i, e in enumerate(entries) if e["ph"] == "X"]
    assert trace.n_events == len(entries)
    assert trace.event.tolist() == [i for i, _ in complete_ones]
    for row, (_, entry) in enumerate(complete_ones):
        assert trace.name_of(row) == entry["name"]
        assert trace.threads[trace.thread[row]] == (str(entry["pid"]), str(entry["tid"]))
        assert trace.start_ns[row] == round(entry["ts"] * 1000)
        assert trace.dur_ns[row] == round(entry["dur"] * 1000)
        assert trace.args_of(row) == entry.get("args", {})
        if entry["cat"] == "cuda_runtime":
            assert trace.correlation[row] == entry.get("args", {}).get("correlation", -1)
    assert not any(notice.lossy for notice in trace.notices if notice.code != "no-events")


@settings(max_examples=200, deadline=None)
@given(st.integers(2**43 * 1000, 2**61), st.booleans())
def test_stamps_beyond_a_double_are_exact(made, ns, as_text):
    text = f"{ns // 1000}.{ns % 1000:03d}"
    data = made.compact([made.complete(ts=0)]).replace(
        b'"ts":0', b'"ts":' + (f'"{text}"' if as_text else text).encode()
    )
    assert read_bytes(data, "x").start_ns.tolist() == [ns]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["ph", "cat", "name", "ts", "dur", "pid", "tid", "args", "correlation", "grid", "bytes"]
            ),
            st.none()
            | st.booleans()
            | st.integers(-(2**70), 2**70)
            | st.floats(allow_nan=True)
            | st.text(max_size=5)
            | st.lists(st.integers(0, 3), max_size=4)
            | st.builds(dict),
        ),
        max_size=4,
    )
)
def test_no_value_of_any_type_breaks_reading(made, changes):
    entry: dict[str, Any] = made.complete(cat="kernel", args={"stream": 7})
    for key, value in changes:
        if key in entry:
            entry[key] = value
        elif isinstance(entry["args"], dict):
            entry["args"][key] = value
    trace = read_bytes(made.compact([made.complete(name="first"), entry, made.complete(name="last")]), "x")
    assert [trace.names[trace.name[0]], trace.names[trace.name[-1]]] == ["first", "last"]
    for row in range(len(trace)):
        trace.args_of(row)
    finite = not isinstance(entry["dur"], float) or math.isfinite(entry["dur"])
    assert finite or trace.notices


def test_numbers_in_strings_are_numbers(made):
    entry = made.complete(ts="10.001", dur="2.5", args={"External id": "12"})
    trace = read_bytes(json.dumps([entry]).encode(), "x")
    assert (trace.start_ns[0], trace.dur_ns[0], trace.external_id[0]) == (10001, 2500, 12)
    assert trace.notices == ()
