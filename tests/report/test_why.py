"""``guess --why`` in words: what each reader must find in it."""

import gzip
import json
import re
from pathlib import Path

import pytest

from tracehunch.predict.traced import Asked, explain
from tracehunch.report import why, why_json, why_markdown
from tracehunch.report.layout import View
from tracehunch.trace import read, read_bytes
from tracehunch.tree import link

DATA = Path(__file__).parents[1] / "data"
H200 = Asked(torch="2.11.0+cu130", cudnn=91900)


def tree_of(name):
    return link(read(DATA / f"{name}.json.gz"))


def text_of(name, asked=None, width=80):
    tree = tree_of(name)
    return why.render(explain(tree, asked), tree, view=View(width=width), source=f"{name}.json.gz")


def flat(text):
    return re.sub(r"\s+", " ", text)


def test_a_surprise_names_what_ran_what_was_expected_and_what_may_have_done_it():
    text = flat(text_of("h200/ops/gqa_math", H200))
    assert "surprise 3 calls in sdpa_fwd ran math, where cudnn was to be expected" in text
    assert "q (4, 32, 1024, 128), k, v (4, 8, 1024, 128) bfloat16, is_causal, enable_gqa" in text
    assert "3.348 ms a call on the GPU" in text
    assert "may be sdpa_kernel(SDPBackend.MATH) around the call" in text
    asked = "cudnn would be picked: torch 2.11 asks cuDNN first on compute capability 9.0"
    assert re.search(rf"{re.escape(asked)}; \d+-\d+ us expected", text)
    assert "efficient refuses: heads q 32, k 8, v 8 differ" in text
    assert "(from torch 2.14 mem-efficient takes grouped queries" in text
    assert "elsewhere" not in text  # with CUDA 13 every release's cuDNN is asked first


def test_the_versions_that_the_trace_leaves_open_are_told_apart():
    text = flat(text_of("h200/ops/dropout_auto"))
    assert "torch not recorded: one of 2.9 to 2.14, whose wheels have CUDA 13.0" in text
    assert "3 SDPA calls: 3 as some versions or readings predict" in text
    assert "by torch 2.9 flash, 2.10 to 2.11 cudnn, 2.12 to 2.14 flash" in text
    assert text.endswith("Next: tracehunch guess --why h200/ops/dropout_auto.json.gz --torch VERSION ")


def test_calls_that_differ_in_sizes_alone_are_told_once():
    text = flat(text_of("h200/situations/gpt_varying_lengths_cudnn", H200))
    assert "36 SDPA calls: 36 as predicted" in text
    assert "also 30 calls of 5 other sizes: B 8, L 512 to 1024, S 512 to 1024" in text
    assert text.count("is picked") == 1


def test_grounds_that_several_backends_share_are_told_once():
    tree = tree_of("h200_calls/sdpa_calls")
    text = flat(why_markdown.render(explain(tree, H200), tree, source="calls"))
    (section,) = [
        part for part in text.split("### ") if "in three&#95;dims" in part or "in three_dims" in part
    ]
    assert section.count("have 3, 3, 3 dimensions") == 1
    assert "refuses as cudnn does" in section


def test_hazards_stand_with_the_calls_that_have_them():
    tree = tree_of("h200_calls/sdpa_calls")
    text = why_markdown.render(explain(tree, H200), tree, source="calls")
    (section,) = [part for part in text.split("### ") if "in decode_causal ran" in part]
    assert "- **error**: is_causal with a single query and S=1024 keys" in section
    assert "(https://github.com/pytorch/pytorch/issues/115262)" in section


def test_without_shapes_it_says_how_to_record_them():
    text = flat(text_of("h200/seeds/sdpa_auto"))
    assert "3 SDPA calls: 3 that cannot be told" in text
    assert "cannot tell shapes were not recorded; record with record_shapes=True" in text


def test_a_trace_without_sdpa_says_so():
    assert "No call of scaled_dot_product_attention was recorded." in text_of("h200/seeds/naive")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_output(width):
    for name in ("h200/ops/gqa_math", "h200_calls/sdpa_calls", "h200/models/llama_sdpa_padded", "cpu/mha"):
        lines = text_of(name, width=width).splitlines()[1:-1]  # names of files stand whole
        assert max(map(len, lines)) <= width


def test_it_ends_with_the_next_command():
    assert text_of("h200/ops/boolmask_auto").endswith("Next: tracehunch explain sdpa-known-hazard\n")
    assert text_of("h200/ops/fwdbwd_math", H200).endswith("Next: tracehunch explain sdpa-math-fallback\n")
    assert text_of("h200/ops/d80_auto", H200).endswith("Next: tracehunch look h200/ops/d80_auto.json.gz\n")


def test_json_holds_every_group_with_its_evidence():
    tree = tree_of("h200/ops/gqa_math")
    document = json.loads(gzip.decompress((DATA / "h200/ops/gqa_math.json.gz").read_bytes()))
    found = json.loads(why_json.render(explain(tree, H200), tree))
    assert found["schema"] == "tracehunch/1"
    assert found["why"]["calls"] == {
        "surprise": 3,
        "depends": 0,
        "as_predicted": 0,
        "cannot_tell": 0,
        "traced": 0,
    }
    (group,) = found["why"]["groups"]
    names = {document["traceEvents"][at]["name"] for at in group["evidence"]}
    assert names == {"aten::scaled_dot_product_attention"}
    assert (group["ran"], group["chosen"], group["predicted"]) == ("math", "cudnn", {"2.11": ["cudnn"]})
    assert [cause["id"] for cause in group["may_be"]] == ["pinned", "switched off"]
    assert group["call"]["k"] == {
        "shape": [4, 8, 1024, 128],
        "stride": [1048576, 131072, 128, 1],
        "dtype": "bfloat16",
    }
    answers = {one["backend"]: one for one in group["backends"]}
    assert {name: one["accepted"] for name, one in answers.items()} == {
        "flash": True, "efficient": False, "cudnn": True, "math": True,
    }  # fmt: skip
    low, mid, high = answers["cudnn"]["expected_us"]
    assert 0 < low < mid < high
    assert answers["efficient"]["refusals"][0]["check"] == "heads"


def test_what_cannot_be_told_is_absent_from_the_json():
    tree = tree_of("h200/seeds/sdpa_auto")
    (group,) = json.loads(why_json.render(explain(tree), tree))["why"]["groups"]
    assert group["verdict"] == "cannot tell"
    assert not {"call", "chosen", "predicted", "backends"} & group.keys()


def test_names_from_a_trace_are_harmless():
    document = json.loads(gzip.decompress((DATA / "h200/ops/gqa_auto.json.gz").read_bytes()))
    evil = "<script>\x1b[31m|**x**\u202e"
    for event in document["traceEvents"]:
        if event.get("cat") == "user_annotation":
            event["name"] = evil
    document["deviceProperties"][0]["name"] = f"NVIDIA {evil}"
    tree = link(read_bytes(json.dumps(document).encode(), "evil.json"))
    explained = explain(tree)
    plain = why.render(explained, tree, view=View(), source="evil.json")
    marked = why_markdown.render(explained, tree, source="evil.json")
    coded = why_json.render(explained, tree).decode()
    for text in (plain, marked, coded):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<script>" not in marked


def test_a_size_with_a_hazard_is_not_told_with_those_without():
    document = json.loads(gzip.decompress((DATA / "h200_calls/sdpa_calls.json.gz").read_bytes()))
    for event in document["traceEvents"]:
        if event["name"] == "mask_shared" and event.get("cat") == "user_annotation":
            event["name"] = "train_mask_192"
    tree = link(read_bytes(json.dumps(document).encode(), "two sizes"))
    text = why_markdown.render(explain(tree, H200), tree, source="calls")
    sections = [part for part in text.split("### ") if "in train_mask_192 ran" in part]
    assert sorted("cuDNN's backward can give NaN" in part for part in sections) == [False, True]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("h200/ops/cudagraph_flash", "in a CUDA graph's replay: its backend was picked when it was captured"),
        ("h200/ops/flex_causal", "Attention runs as triton_tem_fused_flex_attention_0."),
        ("cpu/encoder_eval", "Attention runs inside aten::_native_multi_head_attention, which asks no"),
        ("h200/seeds/naive", "If there is attention, it is made of matrix products and softmax."),
        ("h200_patterns/loop_gpu_activities_only", "The trace has no ops"),
        ("h200/faults/fp32_gemm", "No call of scaled_dot_product_attention was recorded. Next:"),
    ],
)
def test_without_a_call_it_says_what_there_is(name, said):
    assert said in flat(text_of(name))


def test_calls_that_raise_are_empty_or_nested_say_so():
    text = flat(text_of("cpu/sdpa_odd"))
    assert "in heads_do_not_fit ran math and raised an error: The size of tensor a (8) must match" in text
    assert "no_queries ran no backend's op (nothing to do: q, k or v is empty)" in text
    assert "its op was called directly, as nested tensors and torch.nn.attention.bias do" in text
    assert "nothing is recorded of q, k or v, as it is with nested tensors" in text
    assert "please report it" not in text


def test_what_cannot_be_told_is_asked_after_nothing():
    asked = Asked(torch="2.11.0+cu130")
    given = gzip.decompress((DATA / "h200/seeds/shapes_sdpa_flash.json.gz").read_bytes())
    document = json.loads(given)
    document["deviceProperties"][0] = {"id": 0, "name": "NVIDIA Z9000", "totalGlobalMem": 1}
    tree = link(read_bytes(json.dumps(document).encode(), "t.json"))
    text = flat(why.render(explain(tree, asked), tree, view=View(), source="t.json"))
    assert "cannot tell flash: depends on the GPU's compute capability" in text
    assert "math takes the call" in text
    assert "None" not in text
    assert "unknown" not in text
