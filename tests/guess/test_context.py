"""The context of a baseline, and in what a later trace differs from it."""

import json

from tracehunch import guess_from
from tracehunch.guess.context import context_of, differences
from tracehunch.guess.hunch import parse_hunch
from tracehunch.guess.write import write_hunch
from tracehunch.trace import read, read_bytes
from tracehunch.trace.environment import ENVIRONMENT_KEY

OWN = {
    "versions": {"torch": "2.11.0", "driver": "580.1", "cudnn": "9.19.0", "cuda": "13.0"},
    "flags": {"sdp_flash": "True", "matmul_allow_tf32": "False"},
    "variables": {},
}
OP = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 1, "pid": 1, "tid": 1}


def trace(own=None, **keys):
    file = {"traceEvents": [OP], **keys, **({ENVIRONMENT_KEY: own} if own else {})}
    return read_bytes(json.dumps(file).encode(), "t.json")


def test_a_recorded_trace_says_its_gpu_and_cuda(h200):
    assert context_of(read(h200 / "seeds/naive.json.gz")) == {
        "device": "NVIDIA H200", "compute_capability": "9.0", "cuda": "13.0",
    }  # fmt: skip


def test_a_capture_says_versions_and_settings():
    assert context_of(trace(OWN)) == {
        "torch": "2.11.0", "driver": "580.1", "cudnn": "9.19.0", "cuda": "13.0",
        "flags": "sdp_flash=True matmul_allow_tf32=False", "variables": "none",
    }  # fmt: skip


def test_differences_are_told_one_by_one():
    context = context_of(trace(OWN))
    assert list(differences(context, trace(OWN))) == []
    later = {
        "versions": {**OWN["versions"], "driver": "590.2"},
        "flags": {**OWN["flags"], "sdp_flash": "False"},
        "variables": {"CUDA_LAUNCH_BLOCKING": "1"},
    }
    assert list(differences(context, trace(later))) == [
        ("driver", "580.1", "590.2"),
        ("sdp_flash", "True", "False"),
        ("CUDA_LAUNCH_BLOCKING", "not set", "1"),
    ]


def test_what_one_does_not_say_is_no_difference():
    assert list(differences({}, trace(OWN))) == []
    assert list(differences(context_of(trace(OWN)), trace())) == []


def test_the_context_survives_a_hunch_toml():
    guess = guess_from(trace(OWN))
    assert parse_hunch(write_hunch(guess), "h.toml").guess.context == context_of(trace(OWN))
