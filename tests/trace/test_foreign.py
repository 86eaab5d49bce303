"""Files that are no trace are named for what they are, and never run."""

from __future__ import annotations

import io
import json
import lzma
import pickle
import sqlite3
import zipfile
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from tracehunch.errors import ReadError
from tracehunch.trace import read, read_bytes


class _Bomb:
    def __reduce__(self):
        return (Path.touch, (Path("unpickled"),))


def _zip(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, b"\x93NUMPY")
    return buffer.getvalue()


SNAPSHOT = {"segments": [], "device_traces": [[]], "allocator_settings": {}}
FILES = {
    "a memory snapshot": (pickle.dumps(SNAPSHOT), "memory snapshot"),
    "a memory snapshot as JSON": (json.dumps(SNAPSHOT).encode(), "memory snapshot"),
    "a pickle": (pickle.dumps({"state": _Bomb()}), "pickle"),
    "an execution trace": (
        b'{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1}]}',
        "execution trace",
    ),
    "an nsys report": (b"\0\1\2QuadDCommon\0\0", "nsys"),
    "an HTML page": (b"<!DOCTYPE html><html><body>404</body></html>", "HTML"),
    "a Git LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "LFS"),
    "an ELF binary": (b"\x7fELF\2\1\1" + bytes(60), "ELF"),
    "a late memory snapshot": (
        pickle.dumps({"a": "x" * 100_000, "segments": [], "device_traces": [[]]}),
        "memory snapshot",
    ),
    "a pickle of protocol 0": (pickle.dumps({"a": 1}, protocol=0), "pickle"),
    "a list pickled with protocol 0": (pickle.dumps([1, 2], protocol=0), "pickle"),
    "a pickle of protocol 1": (pickle.dumps({"a": 1}, protocol=1), "pickle"),
    "an object pickled with protocol 0": (pickle.dumps(SimpleNamespace(a=1), protocol=0), "pickle"),
    "an LZMA file": (lzma.compress(b'{"traceEvents": []}', format=lzma.FORMAT_ALONE), "LZMA"),
    "a zlib stream": (zlib.compress(b'{"traceEvents": []}'), "zlib"),
    "a Perfetto trace": (b"\x0a\x10\x08\x01\x12\x0cabcdefghijkl" * 50, "Perfetto"),
    "a NumPy archive": (_zip("a.npy", "b.npy"), "NumPy"),
    "a list in a list": (b'[[{"ph": "X", "name": "a", "ts": 1, "dur": 1}]]', "no trace event"),
    "some binary": (b"\x01\x02\x00\x03", "binary"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(20), "PNG"),
    "an lz4 file": (b"\x04\x22\x4d\x18" + bytes(20), "lz4"),
    "a Python repr": (b"{'traceEvents': [{'ph': 'X'}]}", "byte 1"),
    "plain text": (b"Traceback: something failed", "byte 0"),
    "a number": (b"42\n", "traceEvents"),
    "a string": (b'"hello"', "traceEvents"),
    "null": (b"null", "traceEvents"),
    "an object without events": (b'{"schemaVersion": 1}', "traceEvents"),
    "an empty object": (b"{}", "traceEvents"),
    "events that are null": (b'{"traceEvents": null}', "traceEvents"),
    "events that are an object": (b'{"traceEvents": {"ph": "X"}}', "traceEvents"),
    "a list of something else": (b'[{"a": 1}, 2]', "no trace event"),
    "a speedscope profile": (
        b'{"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": []}',
        "speedscope",
    ),
    "nothing": (b"", "empty"),
    "white space": (b" \n\t ", "empty"),
    "a mark": (b"\xef\xbb\xbf", "empty"),
    "brackets": (b"[" * 200_000, "truncated"),
    "braces": (b'{"a":' * 100_000, "truncated"),
    "a header that stops": (b'{"schemaVersion": 1, "deviceProperties": [{"id": 0, "na', "byte"),
    "a header that stops at the events' key": (b'{"schemaVersion": 1, "traceEvents": ', "truncated"),
    "a header that stops before the events": (b'{"schemaVersion": 1, "traceEvents": [', "truncated"),
    "a first event that stops": (b'{"traceEvents": [{"ph": "X", "na', "truncated"),
    "a first event in an array that stops": (b'[{"ph": "X", "na', "truncated"),
}


@pytest.mark.parametrize("kind", FILES)
def test_named_for_what_it_is(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, said = FILES[kind]
    with pytest.raises(ReadError) as caught:
        read_bytes(data, "x")
    assert said in str(caught.value)
    assert str(caught.value).isprintable()
    assert caught.value.todo
    assert list(tmp_path.iterdir()) == []


def test_an_nsys_export_is_named(tmp_path):
    path = tmp_path / "report.json"
    with sqlite3.connect(path) as database:
        database.execute("create table CUPTI_ACTIVITY_KIND_KERNEL (start int)")
    with pytest.raises(ReadError, match="SQLite"):
        read(path)


def test_an_nsys_report_is_named_by_its_suffix(tmp_path):
    path = tmp_path / "report.nsys-rep"
    path.write_bytes(b"anything")
    with pytest.raises(ReadError, match="Nsight Systems"):
        read(path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_read(encoding, made):
    text = made.compact([made.complete(name="名前")]).decode()
    trace = read_bytes(text.encode(encoding), "x")
    assert trace.name_of(0) == "名前"
    assert not any(notice.lossy for notice in trace.notices)
