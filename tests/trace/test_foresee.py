"""What a trace will take is told from its beginning, and what is too large is refused before it is read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from pathlib import Path

import pytest

from tracehunch.errors import ReadError
from tracehunch.trace import foresee, read, read_bytes
from tracehunch.trace.coding import beginning

H200 = Path(__file__).parents[1] / "data" / "h200"
RECOMPILES = H200 / "situations/gpt_recompiles.json.gz"
TEXT = gzip.decompress((H200 / "models/llama_sdpa_train.json.gz").read_bytes())
N_EVENTS = TEXT.count(b'"ph"')


PACKED = {
    "plain": bytes,
    "gzip": gzip.compress,
    "xz": lambda text: lzma.compress(text, preset=0),
    "bzip2": bz2.compress,
}


@pytest.mark.parametrize("kind", PACKED)
def test_size_and_events_are_near_what_they_are(monkeypatch, kind):
    monkeypatch.setattr(foresee, "_SAMPLE_BYTES", 1 << 20)  # of six
    need = foresee.need_of(memoryview(PACKED[kind](TEXT)))
    assert need.text_bytes == pytest.approx(len(TEXT), rel=0.25)
    assert need.events == pytest.approx(N_EVENTS, rel=0.25)
    assert need.peak_bytes > foresee._EVENT_BYTES * need.events


def test_gzip_states_its_size():
    data = RECOMPILES.read_bytes()
    assert foresee.need_of(memoryview(data)).text_bytes == len(gzip.decompress(data))


def test_the_last_of_several_members_does_not_count_for_all():
    data = b"".join(gzip.compress(TEXT[at : at + 100_000]) for at in range(0, len(TEXT), 100_000))
    assert foresee.need_of(memoryview(data)).text_bytes == pytest.approx(len(TEXT), rel=0.25)


def test_of_a_zip_or_a_damaged_stream_something_is_said():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("trace.json", TEXT)
    assert beginning(memoryview(buffer.getvalue()), 1000) == (b"", 0)
    for data in (buffer.getvalue(), b"\x1f\x8b\x08" + bytes(50), b""):
        assert foresee.need_of(memoryview(data)).peak_bytes >= foresee._BASE_BYTES


def test_what_is_too_large_is_refused_in_one_line_with_what_to_do():
    with pytest.raises(ReadError) as caught:
        read(RECOMPILES, max_memory=100 << 20)
    message = str(caught.value)
    assert "\n" not in message
    for said in ("gpt_recompiles.json.gz", "100 MiB may be used", "23.6 MiB of text", "--max-memory 1GiB"):
        assert said in message


def test_what_fits_is_read():
    assert read(RECOMPILES, max_memory=1 << 30).n_events == read(RECOMPILES).n_events


def test_a_trace_that_was_read_holds_what_its_events_take():
    trace = read_bytes(TEXT, "x")
    assert foresee.held_bytes(trace) == foresee._EVENT_BYTES * trace.n_events


def test_a_container_counts_its_files_that_can_be_dropped_as_free(monkeypatch, tmp_path):
    for name, content in {
        "memory.max": "1000000\n",
        "memory.current": "900000\n",
        "memory.stat": "anon 100000\ninactive_file 500000\nactive_file 200000\n",
    }.items():
        (tmp_path / name).write_text(content)
    (_, *files), _ = foresee._CGROUPS
    monkeypatch.setattr(foresee, "_CGROUPS", ((tmp_path, *files),))
    assert foresee.free_memory() == 800_000
    (tmp_path / "memory.max").write_text("max\n")
    assert foresee._of_container() == []
