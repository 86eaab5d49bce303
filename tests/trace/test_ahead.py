"""Large compressed traces are read while they unpack: the same comes out as of the plain text."""

from __future__ import annotations

import gzip
import lzma
import random
import sys
import zlib
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tracehunch.trace import ahead, events, packed, read_bytes, scratch, sink
from tracehunch.trace.model import GpuTable, MemoryTable
from tracehunch.trace.packed import Packed

H200 = Path(__file__).parents[1] / "data" / "h200"
SHAPES = gzip.decompress((H200 / "seeds/shapes_sdpa_math.json.gz").read_bytes())
STACKS = gzip.decompress((H200 / "seeds/stack_sdpa_flash.json.gz").read_bytes())
TRAINING = gzip.decompress((H200 / "models/llama_sdpa_train_stack.json.gz").read_bytes())


@pytest.fixture
def finished(monkeypatch):
    """Make a few kilobytes large; a list of what ``finish`` said of each text that was read ahead."""
    for module, name, value in (
        (sink, "IN_MEMORY_BYTES", 8_000),
        (ahead, "_STEP_BYTES", 1),
        (events, "PIECE_BYTES", 5_000),
        (packed, "BLOCK_BYTES", 3_000),
    ):
        monkeypatch.setattr(module, name, value)
    said = []
    finish = ahead.Ahead.finish

    def noted(self):
        said.append(finish(self))
        return said[-1]

    monkeypatch.setattr(ahead.Ahead, "finish", noted)
    return said


def content(trace):
    """All that a trace says, comparable, with its arguments."""
    columns = {}
    for table in (trace, trace.gpu, trace.memory):
        for one in fields(type(table)):
            value = getattr(table, one.name)
            if isinstance(value, np.ndarray):
                columns[type(table).__name__, one.name] = value.tobytes()
    which, inputs = trace.inputs_of(np.arange(len(trace)))
    rows = range(0, len(trace), 7)
    return (
        columns,
        (trace.names, trace.processes, trace.threads, trace.header, trace.n_events, trace.notices),
        (which.tolist(), inputs, [trace.args_of(row) for row in rows]),
    )


def same(left, right):
    """Compare what two traces say; nan equals nan."""
    return repr(content(left)) == repr(content(right))


@pytest.mark.parametrize("text", [SHAPES, STACKS, TRAINING], ids=["shapes", "stacks", "training"])
@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_a_sound_trace_is_read_ahead(finished, text, pack):
    trace = read_bytes(pack(text, preset=0) if pack is lzma.compress else pack(text, 1), "x")
    assert finished == [True]
    assert same(trace, read_bytes(text, "x"))
    assert {type(trace.gpu), type(trace.memory)} == {GpuTable, MemoryTable}


def damages(text):
    """Yield texts that are damaged somewhere, near the beginning and anywhere, or odd."""
    order = random.Random(7)  # noqa: S311  # the same ones each time
    starts = [at for at in range(len(text) - 20) if text[at : at + 7] == b'"name":']
    for at in (starts[9], order.choice(starts)):
        end = text.index(b"}", at)
        yield text[:at]
        yield text[:at] + text[end:]
        yield text[:end] + text[end + 1 :]
        yield text[: end + 1] + b"," + text[end + 1 :]
        yield text[: end + 1] + text[end + 2 :]
        for inserted in (b"\\q", b"\xff", b"\0\1"):
            yield text[: at + 10] + inserted + text[at + 10 :]
        for key in (b'"x": NaN', b'"dur": "7"', b'"x": {"traceEvents": [{"a": 1}]}'):
            yield text[:at] + key + b", " + text[at:]
    yield text + b"\n[1]"
    yield text.replace(b'"traceEvents"', b'"traceName": "\\"traceEvents\\": [", "traceEvents"', 1)
    yield text.replace(b'"traceEvents"', b'"x": {"traceEvents": [{"ph": "X"}]}, "traceEvents"', 1)
    yield text.rstrip()[:-1] + b', "traceEvents": [{"ph": "X", "name": "more", "ts": 1, "dur": 1}]}'
    yield text.rstrip()[:-1]
    yield b"\xef\xbb\xbf" + text
    yield text.decode().encode("utf-16")
    yield b"  \n" + text


@pytest.mark.parametrize("text", [SHAPES, STACKS], ids=["shapes", "stacks"])
def test_a_damaged_trace_reads_as_its_plain_text_does(finished, text):
    for number, damaged in enumerate(damages(text)):
        assert same(read_bytes(gzip.compress(damaged, 1), "x"), read_bytes(damaged, "x")), number
    assert True in finished
    assert False in finished


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize("at", [0.3, 0.6, 0.95, -9, -5, -1])
def test_a_cut_or_corrupt_stream_reads_as_before(monkeypatch, at):
    whole = gzip.compress(SHAPES)
    at = at if isinstance(at, int) else int(at * len(whole))
    for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 5]) + whole[at:][1:]):
        trace = read_bytes(data, "x")
        with monkeypatch.context() as usual:
            usual.setattr(sink, "IN_MEMORY_BYTES", 1 << 30)
            assert same(trace, read_bytes(data, "x"))


@pytest.mark.usefixtures("finished")
def test_members_after_one_with_a_bad_checksum_are_kept():
    first = bytearray(gzip.compress(SHAPES[:60_000]))
    first[-5] ^= 1
    trace = read_bytes(bytes(first) + gzip.compress(SHAPES[60_000:]), "x")
    assert [notice.code for notice in trace.notices] == ["bad-checksum"]
    assert trace.n_events == read_bytes(SHAPES, "x").n_events


class Full:
    """A disk that takes so many bytes and no more."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise OSError(28, "No space left on device")
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize("room", [None, 0, 50_000, 1 << 30])
def test_text_that_is_not_followed_goes_to_a_disk_as_far_as_there_is_room(monkeypatch, room):
    damaged = SHAPES.replace(b'"cat"', b'"c\\at"', 1)
    usual = scratch.open_scratch

    def opened(n_bytes):
        return None if room is None else Full(usual(n_bytes), room)

    monkeypatch.setattr(sink, "open_scratch", opened)
    assert same(read_bytes(gzip.compress(damaged), "x"), read_bytes(damaged, "x"))


def test_without_a_disk_there_is_no_file(monkeypatch):
    monkeypatch.setattr(scratch, "_kind", lambda *_: "tmpfs")
    assert scratch.open_scratch(1) is None


def test_folders_in_memory_are_told_by_their_mount():
    kinds = scratch._kinds_of_mounts()
    if "/proc" not in kinds:
        pytest.skip("this system does not list its mounts")
    assert scratch._kind("/proc/self", kinds) == "proc"
    assert scratch._kind("/a/b", {"/": "ext4", "/a": "tmpfs"}) == "tmpfs"


@pytest.mark.parametrize("with_isal", [True, False])
def test_packed_text_gives_every_stretch(monkeypatch, with_isal):
    monkeypatch.setattr(packed, "BLOCK_BYTES", 1_000)
    if not with_isal:
        monkeypatch.setitem(sys.modules, "isal", None)
    text = SHAPES[:10_500]
    kept = Packed()
    for start in range(0, len(text), 777):
        kept.add(text[start : start + 777])
    assert len(kept) == len(text)
    assert (kept._decompress is zlib.decompress) is not with_isal
    for start, end in (
        (0, 1),
        (0, 10_500),
        (999, 1_001),
        (5_000, 6_000),
        (10_400, 99_999),
        (4, 4),
        (2_500, 9),
    ):
        assert kept[start:end] == text[start:end]
