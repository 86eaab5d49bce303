"""Rank, versions and devices from whatever the header holds."""

from __future__ import annotations

import json

import pytest

from tracehunch.trace import read_bytes
from tracehunch.trace.header import header_of, rank_of_name
from tracehunch.trace.model import Header, Recorded

NOTHING_SEEN = Recorded(shapes=False, stacks=False, memory=False, modules=False)


def _header(label: str = "x.json", **keys: object) -> Header:
    return header_of(keys, label, NOTHING_SEEN)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank3.json", 3),
        ("job7_rank0.json", 0),
        ("run-rank-12.pt.trace.json.gz", 12),
        ("RANK_5.json", 5),
        ("trace_rank0012.json", 12),
        ("mytrace.rank.2.json", 2),
        ("rank 8.json", 8),
        ("rank[3].json", 3),
        ("x.rank=2.json", 2),
        ("rank\uff11.json", None),
        ("ranking7.json", None),
        ("host_123.456.pt.trace.json", None),
        ("frank3.json", None),
        ("rank.json", None),
        ("/logs/rank4/trace.json", None),
    ],
)
def test_the_rank_in_a_name(name, rank):
    assert rank_of_name(name) == rank


def test_the_content_wins_over_the_name():
    header = _header("rank0.json", distributedInfo={"rank": 1, "world_size": 2})
    assert (header.rank, header.rank_in_name, header.world_size) == (1, 0, 2)
    assert _header("rank3.json", distributedInfo={"backend": "nccl"}).rank == 3
    assert _header().rank is None


@pytest.mark.parametrize("odd", [None, [], "x", {"rank": -1}, {"rank": "a"}, {"rank": True}, {"rank": 1.5}])
def test_an_odd_distributed_info_tells_no_rank(odd):
    assert _header(distributedInfo=odd).rank is None


@pytest.mark.parametrize(
    "keys",
    [
        {"torch_version": "2.11.0+cu130"},
        {"pytorch_version": "2.11.0+cu130"},
        {"torch": "2.11.0+cu130"},
        {"PyTorch Version": "2.11.0+cu130"},
        {"metadata": {"environment": {"torch": "2.11.0+cu130"}}},
    ],
)
def test_the_torch_version_is_found_under_any_plausible_key(keys):
    assert _header(**keys).torch == "2.11.0+cu130"


@pytest.mark.parametrize("keys", [{}, {"torch": "yes"}, {"torch_home": "2.11"}, {"torch_version": 2}])
def test_no_torch_version_is_made_up(keys):
    assert _header(**keys).torch is None


def test_flags_win_over_what_is_seen():
    seen = Recorded(shapes=True, stacks=True, memory=False, modules=False)
    recorded = header_of({"with_stack": 0, "profile_memory": 1}, "x", seen).recorded
    assert recorded == Recorded(shapes=True, stacks=False, memory=True, modules=False)


def test_devices_with_holes():
    header = _header(deviceProperties=[{"id": 1, "name": "GPU", "numSms": "132", "computeMajor": 9}, 5, {}])
    first, second = header.devices
    assert (first.id, first.sms, first.compute_capability) == (1, 132, "9.0")
    assert (second.id, second.name, second.compute_capability) == (2, "unknown", None)


@pytest.mark.parametrize(("value", "base"), [(5, 5), ("5", 5), (5.0, 5), (None, 0), ("x", 0)])
def test_the_base_time(value, base):
    assert _header(baseTimeNanoseconds=value).base_time_ns == base


@pytest.mark.parametrize(("label", "lossy"), [("x.json", True), ("rank3.json", False)])
def test_collectives_without_a_rank_are_said(label, lossy, made):
    data = made.compact([made.kernel(1.0, 1.0, name="ncclDevKernel_AllReduce_Sum")])
    trace = read_bytes(data, label)
    assert any(n.code == "rank-unknown" and n.lossy for n in trace.notices) is lossy


def test_a_conflict_of_ranks_is_said():
    text = json.dumps({"distributedInfo": {"rank": 1}, "traceEvents": [{"ph": "i", "name": "x"}]})
    assert [n.code for n in read_bytes(text.encode(), "rank0.json").notices] == ["rank-conflict"]
    assert read_bytes(text.encode(), "rank1.json").notices == ()
