"""Names and first kilobytes tell traces from what lies beside them."""

import bz2
import gzip
import json
import lzma

import pytest

from tracehunch.trace.sniff import HEAD_BYTES, has_trace_suffix, is_wanted, kind_of_head

TRACE = json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{"ph": "X"}] * 5000}).encode()
OTHER = json.dumps({"metrics": list(range(20000))}).encode()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_the_head_tells_a_trace_from_other_json(pack):
    assert kind_of_head(pack(TRACE)[:HEAD_BYTES]) == "trace"
    assert kind_of_head(pack(OTHER)[:HEAD_BYTES]) == "json"


def test_every_recorded_trace_is_known_by_its_head(h200, cpu):
    paths = [path for folder in (h200, cpu) for path in folder.rglob("*.json*")]
    kinds = {path: kind_of_head(path.open("rb").read(HEAD_BYTES)) for path in paths}
    assert len(paths) > 50
    assert [path for path, kind in kinds.items() if kind != "trace"] == []


def test_other_encodings_and_lists_of_events():
    assert kind_of_head(TRACE.decode().encode("utf-16")[:HEAD_BYTES]) == "trace"
    assert kind_of_head(b"\xef\xbb\xbf \n" + TRACE[:100]) == "trace"
    assert kind_of_head(b'[{"name": "a", "ph": "X"}]') == "trace"
    assert kind_of_head(b'[{"name": "a"}]') == "json"
    assert kind_of_head(b'{"schemaVersion": 1, "devi') == "trace"  # cut off early, of PyTorch's beginning
    assert kind_of_head(json.dumps({"schemaVersion": 2, "mediaType": "x" * 80}).encode()) == "json"


def test_what_cannot_be_looked_into():
    assert kind_of_head(b"") == kind_of_head(b" \0\n") == "empty"
    assert kind_of_head(b"<html>") == "other"
    assert kind_of_head(b"\x1f\x8b\x08\x00damaged") == "packed"
    assert kind_of_head(b"\x28\xb5\x2f\xfd....") == kind_of_head(b"PK\x03\x04....") == "packed"
    assert kind_of_head(bz2.compress(TRACE * 100)[:100]) == "packed"


def test_a_rank_that_is_lost_is_read_so_that_it_is_said_and_a_file_of_another_name_is_not():
    assert is_wanted("rank3.json", "empty")
    assert is_wanted("rank3.json.gz", "other")
    assert is_wanted("host_1.123.pt.trace.json", "json")
    assert not is_wanted("rank3_config.json", "json")
    assert not is_wanted("metrics.json", "empty")
    assert is_wanted("metrics.json", "trace")
    assert is_wanted("anything.json.zst", "packed")


def test_suffixes():
    assert has_trace_suffix("A.JSON.GZ")
    assert not has_trace_suffix("a.jsonl")
    assert not has_trace_suffix("a.gz")
