"""Compressed files, whole and damaged, told by their first bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest

from tracehunch.errors import ReadError
from tracehunch.trace import read_bytes, unpack

NAIVE = Path(__file__).parents[1] / "data" / "h200" / "seeds" / "naive.json.gz"
TEXT = gzip.decompress(NAIVE.read_bytes())
EVENTS = 277


def _zip(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/").replace("_json", ".json"), data)
    return buffer.getvalue()


def _tar(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name.replace("_json", ".json"))
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _zstd(data: bytes) -> bytes:
    return pytest.importorskip("zstandard").compress(data)


HALVES = TEXT[:30_000], TEXT[30_000:]
WHOLE = {
    "gzip": lambda: gzip.compress(TEXT),
    "gzip-members": lambda: b"".join(gzip.compress(half) for half in HALVES),
    "gzip-padded": lambda: gzip.compress(TEXT) + bytes(700),
    "gzip-twice": lambda: gzip.compress(gzip.compress(TEXT)),
    "gzip-many-members": lambda: b"".join(gzip.compress(TEXT[i : i + 100]) for i in range(0, len(TEXT), 100)),
    "xz": lambda: lzma.compress(TEXT),
    "xz-streams": lambda: b"".join(lzma.compress(half) for half in HALVES),
    "xz-padded": lambda: lzma.compress(TEXT) + bytes(8),
    "bzip2": lambda: bz2.compress(TEXT),
    "bzip2-streams": lambda: b"".join(bz2.compress(half) for half in HALVES),
    "zstd": lambda: _zstd(TEXT),
    "zstd-frames": lambda: b"".join(_zstd(half) for half in HALVES),
    "zip": lambda: _zip(trace_json=TEXT),
    "zip-folder": lambda: _zip(logs__trace_json=TEXT, logs__readme=b"hello"),
    "zip-gzip": lambda: _zip(trace_json=gzip.compress(TEXT)),
    "tar": lambda: _tar(trace_json=TEXT),
    "tar-gzip": lambda: gzip.compress(_tar(trace_json=TEXT)),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_whole(kind):
    trace = read_bytes(WHOLE[kind](), "x")
    assert trace.n_events == EVENTS
    assert trace.notices == ()


def test_without_isal_the_standard_library_does(monkeypatch):
    monkeypatch.setitem(sys.modules, "isal", None)
    assert read_bytes(gzip.compress(TEXT), "x").n_events == EVENTS


def test_without_a_zstd_decoder_it_says_what_to_install(monkeypatch):
    data = _zstd(TEXT)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    with pytest.raises(ReadError, match="pip install zstandard"):
        read_bytes(data, "x")


@pytest.mark.parametrize("kind", ["gzip", "xz", "bzip2", "zstd", "gzip-many-members"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_truncated_streams_give_what_is_there(kind, share):
    data = WHOLE[kind]()
    data = data[: int(len(data) * share)]
    if kind in ("bzip2", "zstd"):  # one block: nothing comes out before it is whole
        with pytest.raises(ReadError, match="truncated"):
            read_bytes(data, "x")
        return
    trace = read_bytes(data, "x")
    assert 0 < trace.n_events < EVENTS
    assert {"truncated", "truncated-compression"} <= {n.code for n in trace.notices if n.lossy}


def test_every_byte_before_the_cut_is_used():
    data = gzip.compress(TEXT)
    for length in range(len(data) - 12, len(data)):
        trace = read_bytes(data[:length], "x")
        assert trace.n_events == EVENTS
        assert any(n.code == "truncated-compression" for n in trace.notices)


@pytest.mark.parametrize("at", [-8, -4])
def test_a_bad_checksum_is_said(at):
    data = bytearray(gzip.compress(TEXT))
    data[at] ^= 1
    trace = read_bytes(bytes(data), "x")
    assert trace.n_events == EVENTS
    assert [n.code for n in trace.notices] == ["bad-checksum"]
    assert trace.notices[0].lossy


def test_a_bad_checksum_in_the_first_member_does_not_lose_the_second():
    first = bytearray(gzip.compress(HALVES[0]))
    first[-5] ^= 1
    trace = read_bytes(bytes(first) + gzip.compress(HALVES[1]), "x")
    assert trace.n_events == EVENTS


def test_damage_in_the_middle_keeps_the_part_before_and_says_so():
    data = bytearray(gzip.compress(TEXT))
    data[len(data) // 2 : len(data) // 2 + 60] = bytes(60)
    trace = read_bytes(bytes(data), "x")
    assert 0 < trace.n_events < EVENTS
    assert any(n.code == "damaged-compression" and n.lossy and "byte" in n.message for n in trace.notices)


PACKERS = {"gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress, "zip": lambda t: _zip(a_json=t)}


@pytest.mark.parametrize("kind", PACKERS)
def test_text_of_a_damaged_stream_that_is_no_trace_is_put_down_to_the_damage(kind):
    """The text cannot be read, and the stream that gave it is damaged too: that is to blame."""
    text = b'{"schemaVersion": 1, ?' + b"".join(b"%d" % (k * k) for k in range(60_000))
    data = PACKERS[kind](text)
    data = data[: len(data) * 2 // 3] if kind != "zip" else data.replace(data[200:260], bytes(60))
    with pytest.raises(ReadError) as caught:
        read_bytes(data, "x")
    assert kind in str(caught.value)
    assert any(word in str(caught.value) for word in ("truncated", "damaged", "corrupt"))


def test_a_bad_checksum_is_said_of_text_that_cannot_be_read():
    data = bytearray(gzip.compress(b'{"schemaVersion": 1, x'))
    data[-5] ^= 1
    with pytest.raises(ReadError, match=r"byte 21.*gzip checksum"):
        read_bytes(bytes(data), "x")


def test_an_encrypted_zip_is_named_so():
    data = bytearray(_zip(trace_json=TEXT))
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + at] |= 1
    with pytest.raises(ReadError, match="encrypted"):
        read_bytes(bytes(data), "x")


def test_other_bytes_behind_a_gzip_stream_are_ignored_and_said():
    trace = read_bytes(gzip.compress(TEXT) + b"garbage", "x")
    assert trace.n_events == EVENTS
    assert [n.code for n in trace.notices] == ["trailing-bytes"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (gzip.compress(b"", mtime=0), "empty"),
        (gzip.compress(TEXT, mtime=0)[:12], "truncated"),
        (b"\x1f\x8b\x08\x00garbage", "gzip"),
        (_zip(rank0_json=TEXT, rank1_json=TEXT), "rank0.json, rank1.json"),
        (_zip(archive__data_json=TEXT)[:-30], "zip"),
        (_zip(), "empty"),
        (_zip(**{"archive__data.pkl": b"x"}), "torch.save"),
        (_tar(rank0_json=TEXT, rank1_json=TEXT), "rank0.json, rank1.json"),
        (_tar(trace_json=TEXT)[:2000], "tar"),
    ],
)
def test_what_cannot_be_unpacked_is_refused_in_one_line(data, said):
    with pytest.raises(ReadError) as caught:
        read_bytes(data, "x")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_in_archives_are_shown_harmless_and_never_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("../../evil\x1b[31m.json", TEXT)
        archive.writestr("/tmp/evil.json", TEXT)  # noqa: S108 - a name in an archive, which must not be followed
    with pytest.raises(ReadError) as caught:
        read_bytes(buffer.getvalue(), "x")
    assert "\x1b" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


BOMBS = {
    "blank": lambda: gzip.compress(b" " * (80 << 20), 9),
    "dense": lambda: gzip.compress(b'{"traceEvents":[' + b"0," * (160 << 20), 9),
    "bzip2": lambda: bz2.compress(bytes(300 << 20)),
    "xz": lambda: lzma.compress(b"[" * (300 << 20), preset=0),
    "nested": lambda: gzip.compress(gzip.compress(b" " * (80 << 20), 9)),
}


@pytest.mark.parametrize("kind", ["blank", "nested"])
def test_what_expands_to_white_space_is_refused(kind):
    with pytest.raises(ReadError, match="nothing but white space"):
        read_bytes(BOMBS[kind](), "x")


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz", "zstd"])
def test_what_expands_absurdly_is_refused(kind, monkeypatch):
    monkeypatch.setattr("tracehunch.trace.sink._DENSE_BYTES", 4 << 20)
    data = bytes(24 << 20)
    packed = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstd": _zstd}[kind](data)
    with pytest.raises(ReadError, match="times the size of the file"):
        read_bytes(packed, "x")


def test_no_call_of_a_decoder_gives_more_than_it_may(monkeypatch):
    grown = []
    plain_add = unpack.Sink.add

    def add(sink, chunk, consumed):
        grown.append(len(chunk))
        plain_add(sink, chunk, consumed)

    monkeypatch.setattr(unpack.Sink, "add", add)
    data = b"[" + b" " * (60 << 20)
    for pack in (gzip.compress, bz2.compress, lzma.compress, _zstd):
        with pytest.raises(ReadError):
            read_bytes(pack(data), "x")
    assert max(grown) <= 70 << 20


def test_the_checksum_is_that_of_the_text():
    data = gzip.compress(TEXT)
    assert int.from_bytes(data[-8:-4], "little") == zlib.crc32(TEXT)
