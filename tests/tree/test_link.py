"""Linking on real traces, against counts made another way."""

import gzip
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from tracehunch.trace import read
from tracehunch.trace.model import Cat
from tracehunch.tree import NONE, Link, link

LAUNCH = re.compile(r"(cuda|cu)(Launch|GraphLaunch|Memcpy|Memset)")
SOME = [
    "seeds/naive",
    "seeds/sdpa_math",
    "models/llama_sdpa_train",
    "models/llama_sdpa_compiled",
    "models/llama_sdpa_generate",
    "ops/fwdbwd_flash",
    "ops/cudagraph_flash",
    "ops/triton_user_kernel",
    "faults/two_streams",
    "situations/moe_loop_where_syncs",
    "ranks/ddp/rank1",
]


def complete(path: Path) -> list[dict]:
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return [event | {"args": event.get("args", {})} for event in events if event["ph"] == "X"]


def trees(h200, names):
    for name in names:
        path = h200 / f"{name}.json.gz"
        yield path, link(read(path))


@pytest.mark.parametrize(
    ("name", "scope", "gpu", "outside"),
    [
        ("naive", "attn_fwd", 7, 2),
        ("naive_inplace", "attn_fwd", 6, 2),
        ("sdpa_math", "sdpa_fwd", 20, 9),
        ("sdpa_efficient", "sdpa_fwd", 1, 0),
        ("sdpa_flash", "sdpa_fwd", 1, 0),
        ("sdpa_cudnn", "sdpa_fwd", 2, 0),
    ],
)
def test_seeds(h200, name, scope, gpu, outside):
    tree = link(read(h200 / "seeds" / f"{name}.json.gz"))
    calls = next(s for s in tree.scopes if s.name == scope).calls
    assert [call.gpu.size for call in calls] == [gpu] * 3
    assert np.count_nonzero(tree.link == Link.OUTSIDE_WINDOW) == outside
    assert ("outside-window" in {notice.code for notice in tree.notices}) == bool(outside)


def test_training_step_owns_what_autograd_launches(h200):
    tree = link(read(h200 / "models" / "llama_sdpa_train.json.gz"))
    owned = {s.name: [(call.gpu.size, call.own_gpu.size) for call in s.calls] for s in tree.scopes}
    assert owned["train_step"] == [(902, 343)] * 2
    assert owned["backward"] == [(560, 1)] * 2
    assert owned["forward"] == [(286, 286)] * 2
    assert owned["optimizer"] == [(56, 56)] * 2
    assert len(tree.autograd_threads) == 1


@pytest.mark.parametrize("name", SOME)
def test_ownership_is_what_a_search_over_the_events_finds(h200, name):
    path = h200 / f"{name}.json.gz"
    events = complete(path)
    on_gpu = defaultdict(int)
    for event in events:
        on_gpu[event["args"].get("correlation")] += event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")
    launches = [e for e in events if e["cat"] in ("cuda_runtime", "cuda_driver") and LAUNCH.match(e["name"])]
    engine = {e["tid"] for e in events if e["name"].startswith("autograd::engine::evaluate_function")}
    expected = defaultdict(list)
    for note in events:
        if note["cat"] == "user_annotation" and not note["name"].startswith("ProfilerStep"):
            inside = [e for e in launches if note["ts"] <= e["ts"] < note["ts"] + note["dur"]]
            own = sum(on_gpu[e["args"]["correlation"]] for e in inside if e["tid"] == note["tid"])
            other = sum(
                on_gpu[e["args"]["correlation"]]
                for e in inside
                if e["tid"] != note["tid"] and e["tid"] in engine
            )
            expected[note["name"]].append((own + other, own))
    tree = link(read(path))
    found = {s.name: [(c.gpu.size, c.own_gpu.size) for c in s.calls] for s in tree.scopes}
    for scope, calls in expected.items():
        assert sorted(found[scope]) == sorted(calls), scope


def test_op_of_an_activity_is_the_one_that_its_external_id_names(h200):
    """External ids are PyTorch's own link, unused here where a launch is known."""
    compared = 0
    for path in sorted(h200.glob("*/*.json.gz")):
        tree = link(read(path))
        trace, gpu = tree.trace, tree.trace.gpu.row
        known = gpu[(tree.launch[gpu] != NONE) & (tree.op[gpu] != NONE) & (trace.external_id[gpu] > 0)]
        assert (trace.external_id[tree.op[known]] == trace.external_id[known]).all(), path.name
        compared += known.size
    assert compared > 15_000


def test_every_activity_has_one_launch_and_the_whole_owns_all(h200):
    for path, tree in trees(h200, SOME):
        trace, gpu = tree.trace, tree.trace.gpu.row
        linked = gpu[tree.link[gpu] == Link.LINKED]
        assert (trace.correlation[linked] == trace.correlation[tree.launch[linked]]).all(), path
        assert np.isin(tree.launch[linked], tree.launches).all()
        whole = next(s for s in tree.scopes if s.kind == "whole").calls[0]
        assert whole.gpu.tolist() == sorted(gpu.tolist())
        assert whole.launches.tolist() == tree.launches.tolist()


def test_parents_contain_their_children(h200):
    for path, tree in trees(h200, SOME):
        trace, end = tree.trace, tree.trace.end_ns()
        inner = np.flatnonzero(tree.parent != NONE)
        outer = tree.parent[inner]
        assert (trace.thread[inner] == trace.thread[outer]).all(), path
        assert (trace.start_ns[outer] <= trace.start_ns[inner]).all()
        assert (end[inner] <= end[outer] + 2).all()


def test_a_graph_replay_is_one_launch(h200):
    tree = link(read(h200 / "ops" / "cudagraph_flash.json.gz"))
    assert tree.launches.size == 3
    assert [tree.gpu_of_launch(row).size for row in tree.launches.tolist()] == [3, 3, 3]
    assert (tree.op[tree.trace.gpu.row] == NONE).all()


def test_backward_nodes_belong_to_their_forward_op(h200):
    tree = link(read(h200 / "ops" / "fwdbwd_flash.json.gz"))
    names = {
        tree.trace.name_of(b).rpartition(": ")[2]: tree.trace.name_of(f) for b, f in tree.backward_of.items()
    }
    assert names["ScaledDotProductFlashAttentionBackward0"] == "aten::scaled_dot_product_attention"
    assert all(tree.trace.start_ns[f] < tree.trace.start_ns[b] for b, f in tree.backward_of.items())


def test_sound_traces_are_called_sound(h200):
    """Nothing is lossy but work that was launched before the window."""
    for path in sorted(h200.glob("**/*.json.gz")):
        lossy = {notice.code for notice in link(read(path)).notices if notice.lossy}
        assert lossy <= {"outside-window"}, path


def test_modules_are_named_by_their_path(h200):
    tree = link(read(h200 / "models" / "llama_sdpa_train_stack.json.gz"))
    modules = {s.name: s for s in tree.scopes if s.kind == "module"}
    attention = "LlamaForCausalLM_0/LlamaModel_0/LlamaDecoderLayer_3/LlamaAttention_3"
    assert len(modules[attention].calls) == 1
    forward = next(s for s in tree.scopes if s.name == "forward").calls[0]
    assert set(modules[attention].calls[0].gpu.tolist()) < set(
        modules["LlamaForCausalLM_0"].calls[0].gpu.tolist()
    )
    assert set(modules["LlamaForCausalLM_0"].calls[0].gpu.tolist()) <= set(forward.gpu.tolist())


def test_copies_of_annotations_on_the_gpu_are_no_scopes(h200):
    tree = link(read(h200 / "seeds" / "naive.json.gz"))
    assert (tree.trace.cat == Cat.GPU_ANNOTATION).any()
    assert sum(len(s.calls) for s in tree.scopes if s.name == "attn_fwd") == 3


@pytest.mark.parametrize(
    "name", ["hta_diff_control", "hta_ns_resolution", "tl_mi300_bert_small", "tl_sglang_qwen3_decode"]
)
def test_other_projects_traces(public_traces, name):
    tree = link(read(public_traces / f"{name}.json.gz"))
    gpu = tree.trace.gpu.row
    assert (tree.link[gpu] == Link.LINKED).all()
    assert not [notice for notice in tree.notices if notice.lossy]
