"""A project whose tests profile attention, for runs of pytest inside a test.

Those runs are in this process: what they need is loaded here, since they forget what they load themselves.
"""

from __future__ import annotations

import pytest

from tracehunch.pytest_plugin import _assertion, _figures, _run, _summary  # noqa: F401  # see above
from tracehunch.pytest_plugin._hunch import Hunch

MODEL = """
import torch
from torch.nn.functional import scaled_dot_product_attention

def inputs():
    return [torch.randn(1, 2, 16, 8) for _ in range(3)]

def attention(query, key, value):
    return scaled_dot_product_attention(query, key, value, is_causal=True)

def copying(query, key, value):
    return attention(query, key.transpose(1, 2).contiguous().transpose(1, 2), value)

def falling_back(query, key, value):  # CPU flash takes no mask that wants a gradient
    bias = torch.zeros(16, 16, requires_grad=True)
    return scaled_dot_product_attention(query, key, value, attn_mask=bias)
"""


@pytest.fixture(scope="session")
def loaded(tmp_path_factory):
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(
        1
    )  # beside other work, threads that wait for each other take a hundred times as long
    profile = Hunch("warm-up", tmp_path_factory.mktemp("loaded"), {}, strict=True)(torch.zeros, 3)
    with torch.profiler.profile(profile_memory=True):
        assert profile.facts["leaf_ops"] > 0
    assert _figures.sections([profile])
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def project(pytester, monkeypatch, loaded):  # noqa: ARG001  # for what it does
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CI", raising=False)  # pytest would not shorten explanations
    pytester.makepyfile(model=MODEL)
    pytester.makeini("[pytest]\naddopts = --strict-markers -p no:cacheprovider\npythonpath = .")
    return pytester
