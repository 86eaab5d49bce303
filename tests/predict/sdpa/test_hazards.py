from dataclasses import replace
from typing import NamedTuple

import pytest

from tracehunch.predict.environment import Environment, environment
from tracehunch.predict.sdpa import hazards, tensor
from tracehunch.predict.sdpa.hazards import _entries

LONG = {"batch": 1, "heads": 1, "length": 50_000, "head_dim": 64}
GQA = {"kv_heads": 2, "enable_gqa": True}
OLD_CUDNN = {"cudnn": 91002}


def ids(given, env):
    return {hazard.id for hazard in hazards(given, env)}


def offset(given):
    return replace(given, q=replace(given.q, storage_offset=1))


def strided_mask(given):
    rows, keys = given.q.shape[2], given.k.shape[2]
    return replace(given, mask=replace(tensor((rows, keys), "bool"), stride=(1, rows)))


def expanded(given):
    """Keys and values of one head, expanded to all."""
    batch, heads, keys, width = given.k.shape
    one = replace(tensor((batch, heads, keys, width), given.k.dtype), stride=(keys * width, 0, width, 1))
    return replace(given, k=one, v=one)


def mixed_layouts(given):
    return replace(given, v=tensor(given.v.shape, "bfloat16", "bshd", requires_grad=True))


class Case(NamedTuple):
    """A hazard, where it shows, and what makes it go away."""

    hazard: str
    gpu: str
    call: dict
    cure: dict
    torch: str = "2.13"
    settings: tuple = ()


CASES = [
    Case(
        "cudnn-backward-nan",
        "h200",
        call={"length": 192, "mask": "bool", "requires_grad": True},
        cure={"length": 256},
    ),
    Case(
        "cudnn-backward-nan",
        "h200",
        call={"length": 192, "mask": "bool", "requires_grad": True},
        cure={"mask": None},
    ),
    Case("cudnn-nan-2.5", "h200", torch="2.5.0", call={"requires_grad": True}, cure={"requires_grad": False}),
    Case("cudnn-unaligned-length", "h200", torch="2.9", call={"length": 1000}, cure={"length": 1024}),
    Case("cudnn-few-kv-heads", "b200", call=GQA, cure={"kv_heads": 8}),
    Case(
        "cudnn-expanded-query", "h200", call={"layout": "expand_b", "value_dim": 64}, cure={"layout": "bshd"}
    ),
    Case("cudnn-plan-per-shape", "h200", call={}, cure={"dtype": "float32"}),
    Case(
        "cudnn-off-hopper",
        "a100-80-sxm",
        settings=(("pinned", ("cudnn",)),),
        call={},
        cure={"dtype": "float32"},
    ),
    Case(
        "causal-one-query",
        "h200",
        call={"length": 1, "keys": 4096, "is_causal": True},
        cure={"is_causal": False},
    ),
    Case(
        "causal-one-query",
        "a100-80-sxm",
        call={"length": 1, "keys": 4096, "is_causal": True},
        cure={"keys": 1},
    ),
    Case(
        "causal-lengths",
        "h200",
        call={"length": 128, "keys": 4096, "is_causal": True},
        cure={"length": 1},
    ),
    Case(
        "causal-lengths",
        "h200",
        call={"length": 4096, "keys": 128, "is_causal": True},
        cure={"keys": 4096},
    ),
    Case(
        "fully-masked-rows",
        "h200",
        call={"mask": "bool", "mask_content": "fully-masked-rows"},
        cure={"mask": None},
    ),
    Case(
        "explicit-causal-mask",
        "a100-80-sxm",
        call={"mask": "bool", "mask_content": "causal"},
        cure={"mask": None},
    ),
    Case(
        "square-mask",
        "h200",
        call={"mask": "bool_bcast", "mask_content": "perhaps-causal"},
        cure={"mask_content": "unknown"},
    ),
    Case("mask-keeps-flash-away", "a100-80-sxm", call={"mask": "bool"}, cure={"dtype": "float32"}),
    Case(
        "mask-keeps-flash-away",
        "a100-80-sxm",
        call={"mask": "same"},
        cure={"mask": tensor((1024, 1024), "bfloat16", requires_grad=True)},
    ),
    Case("gqa-math", "h200", call={**GQA, "head_dim": 512}, cure={"head_dim": 128}),
    Case("gqa-math", "t4", call={**GQA, "dtype": "float16"}, cure={"enable_gqa": False, "kv_heads": 8}),
    Case("gqa-math", "h200", settings=(("pinned", ("efficient",)),), call=GQA, cure={"kv_heads": 8}),
    Case("implicit-mqa", "h200", call={"kv_heads": 1}, cure={"enable_gqa": True}),
    Case("last-stride", "h200", call={"layout": "strided_last"}, cure={"layout": "bshd"}),
    Case("mask-padding", "a100-80-sxm", call={"mask": "bool", "keys": 1001}, cure={"keys": 1000}),
    Case("mask-of-one-column", "h200", call={"mask": (2, 1, 1024, 1)}, cure={"mask": (2, 1, 1, 1)}),
    Case("mask-of-one-column", "a100-80-sxm", call={"mask": (1024, 1)}, cure={"mask": (1024, 1024)}),
    Case(
        "mask-memory",
        "h200",
        call={**LONG, "heads": 2, "mask": (1, 2, 50_000, 50_000)},
        cure={"mask": (50_000, 50_000)},
    ),
    Case(
        "mask-offsets-overflow",
        "a100-80-sxm",
        torch="2.11",
        call={**LONG, "mask": (50_000, 50_000), "requires_grad": True},
        cure={"requires_grad": False},
    ),
    Case(
        "large-head-dim-training",
        "rtx-4090",
        call={"head_dim": 224, "requires_grad": True},
        cure={"head_dim": 128},
    ),
    Case("no-flash-build", "rtx-4090", settings=(("flash_built", False),), call={}, cure={"mask": "bool"}),
    Case(
        "flash-implementation-unused",
        "h200",
        settings=(("flash_version", "FA4"),),
        call={},
        cure={"mask": "bool"},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.hazard}-{case.gpu}")
def test_a_hazard_is_seen_and_its_cure_removes_it(call, on, case):
    env = on(case.gpu, case.torch, **dict(case.settings))
    assert case.hazard in ids(call(**case.call), env)
    assert case.hazard not in ids(call(**(case.call | case.cure)), env)


def test_versions_that_lack_a_hazard_do_not_show_it(call, on):
    training = call(length=192, mask="bool", requires_grad=True)
    assert "cudnn-backward-nan" not in ids(training, on("h200", "2.14"))
    assert "cudnn-backward-nan" not in ids(training, on("b200", "2.13"))
    assert "implicit-mqa" not in ids(call(kv_heads=1), on("h200", "2.14"))
    assert "gqa-math" not in ids(call(**GQA, head_dim=512), on("h200", "2.14"))
    assert "cudnn-unaligned-length" not in ids(call(length=1000), on("h200", "2.11"))


def test_hazards_of_tensors_that_no_word_makes(call, on):
    masked = call(mask="bool")
    assert "unaligned-offset" in ids(offset(masked), on("a100-80-sxm", "2.11"))
    assert "unaligned-offset" not in ids(offset(masked), on("a100-80-sxm", "2.13"))
    assert "unaligned-offset" not in ids(masked, on("a100-80-sxm", "2.11"))
    assert "unaligned-offset" in ids(offset(call()), on("a100-80-sxm"))
    assert "unaligned-offset" not in ids(offset(call()), on("h200"))  # cuDNN loads in smaller pieces
    old_cpu = environment(torch="2.11", device="cpu")
    assert "cpu-mask-stride" in ids(strided_mask(call()), old_cpu)
    assert "cpu-mask-stride" not in ids(masked, old_cpu)
    mixed = mixed_layouts(call(requires_grad=True))
    assert "cudnn-stride-copies" in ids(mixed, on("h200"))
    assert "cudnn-stride-copies" not in ids(call(requires_grad=True), on("h200"))


def test_one_head_expanded_for_a_single_query(call, on):
    """On an H200 longer queries took as long as with grouped heads."""
    decode = call(length=1, keys=4096)
    for gpu in ("h200", "a100-80-sxm"):
        assert "expanded-kv-decode" in ids(expanded(decode), on(gpu))
        assert "expanded-kv-decode" not in ids(decode, on(gpu))
        assert "expanded-kv-decode" not in ids(expanded(call()), on(gpu))
    assert "expanded-kv-decode" not in ids(expanded(call(length=1, keys=4096, dtype="float32")), on("h200"))


def test_hazards_of_settings(call, on):
    dead = on("h200", env={"TORCH_CUDNN_SDPA_PREFERRED": "0"})
    assert "dead-variable" in ids(call(), dead)
    assert "dead-variable" not in ids(call(), on("h200", "2.9", env=dead.env))
    assert "cudnn-runtime-version" in ids(call(), on("h200", "2.13", cudnn=91002))
    assert "cudnn-runtime-version" not in ids(call(), on("h200", "2.13", cudnn=91900))
    assert "cudnn-runtime-version" not in ids(call(), on("a100-80-sxm", "2.13", cudnn=91002))
    avoided = on("h200", env={"TORCH_CUDNN_SDPA_AVOID_RECOMPILE": "1"})
    assert "cudnn-plan-per-shape" not in ids(call(), avoided)
    gb10 = environment(torch="2.11", compute_capability=(12, 1))
    assert "no-kernel-for-gb10" in ids(call(mask="bool"), gb10)
    assert "rocm-architecture" in ids(call(), on("mi300x", architecture="gfx1030"))
    assert ids(call(), on("mi300x")) == set()


def test_an_order_set_around_the_first_call_is_lost(call, on):
    env = on("h200", pinned=("flash", "math"), set_priority=True, first_call=True)
    assert "order-lost" in ids(call(), env)
    assert "order-lost" not in ids(call(), replace(env, first_call=False))
    assert "order-lost" not in ids(call(), replace(env, set_priority=False))
    assert "order-lost" not in ids(call(), on("a100-80-sxm", set_priority=True, first_call=True))


def test_a_triangle_that_ends_bottom_right_is_the_cure_unless_rows_see_nothing(call, on):
    given = call(keys=2048, is_causal=True)
    assert "causal-lengths" in ids(given, on("h200"))
    assert not ids(replace(given, lower_right=True), on("h200")) & {"causal-lengths", "causal-one-query"}
    short = replace(call(keys=512, is_causal=True), lower_right=True)
    assert "fully-masked-rows" in ids(short, on("h200"))


def test_every_hazard_of_the_table_is_tested():
    here = {case.hazard for case in CASES} | {
        "unaligned-offset",
        "expanded-kv-decode",
        "order-lost",
        "cpu-mask-stride",
        "cudnn-stride-copies",
        "dead-variable",
        "cudnn-runtime-version",
        "no-kernel-for-gb10",
        "rocm-architecture",
    }
    assert here == {entry.id for entry in _entries()}


def test_a_plain_call_has_none(call, on):
    assert hazards(call(is_causal=True), on("a100-80-sxm")) == ()
    assert hazards(call(), Environment(torch=(2, 4))) == ()
    assert hazards(replace(call(), nested=True), on("h200")) == ()


def test_words_hold_the_calls_numbers_and_a_link(call, on):
    (hazard, *_) = hazards(call(**GQA, head_dim=512), on("h200"))
    assert hazard.kind == "memory"
    assert "8 and 2 heads" in hazard.words
    assert "scores of 64 MiB" in hazard.words
    assert "flash: head dim 512 > 256" in hazard.words
    assert hazard.links[0] == "https://github.com/huggingface/transformers/pull/46960"
    assert str(hazard).endswith(f"({hazard.links[0]})")


def test_warnings_come_first(call, on):
    found = hazards(call(length=192, mask="bool", requires_grad=True), on("h200"))
    assert [hazard.severity for hazard in found] == ["warning", "note"]
