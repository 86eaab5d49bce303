"""Paths, folders, pipes and standard input."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tracehunch.errors import ReadError
from tracehunch.trace import read

NAIVE = Path(__file__).parents[1] / "data" / "h200" / "seeds" / "naive.json.gz"
FLASH = NAIVE.with_name("sdpa_flash.json.gz")


def test_a_path_may_be_text_or_a_path_and_the_label_is_the_files_name():
    assert read(str(NAIVE)).n_events == read(NAIVE).n_events == 277
    assert read(NAIVE).label == "naive.json.gz"


def test_a_folder_gives_the_newest_trace_and_names_the_others(tmp_path):
    for age, (source, name) in enumerate([(FLASH, "b.pt.trace.json.gz"), (NAIVE, "a.pt.trace.json.gz")]):
        shutil.copy(source, tmp_path / name)
        os.utime(tmp_path / name, (1_700_000_000 - age, 1_700_000_000 - age))
    (tmp_path / "config.json").write_text("{}")
    trace = read(tmp_path)
    assert trace.label == "b.pt.trace.json.gz"
    notice = next(n for n in trace.notices if n.code == "other-traces")
    assert "a.pt.trace.json.gz" in notice.message
    assert "config.json" not in notice.message
    assert not notice.lossy


def test_a_folder_of_one_trace_needs_no_notice_and_may_hold_it_deeper(tmp_path):
    (tmp_path / "logs").mkdir()
    shutil.copy(NAIVE, tmp_path / "logs" / "x.json.gz")
    assert read(tmp_path).notices == ()


@pytest.mark.parametrize("piped", [NAIVE.read_bytes(), gzip.decompress(NAIVE.read_bytes())])
def test_standard_input(piped, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(piped)))
    trace = read("-")
    assert (trace.n_events, trace.label) == (277, "standard input")


def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ReadError, match="closed"):
        read("-")


def test_an_empty_path_is_no_folder():
    with pytest.raises(ReadError, match="empty"):
        read("")


def test_a_named_pipe_is_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(NAIVE.read_bytes(),))
    writer.start()
    assert read(pipe).n_events == 277
    writer.join()


def test_progress_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("tracehunch.trace.events.PIECE_BYTES", 5000)
    path = tmp_path / "t.json"
    path.write_bytes(gzip.decompress(NAIVE.read_bytes()))
    shares: list[float] = []
    read(path, progress=shares.append)
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] <= 1


@pytest.mark.parametrize(
    ("name", "said"), [("absent.json", "No such file"), ("", "without a trace"), ("nul\0.json", "null")]
)
def test_what_cannot_be_opened_is_one_line(name, said, tmp_path):
    with pytest.raises(ReadError) as caught:
        read(f"{tmp_path}/{name}")
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


def test_an_address_is_not_fetched_without_the_package_for_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ReadError, match="download"):
        read("https://example.org/trace.json")


def test_the_input_is_not_changed(tmp_path):
    path = tmp_path / "t.json.gz"
    shutil.copy(NAIVE, path)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    read(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert list(tmp_path.iterdir()) == [path]
