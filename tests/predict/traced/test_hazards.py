import pytest

from tracehunch.predict.traced import Asked, explain, traced_hazards, triangles
from tracehunch.predict.traced.hazards import _as_ran

H200 = Asked(torch="2.11.0+cu130", cudnn=91900)


def hazards_of(tree, asked=None):
    """(scope, hazard) -> (severity, confidence)."""
    return {
        (group.scope, known.hazard.id): (known.severity, known.confidence)
        for group in explain(tree, asked).groups
        for known in traced_hazards(group, triangles(tree))
    }


def test_calls_of_all_kinds(tree_of):
    assert hazards_of(tree_of("h200_calls/sdpa_calls"), H200) == {
        ("decode_causal", "causal-one-query"): ("error", "high"),
        ("train_mask_192", "cudnn-backward-nan"): ("error", "medium"),
        ("chunk_causal", "causal-lengths"): ("warning", "medium"),
        ("train_mask_192", "square-mask"): ("note", "low"),
        ("mask_shared", "explicit-causal-mask"): ("note", "medium"),
        ("mask_made_each_call", "explicit-causal-mask"): ("note", "medium"),
        ("gqa_mask", "explicit-causal-mask"): ("note", "medium"),
        ("mask_3d", "mask-keeps-flash-away"): ("note", "high"),
        ("mqa_implicit", "implicit-mqa"): ("note", "high"),
        ("gqa_fp32", "gqa-math"): ("note", "high"),
        ("gqa_wide", "gqa-math"): ("note", "high"),
        ("expanded_kv_decode", "expanded-kv-decode"): ("note", "high"),
    }


def test_what_only_some_of_the_possible_versions_have_is_a_note(tree_of):
    tree = tree_of("h200_calls/sdpa_calls")
    found = hazards_of(tree)
    assert found["train_mask_192", "cudnn-backward-nan"] == ("note", "low")  # 2.11 to 2.13, of 2.9 to 2.14
    assert found["decode_causal", "causal-one-query"] == ("error", "high")  # all of them
    (known,) = [
        known
        for group in explain(tree).groups
        for known in traced_hazards(group)
        if known.hazard.id == "cudnn-backward-nan"
    ]
    assert known.versions == "in torch 2.11 to 2.13, of 2.9 to 2.14 that it may be"
    assert ("train_mask_192", "cudnn-backward-nan") not in hazards_of(tree, Asked(torch="2.14"))


def test_a_backward_that_goes_wrong_needs_a_backward(tree_of):
    tree = tree_of("h200_calls/sdpa_calls")
    (group,) = [group for group in explain(tree, H200).groups if group.scope == "train_mask_192"]
    with_one, without = (
        {known.hazard.id for known in traced_hazards(group, has_backward=has)} for has in (True, False)
    )
    assert with_one - without == {"cudnn-backward-nan"}


def test_what_depends_on_an_assumed_cudnn_is_a_note(tree_of, changed, document):
    dims = [[2, 8, 1000, 64]] * 3 + [[]] * 5
    odd = changed(document("h200/ops/gqa_auto"), **{"Input Dims": dims, "Input Strides": None})
    key = ("sdpa_fwd", "cudnn-unaligned-length")
    assert hazards_of(tree_of(odd, torch_version="2.9.1"))[key] == ("note", "low")
    assert hazards_of(tree_of(odd, torch_version="2.9.1", cudnn_version="91300"))[key] == (
        "warning",
        "medium",
    )
    assert key not in hazards_of(tree_of(odd, torch_version="2.9.1", cudnn_version="91600"))


def test_a_pinned_backend_has_the_hazards_of_what_ran(tree_of):
    (group,) = explain(tree_of("h200/ops/gqa_math"), H200).groups
    assert {case.prediction.chosen for case in _as_ran(group)} == {"math"}
    assert traced_hazards(group) == ()  # math was pinned: grouped heads did not lead to it


@pytest.mark.parametrize(
    "name",
    [
        "h200/models/llama_sdpa_padded",
        "h200/models/llama_sdpa_train",
        "h200/ops/expand_kv_auto",
        "h200/seeds/shapes_sdpa_auto",
        "h200/ops/decode_auto",
        "cpu/mha",
        "h200/situations/gpt_recompiles",
    ],
)
def test_ordinary_calls_have_none(tree_of, name):
    assert hazards_of(tree_of(name)) == {}
    assert hazards_of(tree_of(name), Asked(torch="2.11")) == {}


def test_wrong_results_are_told_though_the_rules_of_the_version_are_not_known(tree_of):
    found = hazards_of(tree_of("h200_calls/sdpa_calls", torch_version="2.6.0+cu124"))
    assert found["decode_causal", "causal-one-query"] == (
        "error",
        "high",
    )  # cuDNN's rules are not known for 2.6
